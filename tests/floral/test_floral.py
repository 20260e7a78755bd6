"""FloralClassifier: a good scikit-learn citizen that plays the game it is asked to play."""

import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed
from refusals import refuses
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info, threadpool_limits

from floral_learn import FloralClassifier
from floral_learn.game import DenseGram, Game, Kernel, RandomizedTopK, solve, step_schedule
from floral_learn.paper import PaperFloralClassifier

X, Y = make_moons(200, noise=0.2, random_state=0)
NAMES = np.array(["no", "yes"])[Y]
CONVERGED = {"budget": 0, "n_rounds": 20_000}

# Random flips fall on other rows when rows are repeated: with the attacker on, weights cannot equal repetition.
_RANDOM = "flips are drawn by row: a repeated row is two rows to the attacker; exact with the attacker off (budget=0)"
EXPLAINED = {
    "check_sample_weight_equivalence_on_dense_data": _RANDOM,
    "check_sample_weight_equivalence_on_sparse_data": _RANDOM,
}


def explained(estimator):
    return EXPLAINED if estimator.budget == 0.3 else {}


@parametrize_with_checks([FloralClassifier(n_rounds=500, budget=0)], expected_failed_checks=explained)
def test_scikit_learn_checks(estimator, check):
    """With the attacker off, where weights equal repetition; the defaults are in test_estimator_checks.py."""
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        FloralClassifier(n_rounds=100),
        FloralClassifier(n_rounds=2000, budget=0),
        FloralClassifier(n_rounds=20, budget=0.3, multi_class="one-vs-rest"),
        FloralClassifier(n_rounds=20, kernel="linear", gram="low_rank"),
        FloralClassifier(n_rounds=10, device="cpu", gram="dense"),
        PaperFloralClassifier(n_rounds=100, learning_rate="auto"),
    ],
    expected_failed_checks=explained,
)
def test_scikit_learn_checks_of_further_configurations(estimator, check):
    check(estimator)


def test_the_estimator_is_the_game():
    played = {"learning_rate": "auto", "average": True, "projection": "exact"}
    clf = PaperFloralClassifier(C=10.0, gamma=1.0, budget=20, random_state=np.random.default_rng(0), **played)
    clf.fit(X, Y)
    seeds = np.random.default_rng(0).integers(2**62, size=2)
    gram = DenseGram.from_rows(X, Kernel("rbf", gamma=1.0))
    eta = 1.5 / gram.lambda_max(200, 1e-10, centred=True)
    game = Game(gram, Y, np.full(200, 10.0), step_schedule(eta, 500), RandomizedTopK(20, 10), seeds=seeds[:1])
    result = solve(game)
    np.testing.assert_array_equal(clf.dual_coef_[0], result.mean_weights[clf.support_, 0])
    np.testing.assert_array_equal(clf.intercept_, result.mean_bias)
    np.testing.assert_allclose(
        clf.decision_function(X), gram.matrix @ result.mean_weights[:, 0] + result.mean_bias, atol=1e-9
    )
    np.testing.assert_array_equal(clf.flip_rate_, result.flip_rate[:, 0])


@pytest.mark.parametrize("weights", [None, "sample", "class"])
def test_with_the_attacker_off_it_converges_to_svc(weights):
    sample = np.random.default_rng(0).uniform(0.2, 2, size=200) if weights == "sample" else None
    balance = {0: 0.5, 1: 2.0} if weights == "class" else None
    svc = SVC(C=1.0, gamma=1.0, class_weight=balance, tol=1e-8).fit(X, Y, sample_weight=sample)
    clf = FloralClassifier(C=1.0, gamma=1.0, class_weight=balance, **CONVERGED).fit(X, Y, sample_weight=sample)
    np.testing.assert_allclose(clf.decision_function(X), svc.decision_function(X), atol=2e-3)


def test_integer_weights_are_repeated_rows_with_the_attacker_off():
    times = np.arange(200) % 3
    plain = FloralClassifier(budget=0, n_rounds=5000).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
    weighted = FloralClassifier(budget=0, n_rounds=5000).fit(X, Y, sample_weight=times)
    np.testing.assert_allclose(weighted.decision_function(X), plain.decision_function(X), atol=1e-6)
    assert not set(weighted.support_) & set(np.flatnonzero(times == 0))


