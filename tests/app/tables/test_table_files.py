"""One reader for .csv, .tsv, .jsonl (also as .gz), .parquet, .xlsx and frames: one table, and errors of one line."""

import gzip
import io
import json
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refuses

from floral_learn.app.tables import read_table, row_files, source
from floral_learn.base import TableEncoder, TableError

openpyxl = pytest.importorskip("openpyxl")
N = 40
FRAME = pd.DataFrame(
    {
        "size": [None if i % 9 == 0 else i / 4 for i in range(N)],
        "site": [["north", "south", None][i % 3] for i in range(N)],
        "when": pd.date_range("2024-01-01", periods=N, freq="5D"),
        "y": [["no", "yes"][i % 2] for i in range(N)],
    }
)


def json_lines(frame=FRAME):
    rows = json.loads(frame.astype({"when": str}).to_json(orient="records"))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def workbook_bytes(frame=FRAME):
    stream = io.BytesIO()
    frame.to_excel(stream, index=False)
    return stream.getvalue()


CONTENT = {
    "t.csv": lambda: FRAME.to_csv(index=False).encode(),
    "t.tsv": lambda: FRAME.to_csv(index=False, sep="\t").encode(),
    "t.csv.gz": lambda: gzip.compress(FRAME.to_csv(index=False).encode()),
    "t.jsonl": json_lines,
    "t.jsonl.gz": lambda: gzip.compress(json_lines()),
    "t.xlsx": workbook_bytes,
    "t.parquet": lambda: FRAME.to_parquet(index=False),
}


def put(folder, name, content):
    (folder / name).write_bytes(content)
    return folder / name


@pytest.mark.parametrize("name", CONTENT)
def test_every_kind_of_file_is_the_same_table(tmp_path, name):
    table = read_table(put(tmp_path, name, CONTENT[name]()), label="y")
    assert table.labels.tolist() == FRAME["y"].tolist()
    assert list(table.features) == ["size", "site", "when"]
    encoder = TableEncoder().fit(table.features)
    assert encoder.columns_ == {"size": "number", "site": "category", "when": "date"}
    known = TableEncoder().fit_transform(FRAME[["size", "site", "when"]])
    np.testing.assert_allclose(encoder.transform(table.features), known)


@pytest.mark.parametrize("name", CONTENT)
def test_a_relabelled_copy_is_of_the_same_kind_and_differs_in_labels_alone(tmp_path, name):
    table = read_table(put(tmp_path, name, CONTENT[name]()), label="y")
    copy = put(tmp_path, f"copy{source.table_suffix(name)}", table.relabelled([0, 3], ["yes", "no"]))
    again = read_table(copy, label="y")
    expected = FRAME["y"].tolist()
    expected[0], expected[3] = "yes", "no"
    assert again.labels.tolist() == expected
    pd.testing.assert_frame_equal(again.features, table.features)
    assert source.table_suffix(copy) == source.table_suffix(name)


def test_polars_in_polars_out():
    table = read_table(pl.from_pandas(FRAME), label="y")
    assert isinstance(table.features, pl.DataFrame)
    copy = table.relabelled([1], ["no"])
    assert isinstance(copy, pl.DataFrame)
    assert copy["y"].to_list() == ["no", "no", *FRAME["y"].tolist()[2:]]
    assert copy.drop("y").equals(pl.from_pandas(FRAME).drop("y"))


def test_a_label_is_replaced_inside_its_object_and_other_lines_stay(tmp_path):
    text = (
        '\ufeff{"a": 1.50,  "y":"no" , "deep": {"y": "no"}}\r\n\r\n'
        '{ "y" : "yes", "a":1e3, "s": "a\u2028b"}\n{"a": null, "y": "y\\u0065s"}\n{"y": null}\n{"a": 2}'
    )
    raw = text.encode()
    table = read_table(put(tmp_path, "t.jsonl", raw), label="y", skip_blank_labels=True)
    assert table.labels.tolist() == ["no", "yes", "yes"]
    assert table.rows.tolist() == [0, 1, 2]
    assert "ignored: deep (nested values)" in table.notes
    made = table.relabelled([0, 2], ["yes", "no"]).decode().removesuffix("\n").split("\n")
    lines = [line for line in text.removeprefix("\ufeff").replace("\r", "").split("\n") if line]
    assert made[1::2] + made[4:] == lines[1::2] + lines[4:]
    assert [json.loads(line) for line in made] == [
        json.loads(line) | ({"y": label} if label else {})
        for line, label in zip(lines, ["yes", None, "no", None, None], strict=True)
    ]


def test_the_header_of_a_sheet_may_come_late_and_blank_rows_are_skipped(tmp_path):
    book = openpyxl.Workbook()
    book.active.append([])
    book.active.append(["x", "y"])
    for i in range(6):
        book.active.append([i, i % 2 == 0])
        book.active.append([])
    book.create_sheet("other").append(["unread"])
    stream = io.BytesIO()
    book.save(stream)
    table = read_table(put(tmp_path, "t.xlsx", stream.getvalue()), label="y")
    assert table.labels.tolist() == [True, False] * 3
    assert table.notes == ["sheet 'Sheet', the first of 2"]
    changed = openpyxl.load_workbook(io.BytesIO(table.relabelled([1], [True])))
    assert changed.active.cell(5, 2).value is True
    assert changed.sheetnames == ["Sheet", "other"]


