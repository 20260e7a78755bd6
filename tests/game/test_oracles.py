"""Attacked rounds against oracles that share no code with the game: plain numpy, a QP, and games stored earlier."""

from pathlib import Path

import numpy as np
import pytest
from qpsolvers import solve_qp
from scipy import sparse
from sklearn.datasets import make_blobs, make_moons

from floral_learn.game import DenseGram, Game, Kernel, LargestLoss, LowRankGram, RandomizedTopK, solve, step_schedule
from floral_learn.game.pairs import PairedGram, Pairs

X, Y = make_moons(60, noise=0.25, random_state=0)
K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))


def projected(z, y, cap):
    """argmin |a - z|^2 s.t. y'a = 0, 0 <= a <= cap, by an interior point solver."""
    n = len(z)
    exact = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}
    P, A = sparse.eye_array(n, format="csc"), sparse.csc_array(y[None, :])
    return solve_qp(P, -z, A=A, b=np.zeros(1), lb=np.zeros(n), ub=cap, solver="clarabel", **exact)


def replayed(K, given, cap, steps, flips):
    """lambda_T by the paper's listing, with the flips as given."""
    dual = np.zeros(len(K))
    for eta, points in zip(steps, flips):
        y = given.copy()
        y[points[points >= 0]] *= -1
        dual = projected(dual - eta * (y * (K @ (y * dual)) - 1), y, cap)
    return dual, y


@pytest.mark.parametrize("kind", ["dense", "low rank"])
@pytest.mark.parametrize("C", [0.5, 10.0])
def test_every_backend_plays_the_listing(backend, kind, C):
    kernel, steps = Kernel("rbf", gamma=1.0), step_schedule(0.08, 25, (0.5, 10))
    if kind == "dense":
        gram = DenseGram.from_rows(X, kernel, "float64", backend)
    else:
        gram = LowRankGram(X, kernel, 60, 0.0, np.random.default_rng(0), "float64", backend)
    result = solve(Game(gram, Y, np.full(60, C), steps, RandomizedTopK(12, 6), seeds=3))
    flips = result.history["flips"][..., 0]
    dual, y = replayed(K, 2.0 * Y - 1, np.full(60, C), steps, flips)
    np.testing.assert_allclose(result.dual[:, 0], dual, atol=1e-6)
    free = (dual > 1e-6) & (dual < C - 1e-6)
    assert result.bias[0] == pytest.approx(np.mean((y - K @ (y * dual))[free]), abs=1e-5)
    assert (flips[0] == -1).all()
    assert (flips[1:] >= 0).all()


def test_every_backend_flips_only_large_duals_of_the_class_it_may(backend):
    gram = DenseGram.from_rows(X, Kernel("rbf", gamma=1.0), "float64", backend)
    before, caps = [np.zeros(60)], np.array([3, 5])
    attacker = RandomizedTopK(0, 4, class_budget=caps)
    game = Game(gram, Y, np.full(60, 10.0), step_schedule(0.08, 30), attacker, seeds=1, tol=None)
    result = solve(game, callback=lambda state: before.append(backend.numpy(state.dual)[:, 0].copy()))
    for number, points in enumerate(result.history["flips"][..., 0]):
        for c in (0, 1):
            own = points[(points >= 0) & (Y[points.clip(0)] == c)]
            assert len(own) <= caps[c]
            if len(own):  # each is among the largest of its class (16 bits of them)
                cut = np.sort(before[number][c == Y])[-caps[c]]
                assert before[number][own].min() >= cut * (1 - 2**-7)


def test_pairs_are_games_of_two_classes(backend):
    P, labels = make_blobs([20, 26, 30], cluster_std=3.0, random_state=1)
    kernel, steps = Kernel("rbf", gamma=0.1), step_schedule(np.array([0.05, 0.06, 0.07]), 25)
    pairs = Pairs.of(labels, 3)
    base = DenseGram.from_rows(P, kernel, "float64", backend)
    game = Game(
        PairedGram(base, pairs),
        pairs.labels(labels),
        pairs.gather(np.full(76, 2.0), 0.0),
        steps,
        RandomizedTopK(np.array([[8], [8], [8]]), np.array([4, 4, 4])),
        seeds=np.arange(3),
        eligible=pairs.member,
        row_ids=pairs.rows.clip(0),
    )
    result = solve(game)
    full = np.exp(-0.1 * ((P[:, None] - P[None]) ** 2).sum(-1))
    for p, (a, b) in enumerate(pairs.classes):
        rows = np.concatenate([np.flatnonzero(labels == a), np.flatnonzero(labels == b)])
        flips = result.history["flips"][..., p]
        given = np.where(labels[rows] == b, 1.0, -1.0)
        dual, _ = replayed(full[np.ix_(rows, rows)], given, np.full(len(rows), 2.0), steps[:, p], flips)
        np.testing.assert_allclose(result.dual[: len(rows), p], dual, atol=1e-6)
        assert not result.dual[len(rows) :, p].any()
        assert (flips[1:] >= 0).all()


