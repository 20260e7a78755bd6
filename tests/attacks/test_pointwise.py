"""Attack meets certificate: one flip more than certified turns a row, and nothing within the radius does."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics.pairwise import rbf_kernel

from floral_learn import CertifiedKernelClassifier, poison
from floral_learn.attacks import ATTACKS

GAMMA, RIDGE = 0.7, 3.0


def moons():
    X, y = make_moons(190, noise=0.25, random_state=0)
    return X[:150], y[:150], X[150:]


def victim(**options):
    return CertifiedKernelClassifier(gamma=GAMMA, ridge=RIDGE, **options)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_row_needs_exactly_one_flip_more_than_certified(n_classes):
    X, y, queries = moons()
    if n_classes == 3:
        rows, y = make_blobs(180, centers=3, cluster_std=2.5, random_state=1)
        X, y, queries = rows[:150], y[:150], rows[150:]
    clf = victim().fit(X, y)
    flips, before = clf.certified_flips(queries), clf.predict(queries)
    for j in range(len(queries)):
        result = poison(X, y, attack="pointwise", budget=150, target=queries[[j]], surrogate=victim())
        assert len(result.indices) == flips[j] + 1
        assert "1 of 1 targets are turned" in result.stopped_early
        assert victim().fit(X, result.y).predict(queries[[j]])[0] != before[j]
        if flips[j] > 0:
            short = poison(X, y, attack="pointwise", budget=int(flips[j]), target=queries[[j]], surrogate=victim())
            assert victim().fit(X, short.y).predict(queries[[j]])[0] == before[j]


def test_none_of_a_hundred_thousand_attacks_within_the_radius_turns_a_row():
    X, y, queries = moons()
    signs = 2.0 * y - 1
    flips, sign = victim().fit(X, y).certified_flips(queries), np.sign(victim().fit(X, y).decision_function(queries))
    assert len(set(flips)) > 5
    # a(x) by an inverse, without the library
    kernel = lambda A, B: rbf_kernel(A, B, gamma=GAMMA) + 1  # noqa: E731
    a = kernel(queries, X) @ np.linalg.inv(kernel(X, X) + RIDGE * np.eye(150))
    rng = np.random.default_rng(0)
    gains = a * signs * sign[:, None]
    tried = 0
    for batch in range(50):
        size, row = rng.integers(1, flips.max() + 1, size=2000), rng.integers(0, len(queries), size=2000)
        # Half at random; half adaptive: the best flips of a random row (at its own radius), some of them exchanged.
        rank = (
            rng.random((2000, 150))
            if batch % 2
            else -gains[row] + rng.exponential(0.02 * batch / 50, (2000, 150)) * 0.1
        )
        size = size if batch % 2 else np.maximum(flips[row], 1)
        place = np.argsort(np.argsort(rank, axis=1), axis=1)
        labels = np.where(place < size[:, None], -signs, signs)
        same = np.sign(labels @ a.T) == sign
        assert same[size[:, None] <= flips].all()
        tried += len(labels)
    assert tried == 100_000


@pytest.mark.parametrize("attack", ["random", "farthest", "near-boundary", "alfa-tilt", "pointwise"])
def test_no_attack_of_the_library_turns_what_is_certified_against_its_budget(attack):
    X, y, queries = moons()
    clf = victim().fit(X, y)
    flips, before = clf.certified_flips(queries), clf.predict(queries)
    for budget in (2, 5, 10):
        poisoned = poison(X, y, attack=attack, budget=budget, random_state=0).y
        sure = flips >= budget
        assert sure.any()
        np.testing.assert_array_equal(victim().fit(X, poisoned).predict(queries)[sure], before[sure])


def test_several_rows_are_turned_cheapest_first_within_one_budget():
    X, y, queries = moons()
    clf = victim().fit(X, y)
    flips, before = clf.certified_flips(queries), clf.predict(queries)
    result = poison(X, y, attack="pointwise", budget=30, target=queries, surrogate=victim())
    after = victim().fit(X, result.y).predict(queries)
    assert len(result.indices) == 30
    assert result.details["turned"] >= 2
    assert after[flips.argmin()] != before[flips.argmin()]
    assert (after != before).sum() == result.details["turned"]


def test_rows_by_number_classes_masks_and_limits():
    X, y, _ = moons()
    clf = victim().fit(X, y)
    by_number = poison(X, y, attack="pointwise", budget=150, target=[7], surrogate=victim())
    assert len(by_number.indices) == clf.certified_flips(X[[7]])[0] + 1
    one_class = poison(X, y, attack="pointwise", budget=10, target=1, surrogate=victim())
    assert (y[one_class.indices] == 1).all()
    masked = poison(X, y, attack="pointwise", budget=5, target=[7], mask=np.arange(75), class_limits={0: 1, 1: 4})
    assert masked.indices.max() < 75
    assert (y[masked.indices] == 0).sum() <= 1
    with pytest.raises(ValueError, match="must be a CertifiedKernelClassifier"):
        poison(X, y, attack="pointwise", surrogate=ATTACKS)
