"""Every result object prints in a few lines, and is a table without markup of its own in a notebook."""

from dataclasses import is_dataclass, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_moons
from sklearn.svm import SVC

import floral_learn as fl
from floral_learn import find_label_issues
from floral_learn.app.tables import read_table
from floral_learn.labels import judge_labels
from floral_learn.paper import diagnose

X, y = make_moons(80, noise=0.2, random_state=0)
HOSTILE = "<script>alert(1)</script>"


def results():
    bad = fl.poison(X, y, attack="farthest", budget=0.1, random_state=0)
    yield bad
    yield bad.effect_on(SVC(), X, X, y)
    yield diagnose(fl.FloralClassifier(budget=0.05, n_rounds=20, tol=None, random_state=0).fit(X, y), X, y)
    votes = np.where(np.random.default_rng(0).random((len(y), 6)) < 0.5, y[:, None], -1)
    lied = fl.poison_votes(votes, X, y, attack="pair", budget=0.3, missing=-1, random_state=0)
    yield lied
    yield fl.aggregate_votes(lied.votes, missing=-1, random_state=0)
    review = fl.LabelReview(X, bad.y, random_state=0)
    yield review
    rows = review.ask(2)
    review.answer(rows, y[rows])
    yield from (review, review.wrong_share, review.ten_more, review.guarantee())
    yield fl.load_moon(n_train=50, n_val=10, n_test=10)
    yield find_label_issues(X, bad.y, random_state=0)
    yield judge_labels(X, bad.y, groups=y, random_state=0)
    yield fl.CertifiedKernelClassifier().fit(X, bad.y).certificate(X)


def test_results_print_in_a_few_lines_and_are_tables_in_notebooks():
    seen = set()
    for found in results():
        seen.add(type(found).__name__)
        text, page = repr(found), found._repr_html_()
        assert text.count("\n") < 14, text
        assert len(text) < 1500, text
        assert "array(" not in text
        assert " object at 0x" not in text
        assert page.count("<table") == 1
    assert len(seen) >= 13


def test_text_of_the_data_is_escaped():
    pytest.importorskip("pandas")

    labels = np.array([HOSTILE, "ham"] * 10)
    changed = fl.poison(None, labels, attack="random", budget=5, random_state=0)
    table = read_table(pd.DataFrame({HOSTILE: range(20), "y": labels}), label="y")
    for found in (changed, table):
        assert HOSTILE not in found._repr_html_()
        assert "&lt;script&gt;" in found._repr_html_()


def test_results_stay_dataclasses_that_can_be_compared_and_replaced():
    moon = fl.load_moon(n_train=50, n_val=10, n_test=10)
    assert is_dataclass(moon)
    assert replace(moon, name="other").name == "other"
