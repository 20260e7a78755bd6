"""The choice under limits is the best one, and budgets and labels are read as documented."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floral_learn.attacks import poison
from floral_learn.attacks.constraints import Constraints


@st.composite
def problems(draw):
    n = draw(st.integers(2, 8))
    codes = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    allowed = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    limits = np.array(draw(st.lists(st.integers(0, n), min_size=3, max_size=3)))
    scores = np.array(draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n)), dtype=float)
    return Constraints(codes, allowed, limits, None), scores


def feasible(constraints, rows):
    rows = list(rows)
    used = np.bincount(constraints.codes[rows], minlength=3)
    return constraints.allowed[rows].all() and (used <= constraints.limits).all()


@settings(deadline=None)
@given(problems(), st.data())
def test_best_equals_brute_force_over_all_feasible_sets(problem, data):
    constraints, scores = problem
    n = len(scores)
    assert constraints.most() == max(
        k for k in range(n + 1) if any(feasible(constraints, s) for s in combinations(range(n), k))
    )
    count = data.draw(st.integers(0, constraints.most()))
    chosen = constraints.best(scores, count)
    assert len(chosen) == count
    assert feasible(constraints, chosen)
    best = max(scores[list(s)].sum() for s in combinations(range(n), count) if feasible(constraints, s))
    assert scores[chosen].sum() == best


@settings(deadline=None)
@given(st.integers(2, 2000), st.integers(0, 100))
def test_a_percentage_is_rounded_down_without_float_noise(n, percent):
    result = poison(None, np.arange(n) % 2, attack="random", budget=percent / 100, random_state=0)
    assert len(result.indices) == percent * n // 100


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "é", ""]), min_size=2, max_size=20).filter(lambda v: len(set(v)) > 1))
def test_labels_come_back_as_they_were_given(labels):
    assert poison(None, labels, attack="random", budget=0).y.tolist() == labels


@settings(deadline=None)
@given(
    st.integers(2, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, 2**32 - 1))),
    st.integers(2, 4),
)
def test_random_flips_always_change_exactly_the_budget(sizes, n_classes):
    n, budget, seed = sizes
    y = np.arange(n) % n_classes
    result = poison(None, y, attack="random", budget=budget, random_state=seed)
    assert (result.y != y).sum() == budget
    assert set(result.indices.tolist()) == set(np.flatnonzero(result.y != y).tolist())


def test_flip_distribution_frequencies_are_those_of_the_matrix():
    matrix = np.array([[0.2, 0.6, 0.2], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]])
    y = np.repeat([0, 1, 2], 3000)
    result = poison(None, y, attack="random", budget=6000, random_state=0, flip_distribution=matrix)
    assert (result.y[y == 2] == 2).all()
    # a flip changes the label: the weight on the own class is shared by the others
    assert np.mean(result.y[y == 0] == 1) == pytest.approx(0.75, abs=0.03)
    assert np.mean(result.y[y == 1] == 0) == pytest.approx(0.5, abs=0.03)


def test_a_result_prints_in_one_line():
    assert repr(poison(None, ["a", "b"] * 500, attack="random", budget=50, random_state=0)) == (
        "PoisonResult(50 of 1,000 labels changed)"
    )
