"""alfa descends its objective and finds the global optimum of tiny problems; costs are respected."""

from itertools import combinations

import numpy as np
import pytest
from refusals import refuses
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.svm import SVC

from floral_learn.attacks import Alfa, poison, surrogates


def tiny(seed, n=10):
    rng = np.random.default_rng(seed)
    signs = np.where(np.arange(n) < n // 2, 1.0, -1.0)
    X = rng.normal(size=(n, 2))
    X[:, 0] += 1.2 * signs
    return X, signs


def objective(gram, signs, flips, C, clean):
    """Written out from the paper: 1/2 |w|^2 + C sum (tainted loss - clean model's loss) on the tainted labels."""
    tainted = signs.copy()
    tainted[list(flips)] *= -1
    fit = surrogates.fit_dual(gram, tainted, C)
    losses = np.maximum(0, 1 - tainted * fit.values) - np.maximum(0, 1 - tainted * clean.values)
    return fit.beta @ gram @ fit.beta / 2 + C * losses.sum()


@pytest.mark.parametrize("seed", range(8))
def test_with_many_starts_alfa_equals_brute_force_over_all_flip_sets(seed):
    X, signs = tiny(seed)
    gram, C = rbf_kernel(X, gamma=0.5), 1.0
    clean = surrogates.fit_dual(gram, signs, C)
    found = {s: objective(gram, signs, s, C, clean) for s in combinations(range(10), 3)}
    result = Alfa(budget=3, C=C, gamma=0.5, n_init=50, random_state=seed).poison(X, signs)
    assert result.details["objective"] == pytest.approx(min(found.values()), abs=1e-3)
    assert found[tuple(sorted(result.indices.tolist()))] == pytest.approx(min(found.values()), abs=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_the_default_starts_come_within_a_fifth_of_the_range_of_brute_force(seed):
    X, signs = tiny(seed)
    gram = rbf_kernel(X, gamma=0.5)
    clean = surrogates.fit_dual(gram, signs, 1.0)
    values = [objective(gram, signs, s, 1.0, clean) for s in combinations(range(10), 3)]
    result = Alfa(budget=3, C=1.0, gamma=0.5, random_state=seed).poison(X, signs)
    assert result.details["objective"] <= min(values) + 0.2 * (max(values) - min(values))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_every_round_lowers_the_objective_until_the_flips_stay(kernel):
    X, y = make_moons(150, noise=0.2, random_state=0)
    result = Alfa(budget=0.2, C=1.0, kernel=kernel, n_init=1, random_state=0).poison(X, y)
    history = np.array(result.details["history"])
    assert result.details["converged"]
    assert len(history) > 1
    scale = np.abs(history).max()
    assert (np.diff(history) <= 1e-3 * scale).all()  # up to libsvm's own tolerance


def test_one_start_is_chosen_by_the_lowest_objective():
    X, y = make_moons(80, noise=0.3, random_state=0)
    result = Alfa(budget=0.2, n_init=6, random_state=0).poison(X, y)
    assert result.details["objective"] == min(result.details["objectives"])
    assert len(result.details["objectives"]) == 6


def test_an_svm_on_picked_copies_is_the_weighted_svm_on_the_doubled_set():
    X, signs = tiny(3)
    flips = np.array([1, 6, 7])
    tainted = signs.copy()
    tainted[flips] *= -1
    gram = rbf_kernel(X, gamma=0.5)
    doubled = np.tile(gram, (2, 2))
    weights = np.concatenate([tainted == signs, tainted != signs]).astype(float)
    model = SVC(kernel="precomputed", C=2.0)
    model.fit(doubled, np.concatenate([signs, -signs]), sample_weight=np.maximum(weights, 1e-9))
    expected = model.decision_function(doubled[:10])
    np.testing.assert_allclose(surrogates.fit_dual(gram, tainted, 2.0).values, expected, atol=2e-3)


def test_the_kernel_is_the_one_asked_for():
    X, y = make_moons(60, noise=0.2, random_state=0)
    signs = 2.0 * y - 1
    clean = surrogates.fit_dual(linear_kernel(X), signs, 2.0)
    result = Alfa(budget=6, kernel="linear", C=2.0, random_state=0).poison(X, y)
    again = objective(linear_kernel(X), signs, result.indices, 2.0, clean)
    assert result.details["objective"] == pytest.approx(again, rel=1e-6)


@pytest.mark.parametrize("name", ["alfa", "alfa-tilt"])
def test_an_svc_surrogate_gives_its_settings(name):
    X, y = make_moons(60, noise=0.2, random_state=0)
    by_surrogate = poison(X, y, attack=name, budget=6, random_state=0, surrogate=SVC(C=3.0, gamma=2.0))
    by_settings = poison(X, y, attack=name, budget=6, random_state=0, C=3.0, gamma=2.0)
    np.testing.assert_array_equal(by_surrogate.indices, by_settings.indices)


def test_another_surrogate_changes_the_flips():
    X, y = make_moons(100, noise=0.2, random_state=0)
    svm = poison(X, y, attack="alfa", budget=20, random_state=0, C=1.0)
    linear = poison(X, y, attack="alfa", budget=20, random_state=0, surrogate=LogisticRegression())
    assert set(svm.indices) != set(linear.indices)


def test_a_gram_matrix_over_the_memory_limit_is_refused_with_its_size(monkeypatch):
    X, y = make_moons(100, random_state=0)
    monkeypatch.setattr(surrogates, "MAX_BYTES", 50_000)
    refuses(r"100 rows takes 0\.0 GB", Alfa(budget=2).poison, X, y, error=MemoryError)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0}, "C=0 must be positive"),
        ({"kernel": "cosine"}, "kernel='cosine' must be"),
        ({"gamma": -1.0}, "gamma=-1.0 must be"),
        ({"gamma": "big"}, "gamma='big' must be"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"n_init": 0}, "n_init=0"),
    ],
)
def test_wrong_settings_are_named(params, message):
    X, y = make_moons(20, random_state=0)
    refuses(message, Alfa(budget=2, **params).poison, X, y)
