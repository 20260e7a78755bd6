"""Open a table, whatever it is: what every kind has in common are columns, cells, and a copy with new labels."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.base.cells import TableError, reason, short
from floral_learn.base.files import MOST_BYTES
from floral_learn.base.frames import column_at, frame_columns, place_of, typed_column

from .labels import as_labels

TEXT_FILES, JSON_FILES, STUDIO_FILES = (".csv", ".tsv", ".txt"), (".jsonl", ".ndjson"), (".json",)
PARQUET_FILES, EXCEL_FILES = (".parquet", ".pq"), (".xlsx",)
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
        """The column as floats, dates or text (missing where it is); None where its values are nested."""
        if self.typed_text is not None and not as_text:
            return self.typed_text(self.columns[position], self.frame.column(position))
        return self._read(position, lambda column: typed_column(column, as_text))

    def _read(self, position: int, read: Callable[[Any], Any]) -> Any:
        """What `read` makes of a column; values that Python cannot hold are one line."""
        try:
            return read(column_at(self.frame, position))
        except Exception as error:  # each library has exceptions of its own
            if isinstance(error, MemoryError):
                raise
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


def table_suffix(path: str | os.PathLike[str]) -> str:
    """What says the kind of a file: its extension, with the one before .gz; empty where there is none."""
    if _is_dataset_folder(path):
        return ".parquet"
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def open_source(source: Any, sep: str | None, encoding: str | None, label: Any = None) -> Source:
    """A frame of pandas, polars or pyarrow, a Hugging Face data set, or the path of a file of one of the `KINDS`."""
    from . import frame_source, hugging_face

    if not isinstance(source, str | os.PathLike):
        a_dataset = type(source).__module__.split(".")[0] == "datasets"  # nothing is imported to find out
        return hugging_face.dataset_source(source) if a_dataset else frame_source.from_frame(source)
    if _is_dataset_folder(source):
        return hugging_face.read_dataset_folder(source)
    path, name = Path(source), str(source)
    suffix = table_suffix(path)
    packed = suffix.endswith(".gz")
    kind = suffix.removesuffix(".gz")
    if kind not in (*TEXT_FILES, *JSON_FILES, *STUDIO_FILES, *(() if packed else (*PARQUET_FILES, *EXCEL_FILES))):
        raise TableError(f"{path}: cannot read {suffix or 'a file without extension'}; use {KINDS}")
    opened = _opened(name, kind, read_content(path), sep, encoding, label)
    opened.packed = packed
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


def _is_dataset_folder(path: str | os.PathLike[str]) -> bool:
    """Whether `save_to_disk` of a Hugging Face data set wrote this folder."""
    folder = Path(path)
    return folder.is_dir() and any((folder / name).is_file() for name in ("state.json", "dataset_dict.json"))


def _opened(name: str, kind: str, raw: bytes, sep: str | None, encoding: str | None, label: Any) -> Source:
    from . import delimited, frame_source, json_lines, label_studio, workbook  # each of them makes a Source

    if kind in PARQUET_FILES:
        return frame_source.read_parquet(name, raw)
    if kind in EXCEL_FILES:
        return workbook.read_workbook(name, raw)
    if foreign := next((what for mark, what in _FOREIGN.items() if raw.startswith(mark)), None):
        raise TableError(f"{name} is not text: it looks like {foreign} file under another name; use {KINDS}")
    if kind in TEXT_FILES:
        return delimited.read_delimited(name, raw, sep, encoding, "\t" if kind == ".tsv" else ",")
    text = delimited.decode(raw, encoding, name)[0]
    if kind in STUDIO_FILES:
        return label_studio.read_label_studio(name, text, label)
    return json_lines.read_json_lines(name, text)
