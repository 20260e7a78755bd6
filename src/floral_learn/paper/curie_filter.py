"""Drop rows that lie far from their cluster once the label counts as a coordinate.

Laishram and Phoha, "Curie: A method for protecting SVM Classifier from Poisoning Attack", 2016:
cluster the features with DBSCAN; score a row by its mean distance to rows of its own cluster in
(features, w * label); standardise the scores; drop what lies beyond the confidence quantile.
"""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.stats import norm
from sklearn.cluster import DBSCAN
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances_chunked
from sklearn.utils._param_validation import Interval, StrOptions

from floral_learn.base.estimator import Estimator
from floral_learn.labels.rows import nearest_others
from floral_learn.sanitizers.inputs import keep_rows, sanitizer_input, spare_one_of_each_class

_WIDE = 50  # features above which "auto" compresses by PCA
_LINKS = 50  # nearest rows through which DBSCAN may grow a cluster


class CurieFilter(Estimator):
    """Drop rows whose label disagrees with that of the rows around them in the same cluster.

    Parameters
    ----------
    confidence : float in (0.5, 1)
        Rows whose standardised score exceeds this normal quantile are dropped.
    n_neighbors : int
        Rows of the same cluster that a row is compared with.
    compare : {"nearest", "all"}
        The ``n_neighbors`` nearest rows of the cluster in feature space, or the whole cluster: the original
        definition. On Moon, flips far from a linear model's boundary, the whole cluster is better: 0.928 against 0.915
        of test rows at 10 % flips, 0.782 against 0.760 at 25 % (ten replications, an SVC with C = 10 behind it).
    label_weight : float
        Distance between two different labels, in units of the features' root mean square distance from their mean.
    eps : float or "auto"
        DBSCAN radius. "auto" is the 90 % quantile of the distance to the ``min_samples``-th nearest row.
    min_samples : int
        Rows within ``eps`` (the row itself included) that make a core row.
    n_components : "auto", None, int or float
        PCA before clustering. "auto" keeps 95 % of the variance where there are more than 50 features.

    Notes
    -----
    Scores are standardised within each cluster; rows that DBSCAN calls noise are one more group.
    DBSCAN sees each row's 50 nearest neighbours (or ``min_samples``, if more) within ``eps``, so memory is
    O(n); core rows are exact, and clusters differ from unlimited DBSCAN only where two dense groups
    touch through no such pair. A class never loses all of its rows.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.paper import CurieFilter
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> y[:5] = 1 - y[:5]
    >>> curie = CurieFilter(confidence=0.95)
    >>> kept, labels = curie.fit_resample(X, y)
    >>> bool(sum(row not in curie.sample_indices_ for row in range(5)) >= 4)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "confidence": [Interval(Real, 0.5, 1.0, closed="neither")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "compare": [StrOptions({"nearest", "all"})],
        "label_weight": [Interval(Real, 0.0, None, closed="left")],
        "eps": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="neither")],
        "min_samples": [Interval(Integral, 1, None, closed="left")],
        "n_components": [
            StrOptions({"auto"}),
            None,
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0.0, 1.0, closed="neither"),
        ],
    }

    def __init__(
        self,
        *,
        confidence: float = 0.95,
        n_neighbors: int = 20,
        compare: str = "nearest",
        label_weight: float = 1.0,
        eps: str | float = "auto",
        min_samples: int = 5,
        n_components: Any = "auto",
    ) -> None:
        self.confidence = confidence
        self.n_neighbors = n_neighbors
        self.compare = compare
        self.label_weight = label_weight
        self.eps = eps
        self.min_samples = min_samples
        self.n_components = n_components

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Drop suspicious rows of X (n, d) with labels y (n,); sets ``clusters_`` and ``scores_`` (n,)."""
        features, classes, codes = sanitizer_input(self, X, y)
        features = self._compress(features)
        radius = np.sqrt(features.var(axis=0).sum())
        gap = self.label_weight * (radius if radius > 0 else 1.0)
        self.clusters_, self.eps_ = find_clusters(features, self.eps, self.min_samples)
        self.scores_ = np.zeros(len(codes))
        for cluster in np.unique(self.clusters_):
            rows = np.flatnonzero(self.clusters_ == cluster)
            if len(rows) > 1:
                far = self._mean_distance(features[rows], codes[rows], gap)
                spread = far.std()
                # A constant score has no outliers; rounding must not invent some.
                if spread > 1e-12 * max(1.0, float(far.max())):
                    self.scores_[rows] = (far - far.mean()) / spread
        drop = spare_one_of_each_class(self.scores_ > norm.ppf(self.confidence), codes, self.scores_)
        return keep_rows(self, X, classes[codes], ~drop)

    def _compress(self, X: np.ndarray) -> np.ndarray:
        keep = self.n_components
        if keep == "auto":
            keep = 0.95 if X.shape[1] > _WIDE else None
        if keep is None:
            return X
        if isinstance(keep, Integral) and keep > min(X.shape):
            raise ValueError(f"n_components={keep} is over min(n_samples, n_features) = {min(X.shape)}.")
        return PCA(n_components=keep, svd_solver="covariance_eigh").fit_transform(X)

    def _mean_distance(self, X: np.ndarray, codes: np.ndarray, gap: float) -> np.ndarray:
        if self.compare == "all":
            return _mean_over_all(X, codes, gap)
        mean = np.empty(len(X))
        for rows, others, distances in nearest_others(X, min(self.n_neighbors, len(X) - 1)):
            differ = codes[others] != codes[rows, None]
            mean[rows] = np.sqrt(distances**2 + gap**2 * differ).mean(axis=1)
        return mean


def find_clusters(X: np.ndarray, eps: float | str, min_samples: int) -> tuple[np.ndarray, float]:
    """DBSCAN labels (n,), -1 for noise, and the radius; memory O(n), see the notes of CurieFilter."""
    n = len(X)
    links = min(max(_LINKS, min_samples), n - 1)
    near = np.empty((n, links), dtype=np.intp)
    distances = np.empty((n, links))
    for rows, others, away in nearest_others(X, links):
        near[rows], distances[rows] = others, away
    if eps == "auto":
        # min_samples counts the row itself, so its last needed neighbour is number min_samples - 1.
        reach = distances[:, min(max(min_samples - 2, 0), links - 1)]
        eps = np.quantile(reach, 0.9)
    radius = max(float(eps), float(np.finfo(float).tiny))
    within = distances <= radius
    graph = sparse.csr_matrix(
        (distances[within], near[within], np.concatenate([[0], np.cumsum(within.sum(axis=1))])), shape=(n, n)
    )
    # Stored zeros (duplicates) must survive the symmetrisation, so every distance is shifted by one.
    graph.data += 1.0
    graph = graph.maximum(graph.T).tocsr()
    graph.data -= 1.0
    labels = DBSCAN(eps=radius, min_samples=min_samples, metric="precomputed").fit(graph).labels_
    return labels, radius


def _mean_over_all(X: np.ndarray, codes: np.ndarray, gap: float) -> np.ndarray:
    def mean(block: np.ndarray, start: int) -> np.ndarray:
        differ = codes[start : start + len(block), None] != codes
        return np.sqrt(block**2 + gap**2 * differ).sum(axis=1) / (len(X) - 1)

    return np.concatenate(list(pairwise_distances_chunked(X, reduce_func=mean, working_memory=128)))
