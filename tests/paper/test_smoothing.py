"""RS: closed forms against enumeration over all noisy label vectors, certificates against every flip set."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import StandardScaler

from floral_learn.datasets import load_moon
from floral_learn.paper import RandomizedSmoothingClassifier
from floral_learn.paper.smoothing import certified_flips, chernoff_log_failure, flips_to_cross


def exact_probability(a, y, q):
    """P(a'Y >= 1/2) by summing over all 2^n label vectors."""
    vectors = np.array(list(product([0.0, 1.0], repeat=len(y))))
    flips = (vectors != y).sum(axis=1)
    chance = q**flips * (1 - q) ** (len(y) - flips)
    return chance[vectors @ a >= 0.5].sum()


def ridge_weights(phi, query, ridge, intercept):
    """a(x) = Phi (Phi'Phi + l I)^-1 phi(x), the intercept column free of the penalty."""
    if intercept:
        phi, query = np.c_[phi, np.ones(len(phi))], np.c_[query, np.ones(len(query))]
    penalty = ridge * np.eye(phi.shape[1])
    if intercept:
        penalty[-1, -1] = 0
    return query @ np.linalg.inv(phi.T @ phi + penalty) @ phi.T


def small_problem(n=10, seed=0, spread=2.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 2)) * 0.6 + spread * (2 * y[:, None] - 1) * np.array([1.0, 0.5])
    return X, y, rng.normal(size=(12, 2)) * 2.5


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 10), st.sampled_from([0.05, 0.1, 0.3, 0.45]))
def test_property_chernoff_never_understates_the_exact_failure(seed, n, q):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(4, n)) / n + 1.0 / n
    y = rng.integers(0, 2, size=n).astype(float)
    positive = a @ ((1 - 2 * q) * y + q) >= 0.5
    bound = np.exp(chernoff_log_failure(a, y, q, positive))
    for row in range(4):
        p = exact_probability(a[row], y, q)
        failure = 1 - p if positive[row] else p
        assert bound[row] >= failure - 1e-12


def test_chernoff_is_the_minimum_over_t_of_the_printed_expression():
    X, y, queries = small_problem()
    q = 0.2
    a = ridge_weights(X, queries, 0.1, True)
    positive = a @ ((1 - 2 * q) * y + q) >= 0.5
    assert 0 < positive.sum() < len(positive)
    ours = chernoff_log_failure(a, y.astype(float), q, positive)
    grid = np.linspace(0, 200, 20001)[:, None]
    for row in range(len(a)):
        w = a[row] if positive[row] else -a[row]
        half = 0.5 if positive[row] else -0.5
        one, zero = w[y == 1], w[y == 0]
        printed = (
            half * grid[:, 0]
            + np.log((1 - q) * np.exp(-grid * one) + q).sum(axis=1)
            + np.log(1 - q + q * np.exp(-grid * zero)).sum(axis=1)
        )
        assert ours[row] == pytest.approx(min(printed.min(), 0.0), abs=1e-5)


def worst_vote(failure, q, r):
    """Smallest winning probability after r flips over all votes with that failure probability before, by greedy.

    All 2^r outcomes of the noisy labels on the flipped rows; the worst vote fails on those that gain most.
    """
    before, after = [], []
    for outcome in product([0, 1], repeat=r):  # 1: the noisy label equals the flipped one
        d = sum(outcome)
        before.append(q**d * (1 - q) ** (r - d))
        after.append((1 - q) ** d * q ** (r - d))
    left, lost = failure, 0.0
    for b, a in sorted(zip(before, after, strict=True), key=lambda pair: -pair[1] / pair[0]):
        taken = min(1.0, left / b)
        lost, left = lost + taken * a, left - taken * b
        if left <= 0:
            break
    return 1 - lost


@pytest.mark.parametrize("q", [0.05, 0.1, 0.3, 0.45])
def test_radius_is_the_largest_that_no_vote_of_that_failure_probability_can_break(q):
    seen = set()
    for failure in [*np.geomspace(1e-9, 0.3, 30), *np.linspace(0.3, 0.4999, 20)]:
        radius = int(certified_flips(np.log([failure]), q, 12)[0])
        seen.add(radius)
        assert all(worst_vote(failure, q, r) > 0.5 for r in range(1, radius + 1))
        if radius < 12:
            assert worst_vote(failure, q, radius + 1) <= 0.5 + 1e-6
    assert len(seen) >= 4


