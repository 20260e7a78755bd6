"""Judgements of labels that had no say in them: out-of-fold scores, neighbours' votes, and their sum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from floral_learn.core.evidence import deal_folds, neighbour_votes, out_of_fold, support_of_labels
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
    monkeypatch.setattr("floral_learn.core.evidence._TILE", 7)
    np.testing.assert_array_equal(neighbour_votes(GRAM, Y, 2, 5, np.arange(len(Y))), whole)


def test_a_low_rank_gram_gives_the_same_evidence():
    kernel = Kernel("rbf", gamma=1.0)
    low = LowRankGram(X, kernel, len(X), 0.0, np.random.default_rng(0), "float64")
    fold = deal_folds(Y, 5, np.random.default_rng(0))
    pair = []
    for gram in (GRAM, low):
        scores = out_of_fold(gram, Y, np.ones(len(Y)), ETA, fold, rounds=100)
        pair.append(support_of_labels(scores, neighbour_votes(gram, Y, 2, 9, np.arange(len(Y))), Y))
    assert (np.abs(pair[0] - pair[1]) < 1e-3).mean() > 0.95  # a near tie may choose another neighbour


def test_support_runs_from_minus_two_to_two():
    scores = np.array([[3.0], [-3.0], [0.25]])
    votes = np.array([[0.0, 1.0], [0.0, 1.0], [0.5, 0.5]])
    np.testing.assert_allclose(support_of_labels(scores, votes, np.array([1, 1, 1])), [2.0, 0.0, 0.25])
    np.testing.assert_allclose(support_of_labels(scores, votes, np.array([0, 0, 0])), [-2.0, 0.0, -0.25])
