"""Weigh rows by how much their kernel LID looks like that of a flipped label.

Weerasinghe, Alpcan, Erfani and Leckie, "Defending Support Vector Machines against Data Poisoning
Attacks", 2021. Local intrinsic dimensionality in a kernel's feature space, for k neighbours at kernel distances
t_1 <= ... <= t_k, is estimated by maximum likelihood: LID = -k / sum_i log(t_i / t_k), with t = 1 / k(x, x') - 1 =
exp(gamma |x - x'|^2) - 1 for the RBF kernel; s is that among rows of the own class over that among all others
(`cross_lid`). For each class two densities of the statistic s are estimated, one for
benign rows and one for flipped rows; their ratio becomes a weight in [0.1, 1], smoothed by
w(s) = 0.55 - 0.45 tanh(a s - b). Which labels are flipped is not known: the flipped rows behind the second
density are flips that this code plants itself in the given labels.
"""

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import entropy, gaussian_kde
from sklearn.metrics import euclidean_distances
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from floral_learn.base.estimator import Estimator
from floral_learn.game.kernels import resolve_gamma
from floral_learn.sanitizers.inputs import sanitizer_input

_FEWEST = 5  # values below which a density is not worth estimating
_WIDTHS = (1.0, 1 / 30, 1 / 10, 1 / 3, 3.0, 10.0, 30.0)  # times "scale", which wins where all are equal
# logs of duplicates' distances, and dimensions of equal ones, stay finite
_ROUNDING = float(np.finfo(float).eps)
_Samples = tuple[np.ndarray, np.ndarray]


class KLIDWeights(Estimator):
    """Weights in [0.1, 1]: low where a row's neighbourhood looks like that of a flipped label.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours in each LID estimate.
    lid_gamma : "tuned", float, "scale" or "auto"
        Width of the RBF kernel that measures distances. "tuned" takes, from 1 to 1/30 and 30 times "scale", the one
        whose two densities differ most (largest Kullback-Leibler divergence, as in the original, but on planted flips).
    batch_size : int
        Rows of a class that are compared with each other at a time.
    planted : float in (0, 0.5)
        Share of the labels that is flipped on purpose to learn what flips look like.
    n_plantings : int
        Independent plantings whose statistics are pooled.
    random_state : int, Generator-like or None
        Batches and plantings.

    Examples
    --------
    >>> from floral_learn import load_moon, poison
    >>> from floral_learn.paper import KLIDWeights
    >>> moon = load_moon()
    >>> bad = poison(moon.X_train, moon.y_train, attack="random", budget=0.1, random_state=0)
    >>> weight = KLIDWeights(random_state=0).fit(moon.X_train, bad.y).sample_weight_
    >>> bool(weight[bad.mask].mean() < weight[~bad.mask].mean())
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 2, None, closed="left")],
        "lid_gamma": [StrOptions({"tuned", "scale", "auto"}), Interval(Real, 0.0, None, closed="neither")],
        "batch_size": [Interval(Integral, 3, None, closed="left")],
        "planted": [Interval(Real, 0.0, 0.5, closed="neither")],
        "n_plantings": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        n_neighbors: int = 10,
        lid_gamma: str | float = "tuned",
        batch_size: Any = 100,
        planted: float = 0.1,
        n_plantings: int = 3,
        random_state: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.lid_gamma = lid_gamma
        self.batch_size = batch_size
        self.planted = planted
        self.n_plantings = n_plantings
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Weigh rows X (n, d) with labels y (n,); sets ``sample_weight_`` and the s behind it, ``statistic_``, (n,).

        Nothing is dropped or relabelled. A class with too few rows for two densities keeps weight one.
        """
        features, classes, codes = sanitizer_input(self, X, y)
        rng = check_random_state(self.random_state)
        plantings = [plant_flips(codes, len(classes), self.planted, rng) for _ in range(self.n_plantings)]
        seed = rng.randint(np.iinfo(np.int32).max)  # every width is judged on the same batches

        def statistic(labels: np.ndarray, gamma: Any) -> np.ndarray:
            batches = np.random.RandomState(seed)
            return cross_lid(features, labels, self.n_neighbors, gamma, self.batch_size, batches)

        widths = self._widths(features)
        found = [statistic(labels, widths) for labels, _ in plantings]  # (widths, n) each

        def samples(number: int) -> list[_Samples]:
            seen = [(*planting, s[number]) for planting, s in zip(plantings, found, strict=True)]
            return _by_class(seen, classes)

        candidates = [samples(number) for number in range(len(widths))]
        spread = [sum(divergence(*pair) for pair in pairs) for pairs in candidates] if len(widths) > 1 else [0.0]
        best = int(np.argmax(spread))
        self.lid_gamma_, learned = float(widths[best]), candidates[best]
        self.statistic_ = statistic(codes, self.lid_gamma_)
        weight = np.ones(len(codes))
        for code in range(len(classes)):
            rows = (codes == code) & np.isfinite(self.statistic_)
            weight[rows] = density_ratio_weights(self.statistic_[rows], *learned[code])
        self.sample_weight_ = weight
        return self

    def _widths(self, X: np.ndarray) -> np.ndarray:
        """The kernel widths among which the data choose."""
        if self.lid_gamma != "tuned":
            return np.array([resolve_gamma(self.lid_gamma, X)])
        return resolve_gamma("scale", X) * np.array(_WIDTHS)


