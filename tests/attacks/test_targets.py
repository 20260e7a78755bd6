"""A targeted attack hits what it aims at, and the result says what it did to a victim."""

import numpy as np
import pytest
from refusals import refuses
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits, make_moons
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from floral_learn.attacks import PoisonResult, poison


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(300, noise=0.2, random_state=0)
    return train_test_split(X, np.where(y, "yes", "no"), test_size=100, random_state=0)


def test_a_class_as_target_loses_only_its_own_labels(moons):
    X, _, y, _ = moons
    result = poison(X, y, attack="farthest", budget=20, target="yes")
    assert set(y[result.indices]) == {"yes"}
    free = poison(X, y, attack="farthest", budget=20, class_limits={"no": 0})
    np.testing.assert_array_equal(result.indices, free.indices)


@pytest.mark.parametrize("name", ["random", "farthest", "top-k"])
def test_target_rows_are_misread_where_the_plain_attack_leaves_them(moons, name):
    X, X_test, y, y_test = moons
    right = np.flatnonzero(SVC().fit(X, y).predict(X_test) == y_test)[:2]
    aimed = poison(X, y, attack=name, budget=30, random_state=0, target=X_test[right])
    plain = poison(X, y, attack=name, budget=30, random_state=0)
    assert (SVC().fit(X, aimed.y).predict(X_test[right]) != y_test[right]).all()
    assert (SVC().fit(X, plain.y).predict(X_test[right]) == y_test[right]).any()


def test_the_flipped_rows_are_the_nearest_of_the_label_that_the_target_would_get(moons):
    X, _, y, _ = moons
    at = int(np.flatnonzero(y == "yes")[0])
    result = poison(X, y, attack="random", budget=10, random_state=0, target=[at])
    label = "yes" if set(y[result.indices]) == {"yes"} else "no"
    mine = np.flatnonzero(y == label)
    nearest = mine[np.argsort(np.linalg.norm(X[mine] - X[at], axis=1))[:10]]
    assert set(result.indices) == set(nearest)


def test_several_targets_share_the_budget(moons):
    X, X_test, y, _ = moons
    far_apart = X_test[[X_test[:, 0].argmin(), X_test[:, 0].argmax()]]
    chosen = X[poison(X, y, attack="random", budget=10, random_state=0, target=far_apart).indices]
    near_first = np.linalg.norm(chosen - far_apart[0], axis=1) < np.linalg.norm(chosen - far_apart[1], axis=1)
    assert near_first.sum() == 5


def test_row_numbers_features_and_sparse_rows_mean_the_same():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    by_number = poison(X, y, attack="random", budget=12, random_state=0, target=[3, 7])
    for rows, target in ((X, X[[3, 7]]), (csr_matrix(X), csr_matrix(X[[3, 7]]))):
        np.testing.assert_array_equal(
            poison(rows, y, attack="random", budget=12, random_state=0, target=target).y, by_number.y
        )


def test_a_mask_holds_for_targets_too(moons):
    X, _, y, _ = moons
    mask = np.arange(len(y)) % 2 == 0
    assert mask[poison(X, y, attack="random", budget=10, random_state=0, target=[0], mask=mask).indices].all()


@pytest.mark.parametrize(
    ("target", "budget", "message"),
    [
        ("maybe", 5, r"target='maybe' is not a label; labels are \['no', 'yes'\]"),
        ([[1.0, 2.0, 3.0]], 5, "target rows have 3 features, X has 2"),
        ([500], 5, "target must be a label, .*row numbers in 0..199"),
        ([], 5, "target names no row"),
        ([0], 150, "only .* rows may be flipped for this target"),
        ([[np.nan, 0.0]], 5, "NaN"),
    ],
)
def test_a_wrong_target_is_named(moons, target, budget, message):
    X, _, y, _ = moons
    refuses(message, poison, X, y, attack="random", budget=budget, target=target)


def test_target_rows_need_features():
    refuses("X is None", poison, None, [0, 1] * 20, attack="random", budget=2, target=[1])


def test_the_effect_is_that_of_two_trainings(moons):
    X, X_test, y, y_test = moons
    result = poison(X, y, attack="farthest", budget=0.2)
    effect = result.effect_on(SVC(), X, X_test, y_test)
    before, after = (SVC().fit(X, labels) for labels in (y, result.y))
    assert effect.before == before.score(X_test, y_test)
    assert effect.after == after.score(X_test, y_test)
    assert effect.drop == effect.before - effect.after > 0
    assert effect.changed == (before.predict(X_test) != after.predict(X_test)).sum()
    assert effect.recalls["no"][1] == (after.predict(X_test) == y_test)[y_test == "no"].mean()
    assert f"test accuracy        {effect.before:.3f} -> {effect.after:.3f}" in repr(effect)


def test_an_effect_needs_the_labels_before_and_test_labels_of_the_right_length(moons):
    X, X_test, y, y_test = moons
    with pytest.raises(ValueError, match="does not hold the labels before"):
        PoisonResult(y, np.array([0]), np.zeros(len(y)), 1).effect_on(SVC(), X, X_test, y_test)
    refuses("y_test has shape", poison(X, y, attack="random", budget=5).effect_on, SVC(), X, X_test, y_test[1:])
