"""Two inputs with an index each are matched by it, or refused."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from floral_learn import (
    CertifiedKernelClassifier,
    CrowdClassifier,
    FloralClassifier,
    LabelReview,
    find_label_issues,
    poison,
)
from floral_learn.base import alignment

X = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=["r", "s", "t"])


@given(st.permutations(range(6)))
def test_names_in_another_order_are_matched(order):
    y = pd.Series(range(6), index=[f"row {k}" for k in range(6)])
    rows = pd.DataFrame({"a": range(6)}, index=y.index)
    assert alignment.align(rows, y.iloc[list(order)]).tolist() == list(range(6))


@pytest.mark.parametrize("other", [[1, 0, 1], np.array([1, 0, 1]), pd.Series([1, 0, 1], index=["r", "s", "t"])])
def test_equal_indexes_and_plain_arrays_go_by_position(other):
    assert list(alignment.align(X, other)) == [1, 0, 1]
    assert list(alignment.align(X.to_numpy(), other)) == [1, 0, 1]


def test_an_equal_index_may_repeat_names():
    rows = X.set_axis(["r", "r", "t"])
    assert list(alignment.align(rows, pd.Series([1, 2, 3], index=["r", "r", "t"]))) == [1, 2, 3]


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (["r", "s", "u"], "in X only: 't'; in y only: 'u'"),
        ([0, 1, 2], "0 of 3 are in both"),
        (["s", "r", "r"], "repeats names \\('r'\\)"),
    ],
)
def test_other_names_are_refused_with_the_way_out(index, words):
    said = refuses(words, alignment.align, X, pd.Series([1, 0, 1], index=index))
    assert ".reset_index(drop=True)" in said
    assert ".to_numpy()" in said


def test_a_dict_names_rows():
    assert alignment.align(X, {"t": 3, "r": 1, "s": 2}).tolist() == [1, 2, 3]
    assert alignment.align(np.zeros((2, 1)), {1: "b", 0: "a"}).tolist() == ["a", "b"]
    refuses("in y only: 'q'", alignment.align, X, {"r": 1, "s": 2, "t": 3, "q": 4})


@pytest.mark.parametrize("kind", [lambda X: X, pa.Table.from_pandas], ids=["pandas", "pyarrow"])
@pytest.mark.parametrize(
    "call",
    [
        lambda X, y, plain: FloralClassifier(n_rounds=5).fit(X, y),
        lambda X, y, plain: CertifiedKernelClassifier().fit(plain, y).predict(X),
        lambda X, y, plain: CrowdClassifier().fit(X, pd.DataFrame({"task": range(40), "worker": "w", "label": y})),
        lambda X, y, plain: LabelReview(X, y),
        lambda X, y, plain: find_label_issues(X, y),
        lambda X, y, plain: poison(X, y),
    ],
    ids=["fit", "predict", "crowd", "review", "issues", "poison"],
)
def test_two_columns_of_one_name_are_refused(call, kind):
    plain = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
    y = np.where(plain["a"] > 0, "yes", "no")
    twins = kind(plain)
    twins = plain.set_axis(["a", "b", "a"], axis=1) if twins is plain else twins.rename_columns(["a", "b", "a"])
    refuses("two columns named 'a'; rename one of them", call, twins, y, plain)
