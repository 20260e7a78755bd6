"""The probability that each given label is wrong, given the answers so far.

A label is wrong by itself, or because it lies in a region where labels were turned over:

    P(label i is wrong) = (1 - r_i) q_i + r_i (1 - q_i)
    logit q_i = b + a s_i                 s_i: held-out log-odds against the label, before any answer
    logit r_i = c + f(x_i, z_i)           f: a Gaussian process over rows x_i and given labels z_i

A stray wrong label among others that contradict it says nothing about its region (q is large there); a wrong label
that all its neighbours bear out says much. The widths and heights of f, how it ties given labels, and a and b are not
chosen: a small grid of components, one share of it without regions, is averaged by how well each explains the answers
(`infer`). Expectation propagation on the answered rows; a row costs one kernel value per answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from floral_learn.review.propagation import Sites, propagate, sigmoid
from floral_learn.review.rows import Rows

_MANY = 20  # answers from which components are ruled out on the first half
_RULED_OUT = 1e-3
_SAMPLE = 200  # rows on which a component's share of wrong labels is measured
_MOST_WRONG, _MAJORITY = 0.5, 60.0  # belief falls from this share of wrong labels on, and how fast


@dataclass(frozen=True)
class Component:
    """One hypothesis: f has the covariance height^2 exp(-width gamma |x - x'|^2) tie(z, z').

    ``tie`` is "given" (turned-over regions of one given label: [z = z']) or "class" (the classifier that the labels
    teach is off in a region: [z = z'] - [z != z'] / (M - 1)). A height of 0 says that there are no regions; r is then
    the same everywhere. `prior` is the weight before any answer, `view` whose suspicions it goes by. With ``on_line``
    regions are stretches of one of the lines on which the rows lie (`Problem.lines`), and the width counts squared
    distances there; the tie "mirrored" then joins both labels, each seen from its own end of the line.
    """

    tie: str
    width: float
    height: float
    base: float
    slope: float
    centre: float
    prior: float = 1.0
    view: int = 0
    on_line: int | None = None


# (b, a) of the suspicions: hardly any label wrong by itself; some, where contradicted; many, wherever contradicted
_OWN = ((-4.0, 0.5), (-2.5, 1.0), (-1.5, 2.0), (-0.7, 4.0))
_HEIGHT, _CENTRE = 3.0, -1.0
# logit r without regions: labels were turned over nowhere, or anywhere at random, one in ten or one in four
_NO_REGIONS = (-8.0, -2.2, -1.0)
_STRETCHES = (1.0, 6.0)  # on a line from -2 to 2: regions of about a third and an eighth of it


def default_components(lines: int = 0) -> tuple[Component, ...]:
    """The grid that is averaged over: four kinds of suspicion, each with four kinds of regions and without."""
    found = []
    for base, slope in _OWN:
        found += [Component("given", width, _HEIGHT, base, slope, _CENTRE) for width in (0.1, 0.5, 3.0)]
        found += [Component("class", 0.3, _HEIGHT, base, slope, _CENTRE)]
        found += [Component("given", 1.0, 0.0, base, slope, centre, prior=0.5) for centre in _NO_REGIONS]
        for line in range(lines):
            for tie in ("given", "mirrored"):
                found += [Component(tie, width, _HEIGHT, base, slope, _CENTRE, on_line=line) for width in _STRETCHES]
    return tuple(found)


@dataclass(frozen=True)
class Problem:
    """What is known beside the answers: rows, given labels as codes (n,), log-odds against them (views, n).

    The first view is that of judges who were taught the given labels, a second one of judges who were taught the labels
    as they were read before. `shift` (n,) is added to the log-odds of q, for what groups have been found to do. `lines`
    (k, n) are places of the rows on lines, such as classifiers' scores, on which regions may lie, too.
    """

    rows: Rows
    codes: np.ndarray
    n_classes: int
    against: np.ndarray
    shift: np.ndarray | None = None
    lines: np.ndarray | None = None

    @property
    def components(self) -> tuple[Component, ...]:
        """The grid that is averaged over."""
        return default_components(0 if self.lines is None else len(self.lines))

    def own(self, component: Component, at: np.ndarray) -> np.ndarray:
        """q: P(wrong) of the labels at `at` where nothing was turned over."""
        shift = 0.0 if self.shift is None else self.shift[at]
        return sigmoid(component.base + component.slope * self.against[component.view][at] + shift)

    def covariances(self, components: Sequence[Component], left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Prior covariances of f, (components, len(left), len(right)); distances are computed once for all."""
        far = self.rows.distances(left, right)
        same = self.codes[left][:, None] == self.codes[right][None, :]
        apart: dict[tuple[int | None, bool], np.ndarray] = {(None, False): far}
        ends = np.where(self.codes == 0, -1.0, 1.0)  # a line lies between two classes
        for number, line in enumerate(() if self.lines is None else self.lines):
            for mirrored, place in ((False, line), (True, line * ends)):
                apart[number, mirrored] = (place[left][:, None] - place[right][None, :]) ** 2
        ties = {"given": np.where(same, 1.0, 0.0), "class": np.where(same, 1.0, -1.0 / (self.n_classes - 1))}
        ties["mirrored"] = np.ones(same.shape)
        # components differ in their suspicions, too, which do not enter here: each kind of field is computed once
        fields: dict[tuple[object, ...], np.ndarray] = {}
        found = np.zeros((len(components), *far.shape))
        for out, c in zip(found, components, strict=True):
            if c.height > 0:
                kind = (c.on_line, c.width, c.tie, c.height)
                if kind not in fields:
                    fields[kind] = c.height**2 * np.exp(-c.width * apart[c.on_line, c.tie == "mirrored"]) * ties[c.tie]
                out[:] = fields[kind]
        return found

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

    def moments(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of logit r by component, two arrays (components, len(at))."""
        seen = self.seen_from(at)
        return seen.mean, seen.variance

    def covariance(self, left: Seen, right: Seen) -> np.ndarray:
        """Posterior covariances of logit r, (components, rows of left, rows of right)."""
        prior = self.problem.covariances(self.components, left.at, right.at)
        return prior - np.matmul(left.half, right.half.transpose(0, 2, 1))

    def by_component(self, at: np.ndarray) -> np.ndarray:
        """P(label is wrong) by component, (components, len(at))."""
        return turned(self.own(at), *self.moments(at))

    def probability(self, at: np.ndarray) -> np.ndarray:
        """P(label is wrong) for the rows `at`, (len(at),), block by block."""
        return self._blockwise(at, lambda part: self.weights @ self.by_component(part))

    def by_region(self, at: np.ndarray) -> np.ndarray:
        """P(label is wrong because it lies in a region that was turned over), r (1 - q), for the rows `at`."""

        def found(part: np.ndarray) -> np.ndarray:
            mean, variance = self.moments(part)
            return self.weights @ (sigmoid(mean / np.sqrt(1 + np.pi / 8 * variance)) * (1 - self.own(part)))

        return self._blockwise(at, found)

    def _blockwise(self, at: np.ndarray, values: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        step = max(1, self.problem.rows.at_a_time // (len(self.components) * (len(self.at) + 1)))
        parts = [values(at[start : start + step]) for start in range(0, len(at), step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def thinned(self, least: float = 1e-3) -> Posterior:
        """Without the components whose weight is below `least`."""
        kept = self.only(np.flatnonzero(self.weights >= least))
        return replace(kept, weights=kept.weights / kept.weights.sum())

    def only(self, which: np.ndarray) -> Posterior:
        """Some of the components, with the weights that they have."""
        sites = Sites(*(part[which] for part in self.sites.parts()))
        return replace(
            self, components=tuple(self.components[k] for k in which), sites=sites, weights=self.weights[which]
        )


def turned(own: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """P(wrong) from q and the moments of logit r."""
    return own + (1 - 2 * own) * sigmoid(mean / np.sqrt(1 + np.pi / 8 * variance))


def infer(problem: Problem, evidence: Evidence, components: Sequence[Component]) -> Posterior:
    """The posterior over all rows, given the answers.

    Components that the first half of many answers has ruled out are not carried on: half the answers cost an eighth.
    """
    components = tuple(components)
    at, m = evidence.at, len(evidence.at)
    if m > _MANY:
        half = Evidence(at[: m // 2], evidence.right[: m // 2], evidence.wrong[: m // 2])
        components = infer(problem, half, components).thinned(_RULED_OUT).components
    own = np.array([problem.own(c, at) for c in components]).reshape(len(components), m)
    centre = np.array([[c.centre] for c in components])
    sites = propagate(
        problem.covariances(components, at, at),
        centre,
        own * evidence.wrong + (1 - own) * evidence.right,
        own * evidence.right + (1 - own) * evidence.wrong,
    )
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
    share = posterior.by_component(np.arange(0, n, max(1, n // _SAMPLE))).mean(axis=1)
    weights = posterior.weights * np.exp(-_MAJORITY * np.maximum(share - _MOST_WRONG, 0.0))
    left = float(weights.sum())
    return replace(posterior, weights=weights / left, evidence=posterior.evidence + np.log(left))
