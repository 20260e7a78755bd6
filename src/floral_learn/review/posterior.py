"""The probability that each given label is wrong, given the answers so far.

A label is wrong by itself, or because it lies in a region whose labels were flipped:

    P(label i is wrong) = (1 - r_i) q_i + r_i (1 - q_i)
    logit q_i = b + a s_i + u_i           s_i: held-out log-odds against the label; u_i: what its group adds
    logit r_i = c + f(x_i, z_i)           f: a Gaussian process over rows x_i and given labels z_i

A stray wrong label among others that contradict it says nothing about its region (q is large there); a wrong label
that all its neighbours agree with says much. How wide regions are, how they tie given labels, on what they lie, and a
and b are not chosen: a small grid of components, some of them without regions, is averaged by how well each explains
the answers (`infer`). Expectation propagation on the answered rows; a row costs one kernel value per answer.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from floral_learn.labels.rows import Rows
from floral_learn.review.expectation_propagation import Sites, averaged_sigmoid, propagate, sigmoid

# Priors: beliefs before any answer, which answers average out or overrule. "Chosen" is what was no worse than other
# values on development data: CIFAR-10N, cats and dogs, youtube and music.

# (b, a) of logit q = b + a s: hardly any label wrong by itself; some, where contradicted; many, where contradicted;
# prior
OWN = ((-4.0, 0.5), (-2.5, 1.0), (-1.5, 2.0), (-0.7, 4.0))
# kinds of regions: which labels they tie, on what they lie, and how narrow they are; prior. On rows in squared
# distances at gamma="scale"; on scores, which run from -2 to 2. An answer says what other wrong labels should have been
# as far as a region of the kind "class" reaches.
REGIONS = (
    ("given", "rows", 0.2),
    ("given", "rows", 1.5),
    ("class", "rows", 0.3),
    ("given", "scores", 1.0),
    ("any", "scores", 1.0),
)
# mean and standard deviation of logit r where there are regions; where there are none, it is one deviation lower; prior
CENTRE, HEIGHT = -1.0, 3.0
# how fast belief falls in a hypothesis by which more than half of the labels are wrong; prior
MAJORITY = 60.0
# rows that stand for all, and candidates for a question; more are only slower
SAMPLE = 200
NEGLIGIBLE = 1e-3  # weight below which a hypothesis is not carried on
# standard deviation of log-odds: of a group's effect, and of how far the model is off; prior
SPREAD = 1.5


@dataclass(frozen=True)
class Components:
    """Hypotheses, one entry of each array for each; `field` numbers the kinds of regions, -1 where there are none.

    `base`, `slope` and `centre` are b, a and c above. Before any answer all weigh alike.
    """

    field: np.ndarray
    base: np.ndarray
    slope: np.ndarray
    centre: np.ndarray

    def __len__(self) -> int:
        return len(self.field)

    @property
    def regional(self) -> np.ndarray:
        """Which of them have regions."""
        return self.field >= 0

    def only(self, which: np.ndarray) -> Components:
        """Some of them."""
        return Components(*(getattr(self, part.name)[which] for part in fields(self)))


def default_components() -> Components:
    """The grid that is averaged over: kinds of log-odds, each with every kind of regions and without."""
    kinds = np.arange(-1, len(REGIONS))
    field, own = np.tile(kinds, len(OWN)), np.repeat(np.array(OWN), len(kinds), axis=0)
    return Components(field, own[:, 0], own[:, 1], CENTRE - np.where(field >= 0, 0.0, HEIGHT))


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
    shift: np.ndarray

    def own(self, components: Components, at: np.ndarray) -> np.ndarray:
        """q: P(wrong) of the labels at `at` where nothing was flipped, (components, len(at))."""
        return sigmoid(components.base[:, None] + components.slope[:, None] * self.against[at] + self.shift[at])

    def covariances(self, components: Components, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Prior covariances of f, (components, len(left), len(right)): one kernel per kind of regions.

        "given" ties rows of one given label: [z = z']. "any" ties all. "class" is a region in which the classifier that
        the labels teach is off: [z = z'] - [z != z'] / (M - 1). Distances are those of rows times gamma, or of scores.
        """
        same = self.codes[left][:, None] == self.codes[right][None, :]
        along = (self.scores[left][:, None] - self.scores[right][None, :]) ** 2
        apart = {"rows": self.rows.distances(left, right), "scores": along}
        by_class = np.where(same, 1.0, -1.0 / (self.n_classes - 1))
        ties = {"given": same.astype(float), "class": by_class, "any": 1.0}
        # the last one is that of no regions
        kernels = np.zeros((len(REGIONS) + 1, *same.shape))
        for kind in np.unique(components.field[components.regional]):
            tie, on, width = REGIONS[kind]
            kernels[kind] = HEIGHT**2 * np.exp(-width * apart[on]) * ties[tie]
        return kernels[components.field]


@dataclass(frozen=True)
class Evidence:
    """The answers as likelihoods: P(answers about row ``at[k]``) if its label is right, and if it is wrong."""

    at: np.ndarray
    right: np.ndarray
    wrong: np.ndarray


