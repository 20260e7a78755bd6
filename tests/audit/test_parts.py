"""The map."""

import numpy as np

from floral_learn import find_label_issues


def test_the_map_of_many_columns_is_their_principal_components():
    X = np.random.default_rng(0).normal(size=(30, 4))
    found = find_label_issues(X, np.repeat([0, 1], 15), random_state=0)
    assert found.map_method.startswith("two principal components")
    assert found.map_position.shape == (30, 2)
