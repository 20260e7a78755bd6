"""`TableEncoder`: learned on training rows, every column with one weight, and it says what it did."""

import re

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from sklearn.base import BaseEstimator, TransformerMixin, clone

from floral_learn import load, save
from floral_learn.app.tables import read_table
from floral_learn.base import TableEncoder, TableError, frames


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    words = np.array(["good film of old", "bad film of new", "long plot with words", "short plot in time"])
    n = 120
    return pd.DataFrame(
        {
            "Unnamed: 0": np.arange(n, dtype=float),
            "size": np.where(np.arange(n) < 5, np.nan, rng.normal(100, 5, n)),
            "huge": rng.normal(size=n) * 1e300,
            "tiny": rng.normal(size=n) * 1e-300,
            "site": np.where(np.arange(n) < 3, None, rng.choice(["n", "s"], n)),
            "many": [f"v{i % 60}" for i in range(n)],
            "code": [f"c{i}" for i in range(n)],
            "when": [f"{i % 28 + 1:02d}.{i % 12 + 1:02d}.2024" for i in range(n)],
            "stamp": pd.date_range("2024-01-01", periods=n, freq="7h"),
            "review": [f"{words[i % 4]} number{i}" for i in range(n)],
            "fixed": 1.0,
            "empty": None,
        }
    )


def test_every_column_has_a_role_and_is_named_in_the_notes(frame):
    encoder = TableEncoder().fit(frame)
    roles = encoder.columns_
    assert [roles[name] for name in ("size", "huge", "tiny")] == ["number"] * 3
    assert (roles["site"], roles["many"]) == ("category", "category")
    assert (roles["when"], roles["stamp"], roles["review"]) == ("date", "date", "text")
    assert roles["Unnamed: 0"] == "ignored (row numbers)"
    assert roles["code"] == "ignored (120 different values)"
    assert (roles["fixed"], roles["empty"]) == ("ignored (constant)", "ignored (all missing)")
    for part in ("5 missing", "size, huge, tiny", "when, stamp", "text column review: tf-idf of", "fixed (constant)"):
        assert part in encoder.describe()


def test_every_block_weighs_as_much_as_a_number(frame):
    encoder = TableEncoder().fit(frame)
    X = encoder.transform(frame)
    assert np.isfinite(X).all()
    assert X.shape[1] == len(encoder.get_feature_names_out())
    names = [re.split("[=~ ]", made)[0] for made in encoder.get_feature_names_out()]
    weight = {name: (X[:, np.array(names) == name] ** 2).sum(axis=1).mean() for name in dict.fromkeys(names)}
    assert {name: round(w) for name, w in weight.items()} == {
        **dict.fromkeys(["size", "huge", "tiny", "site", "many"], 1),
        **dict.fromkeys(["when", "stamp"], 2),
        "review": 4,
    }


def test_new_rows_may_have_new_categories_missing_values_and_other_columns(frame):
    encoder = TableEncoder().fit(frame)
    row = frame.iloc[:2].copy()
    row["site"], row["size"], row["huge"], row["when"], row["review"] = "never seen", np.inf, 1e308, None, None
    row["new"] = 3
    assert np.isfinite(encoder.transform(row[row.columns[::-1]])).all()
    refuses("no column 'size'", encoder.transform, frame.drop(columns="size"), error=TableError)
    with pytest.raises(TableError, match=r"column 'size' was numbers in training.*row 1 is 'x'"):
        encoder.transform(frame.assign(size=["1", *["x"] * 119]))
    with pytest.raises(TableError, match="column 'when' has values that are not dates"):
        encoder.transform(frame.assign(when="yesterday"))


def test_it_survives_a_model_file(frame, tmp_path):
    encoder = TableEncoder(text=("review",)).fit(frame)
    save(encoder, tmp_path / "e.skops")
    np.testing.assert_array_equal(load(tmp_path / "e.skops").transform(frame), encoder.transform(frame))


def test_what_was_a_category_is_read_as_text_again(tmp_path):
    (tmp_path / "a.csv").write_text("k,x,y\n" + "".join(f"{['1.50', 'b'][i % 2]},{i},{i % 2}\n" for i in range(20)))
    (tmp_path / "b.csv").write_text("k,x\n1.50,3\n1.50,4\n")
    encoder = TableEncoder().fit(read_table(tmp_path / "a.csv", label="y").features)
    new = read_table(tmp_path / "b.csv", as_text=encoder.as_text)
    assert new.features["k"].tolist() == ["1.50", "1.50"]
    known = encoder.get_feature_names_out().tolist().index("k=1.50")
    assert (encoder.transform(new.features)[:, known] > 0).all()


def test_nothing_usable_is_explained():
    with pytest.raises(TableError, match=r"no usable feature column.*'a' \(constant\).*--text"):
        TableEncoder().fit(pd.DataFrame({"a": [1.0, 1.0]}))
    with pytest.raises(TableError, match="text='q' is not a column"):
        TableEncoder(text=("q",)).fit(pd.DataFrame({"a": [1.0, 2.0]}))
    refuses("not ndarray", TableEncoder().fit, np.eye(3), error=TableError)


class Letters(TransformerMixin, BaseEstimator):
    """Counts of two letters, in place of a network."""

    def fit(self, texts, y=None):
        self.labels_ = y
        return self

    def transform(self, texts):
        return np.array([[text.count("a"), text.count("e"), 1.0] for text in texts])


def test_prose_is_read_by_the_encoder_that_is_passed_in():
    frame = pd.DataFrame({"t": [f"a few words on item {i}" for i in range(60)]})
    encoder = clone(TableEncoder(text_encoder=Letters()))
    made = encoder.fit_transform(frame, np.arange(60) % 2)
    assert encoder.notes_ == ["text column t: Letters, 3 numbers"]
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 2.0)
    assert not encoder.transform(frame.assign(t=None)).any()  # an empty text is zero
    assert "tf-idf" in TableEncoder().fit(frame).notes_[0]
    refuses("text_encoder='minilm' must be a transformer of texts", TableEncoder(text_encoder="minilm").fit, frame)


def test_a_wide_table_of_numbers_costs_no_call_and_no_search_per_column(monkeypatch):
    """Names looked up one by one in a list of all, or columns wrapped one by one, took minutes for 100,000."""
    asked = []
    monkeypatch.setattr(frames, "column_at", lambda *what: asked.append(what))
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(25, 5000)), columns=[f"c{i}" for i in range(5000)])
    encoder = TableEncoder().fit(wide)
    assert encoder.transform(wide.iloc[:, ::-1]).shape == (25, 5000)
    assert encoder.get_feature_names_out().tolist() == list(wide.columns)
    assert not asked
    assert [places.dtype.kind for _, places in encoder.parts_] == ["i"]
