"""The paper's three algorithms in plain numpy, written from its listings, replay what PaperFloralClassifier played.

The flips are those that the classifier recorded, so that a replay draws nothing. Everything else is done again, line by
line, by no code of the library.
"""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

from floral_learn.paper import PaperFloralClassifier

ETA, DECAY, ROUNDS = 0.05, (0.5, 20), 60
CYCLE = np.roll(np.eye(3), 1, axis=1)  # q: a flipped label of class c becomes class c + 1


def gram(X, gamma=1.0):
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=-1))


def algorithm_2(z, y, C, rounds=100_000):
    """Project z: the listing with two corrections.

    Line 10 sums the clipped duals; its derivation in the appendix has the unclipped z. A full step can go round in a
    circle; half of one is taken.
    """
    mu = 0.0
    for _ in range(rounds):
        dual = np.clip(z - mu * y, 0, C)
        full, inside = dual >= C, (dual > 0) & (dual < C)
        size = max(inside.sum(), 1)
        new = (size - inside.sum()) / size * mu + (C * y[full].sum() + (z * y)[inside].sum()) / size
        if abs(new - mu) <= 1e-15 * max(1, abs(mu)):
            break
        mu = (mu + new) / 2
    return np.clip(z - mu * y, 0, C)


def step(K, dual, y, C, number):
    """Lines 5 and 6 of Algorithm 1 in round `number`, from 0."""
    eta = ETA * DECAY[0] ** (number // DECAY[1])
    return algorithm_2(dual - eta * (y * (K @ (y * dual)) - 1), y, C)


def algorithm_1(K, y, C, flips):
    """Signed duals of the last round, with the labels of that round; and the duals before each round."""
    dual, before = np.zeros(len(y)), []
    for number, points in enumerate(flips):
        before.append(dual)
        told = y.copy()
        told[points[points >= 0]] *= -1
        dual = step(K, dual, told, C, number)
    return dual * told, before


def algorithm_3(K, codes, C, flips, q):
    """The same for several classes: one column per class, labels redrawn from a `q` that leaves no choice."""
    duals, before = np.zeros((len(codes), len(q))), []
    for number, points in enumerate(flips):
        before.append(duals)
        told = codes.copy()
        chosen = points[points >= 0]
        told[chosen] = q[codes[chosen]].argmax(axis=1)
        signs = np.where(told[:, None] == np.arange(len(q)), 1.0, -1.0)
        duals = np.column_stack([step(K, duals[:, m], signs[:, m], C, number) for m in range(len(q))])
    return duals * signs, before


def signed_duals(clf, n):
    weights = np.zeros((n, len(clf.dual_coef_)))
    weights[clf.support_] = clf.dual_coef_.T
    return weights


def settings(C, projection):
    return {
        "kernel": "precomputed", "C": C, "n_rounds": ROUNDS, "learning_rate": ETA, "decay": DECAY, "random_state": 0,
        "projection": projection,
    }  # fmt: skip


def assert_among_the_largest(points, dual, budget):
    """The flipped points are among the `budget` largest duals: as compared, with 16 bits, and positive."""
    points = points[points >= 0]
    assert (dual[points] > 0).all()
    assert (dual[points] >= np.sort(dual)[-budget] * (1 - 2.0**-15)).all()


@pytest.mark.parametrize("projection", ["fixed_point", "exact"])
@pytest.mark.parametrize("C", [0.3, 10.0])
def test_algorithm_1_and_2(C, projection):
    X, y = make_moons(60, noise=0.25, random_state=0)
    K, signs = gram(X), 2.0 * y - 1
    clf = PaperFloralClassifier(budget=12, flips=6, warm_up=3, **settings(C, projection)).fit(K, y)
    flips = clf.history_["flips"]
    weights, before = algorithm_1(K, signs, C, flips)
    np.testing.assert_allclose(signed_duals(clf, 60)[:, 0], weights, rtol=0, atol=1e-12)
    assert clf.history_["projected"].mean() > 0.9, "Algorithm 2 itself, not the exact root in its place"
    assert (flips[:3] == -1).all()
    assert all(len(set(points)) == 6 for points in flips[3:].tolist())
    for points, dual in zip(flips[3:], before[3:], strict=True):
        assert_among_the_largest(points, dual, 12)


@pytest.mark.parametrize("C", [0.3, 10.0])
def test_algorithm_3(C):
    X, y = make_blobs(60, centers=3, cluster_std=3.0, random_state=0)
    K, budgets = gram(X, 0.1), {0: 8, 1: 5, 2: 3}
    clf = PaperFloralClassifier(budget=budgets, flips=4, flip_distribution=CYCLE, **settings(C, "fixed_point"))
    flips = clf.fit(K, y).history_["flips"]
    weights, before = algorithm_3(K, y, C, flips, CYCLE)
    np.testing.assert_allclose(signed_duals(clf, 60), weights, rtol=0, atol=1e-12)
    for points, duals in zip(flips[1:], before[1:], strict=True):
        assert len(set(points.tolist())) == 4
        least = [np.sort(duals[:, m])[-budgets[m]] * (1 - 2.0**-15) for m in range(3)]
        assert ((duals[points] >= least) & (duals[points] > 0)).any(axis=1).all()
