"""The one-shot attacks rank by what they say, and `farthest` gives the authors' published labels."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

from floral_learn.attacks import poison
from floral_learn.datasets import load_moon


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(120, noise=0.2, random_state=1)
    return X, y


@pytest.mark.data("moon_reference_seed42.npz")
@pytest.mark.parametrize("level", [15, 20])
def test_farthest_with_logistic_regression_gives_the_authors_labels(level):
    clean, published = load_moon(), load_moon(labels=f"farthest-{level}")
    result = poison(clean.X_train, clean.y_train, attack="farthest", budget=level / 100, surrogate=LogisticRegression())
    np.testing.assert_array_equal(result.y, published.y_train)


def test_farthest_and_near_boundary_are_the_two_ends_of_one_order(moons):
    X, y = moons
    values = np.abs(LogisticRegression().fit(X, y).decision_function(X))
    far, near = poison(X, y, attack="farthest", budget=10), poison(X, y, attack="near-boundary", budget=10)
    np.testing.assert_array_equal(far.indices, np.argsort(-values)[:10])
    np.testing.assert_array_equal(near.indices, np.argsort(values)[:10])
    np.testing.assert_allclose(far.scores, values)
    np.testing.assert_allclose(near.scores, -values)


def test_new_classes_are_the_least_and_the_most_likely_other_one():
    X, y = make_blobs(90, centers=3, cluster_std=2.0, random_state=0)
    model = LogisticRegression().fit(X, y)
    order = np.argsort(model.decision_function(X), axis=1)
    far, near = poison(X, y, attack="farthest", budget=20), poison(X, y, attack="near-boundary", budget=20)
    for result, preferred in ((far, order), (near, order[:, ::-1])):
        for row in result.indices:
            assert result.y[row] == next(c for c in preferred[row] if c != y[row])


def test_top_k_takes_the_largest_duals_and_randomized_top_k_draws_from_twice_as_many(moons):
    X, y = moons
    model = SVC(C=1.0).fit(X, y)
    duals = np.zeros(len(y))
    duals[model.support_] = np.abs(model.dual_coef_[0])
    top = poison(X, y, attack="top-k", budget=10, random_state=0, surrogate=SVC(C=1.0))
    np.testing.assert_allclose(top.scores, duals)
    assert duals[top.indices].min() >= np.sort(duals)[-10]
    drawn = [
        set(
            poison(X, y, attack="randomized-top-k", budget=5, random_state=seed, surrogate=SVC(C=0.01)).indices.tolist()
        )
        for seed in range(20)
    ]
    assert len(set(map(frozenset, drawn))) > 10
    rough = SVC(C=5.0).fit(X, y)
    duals[:] = 0
    duals[rough.support_] = np.abs(rough.dual_coef_[0])
    for seed in range(5):
        result = poison(X, y, attack="randomized-top-k", budget=5, random_state=seed, surrogate=SVC(C=5.0), pool=2)
        assert duals[result.indices].min() >= np.sort(duals)[-10]
    with pytest.raises(ValueError, match=r"pool=0\.5 must be at least 1"):
        poison(X, y, attack="randomized-top-k", budget=5, random_state=0, pool=0.5)


def test_top_k_breaks_ties_by_the_seed_not_by_row_order(moons):
    X, y = moons
    rows = [
        frozenset(poison(X, y, attack="top-k", budget=4, random_state=seed, surrogate=SVC(C=1e-3)).indices.tolist())
        for seed in range(10)
    ]
    assert len(set(rows)) > 5  # at tiny C nearly all duals equal C


def test_top_k_on_a_logistic_model_ranks_by_the_wrong_probability(moons):
    X, y = moons
    model = LogisticRegression().fit(X, y)
    result = poison(X, y, attack="top-k", budget=5, surrogate=LogisticRegression())
    np.testing.assert_allclose(result.scores, 1 - model.predict_proba(X)[np.arange(len(y)), y])


def test_top_k_without_probabilities_uses_the_hinge(moons):
    X, y = moons
    model = Perceptron(random_state=0).fit(X, y)
    result = poison(X, y, attack="top-k", budget=5, surrogate=Perceptron(random_state=0))
    expected = np.maximum(0, 1 - (2 * y - 1) * model.decision_function(X))
    np.testing.assert_allclose(result.scores, expected)


def test_class_biased_takes_the_most_frequent_class_first():
    y = np.array(["a"] * 10 + ["b"] * 30)
    result = poison(None, y, attack="class-biased", budget=32, random_state=0)
    assert (y[result.indices] == "b").sum() == 30
    assert (y[result.indices] == "a").sum() == 2


def test_class_biased_shares_follow_the_weights_and_add_up():
    y = np.repeat([0, 1, 2], 50)
    result = poison(None, y, attack="class-biased", budget=10, random_state=0, class_weights={0: 2, 1: 1})
    assert np.bincount(y[result.indices], minlength=3).tolist() == [7, 3, 0]
    with pytest.raises(ValueError, match="more flips than the classes"):
        poison(None, y, attack="class-biased", budget=60, random_state=0, class_weights={0: 1})
    for wrong in ({5: 1}, {0: -1}, {0: 0}):
        with pytest.raises(ValueError, match="class_weights="):
            poison(None, y, attack="class-biased", budget=5, random_state=0, class_weights=wrong)


@pytest.mark.parametrize(
    "surrogate",
    [
        SVC(),
        RandomForestClassifier(20),
        KNeighborsClassifier(),
        MLPClassifier((8,), max_iter=50),
        make_pipeline(StandardScaler(), MLPClassifier((4,), max_iter=30)),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["farthest", "near-boundary", "top-k", "randomized-top-k", "alfa", "lfa"])
def test_any_classifier_serves_as_surrogate_and_a_seed_fixes_its_randomness(moons, surrogate, name):
    X, y = moons
    fast = {"alfa": {"n_init": 1, "max_iter": 2}, "lfa": {"n_check": 2, "n_first": 3}}.get(name, {})
    first = poison(X, y, attack=name, budget=4, random_state=5, surrogate=surrogate, **fast)
    again = poison(X, y, attack=name, budget=4, random_state=5, surrogate=surrogate, **fast)
    np.testing.assert_array_equal(first.y, again.y)
    with pytest.raises(NotFittedError):  # the surrogate itself stays as it was given
        check_is_fitted(surrogate)


def test_a_surrogate_without_scores_is_refused(moons):
    X, y = moons

    class Silent(NearestCentroid):
        decision_function = predict_proba = property()

    with pytest.raises(ValueError, match="neither decision_function nor predict_proba"):
        poison(X, y, attack="farthest", budget=3, surrogate=Silent())
    with pytest.raises(ValueError, match="must be a scikit-learn classifier"):
        poison(X, y, attack="farthest", budget=3, surrogate="svc")


@pytest.mark.parametrize("name", ["farthest", "near-boundary", "top-k", "randomized-top-k", "lfa"])
def test_sparse_rows_give_the_same_flips(moons, name):
    X, y = moons
    fast = {"n_check": 2, "n_first": 5} if name == "lfa" else {}
    dense = poison(X, y, attack=name, budget=5, random_state=0, surrogate=SVC(gamma=1.0), **fast)
    again = poison(sparse.csr_matrix(X), y, attack=name, budget=5, random_state=0, surrogate=SVC(gamma=1.0), **fast)
    np.testing.assert_array_equal(np.sort(dense.indices), np.sort(again.indices))
