"""Open a table, whatever it is: a frame, or a file of a kind that its name says."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from pathlib import Path
from typing import Any

from .delimited import TextSource, decode, parse
from .frame_source import FrameSource, read_parquet
from .hugging_face import DatasetSource, is_dataset, is_dataset_folder, read_dataset_folder
from .json_lines import read_json_lines
from .label_studio import read_label_studio
from .source import Source
from .table_error import TableError
from .workbook import read_workbook

TEXT_FILES, JSON_FILES, STUDIO_FILES = (".csv", ".tsv", ".txt"), (".jsonl", ".ndjson"), (".json",)
PARQUET_FILES, EXCEL_FILES = (".parquet", ".pq"), (".xlsx",)
KINDS = ".csv, .tsv, .txt, .jsonl or .json of Label Studio (each also as .gz), .parquet or .xlsx"
MOST_BYTES = 2**30  # that a .gz may unpack to
_FOREIGN = {b"PK\x03\x04": "an Excel", b"PAR1": "a Parquet", b"\x1f\x8b": "a compressed"}


def table_suffix(path: str | os.PathLike[str]) -> str:
    """What says the kind of a file: its extension, with the one before .gz; empty where there is none."""
    if is_dataset_folder(path):
        return ".parquet"
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def open_source(source: Any, sep: str | None, encoding: str | None, label: Any = None) -> Source:
    """A frame of pandas, polars or pyarrow, or the path of a file of one of the `KINDS`."""
    if not isinstance(source, str | os.PathLike):
        return DatasetSource(source) if is_dataset(source) else FrameSource(source)
    if is_dataset_folder(source):
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


def _opened(name: str, kind: str, raw: bytes, sep: str | None, encoding: str | None, label: Any) -> Source:
    if kind in PARQUET_FILES:
        return read_parquet(name, raw)
    if kind in EXCEL_FILES:
        return read_workbook(name, raw)
    if foreign := next((what for mark, what in _FOREIGN.items() if raw.startswith(mark)), None):
        raise TableError(f"{name} is not text: it looks like {foreign} file under another name; use {KINDS}")
    text, known = decode(raw, encoding, name)
    if kind in STUDIO_FILES:
        return read_label_studio(name, text, label)
    if kind in JSON_FILES:
        return read_json_lines(name, text, known)
    return TextSource(name, parse(text, sep, known, name, "\t" if kind == ".tsv" else ","))
