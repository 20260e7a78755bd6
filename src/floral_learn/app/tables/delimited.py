"""Delimited text: pyarrow splits it, and where it cannot, what is wrong is said with its line."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow

from floral_learn.base.cells import FORMULA, MISSING, TableError, as_numbers, reason

from .source import Source

SEPARATORS = (",", ";", "\t", "|")
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_MISSING = pa.array(sorted(MISSING))


def read_delimited(name: str, raw: bytes, sep: str | None, encoding: str | None, usual: str = ",") -> Source:
    """The columns of a text, all cells as they are written; without `sep` the `usual` one, or what fits the header."""
    # plain UTF-8 too: pyarrow prints a traceback at a short row that is not
    text, known = decode(raw, encoding, name)
    plain = encoding is None and known == "utf-8"
    data = raw if plain else text.removeprefix("\ufeff").encode("utf-8", "surrogatepass")
    del text
    guessed = sep is None
    sep = _guess(data, usual) if sep is None else sep
    if len(sep.encode()) != 1 or sep in '"\r\n':
        raise TableError(f"--sep {sep!r} must be one character, other than a quote or a line end")
    header = [cell.strip() for cell in next(_records(data, sep, name), (0, []))[1]]
    if not header:
        raise TableError(f"{name} is empty")
    table = _split(name, data, sep, header)

    def write(place: int, values: list[Any]) -> bytes:
        stream = io.StringIO()
        line_end = "\r\n" if b"\r\n" in data else "\n"
        writer = csv.writer(stream, delimiter=sep, lineterminator=line_end)
        writer.writerow(header)
        columns = [values if p == place else table[p].to_pylist() for p in range(len(header))]
        writer.writerows(zip(*columns))
        try:
            return stream.getvalue().encode(known)
        except UnicodeError as error:
            raise TableError(f"the new labels cannot be written as {known}: {error}") from None

    source = Source(name, table, write)
    source.typed_text = lambda column, cells: _typed(cells, sep != ",", f"decimal commas in {column}", source.notes)
    if guessed and sep != usual:
        source.notes.append(f"the separator is {sep!r}")
    return source


def decode(raw: bytes, encoding: str | None, name: str) -> tuple[str, str]:
    """The text and its encoding; without `encoding`, a byte order mark decides, else UTF-8."""
    marked = [known for mark, known in _MARKS if raw.startswith(mark)]
    chosen = encoding or [*marked, "utf-8"][0]
    try:
        return raw.decode(chosen), chosen
    except UnicodeDecodeError as error:
        raise TableError(
            f"{name} is not {chosen} text (byte {error.start:,}); give its encoding, such as --encoding cp1252"
        ) from None
    except (LookupError, ValueError) as error:
        raise TableError(f"--encoding {encoding!r} cannot be used: {error}") from None


def _split(name: str, data: bytes, sep: str, header: list[str]) -> pa.Table:
    """The rows below the header as columns of text."""
    names = list(map(str, range(len(header))))
    problems: list[str] = []

    def refuse(row: arrow.InvalidRow) -> str:
        if len(header) == 1 or row.text.strip():
            problems.append(row.text)
        return "skip"

    if b'"' in data and data.count(b'"') % 2:
        _explain(name, data, sep, header)
    try:
        table = arrow.read_csv(
            pa.BufferReader(data),
            # one block: a row has to fit into it, and columns in one piece are faster to read
            arrow.ReadOptions(column_names=names, use_threads=False, block_size=min(len(data), 2**31 - 2) + 1),
            arrow.ParseOptions(delimiter=sep, newlines_in_values=b'"' in data, invalid_row_handler=refuse),
            arrow.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
        )
    except pa.ArrowInvalid as error:
        _explain(name, data, sep, header)
        raise TableError(f"{name} cannot be read as a table ({reason(error)})") from None
    if problems:
        _explain(name, data, sep, header)
    if table.num_rows < 2:
        raise TableError(f"{name} has a header and no data rows")
    return table.slice(1).rename_columns(header)


def _explain(name: str, data: bytes, sep: str, header: list[str]) -> None:
    """Refuse a quote that is never closed, and the first row of another width than the header, with its line."""
    row = -1  # of the header
    for line, fields in _records(data, sep, name):
        if len(header) > 1 and len(fields) == 1 and not fields[0].strip():
            continue
        if row >= 0 and len(fields) != len(header):
            hint = "; give the separator with --sep" if len(header) == 1 or len(fields) == 1 else ""
            wide = f"{len(fields)} fields where the header has {len(header)}"
            raise TableError(f"{name}, line {line} (row {row}): {wide}{hint}")
        row += 1


def _records(data: bytes, sep: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """The line (from 1) and the fields of every record that is not an empty line."""
    end = "\x00"  # a line that no file holds: where it is swallowed, a quote was open
    lines = io.TextIOWrapper(io.BytesIO(data), "utf-8", "replace", newline="")
    reader, line = csv.reader(chain(lines, [end]), delimiter=sep), 1
    try:
        for fields in reader:
            if fields == [end]:
                return
            if fields and fields[-1].endswith(end):
                raise TableError(f"{name}, line {line}: a quote is opened and never closed")
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise TableError(f"{name}, line {line}: {error}") from None


def _guess(data: bytes, usual: str) -> str:
    """`usual` where the header has it; else the common separator that cuts header and first rows alike."""
    for sep in (usual, *SEPARATORS):
        try:
            widths = [len(fields) for _, fields in islice(_records(data, sep, ""), 50)]
        except TableError:
            continue
        if widths and widths[0] > 1 and (sep == usual or len(set(widths)) == 1):
            return sep
    return usual


def _typed(cells: Any, comma: bool, note: str, notes: list[str]) -> Any:
    """Numbers where every cell is one or missing, else a pandas Series of texts."""
    first = [cell.strip() for cell in cells.slice(0, 50).to_pylist()]
    few = [text for text in first if text not in MISSING]
    hopeless = bool(few) and as_numbers(few[:1], comma=comma) is None
    if not hopeless and (numbers := _floats(cells)) is not None:
        return numbers
    texts = pc.utf8_trim_whitespace(cells)
    if pc.any(missing := pc.is_in(texts, _MISSING)).as_py():
        texts = pc.if_else(missing, None, texts)
    if not hopeless and texts.null_count < len(texts):
        if (numbers := _floats(texts)) is not None:
            return numbers
        written = ["" if text is None else text for text in texts.to_pylist()]
        if found := as_numbers(written, comma=comma):
            notes += [note] * found[1]
            return found[0]
    if pc.any(pc.starts_with(texts, "'")).as_py():
        texts = pc.replace_substring_regex(texts, f"^'({FORMULA})", r"\1")
    return texts.to_pandas()


def _floats(cells: Any) -> np.ndarray | None:
    """Cells as floats, NaN where null; None where one is no number, or a code such as 007."""
    try:
        values = cells.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    for begin in ("0", "-0", "+0"):  # what begins with zero is below one, or a code
        begun = pc.fill_null(pc.starts_with(cells, begin), False).to_numpy()
        if (np.abs(values[begun]) >= 1).any():
            return None
    return values
