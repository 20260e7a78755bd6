"""ContradictedLabels: leaves out scattered errors in front of any classifier, and otherwise changes nothing."""

import numpy as np
import pytest
import sklearn
from refusals import refuses
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from floral_learn import ContradictedLabels, SanitizedClassifier, find_label_issues
from floral_learn.paper import CurieFilter, KLIDWeights, KNNRelabel

MODELS = [SVC(), LogisticRegression(), RandomForestClassifier(30, random_state=0), KNeighborsClassifier(3)]


def one_way_moons(n=400, share=0.3):
    """Moons of which class 1 lost a share of its labels at random: rows, given labels, true ones."""
    X, truth = make_moons(n, noise=0.15, random_state=0)
    lost = (truth == 1) & (np.random.default_rng(0).random(n) < share)
    return X, np.where(lost, 0, truth), truth


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_labels_lost_at_random_are_left_out_in_front_of_any_classifier(model):
    X, y, truth = one_way_moons()
    safe = SanitizedClassifier(ContradictedLabels(random_state=0), model).fit(X, y)
    assert safe.sanitizer_.acted_
    assert (y != truth)[~safe.kept_].mean() > 0.8
    assert (~safe.kept_)[y != truth].mean() > 0.8
    assert "labels were left out" in safe.sanitizer_.summary_
    assert safe.score(X, truth) >= clone(model).fit(X, y).score(X, truth)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_where_it_does_nothing_predictions_are_those_of_the_plain_model(model):
    X, y = make_blobs(150, centers=[[0, 0], [9, 0]], random_state=0)
    safe = SanitizedClassifier(ContradictedLabels(random_state=0), model).fit(X, y)
    assert not safe.sanitizer_.acted_
    assert safe.kept_.all()
    assert safe.sample_weight_ is None
    assert safe.sanitizer_.summary_.startswith("Nothing was done")
    plain = clone(model).fit(X, y)
    method = "predict_proba" if hasattr(plain, "predict_proba") else "decision_function"
    np.testing.assert_array_equal(getattr(safe, method)(X), getattr(plain, method)(X))


def test_a_class_that_is_hard_by_nature_keeps_most_of_its_rows():
    for seed in range(3):  # a third positive, shifted by less than a deviation: at best seven in ten are right
        rng = np.random.default_rng(seed)
        y = (rng.random(400) < 0.3).astype(int)
        X = rng.normal(size=(400, 4)) + 0.9 * y[:, None] * np.array([1, 1, 0, 0])
        kept = ContradictedLabels(random_state=0).fit_resample(X, y)[1]
        assert kept.sum() > 0.5 * y.sum()


def test_it_leaves_out_the_labels_that_an_audit_flags_and_trains_once():
    fits = []

    class Counted(SVC):
        def fit(self, X, y):
            fits.append(len(y))
            return super().fit(X, y)

    X, y, _ = one_way_moons()
    safe = SanitizedClassifier(ContradictedLabels(random_state=0), Counted()).fit(X, y)
    np.testing.assert_array_equal(~safe.kept_, find_label_issues(X, y, random_state=0).flagged)
    assert fits == [safe.kept_.sum()]


def test_a_class_never_loses_all_of_its_rows():
    X, y, _ = one_way_moons()
    p = np.tile([0.97, 0.03], (400, 1))  # whoever says so contradicts all of class 1
    _, kept = ContradictedLabels().fit_resample(X, y, pred_probs=p)
    assert set(kept) == {0, 1}


def test_several_classes_words_sparse_rows_and_holes():
    X, y = make_blobs(300, centers=4, random_state=3)
    rng = np.random.default_rng(0)
    wrong = rng.random(300) < 0.15
    words = np.array(list("abcd"))[np.where(wrong, (y + 1) % 4, y)]
    holes = X.copy()
    holes[::13, 0] = np.nan
    for rows, model in (
        (X, SVC()),
        (sparse.csr_matrix(X - X.min()), SVC()),
        (holes, HistGradientBoostingClassifier(max_iter=5, random_state=0)),
    ):
        safe = SanitizedClassifier(ContradictedLabels(random_state=0), model).fit(rows, words)
        assert wrong[~safe.kept_].mean() > 0.8
        assert set(safe.predict(rows)) <= set("abcd")