def _by_class(seen: list[tuple[np.ndarray, np.ndarray, np.ndarray]], classes: np.ndarray) -> list[_Samples]:
    """(benign, flipped) values of s for each class, pooled over (labels, planted, s) of every planting."""
    pooled = []
    for code in range(len(classes)):
        inside = [(labels == code) & np.isfinite(s) for labels, _, s in seen]
        benign = np.concatenate([s[rows & ~planted] for rows, (_, planted, s) in zip(inside, seen)])
        flipped = np.concatenate([s[rows & planted] for rows, (_, planted, s) in zip(inside, seen)])
        pooled.append((benign, flipped))
    return pooled


def plant_flips(
    codes: np.ndarray, n_classes: int, share: float, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Labels (n,) with a random share replaced by another class, and the mask of the replaced ones."""
    planted = np.zeros(len(codes), bool)
    planted[rng.choice(len(codes), size=max(1, round(share * len(codes))), replace=False)] = True
    labels = codes.copy()
    labels[planted] = (codes[planted] + rng.randint(1, n_classes, size=planted.sum())) % n_classes
    return labels, planted


def density_ratio_weights(s: np.ndarray, benign: np.ndarray, flipped: np.ndarray) -> np.ndarray:
    """w(s) in [0.1, 1] from samples of s for benign and for flipped rows.

    r = p_benign / p_flipped, clipped to [0, 2] and scaled to [0.1, 1]: equal densities give 0.55, the
    middle of the tanh. Then w = 0.55 - 0.45 tanh(a s - b) is fitted to it by least squares, a of either
    sign: flips that lie among few of their kind have a small s, flips in a crowd a large one.
    """
    if not _enough(benign, flipped):
        return np.ones(len(s))
    grid, p_benign, p_flipped = _densities(benign, flipped)
    ratio = p_benign / np.maximum(p_flipped, 1e-300)
    target = 0.1 + 0.9 * np.clip(ratio, 0.0, 2.0) / 2.0
    # Where neither density has mass their ratio is rounding noise, so mass decides how much a point counts.
    noise = 1.0 / np.sqrt(np.maximum(p_benign + p_flipped, 1e-6 * (p_benign + p_flipped).max()))
    middle = 0.5 * (np.median(benign) + np.median(flipped))
    direction = np.sign(np.median(flipped) - np.median(benign)) or 1.0
    slope = direction / np.concatenate([benign, flipped]).std()
    a, b = least_squares(
        lambda ab: (_tanh_weight(grid, *ab) - target) / noise, x0=(slope, slope * middle), max_nfev=500
    ).x
    return _tanh_weight(s, a, b)


def _tanh_weight(s: np.ndarray, a: float, b: float) -> np.ndarray:
    return 0.55 - 0.45 * np.tanh(a * s - b)


def divergence(benign: np.ndarray, flipped: np.ndarray) -> float:
    """Kullback-Leibler divergence of the two densities of s, 0 where there is too little to tell."""
    if not _enough(benign, flipped):
        return 0.0
    _, p, q = _densities(benign, flipped)
    return float(entropy(np.maximum(p, 1e-12), np.maximum(q, 1e-12)))


def _enough(benign: np.ndarray, flipped: np.ndarray) -> bool:
    return min(len(benign), len(flipped)) >= _FEWEST and benign.std() > 0 and flipped.std() > 0


def _densities(
    benign: np.ndarray, flipped: np.ndarray, n_points: int = 512
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A grid over s and the two kernel density estimates on it."""
    pooled = np.concatenate([benign, flipped])
    # The ratio of two LIDs has a heavy right tail; beyond the 99.5 % quantile both densities are empty.
    grid = np.linspace(pooled.min(), np.quantile(pooled, 0.995), n_points)
    return grid, gaussian_kde(benign)(grid), gaussian_kde(flipped)(grid)


def nearest_distances(squared: np.ndarray, n_neighbors: int) -> np.ndarray:
    """The min(k, m) smallest of squared distances (b, m) to m candidates, in order, per row."""
    k = min(n_neighbors, squared.shape[1])
    return np.sort(np.partition(squared, k - 1, axis=1)[:, :k], axis=1)


def lid_of_nearest(nearest: np.ndarray, gamma: float) -> np.ndarray:
    """LID (b,) of rows by the squared distances (b, k) to their nearest candidates, in order."""
    scaled = np.maximum(gamma * nearest, _ROUNDING)
    log_t = scaled + np.log(-np.expm1(-scaled))  # log(exp(s) - 1) without overflow
    mean_log_ratio = (log_t[:, -1:] - log_t).mean(axis=1)
    return 1.0 / np.maximum(mean_log_ratio, _ROUNDING)


def cross_lid(
    X: np.ndarray,
    codes: np.ndarray,
    n_neighbors: int,
    gamma: float | np.ndarray,
    batch_size: int,
    rng: np.random.RandomState,
) -> np.ndarray:
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
            # a row is not its own neighbour
            among_own = euclidean_distances(X[batch], squared=True)
            np.fill_diagonal(among_own, np.inf)
            others = rng.choice(rest, size=min(batch_size, len(rest)), replace=False)
            inside = nearest_distances(among_own, min(n_neighbors, len(batch) - 1))
            outside = nearest_distances(euclidean_distances(X[batch], X[others], squared=True), n_neighbors)
            for row, width in zip(ratio, widths, strict=True):
                row[batch] = lid_of_nearest(inside, width) / lid_of_nearest(outside, width)
    return ratio[0] if np.ndim(gamma) == 0 else ratio
