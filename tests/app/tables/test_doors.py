"""Frames with numbers, categories, texts, dates, truth values and holes go into every door, pandas and polars alike."""

import datetime as dt
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from refusals import refuses
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from floral_learn import (
    ContradictedLabels,
    CrowdClassifier,
    LabelReview,
    SanitizedClassifier,
    aggregate_votes,
    find_label_issues,
)
from floral_learn.base import TableEncoder, TableError
from floral_learn.paper import CurieFilter, KNNRelabel

N = 300


def columns():
    rng = np.random.default_rng(0)
    size = rng.normal(size=N)
    colour = rng.choice(["red", "green", "blue"], N)
    y = np.where(size + 2 * (colour == "red") > 0.7, "yes", "no")
    found = {
        "size": [None if i % 17 == 0 else float(v) for i, v in enumerate(size)],
        "colour": [None if i % 19 == 0 else str(v) for i, v in enumerate(colour)],
        "seen": [dt.datetime(2024, 1, 1) + dt.timedelta(hours=int(h)) for h in rng.integers(0, 9999, N)],
        "new": [bool(v) for v in rng.random(N) < 0.5],
    }
    return found, y


@pytest.fixture(params=["pandas", "polars"], scope="module")
def table(request):
    found, y = columns()
    frame = pd.DataFrame(found) if request.param == "pandas" else pl.DataFrame(found)
    return frame, y


def pipeline():
    """A model that reads columns by their names: it works on the untouched frame alone."""
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["size"]),
        (OneHotEncoder(handle_unknown="ignore"), ["colour", "new"]),
    )
    return make_pipeline(columns, LogisticRegression())


def flipped(y, share=0.3):
    """Labels of class yes, some of them taken away at random."""
    rng = np.random.default_rng(1)
    return np.where((y == "yes") & (rng.random(len(y)) < share), "no", y)


@pytest.mark.parametrize("sanitizer", [ContradictedLabels(random_state=0), CurieFilter(), KNNRelabel(n_neighbors=20)])
def test_a_pipeline_behind_a_sanitiser_gets_the_rows_untouched(table, sanitizer):
    X, y = table
    model = SanitizedClassifier(sanitizer, pipeline()).fit(X, flipped(y))
    assert model.feature_names_in_.tolist() == ["size", "colour", "seen", "new"]
    assert np.mean(model.predict(X) == y) > 0.75
    few = model.predict_proba(X[:5])
    np.testing.assert_allclose(few, model.predict_proba(X)[:5])


def test_pandas_and_polars_give_one_answer():
    found, y = columns()
    frames = pd.DataFrame(found), pl.DataFrame(found)
    bad = flipped(y)
    kept = [SanitizedClassifier(ContradictedLabels(random_state=0), pipeline()).fit(X, bad).kept_ for X in frames]
    np.testing.assert_array_equal(*kept)
    rows = [ContradictedLabels(random_state=0).fit_resample(X, bad)[0] for X in frames]
    assert [type(r) for r in rows] == [pd.DataFrame, pl.DataFrame]
    assert len(rows[0]) == len(rows[1])


def test_a_model_that_reads_no_text_is_an_error_that_names_the_column(table):
    X, y = table
    with pytest.raises(ValueError, match=r"SVC cannot be trained on X .*'size' .missing values.*TableEncoder"):
        SanitizedClassifier(ContradictedLabels(), SVC()).fit(X, y)
    model = SanitizedClassifier(KNNRelabel(n_neighbors=20), make_pipeline(TableEncoder(), SVC()))
    assert np.mean(model.fit(X, y).predict(X) == y) > 0.75


