"""The lemmas' constants against plain definitions, their bounds along games, and what diagnose says about a fit."""

import numpy as np
import pytest
from lemma_games import stability, summarise
from refusals import refuses

from floral_learn import FloralClassifier
from floral_learn.paper import PaperFloralClassifier, constants, diagnose, find_equilibrium
from floral_learn.paper.theory import (
    attack,
    gap,
    kappa_prime_y,
    kappa_prime_y_worst,
    kappa_y_proven,
    kappa_z,
    projected,
    solve_dual,
)


def kernel(X, gamma):
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))


GAME = {"learning_rate": "auto", "average": True, "projection": "exact", "random_state": 0}


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    return X, np.where(X[:, 0] > 0, 1.0, -1.0)


@pytest.mark.parametrize("gamma", [0.5, 30.0])
@pytest.mark.parametrize("eta", [0.01, 0.9])
def test_kappa_lambda_equals_the_norms_of_the_matrix_for_any_labels(problem, gamma, eta):
    X, y = problem
    K = kernel(X, gamma)
    found = constants(K, eta)
    matrix = np.eye(30) - eta * np.outer(y, y) * K
    np.testing.assert_allclose(found.kappa_infinity, np.linalg.norm(matrix, np.inf))
    np.testing.assert_allclose(found.kappa_spectral, np.linalg.norm(matrix, 2))


def test_the_named_step_sizes_are_exactly_where_the_constants_reach_one(problem):
    K = kernel(problem[0], 300.0)
    found = constants(K, 0.1)
    for norm, edge in (("kappa_infinity", found.eta_infinity), ("kappa_spectral", found.eta_spectral)):
        assert getattr(constants(K, 0.999 * edge), norm) < 1
        assert getattr(constants(K, 1.001 * edge), norm) > 1


def test_a_smooth_kernel_has_no_small_enough_step(problem):
    K = kernel(problem[0], 0.1)
    found = constants(K, 1e-6)
    assert found.eta_infinity is None
    assert found.dominance < 0
    assert all(constants(K, eta).kappa_infinity >= 1 for eta in np.geomspace(1e-9, 1, 20))


def test_the_projection_moves_no_further_than_the_proven_constants():
    rng = np.random.default_rng(1)
    for _ in range(300):
        n = int(rng.integers(2, 12))
        C = float(rng.uniform(0.2, 3))
        y, other = rng.choice([-1.0, 1.0], (2, n))
        z, z2 = rng.normal(scale=2, size=(2, n))
        moved = np.abs(projected(z, y, C) - projected(z2, y, C)).max()
        assert moved <= kappa_z(n) * np.abs(z - z2).max() + 1e-9
        turned = np.abs(projected(z, y, C) - projected(z, other, C)).max()
        assert turned <= kappa_y_proven(z, y, other, C) * np.abs(y - other).max() + 1e-9


def test_the_projection_reaches_its_constant():
    """y = (1, -1, ..., -1): moving z along (1, 1, ..., 1) is stretched most, by more than the printed 1."""
    n, C = 6, 100.0
    y = np.array([1.0, *[-1.0] * (n - 1)])
    z = np.array([50.0, *[10.0] * (n - 1)])
    moved = projected(z + 0.1, y, C) - projected(z, y, C)
    np.testing.assert_allclose(np.abs(moved).max(), 0.1 * kappa_z(n))


def test_kappa_prime_is_exact_at_the_midpoint_and_largest_in_the_worst_case(problem):
    X, y = problem
    rng = np.random.default_rng(2)
    K, dual, eta = kernel(X, 2.0), rng.uniform(0, 3, 30), 0.1
    for _ in range(20):
        other = rng.choice([-1.0, 1.0], 30)
        change = eta * (other * (K @ (other * dual)) - y * (K @ (y * dual)))
        middle = (y + other) / 2
        matrix = eta * (K * np.outer(middle, dual) + np.diag(K @ (dual * middle)))
        np.testing.assert_allclose(matrix @ (other - y), change, atol=1e-12)  # the mean value theorem, exactly
        bound = kappa_prime_y(K, dual, middle, eta)
        assert bound == pytest.approx(np.linalg.norm(matrix, np.inf))
        assert np.abs(change).max() <= bound * np.abs(other - y).max() + 1e-12
        assert bound <= kappa_prime_y_worst(K, dual, eta) + 1e-12


def test_an_equilibrium_is_a_pair_of_best_answers(problem):
    X, y = problem
    K = kernel(X, 1.0)
    settled = [rest for C in (0.1, 1.0, 10.0) for k in (0, 1, 3) if (rest := find_equilibrium(K, y, C, k)).exists]
    assert len(settled) >= 3
    for rest in settled:
        k = int((rest.signs != y).sum())
        np.testing.assert_array_equal(attack(rest.dual, y, k), rest.signs)
        assert rest.residual < 1e-6
    assert gap(np.array([3.0, 2.0, 1.0]), 1) == 0.5
    assert gap(np.array([3.0, 3.0, 1.0]), 1) == 0.0
    assert not solve_dual(K, np.ones(30), 1.0).any()


