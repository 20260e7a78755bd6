"""`read_rows`: what users have, as numbers for us and untouched for the model behind."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from refusals import refuses
from sklearn.svm import SVC

from floral_learn.base import TableEncoder, TableError
from floral_learn.base.frames import frame_of, same_kind, typed_column
from floral_learn.base.rows import explain_refusal, read_rows, take_rows

N = 60


def columns():
    rng = np.random.default_rng(0)
    return {
        "size": [None if i % 11 == 0 else float(v) for i, v in enumerate(rng.normal(size=N))],
        "colour": [None if i % 13 == 0 else v for i, v in enumerate(rng.choice(["red", "blue"], N).tolist())],
        "bought": [dt.date(2024, 1, 1) + dt.timedelta(days=3 * i) for i in range(N)],
        "seen": [dt.datetime(2024, 1, 1) + dt.timedelta(hours=7 * i) for i in range(N)],
        "old": [bool(v) for v in rng.random(N) < 0.5],
        "note": [f"some words about item {i} and its price" for i in range(N)],
    }


FRAMES = {
    "pandas": lambda: pd.DataFrame(columns()).astype({"colour": "category"}),
    "pandas on arrow": lambda: pl.DataFrame(columns()).to_pandas(use_pyarrow_extension_array=True),
    "polars": lambda: pl.DataFrame(columns()).with_columns(pl.col("colour").cast(pl.Categorical)),
    "pyarrow": lambda: pl.DataFrame(columns()).to_arrow(),
}


@pytest.fixture(params=FRAMES)
def frame(request):
    return FRAMES[request.param]()


def test_every_library_gives_the_same_numbers_and_notes(frame):
    rows, known = read_rows(frame), read_rows(FRAMES["polars"]())
    np.testing.assert_allclose(rows.numbers, known.numbers)
    assert rows.notes == known.notes
    assert rows.notes[:3] == [
        "2 number columns standardised (6 missing or infinite values became the median): size, old",
        "1 category column as 3 indicators: colour",
        "2 date columns as trend and season: bought, seen",
    ]


def test_the_frame_stays_as_it_was_and_gives_rows_of_its_own_kind(frame):
    rows = read_rows(frame)
    assert rows.given is frame
    mask = np.arange(N) % 7 == 0
    for some in (rows.take(mask), take_rows(frame, np.flatnonzero(mask))):
        assert type(some) is type(frame)
        np.testing.assert_allclose(rows.encode(some), rows.numbers[mask])


def test_arrays_and_frames_of_numbers_are_taken_as_they_are():
    X = np.random.default_rng(0).normal(size=(10, 3))
    for given in (X, X.tolist(), pd.DataFrame(X), pl.DataFrame(X), pa.Table.from_pandas(pd.DataFrame(X))):
        rows = read_rows(given)
        np.testing.assert_array_equal(rows.numbers, X)
        assert rows.encoder is None
        assert not rows.notes
    assert sp.issparse(read_rows(sp.csc_matrix(X)).numbers)
    assert sp.issparse(read_rows(pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X))).numbers)
    mixed = pd.DataFrame({"a": [1, 2], "b": [True, False], "c": np.array([1, 2], dtype="float32")})
    np.testing.assert_array_equal(read_rows(mixed).numbers, [[1, 1, 1], [2, 0, 2]])
    assert read_rows(mixed).encoder is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: pl.DataFrame({"a": [1.0, 2.0], "box": [[1], [2, 3]]}), "column 'box' holds lists.*drop it"),
        (lambda: pl.LazyFrame({"a": [1]}), r"X\.collect\(\)"),
        (lambda: np.array([["a"], ["b"]]), "array that holds text.*DataFrame"),
        (lambda: pd.DataFrame([[1, "x"]], columns=["a", "a"]), "two columns named 'a'"),
        (lambda: np.array([[1.0, np.nan]]), "contains NaN"),
    ],
)
def test_what_cannot_be_taken_is_named(given, message):
    refuses(message, read_rows, given())


def test_further_rows_must_be_like_the_first():
    rows = read_rows(pd.DataFrame({"a": [1.0, 2.0, 3.0]}))
    np.testing.assert_array_equal(rows.encode([[4.0]]), [[4.0]])
    refuses("hold text, dates or missing values", rows.encode, pd.DataFrame({"a": ["x", "y"]}), error=TableError)
    refuses("X has 2 columns, and 1 are expected", rows.encode, [[4.0, 5.0]])


def test_a_model_that_cannot_take_a_column_is_told_what_helps(frame):
    X = frame if not isinstance(frame, pa.Table) else frame.to_pandas()
    with pytest.raises((ValueError, TypeError)) as caught:
        SVC().fit(X, np.arange(N) % 2)
    said = str(explain_refusal(caught.value, X, SVC()))
    assert "SVC cannot be trained on X" in said
    assert "'size' (missing values), 'colour' (text or categories), 'bought' (dates)" in said
    assert "TableEncoder()" in said


def test_the_encoder_takes_polars_and_hands_frames_back_in_kind():
    frame = FRAMES["polars"]()
    encoder = TableEncoder().fit(frame)
    np.testing.assert_allclose(encoder.transform(frame), encoder.transform(FRAMES["pandas"]()))
    made = frame_of({"row": np.arange(2), "why": np.array(["a", None], dtype=object)}, frame)
    assert isinstance(made, pl.DataFrame)
    assert made["why"].to_list() == ["a", None]
    table = pd.DataFrame({"row": [1, 2], "label": ["x", "y"]})
    assert same_kind(table, pd.DataFrame()) is table
    assert same_kind(table, frame).equals(pl.DataFrame({"row": [1, 2], "label": ["x", "y"]}))


def test_categories_of_numbers_stay_categories():
    series = pd.Series(pd.Categorical([1, 2, None]))
    assert typed_column(series).tolist() == ["1", "2", None]


@pytest.mark.parametrize("X", [np.arange(5.0), [1, 2, 3], pd.Series([1.0, 2.0]), 3.0, np.zeros((2, 2, 2)), "rows"])
def test_anything_but_a_table_of_rows_is_refused_in_one_line(X):
    said = refuses(r"Expected 2D array, got X of shape", read_rows, X)
    assert "\n" not in said
