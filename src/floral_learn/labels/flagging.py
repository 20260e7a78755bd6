"""Which labels to flag, given held-out probabilities: arrays in, mask out; shared by ``audit`` and ``label_issues``.

The *contradiction* of a label is how much more probable the best other class is than the given one, in [-1, 1]. Right
labels pile up near -1 and thin out towards 1. Wrong labels form a group of their own on the far side, with a valley
between the two heaps, because a wrong label stands where the model is as sure of the other class as it is elsewhere.
Where classes merely overlap, contradictions thin out without a second heap: nothing there says that labels are wrong,
and only the few strongest contradictions are flagged.

Before the heaps are looked at, the average direction of the errors is undone: rows that a model is most sure of show
how often a class c appears as c' (a row of the transition matrix T; Patrini et al., 2017), and p T^-1 is what the model
would say of the labels without such errors. That moves the border between classes back when one class lost its labels
to another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax

# Chosen on scikit-learn's data sets and made-up clouds (docs/results/audit.md), judged on others.
WIDTH = 0.05  # of the kernel that smooths the histogram of contradictions
WINDOW = 0.2  # heaps are compared by the rows within such a window
HIGHER = 2.0  # times the rows of the valley that a second heap must have
HIGHER_SHARES, BLURRED = 1.25, 1.25  # the same among neighbours' shares, whose counts blur heaps; and their factor
DOUBTFUL, CLEAR = 1.0, 2.5  # standard errors above the valley: from where a heap counts, and where it counts in full
ENOUGH_OF_A_HEAP = 2 / 3  # to say that labels stand apart
INTO_THE_HEAP = 0.4  # the cut lies this far from the valley to the heap's top
STRONG, LOWEST = 0.4, 0.1  # without a second heap the cut lies between these
NEARLY_ALL = (0.7, 0.9)  # gains between which a model becomes right nearly everywhere
STRICTER = 0.2  # more is asked where the model is right nearly everywhere: a clean table has odd rows, too
SUREST, LEAST_SURE = 0.05, 20  # share and least number of the rows that a model is surest of
RECOGNISED = 0.5  # typical probability with which a class must be named; else its labels cannot be judged
KEPT = 0.1  # of the probabilities when the errors' direction is undone
COUNTED = 0.5  # of the errors among the surest rows: overlap explains the rest as well
ENOUGH_GAIN = 0.1  # below, errors among the surest rows count less
LEAST_GAIN, LEAST_NATS = 0.02, float(np.log(1000))  # of held-out log loss over the class shares: relative, and in all
SLOPE = 0.2  # contradiction above the cut that takes the suspicion from 0.5 to 0.73
_GRID = np.linspace(-1, 1, 201)


@dataclass(frozen=True)
class Flags:
    """What held-out probabilities say about given labels.

    Attributes
    ----------
    mask : bool ndarray of shape (n,)
        Labels to look at.
    suspicion : ndarray of shape (n,)
        A fine scale in [0, 1] that follows the contradiction; flagged labels are those of at least 0.5.
    contradiction : ndarray of shape (n,)
        Best other class minus given class, after the errors' direction is undone, in [-1, 1].
    suggested : int ndarray of shape (n,)
        The most probable other class.
    gain : float
        Share of the class shares' log loss that the held-out predictions save.
    informative : bool
        Whether the predictions are better than the class shares; if not, nothing is flagged.
    apart : bool
        Whether contradicted labels form a group of their own; if not, classes overlap or hardly any label is wrong.
    """

    mask: np.ndarray
    suspicion: np.ndarray
    contradiction: np.ndarray
    suggested: np.ndarray
    gain: float
    informative: bool
    apart: bool


def flag(
    probabilities: np.ndarray,
    labels: np.ndarray,
    *,
    shares: np.ndarray | None = None,
    trusted: np.ndarray | None = None,
) -> Flags:
    """Find labels that held-out probabilities contradict.

    Parameters
    ----------
    probabilities : ndarray of shape (n, M)
        Of each class, from a model that did not see the row's own label, on the labels' own scale (`temper`).
    labels : int ndarray of shape (n,)
        Given class numbers.
    shares : ndarray of shape (n, M), optional
        Shares of the labels among each row's nearest rows. Machines trained to separate classes are surer than the
        labels around a row warrant, so that overlap can look like a second heap: it must show in the shares, too.
    trusted : bool ndarray of shape (n,), optional
        Labels known to be right: never flagged.

    Returns
    -------
    Flags
        Mask, suspicion and what they rest on.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.labels.flagging import flag
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> p = np.clip(np.where(y == 1, 0.9, 0.1) + rng.normal(0, 0.05, 500), 0.01, 0.99)
    >>> given = np.where(np.arange(500) < 40, 1 - y, y)
    >>> found = flag(np.column_stack([1 - p, p]), given)
    >>> found.apart, int(found.mask.sum())
    (True, 40)
    """
    free = np.ones(len(labels), dtype=bool) if trusted is None else ~trusted
    gain, nats = gain_over_shares(probabilities, labels)
    informative = gain >= LEAST_GAIN and nats >= LEAST_NATS
    undone = undo_direction(probabilities)
    plain, tilted = contradiction(probabilities, labels), contradiction(undone, labels)
    # Undoing stretches the scale, which can pile up what merely overlaps: the heap must show before it, too.
    begin, clear = second_heap(tilted[free])
    clear = min(clear, second_heap(plain[free])[1])
    if shares is not None:
        clear = min(clear, BLURRED * second_heap(contradiction(shares, labels)[free], HIGHER_SHARES)[1])
    heap = float(np.clip((clear - DOUBTFUL) / (CLEAR - DOUBTFUL), 0, 1))
    # The surest rows of a model that knows next to nothing are not sure.
    known = float(np.clip(gain / ENOUGH_GAIN, 0, 1)) ** 2
    floor = COUNTED * known * error_among_surest(probabilities, labels)
    tail = np.quantile(plain[free], 1 - floor)
    strong = STRONG + STRICTER * float(np.clip((gain - NEARLY_ALL[0]) / np.ptp(NEARLY_ALL), 0, 1))
    cut = heap * max(begin, 0.0) + (1 - heap) * float(np.clip(tail, LOWEST, strong))
    found = heap * tilted + (1 - heap) * plain
    unknown = np.isin(labels, unrecognised(probabilities))
    found = np.where(unknown, np.minimum(found, plain - STRONG + cut), found)
    suspicion = np.where(free & informative, expit((found - cut) / SLOPE), 0.0)
    return Flags(
        mask=suspicion >= 0.5,
        suspicion=suspicion,
        contradiction=found,
        suggested=best_other(undone, labels),
        gain=gain,
        informative=informative,
        apart=informative and heap >= ENOUGH_OF_A_HEAP,
    )


def flag_scores(scores: np.ndarray, labels: np.ndarray, *, trusted: np.ndarray | None = None) -> Flags:
    """Flag labels by the decision values of one kernel model, as ``FloralClassifier.label_issues`` does.

    Parameters
    ----------
    scores : ndarray of shape (n, 1) or (n, M)
        Decision values without each row's own term (`floral_learn.labels.suspicion.without_own`): for two classes one
        column, positive for the second class.
    labels : int ndarray of shape (n,)
        Given class numbers.
    trusted : bool ndarray of shape (n,), optional
        Labels known to be right: never flagged.

    Returns
    -------
    Flags
        As from `flag`, the scores taken for the only judge.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.labels.flagging import flag_scores
    >>> y = np.repeat([0, 1], 100)
    >>> scores = np.linspace(0.5, 1.5, 200)[:, None] * (2 * y[:, None] - 1)
    >>> given = np.where(np.isin(np.arange(200), [5, 50, 150]), 1 - y, y)
    >>> np.flatnonzero(flag_scores(scores, given).mask).tolist()
    [5, 50, 150]
    """
    per_class = np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores
    return flag(temper(per_class, labels), labels, trusted=trusted)


def temper(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Turn decision values or log-probabilities (n, M) into probabilities of the given labels, (n, M).

    softmax(a scores + b) with a > 0 and one b per class, by maximum likelihood: where the scores say nothing about the
    labels, a falls to zero and the class shares are left.
    """
    n, m = scores.shape
    rows = np.arange(n)
    scores = scores / max(float(scores.std()), 1e-300)
    given = np.zeros((n, m))
    given[rows, labels] = 1

    def loss(t: np.ndarray) -> tuple[float, np.ndarray]:
        scale = np.exp(t[0])
        logs = log_softmax(scale * scores + t[1:], axis=1)
        slope = np.exp(logs) - given
        ridge = 0.1 * t[1:]  # of no weight beside data; it keeps an absent class finite
        value = -logs[rows, labels].sum() + 0.5 * ridge @ t[1:]
        return value / n, np.append((slope * scores).sum() * scale, slope.sum(axis=0) + ridge) / n

    t = minimize(loss, np.zeros(m + 1), jac=True, method="L-BFGS-B", bounds=[(-12, 6)] + [(-20, 20)] * m).x
    return softmax(np.exp(t[0]) * scores + t[1:], axis=1)