def test_radius_never_falls_below_the_closed_form_and_worked_numbers():
    for q in (0.05, 0.1, 0.3, 0.45):
        failure = np.geomspace(1e-30, 0.499, 300)
        closed = np.floor(np.log(4 * (1 - failure) * failure) / (2 * (1 - 2 * q) * np.log(q / (1 - q))))
        tight = certified_flips(np.log(failure), q, 400)
        assert (tight >= np.minimum(closed, 400)).all()
        assert (tight > closed).any()
    # q = 0.1, failure 1e-4. r = 3: failing on D = 3 alone (mass .001) loses .1 * .729. r = 4: mass 1e-4 loses .6561.
    assert certified_flips(np.log([1e-4]), 0.1, 50)[0] == 3
    assert certified_flips(np.log([0.5, 0.7]), 0.1, 50).tolist() == [-1, -1]
    assert certified_flips(np.array([-np.inf]), 0.1, 50)[0] == 50


def exact_votes(a, q):
    """P(a'Y >= 1/2) for all 2^n given label vectors at once: the noise applied along each axis in turn.

    Entry [y_1, ..., y_n] of the result is the probability when the given labels are y.
    """
    n = len(a)
    total = np.zeros((2,) * n)
    for axis in range(n):
        total += a[axis] * np.arange(2).reshape([2 if i == axis else 1 for i in range(n)])
    vote = (total >= 0.5).astype(float)
    for axis in range(n):
        vote = (1 - q) * vote + q * np.flip(vote, axis=axis)
    return vote


def distance_to(y):
    """Number of labels (2,) * n in which each label vector differs from y."""
    n = len(y)
    total = np.zeros((2,) * n, dtype=np.int8)
    for axis in range(n):
        total += (np.arange(2) != y[axis]).astype(np.int8).reshape([2 if i == axis else 1 for i in range(n)])
    return total


def separated(n, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 2)) * 0.3 + 2 * (2 * y[:, None] - 1) * np.array([1.0, 0.5]), y


def test_the_two_enumerations_agree():
    a, y = np.random.default_rng(0).normal(size=6) / 2, np.array([0, 1, 1, 0, 1, 0])
    votes = exact_votes(a, 0.3)
    for labels in product([0, 1], repeat=6):
        assert votes[labels] == pytest.approx(exact_probability(a, np.array(labels), 0.3))
    assert distance_to(y)[tuple(1 - y)] == 6


@pytest.mark.parametrize(
    ("n", "options"),
    [
        (16, {"flip_probability": 0.1, "ridge": 1.0, "scale": False}),
        (18, {"flip_probability": 0.1, "ridge": 1.0, "fit_intercept": False, "scale": False}),
        (20, {"flip_probability": 0.2, "ridge": 1.0, "scale": True}),
        (20, {"flip_probability": 0.1, "ridge": 0.1, "scale": True}),
        (
            20,
            {"flip_probability": 0.1, "ridge": 0.1, "kernel": "rbf", "gamma": 0.05, "n_components": 6, "scale": False},
        ),
    ],
)
def test_every_flip_set_within_the_radius_leaves_the_exact_vote_and_the_refitted_prediction(n, options):
    X, y = separated(n, seed=0)
    queries = np.r_[X, 1.3 * X]
    fit = lambda labels: RandomizedSmoothingClassifier(**options).fit(X, labels)  # noqa: E731
    prediction, radius = fit(y).predict(queries), fit(y).certified_flips(queries)
    rows = np.flatnonzero((radius >= 1) & (radius < n))[:4]
    assert len(rows), "the test is empty unless some radius is positive"
    features, points = X, queries
    if options["scale"]:
        scaler = StandardScaler().fit(X)
        features, points = scaler.transform(X), scaler.transform(queries)
    if "kernel" in options:
        nystroem = Nystroem(kernel="rbf", gamma=0.05, n_components=6, random_state=0).fit(X)
        features, points = nystroem.transform(X), nystroem.transform(queries)
    a = ridge_weights(features, points, options["ridge"], options.get("fit_intercept", True))
    far = distance_to(y)
    for row in rows:
        votes = exact_votes(a[row], options.get("flip_probability", 0.1))
        assert ((votes >= 0.5) == prediction[row])[far <= radius[row]].all()
        if options.get("fit_intercept", True):  # without one, some votes are sure whatever the labels say
            assert ((votes >= 0.5) != prediction[row]).any(), "some larger flip set does turn it"
    for size in range(1, min(2, int(radius[rows].max())) + 1):
        for flips in combinations(range(n), size):
            attacked = y.copy()
            attacked[list(flips)] ^= 1
            sure = rows[radius[rows] >= size]
            np.testing.assert_array_equal(fit(attacked).predict(queries[sure]), prediction[sure])


