"""What several commands take: the options that say how a table is read, and values read from text."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from floral_learn.app.terminal import progress_bar
from floral_learn.base import TableError

# Columns that hold who gave a label; such a column is a feature unless --group names it, and that is said.
_SOURCES = {"annotator", "labeler", "labeller", "labeled_by", "labelled_by", "rater", "worker"}
KINDS = ".csv, .tsv, .jsonl, .json of Label Studio (also .gz), .parquet, .xlsx"


@dataclass(frozen=True)
class TableOptions:
    """How a table is read: one set of options for all commands, each of which has those that it can use."""

    label: str | None = None
    text: tuple[str, ...] = ()
    text_encoder: str = "auto"
    row_id: str | None = None
    group: str | None = None
    trusted: str | None = None
    weight: str | None = None
    drop: tuple[str, ...] = ()
    skip_blank: bool = False
    sep: str | None = None
    encoding: str | None = None
    image: str | None = None
    image_folder: Path | None = None
    image_size: int = 224
    embeddings: Path | None = None
    skip_unreadable: bool = False
    # files of a folder that are no pictures of a class, and why
    strays: tuple[tuple[str, str], ...] = ()
    # file, problem, detail: filled by `read`
    problems: list[tuple[str, str, str]] = field(default_factory=list)

    def find(self, source: Path, labelled: bool = True) -> tuple[Path, TableOptions]:
        """The table behind a folder or .zip of pictures, and the options with which to read it."""
        holds_pictures = source.suffix.lower() == ".zip" or source.is_dir()
        if self.image is None and self.label is not None and not holds_pictures:
            return source, self
        from .pictures import find_pictures

        return find_pictures(source, self, labelled)

    def read(self, source: Any, **other: Any) -> Any:
        """The table behind `source`; `other` are further arguments of `read_table`, or other values of these."""
        from floral_learn.app.tables import read_table

        with progress_bar(f"reading {source}") as update:
            update(0, None)  # how far it is, nobody knows
            roles = self.roles() | {"skip_blank_labels": self.skip_blank}
            table = read_table(source, **(roles | other))
        if self.image is not None or self.embeddings is not None:
            from .pictures import read_pictures

            return read_pictures(table, self)
        if self.group is not None or table.features is None:
            return table
        for name in table.features.columns:
            if str(name).strip().lower().removesuffix("_id") in _SOURCES:
                table.notes.append(f"{name} is taken for a feature; if it says who gave the label: --group {name}")
        return table

    def roles(self) -> dict[str, Any]:
        """The arguments of `read_table` that say what the columns are."""
        return {
            "label": self.label,
            "text": self.text,
            "ids": self.row_id,
            "groups": self.group,
            "trusted": self.trusted,
            "weights": self.weight,
            "drop": self.drop,
            "as_text": [] if self.image is None else [self.image],
            "sep": self.sep,
            "encoding": self.encoding,
        }

    def picture_options(self) -> dict[str, Any]:
        """The options about pictures and embeddings that are not left at their defaults."""
        size = None if self.image is None or self.image_size == 224 else self.image_size
        found: dict[str, Any] = {"image": self.image, "image_size": size}
        found["skip_unreadable"] = self.skip_unreadable
        for name in ("image_folder", "embeddings"):
            if path := getattr(self, name):
                found[name] = str(path.resolve())
        return {name: value for name, value in found.items() if value}

    def numbers(self, table: Any, seed: int = 0) -> tuple[Any, list[str]]:
        """The features as numbers, and notes on the table and on how they were made."""
        encoder = table.encoder or self.encoder(seed)
        return encoder.fit_transform(table.features), [*table.notes, *encoder.notes_]

    def encoder(self, seed: int = 0) -> Any:
        """The encoder of the features."""
        from floral_learn.base.encoder import TableEncoder

        prose = prose_encoder(self.text_encoder)
        return TableEncoder(text=self.text, text_encoder=prose, random_state=seed)


_TEXT, _TEXTS, _PATH = str | None, list[str], Path | None
_folder = "where the names of --image begin (default: the folder of DATA)"
_numbers = ".npy file with a row of numbers per row, in place of the columns"
# name -> type and declaration; the order is that of `--help`
OPTIONS: dict[str, tuple[Any, Any]] = {
    "label": (_TEXTS, typer.Option(..., "--label", "-l", help="name of the label column")),
    "text": (_TEXTS, typer.Option([], "--text", "-t", metavar="COLUMN", help="column of prose (repeatable)")),
    "text_encoder": (str, typer.Option("auto", help="how prose becomes numbers: auto, minilm or tfidf")),
    "row_id": (_TEXT, typer.Option(None, "--id", help="column that names the rows; no feature")),
    "group": (_TEXT, typer.Option(None, "--group", "-g", help="column that names who or what gave each label")),
    "trusted": (_TEXT, typer.Option(None, "--trusted", help="column that marks labels known to be right")),
    "weight": (_TEXT, typer.Option(None, "--weight", help="column with the weight of each row")),
    "drop": (_TEXTS, typer.Option([], "--drop", metavar="COLUMN", help="column to leave out (repeatable)")),
    "skip_blank": (bool, typer.Option(False, "--skip-blank", help="leave out rows without a label")),
    "sep": (_TEXT, typer.Option(None, help="separator of a text file (default: found in the header)")),
    "encoding": (_TEXT, typer.Option(None, help="encoding of a text file (default: UTF-8, or its byte order mark)")),
    "image": (_TEXT, typer.Option(None, "--image", help="column of pictures or their names, which are learned from")),
    "image_folder": (_PATH, typer.Option(None, "--image-folder", help=_folder)),
    "image_size": (int, typer.Option(224, metavar="PIXELS", help="pixels a side at which pictures are read")),
    "embeddings": (_PATH, typer.Option(None, "--embeddings", help=_numbers)),
    "skip_unreadable": (
        bool,
        typer.Option(False, "--skip-unreadable", help="go on without files that are no pictures"),
    ),
}


def with_table_options(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these of the `OPTIONS`, after its own; it gets them as one `TableOptions`, called ``columns``."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True)
        kind = inspect.Parameter.KEYWORD_ONLY
        options = dict(OPTIONS)
        if "image" in names:  # the labels of a folder of pictures are the names of its folders
            options["label"] = _TEXTS, typer.Option([], "--label", "-l", help="name of the label column")
        chosen = [(name, *options[name]) for name in options if name in names]
        added = [inspect.Parameter(name, kind, default=shown, annotation=of) for name, of, shown in chosen]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            read = {name: given.pop(name) for name in names}
            if "label" in read:
                read["label"] = _only_label(read["label"])
            lists = {name: tuple(value) for name, value in read.items() if isinstance(value, list)}
            command(**given, columns=TableOptions(**(read | lists)))

        first = [p.replace(kind=kind) for p in own.parameters.values() if p.name != "columns"]
        parameters = [*first[:1], *(p for p in added if p.name == "label"), *first[1:]]
        parameters += [p for p in added if p.name != "label"]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        return run

    return decorate


def prose_encoder(name: str) -> Any:
    """What makes vectors of prose, by its name; None is tf-idf, which the encoder of tables has itself."""
    if name not in ("auto", "minilm", "tfidf"):
        raise TableError(f"--text-encoder {name!r} must be auto, minilm or tfidf")
    if name == "tfidf":
        return None
    from floral_learn.encoders import TextEncoder

    return TextEncoder(name)


def _only_label(given: list[str]) -> str | None:
    """The label column; a second one is refused, where the last would win silently."""
    if len(given) > 1:
        raise TableError(f"--label was given {len(given)} times ({', '.join(given)}): one label a row; name one column")
    return given[0] if given else None


def check_same_kind(out: Path, source: Path) -> None:
    """Refuse a copy of a table under a name that says another kind than its own."""
    from floral_learn.app.tables.source import table_suffix

    if table_suffix(out) != table_suffix(source):
        raise TableError(f"--out {out} must end in {table_suffix(source) or 'no extension'}, as {source} does")


def check_out_file(out: Path, *inputs: Path) -> None:
    """Refuse an output file in a folder that does not exist, or in the place of an input."""
    if not out.parent.is_dir():
        raise TableError(f"the folder of --out {out} does not exist")
    if out.exists() and any(path.exists() and out.samefile(path) for path in inputs):
        raise TableError(f"--out {out} is an input; inputs are never overwritten")


def check_target(to: str | None) -> None:
    """Refuse a tool that we cannot write tasks for."""
    if to not in (None, "label-studio"):
        raise TableError(f"--to {to!r} is unknown; choose label-studio")


def check_out_folder(out: Path, source: Path | None = None, *names: str) -> None:
    """Refuse an output folder that is a file, that lies in no folder, or in which one of `names` is the input."""
    if out.exists() and not out.is_dir():
        raise TableError(f"--out {out} is a file; name a folder for the results")
    if not out.exists() and not out.parent.is_dir():
        raise TableError(f"the folder {out.parent} of --out does not exist")
    for path in (out / name for name in names):
        if source is not None and source.exists() and path.exists() and path.samefile(source):
            raise TableError(f"{source} would be overwritten by {path.name}; use another --out")


def parse_budget(text: str, n_rows: int | None = None) -> float | int:
    """25 as a count, 0.1 or 10% as a share of the rows; `n_rows`, where it is known, is the largest count."""
    whole = text.lstrip("+-").isdigit()
    try:
        number: float | int = int(text) if whole else float(text.removesuffix("%"))
        number = number / 100 if text.endswith("%") else number
    except ValueError:
        number = -1.0
    if not whole and not 0 <= number <= 1:
        raise TableError(f"--budget {text!r} must be a share from 0 to 1 (0.1), a percentage (10%) or a count (25)")
    if whole and (number < 0 or (n_rows is not None and number > n_rows)):
        most = "" if n_rows is None else f" and at most {n_rows:,}, the number of rows"
        raise TableError(f"--budget {text} must be at least 0{most}")
    return number
