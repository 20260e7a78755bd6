"""One sentence about a run: who is ahead on poisoned labels, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t

from floral_bench.data_kinds import kind_of
from floral_bench.metrics import sample_deviation
from floral_bench.reporting.results import Results
from floral_bench.split_table import TEST_SIZE

REFERENCE = "SVC()"


@dataclass(frozen=True)
class Verdict:
    """The method with the highest mean accuracy on poisoned labels, beside the one it is held against."""

    winner: str
    accuracy: float
    rival: str
    rival_accuracy: float
    low: float  # 95 % interval of the difference, for the best of `n_methods`; nan for fewer than three replications
    high: float
    n_replications: int
    n_methods: int

    @property
    def clear(self) -> bool:
        """Whether the interval of the difference leaves out zero."""
        return self.low > 0

    def __str__(self) -> str:
        """The sentence."""
        ahead = f"{self.winner} has the highest mean accuracy on poisoned labels, {self.accuracy:.3f}"
        against = f"{self.rival} has {self.rival_accuracy:.3f}"
        if np.isnan(self.low):
            few = "one replication" if self.n_replications == 1 else "two replications"
            return f"{ahead} ({against}); {few} cannot say how sure that is, --reps 5 can."
        how = "clear" if self.clear else f"within the noise of {self.n_replications} replications"
        gain = f"the difference of {self.accuracy - self.rival_accuracy:+.3f} is {how}"
        interval = f"95 % interval {self.low:+.3f} to {self.high:+.3f}, for the best of {self.n_methods}"
        return f"{ahead}; {against}, and {gain} ({interval})."


def verdict(results: Results) -> Verdict | None:
    """Compare the fits in which nothing was chosen with clean labels; None where fewer than two are complete.

    A replication counts as one number per method, its mean over all attacks and poisoned levels, so that methods are
    compared on the same splits. The interval is Student's for the paired differences, at 1 - 0.05 / (methods - 1)
    since the best of several is always ahead of somebody; splits of one table share rows, for which the variance is
    corrected as Nadeau and Bengio (2003) do.
    """
    # who knows the true share of wrong labels, which a user does not, is shown and cannot win
    told = {method.title for method in results.suite.methods if method.told}
    frame = results.frame
    frame = frame[(frame.metric == "accuracy") & (frame.statistic == "final") & (frame.level > 0)]
    frame = frame[~frame.method.isin(told)]
    if not len(frame):
        return None
    counts = frame.pivot_table(index="seed", columns="method", values="value", aggfunc="count")
    means = frame.pivot_table(index="seed", columns="method", values="value", aggfunc="mean")
    means = means.loc[:, (counts == counts.max(axis=None)).all()]
    if means.shape[1] < 2:
        return None
    order = means.mean().sort_values(ascending=False, kind="stable")
    winner = str(order.index[0])
    rival = REFERENCE if REFERENCE in order.index and winner != REFERENCE else str(order.index[1])
    difference = (means[winner] - means[rival]).to_numpy()
    low, high = _interval(difference, means.shape[1] - 1, _shared_rows(results))
    return Verdict(winner, order[winner], rival, order[rival], low, high, len(means), means.shape[1])


def _interval(difference: np.ndarray, n_rivals: int, ratio: float) -> tuple[float, float]:
    n = len(difference)
    if n < 3:
        return float("nan"), float("nan")
    width = t.ppf(1 - 0.05 / n_rivals / 2, n - 1) * sample_deviation(difference) * np.sqrt(1 / n + ratio)
    return float(difference.mean() - width), float(difference.mean() + width)


def _shared_rows(results: Results) -> float:
    """Test rows per training row where replications are splits of one table; 0 where each draws its own rows."""
    return TEST_SIZE / (1 - TEST_SIZE) if kind_of(results.suite.data[0]).one_table else 0.0