def test_text_stays_text_in_a_workbook(tmp_path):
    labels = ["=1+1" if i % 2 else "=2+2" for i in range(N)]
    book = openpyxl.Workbook()
    for row, cells in enumerate([("x", "y"), *enumerate(labels)], 1):
        for column, value in enumerate(cells, 1):
            book.active.cell(row, column, value)
            if row > 1 and column == 2:
                book.active.cell(row, column).data_type = "s"
    book.save(tmp_path / "t.xlsx")
    table = read_table(tmp_path / "t.xlsx", label="y")
    (tmp_path / "copy.xlsx").write_bytes(table.relabelled([0, 1], ["=1+1", "=HYPERLINK(1)"]))
    again = read_table(tmp_path / "copy.xlsx", label="y").labels.tolist()
    assert again == ["=1+1", "=HYPERLINK(1)", *labels[2:]]


def zipped(**parts):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return stream.getvalue()


BAD = [
    ("t.csv.gz", b"\x1f\x8b not really", "not a readable .gz"),
    ("t.csv.gz", gzip.compress(b"x,y\n1,2\n" * 99)[:-20], "not a readable .gz"),
    ("t.csv", gzip.compress(b"x,y\n1,2\n"), "looks like a compressed file under another name"),
    ("t.parquet.gz", gzip.compress(b"PAR1"), "cannot read .parquet.gz"),
    ("t.docx", b"[]", "cannot read .docx; use .csv, .tsv"),
    ("t.jsonl", b'{"x": 1}\n{"x": 1,}\n', "line 2: not a JSON object"),
    ("t.jsonl", b'{"x": 1, "x": 2}\n', "line 1: .*'x' stands twice"),
    ("t.jsonl", b"[1, 2]\n", "line 1: an object .* is needed, not list"),
    ("t.jsonl", b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", "line 1: not a JSON object"),
    ("t.jsonl", b'{"x": ' + b"9" * 5_000 + b"}\n", "line 1: not a JSON object"),
    ("t.jsonl", b"\xff\xfe{}", "not utf|line 1"),
    ("t.jsonl", b"\n\n", "no data rows"),
    ("t.jsonl", b"".join(b'{"k%d": 1}\n' % i for i in range(11_000)), "11,000 different names"),
    ("t.xlsx", b"PK\x03\x04 no zip", "not a readable .xlsx"),
    ("t.xlsx", zipped(**{"a.xml": "x"}), "not a readable .xlsx"),
    ("t.xlsx", b"x,y\n1,2\n", "not a readable .xlsx"),
    ("t.parquet", b"PAR1junkPAR1", "not a readable Parquet"),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(BAD)])
def test_a_bad_file_is_one_line_with_its_name_and_place(tmp_path, name, content, message):
    said = refuses(message, read_table, put(tmp_path, name, content), label="y", error=TableError)
    assert name in said
    assert "\n" not in said


def test_bombs_are_refused_before_they_unpack(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "MOST_BYTES", 2**20)
    monkeypatch.setattr(row_files, "MOST_BYTES", 2**20)
    with pytest.raises(TableError, match="unpacks to more than 1 MiB"):
        read_table(put(tmp_path, "t.csv.gz", gzip.compress(b"0" * 2**21)), label="y")
    with pytest.raises(TableError, match="unpacks to 2 MiB; at most 1"):
        read_table(put(tmp_path, "t.xlsx", zipped(**{"xl/worksheets/sheet1.xml": b" " * 2**21})), label="y")
    equal = pa.table({"x": pa.repeat(1, 2**24), **{f"x{i}": pa.repeat(1, 2**24) for i in range(9)}})
    pq.write_table(equal, tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size < 2**20
    refuses("more than 134,217,728 cells", read_table, tmp_path / "t.parquet", label="y", error=TableError)


def test_a_far_away_cell_does_not_fill_the_memory(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["x", "y"])
    book.active.append([1, "a"])
    book.active.cell(3, 16_384).value = 1
    book.active.cell(1_000_000, 1).value = 1
    stream = io.BytesIO()
    book.save(stream)
    with pytest.raises(TableError, match="row 3: 16384 cells where the header has 2"):
        read_table(put(tmp_path, "t.xlsx", stream.getvalue()), label="y")


@pytest.mark.parametrize("made", [lambda y: y, lambda y: y * 2**60 + 1, lambda y: y == 1])
@pytest.mark.parametrize("kind", ["parquet", "polars", "jsonl"])
def test_a_copy_of_the_label_is_never_a_feature(tmp_path, made, kind):
    y = [made(i % 2) for i in range(N)]
    frame = pl.DataFrame({"copy": y, "x": np.arange(N) / 3, "y": y})
    source = frame
    if kind == "parquet":
        frame.write_parquet(source := tmp_path / "t.parquet")
    elif kind == "jsonl":
        frame.write_ndjson(source := tmp_path / "t.jsonl")
    table = read_table(source, label="y")
    assert list(table.features.columns) == ["x"]
    assert "ignored: copy (the same as the label in every row)" in table.notes