def test_a_model_of_ones_own_and_probabilities_judge_in_place_of_the_librarys():
    X, y, truth = one_way_moons()
    own = ContradictedLabels(model=KNeighborsClassifier(15), random_state=0)
    sure = expit(3 * (2 * truth - 1) + np.random.default_rng(0).normal(size=400))
    p = np.column_stack([1 - sure, sure])
    for rule, options in ((own, {}), (ContradictedLabels(), {"pred_probs": p})):
        rule.fit_resample(X, y, **options)
        dropped = np.setdiff1d(np.arange(400), rule.sample_indices_)
        assert (y != truth)[dropped].mean() > 0.8
    refuses("pred_probs has shape", ContradictedLabels().fit_resample, X, y, pred_probs=p[:5])
    refuses("'model' parameter of ContradictedLabels", ContradictedLabels(model="oracle").fit_resample, X, y)


@pytest.mark.parametrize("sanitizer", [ContradictedLabels(random_state=0), CurieFilter(), KNNRelabel(threshold=0.8)])
def test_sanitisers_work_inside_the_pipelines_of_imbalanced_learn(sanitizer):
    pipeline = pytest.importorskip("imblearn.pipeline", reason="needs imbalanced-learn").make_pipeline
    X, y, _ = one_way_moons()
    made = pipeline(clone(sanitizer), SVC()).fit(X, y)
    first = clone(sanitizer)
    rows, labels = first.fit_resample(X, y)
    np.testing.assert_array_equal(made.predict(X), SVC().fit(rows, labels).predict(X))
    np.testing.assert_array_equal(X[first.sample_indices_], rows)
    np.testing.assert_array_equal(first.relabeled_[first.sample_indices_], labels != y[first.sample_indices_])


def test_what_only_weighs_is_used_through_its_weights():
    X, y, _ = one_way_moons()
    safe = SanitizedClassifier(KLIDWeights(random_state=0), SVC()).fit(X, y)
    weight = KLIDWeights(random_state=0).fit(X, y).sample_weight_
    np.testing.assert_array_equal(safe.sample_weight_, weight)
    np.testing.assert_array_equal(safe.predict(X), SVC().fit(X, y, sample_weight=weight).predict(X))
    doubled = SanitizedClassifier(KLIDWeights(random_state=0), SVC()).fit(X, y, sample_weight=np.full(400, 2.0))
    np.testing.assert_array_equal(doubled.sample_weight_, 2 * weight)


def test_the_model_behind_can_be_searched():
    X, y, _ = one_way_moons(200)
    safe = SanitizedClassifier(ContradictedLabels(random_state=0), SVC())
    found = GridSearchCV(safe, {"estimator__C": [0.1, 1.0], "sanitizer__random_state": [0]}, cv=2).fit(X, y)
    assert found.best_params_["estimator__C"] in (0.1, 1.0)


def test_metadata_is_routed_to_the_classifier_behind_for_the_kept_rows():
    class Watching(SVC):
        def fit(self, X, y, sample_weight=None, marks=None):
            self.marks_ = marks
            return super().fit(X, y, sample_weight=sample_weight)

    X, y, _ = one_way_moons()
    with sklearn.config_context(enable_metadata_routing=True):
        safe = SanitizedClassifier(ContradictedLabels(random_state=0), Watching().set_fit_request(marks=True))
        safe.fit(X, y, marks=np.arange(400))
        np.testing.assert_array_equal(safe.estimator_.marks_, np.flatnonzero(safe.kept_))


def test_a_class_whose_labels_all_look_wrong_keeps_one_of_them():
    truth = np.r_[np.zeros(104, int), np.ones(100, int)]
    y = np.r_[np.full(4, 2), truth[4:]]
    p = np.full((204, 3), 0.02)
    p[np.arange(204), truth] = 0.96
    _, labels = ContradictedLabels(random_state=0).fit_resample(truth[:, None] * 1.0, y, pred_probs=p)
    assert np.bincount(labels).tolist() == [100, 100, 1]
