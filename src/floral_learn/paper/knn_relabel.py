"""Relabel by neighbourhood: y_i <- mode of its k nearest labels where the mode's share >= threshold.

Paudice, Munoz-Gonzalez and Lupu, "Label Sanitization against Label Flipping Poisoning Attacks", 2018.
All rows are judged on the given labels, never on labels that were already replaced.
"""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
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

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Sanitise labels y (n,) of rows X (n, d). A class never loses all of its labels."""
        features, classes, codes = sanitizer_input(self, X, y)
        blocks = nearest_others(features, self.n_neighbors)
        votes = np.concatenate([label_votes(near, codes, len(classes)) for _, near, _ in blocks])
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
