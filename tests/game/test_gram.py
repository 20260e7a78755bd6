"""Gram operators agree with the matrix they stand for, and the choice among them says what it does."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels

from floral_learn.game import NUMPY, DenseGram, Kernel, LowRankGram, choose_gram
from floral_learn.game.low_rank import Probe

RNG = np.random.default_rng(1)
X = RNG.normal(size=(300, 4))
KERNEL = Kernel("rbf", gamma=0.2)
K = DenseGram.from_rows(X, KERNEL).matrix


def operators(backend, dtype="float64"):
    return {
        "dense": DenseGram.from_rows(X, KERNEL, dtype, backend),
        "low rank": LowRankGram(X, KERNEL, 300, 0.0, np.random.default_rng(0), dtype, backend),
    }


@pytest.mark.parametrize("columns", [1, 2, 7])
@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-8), ("float32", 2e-3)])
def test_every_operator_multiplies_like_the_matrix(columns, dtype, atol, backend):
    V = RNG.normal(size=(300, columns))
    for name, gram in operators(backend, dtype).items():
        product = backend.numpy(gram.matmat(backend.columns(V)))
        np.testing.assert_allclose(product, K @ V, atol=atol, err_msg=name)
        assert product.dtype == np.float64


@pytest.mark.parametrize("name", ["linear", "poly", "laplacian", "sigmoid"])
def test_dense_for_other_kernels(name, backend):
    kernel = Kernel(name, gamma=0.1, degree=2, coef0=1.0)
    V = RNG.normal(size=(300, 3))
    dense = DenseGram.from_rows(X, kernel, "float64", backend).matmat(backend.columns(V))
    expected = pairwise_kernels(X, metric=name, filter_params=True, gamma=0.1, degree=2, coef0=1.0) @ V
    np.testing.assert_allclose(backend.numpy(dense), expected, atol=1e-8)


def test_csr_rows_in_every_operator(backend):
    S = sparse.random(120, 30, density=0.2, random_state=0, format="csr")
    V = RNG.normal(size=(120, 2))
    expected = DenseGram.from_rows(S.toarray(), KERNEL).matrix @ V
    for gram in (
        DenseGram.from_rows(S, KERNEL, "float64", backend),
        LowRankGram(S, KERNEL, 120, 0.0, np.random.default_rng(0), "float64", backend),
    ):
        np.testing.assert_allclose(backend.numpy(gram.matmat(backend.columns(V))), expected, atol=1e-8)


def test_low_rank_error_is_what_it_says_and_stops_at_its_tolerance():
    for tol in (0.1, 0.01):
        gram = LowRankGram(X, KERNEL, 300, tol, np.random.default_rng(0), "float64", block=8)
        true = np.linalg.norm(K - gram.factor @ gram.factor.T) / np.linalg.norm(K)
        assert gram.rank < 300
        assert true <= 1.5 * tol
        assert gram.missing == pytest.approx((np.trace(K) - (gram.factor**2).sum()) / 300, abs=1e-8)


def test_landmarks_are_distinct_and_reproduced_exactly():
    gram = LowRankGram(X, KERNEL, 60, 0.0, np.random.default_rng(0), "float64")
    assert len(set(gram.landmarks)) == gram.rank == 60
    approximation = gram.factor @ gram.factor.T
    np.testing.assert_allclose(approximation[gram.landmarks], K[gram.landmarks], atol=1e-8)


def test_prediction_through_landmarks_is_the_low_rank_function(backend):
    gram = LowRankGram(X, KERNEL, 60, 0.0, np.random.default_rng(0), "float64", backend)
    weights = RNG.normal(size=(300, 2))
    rows, coef = gram.expansion(weights)
    trained = backend.numpy(gram.matmat(backend.columns(weights)))
    np.testing.assert_allclose(K[:, rows] @ coef, trained, atol=1e-7)


def test_a_rank_deficient_kernel_ends_by_itself():
    gram = LowRankGram(X, Kernel("linear"), 300, 0.0, np.random.default_rng(0), "float64")
    assert gram.rank == 4  # four features
    np.testing.assert_allclose(gram.factor @ gram.factor.T, X @ X.T, atol=1e-9)


def test_duplicate_rows_do_not_break_the_factor():
    doubled = np.repeat(X[:40], 5, axis=0)
    gram = LowRankGram(doubled, KERNEL, 200, 0.0, np.random.default_rng(0), "float64")
    assert gram.rank <= 40
    np.testing.assert_allclose(gram.factor @ gram.factor.T, DenseGram.from_rows(doubled, KERNEL).matrix, atol=1e-8)


@pytest.mark.parametrize("centred", [False, True])
def test_lambda_max_against_the_eigenvalues(centred, backend):
    weight = RNG.uniform(0.5, 2, size=(300, 1))
    root = weight**0.5
    H = np.eye(300) - root @ root.T / (root**2).sum() if centred else np.eye(300)
    truth = np.linalg.eigvalsh(H @ (root * K * root.T) @ H)
    gram = DenseGram.from_rows(X, KERNEL, "float64", backend)
    found = gram.eigenvalue("LA", steps=500, tol=1e-10, centred=centred, weight=backend.columns(weight))
    assert found == pytest.approx(truth[-1], rel=1e-8)
    rough = gram.lambda_max(centred=centred, weight=backend.columns(weight))
    assert truth[-1] * (1 - 1e-9) <= rough <= truth[-1] * 1.01


def test_a_negative_eigenvalue_is_found():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(200, 200)))[0]
    values = np.r_[-0.5, rng.uniform(0, 1, size=198), 5.0]
    gram = DenseGram((Q * values) @ Q.T)
    assert gram.eigenvalue("SA") == pytest.approx(-0.5, rel=1e-2)
    assert gram.eigenvalue("SA", steps=1) < 0  # also where the iteration is cut short
    assert DenseGram(np.eye(2)).eigenvalue("SA") == pytest.approx(1)


def test_choice_by_size_and_kernel():
    assert choose_gram(X, KERNEL).kind == "dense"
    many = np.random.default_rng(0).normal(size=(3200, 3))
    low = choose_gram(many, Kernel("rbf", gamma=0.05), rng=np.random.default_rng(0))
    assert low.kind == "low rank"
    assert low.dtype == "float32"
    assert low.error <= 0.01
    for part in (f"low rank {low.rank}", "3,200 rows", "float32", "error"):
        assert part in low.describe()
    assert choose_gram(many, Kernel("sigmoid", gamma=0.01)).kind == "dense"


def test_a_kernel_without_low_rank_structure_goes_dense_or_warns():
    many = np.random.default_rng(0).normal(size=(3200, 20))
    sharp = Kernel("rbf", gamma=5.0)  # nearly the identity
    assert choose_gram(many, sharp, rng=np.random.default_rng(0)).kind == "dense"
    with pytest.warns(UserWarning, match="smoother kernel"):
        gram = choose_gram(many, sharp, rng=np.random.default_rng(0), gram="low_rank")
    assert gram.kind == "low rank"


def test_a_gram_that_the_machine_cannot_hold_is_refused_before_any_work():
    rows = np.broadcast_to(np.zeros((1, 3)), (10**7, 3))
    with pytest.raises(MemoryError, match=r"dense Gram of 10,000,000 rows takes 400 TB, .*use gram='low_rank'"):
        choose_gram(rows, KERNEL, gram="dense")
    with pytest.raises(MemoryError, match="rank 10000000 of 10,000,000 rows takes 400 TB"):
        choose_gram(rows, KERNEL, gram=10**7)


def test_a_symmetric_product_of_few_columns_matches_many():
    big = DenseGram.from_rows(np.random.default_rng(0).normal(size=(500, 3)), KERNEL, "float32")
    V = np.asfortranarray(RNG.normal(size=(500, 8)).astype(np.float32))
    few = np.hstack([NUMPY.symmetric_product(big.matrix, V[:, j : j + 2]) for j in range(0, 8, 2)])
    np.testing.assert_allclose(few, big.matrix @ V, atol=1e-3)


@pytest.mark.parametrize("centred", [False, True])
def test_lambda_max_of_a_factor_against_the_eigenvalues(centred, backend):
    gram = LowRankGram(X, KERNEL, 60, 0.0, np.random.default_rng(0), "float64", backend)
    F = backend.numpy(gram.factor)
    weight = RNG.uniform(0.5, 2, size=(300, 1))
    for given in (None, weight):
        root = np.ones((300, 1)) if given is None else given**0.5
        H = np.eye(300) - root @ root.T / (root**2).sum() if centred else np.eye(300)
        truth = np.linalg.eigvalsh(H @ (root * (F @ F.T) * root.T) @ H)[-1]
        found = gram.lambda_max(centred=centred, weight=None if given is None else backend.columns(given))
        assert found == pytest.approx(truth, rel=1e-9)


def test_rank_auto_stops_where_rows_are_told_apart_and_says_so():
    many = np.random.default_rng(0).normal(size=(3200, 8))
    kernel = Kernel("rbf", gamma=0.07)
    exact = LowRankGram(many, kernel, 512, 5e-3, np.random.default_rng(0))
    probed = choose_gram(many, kernel, rng=np.random.default_rng(0), gram="low_rank")
    assert probed.probe.settled or probed.error <= 5e-3
    assert probed.rank <= exact.rank + 64
    assert "of 1,600 probe predictions" in probed.describe()


def test_a_small_factor_is_taken_below_three_thousand_rows_where_it_does():
    rows = np.random.default_rng(0).normal(size=(2000, 3))
    smooth = choose_gram(rows, Kernel("rbf", gamma=0.1), rng=np.random.default_rng(0))
    assert (smooth.kind, smooth.dtype) == ("low rank", "float32")
    assert smooth.rank <= 250
    assert choose_gram(rows, Kernel("rbf", gamma=30.0), rng=np.random.default_rng(0)).kind == "dense"


def test_the_probe_is_not_settled_while_predictions_change():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=400)
    probe = Probe(np.arange(400), labels, 2)
    for _ in range(4):
        probe.extend(rng.normal(size=(400, 30)))  # every block brings something new
        assert not probe.settled
    for _ in range(2):
        probe.extend(np.zeros((400, 30)))
    assert probe.changed[-2:] == [0.0, 0.0]
    assert not probe.settled  # nothing was learned: answers that do not change are guesses
    telling = Probe(np.arange(400), labels, 2)
    for _ in range(3):
        telling.extend(2.0 * labels[:, None] - 1 + rng.normal(scale=1e-6, size=(400, 1)))
    assert telling.settled
    assert probe.size == 200


def test_low_rank_of_a_kernel_that_may_be_indefinite_warns():
    with pytest.warns(UserWarning, match="sigmoid kernel may have negative eigenvalues"):
        choose_gram(X, Kernel("sigmoid", gamma=0.01), gram=5, rng=np.random.default_rng(0))
