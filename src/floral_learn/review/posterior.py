"""The probability that each given label is wrong, given the answers so far.

    logit P(label i is wrong) = b + a's_i + f(x_i, z_i)

b and a are Gaussian, s_i is the suspicion before any answer, and f is a Gaussian process over rows x_i and given
labels z_i. Its width, its height, and how it ties given labels are not chosen: a small grid of components, one of them
without f, is averaged by how well each explains the answers. Laplace's approximation on the answered rows; a row costs
one kernel value per answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit

from floral_learn.review.rows import Rows

_STEPS = 50
_BLOCK = 4_000_000


@dataclass(frozen=True)
class Component:
    """One hypothesis about f: its kernel is height^2 exp(-width gamma |x - x'|^2) tie(z, z').

    ``tie`` is "given" (poison runs in regions of one given label: [z = z']) or "class" (the classifier that the labels
    teach is off in a region: [z = z'] - [z != z'] / (M - 1)). A height of 0 says that wrong labels do not run in
    regions. `prior` is the weight before any answer.
    """

    tie: str
    width: float
    height: float
    prior: float = 1.0


def default_components() -> tuple[Component, ...]:
    """The grid that is averaged over: two ties, two widths, two heights, and one quarter for "no regions"."""
    grid = [
        Component(tie, width, height) for tie in ("given", "class") for width in (0.3, 1.0) for height in (2.0, 4.0)
    ]
    return (*grid, Component("given", 1.0, 0.0, prior=len(grid) / 3))


@dataclass(frozen=True)
class Problem:
    """What is fixed during a review: rows, given labels as codes (n,), suspicions (n, p), groups (n,) or None."""

    rows: Rows
    codes: np.ndarray
    n_classes: int
    signs: np.ndarray
    groups: np.ndarray | None = None
    base: float = -2.0
    base_sd: float = 1.0
    slope: float = 0.5
    slope_sd: float = 0.5
    group_sd: float = 1.5

    def mean(self, at: np.ndarray | slice) -> np.ndarray:
        """Prior mean of the logits, (len(at),)."""
        return self.base + self.slope * self.signs[at].sum(axis=1)

    def covariance(self, component: Component, left: np.ndarray | slice, right: np.ndarray | slice) -> np.ndarray:
        """Prior covariance of the logits between two sets of rows, (len(left), len(right))."""
        linear = self.base_sd**2 + self.slope_sd**2 * (self.signs[left] @ self.signs[right].T)
        same = self.codes[left][:, None] == self.codes[right][None, :]
        if self.groups is not None:
            group = self.groups[left][:, None] == self.groups[right][None, :]
            linear += self.group_sd**2 * (group & same)
        if component.height == 0:
            return linear
        kernel = np.exp(-component.width * self.rows.distances(left, right))
        apart = 0.0 if component.tie == "given" else -1.0 / (self.n_classes - 1)
        return linear + component.height**2 * kernel * np.where(same, 1.0, apart)

    def variance(self, component: Component, at: np.ndarray | slice) -> np.ndarray:
        """The diagonal of `covariance`, (len(at),)."""
        group = 0.0 if self.groups is None else self.group_sd**2
        linear = self.base_sd**2 + self.slope_sd**2 * (self.signs[at] ** 2).sum(axis=1)
        return linear + group + component.height**2


@dataclass(frozen=True)
class Evidence:
    """The answers as likelihoods: P(answers about row ``at[k]``) if its label is right, and if it is wrong."""

    at: np.ndarray
    right: np.ndarray
    wrong: np.ndarray


@dataclass(frozen=True)
class Fitted:
    """One component's Laplace approximation on the m answered rows."""

    component: Component
    weights: np.ndarray  # K^-1 (mode - mean), (m,)
    root: np.ndarray  # square root of the curvature, (m,)
    factor: np.ndarray  # lower Cholesky factor of I + root K root, (m, m)
    evidence: float  # log marginal likelihood


@dataclass(frozen=True)
class Posterior:
    """The components' approximations and their weights, which sum to one."""

    problem: Problem
    at: np.ndarray
    fits: tuple[Fitted, ...]
    weights: np.ndarray = field(default_factory=lambda: np.ones(1))

    def moments(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the logits by component, two arrays (components, len(at))."""
        means, variances = [], []
        for fit in self.fits:
            mean, variance = self.problem.mean(at), self.problem.variance(fit.component, at)
            if len(self.at):
                cross = self.problem.covariance(fit.component, at, self.at)
                mean = mean + cross @ fit.weights
                half = solve_triangular(fit.factor, (cross * fit.root).T, lower=True)
                variance = np.maximum(variance - (half**2).sum(axis=0), 1e-9)
            means.append(mean)
            variances.append(variance)
        return np.array(means), np.array(variances)

    def probability(self, at: np.ndarray) -> np.ndarray:
        """P(label is wrong) for the rows `at`, (len(at),), block by block."""
        found = np.empty(len(at))
        step = max(1, _BLOCK // (len(self.at) + 1))
        for start in range(0, len(at), step):
            part = at[start : start + step]
            found[start : start + step] = self.weights @ squashed(*self.moments(part))
        return found

    def covariance(self, which: int, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Posterior covariance of the logits between two sets of rows under component `which`."""
        fit = self.fits[which]
        prior = self.problem.covariance(fit.component, left, right)
        if not len(self.at):
            return prior
        first = self.problem.covariance(fit.component, left, self.at) * fit.root
        second = self.problem.covariance(fit.component, right, self.at) * fit.root
        lead = solve_triangular(fit.factor, first.T, lower=True)
        trail = solve_triangular(fit.factor, second.T, lower=True)
        return prior - lead.T @ trail


def squashed(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """E[expit(g)] for Gaussian g, by the usual probit approximation."""
    return expit(mean / np.sqrt(1 + np.pi / 8 * variance))


def infer(problem: Problem, evidence: Evidence, components: Sequence[Component]) -> Posterior:
    """The posterior over the logits of all rows, given the answers."""
    fits = tuple(_laplace(problem, evidence, component) for component in components)
    log = np.array([f.evidence + np.log(f.component.prior) for f in fits])
    weights = np.exp(log - log.max())
    return Posterior(problem, evidence.at, fits, weights / weights.sum())


def _laplace(problem: Problem, evidence: Evidence, component: Component) -> Fitted:
    m = len(evidence.at)
    if m == 0:
        return Fitted(component, np.zeros(0), np.zeros(0), np.zeros((0, 0)), 0.0)
    prior = problem.mean(evidence.at)
    K = problem.covariance(component, evidence.at, evidence.at) + 1e-8 * np.eye(m)
    weights, best = np.zeros(m), -np.inf
    logits = prior.copy()
    for _ in range(_STEPS):
        slope, curvature = _derivatives(logits, evidence)
        root = np.sqrt(curvature)
        factor = cho_factor(np.eye(m) + root[:, None] * K * root, lower=True)
        side = curvature * (logits - prior) + slope
        target = side - root * cho_solve(factor, root * (K @ side))
        step = 1.0
        while True:  # the likelihood of noisy answers is not log-concave: halve until it rises
            trial = weights + step * (target - weights)
            moved = prior + K @ trial
            value = _log_likelihood(moved, evidence) - 0.5 * trial @ (moved - prior)
            if value >= best - 1e-12 or step < 1e-3:
                break
            step /= 2
        done = value - best < 1e-6
        weights, logits, best = trial, moved, value
        if done:
            break
    slope, curvature = _derivatives(logits, evidence)
    root = np.sqrt(curvature)
    lower = np.tril(cho_factor(np.eye(m) + root[:, None] * K * root, lower=True)[0])
    return Fitted(component, weights, root, lower, float(best - np.log(np.diag(lower)).sum()))


def _log_likelihood(logits: np.ndarray, evidence: Evidence) -> float:
    p = expit(logits)
    return float(np.log(evidence.right * (1 - p) + evidence.wrong * p).sum())


def _derivatives(logits: np.ndarray, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """First derivative of the log-likelihood and minus the second, the latter not below zero."""
    p = expit(logits)
    total = evidence.right * (1 - p) + evidence.wrong * p
    posterior = evidence.wrong * p / total
    slope = posterior - p
    curvature = p * (1 - p) - posterior * (1 - posterior)
    return slope, np.maximum(curvature, 1e-6)
