"""Local intrinsic dimensionality in a kernel's feature space, estimated in minibatches.

For k neighbours at kernel distances t_1 <= ... <= t_k the maximum likelihood estimate is
LID = -k / sum_i log(t_i / t_k), with t = 1 / k(x, x') - 1 = exp(gamma |x - x'|^2) - 1 for the RBF kernel.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import euclidean_distances

_SMALLEST = 1e-12  # of gamma |x - x'|^2: keeps the log of a duplicate's distance finite
_FLATTEST = 1e-6  # of the mean log ratio: k equal distances would give an infinite dimension


def nearest_distances(squared: NDArray[np.float64], n_neighbors: int) -> NDArray[np.float64]:
    """The min(k, m) smallest of squared distances (b, m) to m candidates, in order, per row."""
    k = min(n_neighbors, squared.shape[1])
    return np.sort(np.partition(squared, k - 1, axis=1)[:, :k], axis=1)


def lid_of_nearest(nearest: NDArray[np.float64], gamma: float) -> NDArray[np.float64]:
    """LID (b,) of rows by the squared distances (b, k) to their nearest candidates, in order."""
    scaled = np.maximum(gamma * nearest, _SMALLEST)
    log_t = scaled + np.log(-np.expm1(-scaled))  # log(exp(s) - 1) without overflow
    mean_log_ratio = (log_t[:, -1:] - log_t).mean(axis=1)
    return 1.0 / np.maximum(mean_log_ratio, _FLATTEST)


def cross_lid(
    X: NDArray[np.float64],
    codes: NDArray[np.intp],
    n_neighbors: int,
    gamma: float | NDArray[np.float64],
    batch_size: int,
    rng: np.random.RandomState,
) -> NDArray[np.float64]:
    """s (n,) = LID among rows of the own class / LID among rows of all other classes.

    Each class is dealt at random into batches of about ``batch_size`` rows; a row's own-class neighbours
    come from its batch, the others from as many rows drawn from the rest. A row alone in its class gets nan.
    Several widths ``gamma`` (g,) share distances and neighbours; the result is then (g, n).
    """
    widths = np.atleast_1d(gamma)
    ratio = np.full((len(widths), len(X)), np.nan)
    for code in np.unique(codes):
        own = rng.permutation(np.flatnonzero(codes == code))
        rest = np.flatnonzero(codes != code)
        for batch in np.array_split(own, max(1, round(len(own) / batch_size))):
            if len(batch) < 2 or len(rest) == 0:
                continue
            among_own = euclidean_distances(X[batch], squared=True)
            np.fill_diagonal(among_own, np.inf)
            others = rng.choice(rest, size=min(batch_size, len(rest)), replace=False)
            inside = nearest_distances(among_own, min(n_neighbors, len(batch) - 1))
            outside = nearest_distances(euclidean_distances(X[batch], X[others], squared=True), n_neighbors)
            for row, width in zip(ratio, widths, strict=True):
                row[batch] = lid_of_nearest(inside, width) / lid_of_nearest(outside, width)
    return ratio[0] if np.ndim(gamma) == 0 else ratio