def test_abstains_where_the_vote_is_open_and_promises_more_for_clearer_votes():
    X, y = separated(40, seed=1)
    model = RandomizedSmoothingClassifier(flip_probability=0.2, ridge=1.0).fit(X, y)
    radius = model.certified_flips(np.outer([0.0, 0.5, 1.0, 1.5], [2.0, 1.0]))
    assert radius[0] == -1
    assert radius[1] <= radius[2] <= radius[3]
    assert radius[3] >= 2


def test_three_classes_no_replacement_of_two_labels_within_the_radius_changes_a_prediction():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 3)) * 0.1 + 4 * np.eye(3)[y]
    fit = lambda labels: RandomizedSmoothingClassifier(flip_probability=0.1, ridge=1.0, scale=False).fit(X, labels)  # noqa: E731
    prediction, radius = fit(y).predict(X), fit(y).certified_flips(X)
    assert radius.min() >= 2
    a = ridge_weights(X, X, 1.0, True)
    scores = a @ (0.8 * np.eye(3)[y] + 0.1)
    # The refitted mean vote is linear in the labels: replacing i by c moves column y_i down, column c up.
    moves = [(i, 0.8 * a[:, [i]] * (np.eye(3)[c] - np.eye(3)[y[i]])) for i in range(60) for c in range(3) if c != y[i]]
    for first, second in combinations(moves, 2):
        if first[0] != second[0]:
            changed = (scores + first[1] + second[1]).argmax(axis=1)
            np.testing.assert_array_equal(changed, prediction)
    attacked = y.copy()
    attacked[[0, 3]] = 1, 2
    np.testing.assert_allclose(
        fit(attacked).decision_function(X), a @ (0.8 * np.eye(3)[attacked] + 0.1) - 0.5, atol=1e-9
    )


def test_mean_rule_survives_exactly_the_greedy_number_of_flips():
    X, y, queries = small_problem(n=9, seed=2)
    q = 0.1
    a = ridge_weights(X, queries, 0.1, True)
    mean = lambda labels: a @ ((1 - 2 * q) * labels + q) - 0.5  # noqa: E731
    survived = flips_to_cross(a, y.astype(float), q, mean(y))
    for row in range(len(queries)):
        side = mean(y)[row] >= 0
        turning = [
            size
            for size in range(10)
            for flips in combinations(range(9), size)
            if (mean(np.where(np.isin(range(9), flips), 1 - y, y))[row] >= 0) != side
        ]
        assert survived[row] == (min(turning) - 1 if turning else 9)


@pytest.mark.parametrize("intercept", [True, False])
def test_prediction_is_ridge_regression_on_expected_noisy_labels(intercept):
    X, y, queries = small_problem(n=30, seed=3)
    model = RandomizedSmoothingClassifier(flip_probability=0.2, ridge=0.7, fit_intercept=intercept, scale=False).fit(
        X, y
    )
    expected = ridge_weights(X, queries, 0.7, intercept) @ (0.6 * y + 0.2) - 0.5
    np.testing.assert_allclose(model.decision_function(queries), expected, atol=1e-9)
    np.testing.assert_array_equal(model.predict(queries), (expected >= 0).astype(int))


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"kernel": "rbf", "n_components": 8}])
def test_units_of_a_feature_do_not_matter(options):
    X, y, queries = small_problem(n=30, seed=3)
    units = np.array([1e3, 1e-3])
    model = RandomizedSmoothingClassifier(flip_probability=0.2, ridge=0.7, **options)
    expected = model.fit(X, y).decision_function(queries)
    np.testing.assert_allclose(model.fit(X * units, y).decision_function(queries * units), expected, atol=1e-9)
    plain = RandomizedSmoothingClassifier(flip_probability=0.2, ridge=0.7, scale=False, **options)
    first, second = (plain.fit(X * u, y).decision_function(queries * u) for u in (1.0, units))
    assert np.abs(first - second).max() > 0.01