def test_pairs_laid_out_are_pairs_spread_over_all_rows(backend, monkeypatch):
    P, labels = make_blobs([20, 26, 30], cluster_std=3.0, random_state=1)
    kernel = Kernel("rbf", gamma=0.1)
    results = []
    for gram, room in (("dense", 1e8), ("low rank", 1e8), ("dense", 1)):
        monkeypatch.setattr("floral_learn.game.pairs.MAX_BYTES", room)
        pairs = Pairs.of(labels, 3)
        if gram == "dense":
            base = DenseGram.from_rows(P, kernel, "float64", backend)
        else:
            base = LowRankGram(P, kernel, 76, 0.0, np.random.default_rng(0), "float64", backend)
        game = Game(
            PairedGram(base, pairs),
            pairs.labels(labels),
            pairs.gather(np.full(76, 2.0), 0.0),
            step_schedule(np.array([0.05, 0.06, 0.07]), 40),
            RandomizedTopK(0, np.array([3, 3, 3]), class_budget=np.full((3, 2), 3)),
            seeds=np.arange(3),
            eligible=pairs.member,
            row_ids=pairs.rows.clip(0),
        )
        found = solve(game)
        results.append((pairs.spread(found.weights), found.bias))
    for weights, bias in results[1:]:
        np.testing.assert_allclose(weights, results[0][0], atol=1e-9)
        np.testing.assert_allclose(bias, results[0][1], atol=1e-9)


ROWS, LABELS = make_moons(150, noise=0.25, random_state=0)
BLOBS, THREE = make_blobs(90, centers=3, cluster_std=3.0, random_state=1)
WEIGHT = np.linspace(0.5, 2.0, 150)
STORED = {
    "plain": {"cap": 10.0, "eta": 0.02, "attacker": RandomizedTopK(20, 10), "seeds": 7},
    "decay": {"cap": 0.5, "eta": 0.05, "decay": (0.3, 20), "attacker": RandomizedTopK(16, 8), "seeds": 8, "warm_up": 3},
    "weights": {
        "cap": 2.0 * WEIGHT,
        "eta": 0.02,
        "attacker": RandomizedTopK(20, 10),
        "seeds": 9,
        "weight": WEIGHT,
        "eligible": np.arange(150) % 4 > 0,
    },
    "top-k": {"cap": 5.0, "eta": 0.03, "attacker": RandomizedTopK(6, 6), "seeds": 1},
    "largest-loss": {"cap": 5.0, "eta": 0.03, "attacker": LargestLoss(6), "seeds": 1},
    "three classes": {"cap": 5.0, "eta": 0.03, "attacker": RandomizedTopK(12, 6), "seeds": 3, "n_classes": 3},
}


@pytest.mark.parametrize("name", STORED)
def test_games_are_those_of_version_0_1(name, backend):
    # Flips, duals and averages of the first core, before the round was written anew (made at 36452b8).
    settings = dict(STORED[name])
    rows, labels, gamma = (BLOBS, THREE, 0.1) if name == "three classes" else (ROWS, LABELS, 1.0)
    gram = DenseGram.from_rows(rows, Kernel("rbf", gamma=gamma), "float64", backend)
    steps = step_schedule(settings.pop("eta"), 80, settings.pop("decay", None))
    cap = np.broadcast_to(settings.pop("cap"), len(labels))
    result = solve(Game(gram, labels, cap, steps, settings.pop("attacker"), **settings))
    stored = np.load(Path(__file__).parent / "reference_games.npz")
    np.testing.assert_array_equal(np.sort(result.history["flips"][..., 0], axis=1), stored[f"{name}/flips"])
    for key, values in (("dual", result.dual), ("mean", result.mean_weights), ("bias", result.mean_bias)):
        np.testing.assert_allclose(values, stored[f"{name}/{key}"], atol=1e-9, err_msg=key)