def gain_over_shares(probabilities: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """How much log loss held-out probabilities save over the class shares: as a share of it, and in nats over all rows.

    The nats are the logarithm of a likelihood ratio, less one for each number that `temper` fits: guesses exceed
    log(1000) once in a thousand times, whatever the class shares.
    """
    n, m = probabilities.shape
    shares = np.bincount(labels, minlength=m) / n
    own = np.log(np.maximum(probabilities[np.arange(n), labels], 1e-12))
    base = np.log(shares[labels])
    saved = float((own - base).sum())
    return saved / -float(base.sum()), saved - (m + 1)


def contradiction(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Probability of the best other class minus that of the given one, (n,)."""
    rows = np.arange(len(labels))
    return probabilities[rows, best_other(probabilities, labels)] - probabilities[rows, labels]


def error_among_surest(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Share of labels that differ from the named class among the rows that the model is surest of, less its error.

    Where classes overlap, this share falls to nothing as the model gets surer; errors that hit rows at random stay.
    """
    named = probabilities.argmax(axis=1)
    share = variance = 0.0
    for c in np.unique(named):
        at = np.flatnonzero(named == c)
        few = min(len(at), max(LEAST_SURE, int(SUREST * len(at))))
        top = at[np.argsort(-probabilities[at, c], kind="stable")[:few]]
        wrong = (labels[top] != c).mean()
        weight = len(at) / len(named)
        share += weight * wrong
        variance += weight**2 * wrong * (1 - wrong) / few
    return max(0.0, float(share - np.sqrt(variance)))


def unrecognised(probabilities: np.ndarray) -> np.ndarray:
    """Classes that the model hardly ever names, or never surely: contradicting all their labels says nothing."""
    named = probabilities.argmax(axis=1)
    rows = [probabilities[named == c, c] for c in range(probabilities.shape[1])]
    return np.array([c for c, sure in enumerate(rows) if len(sure) < 5 or np.median(sure) < RECOGNISED], dtype=int)


def best_other(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The most probable class other than the given one, (n,)."""
    others = probabilities.copy()
    others[np.arange(len(labels)), labels] = -np.inf
    return others.argmax(axis=1)


def undo_direction(probabilities: np.ndarray) -> np.ndarray:
    """p T^-1, clipped and normalised, T's rows being the mean probabilities where the model is surest, (n, M)."""
    m = probabilities.shape[1]
    named = probabilities.argmax(axis=1)
    surest = np.full(m, np.nan)
    means = np.zeros((m, m))
    counts = np.zeros(m)
    for c in range(m):
        rows = probabilities[named == c]
        if len(rows):
            rows = rows[rows[:, c] >= np.median(rows[:, c])]
            means[c], counts[c], surest[c] = rows.mean(axis=0), len(rows), rows[:, c].mean()
    typical = float(np.nanmean(surest))
    usual = np.full((m, m), (1 - typical) / max(m - 1, 1))
    np.fill_diagonal(usual, typical)
    # A class with few sure rows is taken to be as every other one: ten rows weigh as much as what is usual.
    weight = (counts / (counts + 10))[:, None]
    transition = weight * means + (1 - weight) * usual
    if np.linalg.cond(transition) > 100:
        return probabilities
    undone = np.clip(np.linalg.solve(transition.T, probabilities.T).T, 1e-3, None)
    # A part of what was there keeps the ranking of rows that both find certain.
    return (1 - KEPT) * undone / undone.sum(axis=1, keepdims=True) + KEPT * probabilities


def second_heap(values: np.ndarray, higher: float = HIGHER) -> tuple[float, float]:
    """Where the heap of contradicted labels begins, and how clearly it stands out (0: not at all), in standard errors.

    The heap is where the smoothed histogram of `values`, to the right of its main top, rises most clearly above its
    lowest point so far.
    """
    density = _smooth(values)
    main = int(density[_GRID <= 0].argmax())
    grid, count = _GRID[main:], density[main:] * WINDOW / (_GRID[1] - _GRID[0])
    if grid[0] > -0.1:  # one heap around zero: the model is sure of nothing
        return 1.0, 0.0
    lowest = np.minimum.accumulate(count)
    valley = np.maximum.accumulate(np.where(count <= lowest, np.arange(len(grid)), 0))
    rise = (count - lowest) / np.sqrt(count + lowest + 1)
    rise[(grid <= 0.05) | (count < higher * lowest)] = 0
    top = int(rise.argmax())
    return float(grid[valley[top]] + INTO_THE_HEAP * (grid[top] - grid[valley[top]])), float(rise[top])


def _smooth(values: np.ndarray) -> np.ndarray:
    """Rows per grid step, smoothed by a Gaussian kernel, mirrored at both ends."""
    step = _GRID[1] - _GRID[0]
    edges = np.append(_GRID - step / 2, 1 + step / 2)
    counts = np.histogram(np.clip(values, -1, 1), edges)[0].astype(float)
    kernel = np.exp(-0.5 * (np.arange(-100, 101) * step / WIDTH) ** 2)
    mirrored = np.concatenate([counts[:0:-1], counts, counts[-2::-1]])
    smooth = np.convolve(mirrored, kernel / kernel.sum(), mode="same")
    return smooth[len(_GRID) - 1 : 2 * len(_GRID) - 1]
