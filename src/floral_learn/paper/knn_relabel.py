"""Relabel by neighbourhood: y_i <- mode of its k nearest labels where the mode's share >= threshold.

Paudice, Munoz-Gonzalez and Lupu, "Label Sanitization against Label Flipping Poisoning Attacks", 2018.
All rows are judged on the given labels, never on labels that were already replaced.
"""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils._param_validation import Interval

from floral_learn.base.estimator import Estimator
from floral_learn.labels.rows import label_votes, nearest_others
from floral_learn.sanitizers.inputs import sanitizer_input, spare_one_of_each_class


class KNNRelabel(Estimator):
    """Replace a label by the one that most of its nearest neighbours carry.

    Parameters
    ----------
    n_neighbors : int, default=20
        Neighbours that vote (the row itself does not); at most n - 1 are used.
    threshold : float in [0.5, 1], default=0.95
        Share of the votes that the winning label needs.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.paper import KNNRelabel
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> y[:5] = 1 - y[:5]
    >>> relabel = KNNRelabel(threshold=0.8)
    >>> rows, labels = relabel.fit_resample(X, y)
    >>> int(relabel.relabeled_[:5].sum())
    5
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "threshold": [Interval(Real, 0.5, 1.0, closed="both")],
    }

    def __init__(self, *, n_neighbors: int = 20, threshold: float = 0.95) -> None:
        self.n_neighbors = n_neighbors
        self.threshold = threshold

    def fit_resample(self, X: Any, y: Any, graph: Any = None) -> tuple[Any, NDArray[Any]]:
        """Sanitise labels y (n,) of rows X (n, d).

        ``graph`` is an optional sparse (n, n) matrix whose stored entries, explicit zeros included, name
        the neighbours of each row, as ``sklearn.neighbors.kneighbors_graph`` gives it; it then decides who
        votes, in place of ``n_neighbors``. Its diagonal is ignored. A class never loses all of its labels.
        """
        features, classes, codes = sanitizer_input(self, X, y)
        if graph is None:
            blocks = nearest_others(features, self.n_neighbors)
            votes = np.concatenate([label_votes(near, codes, len(classes)) for _, near, _ in blocks])
        else:
            votes = _count_graph_votes(graph, codes, len(classes))
        share = votes / votes.sum(axis=1, keepdims=True)
        rows = np.arange(len(codes))
        winner = share.argmax(axis=1)
        own = share[rows, codes]
        # A tie that includes the given label is no reason to change it.
        change = (share[rows, winner] >= self.threshold - 1e-12) & (share[rows, winner] > own)
        change = spare_one_of_each_class(change, codes, doubt=-own)
        clean = classes[np.where(change, winner, codes)]
        self.sample_indices_, self.relabeled_ = np.arange(len(codes)), change
        return X, clean


def _count_graph_votes(graph: Any, codes: NDArray[np.intp], n_classes: int) -> NDArray[np.intp]:
    n = len(codes)
    if not sparse.issparse(graph):
        raise ValueError(f"graph must be a scipy sparse matrix of shape ({n}, {n}), got {type(graph).__name__}.")
    if graph.shape != (n, n):
        raise ValueError(f"graph must have shape ({n}, {n}), one row for each row of X, got {graph.shape}.")
    graph = graph.tocsr()  # keeps explicit zeros: duplicates at distance 0 are neighbours too
    row = np.repeat(np.arange(n), np.diff(graph.indptr))
    other = row != graph.indices
    votes = np.bincount(row[other] * n_classes + codes[graph.indices[other]], minlength=n * n_classes).reshape(
        n, n_classes
    )
    if (votes.sum(axis=1) == 0).any():
        alone = int(np.flatnonzero(votes.sum(axis=1) == 0)[0])
        raise ValueError(f"graph gives row {alone} no neighbour other than itself; every row needs at least one.")
    return votes
