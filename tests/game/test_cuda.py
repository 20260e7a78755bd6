"""What runs only on a CUDA device, held against numpy."""

import numpy as np
import pytest

from floral_learn.game.arrays import NUMPY
from floral_learn.game.attackers import NoAttack, RandomizedTopK, TopK
from floral_learn.game.game import Game, GameState, solve, step_schedule
from floral_learn.game.gram import DenseGram
from floral_learn.game.kernels import Kernel
from floral_learn.game.low_rank import LowRankGram
from floral_learn.game.projections import project_exact

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no CUDA device here", allow_module_level=True)

from floral_learn.game.torch_arrays import TorchBackend  # noqa: E402

GPU = TorchBackend("cuda")
KERNEL = Kernel("rbf", gamma=0.05)


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, size=n)
    return rng.normal(size=(n, 5)) + y[:, None], y


def game_of(gram, y, attacker, rounds=60, **more):
    eta = 1 / gram.lambda_max(centred=True)
    return Game(gram, y, np.full(gram.n, 10.0), step_schedule(eta, rounds), attacker, seeds=np.arange(3), **more)


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("n", [2048, 2500, 3001])
def test_products_with_half_of_the_matrix_are_those_with_all_of_it(n, columns):
    matrix = torch.randn(n, n, device="cuda")
    matrix = matrix + matrix.T
    V = torch.randn(columns, n, device="cuda", dtype=torch.float64).T
    exact = matrix.double() @ V
    assert float((GPU.symmetric_product(matrix, V) - exact).norm() / exact.norm()) < 3e-5


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_products_with_a_wide_factor(columns):
    wide, V = torch.randn(70, 50_001, device="cuda"), torch.randn(50_001, columns, device="cuda")
    exact = wide.double() @ V.double()
    assert float((GPU.product(wide, V).double() - exact).norm() / exact.norm()) < 1e-5


@pytest.mark.parametrize(("n", "columns"), [(1, 1), (7, 3), (5000, 4), (200_000, 1), (9000, 200)])
def test_the_projection_is_that_of_numpy(n, columns):
    rng = np.random.default_rng(0)
    z, signs = rng.normal(size=(n, columns)), rng.choice([-1.0, 1.0], size=(n, columns))
    cap = rng.uniform(0, 1, size=(n, 1)) * (rng.random((n, 1)) < 0.9)
    here = project_exact(*(NUMPY.columns(v) for v in (z, signs, cap)))
    there = project_exact(*(GPU.columns(v) for v in (z, signs, cap)), backend=GPU)
    np.testing.assert_allclose(GPU.numpy(there.dual), here.dual, atol=1e-12)
    assert bool(there.converged.all())


@pytest.mark.parametrize(
    "attacker",
    [
        RandomizedTopK(20, 10),
        RandomizedTopK([[5], [9], [40]], [2, 4, 20]),
        TopK(7),
        RandomizedTopK(0, 10, class_budget=[8, 12]),
    ],
)
@pytest.mark.parametrize("low_rank", [False, True])
def test_a_game_that_is_watched_is_the_game_that_is_not(attacker, low_rank):
    X, y = rows()
    if low_rank:
        gram = LowRankGram(X, KERNEL, 64, 0.0, np.random.default_rng(0), "float64", GPU)
    else:
        gram = DenseGram.from_rows(X, KERNEL, "float64", GPU)
    alone = solve(game_of(gram, y, attacker))
    watched = solve(game_of(gram, y, attacker), callback=lambda state: False)
    for name in ("dual", "mean_weights", "flip_rate"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(watched, name))
    for name, values in watched.history.items():  # rounds closed together share a product: equal to rounding
        np.testing.assert_allclose(alone.history[name], values, atol=1e-9, err_msg=name)


def test_games_choose_the_flips_of_numpy():
    X, y = rows()
    attacker = RandomizedTopK(20, 10)
    here = solve(game_of(DenseGram.from_rows(X, KERNEL), y, attacker))
    there = solve(game_of(DenseGram.from_rows(X, KERNEL, "float64", GPU), y, attacker))
    np.testing.assert_array_equal(np.sort(here.history["flips"], axis=1), np.sort(there.history["flips"], axis=1))
    np.testing.assert_allclose(there.dual, here.dual, atol=1e-9)


def test_several_classes_are_those_of_numpy():
    X, _ = rows()
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
    attacker = RandomizedTopK(np.full((3, 3), 12), 10)
    here = solve(game_of(DenseGram.from_rows(X, KERNEL), y, attacker, n_classes=3))
    there = solve(game_of(DenseGram.from_rows(X, KERNEL, "float64", GPU), y, attacker, n_classes=3))
    np.testing.assert_allclose(there.mean_weights, here.mean_weights, atol=1e-9)


def test_a_callback_sees_every_round_and_can_end_the_game():
    X, y = rows()
    gram = DenseGram.from_rows(X, KERNEL, "float64", GPU)
    seen = []

    def after(state):
        seen.append((state.round, float(state.dual.sum())))
        return state.round == 40

    result = solve(game_of(gram, y, RandomizedTopK(20, 10)), callback=after)
    assert [number for number, _ in seen] == list(range(1, 41))
    assert result.state.round == 40
    assert result.dual.sum() == pytest.approx(seen[-1][1])
    assert len({total for _, total in seen}) == 40


def test_a_saved_state_continues_with_the_same_bits():
    X, y = rows()
    gram = DenseGram.from_rows(X, KERNEL, "float64", GPU)
    saved = {}

    def save(state):
        if state.round == 30:
            saved.update(state.to_arrays(GPU))

    whole = solve(game_of(gram, y, RandomizedTopK(20, 10)), callback=save)
    state = GameState.from_arrays(saved, GPU)
    continued = solve(game_of(gram, y, RandomizedTopK(20, 10)), state)
    np.testing.assert_array_equal(continued.dual, whole.dual)
    np.testing.assert_array_equal(continued.mean_weights, whole.mean_weights)
    np.testing.assert_array_equal(continued.flip_rate, whole.flip_rate)


def test_without_an_attacker_a_game_reaches_the_optimum():
    X, y = rows()
    gram = DenseGram.from_rows(X, KERNEL, "float64", GPU)
    assert solve(game_of(gram, y, NoAttack(), rounds=3000)).residual.max() < 0.1


def test_too_little_memory_says_how_much_is_needed():
    with pytest.raises(MemoryError, match="400,000 rows takes 640 GB"):
        GPU.empty_square(400_000, "float32")
    with pytest.raises(MemoryError, match="GB"):
        GPU.zeros((400_000, 10_000_000), torch.float32)
