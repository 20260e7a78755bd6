"""ContradictedLabels: finds what labels give away, behind any classifier, and otherwise changes nothing."""

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from floral_learn import ContradictedLabels, FloralClassifier, SanitizedClassifier
from floral_learn.labels.held_out import deal_folds, held_out, neighbor_shares, one_scale
from floral_learn.sanitizers.check import compare
from floral_learn.sanitizers.one_way import _shuffled_pairs, clumped, one_way_flips
from floral_learn.sanitizers.rule import RULE, RULE_MEMORISING, rule_for
from floral_learn.sanitizers.suspects import mixed_suspects, rarest_share, undecided


def one_way_moons(n=600, share=0.6, seed=0):
    """Moons of which class 1 lost a share of its labels at random."""
    X, truth = make_moons(n, noise=0.2, random_state=seed)
    rows = np.flatnonzero(truth == 1)
    y = truth.copy()
    y[np.random.default_rng(seed).choice(rows, int(share * len(rows)), replace=False)] = 0
    return X, y, truth


MODELS = [
    SVC(),
    LogisticRegression(),
    RandomForestClassifier(30, random_state=0),
    HistGradientBoostingClassifier(max_iter=20, random_state=0),
    KNeighborsClassifier(),
    make_pipeline(StandardScaler(), SVC()),
    FloralClassifier(C=1.0, budget=0.05, n_rounds=100, random_state=0),
]
ids = lambda value: type(value).__name__  # noqa: E731


@pytest.mark.parametrize("model", MODELS, ids=ids)
def test_a_class_that_lost_its_labels_is_found_behind_any_classifier(model):
    X, y, truth = one_way_moons()
    safe = SanitizedClassifier(ContradictedLabels(), model).fit(X, y)
    found = safe.sanitizer_
    assert found.acted_
    assert (y != truth)[found.suspects_].mean() > 0.8
    assert (~safe.kept_)[y != truth].mean() > 0.8
    assert "taken from class 1 at random; they were left out" in found.summary_
    assert safe.score(X, truth) > clone(model).fit(X, y).score(X, truth) + 0.1
    assert found.check_["recall"][1] > found.check_["recall"][0]


@pytest.mark.parametrize("model", MODELS, ids=ids)
def test_where_it_does_nothing_predictions_are_those_of_the_plain_model(model):
    X, y = make_blobs(150, centers=[[0, 0], [9, 0]], random_state=0)
    safe = SanitizedClassifier(ContradictedLabels(), model).fit(X, y)
    assert not safe.sanitizer_.acted_
    assert safe.kept_.all()
    assert safe.sample_weight_ is None
    assert safe.sanitizer_.summary_.startswith("Nothing was done")
    plain = clone(model).fit(X, y)
    method = "predict_proba" if hasattr(plain, "predict_proba") else "decision_function"
    np.testing.assert_array_equal(getattr(safe, method)(X), getattr(plain, method)(X))


def test_a_class_that_is_hard_by_nature_is_left_alone():
    for seed in range(5):  # a third positive, shifted by less than a deviation: at best seven in ten are right
        rng = np.random.default_rng(seed)
        y = (rng.random(400) < 0.3).astype(int)
        X = rng.normal(size=(400, 4)) + 0.9 * y[:, None] * np.array([1, 1, 0, 0])
        safe = SanitizedClassifier(ContradictedLabels(), SVC()).fit(X, y)
        assert safe.kept_.all()


def test_flips_beyond_a_rare_class_do_not_swallow_it():
    X, truth = make_blobs([380, 20], centers=[[0, 0], [3.5, 0]], random_state=0)
    y = truth.copy()
    y[np.random.default_rng(0).choice(380, 80, replace=False)] = 1  # four times as many as there are
    safe = SanitizedClassifier(ContradictedLabels(), SVC()).fit(X, y)
    plain = SVC().fit(X, y)
    assert safe.score(X, truth) >= plain.score(X, truth) - 0.02


def test_the_slope_is_level_for_contamination_and_not_for_overlap():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 500)
    for gap, lost, expected in ((4.0, 0.6, True), (4.0, 0.0, False), (1.0, 0.0, False)):
        x = rng.normal(size=1000) + gap * truth
        codes = np.where((truth == 1) & (rng.random(1000) < lost), 0, truth)
        shares = np.column_stack([-x, x])
        found = [p for p in one_way_flips(shares, shares, codes, np.ones(1000)) if p.counts(RULE)]
        assert bool(found) == expected
        if expected:
            assert [pattern.code for pattern in found] == [1]
            assert found[0].level > 0.8
            np.testing.assert_allclose(found[0].slopes[1], 300 / 800, atol=0.08)


