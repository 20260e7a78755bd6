"""alfa-tilt keeps the largest angle, draws random SVMs, and its low_rank duals agree with libsvm."""

import numpy as np
import pytest
from refusals import refuses
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from floral_learn.attacks import AlfaTilt, poison


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(120, noise=0.2, random_state=0)
    return X, 2 * y - 1


def cosine(X, clean, tainted, C, gamma):
    """Between the two hyperplanes in feature space, from scikit-learn's own SVMs."""
    beta = []
    for labels in (clean, tainted):
        model = SVC(C=C, gamma=gamma).fit(X, labels)
        full = np.zeros(len(labels))
        full[model.support_] = model.dual_coef_[0]
        beta.append(full)
    gram = rbf_kernel(X, gamma=gamma)
    return beta[0] @ gram @ beta[1] / np.sqrt((beta[0] @ gram @ beta[0]) * (beta[1] @ gram @ beta[1]))


def test_the_kept_flips_have_the_smallest_cosine_and_it_is_the_true_one(moons):
    X, y = moons
    result = AlfaTilt(budget=0.2, C=5.0, gamma=1.0, n_restarts=12, random_state=0).poison(X, y)
    assert len(result.details["cosines"]) == 12
    assert np.ptp(result.details["cosines"]) > 1e-3  # the random SVMs matter
    assert result.details["cosine"] == result.details["cosines"].min()
    assert result.details["cosine"] == pytest.approx(cosine(X, y, result.y, 5.0, 1.0), abs=1e-3)
    assert result.details["angle_degrees"] == pytest.approx(np.degrees(np.arccos(result.details["cosine"])))


def test_more_restarts_never_tilt_less(moons):
    X, y = moons
    angles = [
        AlfaTilt(budget=0.2, n_restarts=n, random_state=0).poison(X, y).details["angle_degrees"] for n in (25, 50, 100)
    ]
    assert angles == sorted(angles)


def test_without_random_part_every_proposal_is_the_same_and_scores_are_the_formula(moons):
    X, y = moons
    result = AlfaTilt(budget=10, C=2.0, gamma=1.0, n_restarts=3, beta2=0.0, random_state=0).poison(X, y)
    assert np.ptp(result.details["cosines"]) == 0
    model = SVC(C=2.0, gamma=1.0).fit(X, y)
    alpha = np.zeros(len(y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    margin = y * model.decision_function(X)
    expected = alpha / 2.0 - 0.1 * margin / np.abs(margin).max()
    np.testing.assert_allclose(-result.scores, expected, atol=1e-3)
    assert set(result.indices.tolist()) == set(np.argsort(expected)[:10].tolist())


def test_random_svms_favour_no_class(moons):
    X, y = moons
    settings = {"n_restarts": 20, "beta1": 0.0, "beta2": 1.0, "C": 10.0, "gamma": 1.0, "random_state": 0}
    result = AlfaTilt(budget=30, **settings).poison(X, y)
    assert set(y[result.indices]) == {-1, 1}


def test_the_low_rank_path_sees_the_angles_that_libsvm_sees(moons):
    X, y = moons
    settings = {"budget": 24, "C": 1.0, "gamma": 0.5, "n_restarts": 8, "random_state": 0}
    low = AlfaTilt(gram="low_rank", rank=120, **settings).poison(X, y)
    assert "low rank" in low.details["gram"]
    assert low.details["cosine"] == pytest.approx(cosine(X, y, low.y, 1.0, 0.5), abs=0.02)


def test_large_data_take_the_low_rank_path_and_the_budget_holds():
    X, y = make_moons(3100, noise=0.2, random_state=0)
    result = AlfaTilt(budget=0.1, C=1.0, gamma=1.0, n_restarts=2, rank=40, random_state=0).poison(X, y)
    assert "low rank" in result.details["gram"]
    assert len(result.indices) == 310


def test_settings_are_checked(moons):
    X, y = moons
    refuses("has no hyperplane to tilt", poison, X, y, attack="alfa-tilt", budget=3, surrogate=LogisticRegression())
    refuses("gram='sparse' must be one of", poison, X, y, attack="alfa-tilt", budget=3, gram="sparse")
    with pytest.raises(ValueError, match="n_restarts=0 must be a whole number of at least 1"):
        poison(X, y, attack="alfa-tilt", budget=3, n_restarts=0)
    refuses("may be indefinite", poison, X, y, attack="alfa-tilt", budget=3, kernel="sigmoid", gram="low_rank")
