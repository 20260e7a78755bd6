"""Randomised smoothing over labels: ridge regression voted over random label flips, with a certificate.

Rosenfeld, Winston, Ravikumar and Kolter, "Certified Robustness to Label-Flipping Attacks via Randomized
Smoothing", 2020. Ridge regression on features phi is linear in the labels: its value at x is a(x)'y with
a(x) = Phi (Phi'Phi + l I)^-1 phi(x), so the vote over labels that flip with probability q needs no sampling.
How sure the vote is follows from Chernoff bounds on P(a'Y >= 1/2), where Y has independent 0/1 entries: the given
label y_i, flipped with probability q. The functions below the class take rows ``a`` (m, n) of such weights.
"""

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit, logit
from scipy.stats import binom
from sklearn.base import ClassifierMixin
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from floral_learn.base.estimator import Estimator, query_input, training_input, whole_fit
from floral_learn.certify.certificate import Certificate, CertifiedPredictions
from floral_learn.certify.cheapest_flips import Attacker, turning_flips
from floral_learn.game.kernels import resolve_gamma
from floral_learn.labels.rows import MOST_VALUES


class RandomizedSmoothingClassifier(CertifiedPredictions, ClassifierMixin, Estimator):
    """Ridge regression that votes over random label flips and says how many flips it survives.

    Parameters
    ----------
    flip_probability : float in (0, 0.5), default=0.1
        q: how often each label flips in the vote. Larger means larger certificates for points far from the boundary and
        fewer certified points.
    ridge : float, default=0.01
        l: penalty on the weights (not on the intercept).
    fit_intercept : bool, default=True
        The paper's Moon numbers correspond to False.
    scale : bool, default=True
        Whether to bring every feature to deviation 1 (and mean 0, if there is an intercept) first, as found on the
        training rows, which no label decides: certificates hold. Without it the penalty falls on features by their
        units, so that metres in place of millimetres give another model. The FLORAL paper's numbers are with False.
    kernel : {"linear", "rbf"}, default="linear"
        "rbf" by :class:`sklearn.kernel_approximation.Nystroem`.
    gamma : "scale", "auto" or float, default="scale"
        Of the rbf kernel.
    n_components : int, default=100
        Nystroem landmarks (at most n are used); ignored for "linear".
    random_state : int or None, default=0
        Choice of landmarks; a number, so that a refit on other labels sees the same features. With None the certificate
        still holds for the vote on the fitted features.

    Attributes
    ----------
    classes_ : ndarray of shape (M,)
        The labels; several classes are voted one-vs-rest.
    coef_ : ndarray of shape (P, p)
        Ridge weights of the expected noisy labels, P = 1 for two classes, else M.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.paper import RandomizedSmoothingClassifier
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> clf = RandomizedSmoothingClassifier(kernel="rbf", gamma=1.0, ridge=1.0).fit(X, y)
    >>> bool(clf.certified_flips(X).max() > 5)  # no 5 changed labels can change that prediction
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "flip_probability": [Interval(Real, 0.0, 0.5, closed="neither")],
        "ridge": [Interval(Real, 0.0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "scale": ["boolean"],
        "kernel": [StrOptions({"linear", "rbf"})],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="neither")],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        flip_probability: float = 0.1,
        ridge: float = 0.01,
        fit_intercept: bool = True,
        scale: bool = True,
        kernel: Any = "linear",
        gamma: str | float = "scale",
        n_components: Any = 100,
        random_state: Any = 0,
    ) -> None:
        self.flip_probability = flip_probability
        self.ridge = ridge
        self.fit_intercept = fit_intercept
        self.scale = scale
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.random_state = random_state

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows X (n, d) and labels y (n,).

        ``sample_weight`` (n,) weighs the squared errors; it must not depend on the labels, or the
        certificate is void. A row of weight two counts double but flips as one.
        """
        self._validate_params()
        X, codes, weight = training_input(self, X, y, sample_weight)
        # Without an intercept the origin is part of the model, and stays where it is.
        scaler = StandardScaler(with_mean=self.fit_intercept)
        self._scaler = scaler.fit(X, sample_weight=weight) if self.scale else None
        self._fit_features(self._scaled(X))
        features = self._features(X)
        targets = np.stack([codes == c for c in self._sides()]).astype(float)
        rows = features if weight is None else weight[:, None] * features
        penalty = np.full(features.shape[1], float(self.ridge))
        if self.fit_intercept:
            penalty[-1] = 0.0
        self._influence = _solve_normal(rows.T @ features + np.diag(penalty), rows.T)
        self._targets, self._codes = targets, codes
        q = self.flip_probability
        self.coef_ = ((1.0 - 2.0 * q) * targets + q) @ self._influence.T
        return self

    def _sides(self) -> list[int]:
        return [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))

    def _fit_features(self, X: np.ndarray) -> None:
        self._map = None
        if self.kernel == "linear":
            return
        gamma, most = resolve_gamma(self.gamma, X), min(self.n_components, len(X))
        self._map = Nystroem("rbf", gamma=gamma, n_components=most, random_state=self.random_state).fit(X)

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        return X if self._scaler is None else self._scaler.transform(X)

    def _features(self, X: np.ndarray) -> np.ndarray:
        X = self._scaled(X)
        features = X if self._map is None else self._map.transform(X)
        return np.column_stack([features, np.ones(len(X))]) if self.fit_intercept else features

    def decision_function(self, X: Any) -> np.ndarray:
        """Mean vote minus one half: (m,) for two classes, (m, M) one-vs-rest for more.

        Positive means that the expected value of the noisy ridge regression is above 1/2.
        """
        check_is_fitted(self)
        scores = self._features(query_input(self, X)) @ self.coef_.T - 0.5
        return scores.ravel() if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Class of each row of X (m, d): the side of the mean vote, ties to the higher class of two."""
        scores = self.decision_function(X)
        codes = (scores >= 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def certified_flips(self, X: Any) -> np.ndarray:
        """How many flipped training labels each prediction provably survives, (m,): a lower bound.

        -1: the vote is too close to call, no promise at all. r >= 0: whichever r training labels an
        attacker replaces (by any of the classes), both the vote over noisy labels and ``predict`` of the
        refitted model stay as they are. With several classes the promise asks that exactly one of the
        one-vs-rest votes is positive, and it is the smallest radius of all of them.
        """
        check_is_fitted(self)
        # the value at x is a(x)'y: all that the certificate needs of the training rows
        features = self._features(query_input(self, X))
        n = self._influence.shape[1]
        radius = np.empty(len(features), dtype=np.intp)
        for rows in gen_batches(len(features), max(1, MOST_VALUES // n)):
            radius[rows] = self._radius(features[rows] @ self._influence)
        return radius

    def certificate(self, X: Any) -> Certificate:
        """Certified flips of each prediction, with labels whose flips would turn ``predict``, the mean vote.

        ``flips`` is a lower bound; the labels named are the fewest that turn the mean vote, mostly more than one above
        it. None where no flips turn it.
        """
        prediction, flips = self.predict(X), self.certified_flips(X)
        features = self._features(query_input(self, X))
        codes = np.searchsorted(self.classes_, prediction)
        possible, everyone = ~np.eye(len(self.classes_), dtype=bool), np.ones(len(self._codes), dtype=bool)
        attacker = Attacker(self._codes, possible, everyone)
        rows, labels = [], []
        for j in range(len(features)):
            a = features[j] @ self._influence
            turns = self._turning(a, int(codes[j]), attacker)
            rows.append(None if turns is None else turns[0])
            labels.append(None if turns is None else self.classes_[turns[1]])
        n = len(self._codes)
        return Certificate(prediction, flips, rows, labels, False, n, n, self._assumed())

    def _turning(self, a: np.ndarray, winner: int, attacker: Attacker) -> Any:
        """The fewest labels (of any rival) whose flips turn the mean vote at a row with weights a (n,)."""
        q = self.flip_probability
        found = []
        for rival in set(range(attacker.n_classes)) - {winner}:
            # Two classes: the mean vote sum_i a_i ((1 - 2 q) y_i + q) is held against 1/2, not against the other class,
            # so the lead has a constant beside the labels' terms; it enters as slack, which may be negative.
            shift = 0.0
            if attacker.n_classes == 2:
                mean_vote = a @ ((1.0 - 2.0 * q) * (attacker.codes == 1) + q)
                lead = 2.0 * (mean_vote - 0.5) / (1.0 - 2.0 * q)
                of_labels = float(a @ np.where(attacker.codes == winner, 1.0, -1.0))
                shift = (lead if winner == 1 else -lead) - of_labels
            turn = turning_flips(a, 1e-12 * float(np.abs(a).sum()) + shift, winner, rival, attacker)
            if turn is not None:
                found.append(turn)
        return min(found, key=lambda turn: len(turn[0]), default=None)

    def _assumed(self) -> dict[str, Any]:
        settings = {"features": self.n_features_in_, "kernel": self.kernel, "ridge": self.ridge}
        if self._map is not None:
            settings["gamma"] = self._map.gamma
        return settings | {"scale": self.scale, "flip_probability": self.flip_probability}

    def _radius(self, a: np.ndarray) -> np.ndarray:
        q = self.flip_probability
        radii, positives = [], []
        for y in self._targets:
            margin = a @ ((1.0 - 2.0 * q) * y + q) - 0.5
            positive = margin >= 0
            radius = certified_flips(chernoff_log_failure(a, y, q, positive), q, len(y))
            # both votes must stay: the noisy majority and the mean vote, which predicts
            radii.append(np.minimum(radius, flips_to_cross(a, y, q, margin)))
            positives.append(positive)
        smallest = np.min(radii, axis=0)
        if len(radii) == 1:
            return smallest
        return np.where(np.sum(positives, axis=0) == 1, smallest, -1)


def _solve_normal(normal: np.ndarray, right: np.ndarray) -> np.ndarray:
    try:
        return cho_solve(cho_factor(normal), right)
    except LinAlgError as error:
        raise ValueError(
            "the features are linearly dependent and ridge= is too small to tell them apart; raise it"
        ) from error


def chernoff_log_failure(
    a: np.ndarray, y: np.ndarray, q: float, positive: np.ndarray, max_iter: int = 40
) -> np.ndarray:
    """log of an upper bound (m,) on the probability that a noisy vote misses the side in ``positive``.

    For side 1: P(a'Y < 1/2) <= min_{t >= 0} exp(t/2) prod_i E exp(-t a_i Y_i); side 0 mirrors it. The
    exponent is convex in t; a bracketed Newton iteration finds its minimum. Any t >= 0 gives a valid
    bound, so stopping early costs tightness, never soundness.
    """
    sign = np.where(positive, 1.0, -1.0)[:, None]
    signed = sign * a
    chance = np.where(y > 0.5, 1.0 - q, q)  # P(Y_i = 1)
    offset, floor = logit(chance), np.log1p(-chance).sum()

    def slope(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # mean of Y_i under the law tilted by exp(-t a_i Y_i): the derivative of its log moment
        share = expit(offset - t[:, None] * signed)
        first = 0.5 * sign[:, 0] - (signed * share).sum(axis=1)
        return first, (signed**2 * share * (1.0 - share)).sum(axis=1)

    low = np.zeros(len(a))
    high = np.ones(len(a))
    for _ in range(max_iter):
        # the exponent is convex: its minimum is below the first place where it rises
        rising = slope(high)[0] >= 0
        if rising.all():
            break
        high = np.where(rising, high, 2.0 * high)
    t = low.copy()
    for _ in range(max_iter):
        first, second = slope(t)
        low = np.where(first < 0, t, low)
        high = np.where(first >= 0, np.minimum(t, high), high)
        step = t - first / np.maximum(second, 1e-300)
        # a Newton step that leaves the bracket is replaced by its middle
        inside = (step > low) & (step < high)
        t = np.where(inside, step, 0.5 * (low + high))
    exponents = offset - t[:, None] * signed
    log_bound = 0.5 * sign[:, 0] * t + np.logaddexp(0.0, exponents).sum(axis=1) + floor
    # The terms cancel; what their rounding could hide is added back, so that the bound stays one.
    log_bound += 1e-13 * t * (0.5 + np.abs(a).sum(axis=1))
    return np.minimum(log_bound, 0.0)


def certified_flips(log_failure: np.ndarray, q: float, n: int) -> np.ndarray:
    """Label flips (m,), at most n, that cannot turn a noisy majority that fails with probability <= exp(log_failure).

    -1 where that probability is not below 1/2. After r flips the noisy labels differ in law only on r rows. By
    Neyman and Pearson the worst vote of a given failure probability fails where most of the r noisy labels equal
    the flipped ones; it still wins if that set has less than half of the new mass. This is tight for what is
    known of the vote, and never below the closed form of the paper,
    r = floor(log(4 p (1 - p)) / (2 (1 - 2 q) log(q / (1 - q)))) with p = 1 - failure.
    """
    # Rounding must never round a certificate up: the failure is taken a hair larger than it is.
    reached = (log_failure[:, None] + 1e-9 < _log_turning_mass(np.arange(1, n + 1), q)[None]).sum(axis=1)
    return np.where(log_failure < np.log(0.5), reached, -1)


def _log_turning_mass(r: np.ndarray, q: float) -> np.ndarray:
    """log of the smallest failure probability (len(r),) with which some vote is turned by r flips.

    D, the number of the r noisy labels that equal the flipped ones, is Bin(r, q) before and Bin(r, 1 - q) after
    the flips. The set that holds half of the mass after is {D > c} and a share of {D = c}; this is its mass before.
    """
    c = binom.median(r, 1.0 - q)
    above, at = binom.sf(c, r, 1.0 - q), binom.pmf(c, r, 1.0 - q)
    share = np.clip((0.5 - above) / at, np.finfo(float).tiny, 1.0)
    return np.logaddexp(binom.logsf(c, r, q), np.log(share) + binom.logpmf(c, r, q))


def flips_to_cross(a: np.ndarray, y: np.ndarray, q: float, margin: np.ndarray) -> np.ndarray:
    """Flips (m,) that the mean vote E[a'Y] survives, exactly: the best attack takes the largest steps first.

    ``margin`` (m,) is E[a'Y] - 1/2. Flipping label i moves it by (1 - 2 q) a_i (1 - 2 y_i).
    """
    moves = (1.0 - 2.0 * q) * a * (1.0 - 2.0 * y)
    against = np.where((margin >= 0)[:, None], -moves, moves)
    # the attacker flips the labels with the largest pull first
    gains = np.cumsum(-np.sort(-np.maximum(against, 0.0), axis=1), axis=1)
    return (gains < np.abs(margin)[:, None] * (1.0 - 1e-12)).sum(axis=1)