def test_planted_labels_keep_to_themselves_and_lost_ones_do_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    inside = np.ones(300, bool)
    assert abs(clumped(X, inside, rng.random(300) < 0.4)) < 3
    assert clumped(X, inside, X[:, 0] > 0.3) > 10
    assert clumped(sparse.csr_matrix(X), inside, X[:, 0] > 0.3) > 10
    assert clumped(X, inside, np.ones(300, bool)) == 0.0


def test_the_moments_of_mixed_labels_are_those_of_shuffles():
    rng = np.random.default_rng(0)
    near = NearestNeighbors(n_neighbors=5).fit(rng.normal(size=(40, 2))).kneighbors(return_distance=False)
    kind = np.arange(40) < 12
    shuffled = np.array([rng.permutation(kind) for _ in range(4000)])
    pairs = (shuffled[:, near] == shuffled[:, :, None]).sum(axis=(1, 2))
    mean, deviation = _shuffled_pairs(near, 12)
    assert abs(mean - pairs.mean()) < 5 * deviation / np.sqrt(4000)
    assert abs(deviation / pairs.std() - 1) < 0.06


def test_what_a_model_learns_by_heart_is_measured_on_labels_that_it_has_seen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    codes = (X[:, 0] > 0).astype(int)
    wrong = rng.choice(400, 80, replace=False)
    codes[wrong] = 1 - codes[wrong]
    folds = deal_folds(codes, 4, rng)
    shares = {}
    for model in (LogisticRegression(), RandomForestClassifier(20, random_state=0)):
        found = held_out(model, X, codes, np.array([0, 1]), folds, ask_again=True)
        assert (found.seen >= 0).all()
        shares[type(model).__name__] = found.memorised(codes)
    assert shares["LogisticRegression"] < 0.2
    assert shares["RandomForestClassifier"] > 0.9
    assert held_out(LogisticRegression(), X, codes, np.array([0, 1]), folds).memorised(codes) == 0.0  # nobody asked
    assert rule_for(0.2) is RULE
    assert rule_for(float("nan")) is RULE
    assert rule_for(0.9) is RULE_MEMORISING


def test_a_class_that_is_rare_as_it_stands_is_left_alone():
    X, truth = make_blobs([300, 100], centers=[[0, 0], [4, 0]], shuffle=False, random_state=0)
    y = truth.copy()
    y[300 + np.random.default_rng(0).choice(100, 55, replace=False)] = 0  # 45 of 400 are left
    safe = SanitizedClassifier(ContradictedLabels(), SVC()).fit(X, y)
    assert safe.kept_.all()  # rare by nature with labels planted around it would look the same
    pattern = [p for p in one_way_flips(*[np.column_stack([-X[:, 0], X[:, 0]])] * 2, y, np.ones(400)) if p.code == 1]
    assert pattern[0].share == pytest.approx(2 * 45 / 400)


def test_the_check_pairs_the_predictions_and_counts_classes_alike():
    codes = np.array([0, 0, 0, 0, 1, 1])
    plain, mended = np.array([0, 0, 0, 1, 0, 0]), np.array([0, 0, 1, 0, 1, 1])
    told = compare(plain, mended, codes, np.ones(6))
    assert told.accuracy == (0.5, pytest.approx(5 / 6))
    assert told.accuracy_errors == pytest.approx(2 / 2)  # three right, one wrong that was right: 2 / sqrt(4)
    assert told.recall == (0.375, 0.875)
    assert told.recall_rise == pytest.approx(1.0)
    assert told.recall_errors == pytest.approx(1.0 / np.sqrt(2 * 0.25**2 + 2 * 0.5**2))
    assert compare(plain, plain, codes, np.ones(6)).accuracy_errors == 0.0
    np.testing.assert_allclose(compare(plain, mended, codes, np.full(6, 3.0)).accuracy_errors, told.accuracy_errors)


