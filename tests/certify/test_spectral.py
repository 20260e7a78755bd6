"""Spectral features: eigenvectors at the rows themselves, an average at others, and never a look at labels."""

import numpy as np
import pytest
import sklearn
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from floral_learn.certify import CertifiedKernelClassifier, SpectralFeatures


def test_features_of_the_training_rows_are_the_eigenvectors():
    X, _ = make_moons(80, noise=0.1, random_state=0)
    features = SpectralFeatures(5, gamma=3.0).fit(X)
    kernel = rbf_kernel(X, gamma=3.0)
    degree = kernel.sum(axis=1)
    normalised = kernel / np.sqrt(np.outer(degree, degree))
    found = features.transform(X)
    values = np.linalg.eigvalsh(normalised)[::-1][:5]
    np.testing.assert_allclose(normalised @ found, found * values, atol=1e-8)
    np.testing.assert_allclose(found.T @ found / 80, np.eye(5), atol=1e-8)
    assert features.get_feature_names_out().tolist() == [f"spectral{i}" for i in range(5)]


def test_labels_and_far_rows_change_nothing_and_blocks_do_not_matter():
    X, y = make_moons(80, noise=0.1, random_state=0)
    features = SpectralFeatures(4).fit(X, y)
    np.testing.assert_array_equal(features.transform(X), SpectralFeatures(4).fit(X, 1 - y).transform(X))
    assert (features.transform([[1e6, 1e6]]) == 0).all()
    once = features.transform(X)
    with sklearn.config_context(working_memory=1e-3):
        np.testing.assert_allclose(features.transform(X), once)


def test_certificates_are_larger_where_gaps_part_the_classes():
    X, y = make_moons(500, noise=0.12, random_state=0)
    plain = CertifiedKernelClassifier().fit(X[:300], y[:300]).certified_accuracy(X[300:], y[300:], 40)
    features = SpectralFeatures(2).fit(X[:300])
    clf = CertifiedKernelClassifier(kernel="linear").fit(features.transform(X[:300]), y[:300])
    assert clf.certified_accuracy(features.transform(X[300:]), y[300:], 40) > plain + 0.3


@pytest.mark.parametrize(("options", "words"), [({"n_components": 0}, "n_components"), ({"gamma": -1.0}, "gamma")])
def test_bad_parameters_are_named(options, words):
    with pytest.raises(ValueError, match=f"'{words}' parameter of SpectralFeatures must be"):
        SpectralFeatures(**options).fit([[0.0], [1.0]])


@parametrize_with_checks([SpectralFeatures(2)])
def test_scikit_learn(estimator, check):
    check(estimator)