def test_rows_of_weight_zero_are_never_flipped():
    weight = np.ones(200)
    weight[:60] = 0
    clf = FloralClassifier(budget=0.3).fit(X, Y, sample_weight=weight)
    assert clf.flip_rate_[:60].max() == 0
    assert clf.flip_rate_.max() > 0


def test_attributes_are_those_of_svc():
    clf = FloralClassifier(budget=0.1, tol=None, random_state=0).fit(X, NAMES)
    assert list(clf.classes_) == ["no", "yes"]
    assert clf.dual_coef_.shape == (1, len(clf.support_))
    assert clf.support_vectors_.shape == (len(clf.support_), 2)
    np.testing.assert_array_equal(clf.support_vectors_, X[clf.support_])
    assert clf.n_support_.sum() == len(clf.support_)
    assert clf.intercept_.shape == (1,)
    assert (clf.n_iter_, clf.budget_, clf.flips_) == (500, 20, 10)
    assert "dense, 200 rows, float64, 320 kB" in clf.gram_
    by_hand = np.exp(-clf.gamma_ * ((X[:, None] - clf.support_vectors_[None]) ** 2).sum(-1))
    np.testing.assert_allclose(by_hand @ clf.dual_coef_[0] + clf.intercept_, clf.decision_function(X), atol=1e-9)
    assert set(clf.history_) >= {"objective", "residual", "bias", "mu", "step", "flips"}
    assert all(len(v) == 500 for v in clf.history_.values())


@pytest.mark.parametrize("labels", [Y, Y.astype(bool), NAMES, NAMES.astype(object), np.where(Y, 7.0, -3.0)], ids=str)
def test_any_labels(labels):
    clf = FloralClassifier(n_rounds=100, random_state=0).fit(X, labels)
    assert clf.predict(X).dtype == np.asarray(labels).dtype
    assert clf.score(X, labels) > 0.9


def test_pandas_pipeline_grid_search_and_clone():
    frame = pd.DataFrame(X, columns=["a", "b"])
    clf = FloralClassifier(n_rounds=60, random_state=0)
    fitted = clone(clf).fit(frame, pd.Series(NAMES))
    assert list(fitted.feature_names_in_) == ["a", "b"]
    refuses("feature names", fitted.predict, frame[["b", "a"]])
    pipe = make_pipeline(StandardScaler(), clf)
    assert cross_val_score(pipe, frame, NAMES, cv=3).mean() > 0.85
    search = GridSearchCV(pipe, {"floralclassifier__gamma": [0.01, 1.0], "floralclassifier__budget": [0, 10]}, cv=3)
    assert search.fit(frame, NAMES).best_params_["floralclassifier__gamma"] == 1.0


def test_trusted_labels_are_never_flipped():
    trusted = np.arange(200) % 3 == 0
    clf = FloralClassifier(budget=0.3, random_state=0).fit(X, Y, trusted=trusted)
    assert clf.flip_rate_[trusted].max() == 0
    assert clf.flip_rate_[~trusted].max() > 0