def test_suspects_are_labels_that_lie_at_random_where_both_judges_agree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    X[:300, 0] -= 4
    truth = np.repeat([0, 1], 300)
    shares = np.eye(2)[truth] * 0.8 + 0.1
    wrong = rng.random(600) < 0.2
    np.testing.assert_array_equal(mixed_suspects(X, shares, shares, np.where(wrong, 1 - truth, truth), 3.0), wrong)
    chosen = X[:, 1] > 1  # all in one corner: who is right is open
    assert not mixed_suspects(X, shares, shares, np.where(chosen, 1 - truth, truth), 3.0).any()
    half = np.where(truth == 0, chosen, wrong)  # each class by itself
    found = mixed_suspects(X, shares, shares, np.where(half, 1 - truth, truth), 3.0)
    np.testing.assert_array_equal(found, wrong & (truth == 1))
    assert not mixed_suspects(X, shares, shares[::-1], np.where(wrong, 1 - truth, truth), 3.0).any()
    codes = np.array([0, 0, 0, 1, 1])
    assert undecided(np.array([1, 1, 0, 0, 0], bool), codes, np.ones(5)).tolist() == [True, True, True, False, False]
    assert rarest_share(codes, np.ones(5)) == pytest.approx(0.8)
    assert rarest_share(np.array([0, 2, 2]), np.array([3.0, 1.0, 2.0])) == pytest.approx(1.0)


def test_several_classes_words_and_sparse_rows():
    angle = 2 * np.pi * np.arange(4) / 4
    X, codes = make_blobs(480, centers=5 * np.column_stack([np.cos(angle), np.sin(angle)]), random_state=0)
    truth = np.array(["ant", "bee", "cat", "dog"])[codes]
    y = truth.copy()
    rows = np.flatnonzero(truth == "cat")
    y[np.random.default_rng(0).choice(rows, 70, replace=False)] = "dog"
    dense = SanitizedClassifier(ContradictedLabels(), SVC(gamma=0.1)).fit(X, y)
    assert dense.sanitizer_.acted_
    assert "class 'cat'" in dense.sanitizer_.summary_
    assert dense.score(X, truth) > SVC(gamma=0.1).fit(X, y).score(X, truth) + 0.1
    wide = sparse.csr_matrix(np.where(np.abs(X) < 0.3, 0.0, X))
    other = SanitizedClassifier(ContradictedLabels(), LogisticRegression()).fit(wide, y)
    assert other.sanitizer_.acted_, other.sanitizer_.summary_
    assert other.score(wide, truth) > 0.9
    np.testing.assert_allclose(one_scale(wide).toarray().std(axis=0), 1.0)


def test_missing_values_reach_a_model_that_takes_them():
    X, y, truth = one_way_moons()
    holes = X.copy()
    holes[::17, 0] = np.nan
    trees = HistGradientBoostingClassifier(max_iter=20, random_state=0)
    safe = SanitizedClassifier(ContradictedLabels(), trees).fit(holes, y)
    assert safe.score(holes, truth) > 0.8
    with pytest.raises(ValueError, match="NaN"):
        SanitizedClassifier(ContradictedLabels(), SVC()).fit(holes, y)


def test_rows_of_weight_zero_are_as_if_they_were_not_there():
    X, y, _ = one_way_moons()
    extra = np.random.default_rng(1).normal(size=(60, 2))
    padded, labels = np.vstack([X, extra]), np.concatenate([y, np.arange(60) % 2])
    weight = np.concatenate([np.ones(600), np.zeros(60)])
    alone, among = ContradictedLabels(), ContradictedLabels()
    alone.fit_sanitize(X, y, estimator=SVC())
    result = among.fit_sanitize(padded, labels, weight, estimator=SVC())
    np.testing.assert_array_equal(among.weights_[:600], alone.weights_)
    np.testing.assert_array_equal(among.support_[:600], alone.support_)
    assert np.isnan(among.support_[600:]).all()
    assert result.kept[600:].all()


def test_weights_count_in_votes_folds_and_slopes():
    X, y, truth = one_way_moons()
    weight = np.where(y == truth, 1.0, 1e-6)  # the wrong labels hardly count: there is nothing to mend
    safe = SanitizedClassifier(ContradictedLabels(), SVC()).fit(X, y, sample_weight=weight)
    assert not safe.sanitizer_.acted_
    with pytest.raises(ValueError, match="cannot train with"):
        SanitizedClassifier(ContradictedLabels(), KNeighborsClassifier()).fit(X, y, sample_weight=weight)


