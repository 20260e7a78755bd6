"""Judgements of labels that had no say in them: out-of-fold scores, neighbours' votes, and their sum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from floral_learn.core.evidence import (
    SuggestedFlips,
    class_shares,
    deal_folds,
    neighbour_votes,
    out_of_fold,
    support_of_labels,
)
from floral_learn.core.game import Game, solve, step_schedule
from floral_learn.core.gram import DenseGram
from floral_learn.core.kernels import Kernel
from floral_learn.core.low_rank import LowRankGram

X, Y = make_moons(120, noise=0.2, random_state=0)
GRAM = DenseGram(rbf_kernel(X, gamma=1.0))
ETA = 1 / GRAM.lambda_max(200, 1e-10, centred=True)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=5, max_size=60), st.integers(2, 5))
def test_every_class_is_spread_evenly_over_the_folds(labels, folds):
    labels = np.array(labels)
    fold = deal_folds(labels, folds, np.random.default_rng(0))
    sizes = np.bincount(fold, minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    for c in np.unique(labels):
        counts = np.bincount(fold[labels == c], minlength=folds)
        assert counts.max() - counts.min() <= 1


def test_out_of_fold_scores_are_those_of_svms_that_never_saw_the_row():
    fold = deal_folds(Y, 4, np.random.default_rng(1))
    found = out_of_fold(GRAM, Y, np.ones(len(Y)), ETA, fold, rounds=5000)[:, 0]
    for number in range(4):
        held = fold == number
        svc = SVC(kernel="precomputed", C=1.0, tol=1e-8).fit(GRAM.matrix[np.ix_(~held, ~held)], Y[~held])
        np.testing.assert_allclose(found[held], svc.decision_function(GRAM.matrix[np.ix_(held, ~held)]), atol=5e-3)


def test_a_label_has_no_say_in_its_own_judgement():
    fold = deal_folds(Y, 5, np.random.default_rng(0))
    other = Y.copy()
    other[7] = 1 - other[7]
    before, after = (out_of_fold(GRAM, y, np.ones(len(Y)), ETA, fold, rounds=50) for y in (Y, other))
    same_fold = fold == fold[7]
    np.testing.assert_array_equal(before[same_fold], after[same_fold])
    assert np.abs(before[~same_fold] - after[~same_fold]).max() > 1e-3
    votes = [neighbour_votes(GRAM, y, 2, 5, np.arange(len(Y)))[7] for y in (Y, other)]
    np.testing.assert_array_equal(votes[0], votes[1])


def test_out_of_fold_scores_with_three_classes_have_a_column_each():
    X3, y3 = make_blobs(90, centers=3, cluster_std=0.5, random_state=0)
    gram = DenseGram(rbf_kernel(X3, gamma=0.5))
    fold = deal_folds(y3, 3, np.random.default_rng(0))
    scores = out_of_fold(gram, y3, np.ones(90), 1 / gram.lambda_max(centred=True), fold, n_classes=3)
    assert scores.shape == (90, 3)
    assert (scores.argmax(1) == y3).mean() > 0.95


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_votes_are_those_of_nearest_neighbours(kernel):
    values = rbf_kernel(X, gamma=1.0) if kernel == "rbf" else linear_kernel(X)
    found = neighbour_votes(DenseGram(np.ascontiguousarray(values)), Y, 2, 7, np.arange(len(Y)))
    knn = KNeighborsClassifier(7).fit(X, Y)
    near = knn.kneighbors(return_distance=False)  # of the training rows, themselves left out
    np.testing.assert_allclose(found[:, 1], Y[near].mean(axis=1))


def test_votes_need_no_more_columns_than_a_tile(monkeypatch):
    whole = neighbour_votes(GRAM, Y, 2, 5, np.arange(len(Y)))
    monkeypatch.setattr("floral_learn.core.evidence._TILE", 11)
    np.testing.assert_array_equal(neighbour_votes(GRAM, Y, 2, 5, np.arange(len(Y))), whole)


def test_a_low_rank_gram_gives_the_same_evidence():
    kernel = Kernel("rbf", gamma=1.0)
    low = LowRankGram(X, kernel, len(X), 0.0, np.random.default_rng(0), "float64")
    fold = deal_folds(Y, 5, np.random.default_rng(0))
    pair = []
    for gram in (GRAM, low):
        scores = out_of_fold(gram, Y, np.ones(len(Y)), ETA, fold, rounds=100)
        votes = neighbour_votes(gram, Y, 2, 9, np.arange(len(Y)))
        pair.append(support_of_labels(class_shares(scores, votes), Y)[0])
    assert (np.abs(pair[0] - pair[1]) < 1e-3).mean() > 0.95  # a near tie may choose another neighbour


def test_shares_are_the_mean_of_votes_and_of_sigmoid_scores():
    shares = class_shares(np.array([[0.0], [50.0]]), np.array([[0.5, 0.5], [1.0, 0.0]]))
    np.testing.assert_allclose(shares, [[0.5, 0.5], [0.5, 0.5]])
    three = class_shares(np.array([[0.0, 0.0, 0.0]]), np.array([[1.0, 0.0, 0.0]]))
    np.testing.assert_allclose(three, [[2 / 3, 1 / 6, 1 / 6]])


def test_a_rival_is_held_against_the_average_of_its_own_labels():
    # Class 0 gets 0.4 from its own labels on average (many were taken from it), class 1 gets 0.7 from its own.
    shares = np.array([[0.4, 0.6], [0.4, 0.6], [0.45, 0.55], [0.15, 0.85]])
    support, rival = support_of_labels(shares, np.array([0, 0, 1, 1]))
    np.testing.assert_allclose(support, [0.1, 0.1, -0.05, 0.4])
    np.testing.assert_array_equal(rival, [1, 1, 0, 0])


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_support_is_below_zero_exactly_for_confident_rivals(seed, classes):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(classes), size=30)
    labels = rng.integers(classes, size=30)
    present = np.unique(labels)
    mean = np.array([shares[labels == c, c].mean() if c in present else 2.0 for c in range(classes)])
    support, rival = support_of_labels(shares, labels)
    for i, y in enumerate(labels):
        excess = shares[i] - mean
        against = [c for c in range(classes) if c != y and excess[c] > 0 and excess[c] > excess[y]]
        assert (support[i] < 0) == bool(against)
        if against:
            assert rival[i] in against
    assert (rival != labels).all()


def test_suggested_flips_take_the_given_classes_of_eligible_rows_alone():
    X3, y3 = make_blobs(60, centers=3, cluster_std=2.0, random_state=0)
    gram = DenseGram(rbf_kernel(X3, gamma=0.1))
    eligible = np.arange(60) % 3 == 0
    targets = (y3 + 1) % 3
    seen = []

    class Spy(SuggestedFlips):
        def __call__(self, view, counter):
            flips = super().__call__(view, counter)
            seen.append((flips.points[:, 0], flips.labels[:, 0]))
            return flips

    attacker = Spy(np.full(3, 20), 15, targets=targets)
    steps = step_schedule(1 / gram.lambda_max(centred=True), 20)
    solve(Game(gram, y3, np.ones(60), steps, attacker, n_classes=3, eligible=eligible))
    flipped = [(p, c) for points, classes in seen for p, c in zip(points, classes) if p >= 0]
    assert len(flipped) > 100
    assert all(eligible[p] and c == targets[p] for p, c in flipped)
