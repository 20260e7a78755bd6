"""``floral audit``: find labels of a data file that look wrong, show them on a page, and write decisions back."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from floral_learn.table_error import TableError

from .failures import one_line

if TYPE_CHECKING:
    from floral_learn.datasets.tables import Table

SMALLEST, BIGGEST = 0.0, 1.0


class _AuditGroup(TyperGroup):
    """``floral audit FILE ...`` runs the audit; ``floral audit apply ...`` is the only named subcommand."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    group = typer.Typer(
        cls=_AuditGroup,
        no_args_is_help=True,
        help="Find labels that look wrong: floral audit data.csv --label y --out report/ (the same as audit run).",
    )
    group.command(name="run")(one_line("floral audit")(audit))
    group.command(name="apply")(one_line("floral audit apply")(apply))
    app.add_typer(group, name="audit")


def audit(
    source: Path = typer.Argument(..., metavar="DATA", help="data file: .csv, .tsv or .parquet"),
    label: str = typer.Option(..., "--label", "-l", help="name of the label column"),
    out: Path = typer.Option(..., "--out", "-o", help="folder for page.html, issues.csv and the cleaned copy"),
    text: list[str] = typer.Option([], "--text", "-t", help="column of texts to compare rows by (repeatable)"),
    text_encoder: str = typer.Option("auto", help="how prose becomes numbers: auto, minilm or tfidf"),
    row_id: str | None = typer.Option(None, "--id", help="column that names the rows"),
    group: str | None = typer.Option(None, "--group", "-g", help="column of annotators or sources to rank"),
    drop: list[str] = typer.Option([], help="column to leave out (repeatable)"),
    threshold: float = typer.Option(0.5, help="suspicion from which a label is flagged and replaced in the copy"),
    seed: int = typer.Option(0, "--seed", "-s", help="random seed"),
    skip_blank: bool = typer.Option(False, "--skip-blank-labels", help="leave rows without a label out"),
    sep: str | None = typer.Option(None, help="separator of a text file (default: found in the header)"),
    encoding: str | None = typer.Option(None, help="encoding of a text file (default: UTF-8, or its byte order mark)"),
) -> None:
    """Rank the labels of DATA by how likely they are to be wrong.

    OUT gets page.html (open it in any browser), issues.csv (every row, most suspicious first) and cleaned.csv (a copy
    of DATA in which flagged labels are replaced by the suggested ones). DATA itself is never changed.
    """
    started = time.perf_counter()
    import numpy as np

    from floral_learn.atomic_files import write_all
    from floral_learn.audit import audit as run_audit
    from floral_learn.audit.page import summary
    from floral_learn.csv_cells import frame_bytes
    from floral_learn.datasets.encoder import TableEncoder
    from floral_learn.datasets.tables import read_table

    if not SMALLEST < threshold <= BIGGEST:
        raise TableError(f"--threshold {threshold:g} must be above 0 and at most 1")
    _check_folder(out, source)
    table = read_table(
        source,
        label=label,
        text=text,
        ids=row_id,
        groups=group,
        drop=drop,
        sep=sep,
        encoding=encoding,
        skip_blank_labels=skip_blank,
    )
    labels: Any = table.labels
    typer.echo(f"{source.name}: {len(labels):,} rows, {len(np.unique(labels))} classes")
    encoder = TableEncoder(text=table.text, text_encoder=text_encoder, random_state=seed)
    X = encoder.fit_transform(table.features)
    notes = [*table.notes, *encoder.notes_]
    for note in notes:
        typer.echo(f"  {note}")
    with _progress_bar() as progress:
        result = run_audit(X, labels, groups=table.groups, random_state=seed, progress=progress)
    ids = None if table.ids is None else table.ids.tolist()
    shown = table.features if table.groups is None else table.features.assign(**{str(group): table.groups})
    page = result.to_html(title=source.name, frame=shown, ids=ids, notes=notes, threshold=threshold)
    flagged = np.sort(result.flagged(threshold))
    cleaned = out / f"cleaned{source.suffix}"
    files = {
        out / "page.html": page.encode(),
        out / "issues.csv": _issues(result, ids),
        cleaned: table.relabelled(flagged, result.cleaned(threshold)[flagged]),
    }
    if group:
        files[out / "groups.csv"] = frame_bytes(result.group_ranking(threshold))
    out.mkdir(exist_ok=True)
    write_all(files)
    seconds = time.perf_counter() - started
    found = summary(result, threshold)
    share = f"{found['flagged']:,} of {len(labels):,} labels ({found['flagged_percent']:.1f} %)"
    typer.echo(f"flagged {share}; about {found['expected']:,.0f} are expected to be wrong ({seconds:.1f} s)")
    typer.echo(f"wrote {', '.join(str(path) for path in files)}")
    typer.echo(f"open {out / 'page.html'} in a browser")


