"""budget="auto": what it chooses, what it says about it, and where it keeps out."""

import io
from contextlib import redirect_stderr

import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs, make_gaussian_quantiles, make_moons
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from floral_learn import BudgetPathDisplay, FloralClassifier, load, poison, save
from floral_learn.defenses.budget_selection import FEWEST, BudgetSelection, _judge

matplotlib.use("Agg")
X, CLEAN = make_moons(300, noise=0.15, random_state=0)
BAD = poison(X, CLEAN, attack="random", budget=0.2, random_state=0)
AUTO = FloralClassifier(budget="auto", n_rounds=200, random_state=0)


@parametrize_with_checks([FloralClassifier(budget="auto", n_rounds=60, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    return clone(AUTO).fit(X, BAD.y)


def test_it_finds_scattered_wrong_labels_and_flips_only_those(fitted):
    suspects = fitted.selection_.support < 0
    assert suspects[BAD.indices].mean() > 0.9
    assert suspects.sum() < 1.2 * len(BAD.indices)
    assert fitted.budget_ == fitted.selection_.budget == fitted.selection_.suspects == suspects.sum()
    assert fitted.flips_ == fitted.budget_
    assert (fitted.flip_rate_[~suspects] == 0).all()
    assert (fitted.flip_rate_[suspects] > 0.3).all()
    assert fitted.score(X, CLEAN) > 0.95


def test_clean_labels_leave_the_attacker_off_and_an_svm_with_the_default_cap():
    clf = clone(AUTO).set_params(n_rounds=5000, average=False).fit(X, CLEAN)
    assert clf.budget_ == clf.flips_ == 0
    assert "fewer than" in clf.selection_.reason
    assert clf.C_ == 1.0
    np.testing.assert_allclose(clf.decision_function(X), SVC(tol=1e-8).fit(X, CLEAN).decision_function(X), atol=5e-3)


def test_flips_that_all_go_one_way_are_seen():
    y = CLEAN.copy()
    ones = np.flatnonzero(CLEAN == 1)
    taken = np.random.default_rng(0).permutation(ones)[: int(0.4 * len(ones))]
    y[taken] = 0
    clf = clone(AUTO).fit(X, y)
    suspects = np.flatnonzero(clf.selection_.support < 0)
    assert np.isin(suspects, taken).mean() > 0.9
    assert clf.score(X, CLEAN) > SVC().fit(X, y).score(X, CLEAN) + 0.1


def test_a_suspect_counts_as_one_of_the_lighter_class():
    weight = {0: 100.0, 1: 0.01}
    clf = clone(AUTO).set_params(class_weight=weight, gamma=1.0).fit(X, BAD.y)
    plain = clone(AUTO).set_params(gamma=1.0).fit(X, BAD.y)  # gamma="scale" would look at the weights
    np.testing.assert_allclose(clf.selection_.support, plain.selection_.support, atol=1e-6)
    duals = np.zeros(len(X))
    duals[clf.support_] = np.abs(clf.dual_coef_[0])
    assert duals[clf.selection_.support < 0].max() <= 0.01 + 1e-9


@pytest.mark.parametrize(
    ("suspects", "shares", "budget"), [(2, (0.02, 0.02), 0), (3, (0.03, 0.03), 3), (40, (0.2, 0.7), 0)]
)
def test_the_rule_at_its_edges(suspects, shares, budget):
    chosen, reason = _judge(suspects, 100, np.array(shares), np.array(["a", "b"]))
    assert chosen == budget
    assert reason.startswith(f"{suspects} of 100 labels ({suspects / 100:.0%})")


def test_several_classes():
    rows, clean = load_iris(return_X_y=True)
    bad = poison(rows, clean, attack="random", budget=0.2, random_state=0)
    clf = clone(AUTO).fit(rows, bad.y)
    assert clf.budget_ > 0.8 * len(bad.indices)
    assert clf.score(rows, clean) > 0.93
    assert set(clf.selection_.class_shares) == {"0", "1", "2"}


def test_trusted_labels_are_never_suspects(fitted):
    trusted = np.zeros(len(X), dtype=bool)
    trusted[BAD.indices[:10]] = True
    clf = clone(AUTO).fit(X, BAD.y, trusted=trusted)
    assert (clf.flip_rate_[trusted] == 0).all()
    assert clf.budget_ <= fitted.budget_ - 8
    assert len(clf.selection_.path_support) <= (~trusted).sum()


def test_rows_of_weight_zero_take_no_part(fitted):
    weight = np.ones(len(X))
    weight[:30] = 0
    clf = clone(AUTO).fit(X, BAD.y, sample_weight=weight)
    alone = clone(AUTO).fit(X[30:], BAD.y[30:])
    assert np.isnan(clf.selection_.support[:30]).all()
    np.testing.assert_array_equal(clf.selection_.support[30:], alone.selection_.support)
    assert clf.budget_ == alone.budget_


def test_the_same_seed_chooses_the_same_and_any_label_type_will_do(fitted):
    again = clone(AUTO).fit(X, BAD.y)
    np.testing.assert_array_equal(again.selection_.support, fitted.selection_.support)
    names = np.array(["no", "yes"])[BAD.y]
    frame = clone(AUTO).fit(pd.DataFrame(X, columns=["a", "b"]), pd.Series(names))
    np.testing.assert_array_equal(frame.predict(pd.DataFrame(X, columns=["a", "b"])) == "yes", fitted.predict(X) == 1)
    assert frame.selection_.reason == fitted.selection_.reason
    csr = clone(AUTO).set_params(gamma=1.0).fit(sparse.csr_matrix(X), BAD.y)
    dense = clone(AUTO).set_params(gamma=1.0).fit(X, BAD.y)
    assert csr.budget_ == dense.budget_


@pytest.mark.parametrize("gram", ["chunked", "low_rank"])
def test_other_gram_operators_choose_about_the_same(fitted, gram):
    clf = clone(AUTO).set_params(gram=gram, dtype="float64").fit(X, BAD.y)
    assert abs(clf.budget_ - fitted.budget_) <= 3


def test_a_precomputed_kernel(fitted):
    from sklearn.metrics.pairwise import rbf_kernel

    K = rbf_kernel(X, gamma=fitted.gamma_)
    clf = clone(AUTO).set_params(kernel="precomputed").fit(K, BAD.y)
    assert clf.budget_ == fitted.budget_


def test_few_rows_and_rare_classes_do_not_break_it():
    for n in (2, 3, 5, 8):
        rows = np.arange(n, dtype=float)[:, None]
        assert clone(AUTO).fit(rows, np.arange(n) % 2).budget_ >= 0
    rows, y = make_blobs(60, centers=3, random_state=0)
    y[y == 2] = 0
    y[0] = 2  # one row alone in its class
    assert clone(AUTO).fit(rows, y).predict(rows).shape == (60,)


def test_what_auto_means_for_C():
    assert clone(AUTO).fit(X, CLEAN).C_ == 1.0
    assert FloralClassifier(budget=0.02, n_rounds=5).fit(X, CLEAN).C_ == 10.0
    assert clone(AUTO).set_params(C=3.0).fit(X, CLEAN).C_ == 3.0
    assert FloralClassifier(budget=0.02, n_rounds=5).fit(X, CLEAN).selection_ is None


def test_a_class_between_two_others_gets_the_larger_cap():
    rows, y = make_gaussian_quantiles(n_samples=300, n_features=3, n_classes=3, random_state=0)
    clf = clone(AUTO).fit(rows, y)
    assert clf.C_ == clf.selection_.cap == 10.0
    assert clf.score(rows, y) > clone(AUTO).set_params(C=1.0).fit(rows, y).score(rows, y) + 0.05
    easy, labels = load_iris(return_X_y=True)
    assert clone(AUTO).fit(easy, labels).C_ == 1.0


def test_it_is_saved_and_loaded(fitted, tmp_path):
    save(fitted, tmp_path / "model.skops")
    back = load(tmp_path / "model.skops")
    assert isinstance(back.selection_, BudgetSelection)
    assert back.selection_.reason == fitted.selection_.reason
    np.testing.assert_array_equal(back.selection_.support, fitted.selection_.support)
    np.testing.assert_array_equal(back.predict(X), fitted.predict(X))


def test_verbose_says_what_was_chosen():
    stream = io.StringIO()
    with redirect_stderr(stream):
        clone(AUTO).set_params(verbose=1).fit(X, BAD.y)
    assert "[floral] budget: " in stream.getvalue()


def test_it_can_be_cross_validated_and_gives_label_issues(fitted):
    assert cross_val_score(AUTO, X, BAD.y, cv=3).mean() > 0.7
    issues = fitted.label_issues()
    assert np.isin(issues["row"][: len(BAD.indices)], BAD.indices).mean() > 0.8


def test_the_display_shows_the_path_and_the_choice(fitted):
    display = BudgetPathDisplay.from_estimator(fitted).plot()
    crossing = display.budgets[np.searchsorted(display.support, 0)]
    assert abs(crossing - fitted.budget_) <= 3
    assert f"B = {fitted.budget_}" in display.ax_.texts[0].get_text()
    assert (np.diff(display.support) >= 0).all()
    off = BudgetPathDisplay.from_estimator(clone(AUTO).fit(X, CLEAN)).plot()
    assert "attacker off" in off.ax_.texts[0].get_text()
    with pytest.raises(ValueError, match="only with budget"):
        BudgetPathDisplay.from_estimator(FloralClassifier(budget=0, n_rounds=5).fit(X, CLEAN))


def test_the_threshold_in_words_is_the_threshold_in_the_rule():
    assert _judge(1, 100, np.array([0.01, 0.01]), np.array([0, 1]))[1].count(f"fewer than {FEWEST:.0%}") == 1