def test_probabilities_of_another_model_judge_in_its_place():
    X, y, truth = one_way_moons()
    probabilities = cross_val_predict(RandomForestClassifier(50, random_state=0), X, y, cv=4, method="predict_proba")
    safe = SanitizedClassifier(ContradictedLabels(), SVC()).fit(X, y, pred_probs=probabilities)
    assert safe.sanitizer_.acted_
    assert safe.score(X, truth) > 0.9
    alone = ContradictedLabels("trees")
    assert (y != truth)[~alone.fit_sanitize(X, y, pred_probs=probabilities).kept].mean() > 0.8
    for wrong, match in (
        (probabilities[:, :1], r"shape \(600, 2\).*got \(600, 1\)"),
        (probabilities * 2, "sum to 1 in each row; row"),
        (-probabilities, "finite and not negative, held-out probabilities of each class; row 0 has -"),
        (np.full((600, 2), "a"), "pred_probs must be numbers.*'a'"),
    ):
        with pytest.raises(ValueError, match=match):
            ContradictedLabels().fit_sanitize(X, y, pred_probs=wrong)


@pytest.mark.parametrize("judge", ["linear", "neighbors", "trees", LogisticRegression()])
def test_a_cheap_judge_spares_the_model_behind(judge):
    X, y, _ = one_way_moons()
    CountsFits.fits = 0
    SanitizedClassifier(ContradictedLabels(judge), CountsFits()).fit(X, y)
    assert CountsFits.fits == 1


@pytest.mark.parametrize("judge", [None, "linear", "trees", LogisticRegression()], ids=str)
def test_scattered_labels_are_left_out_behind_a_model_without_weights(judge):
    X, truth = make_blobs(500, centers=[[0, 0], [3, 0]], random_state=1)
    y = np.where(np.random.default_rng(0).random(500) < 0.3, 1 - truth, truth)
    near = KNeighborsClassifier(1)  # learns every wrong label by heart, and takes no weights
    safe = SanitizedClassifier(ContradictedLabels(judge), near).fit(X, y)
    assert set(safe.sanitizer_.weights_) <= {0.0, 1.0}
    assert safe.sample_weight_ is None
    if judge is None:
        assert safe.sanitizer_.acted_, safe.sanitizer_.summary_
        assert safe.score(X, truth) > near.fit(X, y).score(X, truth) + 0.06


class CountsFits(ClassifierMixin, BaseEstimator):
    """A tree that counts how many rows it was fitted on."""

    fits, rows = 0, 0

    def fit(self, X, y):
        """Count and remember."""
        CountsFits.fits, CountsFits.rows = CountsFits.fits + 1, CountsFits.rows + len(y)
        self.model_ = KNeighborsClassifier().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        """Class of each row."""
        return self.model_.predict(X)


def test_a_fit_costs_at_most_eight_plain_fits():
    X, y, _ = one_way_moons()
    CountsFits.rows = 0
    SanitizedClassifier(ContradictedLabels(), CountsFits()).fit(X, y)
    assert 3 * len(y) < CountsFits.rows <= 8 * len(y)


def test_workers_progress_and_seeds(capsys):
    X, y, _ = one_way_moons(200)
    one = ContradictedLabels(verbose=1)
    one.fit_sanitize(X, y, estimator=SVC())
    told = capsys.readouterr().err
    assert "plain model, fold 4 of 4" in told
    assert one.summary_ in told
    two = ContradictedLabels(n_jobs=2)
    two.fit_sanitize(X, y, estimator=SVC())
    np.testing.assert_array_equal(one.weights_, two.weights_)
    assert capsys.readouterr().err == ""
    generator = ContradictedLabels(random_state=np.random.RandomState(3))
    assert generator.fit_sanitize(X, y, estimator=SVC()).kept.shape == (200,)


def test_folds_spread_a_class_with_fewer_rows_than_folds():
    codes = np.array([0] * 10 + [1] * 3)
    folds = deal_folds(codes, 4, np.random.default_rng(0))
    assert len(set(folds[codes == 1])) == 3
    assert np.bincount(folds).max() - np.bincount(folds).min() <= 1
    X = np.arange(13.0)[:, None]
    found = held_out(LogisticRegression(), X, np.repeat([0, 1], [12, 1]), np.array([4, 7]), folds)
    assert found.shares.shape == (13, 2)
    assert found.predicted[-1] == 0  # its only row was held out: the model has never seen its class


