"""A few features that vary slowly along the rows: what makes certificates large, found without labels."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import eigh
from sklearn import get_config
from sklearn.base import TransformerMixin
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from floral_learn.base.estimator import Estimator, whole_fit

# whose distance is the width of the kernel (Zelnik-Manor, Perona 2004, who scale by the seventh)
NEIGHBOUR = 7


class SpectralFeatures(TransformerMixin, Estimator):
    """The first eigenvectors of D^-1/2 K D^-1/2, an rbf kernel K between rows with row sums D, for old and new rows.

    Rows that many short steps connect have similar features (Ng, Jordan, Weiss 2002), so that a linear ridge regression
    on few of them gives a label the say of one among thousands: certificates are larger than with the kernel itself,
    where the classes are regions that few short steps leave. No label is looked at, so certificates hold. Fewer
    features mean larger certificates and coarser boundaries. New rows are averages of old ones (Nystroem extension).

    Parameters
    ----------
    n_components : int, default=8
        Features, at most as many as rows.
    gamma : "auto" or float, default="auto"
        Of exp(-gamma |a - b|^2). "auto" is 1 / (4 s^2), where s is the median distance of a row from its seventh
        neighbour: short enough to see gaps. Standardise columns first.

    Attributes
    ----------
    gamma_ : float
        The number that was used.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from floral_learn.certify import CertifiedKernelClassifier, SpectralFeatures
    >>> X, y = make_moons(400, noise=0.15, random_state=0)
    >>> features = make_pipeline(StandardScaler(), SpectralFeatures(4)).fit(X[:300])
    >>> plain = CertifiedKernelClassifier().fit(X[:300], y[:300])
    >>> clf = CertifiedKernelClassifier(kernel="linear").fit(features.transform(X[:300]), y[:300])
    >>> flips = clf.certified_flips(features.transform(X[300:]))
    >>> bool(flips.mean() > 1.5 * plain.certified_flips(X[300:]).mean())
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "gamma": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="neither")],
    }

    def __init__(self, n_components: int = 8, *, gamma: str | float = "auto") -> None:
        self.n_components = n_components
        self.gamma = gamma

    @whole_fit
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the eigenvectors of rows X (n, d); ``y`` is ignored. O(n^2) memory."""
        self._validate_params()
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self.gamma_ = self._width(X) if self.gamma == "auto" else float(self.gamma)
        kernel = rbf_kernel(X, gamma=self.gamma_)
        self._degree = kernel.sum(axis=1)
        kernel /= np.sqrt(self._degree[:, None] * self._degree)
        count = min(self.n_components, len(X))
        values, vectors = eigh(kernel, subset_by_index=(len(X) - count, len(X) - 1), overwrite_a=True)
        values, vectors = values[::-1], vectors[:, ::-1]
        # An eigenvector is known up to its sign: its largest entry is positive.
        vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(count)])
        self._X = X
        # phi(x) = sqrt(n) sum_i k(x, x_i) / sqrt(d(x) d_i) u_i / lambda, which at the rows themselves is sqrt(n) u.
        # Directions that rounding makes of nothing are left out by the floor.
        self._map = np.sqrt(len(X)) * vectors / np.maximum(values, 1e-6) / np.sqrt(self._degree)[:, None]
        self._n_features_out = count
        return self

    @staticmethod
    def _width(X: np.ndarray) -> float:
        near = NearestNeighbors(n_neighbors=min(NEIGHBOUR + 1, len(X))).fit(X)
        width = float(np.median(near.kneighbors(X)[0][:, -1]))
        return 1.0 / (4.0 * width**2) if width > 0 else 1.0

    def transform(self, X: Any) -> np.ndarray:
        """Features (m, n_components) of rows X (m, d)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        made = np.empty((len(X), self._map.shape[1]))
        at_once = int(2**15 * get_config()["working_memory"]) // len(self._X)
        for rows in gen_batches(len(X), max(1, at_once)):
            kernel = rbf_kernel(X[rows], self._X, gamma=self.gamma_)
            # A row so far away that all its kernel values vanish is like no other: its features are 0.
            degree = np.maximum(kernel.sum(axis=1), np.finfo(float).tiny)
            made[rows] = (kernel / np.sqrt(degree)[:, None]) @ self._map
        return made

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features: spectral0, spectral1, ..."""
        check_is_fitted(self)
        return np.array([f"spectral{i}" for i in range(self._n_features_out)], dtype=object)
