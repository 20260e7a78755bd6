"""Certified kernel ridge: numbers against every flip set, against a MILP, and against refits."""

import tracemalloc
from itertools import combinations, product

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from floral_learn import CertifiedKernelClassifier, load, save

KERNELS = {"rbf": rbf_kernel, "laplacian": laplacian_kernel, "linear": lambda a, b, gamma: linear_kernel(a, b)}


def data(n, seed=0, n_classes=2, width=2):
    """Rows in overlapping clouds, their labels, and eight rows to ask about."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    X = 0.7 * rng.normal(size=(n, width)) + 3.0 * np.eye(max(n_classes, width))[y, :width]
    return X, y, X[:8] + 0.7 * rng.normal(size=(min(8, n), width))


def label_weights(X, queries, *, kernel="rbf", gamma=0.5, ridge=1.0, weight=None, intercept=True):
    """a(x) (m, n) by an inverse, without the library."""
    weight = np.ones(len(X)) if weight is None else weight
    values = lambda a, b: KERNELS[kernel](a, b, gamma=gamma) + intercept  # noqa: E731
    return values(queries, X) @ np.linalg.inv(values(X, X) + ridge * np.diag(1 / weight))


def fewest_flips(a, y, n_classes, possible=None, reachable=None):
    """Fewest changed labels (m,) after which the winner no longer leads, over all label vectors; n + 1 for none."""
    n = len(y)
    vectors = np.array(list(product(range(n_classes), repeat=n)))
    changed = vectors != y
    possible = np.ones((n_classes, n_classes), bool) if possible is None else possible
    allowed = (possible[y, vectors] | ~changed).all(axis=1)
    if reachable is not None:
        allowed &= ~(changed & ~reachable).any(axis=1)
    vectors, counts = vectors[allowed], changed[allowed].sum(axis=1)
    out = []
    for row in a:
        scores = np.stack([(vectors == c) @ row for c in range(n_classes)], axis=1)
        before = np.array([(y == c) @ row for c in range(n_classes)])
        winner = before.argmax()
        rest = np.delete(scores, winner, axis=1).max(axis=1)
        turned = rest >= scores[:, winner] - 1e-11 * np.abs(row).sum()  # a tie is lost
        out.append(counts[turned].min() if turned.any() else n + 1)
    return np.array(out)


def expected(fewest, n):
    """What certified_flips should say, from the fewest flips that turn a row."""
    return np.where(fewest > n, n, fewest - 1)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
@pytest.mark.parametrize("intercept", [True, False])
def test_two_classes_equal_the_search_over_all_label_vectors(kernel, intercept):
    X, y, queries = data(12, seed=1)
    clf = CertifiedKernelClassifier(kernel=kernel, gamma=0.2, ridge=3.0, fit_intercept=intercept).fit(X, y)
    a = label_weights(X, queries, kernel=kernel, gamma=0.2, ridge=3.0, intercept=intercept)
    found = clf.certified_flips(queries)
    np.testing.assert_array_equal(found, expected(fewest_flips(a, y, 2), 12))
    assert found.max() >= 1


@pytest.mark.parametrize(("n", "n_classes"), [(8, 3), (7, 4)])
def test_several_classes_equal_the_search_over_all_label_vectors(n, n_classes):
    X, y, queries = data(n, seed=2, n_classes=n_classes)
    found = CertifiedKernelClassifier(gamma=0.2, ridge=1.0).fit(X, y).certified_flips(queries)
    a = label_weights(X, queries, gamma=0.2)
    np.testing.assert_array_equal(found, expected(fewest_flips(a, y, n_classes), n))
    assert found.min() >= 0


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_classes=st.integers(2, 3),
    gamma=st.sampled_from([0.05, 0.5, 3.0]),
    ridge=st.sampled_from([0.01, 0.5, 10.0]),
    intercept=st.booleans(),
    weighted=st.booleans(),
    data_=st.data(),
)
def test_property_exact_under_weights_trust_and_one_way_flips(
    seed, n_classes, gamma, ridge, intercept, weighted, data_
):
    n = 10 if n_classes == 2 else 7
    X, y, queries = data(n, seed, n_classes)
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.2, 4.0, size=n) if weighted else None
    trusted = rng.random(n) < data_.draw(st.sampled_from([0.0, 0.3, 1.0]))
    bought = data_.draw(st.sampled_from([None, {0: [1]}, {1: [0], 0: list(range(1, n_classes))}]))
    clf = CertifiedKernelClassifier(gamma=gamma, ridge=ridge, fit_intercept=intercept, possible_flips=bought)
    found = clf.fit(X, y, sample_weight=weight, trusted=trusted).certified_flips(queries)
    possible = np.ones((n_classes, n_classes), bool)
    if bought is not None:
        possible[:] = False
        for label, new in bought.items():
            possible[label, new] = True
    a = label_weights(X, queries, gamma=gamma, ridge=ridge, weight=weight, intercept=intercept)
    np.testing.assert_array_equal(found, expected(fewest_flips(a, y, n_classes, possible, ~trusted), n))


def by_milp(a, y, n_classes):
    """Fewest flips of one row as a mixed integer program: z[i, l] says that label i becomes l."""
    n = len(y)
    winner = np.array([(y == c) @ a for c in range(n_classes)]).argmax()
    best = np.inf
    for rival in set(range(n_classes)) - {winner}:
        worth = (np.arange(n_classes) == winner).astype(float) - (np.arange(n_classes) == rival)
        lead = a @ worth[y]
        cost = (np.arange(n_classes) != y[:, None]).astype(float)
        taken = a[:, None] * (worth[y][:, None] - worth)
        one_each = np.kron(np.eye(n), np.ones(n_classes))
        done = milp(
            cost.ravel(),
            constraints=[LinearConstraint(one_each, 1, 1), LinearConstraint(taken.reshape(1, -1), lead, np.inf)],
            integrality=1,
            bounds=Bounds(0, 1),
        )
        best = min(best, round(done.fun)) if done.success else best
    return best


@pytest.mark.parametrize("n_classes", [2, 4])
def test_forty_labels_equal_a_mixed_integer_program(n_classes):
    X, y, queries = data(40, seed=5, n_classes=n_classes, width=4)
    found = CertifiedKernelClassifier(gamma=0.3, ridge=4.0).fit(X, y).certified_flips(queries)
    a = label_weights(X, queries, gamma=0.3, ridge=4.0)
    assert found.tolist() == [by_milp(row, y, n_classes) - 1 for row in a]
    assert found.max() >= 2


@pytest.mark.parametrize("options", [{}, {"rank": 25}, {"kernel": "linear"}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_named_flips_turn_a_refit_and_no_smaller_part_of_them_does(options, n_classes):
    X, y, queries = data(60, seed=4, n_classes=n_classes)
    names = np.array(["ant", "bee", "cat"])[y]
    fit = lambda labels: CertifiedKernelClassifier(ridge=2.0, **options).fit(X, labels)  # noqa: E731
    clf = fit(names)
    found = clf.certificate(queries)
    np.testing.assert_array_equal(found.prediction, clf.predict(queries))
    np.testing.assert_array_equal(found.flips, clf.certified_flips(queries))
    for j, (rows, labels) in enumerate(zip(found.rows, found.labels, strict=True)):
        assert len(rows) == found.flips[j] + 1
        assert (names[rows] != labels).all()
        attacked = names.copy()
        attacked[rows] = labels
        assert fit(attacked).predict(queries[[j]])[0] != found.prediction[j]
        attacked[rows[-1]] = names[rows[-1]]
        assert fit(attacked).predict(queries[[j]])[0] == found.prediction[j]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([2, 3, 4]), st.sampled_from([0.0, 0.4]))
def test_property_no_refit_on_fewer_labels_than_breaking_flips_names_changes_a_prediction(seed, n_classes, rounding):
    X, y, queries = data(9, seed, n_classes)
    if rounding:  # rows that coincide make ties
        X, queries = np.round(X * rounding), np.round(queries * rounding)
    fit = lambda labels: CertifiedKernelClassifier(ridge=0.5).fit(X, labels)  # noqa: E731
    clf = fit(y)
    before, breaking = clf.predict(queries), clf.breaking_flips(queries)
    a, slack = clf.label_weights(queries)
    for j in np.flatnonzero(clf.certified_flips(queries) >= 0):
        flips = breaking[j]
        attacked = y.copy()
        attacked[list(flips)] = list(flips.values())
        assert all(attacked[list(flips)] != y[list(flips)])
        if flips and len(set(attacked)) == n_classes:
            assert fit(attacked).predict(queries[[j]])[0] != before[j]
        vectors = np.array(list(product(range(n_classes), repeat=9))) if n_classes < 4 else np.empty((0, 9), int)
        scores = np.stack([(vectors == c) @ a[j] for c in range(n_classes)], axis=1)
        ahead = scores.max(axis=1, initial=-np.inf) > scores[:, clf.classes_.searchsorted(before[j])] + slack[j]
        fewest = (vectors != y).sum(axis=1)[ahead].min(initial=9)
        assert len(flips) == fewest or n_classes == 4 or not flips


def test_every_refit_on_two_flipped_labels_keeps_what_is_certified():
    X, y, queries = data(16, seed=6, n_classes=3)
    clf = CertifiedKernelClassifier(gamma=0.2, ridge=2.0).fit(X, y)
    sure = clf.certified_flips(queries) >= 2
    assert sure.any()
    for rows in combinations(range(16), 2):
        for shift in product([1, 2], repeat=2):
            attacked = y.copy()
            attacked[list(rows)] = (y[list(rows)] + shift) % 3
            again = CertifiedKernelClassifier(gamma=0.2, ridge=2.0).fit(X, attacked)
            np.testing.assert_array_equal(again.predict(queries)[sure], clf.predict(queries)[sure])


def test_a_tie_is_no_promise_and_a_tie_after_flips_is_a_loss():
    X = np.array([[-1.0], [1.0], [-2.0], [2.0]])
    y = np.array([0, 1, 0, 1])
    clf = CertifiedKernelClassifier(gamma=0.5, ridge=1.0, fit_intercept=False).fit(X, y)
    assert clf.certified_flips([[0.0]]).tolist() == [-1]
    # two equal rows with one label each way and one more: one flip of it leaves a lead of the other label
    X, y = np.zeros((4, 1)), np.array([0, 0, 0, 1])
    assert CertifiedKernelClassifier(ridge=1.0).fit(X, y).certified_flips([[0.0]]).tolist() == [0]


def test_rounding_voids_what_it_could_turn():
    X, y, queries = data(80, 2)
    tiny = CertifiedKernelClassifier(gamma=1e-3, ridge=1e-12).fit(X, y)
    assert (tiny.certified_flips(queries) < 1).all()
    assert (tiny.certified_flips(queries) < 0).any()
    refuses("ridge=1e-200 is too small", CertifiedKernelClassifier(gamma=1e-9, ridge=1e-200).fit, X, y)


def test_trusted_labels_cannot_be_used_and_all_trusted_means_any_flips():
    X, y, queries = data(40, 3)
    free = CertifiedKernelClassifier().fit(X, y)
    used = np.unique(np.concatenate(free.certificate(queries).rows))
    trusted = np.zeros(40, bool)
    trusted[used[:10]] = True
    partly = CertifiedKernelClassifier().fit(X, y, trusted=trusted)
    found = partly.certificate(queries)
    assert (found.flips >= free.certified_flips(queries)).all()
    assert found.n_reachable == 30
    assert not any(np.isin(rows, used[:10]).any() for rows in found.rows if rows is not None)
    sure = CertifiedKernelClassifier().fit(X, y, trusted=np.ones(40, bool)).certificate(queries)
    assert sure.flips.tolist() == [40] * len(queries)
    assert sure.rows == [None] * len(queries)


def test_where_one_class_is_bought_only_its_labels_are_named():
    X, y, queries = data(40, 3)
    names = np.array(["ham", "spam"])[y]
    clf = CertifiedKernelClassifier(possible_flips={"spam": ["ham"]}).fit(X, names)
    found = clf.certificate(queries)
    for rows, labels in zip(found.rows, found.labels, strict=True):
        if rows is not None:
            assert set(names[rows]) == {"spam"}
            assert set(labels) == {"ham"}
    # ham can be made to look like spam only through the few labels whose weight is below zero
    free = CertifiedKernelClassifier().fit(X, names)
    assert (found.flips >= free.certified_flips(queries)).all()
    assert np.median(found.flips[found.prediction == "ham"]) == 40


def test_full_rank_equals_the_whole_matrix_and_columns_equal_the_linear_kernel():
    X, y, queries = data(50, 7, 3)
    whole = CertifiedKernelClassifier(rank=None).fit(X, y)
    full = CertifiedKernelClassifier(rank=50).fit(X, y)
    np.testing.assert_allclose(full.decision_function(queries), whole.decision_function(queries), atol=1e-8)
    np.testing.assert_array_equal(full.certified_flips(queries), whole.certified_flips(queries))
    columns, kernel = (CertifiedKernelClassifier(kernel="linear", rank=rank).fit(X, y) for rank in ("auto", None))
    assert (columns.rank_, kernel.rank_) == (2, None)
    np.testing.assert_allclose(columns.decision_function(queries), kernel.decision_function(queries), atol=1e-8)
    np.testing.assert_array_equal(columns.certified_flips(queries), kernel.certified_flips(queries))


def test_sparse_rows_equal_dense_ones():
    X, y, queries = data(50, 7, width=6)
    X[np.abs(X) < 0.7] = 0
    for kernel in ("rbf", "linear"):
        dense = CertifiedKernelClassifier(kernel=kernel).fit(X, y)
        thin = CertifiedKernelClassifier(kernel=kernel).fit(csr_matrix(X), y)
        np.testing.assert_allclose(thin.decision_function(csr_matrix(queries)), dense.decision_function(queries))
        np.testing.assert_array_equal(thin.certified_flips(csr_matrix(queries)), dense.certified_flips(queries))


def test_blocks_do_not_matter():
    X, y, queries = data(30, 1, 3)
    clf = CertifiedKernelClassifier().fit(X, y)
    once, scores = clf.certified_flips(queries), clf.decision_function(queries)
    with sklearn.config_context(working_memory=1e-3):
        np.testing.assert_array_equal(clf.certified_flips(queries), once)
        np.testing.assert_allclose(clf.decision_function(queries), scores)


def test_a_row_without_weight_is_no_row_and_row_numbers_are_those_given():
    X, y, queries = data(30, 1)
    weight = np.where(np.arange(30) % 3 == 0, 0.0, 2.0)
    clf = CertifiedKernelClassifier().fit(X, y, sample_weight=weight)
    alone = CertifiedKernelClassifier().fit(X[weight > 0], y[weight > 0], sample_weight=weight[weight > 0])
    np.testing.assert_array_equal(clf.certified_flips(queries), alone.certified_flips(queries))
    kept = np.flatnonzero(weight)
    for ours, theirs in zip(clf.certificate(queries).rows, alone.certificate(queries).rows, strict=True):
        np.testing.assert_array_equal(ours, kept[theirs])


def test_certified_accuracy_is_the_share_that_is_right_and_survives():
    X, y, queries = data(60, 1)
    clf = CertifiedKernelClassifier().fit(X, y)
    truth = np.arange(len(queries)) % 2
    right, flips = clf.predict(queries) == truth, clf.certified_flips(queries)
    shares = clf.certified_accuracy(queries, truth, [0, 2, 60])
    np.testing.assert_allclose(shares, [(right & (flips >= r)).mean() for r in (0, 2, 60)])
    assert clf.certified_accuracy(queries, truth, 2) == shares[1]
    assert clf.certified_accuracy(queries, truth, 0) <= clf.score(queries, truth)


def test_a_pipeline_certifies_through_its_last_step_and_a_file_keeps_the_numbers(tmp_path):
    X, y, queries = data(60, 1)
    pipe = make_pipeline(StandardScaler(), CertifiedKernelClassifier(possible_flips={0: [1]})).fit(X * [1, 100], y)
    asked = pipe[:-1].transform(queries * [1, 100])
    flips = pipe[-1].certified_flips(asked)
    save(pipe, tmp_path / "model.floral")
    again = load(tmp_path / "model.floral")
    np.testing.assert_array_equal(again[-1].certified_flips(asked), flips)
    np.testing.assert_array_equal(again.predict(queries * [1, 100]), pipe.predict(queries * [1, 100]))


def test_the_report_names_what_was_taken_as_fixed():
    X, y, queries = data(60, 1)
    found = CertifiedKernelClassifier(gamma=0.25).fit(X, y).certificate(queries)
    assert found.assumed["gamma"] == 0.25
    assert set(found.assumed) == {"features", "kernel", "gamma", "ridge", "fit_intercept"}
    text = repr(found)
    assert "holds if no label chose" in text
    assert "gamma=0.25" in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ridge": 0}, "'ridge' parameter of CertifiedKernelClassifier must be"),
        ({"kernel": "poly"}, "'kernel' parameter"),
        ({"rank": 0}, "'rank' parameter"),
        ({"random_state": None}, "'random_state' parameter"),
        ({"possible_flips": {"ham": ["egg"]}}, r"names 'ham', which is not a label; labels are \[0, 1\]"),
        ({"possible_flips": {0: [7]}}, "possible_flips names 7"),
        ({"max_memory": "1GB"}, "'max_memory' parameter"),
        ({"rank": None, "max_memory": 1000}, "20 rows, 2 classes and the whole kernel matrix take"),
    ],
)
def test_bad_parameters_are_named(options, words):
    X, y, _ = data(20)
    refuses(words, CertifiedKernelClassifier(**options).fit, X, y)


def test_bad_arguments_are_named():
    X, y, queries = data(20)
    refuses("trusted= must be a boolean mask", CertifiedKernelClassifier().fit, X, y, trusted=[1, 2])
    clf = CertifiedKernelClassifier().fit(X, y)
    for flips in (-1, 2.5, [1, -2]):
        refuses("must be a whole number, 0 or more", clf.certified_accuracy, queries, np.zeros(8, int), flips)
    refuses(r"X has 8 rows, y has shape \(3,\)", clf.certified_accuracy, queries, [0, 1, 0], 1)


LANDMARKS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "landmarks are drawn among rows" for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [CertifiedKernelClassifier(), CertifiedKernelClassifier(kernel="linear"), CertifiedKernelClassifier(rank=5)],
    expected_failed_checks=lambda clf: LANDMARKS if clf.rank == 5 else {},
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("options", [{}, {"rank": 20}, {"kernel": "linear"}])
def test_held_out_certificates_are_those_of_fits_without_the_row(options):
    X, y, _ = data(40, 3, 3)
    weight = np.where(np.arange(40) % 4, 1.0, 2.5)
    weight[3] = 0.0
    clf = CertifiedKernelClassifier(ridge=1.5, gamma=0.3, **options).fit(X, y, sample_weight=weight)
    found = clf.held_out_certificate([0, 7, 12])
    for place, row in enumerate((0, 7, 12)):
        lighter = weight.copy()
        lighter[row] = 1e-12  # next to nothing: the row is there and has no say
        alone = CertifiedKernelClassifier(ridge=1.5, gamma=0.3, **options).fit(X, y, sample_weight=lighter)
        assert found.prediction[place] == alone.predict(X[[row]])[0]
        assert found.flips[place] == alone.certified_flips(X[[row]])[0]
        assert row not in found.rows[place]
    assert len(clf.held_out_certificate().flips) == 39
    refuses("rows names 3, which is not a training row", clf.held_out_certificate, [1, 3])


def test_two_hundred_classes_take_memory_of_classes_squared():
    X, y, _ = data(600, 0, 200, width=5)
    clf = CertifiedKernelClassifier().fit(X, y)
    clf.certified_flips(X[:2])
    tracemalloc.start()
    try:
        flips = clf.certified_flips(X[:100])
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert flips.shape == (100,)
    assert most < 50 * 8 * 200**2
