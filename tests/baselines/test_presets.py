"""Named classifiers are presets: the same as sanitiser + SVC, and as the paper's game without its attacker."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_learn.baselines.curie import CurieSVC
from floral_learn.baselines.k_lid import KLIDWeightedSVC
from floral_learn.baselines.label_sanitation import LabelSanitizedSVC
from floral_learn.baselines.ln_svm import LabelNoiseSVC, correct_gram
from floral_learn.baselines.rsrnn import RSRNNClassifier
from floral_learn.baselines.svm import PlainSVC
from floral_learn.certify.partition import PartitionAggregationClassifier
from floral_learn.certify.smoothing import RandomizedSmoothingClassifier
from floral_learn.floral.paper import PaperFloralClassifier
from floral_learn.sanitizers import CurieFilter, KLIDWeights, KNNRelabel
from floral_learn.sanitizers.sanitized import SanitizedClassifier

PRESETS = [
    (CurieSVC(0.9, 6, gamma=0.7, C=2.0), CurieFilter(0.9, 6)),
    (
        CurieSVC(0.8, compare="random", gamma=0.7, C=2.0, random_state=5),
        CurieFilter(0.8, compare="random", random_state=5),
    ),
    (LabelSanitizedSVC(7, 0.6, gamma=0.7, C=2.0), KNNRelabel(7, 0.6)),
    (KLIDWeightedSVC(batch_size=20, gamma=0.7, C=2.0, random_state=3), KLIDWeights(batch_size=20, random_state=3)),
]
ALL = [
    PlainSVC(),
    LabelNoiseSVC(),
    CurieSVC(),
    LabelSanitizedSVC(5, 0.6),
    KLIDWeightedSVC(random_state=0),
    RandomizedSmoothingClassifier(),
    RandomizedSmoothingClassifier(kernel="rbf"),
    PartitionAggregationClassifier(n_partitions=5),
    RSRNNClassifier(random_state=0),
]
ids = lambda value: type(value).__name__  # noqa: E731


@pytest.mark.parametrize(("preset", "sanitizer"), PRESETS, ids=ids)
def test_preset_equals_sanitiser_then_svc(noisy_moons, noisy_blobs, preset, sanitizer):
    for X, y, _ in (noisy_moons(), noisy_blobs()):
        weight = np.linspace(0.5, 1.5, len(y))
        for given in (None, weight):
            named = preset.fit(X, y, sample_weight=given)
            generic = SanitizedClassifier(sanitizer, SVC(gamma=0.7, C=2.0)).fit(X, y, sample_weight=given)
            np.testing.assert_array_equal(named.decision_function(X), generic.decision_function(X))
            np.testing.assert_array_equal(named.kept_, generic.kept_)
            np.testing.assert_array_equal(named.relabeled_, generic.relabeled_)
        result = sanitizer.fit_sanitize(X, y)
        weights = weight[result.kept] * (1.0 if result.sample_weight is None else result.sample_weight)
        by_hand = SVC(gamma=0.7, C=2.0).fit(result.X, result.y, sample_weight=weights)
        np.testing.assert_array_equal(named.decision_function(X), by_hand.decision_function(X))
        touched = (~named.kept_).any() or named.relabeled_.any() or named.sample_weight_.std() > 0.3
        assert touched, "the sanitiser did nothing, so this compared SVC with itself"


@pytest.mark.parametrize(("preset", "sanitizer"), PRESETS, ids=ids)
def test_pgd_preset_equals_sanitiser_then_floral_without_attacker(noisy_moons, preset, sanitizer):
    X, y, _ = noisy_moons()
    rounds = {"n_rounds": 40, "learning_rate": 3e-3, "average": False, "decay": (0.1, 20)}
    named = type(preset)(**{**preset.get_params(), "solver": "pgd", **rounds}).fit(X, y)
    own = {"budget": 0, "projection": "exact", "random_state": preset.random_state, **rounds}
    floral = PaperFloralClassifier(gamma=0.7, C=2.0, **own)
    generic = SanitizedClassifier(sanitizer, floral).fit(X, y)
    np.testing.assert_array_equal(named.decision_function(X), generic.decision_function(X))
    assert isinstance(named.estimator_.estimator_, PaperFloralClassifier)


def test_plain_svc_is_svc_and_its_pgd_is_floral_without_attacker(noisy_moons):
    X, y, _ = noisy_moons()
    np.testing.assert_array_equal(
        PlainSVC(gamma=1.0).fit(X, y).decision_function(X), SVC(gamma=1.0, C=10.0).fit(X, y).decision_function(X)
    )
    ours = PlainSVC(gamma=1.0, solver="pgd", n_rounds=50, learning_rate=5e-4, average=False).fit(X, y)
    game = {"budget": 0, "n_rounds": 50, "learning_rate": 5e-4, "projection": "exact"}
    floral = PaperFloralClassifier(gamma=1.0, C=10.0, **game).fit(X, y)
    np.testing.assert_array_equal(ours.decision_function(X), floral.decision_function(X))


def test_pgd_run_long_reaches_the_libsvm_optimum(noisy_moons):
    X, y, _ = noisy_moons()
    exact = PlainSVC(gamma=1.0, C=1.0, tol=1e-8).fit(X, y).decision_function(X)
    long = PlainSVC(gamma=1.0, C=1.0, solver="pgd", n_rounds=6_000, average=False).fit(X, y).decision_function(X)
    np.testing.assert_allclose(long, exact, atol=0.02)


def test_label_noise_pgd_trains_on_the_corrected_gram(noisy_moons):
    from sklearn.metrics.pairwise import rbf_kernel

    X, y, _ = noisy_moons()
    rounds = {"n_rounds": 60, "learning_rate": 3e-3, "average": False}
    ours = LabelNoiseSVC(0.2, gamma=1.0, solver="pgd", **rounds).fit(X, y)
    K = rbf_kernel(X, gamma=1.0)
    floral = PaperFloralClassifier(kernel="precomputed", C=10.0, budget=0, projection="exact", **rounds)
    floral.fit(correct_gram(K, 0.2), y)
    np.testing.assert_allclose(ours.decision_function(X), floral.decision_function(K), atol=1e-8)


@pytest.mark.parametrize("model", ALL, ids=ids)
def test_words_booleans_and_floats_are_labels_like_any_other(noisy_moons, model):
    X, y, _ = noisy_moons()
    expected = model.fit(X, y).predict(X)
    for labels in (np.array(["no", "yes"])[y], y.astype(bool), np.array([-1.0, 1.0])[y]):
        classes = np.unique(labels)
        got = model.fit(X, labels).predict(X)
        np.testing.assert_array_equal(got, classes[expected])
        np.testing.assert_array_equal(model.classes_, classes)


@pytest.mark.parametrize("model", ALL, ids=ids)
def test_three_classes_frames_pipelines_and_searches(noisy_blobs, model):
    X, y, flipped = noisy_blobs()
    frame, words = pd.DataFrame(X, columns=["a", "b"]), pd.Series(np.array(["x", "y", "z"])[y])
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), model).fit(frame, words)
    truth = words[~flipped]
    assert pipe.score(frame[~flipped], truth) > 0.95
    assert pipe.decision_function(frame).shape == (len(X), 3)
    parameter = {"RSRNNClassifier": "n_centroids", "PartitionAggregationClassifier": "n_partitions"}.get(
        type(model).__name__, "ridge" if "Smoothing" in type(model).__name__ else "C"
    )
    search = GridSearchCV(model, {parameter: [3, 6]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.6


@pytest.mark.parametrize("model", ALL, ids=ids)
def test_probabilities_are_never_faked_and_come_from_calibration(noisy_moons, model):
    X, y, _ = noisy_moons(160, flips=6)
    assert not hasattr(model, "predict_proba")
    calibrated = CalibratedClassifierCV(model, method="sigmoid", cv=3).fit(X, y)
    chance = calibrated.predict_proba(X)
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    assert calibrated.score(X, y) > 0.75
    sure = chance.max(axis=1) > 0.8
    assert (calibrated.predict(X) == y)[sure].mean() > (calibrated.predict(X) == y)[~sure].mean()


def test_generic_offers_probabilities_only_where_the_inner_classifier_has_them(noisy_moons):
    X, y, _ = noisy_moons()
    logistic = SanitizedClassifier(KNNRelabel(), LogisticRegression())
    assert hasattr(logistic, "predict_proba")
    assert not hasattr(SanitizedClassifier(KNNRelabel(), SVC()), "predict_proba")
    fitted = logistic.fit(X, y)
    np.testing.assert_array_equal(fitted.predict_proba(X), fitted.estimator_.predict_proba(X))
    assert not hasattr(SanitizedClassifier(KNNRelabel(), KNeighborsClassifier()), "decision_function")


def test_label_sanitized_svc_takes_a_neighbour_graph_also_inside_a_pipeline(noisy_moons):
    X, y, _ = noisy_moons()
    graph = kneighbors_graph(X, 5)
    searched = LabelSanitizedSVC(5, 0.6).fit(X, y)
    given = LabelSanitizedSVC(50, 0.6).fit(X, y, graph=graph)
    np.testing.assert_array_equal(given.relabeled_, searched.relabeled_)
    pipe = make_pipeline(StandardScaler(), LabelSanitizedSVC(50, 0.6))
    pipe.fit(X, y, labelsanitizedsvc__graph=graph)
    np.testing.assert_array_equal(pipe[-1].relabeled_, searched.relabeled_)
    with pytest.raises(TypeError, match="unexpected keyword 'graph'; CurieFilter takes no further keywords"):
        CurieSVC().fit(X, y, graph=graph)


def test_weights_that_cannot_be_used_are_refused(noisy_moons):
    X, y, _ = noisy_moons()
    with pytest.raises(ValueError, match="KNeighborsClassifier cannot train with the weights of the sanitizer"):
        SanitizedClassifier(KLIDWeights(), KNeighborsClassifier()).fit(X, y)
    with pytest.raises(ValueError, match="KNeighborsClassifier cannot train with the weights of sample_weight"):
        SanitizedClassifier(KNNRelabel(), KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(len(y)))
    SanitizedClassifier(KNNRelabel(), KNeighborsClassifier()).fit(X, y)


@pytest.mark.parametrize("model", ALL, ids=ids)
def test_bad_data_gives_a_precise_error(noisy_moons, model):
    X, y, _ = noisy_moons()
    with pytest.raises(ValueError, match=f"{type(model).__name__} needs labels of at least 2 classes.*all 80"):
        model.fit(X, np.zeros(80, int))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(np.arange(80)[:, None] == 3, np.nan, X), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:-1])
    with pytest.raises(ValueError, match=r"minimum of 2|n_samples=1"):
        model.fit(X[:1], y[:1])
    with pytest.raises(ValueError, match=r"3 features, but .* is expecting 2 features"):
        model.fit(X, y).predict(np.ones((4, 3)))
    with pytest.raises(ValueError, match="needs labels of one type, and y mixes label types: number and str"):
        model.fit(X, np.array([1, "a"] * 40, dtype=object))
    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(X, np.linspace(0, 1, 80))


@pytest.mark.parametrize("model", [m for m in ALL if not isinstance(m, RSRNNClassifier)], ids=ids)
def test_weights_that_make_no_sense_give_a_precise_error(noisy_moons, model):
    X, y, _ = noisy_moons()
    with pytest.raises(ValueError, match="Negative values"):
        model.fit(X, y, sample_weight=np.where(np.arange(80) == 2, -1.0, 1.0))
    with pytest.raises(ValueError, match="sample_weight is zero on every row of class 1"):
        model.fit(X, y, sample_weight=(y == 0).astype(float))


@pytest.mark.parametrize("model", [m for m in ALL if hasattr(m, "solver")], ids=ids)
def test_svm_parameters_are_checked_by_every_preset(noisy_moons, model):
    X, y, _ = noisy_moons()
    for parameter, value in {"C": 0.0, "gamma": "big", "kernel": "cubic", "solver": "sgd", "n_rounds": 0}.items():
        bad = type(model)(**{**model.get_params(), parameter: value})
        with pytest.raises(ValueError, match=rf"'{parameter}' parameter of {type(model).__name__} must be"):
            bad.fit(X, y)
