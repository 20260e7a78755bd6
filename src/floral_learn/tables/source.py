"""Open a table, whatever it is, and what every kind has in common: columns, cells, a copy with new labels."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from . import TableError
from .cells import as_labels

TEXT_FILES, JSON_FILES, STUDIO_FILES = (".csv", ".tsv", ".txt"), (".jsonl", ".ndjson"), (".json",)
PARQUET_FILES, EXCEL_FILES = (".parquet", ".pq"), (".xlsx",)
KINDS = ".csv, .tsv, .txt, .jsonl or .json of Label Studio (each also as .gz), .parquet or .xlsx"
MOST_BYTES = 2**30  # that a .gz may unpack to
_FOREIGN = {b"PK\x03\x04": "an Excel", b"PAR1": "a Parquet", b"\x1f\x8b": "a compressed"}


class Source(ABC):
    """A table before anyone decided what its columns are."""

    name: str
    columns: list[str]
    n_rows: int
    notes: list[str]
    like: Any = None  # a frame in whose library `Table.features` is made; pandas where it is None
    choice: str | None = None  # the label's column, where the kind of the file says it
    no_features: frozenset[int] | set[int] = frozenset()  # places of columns that say nothing about a row itself
    packed: bool = False  # whether the file is a .gz, and a relabelled copy has to be one

    @abstractmethod
    def cells(self, position: int) -> list[Any]:
        """The cells of a column: text, Python values, None where missing."""

    @abstractmethod
    def typed(self, position: int, as_text: bool = False) -> np.ndarray | None:
        """The column as floats, dates or text (None where missing); None where its values are nested."""

    @abstractmethod
    def relabelled(self, position: int, rows: np.ndarray, new: np.ndarray) -> Any:
        """The table with the labels of `rows` replaced by `new`, all else as it was: bytes of a file, or a frame."""

    def position(self, column: Any) -> int:
        """The place of `column`; a missing or repeated one is an error that names the columns."""
        places = [place for place, name in enumerate(self.columns) if name == str(column)]
        if len(places) == 1:
            return places[0]
        names = ", ".join(map(repr, self.columns[:12])) + (", ..." if len(self.columns) > 12 else "")
        problem = f"has {len(places)} columns named" if places else "has no column"
        hint = "; if that is one column only, give the separator with --sep" if len(self.columns) == 1 else ""
        alike = [name for name in self.columns if name.strip().casefold() == str(column).strip().casefold()]
        if near := alike or get_close_matches(str(column), self.columns, 1, 0.7):
            hint = f"; did you mean {near[0]!r}?" if not places else ""
        raise TableError(f"{self.name} {problem} {str(column)!r}; its columns are: {names}{hint}")

    def spelled(self, position: int, spellings: Iterable[Any]) -> dict[Any, Any]:
        """Label -> how most rows of that class spell it; `spellings` has one entry per row."""
        labels, blank = as_labels(self.cells(position), self.name)
        counts: dict[Any, Counter[Any]] = {}
        for spelling, label, missing in zip(spellings, labels.tolist(), blank, strict=True):
            if not missing:
                counts.setdefault(label, Counter())[spelling] += 1
        return {label: found.most_common(1)[0][0] for label, found in counts.items()}


def pairs(rows: np.ndarray, new: np.ndarray) -> list[tuple[int, Any]]:
    """Rows with their new labels as Python values."""
    return list(zip(np.asarray(rows).tolist(), np.asarray(new).tolist(), strict=True))


def reason(error: BaseException) -> str:
    """What an error of another library says, in its first line; its name where it says nothing."""
    return (str(error).splitlines() or [""])[0] or type(error).__name__


def table_suffix(path: str | os.PathLike[str]) -> str:
    """What says the kind of a file: its extension, with the one before .gz; empty where there is none."""
    if _is_dataset_folder(path):
        return ".parquet"
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def open_source(source: Any, sep: str | None, encoding: str | None, label: Any = None) -> Source:
    """A frame of pandas, polars or pyarrow, a Hugging Face data set, or the path of a file of one of the `KINDS`."""
    if not isinstance(source, str | os.PathLike):
        from . import frames, hugging_face

        a_dataset = type(source).__module__.split(".")[0] == "datasets"  # nothing is imported to find out
        return hugging_face.DatasetSource(source) if a_dataset else frames.FrameSource(source)
    if _is_dataset_folder(source):
        from .hugging_face import read_dataset_folder

        return read_dataset_folder(source)
    path, name = Path(source), str(source)
    suffix = table_suffix(path)
    packed = suffix.endswith(".gz")
    kind = suffix.removesuffix(".gz")
    if kind not in (*TEXT_FILES, *JSON_FILES, *STUDIO_FILES, *(() if packed else (*PARQUET_FILES, *EXCEL_FILES))):
        raise TableError(f"{path}: cannot read {suffix or 'a file without extension'}; use {KINDS}")
    opened = _opened(name, kind, _content(path), sep, encoding, label)
    opened.packed = packed
    return opened


def read_text(path: Path, encoding: str | None = None) -> str:
    """The text of a file, unpacked where it is a .gz."""
    from .delimited import decode

    return decode(_content(path), encoding, str(path))[0]


def _content(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL inside the path
        raise TableError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    return unpacked(raw, str(path)) if path.suffix.lower() == ".gz" else raw


def unpacked(raw: bytes, name: str) -> bytes:
    """The content of a .gz file, up to `MOST_BYTES`: a bomb is refused before it fills the memory."""
    try:
        content = gzip.GzipFile(fileobj=io.BytesIO(raw)).read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(f"{name} is not a readable .gz file ({error})") from None
    if len(content) > MOST_BYTES:
        raise TableError(f"{name} unpacks to more than {MOST_BYTES // 2**20:,} MiB; unpack it yourself if it is yours")
    return content


def _is_dataset_folder(path: str | os.PathLike[str]) -> bool:
    """Whether `save_to_disk` of a Hugging Face data set wrote this folder."""
    folder = Path(path)
    return folder.is_dir() and any((folder / name).is_file() for name in ("state.json", "dataset_dict.json"))


def _opened(name: str, kind: str, raw: bytes, sep: str | None, encoding: str | None, label: Any) -> Source:
    from . import delimited, frames, json_lines, label_studio, workbook  # each of them is a Source

    if kind in PARQUET_FILES:
        return frames.read_parquet(name, raw)
    if kind in EXCEL_FILES:
        return workbook.read_workbook(name, raw)
    if foreign := next((what for mark, what in _FOREIGN.items() if raw.startswith(mark)), None):
        raise TableError(f"{name} is not text: it looks like {foreign} file under another name; use {KINDS}")
    text, known = delimited.decode(raw, encoding, name)
    if kind in STUDIO_FILES:
        return label_studio.read_label_studio(name, text, label)
    if kind in JSON_FILES:
        return json_lines.read_json_lines(name, text, known)
    return delimited.read_delimited(name, text, known, sep, "\t" if kind == ".tsv" else ",")
