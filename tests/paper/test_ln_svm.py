"""LN-SVM: the corrected Gram against sampled label noise, training and prediction against SVC by hand."""

import numpy as np
import pytest
from refusals import refuses
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from floral_learn.paper import LabelNoiseSVC
from floral_learn.paper.ln_svm import correct_gram


def test_correction_is_the_mean_gram_under_sampled_label_flips():
    rng = np.random.default_rng(0)
    K = rbf_kernel(rng.normal(size=(5, 2)))
    y = np.array([1, -1, 1, 1, -1])
    mu, draws = 0.2, 40_000
    flips = np.where(rng.random((draws, 5)) < mu, -1, 1)
    sampled = np.einsum("ri,rj->ij", flips * y, flips * y) / draws * K
    np.testing.assert_allclose(sampled, correct_gram(K, mu) * np.outer(y, y), atol=0.02)


@pytest.mark.parametrize("noise", [0.05, 0.25])
def test_equals_svc_on_the_corrected_gram_with_plain_kernel_rows_at_prediction(noisy_moons, noise):
    X, y, _ = noisy_moons()
    K = rbf_kernel(X, gamma=0.7)
    corrected = K * (1 - 4 * noise * (1 - noise))
    corrected[np.diag_indices(len(K))] = np.diag(K)
    oracle = SVC(kernel="precomputed", C=3.0).fit(corrected, y)
    model = LabelNoiseSVC(noise=noise, gamma=0.7, C=3.0).fit(X, y)
    grid = np.random.default_rng(0).uniform(-2, 2, size=(40, 2))
    np.testing.assert_allclose(
        model.decision_function(grid), oracle.decision_function(rbf_kernel(grid, X, gamma=0.7)), atol=1e-9
    )
    assert np.abs(model.decision_function(X) - SVC(gamma=0.7, C=3.0).fit(X, y).decision_function(X)).max() > 0.05


def test_no_noise_is_plain_svc(noisy_moons):
    X, y, _ = noisy_moons()
    weight = np.linspace(0.5, 2, len(y))
    for kernel in ("rbf", "linear", "poly", "sigmoid"):
        ours = LabelNoiseSVC(noise=0.0, kernel=kernel, gamma=0.5, C=1.0, tol=1e-8, coef0=0.5).fit(X, y, weight)
        theirs = SVC(kernel=kernel, gamma=0.5, C=1.0, tol=1e-8, coef0=0.5).fit(X, y, weight)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


def test_three_classes_are_three_problems_one_against_the_rest(noisy_blobs):
    X, y, _ = noisy_blobs()
    names = np.array(["x", "y", "z"])[y]
    model = LabelNoiseSVC(noise=0.1, gamma=0.1).fit(X, names)
    scores = model.decision_function(X)
    assert scores.shape == (len(X), 3)
    for code, name in enumerate("xyz"):
        alone = LabelNoiseSVC(noise=0.1, gamma=0.1).fit(X, names == name)
        np.testing.assert_allclose(scores[:, code], alone.decision_function(X), atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), np.array(["x", "y", "z"])[scores.argmax(axis=1)])


def test_precomputed_and_callable_kernels_agree_with_the_named_one(noisy_moons):
    X, y, _ = noisy_moons()
    named = LabelNoiseSVC(noise=0.1, gamma=0.5).fit(X, y).decision_function(X)
    K = rbf_kernel(X, gamma=0.5)
    given = LabelNoiseSVC(noise=0.1, kernel="precomputed").fit(K, y)
    np.testing.assert_array_equal(K, rbf_kernel(X, gamma=0.5))  # the caller's matrix is left alone
    np.testing.assert_allclose(given.decision_function(K), named, atol=1e-9)
    called = LabelNoiseSVC(noise=0.1, kernel=lambda A, B: rbf_kernel(A, B, gamma=0.5)).fit(X, y)
    np.testing.assert_allclose(called.decision_function(X), named, atol=1e-9)


def test_bad_input_is_refused_before_any_work(noisy_moons, monkeypatch):
    X, y, _ = noisy_moons()
    refuses("square Gram matrix, got shape", LabelNoiseSVC(kernel="precomputed").fit, X, y)
    monkeypatch.setattr("floral_learn.paper.ln_svm.machine_bytes", lambda: 1e4)
    refuses(r"80 rows take 102 kB", LabelNoiseSVC().fit, X, y, error=MemoryError)