@pytest.fixture(scope="module", params=[60, pytest.param(200, marks=pytest.mark.slow)])
def games(request):
    return stability(n_games=request.param, rounds=40, random_state=0)


def test_proven_bounds_hold_in_every_round_of_hundreds_of_games(games):
    found = {row["bound"]: row for row in summarise(games)}
    assert sum(row["found"] for row in games) > 0.4 * len(games)
    for name in ("lemma 1 proven", "lemma 2 printed", "lemma 2 worst case", "round proven", "euclidean"):
        assert found[name]["rounds"] > 300
        assert found[name]["violated"] == 0, found[name]
    # Bounds that nothing comes near would hold for any constant.
    assert found["lemma 2 printed"]["worst"] > 0.9
    assert found["lemma 1 proven"]["worst"] > 0.5
    assert found["euclidean"]["worst"] > 0.9


def test_lemma_1_as_printed_is_violated(games):
    found = {row["bound"]: row for row in summarise(games)}
    assert found["lemma 1 printed"]["violated"] > 0
    assert found["lemma 1 printed"]["worst"] > 1.01


def test_the_games_are_reproducible():
    first, second = (stability(n_games=3, rounds=5, random_state=7) for _ in range(2))
    assert first == second


@pytest.fixture(scope="module")
def fit(problem):
    X, y = problem
    return PaperFloralClassifier(gamma=2.0, budget=4, n_rounds=200, **GAME).fit(X, y)


def test_diagnose_replays_the_game_from_its_record(problem):
    X, y = problem
    clf = PaperFloralClassifier(gamma=2.0, budget=0, n_rounds=800, **GAME).fit(X, y)
    found = diagnose(clf, X, y)
    # With the attacker off the game ends at the SVM's own solution.
    assert found.distances[-1] < 1e-3 * found.distances[0]
    assert found.k == 0
    assert "plain SVM" in str(found)


def test_a_diagnosis_names_every_statement_and_reads_without_theory(problem, fit):
    X, y = problem
    found = diagnose(fit, X, y)
    assert {p.statement for p in found.premises} == {"all", "Lemma 1", "Lemma 2", "Theorem", "Proposition"}
    text = str(found)
    assert all(p.condition in text for p in found.premises)
    assert all(p.remedy for p in found.premises if not p.holds)
    assert len(found.distances) == len(found.flips_differ) == 200
    assert found.constants.eta == fit.learning_rate_[0]
    deterministic = {p.condition: p for p in found.premises}["the attacker is deterministic top-k"]
    assert not deterministic.holds
    assert deterministic.measured == "k = 2 of B = 4"


def test_without_the_data_only_the_support_vectors_are_judged(problem):
    y = problem[1]
    X = problem[0] + 3 * y[:, None]  # far apart: many rows are no support vectors
    clf = PaperFloralClassifier(gamma=0.1, budget=0, n_rounds=2000, **GAME).fit(X, y)
    assert len(clf.support_) < 30
    part, full = diagnose(clf), diagnose(clf, X, y)
    assert part.distances is None
    assert (part.n, part.n_fit) == (len(clf.support_), 30)
    assert part.constants.kappa_infinity <= full.constants.kappa_infinity
    assert "Pass X and y" in str(part)
    assert "Pass X and y" not in str(full)


def test_a_game_that_converges_is_recognised():
    """Far-apart rows: K is nearly the identity, and every premise but the printed Lemma 1 can hold."""
    X = np.arange(12.0)[:, None] * 10
    y = np.array([1, -1] * 6)
    clf = PaperFloralClassifier(gamma=1.0, C=0.5, budget=0, n_rounds=60, **GAME | {"learning_rate": 0.5}).fit(X, y)
    found = diagnose(clf, X, y)
    assert found.constants.kappa_infinity < 1
    assert found.constants.eta_infinity == pytest.approx(2, rel=1e-6)
    assert all(p.holds for p in found.premises if p.statement in ("Lemma 2", "Proposition"))


def test_diagnose_refuses_what_it_cannot_judge(problem, fit):
    X, y = problem
    refuses("call fit first", diagnose, FloralClassifier())
    refuses("X has 20 rows; the fit had 30", diagnose, fit, X[:20])
    refuses("y differs from the labels of the fit", diagnose, fit, X, -y)
    three = FloralClassifier(n_rounds=5, random_state=0).fit(X, np.arange(30) % 3)
    refuses("two classes; this fit has 3", diagnose, three)


def test_sample_weights_are_noticed(problem):
    X, y = problem
    weight = np.linspace(0.2, 3, 30)
    clf = PaperFloralClassifier(gamma=2.0, budget=4, n_rounds=50, **GAME).fit(X, y, sample_weight=weight)
    found = diagnose(clf, X, y)
    assert found.distances is None
    refuses("no distances", found.plot)


def test_the_plot_shows_the_distances(problem, fit):
    plt = pytest.importorskip("matplotlib.pyplot")
    found = diagnose(fit, *problem)
    ax = found.plot()
    np.testing.assert_allclose(ax.lines[0].get_ydata(), found.distances)
    plt.close("all")
