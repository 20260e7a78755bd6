"""The projection: exact against a QP oracle, with the properties that any projection onto a convex set has."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qpsolvers import solve_qp
from refusals import refuses
from scipy import sparse

from floral_learn.game import project
from floral_learn.game.dual import PROJECTIONS, project_exact

# The case of the design notes: the damped fixed point alternates mu = 2, 0, 2, 0; the root is 1.
CYCLE_Z = np.array([1.5] * 8 + [5.0] * 4)
CYCLE_Y = np.array([1] * 8 + [-1] * 4)


@st.composite
def problems(draw, max_n=25):
    n = draw(st.integers(1, max_n))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    scale = draw(st.sampled_from([1e-3, 1.0, 1e3]))
    z = rng.normal(size=n) * scale
    if draw(st.booleans()):
        z = np.round(z / scale * 2) * scale / 2  # ties
    y = {"mixed": rng.choice([-1, 1], size=n), "all plus": np.ones(n), "all minus": -np.ones(n)}[
        draw(st.sampled_from(["mixed", "mixed", "mixed", "all plus", "all minus"]))
    ]
    cap = {
        "one": np.ones(n),
        "each": rng.uniform(0, 2, size=n),
        "zeros": rng.uniform(0, 2, size=n) * rng.integers(0, 2, size=n),
        "huge": np.full(n, 1e6),
    }[draw(st.sampled_from(["one", "each", "zeros", "huge"]))]
    return z, y, cap


def oracle(z, y, cap):
    precise = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}
    A, b = sparse.csc_matrix(y[None, :].astype(float)), np.zeros(1)
    return solve_qp(
        sparse.eye(len(z), format="csc"), -z, A=A, b=b, lb=np.zeros(len(z)), ub=cap, solver="clarabel", **precise
    )


@settings(max_examples=150, deadline=None)
@given(problems())
def test_exact_equals_the_qp_oracle(problem):
    z, y, cap = problem
    scale = np.abs(z).max() or 1.0
    # The dual never exceeds the spread of z, so a cap far above it is the same as none: kinder to the oracle.
    expected = oracle(z / scale, y, np.minimum(cap / scale, 10.0)) * scale
    np.testing.assert_allclose(project(z, y, cap).dual, expected, atol=1e-5 * scale)


@settings(max_examples=200, deadline=None)
@given(problems(max_n=200))
def test_exact_is_feasible_and_says_so(problem):
    z, y, cap = problem
    result = project(z, y, cap)
    assert result.converged
    assert (result.dual >= 0).all()
    assert (result.dual <= cap).all()
    balance = abs(y @ result.dual)
    assert balance <= 1e-11 * max(1.0, np.abs(z).max()) * len(z)
    assert balance == pytest.approx(result.residual, abs=1e-12 * max(1.0, np.abs(z).max()) * len(z))
    assert result.iterations < 60


@settings(max_examples=100, deadline=None)
@given(problems())
def test_optimality_conditions_hold_without_an_oracle(problem):
    z, y, cap = problem
    result = project(z, y, cap)
    np.testing.assert_allclose(result.dual, np.clip(z - result.mu * y, 0, cap), atol=1e-12 * max(1, np.abs(z).max()))


@settings(max_examples=100, deadline=None)
@given(problems())
def test_projecting_twice_changes_nothing(problem):
    z, y, cap = problem
    once = project(z, y, cap).dual
    np.testing.assert_allclose(project(once, y, cap).dual, once, atol=1e-10 * max(1, np.abs(z).max()))


@settings(max_examples=100, deadline=None)
@given(problems(), st.integers(0, 2**32 - 1))
def test_nonexpansive(problem, seed):
    z, y, cap = problem
    other = z + np.random.default_rng(seed).normal(size=len(z)) * np.abs(z).max()
    distance = np.linalg.norm(project(z, y, cap).dual - project(other, y, cap).dual)
    assert distance <= np.linalg.norm(z - other) * (1 + 1e-9) + 1e-9


def test_one_sided_labels_leave_only_zero():
    assert not project(np.array([1.0, 2.0, 3.0]), np.ones(3), 1.0).dual.any()


def test_the_cycling_case_of_the_fixed_point():
    result = project(CYCLE_Z, CYCLE_Y, 1.0, method="fixed_point")
    assert not result.converged  # it says so, and falls back to the exact root
    assert result.iterations == 1000
    assert result.mu == pytest.approx(1.0)
    np.testing.assert_allclose(result.dual, [0.5] * 8 + [1.0] * 4)
    exact = project(CYCLE_Z, CYCLE_Y, 1.0)
    assert exact.converged
    np.testing.assert_allclose(exact.dual, result.dual)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_fixed_point_equals_exact_whether_it_converged_or_not(problem):
    z, y, cap = problem
    got, exact = project(z, y, cap, method="fixed_point"), project(z, y, cap)
    np.testing.assert_allclose(got.dual, exact.dual, atol=1e-8 * max(1, np.abs(z).max()))


def test_fixed_point_mostly_converges_on_plain_problems():
    rng = np.random.default_rng(0)
    converged = [
        project(rng.normal(size=50), rng.choice([-1, 1], size=50), 1.0, method="fixed_point").converged
        for _ in range(50)
    ]
    assert np.mean(converged) > 0.8


@settings(max_examples=50, deadline=None)
@given(problems(), st.integers(0, 2**32 - 1))
def test_integer_weights_are_repeated_rows(problem, seed):
    z, y, cap = problem
    times = np.random.default_rng(seed).integers(1, 4, size=len(z))
    many = project(np.repeat(z, times), np.repeat(y, times), np.repeat(cap, times)).dual
    column = lambda a: np.asfortranarray(np.asarray(a, float)[:, None])  # noqa: E731
    weighted = project_exact(column(z * times), column(y), column(cap * times), weight=column(times)).dual[:, 0]
    starts = np.cumsum(times) - times
    np.testing.assert_allclose(weighted, np.add.reduceat(many, starts), atol=1e-9 * max(1, np.abs(z).max()))


@pytest.mark.parametrize("method", sorted(PROJECTIONS))
def test_a_batch_is_its_columns_on_every_backend(method, backend):
    rng = np.random.default_rng(3)
    z, y = rng.normal(size=(40, 5)), rng.choice([-1.0, 1.0], size=(40, 5))
    z[:, 0], y[:, 0] = np.resize(CYCLE_Z, 40), np.resize(CYCLE_Y, 40)
    cap = rng.uniform(0, 1, size=40)
    batch = PROJECTIONS[method](backend.columns(z), backend.columns(y), backend.columns(cap), backend=backend)
    for j in range(5):
        alone = project(z[:, j], y[:, j], cap, method="exact")
        np.testing.assert_allclose(backend.numpy(batch.dual)[:, j], alone.dual, atol=1e-9)


def test_errors_name_what_is_wrong():
    refuses("C must not be negative", project, np.ones(2), np.array([1, -1]), -1.0)
    refuses("y has 3 labels, z has 2 rows", project, np.ones(2), np.ones(3), 1.0)
