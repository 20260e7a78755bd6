"""A column that repeats the label is never a feature, however its cells are typed, and the note names it."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

from floral_learn.app.tables import read_table

pa = pytest.importorskip("pyarrow", reason="Parquet files need the extra [cli]")
import pyarrow.parquet as pq  # noqa: E402

N = 60
RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 2, N)
X = RNG.normal(size=N)
BERLIN = datetime.timezone(datetime.timedelta(hours=2))


def days(make):
    return [make(1 + int(code)) for code in CODES]


PARQUET = {
    "booleans": pa.array(CODES.astype(bool)),
    "integers": pa.array(CODES),
    "integers above 2**53": pa.array(CODES + 2**60),
    "unsigned": pa.array([2**63 + int(code) for code in CODES], pa.uint64()),
    "text": pa.array(np.where(CODES, "a", "b")),
    "a dictionary": pa.array(np.where(CODES, "a", "b")).dictionary_encode(),
    "decimals": pa.array([decimal.Decimal("1.50") if code else decimal.Decimal("2.50") for code in CODES]),
    "dates": pa.array(days(lambda day: datetime.date(2020, 1, day))),
    "times": pa.array(days(lambda hour: datetime.time(hour))),
    "timestamps": pa.array(days(lambda day: datetime.datetime(2020, 1, day))),
    "timestamps with a zone": pa.array(
        days(lambda day: datetime.datetime(2020, 1, day, tzinfo=BERLIN)), pa.timestamp("us", tz="Europe/Berlin")
    ),
    "durations": pa.array(days(datetime.timedelta)),
    "floats of 32 bits": pa.array((CODES + 0.1).astype(np.float32)),
    "floats of 16 bits": pa.array((CODES + 0.1).astype(np.float16)),
}


def assert_left_out(table):
    assert list(table.features.columns) == ["x"]
    assert any("copy" in note for note in table.notes), table.notes


@pytest.mark.parametrize("kind", PARQUET)
def test_a_copy_in_parquet_is_left_out(tmp_path, kind):
    pq.write_table(pa.table({"x": X, "copy": PARQUET[kind], "y": PARQUET[kind]}), tmp_path / "t.parquet")
    assert_left_out(read_table(tmp_path / "t.parquet", label="y"))


@pytest.mark.parametrize(
    ("first", "second", "sep"),
    [
        ("True", "False", ","),
        ("12345678901234567", "12345678901234569", ","),
        ("0,0", "1,0", ";"),
        ("1.000", "2.000", ";"),
        ("007", "008", ","),
        ("1e3", "2e3", ","),
        ("0.10", "0.20", ","),
        ("2020-01-01T00:00:00+02:00", "2020-01-02T00:00:00+02:00", ","),
        ("1 days", "2 days", ","),
    ],
)
def test_a_copy_in_text_is_left_out(tmp_path, first, second, sep):
    lines = [sep.join(("x", "copy", "y"))]
    for number, code in zip(X, CODES, strict=True):
        label = first if code else second
        lines.append(sep.join((f"{number:.3f}".replace(".", "," if sep == ";" else "."), label, label)))
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    assert_left_out(read_table(tmp_path / "t.csv", label="y"))


@pytest.mark.parametrize(
    "column",
    [
        CODES.astype(bool),
        CODES + 2**60,
        pd.Categorical(np.where(CODES, "a", "b")),
        pd.array(CODES, dtype="Int64"),
        pd.array(CODES.astype(bool), dtype="boolean"),
        pd.to_timedelta(CODES + 1, unit="D"),
        pd.to_datetime(np.where(CODES, "2020-01-01", "2020-01-02")).tz_localize("Europe/Berlin"),
    ],
    ids=["booleans", "long integers", "categories", "Int64", "boolean", "durations", "zoned timestamps"],
)
def test_a_copy_in_a_frame_is_left_out(column):
    assert_left_out(read_table(pd.DataFrame({"x": X, "copy": column, "y": column}), label="y"))


def test_a_column_with_one_difference_stays():
    other = CODES.astype(bool).copy()
    other[0] = not other[0]
    table = read_table(pd.DataFrame({"x": X, "copy": other, "y": CODES.astype(bool)}), label="y")
    assert list(table.features.columns) == ["x", "copy"]