def test_a_constant_feature_is_no_division_by_zero():
    X, y, queries = small_problem(n=30, seed=3)
    wide, asked = (np.c_[part, np.full(len(part), 7.0)] for part in (X, queries))
    expected = RandomizedSmoothingClassifier(flip_probability=0.2).fit(X, y).decision_function(queries)
    np.testing.assert_allclose(
        RandomizedSmoothingClassifier(flip_probability=0.2).fit(wide, y).decision_function(asked), expected
    )


def test_weighted_rows_equal_repeated_rows_in_the_mean_vote():
    X, y, queries = small_problem(n=12, seed=4)
    weight = np.arange(12) % 3 + 1
    weighted = RandomizedSmoothingClassifier(flip_probability=0.2).fit(X, y, sample_weight=weight)
    repeated = RandomizedSmoothingClassifier(flip_probability=0.2).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    np.testing.assert_allclose(weighted.decision_function(queries), repeated.decision_function(queries))


def test_certify_in_blocks_equals_certify_at_once(monkeypatch):
    X, y, queries = small_problem(n=12, seed=1)
    model = RandomizedSmoothingClassifier(flip_probability=0.3, ridge=1.0).fit(X, y)
    once = model.certified_flips(queries)
    monkeypatch.setattr("floral_learn.paper.smoothing.MOST_VALUES", 25)
    np.testing.assert_array_equal(once, model.certified_flips(queries))


def test_far_points_without_intercept_and_zero_rows_give_finite_answers():
    X, y, _ = small_problem(n=20, seed=5)
    model = RandomizedSmoothingClassifier(flip_probability=0.1, fit_intercept=False).fit(X, y)
    rows = np.array([[0.0, 0.0], [1e6, 1e6]])
    prediction, radius = model.predict(rows), model.certified_flips(rows)
    assert prediction[0] == 0  # a = 0: the vote is 0 for certain, so no flips matter
    assert radius[0] == 20
    assert radius[1] >= -1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_named_labels_turn_the_mean_vote_and_are_more_than_certified(n_classes):
    rng = np.random.default_rng(0)
    y = np.arange(60) % n_classes
    X = rng.normal(size=(60, 3)) + 2 * np.eye(3)[y]
    fit = lambda labels: RandomizedSmoothingClassifier(flip_probability=0.1, ridge=1.0).fit(X, labels)  # noqa: E731
    model = fit(y)
    found = model.certificate(X[:15])
    assert not found.exact
    np.testing.assert_array_equal(found.prediction, model.predict(X[:15]))
    np.testing.assert_array_equal(found.flips, model.certified_flips(X[:15]))
    for j, (rows, labels) in enumerate(zip(found.rows, found.labels, strict=True)):
        assert len(rows) > found.flips[j]
        attacked = y.copy()
        attacked[rows] = labels
        assert fit(attacked).predict(X[[j]])[0] != found.prediction[j]
        attacked[rows[-1]] = y[rows[-1]]
        assert fit(attacked).predict(X[[j]])[0] == found.prediction[j]


@pytest.mark.parametrize(("q", "paper"), [(0.1, 0.557), (0.3, 0.509), (0.4, 0.509)])
def test_without_intercept_the_authors_clean_moon_split_gives_the_papers_numbers(q, paper):
    moon = load_moon(random_state=1)
    model = RandomizedSmoothingClassifier(flip_probability=q, ridge=0.01, fit_intercept=False, scale=False).fit(
        moon.X_train, moon.y_train
    )
    assert model.score(moon.X_test, moon.y_test) == pytest.approx(paper, abs=1e-9)
