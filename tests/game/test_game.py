"""The game: what it converges to without an attacker, and what must not change what it plays."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from floral_learn.game import DenseGram, Game, Kernel, LowRankGram, RandomizedTopK, solve, step_schedule

X, Y = make_moons(150, noise=0.25, random_state=0)
KERNEL = Kernel("rbf", gamma=1.0)
GRAM = DenseGram.from_rows(X, KERNEL)
STEP = 1.0 / GRAM.lambda_max(centred=True)


def play(gram=GRAM, labels=Y, budget=20, flips=10, rounds=120, C=10.0, eta=STEP, **kwargs):
    attacker = kwargs.pop("attacker", RandomizedTopK(budget, flips))
    callback = kwargs.pop("callback", None)
    cap = np.full(len(labels), C)
    return solve(Game(gram, labels, cap, step_schedule(eta, rounds), attacker, **kwargs), callback)


@pytest.mark.parametrize(
    ("C", "rounds"),
    [
        (1.0, 10_000),
        pytest.param(0.1, 30_000, marks=pytest.mark.slow),
        pytest.param(1.0, 30_000, marks=pytest.mark.slow),
    ],
)
def test_without_an_attacker_it_converges_to_libsvm(C, rounds):
    result = play(budget=0, flips=0, rounds=rounds, C=C, eta=1.9 * STEP)
    svc = SVC(kernel="precomputed", C=C, tol=1e-9).fit(GRAM.matrix, Y)
    assert result.residual[0] < 1e-4
    dual = np.zeros(len(Y))
    dual[svc.support_] = svc.dual_coef_[0]
    np.testing.assert_allclose(result.weights[:, 0], dual, atol=2e-3 * C)
    values = GRAM.matrix @ result.weights[:, 0] + result.bias[0]
    np.testing.assert_allclose(values, svc.decision_function(GRAM.matrix), atol=1e-4)


def test_the_dual_objective_falls_when_nobody_attacks():
    objective = play(budget=0, flips=0, rounds=300, eta=1.9 * STEP).history["objective"][:, 0]
    assert (np.diff(objective) <= 1e-12).all()


def test_a_step_up_to_the_centred_bound_is_calm_and_one_above_is_not():
    # lambda_max of HKH, not of K, decides: the first step here is over 2 / lambda_max(K).
    gram = DenseGram.from_rows(X, Kernel("rbf", gamma=0.05))
    bound = 2 / gram.lambda_max(200, 1e-10, centred=True)
    assert 0.95 * bound > 2 * 2 / gram.lambda_max(200, 1e-10)
    calm, wild = (
        play(gram, budget=0, flips=0, rounds=400, eta=f * bound).history["objective"][:, 0] for f in (0.95, 2.0)
    )
    assert (np.diff(calm) <= 1e-9).all()
    assert np.diff(wild).max() > 1e-3


def test_every_iterate_is_feasible_and_flips_are_k_of_the_given_labels():
    seen = []

    def check(state):
        assert (state.dual >= 0).all()
        assert (state.dual <= 10.0).all()
        assert abs((state.signs * state.dual).sum()) < 1e-9
        wrong = np.flatnonzero(state.signs[:, 0] != 2 * Y - 1)  # never cumulative
        seen.append(len(wrong))
        if state.round > 1:
            assert set(wrong) == set(state.history["flips"][-1][:, 0])

    play(rounds=40, callback=check)
    assert seen == [0] + [10] * 39  # one round of warm-up


def test_candidates_are_the_largest_duals_of_the_round_before():
    before = {}

    def check(state):
        if state.round in before:
            flipped = state.history["flips"][-1][:, 0]
            assert before[state.round][flipped].min() >= np.sort(before[state.round])[-20] * (1 - 1e-6)
        before[state.round + 1] = state.dual[:, 0].copy()

    play(rounds=60, callback=check, seeds=3)


def test_warm_up_rounds_are_quiet():
    flips = play(rounds=20, warm_up=7).history["flips"][:, :, 0]
    assert (flips[:7] == -1).all()
    assert (flips[7:] >= 0).all()


def test_averaged_model_is_the_mean_over_the_last_half():
    total, biases = np.zeros(len(Y)), []

    def add(state):
        if state.round > 30:
            total.__iadd__((state.signs * state.dual)[:, 0])
            biases.append(float(state.history["bias"][-1][0]))

    result = play(rounds=60, callback=add)
    np.testing.assert_allclose(result.mean_weights[:, 0], total / 30, atol=1e-12)
    assert result.mean_bias[0] == pytest.approx(np.mean(biases))


def test_flip_rates_count_flips():
    result = play(rounds=50)
    flips = result.history["flips"][1:, :, 0]
    np.testing.assert_allclose(result.flip_rate[:, 0], np.bincount(flips.ravel(), minlength=len(Y)) / 49)


def test_a_batch_of_games_is_its_games():
    labels = np.stack([Y, np.where(np.arange(len(Y)) < 15, 1 - Y, Y), Y], axis=1)
    budget, flips = np.array([[20], [30], [8]]), np.array([10, 5, 4])
    seeds, eta = np.array([1, 2, 3]), np.array([1.0, 0.5, 1.5]) * STEP
    batch = play(labels=labels, attacker=RandomizedTopK(budget, flips), seeds=seeds, eta=eta)
    for j in range(3):
        alone = play(labels=labels[:, j], budget=budget[j, 0], flips=flips[j], seeds=seeds[j], eta=eta[j])
        mine = batch.history["flips"][:, :, j]
        for t in range(120):
            assert set(mine[t][mine[t] >= 0]) == set(alone.history["flips"][t, :, 0]) - {-1}
        np.testing.assert_allclose(batch.weights[:, j], alone.weights[:, 0], atol=1e-9)
        np.testing.assert_allclose(batch.mean_bias[j], alone.mean_bias[0], atol=1e-9)


def test_multi_class_columns_are_one_against_all_when_nobody_attacks():
    P, labels = make_blobs(120, centers=4, random_state=1)
    gram = DenseGram.from_rows(P, Kernel("rbf", gamma=0.1))
    eta = 1 / gram.lambda_max(centred=True)
    joint = play(gram, labels, 0, 0, eta=eta, n_classes=4)
    for m in range(4):
        single = play(gram, (labels == m).astype(int), 0, 0, eta=eta)
        np.testing.assert_allclose(joint.weights[:, m], single.weights[:, 0], atol=1e-10)


def test_multi_class_relabels_all_columns_of_a_flipped_point():
    P, labels = make_blobs(90, centers=3, cluster_std=3.0, random_state=1)
    gram = DenseGram.from_rows(P, Kernel("rbf", gamma=0.1))

    def check(state):
        assert ((state.signs > 0).sum(axis=1) == 1).all()  # every row belongs to exactly one class
        changed = np.flatnonzero(state.signs.argmax(axis=1) != labels)
        assert len(changed) == (0 if state.round == 1 else 6)

    play(gram, labels, 12, 6, rounds=30, eta=0.01, n_classes=3, callback=check)


def same_flips(a, b):
    hits = [len(np.intersect1d(p, q)) for p, q in zip(a.history["flips"][1:, :, 0], b.history["flips"][1:, :, 0])]
    return np.mean(hits) / a.history["flips"].shape[1]


def doubled_rows():
    # Equal rows have equal duals in exact arithmetic: the hardest case for agreement on who is in the top B.
    rows = np.concatenate([X, X[:40]])
    return rows, np.concatenate([Y, Y[:40]])


def test_every_backend_and_operator_plays_the_same_game_in_float64(backend):
    rows, labels = doubled_rows()
    reference = play(DenseGram.from_rows(rows, KERNEL), labels, seeds=9)
    for gram in (
        DenseGram.from_rows(rows, KERNEL, "float64", backend),
        LowRankGram(rows, KERNEL, 190, 0.0, np.random.default_rng(0), "float64", backend),
    ):
        result = play(gram, labels, seeds=9)
        assert same_flips(reference, result) == 1.0, gram.kind
        np.testing.assert_allclose(result.weights, reference.weights, atol=1e-8, err_msg=gram.kind)


@pytest.mark.parametrize("gamma", [1.0, 0.02])
@pytest.mark.parametrize("dimension", [2, 60])
def test_float32_stays_close_on_every_backend(backend, gamma, dimension):
    rng = np.random.default_rng(dimension)
    rows = rng.normal(size=(400, dimension))
    labels = (rows[:, 0] + rng.normal(size=400) * 0.5 > 0).astype(int)
    kernel = Kernel("rbf", gamma=gamma / dimension)
    exact = DenseGram.from_rows(rows, kernel)
    # A dual within rounding of where its 16 bits change can send two games apart: rare, so that most steps agree.
    single, pairs = DenseGram.from_rows(rows, kernel, "float32", backend), []
    for factor in (0.98, 0.99, 1.0):
        eta = factor / exact.lambda_max(centred=True)
        reference = play(exact, labels, seeds=9, rounds=300, eta=eta)
        result = play(single, labels, seeds=9, rounds=300, eta=eta)
        pairs.append((same_flips(reference, result), reference, result))
    _, (share, reference, result), _ = sorted(pairs, key=lambda pair: pair[0])
    assert share >= 0.99
    f64 = exact.matrix @ reference.mean_weights[:, 0] + reference.mean_bias[0]
    f32 = exact.matrix @ result.mean_weights[:, 0] + result.mean_bias[0]
    assert np.mean((f64 > 0) == (f32 > 0)) >= 0.99
    assert np.abs(f64 - f32).max() < 0.02  # the stated distance


def test_same_seed_same_bits_and_same_flips_on_other_thread_counts():
    rows, labels = doubled_rows()
    with threadpool_limits(1):
        one, again = (play(DenseGram.from_rows(rows, KERNEL), labels, seeds=5) for _ in range(2))
    with threadpool_limits(2):
        two = play(DenseGram.from_rows(rows, KERNEL), labels, seeds=5)
    np.testing.assert_array_equal(one.weights, again.weights)
    assert same_flips(one, two) == 1.0
    assert same_flips(one, play(DenseGram.from_rows(rows, KERNEL), labels, seeds=6)) < 0.95  # seeds matter


def test_the_fixed_point_projection_plays_the_same_game():
    exact, fixed = play(rounds=60), play(rounds=60, projection="fixed_point")
    np.testing.assert_allclose(exact.weights, fixed.weights, atol=1e-8)


def test_decay_multiplies_the_step_for_good():
    np.testing.assert_allclose(step_schedule(2.0, 7, (0.1, 3)), [2, 2, 2, 0.2, 0.2, 0.2, 0.02])
    assert step_schedule(np.array([1.0, 2.0]), 4).shape == (4, 2)


def test_weights_are_repeated_rows_when_nobody_attacks():
    times = np.arange(len(Y)) % 3 + 1
    many = DenseGram.from_rows(np.repeat(X, times, axis=0), KERNEL)
    repeated = play(many, np.repeat(Y, times), 0, 0, C=1.0, eta=STEP / 3)
    game = Game(GRAM, Y, 1.0 * times, step_schedule(STEP / 3, 120), weight=times.astype(float))
    weighted = solve(game)
    starts = np.cumsum(times) - times
    np.testing.assert_allclose(weighted.weights, np.add.reduceat(repeated.weights, starts), atol=1e-9)
    np.testing.assert_allclose(weighted.bias, repeated.bias, atol=1e-9)


class TestLocalStability:
    """The paper's Theorem, where its premise holds.

    Its kappa_lambda = ||I - eta Q||_inf < 1 needs a strictly diagonally dominant kernel. Among 200 random rbf data sets
    with that property the deterministic top-k game never settled on a set of flips: flipping the largest duals lowers
    them below others. The equilibrium here is that of a kernel whose diagonal decides who is influential.
    """

    n, k = 24, 2

    def game(self, rounds):
        rng = np.random.default_rng(0)
        labels = np.tile([0, 1], self.n // 2)
        diagonal = np.repeat(np.linspace(0.5, 2.0, self.n // 2), 2) + rng.uniform(0, 0.02, size=self.n)
        points = rng.normal(size=(self.n, 2))
        coupling = 0.02 * np.exp(-((points[:, None] - points[None]) ** 2).sum(-1))
        np.fill_diagonal(coupling, 0)
        gram = DenseGram(np.diag(diagonal) + coupling)
        kappa = (np.abs(1 - self.eta * diagonal) + self.eta * coupling.sum(axis=1)).max()
        assert kappa < 1
        return Game(
            gram,
            labels,
            np.full(self.n, 10.0),
            step_schedule(self.eta, rounds),
            RandomizedTopK(self.k, self.k),
            warm_up=0,
        )

    eta = 0.4

    def test_started_near_an_equilibrium_the_game_returns_to_it(self):
        settled = solve(self.game(400))
        flips = settled.history["flips"][-100:, :, 0]
        assert all(set(row) == set(flips[0]) for row in flips)  # found by iterating
        dual = settled.dual[:, 0]
        ordered = np.sort(dual)[::-1]
        gap = ordered[self.k - 1] - ordered[self.k]
        assert gap > 1e-2  # no ties: the flip set is locally constant
        assert settled.residual[0] < 1e-8  # an equilibrium: optimal for the labels it provokes
        for seed in range(5):
            noise = np.random.default_rng(seed).uniform(-1, 1, size=(self.n, 1)) * gap / 3
            distances = []
            start = np.clip(settled.dual + noise, 0, 10)
            back = solve(self.game(200), lambda s, d=distances: d.append(np.abs(s.dual[:, 0] - dual).max()), start)
            assert max(distances) < 2 * gap
            assert np.abs(back.dual[:, 0] - dual).max() < 1e-8


@pytest.mark.parametrize("trusted", [False, True])
def test_a_round_is_algorithm_1(trusted):
    """The listing, line by line in plain numpy: only who is drawn among the candidates comes from the game itself."""
    budget, k, C, rounds = 20, 10, 0.5, 60
    eligible = np.arange(len(Y)) % 3 > 0 if trusted else np.ones(len(Y), bool)
    seen = []
    result = play(budget=budget, flips=k, rounds=rounds, C=C, eligible=eligible, callback=lambda s: seen.append(s.dual))
    y, K, lam = 2.0 * Y - 1, GRAM.matrix, np.zeros(len(Y))
    for t in range(1, rounds + 1):
        chosen = result.history["flips"][t - 1, :, 0]
        chosen = chosen[chosen >= 0]
        if t > 1:  # line 3
            allowed = np.flatnonzero(eligible & (lam > 0))
            assert len(set(chosen)) == min(k, len(allowed))
            assert set(chosen) <= set(allowed)
            least = np.sort(lam[allowed])[-min(budget, len(allowed))]
            assert (lam[chosen] >= least * (1 - 2**-8)).all()  # duals are compared with 16 bits
        yt = y.copy()
        yt[chosen] *= -1  # line 4
        z = lam - STEP * (yt * (K @ (yt * lam)) - 1)  # line 5
        low, high = -np.abs(z).max() - C, np.abs(z).max() + C
        for _ in range(100):  # line 6: y'clip(z - mu y, 0, C) falls with mu
            mu = (low + high) / 2
            low, high = (mu, high) if yt @ np.clip(z - mu * yt, 0, C) > 0 else (low, mu)
        lam = np.clip(z - mu * yt, 0, C)
        np.testing.assert_allclose(seen[t - 1][:, 0], lam, atol=1e-11)
