"""Questions that look along a line."""

import numpy as np

from floral_learn.review.line import between, looks
from floral_learn.review.posterior import Component, Problem
from floral_learn.review.rows import measured_rows


def test_places_are_ranks_from_minus_two_to_two():
    place = between(np.array([5.0, -1.0, 3.0, 9.0]), np.array([0.0, 9.0, 1.0, 2.0]), 0.0)
    np.testing.assert_array_equal(place, [0.0, -2.0, -1.0, 1.0])


def test_looks_skip_what_is_taken_and_end_where_nothing_is_free():
    line, codes = np.linspace(-2, 2, 40), np.tile([0, 1], 20)
    free = np.ones(40, bool)
    rows = looks(line, codes, free, 0, 12, seed=0)
    assert len(set(rows.tolist())) == 12
    np.testing.assert_array_equal(codes[rows], np.tile([0, 1], 6))
    free[codes == 1] = False
    assert (codes[looks(line, codes, free, 0, 12, seed=0)] == 0).all()
    assert len(looks(line, codes, np.zeros(40, bool), 0, 12, seed=0)) == 0
    free = np.ones(40, bool)
    free[rows[:4]] = False
    later = looks(line, codes, free, 4, 3, seed=0)  # as after four answers: close to where one call would have looked
    assert np.abs(line[later] - line[rows[4:7]]).max() < 0.6
    assert not set(later) & set(rows[:4])


def test_a_mirrored_line_joins_both_labels_each_from_its_own_end():
    X = np.random.default_rng(0).normal(size=(4, 3))
    codes, line = np.array([0, 1, 0, 1]), np.array([-1.5, 1.5, 1.0, 1.0])
    problem = Problem(measured_rows(X, 1000), codes, 2, np.zeros((1, 4)), lines=line[None])
    rows = np.arange(4)
    given, mirrored = (Component(tie, 1.0, 2.0, -4.0, 0.5, -1.0, on_line=0) for tie in ("given", "mirrored"))
    apart, joined = problem.covariances((given, mirrored), rows, rows)
    assert apart[0, 1] == 0.0, "labels differ"
    assert joined[0, 1] == 4.0, "both lie as far on their own side"
    np.testing.assert_allclose(joined[2, 3], 4.0 * np.exp(-4.0))  # the same place, seen from different ends
    np.testing.assert_allclose(joined[0, 2], apart[0, 2])
    assert {c.tie for c in problem.components if c.on_line == 0} == {"given", "mirrored"}
    assert np.linalg.eigvalsh(joined).min() > -1e-9
