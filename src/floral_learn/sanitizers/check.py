"""Whether a sanitised model predicts held-out labels, as given, better than the plain one does."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from floral_learn.labels.held_out import class_recalls

Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Comparison:
    """Pairs (plain, sanitised) on held-out labels, and how many standard errors the difference is from zero.

    ``recall`` is a mean over the classes, ``recall_rise`` the rise of their sum.
    """

    accuracy: tuple[float, float]
    recall: tuple[float, float]
    recall_rise: float
    accuracy_errors: float
    recall_errors: float


def compare(plain: Codes, mended: Codes, codes: Codes, weight: NDArray[np.float64]) -> Comparison:
    """Compare two held-out predictions (n,) of the labels `codes` (n,); the rows that both get alike say nothing."""
    present = np.flatnonzero(np.bincount(codes, weights=weight) > 0)
    recalls = [class_recalls(said, codes, weight, present) for said in (plain, mended)]
    change = weight * ((mended == codes).astype(float) - (plain == codes))
    mass = np.bincount(codes, weights=weight)
    by_class = change / mass[codes]
    accuracy = [float(np.average(said == codes, weights=weight)) for said in (plain, mended)]
    return Comparison(
        accuracy=(accuracy[0], accuracy[1]),
        recall=(float(recalls[0].mean()), float(recalls[1].mean())),
        recall_rise=float((recalls[1] - recalls[0]).sum()),
        accuracy_errors=_errors(change),
        recall_errors=_errors(by_class),
    )


def _errors(change: NDArray[np.float64]) -> float:
    size = float(np.sqrt((change**2).sum()))
    return float(change.sum()) / size if size > 0 else 0.0
