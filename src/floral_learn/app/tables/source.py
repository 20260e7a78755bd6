"""Open a table, whatever it is: what every kind has in common are columns, cells, and a copy with new labels."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from floral_learn.base.cells import TableError, objects, reason, short
from floral_learn.base.files import MOST_BYTES
from floral_learn.base.frames import column_at, frame_columns, place_of, typed_column

from .labels import as_labels

KINDS = ".csv, .tsv, .txt, .jsonl or .json of Label Studio (each also as .gz), .parquet or .xlsx"
_FOREIGN = {b"PK\x03\x04": "an Excel", b"PAR1": "a Parquet", b"\x1f\x8b": "a compressed"}


@dataclass
class Source:
    """A table before anyone decided what its columns are.

    Attributes
    ----------
    name : str
        The file, for messages.
    frame : frame
        Its columns, found by their places: names may repeat.
    write : callable
        ``write(place, values)`` is the table with other values in one column: bytes of a file, or a frame.
    notes : list of str
        What was found, one line each, for people.
    typed_text : callable, optional
        Of a text file, whose cells are all text: how a column of these becomes numbers or texts.
    like : frame or None
        In whose library features are made; pandas where it is None.
    choice : str, optional
        The label's column, where the kind of the file says it.
    no_features : set of int
        Places of columns that say nothing about a row itself.
    export : object, optional
        What a bridge needs to write the same kind again.
    packed : bool
        Whether the file is a .gz, and a copy has to be one.
    """

    name: str
    frame: Any
    write: Callable[[int, list[Any]], Any]
    notes: list[str] = field(default_factory=list)
    typed_text: Callable[[str, Any], Any] | None = None
    like: Any = None
    choice: str | None = None
    no_features: frozenset[int] = frozenset()
    export: Any = None
    packed: bool = False

    def __post_init__(self) -> None:
        self.columns, self.n_rows = frame_columns(self.frame), self.frame.shape[0]
        if not self.n_rows or not self.columns:
            raise TableError(f"{self.name} has no data rows")

    def cells(self, position: int, rows: Any = None) -> list[Any]:
        """The cells of a column, or of some rows of it: text, Python values, None where missing."""
        if self.typed_text is not None:  # a table of pyarrow, whose columns take longer to wrap than to read
            column = self.frame.column(position)
            return (column if rows is None else column.take(rows)).to_pylist()
        return self._read(position, lambda column: (column if rows is None else column[rows]).to_list())

    def typed(self, position: int, as_text: bool = False) -> Any:
        """The column as floats, dates or text (missing where it is); None where its values are nested.

        As text, pictures inside the table are their names.
        """
        if self.typed_text is not None and not as_text:
            return self.typed_text(self.columns[position], self.frame.column(position))
        typed = self._read(position, lambda column: typed_column(column, as_text))
        if typed is None and as_text and (names := picture_names(self.cells(position))) is not None:
            return objects(names)
        return typed

    def _read(self, position: int, read: Callable[[Any], Any]) -> Any:
        """What `read` makes of a column; values that Python cannot hold are one line."""
        try:
            return read(column_at(self.frame, position))
        except MemoryError:
            raise
        except Exception as error:  # each library has exceptions of its own
            where = f"{self.name}: column {short(self.columns[position])}"
            raise TableError(f"{where} cannot be read ({reason(error)})") from None

    def position(self, column: Any) -> int:
        """The place of `column`; a missing or repeated one is an error that names the columns."""
        return place_of(self.columns, column, self.name)

    def relabelled(self, position: int, rows: np.ndarray, new: np.ndarray) -> Any:
        """The table with new labels in `rows`, each spelled as most rows of that class spell it; other values stay."""
        values = self.cells(position)
        labels, blank = as_labels(values, self.name)
        counts: dict[Any, Counter[Any]] = {}
        for value, label, missing in zip(values, labels.tolist(), blank, strict=True):
            if not missing:
                counts.setdefault(label, Counter())[value] += 1
        known = {label: spelled.most_common(1)[0][0] for label, spelled in counts.items()}
        for row, label in zip(rows.tolist(), new.tolist(), strict=True):
            values[row] = known.get(label, label)
        made = self.write(position, values)
        return gzip.compress(made, mtime=0) if self.packed else made


def picture_names(cells: list[Any]) -> list[str] | None:
    """Names of pictures that lie inside a table, {"bytes": ..., "path": ...} as Hugging Face writes them; else None."""
    given = [cell for cell in cells if cell is not None]
    if not given or not all(isinstance(cell, dict) and {"bytes", "path"} <= cell.keys() for cell in given):
        return None
    paths = [str((cell or {}).get("path") or "") for cell in cells]
    # the row makes them unique, and what a path says about folders is nobody's place to write to
    return [f"{row}-{PurePath(path).name}" if path else str(row) for row, path in enumerate(paths)]


def table_suffix(path: str | os.PathLike[str]) -> str:
    """What says the kind of a file: its extension, with the one before .gz; empty where there is none."""
    if is_dataset_folder(path):
        return ".parquet"
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def is_dataset_folder(path: str | os.PathLike[str]) -> bool:
    """Whether `save_to_disk` of a Hugging Face data set wrote this folder."""
    folder = Path(path)
    return folder.is_dir() and any((folder / name).is_file() for name in ("state.json", "dataset_dict.json"))


def open_source(source: Any, sep: str | None, encoding: str | None, label: Any = None) -> Source:
    """A frame of pandas, polars or pyarrow, a Hugging Face data set, or the path of a file of one of the `KINDS`."""
    from . import frames  # this and others make a Source; they are imported where they are needed

    if not isinstance(source, str | os.PathLike):
        a_dataset = type(source).__module__.split(".")[0] == "datasets"  # nothing is imported to find out
        return frames.dataset_source(source) if a_dataset else frames.from_frame(source)
    if is_dataset_folder(source):
        return frames.read_dataset_folder(source)
    from . import delimited, json_lines, label_studio, workbook

    path, name = Path(source), str(source)
    suffix = table_suffix(path)
    kind = suffix.removesuffix(".gz")
    binary = {".parquet": frames.read_parquet, ".pq": frames.read_parquet, ".xlsx": workbook.read_workbook}
    if suffix in binary:
        return binary[suffix](name, read_content(path))
    if kind not in (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json"):
        raise TableError(f"{path}: cannot read {suffix or 'a file without extension'}; use {KINDS}")
    raw = read_content(path)
    if foreign := next((what for mark, what in _FOREIGN.items() if raw.startswith(mark)), None):
        raise TableError(f"{name} is not text: it looks like {foreign} file under another name; use {KINDS}")
    if kind in (".csv", ".tsv", ".txt"):
        opened = delimited.read_delimited(name, raw, sep, encoding, "\t" if kind == ".tsv" else ",")
    elif kind == ".json":
        opened = label_studio.read_label_studio(name, delimited.decode(raw, encoding, name)[0], label)
    else:
        opened = json_lines.read_json_lines(name, delimited.decode(raw, encoding, name)[0])
    opened.packed = kind != suffix
    return opened


def read_content(path: Path) -> bytes:
    """The bytes of a file, unpacked where it is a .gz, up to `MOST_BYTES`: a bomb is refused before it fills memory."""
    try:
        raw = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL inside the path
        raise TableError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if path.suffix.lower() != ".gz":
        return raw
    try:
        content = gzip.GzipFile(fileobj=io.BytesIO(raw)).read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(f"{path} is not a readable .gz file ({error})") from None
    if len(content) > MOST_BYTES:
        raise TableError(f"{path} unpacks to more than {MOST_BYTES // 2**20:,} MiB; unpack it yourself if it is yours")
    return content
