"""`read_table`: every spelling of a table is read, or refused in one line that names what mends it."""

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

from floral_learn.app.tables import read_table
from floral_learn.base import TableError
from floral_learn.base.cells import csv_bytes, guarded, unguarded

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402


def put(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_columns_with_a_meaning_leave_the_features(tmp_path):
    lines = ["id,a,who,w,sure,left,y"] + [
        f"r{i},{i % 7},ann{i % 2},{1 + i % 2},{'yes' if i < 3 else ''},q,{i % 2}" for i in range(30)
    ]
    table = read_table(
        put(tmp_path, "\n".join(lines)), label="y", ids="id", groups="who", weights="w", trusted="sure", drop=["left"]
    )
    assert list(table.features) == ["a"]
    assert table.labels.tolist() == [i % 2 for i in range(30)]
    assert table.ids[:2].tolist() == ["r0", "r1"]
    assert set(table.groups) == {"ann0", "ann1"}
    assert table.weights[:2].tolist() == [1.0, 2.0]
    assert table.trusted.sum() == 3
    assert table.column("left")[0] == "q"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be-bom"])
def test_semicolons_decimal_commas_and_byte_order_marks_are_found(tmp_path, encoding):
    text = "größe;n;y\n" + "".join(f"{i},5;1.{i:03d},25;{'äb'[i % 2]}\n" for i in range(30))
    raw = ("\ufeff" + text).encode("utf-16-be") if encoding == "utf-16-be-bom" else text.encode(encoding)
    table = read_table(put(tmp_path, raw), label="y")
    np.testing.assert_array_equal(table.features["größe"], np.arange(30) + 0.5)
    np.testing.assert_array_equal(table.features["n"], 1000.25 + np.arange(30))
    assert table.classes.tolist() == ["b", "ä"]
    assert any("';'" in note for note in table.notes)
    changed = table.relabelled([0, 5], ["b", "ä"])
    decoded = changed.decode("utf-16" if encoding == "utf-16-be-bom" else encoding)
    assert decoded.splitlines()[1] == "0,5;1.000,25;b"
    assert decoded.splitlines()[2:6] == text.splitlines()[2:6]


def test_blank_labels_are_refused_or_skipped_and_rows_keep_their_numbers(tmp_path):
    path = put(tmp_path, "a,y\n1,p\n2,\n3,q\n4,NA\n5,p\n")
    refuses(r"1 missing labels \(first: row 1\).*--skip-blank", read_table, path, label="y", error=TableError)
    table = read_table(path, label="y", skip_blank_labels=True)
    assert table.labels.tolist() == ["p", "q", "NA", "p"]  # a class may be called NA
    assert table.rows.tolist() == [0, 2, 3, 4]
    assert table.relabelled([1], ["p"]) == b"a,y\n1,p\n2,\n3,p\n4,NA\n5,p\n"
    numbers = read_table(put(tmp_path, "a,y\n1,0\n2,NA\n3,1\n"), label="y", skip_blank_labels=True)
    assert numbers.labels.tolist() == [0, 1]  # among numbers NA is blank


def test_a_parquet_index_can_be_the_label_and_nested_columns_are_left_out(tmp_path):
    frame = pd.DataFrame(
        {"x": np.arange(12.0), "list": [[1, 2], [3]] * 6, "map": [{"a": 1}] * 12},
        index=pd.Index(list("pq") * 6, name="y"),
    )
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", label="y")
    assert list(table.features) == ["x"]
    assert table.classes.tolist() == ["p", "q"]
    assert sum("nested" in note for note in table.notes) == 2
    assert pq.read_schema(pa.BufferReader(table.relabelled([0], ["q"]))).names == ["x", "list", "map", "y"]
    direct = read_table(frame, label="y")
    assert list(direct.features) == ["x"]
    np.testing.assert_array_equal(direct.labels, table.labels)


@pytest.mark.parametrize("name", ["", "y\0", "=y", "y ", "Unnamed: 0", '"', "x.1"])
def test_the_label_leaves_by_position_whatever_it_is_called(tmp_path, name):
    cell = '"' + name.replace('"', '""') + '"' if name else ""
    rows = "".join(f"{'pq'[i % 2]},{i % 5},{i % 3}\n" for i in range(30))
    table = read_table(put(tmp_path, f"{cell},x,x\n{rows}"), label=name.strip())
    assert table.features.shape == (30, 2)
    assert set(table.features.iloc[:, 0]) == set(range(5))
    assert not table.features.isin(["p", "q"]).any().any()


def test_a_column_equal_to_the_label_is_left_out_and_named(tmp_path):
    rows = "".join(f"{i % 5},{'pq'[i % 2]},{'pq'[i % 2]}\n" for i in range(30))
    table = read_table(put(tmp_path, f"x,copy,y\n{rows}"), label="y")
    assert list(table.features) == ["x"]
    assert "ignored: copy (the same as the label in every row)" in table.notes


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"", {}, "is empty"),
        (b"a,y\n", {}, "no data rows"),
        (b"a,y\n1\n", {}, "line 2 .row 0.: 1 fields where the header has 2"),
        (b"a\n1\n", {}, "has no column 'y'.*--sep"),
        (b"a,y,y\n1,2,3\n", {}, "has 2 columns named 'y'"),
        (b"a,y\n\xff,2\n", {}, r"not utf-8 text.*--encoding cp1252"),
        (b"a,y\n1,2\n", {"encoding": "klingon"}, "--encoding 'klingon'"),
        (b"a,y\n1,2\n", {"sep": "ab"}, "--sep 'ab' must be one character"),
        (b'a,y\n"1,2\n', {}, "line 2: a quote is opened"),
        (b"a,y\n1,1\n2,x\n3,1\n", {}, "mixes numbers and text .row 1 is 'x'."),
        (b"a,y\n1,\n", {}, "every cell is blank"),
        (b"a,y\n1,2\n", {"drop": ["y"]}, "cannot be both label and drop"),
        (b"a,y\n1,2\n", {"text": ["y"]}, "cannot be both label and text"),
        (b"a,y\n-1,2\n", {"weights": "a"}, "weight column must hold numbers"),
        (b"a,y\nperhaps,2\n", {"trusted": "a"}, "must hold true or false"),
        (b"PK\x03\x04", {}, "not text"),
    ],
)
def test_a_bad_table_is_one_line(tmp_path, content, options, message):
    said = refuses(message, read_table, put(tmp_path, content), **{"label": "y", **options}, error=TableError)
    assert "\n" not in said


