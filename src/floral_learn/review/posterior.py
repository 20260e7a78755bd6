"""The probability that each given label is wrong, given the answers so far.

A label is wrong by itself, or because it lies in a region where labels were turned over:

    P(label i is wrong) = (1 - r_i) q_i + r_i (1 - q_i)
    logit q_i = b + a s_i                 s_i: held-out log-odds against the label, before any answer
    logit r_i = c + f(x_i, z_i)           f: a Gaussian process over rows x_i and given labels z_i

A stray wrong label among others that contradict it says nothing about its region (q is large there); a wrong label
that all its neighbours bear out says much. The widths and heights of f, how it ties given labels, on what its regions
lie, and a and b are not chosen: a small grid of components, one share of it without regions, is averaged by how well
each explains the answers (`infer`). Expectation propagation on the answered rows; a row costs one kernel value per
answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from floral_learn.labels.rows import Rows
from floral_learn.review.expectation_propagation import Sites, averaged_sigmoid, propagate, sigmoid
from floral_learn.review.rules import RULES

_MANY = 20  # how it is solved: answers from which components are ruled out on the first half
SAMPLE = 200  # rows that stand for all; more are only slower
_MAJORITY = 60.0  # how fast belief in a hypothesis falls by which more than half of the labels are wrong; prior


@dataclass(frozen=True)
class Component:
    """One hypothesis: f has the covariance height^2 exp(-width distance^2) tie(z, z').

    ``tie`` is "given" (turned-over regions of one given label: [z = z']), "any" (regions of all labels alike: 1) or
    "class" (the classifier that the labels teach is off in a region: [z = z'] - [z != z'] / (M - 1)). Distances are
    those of rows times gamma, or with ``on_scores`` those of scores (`Problem.scores`): then regions are stretches of
    what a held-out model thinks of the given label. A height of 0 says that there are no regions; r is then the same
    everywhere. `prior` is the weight before any answer.
    """

    tie: str
    width: float
    height: float
    base: float
    slope: float
    centre: float
    prior: float = 1.0
    on_scores: bool = False


def default_components() -> tuple[Component, ...]:
    """The grid that is averaged over: kinds of log-odds, each with kinds of regions and without."""
    grid = []
    for base, slope in RULES.own:
        regions = [("given", width, False) for width in RULES.widths] + [("class", RULES.class_width, False)]
        regions += [(tie, width, True) for tie in ("given", "any") for width in RULES.stretches]
        grid += [
            Component(tie, width, RULES.height, base, slope, RULES.centre, on_scores=on_scores)
            for tie, width, on_scores in regions
        ]
        grid += [Component("given", 1.0, 0.0, base, slope, centre, prior=0.5) for centre in RULES.no_regions]
    return tuple(grid)


@dataclass(frozen=True)
class Problem:
    """What is known beside the answers: rows, given labels as codes (n,), held-out log-odds against them (n,).

    `scores` (n,) are places from -2 to 2 on which regions may lie, too: ranks of what a held-out model thinks of the
    given label. `shift` (n,) is added to the log-odds of q, for what groups are known to do.
    """

    rows: Rows
    codes: np.ndarray
    n_classes: int
    against: np.ndarray
    scores: np.ndarray
    shift: np.ndarray | None = None

    def own(self, component: Component, at: np.ndarray) -> np.ndarray:
        """q: P(wrong) of the labels at `at` where nothing was turned over."""
        shift = 0.0 if self.shift is None else self.shift[at]
        return sigmoid(component.base + component.slope * self.against[at] + shift)

    def covariances(self, components: Sequence[Component], left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Prior covariances of f, (components, len(left), len(right)); distances are computed once for all."""
        same = self.codes[left][:, None] == self.codes[right][None, :]
        along = (self.scores[left][:, None] - self.scores[right][None, :]) ** 2
        apart = {False: self.rows.distances(left, right), True: along}
        ties = {"given": np.where(same, 1.0, 0.0), "class": np.where(same, 1.0, -1.0 / (self.n_classes - 1))}
        # components differ in their log-odds, too, which do not enter here: each kind of field is computed once
        fields: dict[tuple[object, ...], np.ndarray] = {}
        covariance = np.zeros((len(components), *same.shape))
        for out, c in zip(covariance, components, strict=True):
            if c.height > 0:
                kind = (c.on_scores, c.width, c.tie, c.height)
                if kind not in fields:
                    fields[kind] = c.height**2 * np.exp(-c.width * apart[c.on_scores]) * ties.get(c.tie, 1.0)
                out[:] = fields[kind]
        return covariance

    def variances(self, components: Sequence[Component]) -> np.ndarray:
        """Prior variance of f at any row, (components, 1)."""
        return np.array([[c.height**2] for c in components])


@dataclass(frozen=True)
class Evidence:
    """The answers as likelihoods: P(answers about row ``at[k]``) if its label is right, and if it is wrong."""

    at: np.ndarray
    right: np.ndarray
    wrong: np.ndarray


@dataclass(frozen=True)
class Seen:
    """Rows `at` in a posterior: mean and variance of logit r (components, k), and `half` (components, k, m).

    The posterior covariance of two sets of rows is the prior one less the product of their halves.
    """

    at: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    half: np.ndarray

    def only(self, which: np.ndarray) -> Seen:
        """Some of the rows."""
        return Seen(self.at[which], self.mean[:, which], self.variance[:, which], self.half[:, which])

    def of(self, components: np.ndarray) -> Seen:
        """The same rows under some of the components."""
        return Seen(self.at, self.mean[components], self.variance[components], self.half[components])


@dataclass(frozen=True)
class Posterior:
    """The components' Gaussian approximations of logit r, and their weights, which sum to one.

    `evidence` is the log probability of the answers, averaged over components.
    """

    problem: Problem
    components: tuple[Component, ...]
    at: np.ndarray
    sites: Sites
    weights: np.ndarray
    evidence: float = 0.0

    def own(self, at: np.ndarray) -> np.ndarray:
        """q by component, (components, len(at))."""
        return np.array([self.problem.own(c, at) for c in self.components])

    def seen_from(self, at: np.ndarray) -> Seen:
        """The moments of logit r at the rows `at`, and what their covariances with other rows need."""
        mean = np.array([[c.centre] for c in self.components]) + np.zeros(len(at))
        variance = self.problem.variances(self.components) + np.zeros(len(at))
        cross = self.problem.covariances(self.components, at, self.at)
        half = np.matmul(cross, self.sites.half)
        if len(self.at):
            mean = mean + np.matmul(cross, self.sites.weights[..., None])[..., 0]
            variance = variance - np.einsum("cnm,cnm->cn", half, half)
        return Seen(at, mean, np.maximum(variance, 1e-9), half)

    def covariance(self, left: Seen, right: Seen) -> np.ndarray:
        """Posterior covariances of logit r, (components, rows of left, rows of right)."""
        prior = self.problem.covariances(self.components, left.at, right.at)
        return prior - np.matmul(left.half, right.half.transpose(0, 2, 1))

    def by_component(self, at: np.ndarray) -> np.ndarray:
        """P(label is wrong) by component, (components, len(at))."""
        seen = self.seen_from(at)
        return wrong_chance(self.own(at), seen.mean, seen.variance)

    def probability(self, at: np.ndarray) -> np.ndarray:
        """P(label is wrong) for the rows `at`, (len(at),), block by block."""
        step = max(1, self.problem.rows.at_a_time // (len(self.components) * (len(self.at) + 1)))
        parts = [self.weights @ self.by_component(at[start : start + step]) for start in range(0, len(at), step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def left_out(self) -> np.ndarray:
        """P(label is wrong) of each answered row, (m,), by the other answers alone."""
        own = self.own(self.at)
        return self.weights @ (own + (1 - 2 * own) * self.sites.left_out)

    def thinned(self, least: float = 0.01) -> Posterior:
        """Without the components whose weight is below `least`."""
        kept = self.only(np.flatnonzero(self.weights >= least))
        return replace(kept, weights=kept.weights / kept.weights.sum())

    def only(self, which: np.ndarray) -> Posterior:
        """Some of the components, with the weights that they have."""
        components = tuple(self.components[k] for k in which)
        return replace(self, components=components, sites=self.sites.only(which), weights=self.weights[which])


def wrong_chance(own: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """P(wrong) = q + (1 - 2 q) E[r], from q and the moments of logit r."""
    return own + (1 - 2 * own) * averaged_sigmoid(mean, variance)


def infer(problem: Problem, evidence: Evidence, components: Sequence[Component] | None = None) -> Posterior:
    """The posterior over all rows, given the answers.

    Components that the first half of many answers has ruled out are not carried on: half the answers cost an eighth.
    """
    components = default_components() if components is None else tuple(components)
    at, m = evidence.at, len(evidence.at)
    if m > _MANY:
        half = Evidence(at[: m // 2], evidence.right[: m // 2], evidence.wrong[: m // 2])
        components = infer(problem, half, components).thinned(1e-3).components
    own = np.array([problem.own(c, at) for c in components]).reshape(len(components), m)
    centre = np.array([[c.centre] for c in components])
    # where a region was turned over, a label that would have been right by itself is wrong, and the other way round
    sites = propagate(
        problem.covariances(components, at, at),
        centre,
        plain=own * evidence.wrong + (1 - own) * evidence.right,
        turned=own * evidence.right + (1 - own) * evidence.wrong,
    )
    # Bayes' rule over components: prior times marginal likelihood
    log = sites.evidence + np.log([c.prior for c in components])
    weights = np.exp(log - log.max())
    total = float(log.max() + np.log(weights.sum()))
    posterior = Posterior(problem, components, at, sites, weights / weights.sum(), total)
    every_class = len(np.unique(problem.codes)) == problem.n_classes  # else a whole class must be among the wrong
    return _plausible(posterior) if m and every_class else posterior


def _plausible(posterior: Posterior) -> Posterior:
    """Less weight for components by which most labels are wrong: answers about suspicious rows alone cannot deny that.

    That more than half of all labels are wrong is not believed without many answers that say so.
    """
    n = len(posterior.problem.codes)
    share = posterior.by_component(np.arange(0, n, max(1, n // SAMPLE))).mean(axis=1)
    weights = posterior.weights * np.exp(-_MAJORITY * np.maximum(share - 0.5, 0.0))
    left = float(weights.sum())
    return replace(posterior, weights=weights / left, evidence=posterior.evidence + np.log(left))