def test_the_paper_predicts_with_the_last_iterate_and_the_default_with_the_mean():
    last = PaperFloralClassifier(budget=0.2, random_state=0).fit(X, Y)
    mean = FloralClassifier(budget=0.2, random_state=0).fit(X, Y)
    assert last.intercept_[0] == last.history_["bias"][-1]
    assert mean.n_iter_ < 500
    assert mean.intercept_[0] == pytest.approx(mean.history_["bias"][mean.n_iter_ // 2 :].mean())


@pytest.mark.parametrize("rounds", [7, 30, 77])
def test_however_many_rounds_the_last_half_of_them_is_averaged(rounds):
    clf = FloralClassifier(budget=0.2, tol=None, n_rounds=rounds, random_state=0).fit(X, Y)
    assert clf.n_iter_ == rounds
    assert clf.intercept_[0] == pytest.approx(clf.history_["bias"][rounds // 2 :].mean())


def test_a_game_ends_when_it_has_settled_and_says_when_it_has_not():
    clf = FloralClassifier(random_state=0).fit(X, Y)
    assert clf.n_iter_ in (64, 96, 128)
    assert FloralClassifier(tol=1e-9, n_rounds=100, random_state=0).fit(X, Y).n_iter_ == 100
    with pytest.warns(ConvergenceWarning, match="still moved after n_rounds=100 rounds: raise n_rounds or tol"):
        FloralClassifier(tol=1e-9, n_rounds=100, random_state=0).fit(X, Y)
    exact = FloralClassifier(budget=0, n_rounds=5000).fit(X, Y)
    assert exact.residual_ <= 3e-4
    assert exact.n_iter_ < 5000


def test_budget_below_two_points_turns_the_attacker_off():
    clf = FloralClassifier(budget=1, n_rounds=50).fit(X, Y)
    assert (clf.budget_, clf.flips_) == (0, 0)
    assert not clf.flip_rate_.any()


def test_random_state_decides_the_flips():
    runs = [FloralClassifier(budget=0.2, n_rounds=60, random_state=s).fit(X, Y).dual_coef_ for s in (0, 0, 1)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert runs[0].shape != runs[2].shape or (runs[0] != runs[2]).any()


def test_it_defends_moon_against_flipped_labels():
    rng = np.random.default_rng(0)
    poisoned = Y.copy()
    far = np.argsort(-np.abs(SVC(kernel="linear").fit(X, Y).decision_function(X)))[:20]
    poisoned[far] = 1 - poisoned[far]
    P, truth = make_moons(1000, noise=0.2, random_state=int(rng.integers(1000)))
    plain = SVC(C=10, gamma=1.0).fit(X, poisoned).score(P, truth)
    floral = FloralClassifier(gamma=1.0, budget=0.2, random_state=0).fit(X, poisoned).score(P, truth)
    assert floral > plain + 0.02


class TestMultiClass:
    P, labels = make_blobs(240, centers=4, cluster_std=1.5, random_state=0)

    def test_four_classes(self):
        clf = FloralClassifier(random_state=0).fit(self.P, np.array(list("wxyz"))[self.labels])
        assert clf.decision_function(self.P).shape == (240, 4)
        assert clf.dual_coef_.shape == (6, len(clf.support_))
        svc = SVC().fit(self.P, self.labels).score(self.P, self.labels)
        assert clf.score(self.P, np.array(list("wxyz"))[self.labels]) > svc - 0.02

    def test_digits_beside_svc(self):
        D, digits = load_digits(return_X_y=True)
        train, test = np.arange(0, 1200), np.arange(1200, len(digits))
        svc = SVC().fit(D[train], digits[train]).score(D[test], digits[test])
        clf = FloralClassifier(random_state=0).fit(D[train], digits[train])
        assert clf.score(D[test], digits[test]) > svc - 0.02
        exact = FloralClassifier(budget=0, n_rounds=2000).fit(D[train], digits[train])
        assert (exact.predict(D[test]) == SVC().fit(D[train], digits[train]).predict(D[test])).mean() > 0.995

    def test_budget_for_each_class(self):
        budget = {0: 10, 1: 0.05, 2: 0, 3: 4}
        clf = PaperFloralClassifier(budget=budget, flips=4, n_rounds=60, random_state=0).fit(self.P, self.labels)
        assert clf.budget_ == 10 + 12 + 0 + 4
        refuses("exactly the classes", PaperFloralClassifier(budget={0: 10}).fit, self.P, self.labels)
        refuses("three or more classes", PaperFloralClassifier(budget={0: 1, 1: 2}).fit, X, Y)
        refuses("'budget' parameter of FloralClassifier", FloralClassifier(budget=budget).fit, self.P, self.labels)

    def test_flip_distribution(self):
        q = np.roll(np.eye(4), 1, axis=1)
        clf = PaperFloralClassifier(budget=0.1, flip_distribution=q, n_rounds=30, random_state=0)
        assert clf.fit(self.P, self.labels).flip_rate_.max() > 0  # to which class is tested on the game
        refuses(r"shape \(4, 4\)", PaperFloralClassifier(flip_distribution=np.eye(3)).fit, self.P, self.labels)
        refuses("row-stochastic", PaperFloralClassifier(flip_distribution=np.ones((4, 4))).fit, self.P, self.labels)


@pytest.mark.parametrize("gram", ["dense", 200])
@pytest.mark.parametrize("device", [None, "cpu"])
def test_every_operator_and_device_gives_the_same_model(gram, device):
    if device is not None:
        pytest.importorskip("torch")
    clf = FloralClassifier(gamma=1.0, budget=0.1, gram=gram, device=device, random_state=0).fit(X, Y)
    reference = FloralClassifier(gamma=1.0, budget=0.1, random_state=0).fit(X, Y)
    np.testing.assert_allclose(clf.decision_function(X), reference.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(clf.flip_rate_, reference.flip_rate_)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid", "laplacian"])
def test_kernels_and_csr_rows(kernel):
    S = sparse.csr_matrix(np.where(np.abs(X) > 0.3, X, 0))
    params = {"kernel": kernel, "gamma": 0.5, "degree": 2, "coef0": 1.0, "n_rounds": 100, "random_state": 0}
    dense, csr = (FloralClassifier(**params).fit(rows, Y) for rows in (S.toarray(), S))
    np.testing.assert_allclose(csr.decision_function(S), dense.decision_function(S.toarray()), atol=1e-8)


def test_callable_and_precomputed_equal_the_named_kernel():
    reference = FloralClassifier(gamma=1.0, random_state=0).fit(X, Y)

    def rbf(A, B):
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(-1))

    called = FloralClassifier(kernel=rbf, random_state=0).fit(X, Y)
    given = FloralClassifier(kernel="precomputed", random_state=0).fit(rbf(X, X), Y)
    P = X[:50] + 0.01
    np.testing.assert_allclose(called.decision_function(P), reference.decision_function(P), atol=1e-7)
    np.testing.assert_allclose(given.decision_function(rbf(P, X)), reference.decision_function(P), atol=1e-7)


def test_larger_data_goes_low_rank_and_agrees_with_dense():
    P, labels = make_moons(3500, noise=0.25, random_state=1)
    low = FloralClassifier(n_rounds=100, tol=None, random_state=0).fit(P, labels)  # equally many rounds of both
    assert low.gram_.startswith("low rank")
    dense = FloralClassifier(n_rounds=100, tol=None, gram="dense", random_state=0).fit(P, labels)
    T, _ = make_moons(2000, noise=0.25, random_state=2)
    assert np.mean(low.predict(T) == dense.predict(T)) > 0.995


def test_a_step_over_the_bound_warns_and_names_it():
    with pytest.warns(UserWarning, match=r"learning_rate=1 is above 2 / lambda_max = 0\.0\d+"):
        FloralClassifier(gamma=1.0, learning_rate=1.0, n_rounds=5).fit(X, Y)


def test_label_issues_rank_planted_flips_first():
    poisoned = Y.copy()
    planted = np.random.default_rng(1).choice(200, 20, replace=False)
    poisoned[planted] = 1 - poisoned[planted]
    issues = (
        FloralClassifier(gamma=1.0, budget=0.1, random_state=0).fit(X, np.array(["a", "b"])[poisoned]).label_issues()
    )
    assert list(issues.columns) == ["row", "given", "suggested", "score", "flagged", "reasons"]
    assert sorted(issues["row"]) == list(range(200))
    assert (issues["flagged"] == (issues["score"] >= 0.5)).all()
    assert np.isin(issues["row"][issues["flagged"]], planted).mean() > 0.6
    assert "suggested" in str(issues.head())  # a printed table keeps its columns
    assert issues["score"].is_monotonic_decreasing
    assert issues["score"].between(0, 1).all()
    assert np.isin(issues["row"][:20], planted).mean() > 0.6
    top = issues.iloc[0]
    assert top["given"] != top["suggested"]
    assert "model" in top["reasons"]


BAD = [
    (FloralClassifier, {"budget": 1.5}, r"budget=1.5 is a fraction and must lie in \[0, 1\]"),
    (FloralClassifier, {"budget": 500}, "budget=500 must be between 0 and the number of rows, 200"),
    (FloralClassifier, {"budget": -3}, "budget=-3 must be between 0"),
    (FloralClassifier, {"tol": 0.0}, "'tol' parameter"),
    (FloralClassifier, {"multi_class": "ovo"}, "'multi_class' parameter"),
    (FloralClassifier, {"budget": "automatic"}, "'budget' parameter of FloralClassifier must be"),
    (FloralClassifier, {"budget": "auto"}, "'budget' parameter of FloralClassifier must be"),
    (FloralClassifier, {"C": "auto"}, "'C' parameter of FloralClassifier must be"),
    (FloralClassifier, {"budget": 10, "flips": 11}, "flips=11 is 11 points, more than the budget of 10"),
    (FloralClassifier, {"C": 0}, "'C' parameter of FloralClassifier must be"),
    (FloralClassifier, {"kernel": "rfb"}, "'kernel' parameter of FloralClassifier must be"),
    (FloralClassifier, {"gamma": -1.0}, "'gamma' parameter"),
    (FloralClassifier, {"gram": "sparse"}, "'gram' parameter of FloralClassifier must be"),
    (FloralClassifier, {"gram": 0}, "'gram' parameter of FloralClassifier must be"),
    (FloralClassifier, {"n_rounds": 0}, "'n_rounds' parameter"),
    (FloralClassifier, {"learning_rate": 0.0}, "'learning_rate' parameter"),
    (PaperFloralClassifier, {"decay": (0.1,)}, r"decay=\(0.1,\) must be None or"),
    (PaperFloralClassifier, {"decay": (2.0, 100)}, "decay="),
    (PaperFloralClassifier, {"decay": ("a", 1)}, "decay="),
    (PaperFloralClassifier, {"projection": "newton"}, "'projection' parameter of PaperFloralClassifier"),
]


@pytest.mark.parametrize(("model", "params", "message"), BAD, ids=lambda v: str(v)[:30])
def test_a_wrong_parameter_is_named_with_its_value(model, params, message):
    refuses(message, model(**params).fit, X, Y)


def test_wrong_data_is_refused_with_a_reason():
    clf = FloralClassifier()
    refuses("NaN", clf.fit, np.where(X > 1, np.nan, X), Y)
    refuses("infinity", clf.fit, np.where(X > 1, np.inf, X), Y)
    refuses("at least 2 classes", clf.fit, X, np.zeros(200))
    refuses("minimum of 2", clf.fit, X[:1], Y[:1])
    refuses("inconsistent numbers of samples", clf.fit, X, Y[:-1])
    refuses("Unknown label type", clf.fit, X, X[:, 0])
    refuses("sample_weight must not be negative", clf.fit, X, Y, sample_weight=-np.ones(200))
    refuses("zero for every row", clf.fit, X, Y, sample_weight=np.zeros(200))
    refuses("each class needs a positive one", clf.fit, X, Y, sample_weight=Y)
    refuses(r"trusted= must be a boolean mask with one entry per row \(200\)", clf.fit, X, Y, trusted=[1, 2, 3])
    refuses("2 features", clf.fit(X, Y).predict, X[:, :1])


def test_a_matrix_that_is_no_gram_matrix_is_refused():
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    clf = FloralClassifier(kernel="precomputed")
    refuses("square", clf.fit, K[:, :50], Y)
    lopsided = K.copy()
    lopsided[0, 1] += 0.1
    refuses("not symmetric", clf.fit, lopsided, Y)
    refuses(r"not positive semi-definite: it has an eigenvalue of -", clf.fit, K - 0.5 * np.eye(200), Y)


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_function_that_is_no_kernel_is_refused():
    refuses("kernel callable is not symmetric", FloralClassifier(kernel=lambda A, B: A @ B.T + A[:, :1]).fit, X, Y)
    refuses("not finite", FloralClassifier(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)).fit, X, Y)
    with pytest.raises(ValueError, match=r"X has values up to 2\.3e\+200, whose squares overflow"):
        FloralClassifier(kernel="linear").fit(X * 1e200, Y)


def test_mixed_labels_are_named():
    mixed = NAMES.astype(object)
    mixed[0] = 1
    refuses("y mixes label types: number and str", FloralClassifier().fit, X, mixed)


def test_label_issues_of_rows_left_out_are_the_models_own():
    weight = np.ones(200)
    weight[:40] = 0
    clf = FloralClassifier(gamma=1.0, random_state=0).fit(X, Y, sample_weight=weight)
    suggested = clf.label_issues().set_index("row")["suggested"]
    np.testing.assert_array_equal(suggested.loc[range(40)], clf.predict(X[:40]))


def test_fits_in_threads_leave_the_callers_blas_threads_alone():
    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        clf = FloralClassifier(n_rounds=40, random_state=0)
        Parallel(4, backend="threading")(delayed(clone(clf).fit)(X, Y) for _ in range(8))
        assert threads() == before
        assert max(before) == 2


def test_csr_rows_far_from_the_origin_keep_their_digits():
    P, labels = make_moons(600, noise=0.2, random_state=0)
    far = P + 3000.0
    for gram in ("dense", "low_rank"):
        clf = FloralClassifier(gamma=1.0, n_rounds=150, gram=gram, random_state=0)
        dense, csr = clone(clf).fit(far, labels), clone(clf).fit(sparse.csr_matrix(far), labels)
        assert csr.score(sparse.csr_matrix(far), labels) > dense.score(far, labels) - 0.01


def test_a_device_that_is_not_there_is_named():
    torch = pytest.importorskip("torch")
    refuses("device='foo' is not a torch device", FloralClassifier(device="foo").fit, X, Y)
    if not torch.cuda.is_available():
        refuses("device='cuda' was asked for", FloralClassifier(device="cuda").fit, X, Y)


def test_nothing_is_left_half_fitted_by_a_refused_fit():
    clf = FloralClassifier(n_rounds=30, random_state=0).fit(X, Y)
    before = clf.predict(X)
    refuses("budget", clf.set_params(budget=999).fit, X, Y)
    np.testing.assert_array_equal(clf.predict(X), before)


def test_an_interrupted_first_fit_leaves_it_unfitted(monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("floral_learn.game.gram.DenseGram.matmat", stop)
    clf = FloralClassifier(random_state=0)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, Y)
    with pytest.raises(NotFittedError):
        clf.predict(X)
    assert not [name for name in vars(clf) if name.endswith("_")]


@pytest.mark.parametrize("broken", ["product", "projection"])
def test_an_interrupted_refit_leaves_the_former_model_whole(broken, monkeypatch):
    clf = FloralClassifier(random_state=0).fit(pd.DataFrame(X, columns=["a", "b"]), NAMES)
    before, kept = clf.decision_function(pd.DataFrame(X, columns=["a", "b"])), set(vars(clf))
    other, labels = np.random.default_rng(0).normal(size=(90, 5)), np.arange(90) % 3

    def fail(*_, **__):
        raise KeyboardInterrupt

    if broken == "product":
        monkeypatch.setattr("floral_learn.game.pairs.PairedGram.matmat", fail)
    else:
        monkeypatch.setattr("floral_learn.game.game.PROJECTIONS", {"exact": fail})
    with pytest.raises(KeyboardInterrupt):
        clf.fit(other, labels)
    monkeypatch.undo()
    assert set(vars(clf)) == kept
    np.testing.assert_array_equal(clf.decision_function(pd.DataFrame(X, columns=["a", "b"])), before)
    assert list(clf.classes_) == ["no", "yes"]


def test_changing_x_after_the_fit_changes_nothing():
    rows = X.copy()
    clf = FloralClassifier(C=1e-3, budget=0, random_state=0).fit(rows, Y)  # every row supports
    before = clf.decision_function(X)
    rows[:] = 0
    np.testing.assert_array_equal(clf.decision_function(X), before)
    assert len(clf.support_) == len(X)


def test_rows_of_weight_zero_do_not_change_the_type_of_the_model():
    # 1,100 rows, 200 of them unused: float64 by the rows that play, in the fit and in predictions alike.
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1100, 4)) + 1e4
    labels = (rows[:, 0] > 1e4).astype(int)
    weight = np.ones(1100)
    weight[:200] = 0
    clf = FloralClassifier(random_state=0).fit(rows, labels, sample_weight=weight)
    assert clf.model_.dtype == "float64"
    assert clf.score(rows, labels) > 0.95


@pytest.mark.parametrize("offset", [1e7, 1e8])
def test_rows_far_from_the_origin_are_told_apart_as_svc_does(offset):
    svc = SVC().fit(X + offset, Y).score(X + offset, Y)
    for budget in (0.05, 0):
        clf = FloralClassifier(budget=budget, n_rounds=2000, random_state=0).fit(X + offset, Y)
        assert clf.score(X + offset, Y) >= svc - 0.02


def test_a_rare_class_is_neither_taken_whole_nor_flooded():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(30, 3)) + 2.0, rng.normal(size=(970, 3))])
    labels = np.r_[np.ones(30, int), np.zeros(970, int)]
    clf = FloralClassifier(random_state=0).fit(rows, labels)
    assert clf.budget_ <= 2
    assert (clf.predict(rows[:30]) == 1).mean() >= (SVC().fit(rows, labels).predict(rows[:30]) == 1).mean() - 0.05
    paper = PaperFloralClassifier(learning_rate="auto", average=True, random_state=0).fit(rows, labels)
    assert (paper.predict(rows[:30]) == 1).mean() < (clf.predict(rows[:30]) == 1).mean()  # what the cap is for