def test_guarded_cells_are_read_as_what_they_were(tmp_path):
    cells = ["=1+1", "+x", "-5", "-x", "@a", "'=1", "''=1", "plain", "it's", "-1e5", "＝1", "ok;=1+1", 'a"b']
    assert [unguarded(guarded(cell)) for cell in cells] == cells
    raw = csv_bytes(["x", "y"], [(i % 3, cell) for i, cell in enumerate(cells * 3) if cell[-1] not in "5"])
    assert b",=" not in raw
    assert b',"ok;=1+1"' in raw
    assert set(read_table(put(tmp_path, raw), label="y").labels) == {c for c in cells if c[-1] != "5"}
    assert set(read_table(put(tmp_path, raw), drop=["x"]).features["y"]) == {c for c in cells if c[-1] != "5"}


def test_frames_keep_their_types_and_odd_objects_become_text():
    frame = pd.DataFrame(
        {
            1: pd.array([1, None, 3], dtype="Int64"),
            "b": [True, False, None],
            "c": pd.Categorical(["u", "v", None]),
            "d": pd.to_datetime(["2020-01-01", None, "2021-01-01"]).tz_localize("UTC"),
            "y": [True, False, True],
        }
    )
    table = read_table(frame, label="y")
    assert str(table.features["1"].dtype) == "float64"
    assert table.features["b"].tolist()[:2] == [1.0, 0.0]  # with holes or without, truth values are numbers
    assert table.features["c"].tolist() == ["u", "v", None]
    assert table.labels.tolist() == [True, False, True]
    assert table.relabelled([0], [False])["y"].tolist() == [False, False, True]


def test_a_column_that_differs_in_capitals_only_is_named(tmp_path):
    path = tmp_path / "my.csv"
    path.write_text("a,y\n1,yes\n2,no\n")
    refuses("did you mean 'y'", read_table, path, label="Y", error=TableError)
