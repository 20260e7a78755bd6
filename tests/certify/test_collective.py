"""Collective certificates: both bounds against every labelling, and the named attack by a refit."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses

from floral_learn import CertifiedKernelClassifier


def most_changed(clf, X, y, counted, flips, n_classes, allowed):
    """Predictions that the best labelling within reach changes: for sure, and with ties taken as lost."""
    a, slack = clf.label_weights(X)
    labellings = np.array(list(product(range(n_classes), repeat=len(y))))
    moved = labellings != y
    within = (moved.sum(axis=1) <= flips) & (allowed[y, labellings] | ~moved).all(axis=1)
    scores = np.stack([(labellings[within] == c) @ a.T for c in range(n_classes)], axis=2)
    winner = np.searchsorted(clf.classes_, clf.predict(X))
    own = np.take_along_axis(scores, winner[None, :, None], axis=2)
    others = np.where(np.arange(n_classes) == winner[:, None], -np.inf, scores).max(axis=2)
    sure = (others > own[..., 0] + slack) & counted
    tied = (others >= own[..., 0] - slack) & counted
    return sure.sum(axis=1).max(), tied.sum(axis=1).max()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_classes=st.integers(2, 3),
    flips=st.integers(0, 4),
    bought=st.booleans(),
    truth=st.booleans(),
    exact=st.booleans(),
)
def test_property_bounds_hold_and_the_program_is_exact(seed, n_classes, flips, bought, truth, exact):
    rng = np.random.default_rng(seed)
    n = 10 if n_classes == 2 else 7
    y = rng.permutation(np.arange(n) % n_classes)
    X = rng.normal(size=(n, 2)) + 2.0 * (y[:, None] == np.arange(2))
    queries = rng.normal(size=(12, 2)) + 1.0
    allowed = np.ones((n_classes, n_classes), bool)
    if bought:
        allowed[0] = np.arange(n_classes) == 1
    possible = {c: np.flatnonzero(allowed[c]).tolist() for c in range(n_classes)}
    clf = CertifiedKernelClassifier(gamma=0.4, ridge=1.0, possible_flips=possible).fit(X, y)
    labels = rng.integers(0, n_classes, 12) if truth else None
    counted = clf.predict(queries) == labels if truth else np.ones(12, bool)
    found = clf.collective_certificate(queries, flips, labels, time_limit=60.0 if exact else 0.0)
    sure, tied = most_changed(clf, queries, y, counted, flips, n_classes, allowed)
    assert found.at_least <= sure
    assert tied <= found.at_most <= found.one_by_one
    assert found.one_by_one == (counted & (clf.certified_flips(queries) < flips)).sum()
    assert found.n_predictions == counted.sum()
    if exact and sure == tied:
        assert (found.at_least, found.at_most) == (sure, sure)
    attacked = y.copy()
    attacked[found.rows] = found.labels
    assert (attacked != y).sum() == len(found.rows) <= flips
    if len(set(attacked)) == n_classes:
        after = clf.fit(X, attacked).predict(queries)
        assert ((after != clf.fit(X, y).predict(queries)) & counted).sum() >= found.at_least


def test_one_attack_changes_fewer_predictions_than_one_attack_each():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 2)) + 1.5 * y[:, None]
    clf = CertifiedKernelClassifier().fit(X, y)
    found = clf.collective_certificate(X, 3, time_limit=120)  # seconds: a busy machine is slow
    assert found.exact
    assert 0 < found.at_most < found.one_by_one
    assert "together" in repr(found)
    loose = clf.collective_certificate(X, 3, time_limit=0)
    assert loose.at_least <= found.at_least <= found.at_most <= loose.at_most < loose.one_by_one


def test_a_tie_counts_as_changed_by_any_flips():
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    clf = CertifiedKernelClassifier(gamma=1.0).fit(X, y)
    between = np.zeros((3, 1))
    assert (clf.certified_flips(between) == -1).all()
    assert clf.collective_certificate(between, 1, time_limit=0).at_most == 3


def test_bad_arguments_are_named():
    X, y = np.arange(12.0)[:, None], np.arange(12) // 6
    clf = CertifiedKernelClassifier().fit(X, y)
    for flips in (-1, 1.5):
        refuses(r"flips=.* must be a whole number", clf.collective_certificate, X, flips)
    refuses(r"X has 12 rows, y has shape \(3,\)", clf.collective_certificate, X, 1, y[:3])
    small = clf.set_params(max_memory=2000)
    with pytest.raises(ValueError, match="more than 6 predictions can be changed, which is what max_memory=2000 holds"):
        small.collective_certificate(X, 9)
