"""Questions that look along a line."""

import numpy as np

from floral_learn.review.line import between, looks


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
