"""Every public door with odd inputs: a result whose invariants hold, or one error that says what was wrong.

A fixed seed and about a minute as it stands; FLORAL_FUZZ=60 draws sixty times as many examples, about an hour.
"""

import os
import re
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import floral_learn as fl
from floral_learn.app import read_table
from floral_learn.attacks import ATTACKS

SCALE = int(os.environ.get("FLORAL_FUZZ", "1"))
SMALL = 12  # rows of which every single flip is tried
REFUSED = (ValueError, TypeError, ImportError, MemoryError)
pytestmark = pytest.mark.filterwarnings("ignore")
ODD_WORDS = ["a", "b", "A", " a", "", "nan", "None", "0", "1", "1.0", "=1+1", "a;b", "a,b", 'x"y', "<b>", "é",
             "e\u0301", "\u200b", "\u202e", "日本", "true", "2024-01-01", "1e400", "-", "9" * 30]  # fmt: skip
ODD_NUMBERS = [0.0, -0.0, 1.0, 1e-300, 5e-324, 1e300, -1e300, np.nan, np.inf, -np.inf]


# -- odd inputs --------------------------------------------------------------------------------------------------------


@st.composite
def matrices(draw, rows):
    """Features of `rows` rows in many forms; and the same as plain numbers, or None where these cannot be told."""
    kind = draw(st.sampled_from(["plain", "plain", "plain", "odd", "scaled", "shape", "frame", "words"]))
    d = draw(st.integers(0 if kind == "shape" else 1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    X = rng.normal(size=(rows, d)) + 2.0 * (np.arange(rows) % 2)[:, None]
    if kind == "odd" and rows:
        for _ in range(draw(st.integers(1, 3))):
            X[rng.integers(rows), rng.integers(d)] = draw(st.sampled_from(ODD_NUMBERS))
    if kind == "scaled":
        X = X * draw(st.sampled_from([1e-300, 1e-160, 1e-8, 1e8, 1e160, 1e300]))
        X[:, 0] = draw(st.sampled_from([0.0, 1.0, 1e300])) if draw(st.booleans()) else X[:, 0]
    if kind == "words":
        X = np.array(ODD_WORDS, object)[rng.integers(len(ODD_WORDS), size=(rows, d))]
        return draw(st.sampled_from([X, pd.DataFrame(X).add_prefix("w")])), None
    if kind == "shape":
        forms = [X[:, 0] if d else X, X[None], X[:, :0], X.astype(complex), X > 0, X.astype("f4"), X.astype("i1")]
        return draw(st.sampled_from([*forms, sparse.csr_matrix(X), sparse.coo_array(X), X.tolist(), None])), None
    if kind == "frame":
        names = draw(st.sampled_from([["a", "b", "c", "d"], ["a", "a", "b", "b"], [0, 1, 2, 3], ["y", "", " ", "nan"]]))
        kinds = [np.arange(rows), rng.permutation(rows), np.zeros(rows, int), rows + np.arange(rows)]
        return pd.DataFrame(X, columns=names[:d], index=draw(st.sampled_from(kinds))), X
    return X, X


@st.composite
def labels(draw, rows):
    """Labels in many forms, mostly as many as there are rows, mostly of two or three classes."""
    n = max(0, rows + draw(st.sampled_from([0] * 12 + [-1, 1])))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    codes = np.where(rng.random(n) < 0.2, rng.integers(0, 3, n), np.arange(n) % 2)
    kind = draw(st.sampled_from(["int", "int", "int", "words", "words", "odd", "one", "each", "index", "shape"]))
    words = draw(st.lists(st.sampled_from(ODD_WORDS), min_size=3, max_size=3, unique=True))
    if kind == "words":
        return np.array(words, draw(st.sampled_from([object, str])))[codes]
    if kind == "odd":
        one = draw(st.sampled_from([None, np.nan, 1, "1", True, 2.5, b"a", -1, 10**30]))
        return np.array([one] * n, object) if draw(st.booleans()) else np.where(rng.random(n) < 0.2, np.nan, codes)
    if kind == "one":
        return np.zeros(n, int)
    if kind == "each":
        return np.arange(n)
    if kind == "index":
        return pd.Series(codes, index=draw(st.sampled_from([np.arange(n), rng.permutation(n), np.zeros(n, int)])))
    if kind == "shape":
        return draw(st.sampled_from([codes > 0, codes * 0.5, codes.tolist(), codes[:, None], codes[None], None, 3]))
    return 2 * codes - 1


sizes = st.sampled_from([0, 1, 2, 3, 7, 12, 24, 24, 40, 40])


# -- what a door may do ------------------------------------------------------------------------------------------------


class Refusal(Exception):
    """The door refused in words that are allowed."""


def call(names, function, *args, **kwargs):
    """What `function` returns; a refusal must be of an allowed kind and name one of `names`."""
    try:
        return function(*args, **kwargs)
    except REFUSED as error:
        text = str(error)
    assert re.search(rf"(?<![A-Za-z])({names})(?![A-Za-z])", text, re.IGNORECASE), f"no name in: {text!r}"
    assert len(text) < 5000, f"too long: {text[:200]}"
    raise Refusal(text)


ROWS_AND_LABELS = (
    "X|y|labels?|class(es)?|rows?|columns?|samples?|features?|sparse|votes|index|infinity|NaN|numbers|float|data|dim"
)


def finite(values):
    return bool(np.isfinite(np.asarray(values, float)).all())


def issues(data):
    """The audit: all rows are ranked, no trusted label is flagged, probabilities are probabilities."""
    n = data.draw(sizes)
    (X, _), y = data.draw(matrices(n)), data.draw(labels(n))
    trusted = np.arange(n) % 3 == 0 if data.draw(st.booleans()) else None
    found = call(f"{ROWS_AND_LABELS}|trusted", fl.find_label_issues, X, y, trusted=trusted, random_state=0)
    assert sorted(found.ranking) == list(range(len(found.flagged)))
    assert (np.diff(found.score[found.ranking]) >= -1e-12).all() or (np.diff(found.score[found.ranking]) <= 1e-12).all()
    assert trusted is None or not found.flagged[trusted].any()
    assert ((found.score >= 0) & (found.score <= 1)).all()
    sums = found.probability.sum(axis=1)  # 0 for rows of a class that is too small to be judged
    assert (np.isclose(sums, 1, atol=1e-6) | np.isclose(sums, 0)).all()


def review(data):
    """The review: rows are asked about once, what was answered is the label, nobody else's label leaves the classes."""
    n = data.draw(sizes)
    (X, _), y = data.draw(matrices(n)), data.draw(labels(n))
    found = call(ROWS_AND_LABELS, fl.LabelReview, X, y, random_state=0)
    asked = []
    for _ in range(3):
        rows = call("rows|count|left|answered", found.ask, 2)
        said = np.asarray(found.classes)[(np.arange(len(rows)) + len(asked)) % len(found.classes)]
        call("rows|answers?|label", found.answer, rows, said)
        assert not set(rows) & set(asked), "asked twice"
        asked += list(rows)
        assert (np.asarray(found.labels)[rows] == said).all()
    assert len(asked) == len(set(asked)) == len(found.history)
    assert set(np.asarray(found.labels).tolist()) <= set(np.asarray(found.classes).tolist())
    assert found.wrong_share.low <= found.wrong_share.high


def votes(data):
    """Votes: labels are classes, the most probable one is named, unanimous tasks of plain crowds keep their label."""
    n, people = data.draw(sizes), data.draw(st.sampled_from([0, 1, 3, 3, 4, 5, 6]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    table = rng.integers(0, 3, n)[:, None] * np.ones((1, people))
    table = np.where(rng.random(table.shape) < 0.1, rng.integers(0, 3, table.shape), table)
    table[rng.random(table.shape) < data.draw(st.sampled_from([0.0, 0.0, 0.3, 1.0]))] = np.nan
    names = data.draw(st.sampled_from([None, ["a", "b", "c"], ["=1", "", "é"], [True, False, None], [1, 10**20, -1]]))
    if names is not None:
        table = np.array([[None if v != v else names[int(v)] for v in row] for row in table] or [[]], object)
    if data.draw(st.booleans()) and table.ndim == 2:
        table = pd.DataFrame(table)
    gold = data.draw(st.sampled_from([None] * 8 + [{0: 0}, {"x": 1}, [np.nan] * n, [9] * n]))
    words = "votes?|gold|task|worker|label|class(es)?|annotators?|people|X"
    found = call(words, fl.aggregate_votes, table, gold=gold, random_state=0)
    assert set(np.asarray(found.labels).tolist()) <= set(np.asarray(found.classes).tolist())
    np.testing.assert_allclose(found.probability.sum(axis=1), 1, atol=1e-6)
    places = {label: at for at, label in enumerate(np.asarray(found.classes).tolist())}
    at = [places[label] for label in np.asarray(found.labels).tolist()]
    assert (found.probability[np.arange(len(at)), at] >= found.probability.max(axis=1) - 1e-9).all()


def poisoned(data):
    """An attack: exactly the rows it names differ, no more than the budget, and the given labels are left alone."""
    n = data.draw(sizes)
    (X, _), y = data.draw(matrices(n)), data.draw(labels(n))
    attack = data.draw(st.sampled_from(["random", "farthest", "class-biased", "near-boundary", "top-k", "nobody"]))
    budget = data.draw(st.sampled_from([0, 1, 3, 0.0, 0.1, 0.5, 1.0, -1, 2.5, np.nan, 10**9, "3", None]))
    before = np.array(y, copy=True) if y is not None else None
    words = f"{ROWS_AND_LABELS}|budget|attack|surrogate|flips?"
    found = call(words, fl.poison, X, y, attack=attack, budget=budget, random_state=0)
    assert attack in ATTACKS
    pairs = zip(before.ravel(), np.ravel(y), strict=True)
    assert all(a is b or a == b or (a != a and b != b) for a, b in pairs)
    matched = isinstance(X, pd.DataFrame) and isinstance(y, pd.Series) and y.index.is_unique
    after, given_labels = np.asarray(found.y), np.asarray(y.loc[X.index] if matched else y)
    most = int(budget * len(after) + 1e-9) if isinstance(budget, float) else budget
    changed = np.flatnonzero([a != b for a, b in zip(after.tolist(), given_labels.tolist(), strict=True)])
    assert sorted(found.indices) == changed.tolist()
    assert len(changed) <= most
    assert set(after.tolist()) <= set(given_labels.tolist())


def classified(model, X, plain, y):
    """Predictions are given labels, the same for a copy of the rows; NaN and infinities are never learned from."""
    fitted = call(ROWS_AND_LABELS, model.fit, X, y)
    assert plain is None or finite(plain), "NaN or infinity went in"
    guess = np.asarray(call(ROWS_AND_LABELS, fitted.predict, X))
    assert set(guess.tolist()) <= set(np.asarray(fitted.classes_).tolist()) <= set(np.asarray(y).ravel().tolist())
    assert len(guess) == len(np.asarray(y))
    return fitted


def floral(data):
    """FLORAL: and X times a power of two is the same X."""
    n = data.draw(sizes)
    (X, plain), y = data.draw(matrices(n)), data.draw(labels(n))
    model = fl.FloralClassifier(n_rounds=12, random_state=0)
    fitted = classified(model, X, plain, y)
    assert finite(fitted.decision_function(X))


def sanitised(data):
    """A sanitiser: what was left out or relabelled is what it says, and some of every class stays."""
    n = data.draw(sizes)
    (X, plain), y = data.draw(matrices(n)), data.draw(labels(n))
    model = fl.SanitizedClassifier(fl.ContradictedLabels(random_state=0), LogisticRegression())
    fitted = classified(model, X, plain, y)
    assert len(fitted.kept_) == len(np.asarray(y))
    assert 2 * fitted.kept_.sum() >= len(fitted.kept_), "most labels are kept"
    assert len(set(np.ravel(y)[fitted.kept_].tolist())) == len(fitted.classes_)


def certificates(data):
    """Certificates: no flips of as many labels as are certified change a prediction."""
    n = data.draw(sizes)
    (X, plain), y = data.draw(matrices(n)), data.draw(labels(n))
    parts = data.draw(st.integers(1, 7))
    voters = fl.PartitionAggregationClassifier(DecisionTreeClassifier(max_depth=2, random_state=0), n_partitions=parts)
    model = voters if data.draw(st.booleans()) else fl.CertifiedKernelClassifier()
    words = f"{ROWS_AND_LABELS}|n_partitions|partitions"
    fitted = call(words, model.fit, X, y)
    assert plain is None or finite(plain), "NaN or infinity went in"
    guess, radius = np.asarray(fitted.predict(X)), np.asarray(fitted.certified_flips(X))
    assert ((radius >= -1) & (radius <= len(guess))).all()
    given_labels, classes, rng = np.asarray(y).ravel(), list(fitted.classes_), np.random.default_rng(0)
    attacks = [[row] for row in range(len(guess))] if len(guess) <= SMALL else []
    attacks += [rng.permutation(len(guess))[: rng.integers(1, 4)] for _ in range(4)] if len(guess) else []
    for rows in attacks:
        changed = given_labels.copy()
        changed[rows] = [classes[(classes.index(label) + 1) % len(classes)] for label in changed[rows]]
        if set(changed.tolist()) == set(given_labels.tolist()):
            again = np.asarray(clone(model).fit(X, changed).predict(X))
            assert (again == guess)[radius >= len(rows)].all(), "a false certificate"


def tables(data, folder):
    """Tables: the label is never a feature, and labels come back as they were written."""
    n = data.draw(st.sampled_from([0, 1, 2, 5, 12]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    words = st.sampled_from([*ODD_WORDS, "y"])
    names = data.draw(st.lists(words, min_size=1, max_size=4, unique=data.draw(st.booleans())))
    prose = [np.array(ODD_WORDS, object)[rng.integers(len(ODD_WORDS), size=n)] for _ in names]
    cells = {k: words if rng.random() < 0.5 else rng.normal(size=n) for k, words in enumerate(prose)}
    frame = pd.DataFrame(cells).set_axis(names, axis=1)
    at = data.draw(st.integers(0, len(names) - 1))
    frame.isetitem(at, [f"Lqz{i % 2}" for i in range(n)])
    ending = data.draw(st.sampled_from([".csv", ".tsv", ".jsonl", "frame", ".txt"]))
    source = frame
    if ending == ".jsonl":
        source = folder / "t.jsonl"
        if not frame.columns.is_unique:
            return
        frame.to_json(source, orient="records", lines=True)
    elif ending != "frame":
        source = folder / f"t{ending}"
        frame.to_csv(source, index=False, sep="\t" if ending == ".tsv" else data.draw(st.sampled_from([",", ";"])))
    label = data.draw(st.sampled_from([names[at], names[at], names[at], "missing", None, 3]))
    found = call(".+", read_table, source, label=label)
    if label is None:
        return
    assert not found.features.isin(["Lqz0", "Lqz1"]).any().any(), "the label is a feature"
    assert found.labels.tolist() == [f"Lqz{i % 2}" for i in range(n)]


DOORS = {
    issues: 120,
    review: 80,
    votes: 250,
    poisoned: 400,
    floral: 250,
    sanitised: 200,
    certificates: 300,
    tables: 300,
}


def fuzz(door, folder, examples):
    """Run a door on so many examples; returns how many were tried, and how many ended in a result."""
    tried, results = [], []

    # Making an example smaller takes minutes, and small ones are drawn anyway.
    quiet = {"deadline": None, "database": None, "phases": [Phase.generate], "suppress_health_check": list(HealthCheck)}

    @settings(max_examples=examples, derandomize=True, **quiet)
    @given(st.data())
    def run(data):
        tried.append(1)
        with suppress(Refusal):
            door(data, folder) if door is tables else door(data)
            results.append(1)

    run()
    return len(tried), len(results)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_odd_inputs_end_in_a_result_or_in_words(door, tmp_path, record_property):
    tried, results = fuzz(door, tmp_path, DOORS[door] * SCALE)
    record_property("tried, results", (tried, results))  # docs/results/reliability.md shows these
    assert results > tried / 10, "hardly anything was accepted"


# -- each of ten planted bugs is found ---------------------------------------------------------------------------------


def changed(function, change):
    """`function` with its result changed."""
    return lambda *args, **kwargs: change(function(*args, **kwargs))


def one_flip_more(found):
    """A result whose labels have one change that it does not name."""
    y = found.y.copy()
    others = np.flatnonzero(y != y[0])
    if len(others):
        y[0] = y[others[0]]
    return replace(found, y=y)


def leaky(found):
    return replace(found, features=found.features.assign(again=found.labels)) if found.labels is not None else found


def answers_the_next(answer):
    return lambda self, rows, labels: answer(self, (np.asarray(rows) + 1) % len(self.given), labels)


def unchecked(fit):
    """A fit that takes NaN and infinities for zeros."""

    def lenient(self, X, y, *args, **kwargs):
        with suppress(TypeError, ValueError, AttributeError):
            X = np.nan_to_num(np.asarray(X, float), posinf=0.0, neginf=0.0)
        return fit(self, X, y, *args, **kwargs)

    return lenient


def keeps_the_rest(fit):
    def inverted(self, *args, **kwargs):
        fitted = fit(self, *args, **kwargs)
        fitted.kept_ = ~fitted.kept_
        return fitted

    return inverted


AUDIT, VOTERS = "fl.find_label_issues", "PartitionAggregationClassifier.certified_flips"
PLANTED = {
    "a ranking with the wrong sign": (issues, AUDIT, lambda found: replace(found, ranking=found.ranking[::-1])),
    "trusted labels are flagged": (issues, AUDIT, lambda found: replace(found, flagged=found.flagged | True)),
    "a row is asked about twice": (review, "LabelReview.ask", lambda _: lambda self, n=1: np.arange(n)),
    "answers are one row off": (review, "LabelReview.answer", answers_the_next),
    "the wrong class is the most probable": (
        votes, "fl.aggregate_votes", lambda found: replace(found, probability=np.roll(found.probability, 1, axis=1)),
    ),
    "one flip more than the budget": (poisoned, "fl.poison", one_flip_more),
    "NaN is learned from": (floral, "FloralClassifier.fit", unchecked),
    "what is kept and what is left out are exchanged": (sanitised, "SanitizedClassifier.fit", keeps_the_rest),
    "a certificate of one flip too many": (certificates, VOTERS, lambda count: changed(count, lambda found: found + 1)),
    "the label is a feature": (tables, "read_table", leaky),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug, monkeypatch, tmp_path):
    door, place, change = PLANTED[bug]
    owner, name = place.rsplit(".", 1) if "." in place else (None, place)
    if owner == "fl":
        monkeypatch.setattr(fl, name, changed(getattr(fl, name), change))
    elif owner is None:
        monkeypatch.setitem(globals(), name, changed(read_table, change))
    else:
        kind = getattr(fl, owner)
        monkeypatch.setattr(kind, name, change(getattr(kind, name)))
    with pytest.raises((AssertionError, ExceptionGroup)):
        fuzz(door, tmp_path, DOORS[door])
