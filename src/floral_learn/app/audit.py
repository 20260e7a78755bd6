"""``floral audit``: find labels of a data file that look wrong, show them on a page, and write decisions back."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from floral_learn.app.audit_page import FOLDER, PagePictures, render
from floral_learn.app.options import (
    KINDS,
    OPTIONS,
    check_out_file,
    check_out_folder,
    check_same_kind,
    check_target,
    with_table_options,
)
from floral_learn.app.terminal import one_line, progress_bar, say, say_notes


class _AuditGroup(TyperGroup):
    """``floral audit FILE ...`` runs the audit; ``floral audit apply ...`` is the only named subcommand."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = ["run", *(args or ["--help"])]
        return super().parse_args(ctx, args)


class _RunCommand(TyperCommand):
    """The audit itself; usage and errors call it ``floral audit``, as people type it."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        if parent is not None:
            info_name, parent = parent.info_name, parent.parent
        return super().make_context(info_name, args, parent=parent, **extra)


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    group = typer.Typer(
        cls=_AuditGroup,
        help="Find labels that look wrong: floral audit data.csv --label y --out report/",
    )
    group.command(name="run", cls=_RunCommand)(one_line("floral audit")(audit))
    group.command(name="apply")(one_line("floral audit apply")(apply))
    app.add_typer(group, name="audit")


@with_table_options(*(name for name in OPTIONS if name != "weight"))
def audit(
    source: Path = typer.Argument(..., metavar="DATA", help=f"data file: {KINDS}; a folder or .zip of pictures"),
    out: Path = typer.Option(..., "--out", "-o", help="folder for page.html and issues.csv"),
    decisions: Path | None = typer.Option(None, "--decisions", help="decisions.csv of an earlier page, to go on from"),
    write_cleaned: bool = typer.Option(
        False, "--write-cleaned", help="also write a copy of DATA with flagged labels replaced, where that is safe"
    ),
    seed: int = typer.Option(0, "--seed", "-s", help="random seed"),
    to: str | None = typer.Option(None, "--to", help="also write suspects as tasks for another tool (label-studio)"),
    columns: Any = None,
) -> None:
    """Find labels of DATA that look wrong, and say what is known and what is not.

    OUT gets page.html (open it in any browser), issues.csv (every row, the most doubtful first) and near_duplicates.csv
    (equal rows with different labels). With --write-cleaned it also gets cleaned.csv, a copy of DATA in which flagged
    labels that are more probably wrong than right are replaced by the suggested ones. DATA itself is never changed.

    `floral audit apply DATA decisions.csv --label y --out clean.csv` writes decisions made on the page into a copy.
    """
    started = time.perf_counter()
    from floral_learn.app.tables.source import table_suffix
    from floral_learn.audit import find_label_issues
    from floral_learn.base.cells import csv_bytes, frame_bytes
    from floral_learn.base.files import write_set

    check_target(to)
    given, (source, columns) = source, columns.find(source)
    cleaned = out / f"cleaned{table_suffix(source)}"
    check_out_folder(out, source, cleaned.name)
    table = columns.read(source)
    say(f"{given.name}: {len(table):,} rows, {len(table.classes)} classes")
    with progress_bar("audit") as update:
        result = find_label_issues(
            table,
            text_encoder=columns.text_encoder,
            decisions=decisions,
            random_state=seed,
            progress=lambda stage, share: update(share, 1.0, stage),
        )
    # these come with the summary
    say_notes(note for note in result.notes if note not in result.class_notes)
    shown = table.features
    if table.groups is not None:
        shown = shown.assign(**{str(columns.group): table.groups})
    pictures = None
    if columns.image is not None:
        paths = [columns.image_folder / name for name in table.features[columns.image]]
        pictures = PagePictures(paths, out)
    page: Any = render(result, title=given.name, frame=shown, pictures=pictures)
    issues = result.to_frame().round({"score": 4})
    files = {out / "page.html": page.encode(), out / "issues.csv": frame_bytes(issues)}
    if len(result.near_duplicate_pairs):
        files[out / "near_duplicates.csv"] = frame_bytes(result.near_duplicates())
    if columns.problems:
        files[out / "problems.csv"] = csv_bytes(["file", "problem", "detail"], columns.problems)
    if columns.group:
        files[out / "groups.csv"] = frame_bytes(result.group_ranking().round(4))
    if pictures is not None and pictures.files:
        (out / FOLDER).mkdir(parents=True, exist_ok=True)
        for path, content in pictures.files.items():
            path.write_bytes(content)
    refused = result.why_not_cleaned()
    if write_cleaned and refused is None:
        new = result.cleaned_labels()
        changed = (new != table.labels).nonzero()[0]
        files[cleaned] = table.relabelled(changed, new[changed])
    if to is not None:
        from floral_learn.app.tables.label_studio import label_studio_tasks

        doubtful = issues.loc[issues["flagged"]]
        tasks = label_studio_tasks(table, doubtful["row"], doubtful["suggested"], doubtful["score"])
        files |= {out / name: content for name, content in tasks.items()}
    others = ("near_duplicates.csv", "problems.csv", "groups.csv", "tasks.json", "label-config.xml")
    write_set(files, "floral audit", gone=(cleaned, *(out / name for name in others)))
    for line in result.summary():
        say(line)
    if decided := len(result.decisions):
        say(f"{decided:,} decisions taken into account")
    if write_cleaned and refused is not None:
        say(f"no cleaned copy is written: {refused}")
    seconds = time.perf_counter() - started
    say(f"wrote {', '.join(map(str, files))} ({seconds:.1f} s)")
    say(f"open {out / 'page.html'} in a browser")


@with_table_options("label", "skip_blank", "sep", "encoding")
def apply(
    source: Path = typer.Argument(..., metavar="DATA", help="the audited data file"),
    decisions: Path = typer.Argument(..., metavar="DECISIONS", help="decisions.csv, downloaded from the page"),
    out: Path = typer.Option(..., "--out", "-o", help="file to write, of the same kind as DATA"),
    columns: Any = None,
) -> None:
    """Write the decisions made on the page into a copy of DATA: only labels marked wrong change."""
    import numpy as np

    from floral_learn.audit.decisions import read_decisions
    from floral_learn.base.files import write_all

    check_same_kind(out, source)
    check_out_file(out, source)
    table = columns.read(source)
    labels: Any = table.labels
    found = read_decisions(decisions, labels, rows=table.rows)
    wrong = [d for d in found if d.kind == "wrong"]
    told = {kind: sum(d.kind == kind for d in found) for kind in ("right", "unsure")}
    new = np.array([d.label for d in wrong], dtype=labels.dtype)
    write_all({out: table.relabelled([d.position for d in wrong], new)})
    unsure = f" and {told['unsure']:,} unsure ones" if told["unsure"] else ""
    say(f"replaced {len(wrong):,} labels, left {told['right']:,} that were confirmed{unsure}; wrote {out}")
