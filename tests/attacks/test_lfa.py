"""lfa: with a fit for every flip it is the greedy of its definition; with few it chooses nearly the same flips."""

from itertools import combinations

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import make_blobs, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from floral_learn.attacks import LabelFlipping
from floral_learn.attacks.lfa import RidgeScreen, SVCScreen
from floral_learn.attacks.surrogates import class_scores

EVERY = {"n_check": 200, "n_first": 200}  # flips are retrained for, not estimated


def tiny(seed, n=10):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < n // 2, 1, -1)
    y_val = rng.choice([-1, 1], 200)
    X, X_val = rng.normal(size=(n, 2)), rng.normal(size=(200, 2))
    X[:, 0] += 1.2 * y
    X_val[:, 0] += 1.2 * y_val
    return X, y, X_val, y_val


def retrained(X, y, X_val, y_val, flips):
    """Validation error and hinge loss of an SVC trained with these labels flipped."""
    tainted = y.copy()
    tainted[list(flips)] *= -1
    values = SVC(C=10.0).fit(X, tainted).decision_function(X_val)
    return np.mean(np.where(values > 0, 1, -1) != y_val), np.maximum(0, 1 - y_val * values).mean()


@pytest.mark.parametrize("seed", range(6))
def test_with_a_fit_for_every_flip_it_is_the_greedy_of_the_definition(seed):
    X, y, X_val, y_val = tiny(seed)
    flips = []
    for _ in range(3):
        rest = [row for row in range(10) if row not in flips]
        flips.append(max(rest, key=lambda row: retrained(X, y, X_val, y_val, [*flips, row])))
    result = LabelFlipping(budget=3, **EVERY, surrogate=SVC(C=10.0), X_val=X_val, y_val=y_val).poison(X, y)
    assert result.indices.tolist() == flips
    assert result.details["validation_error"][-1] == retrained(X, y, X_val, y_val, flips)[0]
    assert result.details["n_fits"] == 1 + 10 + 9 + 8


def test_against_brute_force_over_all_flip_sets():
    single, ranks = [], []
    for seed in range(12):
        X, y, X_val, y_val = tiny(seed)
        for k in (1, 3):
            errors = np.array([retrained(X, y, X_val, y_val, s)[0] for s in combinations(range(10), k)])
            result = LabelFlipping(budget=k, **EVERY, surrogate=SVC(C=10.0), X_val=X_val, y_val=y_val).poison(X, y)
            reached = result.details["validation_error"][-1]
            assert reached <= errors.max() + 1e-12
            (single if k == 1 else ranks).append(np.mean(errors <= reached + 1e-12))
    assert min(single) == 1.0  # one flip: greedy is optimal
    assert min(ranks) >= 0.9  # three flips: never outside the best tenth of all sets,
    assert np.mean(np.array(ranks) == 1.0) >= 0.5  # and mostly the best


@pytest.mark.parametrize("C", [1.0, pytest.param(10.0, marks=pytest.mark.slow)])
def test_few_fits_choose_nearly_the_same_flips_as_a_fit_for_every_flip(C):
    shared_flips, damage = [], []
    for seed in range(5):
        X, y = make_moons(60, noise=0.2, random_state=seed)
        X_val, y_val = make_moons(200, noise=0.2, random_state=seed + 50)
        settings = {"budget": 6, "surrogate": SVC(C=C), "X_val": X_val, "y_val": y_val}
        exact = LabelFlipping(**EVERY, **settings).poison(X, y)
        fast = LabelFlipping(n_first=60, n_check=20, **settings).poison(X, y)
        assert fast.details["n_fits"] < exact.details["n_fits"] / 2
        shared_flips.append(len(set(exact.indices) & set(fast.indices)) / 6)
        damage.append(fast.details["validation_error"][-1] - exact.details["validation_error"][-1])
    assert np.mean(shared_flips) >= 0.85
    assert np.mean(damage) >= -0.01


def test_without_first_pass_the_estimates_alone_find_damaging_flips():
    X, y = make_moons(150, noise=0.2, random_state=0)
    X_val, y_val = make_moons(200, noise=0.2, random_state=1)
    shared = {"budget": 20, "surrogate": SVC(C=1.0), "X_val": X_val, "y_val": y_val, "n_first": 4}
    estimated = LabelFlipping(n_check=4, **shared).poison(X, y).details["validation_error"][-1]
    rng = np.random.default_rng(0)
    random_flips = []
    for _ in range(5):
        tainted = y.copy()
        tainted[rng.permutation(150)[:20]] ^= 1
        random_flips.append(np.mean(SVC(C=1.0).fit(X, tainted).predict(X_val) != y_val))
    assert estimated > max(random_flips) + 0.02


