"""Regions on rows and on scores: which labels they join."""

import numpy as np

from floral_learn.labels.rows import standardised_rows
from floral_learn.review.posterior import HEIGHT, REGIONS, Problem, default_components


def test_regions_join_rows_of_one_label_or_of_all_by_rows_or_by_scores():
    X = np.random.default_rng(0).normal(size=(4, 3))
    codes, scores = np.array([0, 1, 0, 1]), np.array([1.5, 1.5, -1.0, 1.0])
    problem = Problem(standardised_rows(X, 1000), codes, 2, np.zeros(4), scores, np.zeros(4))
    components, rows = default_components(), np.arange(4)
    found = problem.covariances(components, rows, rows)
    apart = problem.rows.distances(rows, rows)
    for field, K in zip(components.field, found, strict=True):
        assert np.linalg.eigvalsh(K).min() > -1e-9
        if field < 0:
            assert not K.any()
            continue
        tie, on, width = REGIONS[field]
        far = apart[0, 1] if on == "rows" else 0.0  # rows 0 and 1 lie at one place of the scores; their labels differ
        expected = {"given": 0.0, "any": 1.0, "class": -1.0}[tie]
        np.testing.assert_allclose(K[0, 1], HEIGHT**2 * expected * np.exp(-width * far))
        far = apart[0, 2] if on == "rows" else 2.5**2
        np.testing.assert_allclose(K[0, 2], HEIGHT**2 * np.exp(-width * far), atol=1e-12)