def test_one_object_can_be_fitted_from_several_threads():
    clf = FloralClassifier(n_rounds=60, budget=0.1, random_state=0)
    alone = clone(clf).fit(X, Y).decision_function(X)
    for found in Parallel(8, backend="threading")(delayed(clf.fit)(X, Y) for _ in range(24)):
        np.testing.assert_array_equal(found.decision_function(X), alone)


def test_text_in_x_is_refused_with_what_to_put_in_front():
    frame = pd.DataFrame({"age": X[:, 0], "sex": np.where(X[:, 1] > 0, "Female", "Male")})
    with pytest.raises(ValueError, match=r"column 'sex' of X .*TableEncoder\(\) or scikit-learn's ColumnTransformer"):
        FloralClassifier().fit(frame, Y)
    refuses(r"X holds texts .*Female.*TableEncoder", FloralClassifier().fit, frame.to_numpy(), Y)
    dates = pd.DataFrame({"age": X[:, 0], "born": pd.date_range("2000-01-01", periods=200)})
    refuses("column 'born' of X does not hold numbers", FloralClassifier().fit, dates, Y)


def test_a_search_over_budgets_on_scaled_rows_does_not_warn():
    rows, labels = load_breast_cancer(return_X_y=True)
    search = GridSearchCV(FloralClassifier(random_state=0), {"budget": [0, 0.05, 0.2]}, cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        search.fit(StandardScaler().fit_transform(rows), labels)


def test_the_warning_of_an_unsettled_model_has_the_same_words_for_every_fit():
    seen = set()
    for seed in range(3):
        with pytest.warns(ConvergenceWarning) as caught:
            FloralClassifier(budget=0, n_rounds=5).fit(X[seed:], Y[seed:])
        seen |= {str(warning.message) for warning in caught}
    assert seen == {"the model still moved after n_rounds=5 rounds: raise n_rounds"}
    with pytest.warns(ConvergenceWarning, match="scale the columns of X"):
        FloralClassifier(budget=0, n_rounds=5).fit(X * [1, 1e4], Y)


def test_parameters_are_named():
    with pytest.raises(TypeError):
        FloralClassifier("rbf")


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("gram", ["dense", 5])
def test_equal_rows_are_learned_as_a_guess_without_a_foreign_error(kernel, gram):
    clf = FloralClassifier(kernel=kernel, gram=gram, random_state=0).fit(np.ones((40, 3)), np.arange(40) % 4 == 0)
    assert len(set(clf.predict(np.ones((5, 3))))) == 1


def test_many_classes_say_what_their_pairs_take_before_any_work(monkeypatch):
    labels = np.repeat(np.arange(60), 2)
    rows = np.random.default_rng(0).normal(size=(120, 2)) + labels[:, None]
    with pytest.warns(UserWarning, match=r"60 classes make 1,770 pairs, with 7,080 duals in all: about 1.42 MB"):
        FloralClassifier(n_rounds=2, tol=None).fit(rows, labels)
    monkeypatch.setattr("floral_learn.floral.fitting.machine_bytes", lambda: 1e6)
    with pytest.raises(MemoryError, match="multi_class='one-vs-rest' plays 60 columns of 120 duals"):
        FloralClassifier().fit(rows, labels)
