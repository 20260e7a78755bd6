"""Regions that lie on scores, and questions that look along them."""

import numpy as np

from floral_learn.labels.rows import standardised_rows
from floral_learn.review.posterior import Component, Problem, default_components
from floral_learn.review.questions import look_along


def test_looks_are_spread_skip_what_is_taken_and_end_where_nothing_is_free():
    scores = np.linspace(-2, 2, 40)
    free = np.ones(40, bool)
    rows = look_along(scores, free, 0, 8, seed=0)
    assert len(set(rows.tolist())) == 8
    gaps = np.diff(np.sort(scores[rows]))
    assert gaps.max() < 0.8, "every stretch of a fifth is seen after eight looks"
    assert len(look_along(scores, np.zeros(40, bool), 0, 12, seed=0)) == 0
    free[rows[:4]] = False
    later = look_along(scores, free, 4, 3, seed=0)  # as after four answers: close to where one call would have looked
    assert np.abs(scores[later] - scores[rows[4:7]]).max() < 0.6
    assert not set(later.tolist()) & set(rows[:4].tolist())
    assert look_along(scores, np.ones(40, bool), 0, 3, seed=1).tolist() != rows[:3].tolist(), "nobody knows where"


def test_regions_on_scores_join_rows_of_one_label_or_of_all():
    X = np.random.default_rng(0).normal(size=(4, 3))
    codes, scores = np.array([0, 1, 0, 1]), np.array([1.5, 1.5, -1.0, 1.0])
    problem = Problem(standardised_rows(X, 1000), codes, 2, np.zeros(4), scores)
    rows = np.arange(4)
    given, every = (Component(tie, 1.0, 2.0, -4.0, 0.5, -1.0, on_scores=True) for tie in ("given", "any"))
    apart, joined = problem.covariances((given, every), rows, rows)
    assert apart[0, 1] == 0.0, "labels differ"
    assert joined[0, 1] == 4.0, "both lie at the same place"
    np.testing.assert_allclose(joined[2, 3], 4.0 * np.exp(-4.0))
    np.testing.assert_allclose(joined[0, 2], apart[0, 2])
    assert {c.tie for c in default_components() if c.on_scores} == {"given", "any"}
    assert np.linalg.eigvalsh(joined).min() > -1e-9
