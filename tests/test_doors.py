"""Every public function that takes two things about the same rows: matched by index or refused, at any scale.

Each door gets everything as plain arrays, then the same under indexes of eight forms: what comes out is the same, or
one refusal with names and the way out.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import floral_learn as floral
from floral_learn.labels import judge_labels
from floral_learn.paper import CurieFilter, KLIDWeights, KNNRelabel, LabelNoiseSVC
from floral_learn.paper import RandomizedSmoothingClassifier as Smoothing
from floral_learn.paper import RSRNNClassifier as RSRNN

N = 48
rng = np.random.default_rng(0)
TRUTH = rng.integers(0, 2, N)
ROWS = rng.normal(size=(N, 3)) + [[3, 0, 0]] * TRUTH[:, None]
VOTES = np.where(rng.random((N, 5)) < 0.25, 1 - TRUTH[:, None], TRUTH[:, None])
OTHERS = {
    "y": np.where(rng.random(N) < 0.1, 1 - TRUTH, TRUTH),
    "groups": np.array(["ann", "bob", "cy"])[rng.integers(0, 3, N)],
    "sample_weight": rng.integers(1, 4, N).astype(float),
    "trusted": rng.random(N) < 0.2,
    "pred_probs": np.where(np.eye(2)[TRUTH] > 0, 0.9, 0.1),
    "votes": VOTES,
    "labels": VOTES[:, 0],
    "gold": TRUTH,
    "mask": rng.random(N) < 0.5,
    "order": rng.permutation(N),
    "features": ROWS,
    "truth": TRUTH,
}
NAMES = [f"row {k}" for k in range(N)]


def frame(values, index=None):
    return pd.DataFrame(values, index=index, columns=list("abcde")[: values.shape[1]])


def predictions(model):
    def door(X, y=None, votes=None, **more):
        return model.fit(X, y if votes is None else votes, **more).predict(X)

    return door


def kept(sanitizer):
    def door(X, y, **more):
        sanitizer.fit_resample(X, y, **more)
        return sanitizer.sample_indices_, sanitizer.relabeled_

    return door


def review(X, y, **more):
    asked = floral.LabelReview(X, y, random_state=0, **more)
    rows = asked.ask(6)
    asked.answer(rows, pd.Series(TRUTH)[rows].sort_index())  # rows are named by their numbers
    return asked.label_probability


def append(X, y, **more):
    first = frame(ROWS[:24], NAMES[:24]) if hasattr(X, "iloc") else ROWS[:24]
    asked = floral.LabelReview(first, OTHERS["y"][:24], groups=["ann", "bob"] * 12, random_state=0)
    asked.append(X, y, **more)
    return asked.label_probability


def poisoned_votes(X, features, truth, order):
    how = {"attack": "sleeper", "informed": True, "order": order, "budget": 0.4, "random_state": 0}
    return np.asarray(floral.poison_votes(X, features, truth, **how).votes)


GAME, CERTIFIED = floral.FloralClassifier(n_rounds=20, random_state=0), floral.CertifiedKernelClassifier()
VOTERS = floral.PartitionAggregationClassifier(n_partitions=3)
DOORS = {
    "find_label_issues": (
        lambda X, y, **more: floral.find_label_issues(X, y, model=LogisticRegression(), random_state=0, **more).score,
        ["y", "groups", "trusted"],
    ),
    "find_label_issues of probabilities": (
        lambda X, y, **more: floral.find_label_issues(X, y, random_state=0, **more).score,
        ["y", "pred_probs"],
    ),
    "judge_labels": (
        lambda X, y, **more: judge_labels(X, y, random_state=0, **more).probability,
        ["y", "groups", "pred_probs"],
    ),
    "LabelReview": (review, ["y", "trusted", "groups", "sample_weight"]),
    "LabelReview.append": (append, ["y", "trusted", "groups", "sample_weight"]),
    "FloralClassifier": (predictions(GAME), ["y", "sample_weight", "trusted"]),
    "SanitizedClassifier": (
        predictions(floral.SanitizedClassifier(floral.ContradictedLabels(random_state=0), LogisticRegression())),
        ["y", "sample_weight", "pred_probs"],
    ),
    "ContradictedLabels": (kept(floral.ContradictedLabels(random_state=0)), ["y", "pred_probs"]),
    "CertifiedKernelClassifier": (predictions(CERTIFIED), ["y", "sample_weight", "trusted"]),
    "PartitionAggregationClassifier": (predictions(VOTERS), ["y", "sample_weight"]),
    "aggregate_votes": (
        lambda X, votes, gold: floral.aggregate_votes(votes, X=X, gold=gold, random_state=0).probability,
        ["votes", "gold"],
    ),
    "aggregate_votes of single labels": (
        lambda X, labels, groups: floral.aggregate_votes(labels, groups=groups, X=X, random_state=0).probability,
        ["labels", "groups"],
    ),
    "CrowdClassifier": (predictions(floral.CrowdClassifier(random_state=0)), ["votes", "gold"]),
    "poison": (lambda X, y, mask: floral.poison(X, y, mask=mask, budget=5, random_state=0).y, ["y", "mask"]),
    "poison at a target": (
        lambda X, y, mask: floral.poison(X, y, mask=mask, budget=5, target=1, random_state=0).y,
        ["y", "mask"],
    ),
    "poison_votes": (poisoned_votes, ["features", "truth", "order"]),
    "LabelNoiseSVC": (predictions(LabelNoiseSVC()), ["y", "sample_weight"]),
    "RandomizedSmoothingClassifier": (predictions(Smoothing()), ["y", "sample_weight"]),
    "RSRNNClassifier": (predictions(RSRNN(random_state=0)), ["y"]),
    "CurieFilter": (kept(CurieFilter()), ["y"]),
    "KNNRelabel": (kept(KNNRelabel()), ["y"]),
    "KLIDWeights": (lambda X, y: KLIDWeights(random_state=0).fit(X, y).sample_weight_, ["y"]),
}


def rows_of(door):
    return VOTES if door == "poison_votes" else ROWS


def indexed(name, index, order=slice(None)):
    values = OTHERS[name]
    made = frame(values) if values.ndim == 2 else pd.Series(values)
    made.index = index
    if name == "pred_probs":
        made.columns = [0, 1]
    return made.iloc[order]


def same(found, wanted):
    found, wanted = (value if isinstance(value, tuple) else (value,) for value in (found, wanted))
    for left, right in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("door", DOORS)
def test_an_index_matches_rows(door):
    call, others = DOORS[door]
    rows, plain = rows_of(door), {name: OTHERS[name] for name in others}
    from_array, from_frame = call(rows, **plain), call(frame(rows, NAMES), **plain)  # one side has no index
    same(call(rows, **{name: indexed(name, NAMES) for name in others}), from_array)
    same(call(frame(rows, NAMES), **{name: indexed(name, NAMES) for name in others}), from_frame)
    twice = [f"row {k // 2}" for k in range(N)]
    if "votes" not in others:  # names of tasks are names of results
        same(call(frame(rows, twice), **{name: indexed(name, twice) for name in others}), from_frame)
    shuffled = np.random.default_rng(1).permutation(N)
    same(call(frame(rows, NAMES), **{name: indexed(name, NAMES, shuffled) for name in others}), from_frame)
    flat = [name for name in others if OTHERS[name].ndim == 1 and name not in ("labels", "mask")]
    keyed = {name: dict(zip(np.array(NAMES)[shuffled], OTHERS[name][shuffled], strict=True)) for name in flat}
    same(call(frame(rows, NAMES), **plain | keyed), from_frame)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("door", "name"), [(door, name) for door, (_, others) in DOORS.items() for name in others])
def test_an_index_that_does_not_match_is_refused(door, name):
    call, others = DOORS[door]
    rows, plain = rows_of(door), {other: OTHERS[other] for other in others}
    twice = ["row 0", *NAMES[:-1]]
    partly = [*NAMES[:-3], "one", "two", "three"]
    for mine, others_index in [(NAMES, range(N)), (range(N), NAMES), (NAMES, partly), (twice, twice[::-1])]:
        said = refuses(r"\.to_numpy\(\)", call, frame(rows, mine), **plain | {name: indexed(name, others_index)})
        if others_index is partly:
            assert all(label in said for label in partly[-3:])


def labels_kept(X):
    return floral.ContradictedLabels(random_state=0).fit_resample(X, OTHERS["y"])[1]


ON_ROWS = {
    "find_label_issues": lambda X: floral.find_label_issues(X, OTHERS["y"], random_state=0).ranking[:10],
    "LabelReview": lambda X: review(X, OTHERS["y"]).argmax(axis=1),
    "aggregate_votes": lambda X: floral.aggregate_votes(VOTES, X=X, random_state=0).labels,
    "CrowdClassifier": lambda X: floral.CrowdClassifier(random_state=0).fit(X, VOTES).predict(X),
    "FloralClassifier": lambda X: floral.FloralClassifier(n_rounds=20, random_state=0).fit(X, OTHERS["y"]).predict(X),
    "CertifiedKernelClassifier": lambda X: floral.CertifiedKernelClassifier().fit(X, OTHERS["y"]).certified_flips(X),
    "SanitizedClassifier": lambda X: (
        floral.SanitizedClassifier(floral.ContradictedLabels(random_state=0), SVC()).fit(X, OTHERS["y"]).kept_
    ),
    "ContradictedLabels": labels_kept,
}
SCALES = (1e-300, 1e-170, 1e-100, 1e-10, 1e10, 1e100, 1e160, 1e300)
KINDS = {
    "array": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "sparse": sparse.csr_matrix,
    "one column": lambda X: X[:, :1],
    "frame": frame,
    "constant": lambda X: np.full_like(X, 2.0 ** np.round(np.log2(np.abs(X[0, 0])))),  # whose mean is exact
}


def result_or_refusal(call, X):
    try:
        return call(X)
    except ValueError as refused:
        return refused


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("door", ON_ROWS)
def test_rows_of_any_scale_give_the_same_or_one_refusal(door, kind):
    """Times a power of two, which is exact."""
    call, made = ON_ROWS[door], KINDS[kind]
    wanted, kept_alike = call(made(ROWS)), 0
    for scale in SCALES:
        power = 2.0 ** np.round(np.log2(scale))
        if kind == "float32" and not 1e-30 < power < 1e30:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            found = result_or_refusal(call, made(ROWS * power))
        if isinstance(found, ValueError):
            assert "standardise its columns first" in str(found)
            assert not 1e-12 < scale < 1e12
        else:
            np.testing.assert_array_equal(found, wanted)
            kept_alike += 1
    assert kept_alike >= 2


@pytest.mark.parametrize("door", [door for door, (_, others) in DOORS.items() if "y" in others])
@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.linspace(0, 1, N), "bin them first"),
        (np.eye(2, dtype=int)[TRUTH], "one label per row"),
        ([["a", "b"]] * N, "one label per row"),
    ],
    ids=["numbers", "matrix", "lists"],
)
def test_what_is_no_list_of_classes_is_refused(door, y, words):
    call, others = DOORS[door]
    refuses(words, call, rows_of(door), **{name: OTHERS[name] for name in others} | {"y": y})


@pytest.mark.parametrize("model", [CERTIFIED, VOTERS, GAME, LabelNoiseSVC(), Smoothing(), RSRNN(random_state=0)])
def test_a_column_of_words_is_named_with_the_way_out(model):
    rows = frame(ROWS).assign(colour=["red", "blue"] * (N // 2))
    refuses(r"colour.*put .*TableEncoder\(\)", model.fit, rows, OTHERS["y"])