def test_the_svm_estimate_is_exact_while_the_free_support_vectors_stay_the_same():
    compared, compared_free = 0, 0
    for seed in (0, 1, 3):
        rng = np.random.default_rng(seed)
        X, X_val = rng.normal(size=(40, 2)), np.random.default_rng(9).normal(size=(50, 2))
        codes = (X[:, 0] + 0.8 * rng.normal(size=40) > 0).astype(int)
        for C in (1.0, 5.0):
            model = SVC(C=C, gamma=0.5, tol=1e-10).fit(X, codes)
            estimate = SVCScreen(model, X, X_val).value_changes(model, codes, np.arange(40))
            for row in range(40):
                flipped = codes.copy()
                flipped[row] ^= 1
                after = SVC(C=C, gamma=0.5, tol=1e-10).fit(X, flipped)
                before_status, after_status = status(model, C), status(after, C)
                was_free = before_status[row] == "free"
                before_status[row] = after_status[row] = "changed"
                if (before_status == after_status).all():
                    true = after.decision_function(X_val) - model.decision_function(X_val)
                    np.testing.assert_allclose(estimate[:, row], true, atol=1e-6)
                    compared += 1
                    compared_free += was_free
    assert compared >= 5
    assert compared_free >= 2


def status(model, C):
    """Each row's dual: at zero, free, or at its bound."""
    alpha = np.zeros(40)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return np.where(alpha < 1e-6 * C, "zero", np.where(alpha > (1 - 1e-6) * C, "bound", "free")).astype(object)


def test_the_ridge_estimate_equals_refitting_the_ridge():
    X, y = make_blobs(40, centers=3, cluster_std=3.0, random_state=0)
    X_val, y_val = make_blobs(30, centers=3, cluster_std=3.0, random_state=0)
    candidates = [(4, (y[4] + 1) % 3), (9, (y[9] + 2) % 3)]
    screen = RidgeScreen(X, X_val, 3)
    model = LogisticRegression().fit(X, y)
    estimates = screen(model, class_scores(model, X_val, 3), y, candidates, y_val)
    for (row, code), estimate in zip(candidates, estimates, strict=True):
        flipped = y.copy()
        flipped[row] = code
        values = screen.smoother @ np.eye(3)[flipped]
        assert np.floor(estimate * len(y_val) + 1e-9) == (values.argmax(axis=1) != y_val).sum()


def test_more_classes_try_every_other_class():
    X, y = make_blobs(30, centers=3, cluster_std=2.0, random_state=0)
    result = LabelFlipping(budget=1, **EVERY, surrogate=LogisticRegression(), random_state=0).poison(X, y)
    assert result.details["n_fits"] == 1 + 30 * 2


def test_rows_are_never_flipped_twice_and_the_end_is_explained():
    X, y = make_moons(12, noise=0.1, random_state=0)
    result = LabelFlipping(budget=12, n_check=2, random_state=0).poison(X, y)
    assert len(set(result.indices.tolist())) == len(result.indices)
    if len(result.indices) < 12:
        assert "leaves one class only" in result.stopped_early
    one_sided = LabelFlipping(budget=6, n_check=2, random_state=0, mask=y == 1).poison(X, y)
    assert len(one_sided.indices) == 5  # the sixth would leave one class
    assert one_sided.stopped_early == "any further flip leaves one class only, after 5 of 6 flips"
    assert one_sided.budget == 6


def test_parallel_fits_choose_the_same_flips():
    X, y = make_moons(40, noise=0.2, random_state=0)
    alone = LabelFlipping(budget=3, **EVERY, random_state=0).poison(X, y)
    with parallel_config(backend="threading"):
        together = LabelFlipping(budget=3, **EVERY, random_state=0, n_jobs=2).poison(X, y)
    np.testing.assert_array_equal(alone.indices, together.indices)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_check": 0}, "n_check=0"),
        ({"validation_fraction": 0.0}, r"validation_fraction=0\.0 must be"),
        ({"X_val": [[0.0, 1.0]]}, "X_val and y_val must be given together"),
        ({"X_val": [[0.0]], "y_val": [1]}, "do not fit X with 2 columns"),
        ({"X_val": [[0.0, 1.0]], "y_val": [7]}, r"y_val has labels that y has not: \[7\]"),
    ],
)
def test_wrong_settings_are_named(params, message):
    X, y = make_moons(20, random_state=0)
    with pytest.raises(ValueError, match=message):
        LabelFlipping(budget=2, **params).poison(X, y)