def test_frames_of_numbers_give_what_arrays_give():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    y = (X[:, 0] > 0).astype(int)
    y[:40] = 1 - y[:40]
    models = [
        SanitizedClassifier(ContradictedLabels(random_state=0), LogisticRegression()).fit(rows, y)
        for rows in (X, pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc")))
    ]
    for other in models[1:]:
        np.testing.assert_array_equal(other.kept_, models[0].kept_)
        np.testing.assert_allclose(other.estimator_.coef_, models[0].estimator_.coef_)


def test_a_review_takes_a_frame_and_trains_on_it_untouched(table, tmp_path):
    X, y = table
    review = LabelReview(X, flipped(y), random_state=0)
    for _ in range(8):
        rows = review.ask(1)
        review.answer(rows, y[rows])
    model = review.train(pipeline())
    assert np.mean(model.predict(X) == y) > 0.7
    review.append(X[:10], y[:10])
    assert len(review.labels) == N + 10
    review.save(tmp_path / "r.skops")
    again = LabelReview.load(tmp_path / "r.skops")
    np.testing.assert_allclose(again.wrong_probability, review.wrong_probability)
    np.testing.assert_array_equal(again.train(pipeline()).predict(X), review.train(pipeline()).predict(X))
    with pytest.raises(TableError, match="no column 'size'"):
        review.append(X.drop("size") if isinstance(X, pl.DataFrame) else X.drop(columns="size"), y)
    refuses("give both alike", review.append, np.zeros((2, 4)), y[:2])


def crowd(y):
    """Long votes of three people on 80 named items, two careful and one who is often wrong."""
    rng = np.random.default_rng(2)
    rows = [
        (f"item {i}", name, y[i] if rng.random() > error else {"yes": "no", "no": "yes"}[y[i]])
        for i in range(80)
        for name, error in (("ann", 0.05), ("bob", 0.1), ("cem", 0.4))
    ]
    return dict(zip(("task", "worker", "label"), map(list, zip(*rows)), strict=True))


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_votes_and_items_are_frames(library):
    found, y = columns()
    items = library.DataFrame({"task": [f"item {i}" for i in range(80)], **{k: v[:80] for k, v in found.items()}})
    votes = library.DataFrame(crowd(y))
    read = aggregate_votes(votes, items, random_state=0)
    assert isinstance(read.annotators, library.DataFrame)
    assert read.items.tolist()[:2] == ["item 0", "item 1"]
    assert np.mean(read.labels == y[:80]) > 0.85
    np.testing.assert_allclose(
        read.probability, aggregate_votes(pd.DataFrame(crowd(y)), pd.DataFrame(found).iloc[:80].set_index(
            pd.Index([f"item {i}" for i in range(80)])), random_state=0).probability
    )  # fmt: skip
    for estimator in (None, pipeline()):
        model = CrowdClassifier(estimator=estimator, random_state=0).fit(items, votes)
        assert np.mean(model.predict(items) == y[:80]) > 0.75
    refuses("SVC cannot be trained on X", CrowdClassifier(estimator=SVC(), random_state=0).fit, items, votes)


def test_label_issues_are_found_in_frames_and_come_back_in_kind(table):
    X, y = table
    bad = flipped(y, 0.1)
    issues = find_label_issues(X, bad, model=pipeline(), random_state=0)
    assert isinstance(issues.to_frame(), type(X))
    assert len(issues.to_frame()) == N
    with_label = X.with_columns(y=pl.Series(bad)) if isinstance(X, pl.DataFrame) else X.assign(y=bad)
    again = find_label_issues(with_label, label="y", model=pipeline(), random_state=0)
    np.testing.assert_allclose(again.score, issues.score)
    assert "<table" in issues._repr_html_()


def test_a_workbook_that_claims_a_row_without_end_is_refused_at_once(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    from floral_learn.app.tables import read_table

    book = openpyxl.Workbook()
    for row in (["x", "y"], [1, "no"], [2, "yes"]):
        book.active.append(row)
    book.save(tmp_path / "good.xlsx")
    with zipfile.ZipFile(tmp_path / "good.xlsx") as good, zipfile.ZipFile(tmp_path / "bad.xlsx", "w") as bad:
        for part in good.namelist():
            bad.writestr(part, good.read(part).replace(b'<row r="3"', b'<row r="99999999999"'))
    refuses("rows below 1,048,576", read_table, tmp_path / "bad.xlsx", label="y", error=TableError)
