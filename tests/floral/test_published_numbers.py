"""Fits of many kinds are those of 344b2d0, flips and duals to 1e-12: moves and deletions move no published number."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

from floral_learn import FloralClassifier
from floral_learn.paper import PaperFloralClassifier

STORED = Path(__file__).parent / "published_numbers.npz"
MOONS, Y = make_moons(160, noise=0.25, random_state=0)
BLOBS, FOUR = make_blobs(160, centers=4, cluster_std=2.0, random_state=0)
ROWS = np.random.default_rng(0).normal(size=(400, 5))
SIGN = (ROWS[:, 0] + ROWS[:, 1] ** 2 > 1).astype(int)
WEIGHT = np.arange(160) % 4 / 2.0
TRUSTED = np.arange(160) % 3 == 0
FITS = {
    "dense": (MOONS, Y, {"budget": 0.2}),
    "weights": (MOONS, Y, {"budget": 0.2, "class_weight": {0: 1.0, 1: 0.5}}),
    "no attacker": (MOONS, Y, {"budget": 0, "C": 2.0}),
    "all rounds": (MOONS, Y, {"budget": 0.3, "flips": 5, "tol": None, "n_rounds": 70, "learning_rate": 0.02}),
    "low rank": (ROWS, SIGN, {"gram": 40}),
    "chunked": (ROWS, SIGN, {"gram": "dense", "kernel": "poly", "coef0": 1.0}),
    "linear": (ROWS, SIGN, {"kernel": "linear"}),
    "far away": (ROWS[:150] + 1e6, SIGN[:150], {}),
    "pairs": (BLOBS, FOUR, {"budget": 0.2}),
    "pairs, low rank": (BLOBS, FOUR, {"budget": 0.2, "gram": 30}),
    "pairs, no attacker": (BLOBS, FOUR, {"budget": 0}),
    "one-vs-rest": (BLOBS, FOUR, {"budget": 0.2, "multi_class": "one-vs-rest"}),
    "paper": (MOONS, Y, {"budget": 0.2, "decay": (0.5, 20), "warm_up": 3, "n_rounds": 60}),
    "paper, four classes": (BLOBS, FOUR, {"budget": {0: 6, 1: 4, 2: 0, 3: 0.1}, "flips": 4, "n_rounds": 60}),
    "paper, to the next class": (
        BLOBS,
        FOUR,
        {"budget": 0.1, "n_rounds": 40, "flip_distribution": np.roll(np.eye(4), 1, axis=1), "projection": "exact"},
    ),
}


def fitted(name, rows=None):
    X, y, params = FITS[name]
    made = PaperFloralClassifier if name.startswith("paper") else FloralClassifier
    more = {"sample_weight": WEIGHT, "trusted": TRUSTED} if name == "weights" else {}
    return made(random_state=7, **params).fit(X if rows is None else rows, y, **more)


def numbers(clf):
    flips = clf.history_["flips"]
    return {
        "flips": np.sort(flips.reshape(len(flips), -1), axis=1).astype(np.int16),
        "dual": clf.dual_coef_,
        "bias": clf.intercept_,
        "support": clf.support_.astype(np.int16),
        "flip_rate": clf.flip_rate_,
        "scores": clf.record_.scores,
        "residual": clf.history_["residual"][-1],
    }


def check(name, clf):
    stored = np.load(STORED)
    for key, values in numbers(clf).items():
        before = stored[f"{name}/{key}"]
        if values.dtype.kind == "i":
            np.testing.assert_array_equal(values, before, err_msg=key)
        else:
            np.testing.assert_allclose(values, before, rtol=1e-12, atol=1e-12 * max(1, np.abs(before).max()))


@pytest.mark.parametrize("name", FITS)
def test_a_fit_has_the_flips_and_duals_that_were_published(name):
    check(name, fitted(name))


@pytest.mark.parametrize("name", ["dense", "low rank", "pairs", "one-vs-rest", "weights"])
def test_so_has_a_fit_of_a_tensor(name):
    torch = pytest.importorskip("torch")
    rows = torch.as_tensor(FITS[name][0])
    _, y, params = FITS[name]
    more = {"sample_weight": WEIGHT, "trusted": TRUSTED} if name == "weights" else {}
    check(name, FloralClassifier(random_state=7, **params, device="cpu").fit(rows, y, **more))