def test_a_row_does_not_vote_for_itself_even_among_duplicates():
    X = np.zeros((6, 2))
    shares = neighbor_shares(X, np.array([0, 0, 0, 1, 1, 1]), 2, 5)
    assert shares.shape == (6, 2)
    apart = neighbor_shares(np.arange(6.0)[:, None], np.array([0, 1, 0, 0, 1, 1]), 2, 2)
    np.testing.assert_allclose(apart[1], [1.0, 0.0])


def test_with_many_rows_a_part_of_them_votes():
    X, y, _ = one_way_moons(3000)
    all_vote, some_vote = (neighbor_shares(X, y, 2, 30, most_voters=most) for most in (10_000, 1000))
    np.testing.assert_allclose(some_vote.sum(axis=1), 1.0)
    assert np.corrcoef(all_vote[:, 1], some_vote[:, 1])[0, 1] > 0.8


def test_bad_parameters_and_models_without_features_are_refused():
    X, y, _ = one_way_moons(100)
    with pytest.raises(ValueError, match=r"'judge' parameter .* must be"):
        ContradictedLabels("oracle").fit_sanitize(X, y)
    with pytest.raises(ValueError, match=r"'n_folds' parameter .* must be"):
        ContradictedLabels(n_folds=1).fit_sanitize(X, y)
    with pytest.raises(ValueError, match="needs features, and SVC takes a precomputed kernel"):
        ContradictedLabels().fit_sanitize(X @ X.T, y, estimator=SVC(kernel="precomputed"))
    with pytest.raises(TypeError, match=r"estimator=SVC is a class; give an instance, SVC\(\)"):
        SanitizedClassifier(ContradictedLabels(), SVC).fit(X, y)
    with pytest.raises(ValueError, match="estimator=Ridge is a regressor; a classifier is needed"):
        SanitizedClassifier(ContradictedLabels(), Ridge()).fit(X, y)
    with pytest.raises(TypeError, match="unexpected keyword 'grpah'; ContradictedLabels takes pred_probs"):
        SanitizedClassifier(ContradictedLabels(), SVC()).fit(X, y, grpah=None)


def test_the_classifier_behind_can_be_searched():
    X, y, _ = one_way_moons()
    model = SanitizedClassifier(ContradictedLabels(), SVC(gamma=0.7))
    search = GridSearchCV(model, {"estimator__C": [0.5, 1.0]}, cv=2).fit(X, y)
    assert search.best_params_["estimator__C"] == search.best_estimator_.estimator_.C
    assert not search.best_estimator_.kept_.all()


class AsksForSensors(ClassifierMixin, BaseEstimator):
    """Remembers the metadata that reached it."""

    def fit(self, X, y, sample_weight=None, sensors=None):
        """Remember."""
        self.classes_, self.sensors_, self.weight_ = np.unique(y), sensors, sample_weight
        return self

    def predict(self, X, mode=None):
        """The first class, or the last."""
        return np.repeat(self.classes_[-1 if mode == "last" else 0], len(X))


def test_metadata_is_routed_to_the_classifier_behind_for_the_kept_rows():
    X, y, _ = one_way_moons()
    with sklearn.config_context(enable_metadata_routing=True):
        behind = AsksForSensors().set_fit_request(sensors=True).set_predict_request(mode=True)
        judged = ContradictedLabels("linear")
        safe = SanitizedClassifier(judged, behind).fit(X, y, sensors=np.arange(600), sample_weight=np.full(600, 2.0))
        np.testing.assert_array_equal(safe.estimator_.sensors_, np.flatnonzero(safe.kept_))
        assert (safe.estimator_.weight_ == 2).all()
        assert (safe.predict(X, mode="last") == 1).all()
        pipe = make_pipeline(StandardScaler(), SanitizedClassifier(judged, behind).set_fit_request(pred_probs=True))
        with pytest.raises(ValueError, match="pred_probs must sum to 1"):  # so they got there
            pipe.fit(X, y, pred_probs=np.full((600, 2), 0.4))
        with pytest.raises(TypeError, match="colour"):
            SanitizedClassifier(judged, behind).fit(X, y, colour=1)
