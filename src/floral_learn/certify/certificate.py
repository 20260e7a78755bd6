"""What every certified classifier says about its predictions, in one form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from floral_learn.base import Shown
from floral_learn.base.alignment import align


@dataclass(frozen=True, repr=False)
class Certificate(Shown):
    """Predictions, how many flipped training labels each survives, and labels whose flips would turn it.

    Attributes
    ----------
    prediction : ndarray of shape (m,)
        Predicted labels.
    flips : ndarray of shape (m,)
        Whichever so many training labels are replaced, a refit predicts the same. -1: nothing is promised.
    rows : list of m entries
        Numbers of training rows whose flips turn the prediction, the strongest first; None where no flips do, or
        where the method does not know them.
    labels : list of m entries
        The new labels of these rows.
    exact : bool
        Whether one flip more than ``flips`` suffices (ties aside), or ``flips`` is only a lower bound.
    n_labels : int
        Training labels, and how many of them can be flipped: ``n_reachable``.
    assumed : dict
        Settings that the promise takes as fixed. Where one of them was chosen with the help of the labels (a search,
        an encoder that saw them), the promise is void.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import CertifiedKernelClassifier
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> found = CertifiedKernelClassifier().fit(X, y).certificate(X[:3])
    >>> bool((found.flips + 1 == [len(rows) for rows in found.rows]).all())
    True
    """

    prediction: np.ndarray
    flips: np.ndarray
    rows: Sequence[np.ndarray | None]
    labels: Sequence[np.ndarray | None]
    exact: bool
    n_labels: int
    n_reachable: int
    assumed: Mapping[str, Any] = field(default_factory=dict)

    def _facts(self) -> dict[str, str]:
        kind = "exactly" if self.exact else "at least"
        facts = {"predictions": f"{len(self.flips):,}", "training labels": f"{self.n_labels:,}"}
        if self.n_reachable < self.n_labels:
            facts["can be flipped"] = f"{self.n_reachable:,}"
        if len(self.flips):
            low, middle, high = np.percentile(self.flips, [10, 50, 90], method="lower")
            facts[f"flips survived, {kind}"] = f"median {middle:,}, middle 80 % {low:,} to {high:,}"
            facts["nothing promised"] = f"{int((self.flips < 0).sum()):,}"
        assumed = ", ".join(f"{name}={value}" for name, value in self.settings())
        return facts | {"holds if no label chose": assumed}

    def settings(self) -> list[tuple[str, str]]:
        """Names and values of what the promise takes as fixed, as text."""
        return [(name, f"{v:.4g}" if isinstance(v, float) else str(v)) for name, v in self.assumed.items()]


class CertifiedPredictions:
    """Mixin of classifiers with ``predict`` and ``certified_flips``: what follows from these two."""

    def certified_flips(self, X: Any) -> np.ndarray:
        """How many flipped training labels each prediction survives, (m,); -1 where nothing is promised."""
        raise NotImplementedError

    def certified_accuracy(self, X: Any, y: Any, flips: Any) -> Any:
        """Share of rows that are predicted right and stay so whichever ``flips`` training labels are replaced.

        A lower bound on the accuracy after any such attack, even one that chooses other flips for every row.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows, with true labels `y` (m,).
        y : array-like of shape (m,)
            Labels that are right; untrusted ones say nothing here.
        flips : int or array of ints
            Numbers of flips, 0 or more.

        Returns
        -------
        float or ndarray
            One share per number of flips.
        """
        counts = np.asarray(flips)
        if counts.dtype.kind not in "iu" or (counts < 0).any():
            raise ValueError(f"flips={flips!r} must be a whole number, 0 or more, or an array of them")
        prediction = self.predict(X)  # type: ignore[attr-defined]
        y = np.asarray(align(X, y))
        if y.shape != prediction.shape:
            raise ValueError(f"X has {len(prediction)} rows, y has shape {y.shape}; one label per row is needed")
        right = prediction == y
        survives = self.certified_flips(X)
        shares = np.array([(right & (survives >= count)).mean() for count in counts.ravel()])
        return float(shares[0]) if counts.ndim == 0 else shares.reshape(counts.shape)