@dataclass(frozen=True)
class Moments:
    """Rows `at` in a posterior: mean and variance of logit r (components, k), and `half` (components, k, m).

    The posterior covariance of two sets of rows is the prior one less the product of their halves.
    """

    at: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    half: np.ndarray

    def only(self, which: np.ndarray) -> Moments:
        """Some of the rows."""
        return Moments(self.at[which], self.mean[:, which], self.variance[:, which], self.half[:, which])


@dataclass(frozen=True)
class Posterior:
    """The components' Gaussian approximations of logit r, and their weights, which sum to one.

    `evidence` is the log probability of the answers, averaged over components.
    """

    problem: Problem
    components: Components
    at: np.ndarray
    sites: Sites
    weights: np.ndarray
    evidence: float = 0.0

    @property
    def regions_chance(self) -> float:
        """P(labels were flipped in regions), given the answers, had the odds been even before them."""
        have = float(self.weights[self.components.regional].sum())
        return have / (have + len(REGIONS) * (1 - have))

    def own(self, at: np.ndarray) -> np.ndarray:
        """q by component, (components, len(at))."""
        return self.problem.own(self.components, at)

    def moments(self, at: np.ndarray) -> Moments:
        """The moments of logit r at the rows `at`, and what their covariances with other rows need."""
        cross = self.problem.covariances(self.components, at, self.at)
        half = np.matmul(cross, self.sites.half)
        mean = self.components.centre[:, None] + np.matmul(cross, self.sites.weights[..., None])[..., 0]
        variance = np.where(self.components.regional, HEIGHT**2, 0.0)[:, None]
        return Moments(at, mean, np.maximum(variance - np.einsum("cnm,cnm->cn", half, half), 1e-9), half)

    def covariance(self, left: Moments, right: Moments) -> np.ndarray:
        """Posterior covariances of logit r, (components, rows of left, rows of right)."""
        prior = self.problem.covariances(self.components, left.at, right.at)
        return prior - np.matmul(left.half, right.half.transpose(0, 2, 1))

    def by_component(self, at: np.ndarray) -> np.ndarray:
        """P(label is wrong) by component, (components, len(at))."""
        seen = self.moments(at)
        return wrong_chance(self.own(at), seen.mean, seen.variance)

    def probability(self, at: np.ndarray) -> np.ndarray:
        """P(label is wrong) for the rows `at`, (len(at),), block by block."""
        step = max(1, self.problem.rows.at_a_time // (len(self.components) * (len(self.at) + 1)))
        blocks = [at[start : start + step] for start in range(0, len(at), step)]
        parts = [self.weights @ self.by_component(block) for block in blocks]
        return np.concatenate(parts) if parts else np.zeros(0)

    def left_out(self) -> np.ndarray:
        """P(label is wrong) of each answered row, (m,), by the other answers alone."""
        own = self.own(self.at)
        return self.weights @ (own + (1 - 2 * own) * self.sites.left_out)

    def only(self, which: np.ndarray) -> Posterior:
        """Some of the components, their weights scaled to sum to one."""
        weights = self.weights[which] / self.weights[which].sum()
        return replace(self, components=self.components.only(which), sites=self.sites.only(which), weights=weights)


def wrong_chance(own: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """P(wrong) = q + (1 - 2 q) E[r], from q and the moments of logit r."""
    return own + (1 - 2 * own) * averaged_sigmoid(mean, variance)


def infer(problem: Problem, evidence: Evidence, components: Components | None = None) -> Posterior:
    """The posterior over all rows, given the answers.

    Components that the first half of many answers has ruled out are not carried on: half the answers cost an eighth.
    """
    components = default_components() if components is None else components
    at, m = evidence.at, len(evidence.at)
    if m > SAMPLE // 10:
        half = Evidence(at[: m // 2], evidence.right[: m // 2], evidence.wrong[: m // 2])
        first = infer(problem, half, components)
        likely = first.weights >= NEGLIGIBLE
        # regions may come back
        likely[np.argmax(np.where(first.components.regional, first.weights, -1.0))] = True
        components = first.components.only(np.flatnonzero(likely))
    own = problem.own(components, at)
    # in a region that was flipped, a label that would have been right by itself is wrong, and the other way round
    sites = propagate(
        problem.covariances(components, at, at),
        components.centre[:, None],
        plain=own * evidence.wrong + (1 - own) * evidence.right,
        turned=own * evidence.right + (1 - own) * evidence.wrong,
    )
    # Bayes' rule over components
    weights = np.exp(sites.evidence - sites.evidence.max())
    total = float(sites.evidence.max() + np.log(weights.sum()))
    posterior = Posterior(problem, components, at, sites, weights / weights.sum(), total)
    # else a whole class must be among the wrong
    every_class = len(np.unique(problem.codes)) == problem.n_classes
    return _plausible(posterior) if m and every_class else posterior


def _plausible(posterior: Posterior) -> Posterior:
    """Less weight for components by which most labels are wrong: answers on suspicious rows cannot rule this out.

    That more than half of all labels are wrong is not believed without many answers that say so.
    """
    n = len(posterior.problem.codes)
    share = posterior.by_component(np.arange(0, n, max(1, n // SAMPLE))).mean(axis=1)
    weights = posterior.weights * np.exp(-MAJORITY * np.maximum(share - 0.5, 0.0))
    left = float(weights.sum())
    return replace(posterior, weights=weights / left, evidence=posterior.evidence + np.log(left))