def apply(
    source: Path = typer.Argument(..., metavar="DATA", help="the audited data file"),
    decisions: Path = typer.Argument(..., metavar="DECISIONS", help="decisions.csv, downloaded from the page"),
    label: str = typer.Option(..., "--label", "-l", help="name of the label column"),
    out: Path = typer.Option(..., "--out", "-o", help="file to write, of the same kind as DATA"),
    skip_blank: bool = typer.Option(False, "--skip-blank-labels", help="leave rows without a label out"),
    sep: str | None = typer.Option(None, help="separator of a text file (default: found in the header)"),
    encoding: str | None = typer.Option(None, help="encoding of a text file (default: UTF-8, or its byte order mark)"),
) -> None:
    """Write the decisions made on the page into a copy of DATA: only labels marked wrong change."""
    from floral_learn.atomic_files import write_all
    from floral_learn.datasets.tables import read_table

    if out.suffix.lower() != source.suffix.lower():
        raise TableError(f"--out {out} must end in {source.suffix or 'no extension'}, as {source} does")
    if not out.parent.is_dir():
        raise TableError(f"the folder of --out {out} does not exist")
    if out.exists() and source.exists() and out.samefile(source):
        raise TableError(f"--out {out} is the data file itself; it is never changed")
    table = read_table(source, label=label, sep=sep, encoding=encoding, skip_blank_labels=skip_blank)
    rows, new, right = read_decisions(decisions, table)
    write_all({out: table.relabelled(rows, new)})
    typer.echo(f"replaced {len(rows):,} labels, left {right:,} that were confirmed; wrote {out}")


def read_decisions(path: Path, table: Table) -> tuple[Any, Any, int]:
    """Return the rows to change, their new labels and how many were confirmed; refuse what does not fit the data."""
    import numpy as np

    from floral_learn.csv_cells import unguarded

    labels: Any = table.labels
    known = {str(value): value for value in np.unique(labels).tolist()}
    try:
        lines = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if not lines or not {"row", "given", "decision", "label"} <= set(lines[0]):
        raise TableError(f"{path} is no list of decisions: it needs the columns row, given, decision and label")
    rows: dict[int, Any] = {}
    right = 0
    for number, line in enumerate(lines, start=2):
        place = f"{path}, line {number}"
        text = (line["row"] or "").strip()
        if not text.isdecimal() or int(text) >= len(labels):
            raise TableError(f"{place}: row {text!r} is none of the rows 0 to {len(labels) - 1} of {table.name}")
        row = int(text)
        given, wanted = unguarded(line["given"] or ""), unguarded(line["label"] or "")
        if given != str(labels[row]):
            raise TableError(
                f"{place}: row {row} had the label {given!r} on the page and has {str(labels[row])!r} in "
                f"{table.name}; the data changed since the audit"
            )
        if line["decision"] == "right":
            right += 1
        elif line["decision"] != "wrong":
            raise TableError(f"{place}: the decision {line['decision']!r} is neither 'wrong' nor 'right'")
        elif wanted not in known:
            raise TableError(f"{place}: {wanted!r} is no label of {table.name}: {', '.join(list(known)[:12])}")
        else:
            rows[row] = known[wanted]
    order = sorted(rows)
    return np.array(order, dtype=np.intp), np.array([rows[row] for row in order], dtype=labels.dtype), right


def _check_folder(out: Path, source: Path) -> None:
    if out.exists() and not out.is_dir():
        raise TableError(f"--out {out} is a file; name a folder for the report")
    if not out.exists() and not out.parent.is_dir():
        raise TableError(f"the folder {out.parent} of --out does not exist")
    cleaned = out / f"cleaned{source.suffix}"
    if source.exists() and cleaned.exists() and cleaned.samefile(source):
        raise TableError(f"{source} would be overwritten by the cleaned copy; use another --out")


def _issues(result: Any, ids: list[str] | None) -> bytes:
    from floral_learn.csv_cells import frame_bytes

    issues = result.label_issues()
    if ids is not None:
        issues.insert(1, "id", [ids[row] for row in issues["row"]])
    issues["suspicion"] = issues["suspicion"].round(4)
    return frame_bytes(issues)


@contextmanager
def _progress_bar() -> Iterator[Callable[[str, float], None] | None]:
    """Yield a progress callback that draws a bar with the time left on stderr (terminals only)."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = TextColumn("{task.description:12}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("audit", total=1.0)
        yield lambda stage, share: bar.update(task, completed=share, description=stage)
