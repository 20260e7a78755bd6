"""From votes, and features where there are some, to the truth: a mixture of readings held against its mirror image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from floral_learn.labels.votes import Votes

from .agreement import Agreement, agreement, unexplained
from .confusion import Confusions, estimate
from .features import OutOfFold
from .mirror import opposing_start, settle
from .readings import (
    ROUNDS,
    STEPS,
    Reading,
    Step,
    average,
    expected_counts,
    fix_known,
    hide_votes,
    judge_reading,
    leave_out,
    log_likelihood,
    majority,
    read,
)

# Chosen on LabelMe and simulated crowds over digits, wine and breast cancer (benchmarks/crowd.py, choose):
OPINION = 2.0  # how often the classifier's log-probabilities count beside those of the votes
# Chosen on LabelMe and rte, with and without liars (benchmarks/crowd.py, choose):
MISLED = 0.15  # share of the tasks on which the votes say nothing at all, since everybody was misled
DECIDED = 1 - MISLED  # probability from which a label is decided, and what is promised: with many classes none is surer
REFITS = 3  # times that the classifier learns from what was read
LARGE = 300_000  # for speed: votes from which people are not paired


@dataclass(frozen=True)
class Solution:
    """What is held to be true, and how sure that is."""

    votes: Votes
    posterior: np.ndarray  # (n, K)
    held: np.ndarray  # (n, K) what the votes say, before mistakes that people share were allowed for
    confusions: Confusions
    leave_one_out: np.ndarray  # (V, K): posterior of the voted item without this vote
    decided: np.ndarray  # (n,)
    contested: np.ndarray  # (n,) items on which another reading, nearly as good, says something else
    mirror: np.ndarray | None = None  # (n, K) the mirror image where nobody can tell it from the truth
    view: int | None = None  # which representation of the items was chosen
    featured: bool = False  # whether features were listened to
    agreement: Agreement | None = None  # None where votes are too many to be paired

    @property
    def settled(self) -> bool:
        """False where nobody can tell a reading from its mirror image."""
        return self.mirror is None


def solve(
    votes: Votes,
    views: list[np.ndarray] | None,
    *,
    rng: np.random.Generator,
    gold: np.ndarray | None = None,
) -> Solution:
    """Find the truth behind `votes`, with features `views` of the items where there are any."""
    large = len(votes) > LARGE
    features = None if views is None else OutOfFold.split(views, rng)
    given, pairs = votes, None
    if not large:
        first = np.mean([_reader(step, None, gold)(votes) for step in STEPS.values()], axis=0)
        pairs = agreement(votes, first, estimate(expected_counts(votes, first)).matrix)
        votes = pairs.counted_once(votes)
    hidden = hide_votes(votes, rng)

    def alone(start: np.ndarray | None, hidden: list[tuple[Votes, np.ndarray]]) -> list[Reading]:
        return [judge_reading(votes, _reader(step, start, gold), hidden, gold) for step in STEPS.values()]

    def with_features(start: np.ndarray, hidden: list[tuple[Votes, np.ndarray]]) -> list[Reading]:
        assert features is not None
        return _with_features(votes, start, features, hidden, gold)

    readings = alone(None, hidden)
    best, featured = average(readings), False
    if features is not None:
        # From what most say, and from what is read of it: liars may have taught the classifier, or led the reading.
        starts = [with_features(start, hidden) for start in (majority(votes), best.posterior)]
        informed = max(starts, key=lambda readings: average(readings).score)
        together = average(informed)
        # Votes can be hidden on tasks with several only. Where these are few, somebody chose them for being hard.
        chosen_tasks = float((votes.per_item > 1.5).mean()) < 0.5
        featured = chosen_tasks or together.score > best.score
        best, readings = (together, informed) if featured else (best, readings)
    start = opposing_start(votes, best.posterior)
    opposed = average((with_features if featured else alone)(start, [])).posterior
    votes = given
    matrix = estimate(expected_counts(votes, best.posterior)).matrix
    without = leave_out(votes, best.posterior, matrix, best.temperature, gold)
    doubtful = 0.0 if large else unexplained(votes, without, matrix)
    held, mirror, sure = settle(votes, best.posterior, opposed, gold, doubtful)
    posterior = allow_for_shared_mistakes(held, gold, MISLED)
    confusions = estimate(expected_counts(votes, held))
    contested = np.zeros(len(held), dtype=bool)
    for reading in readings:
        contested |= reading.posterior.argmax(axis=1) != posterior.argmax(axis=1)
    return Solution(
        votes,
        posterior,
        held,
        confusions,
        leave_out(votes, held, confusions.matrix, best.temperature, gold),
        sure & (posterior.max(axis=1) >= DECIDED),
        contested,
        mirror,
        None if features is None else features.chosen or 0,
        featured,
        pairs,
    )


def allow_for_shared_mistakes(posterior: np.ndarray, gold: np.ndarray | None, misled: float) -> np.ndarray:
    """Posteriors under which the votes say nothing at all on a share `misled` of the tasks.

    People who look at the same task make the same mistake, which hidden votes cannot show.
    """
    return fix_known((1 - misled) * posterior + misled / posterior.shape[1], gold)


def _reader(
    step: Step,
    start: np.ndarray | None,
    gold: np.ndarray | None,
    opinion: np.ndarray | None = None,
    rounds: int = ROUNDS,
) -> Callable[[Votes], np.ndarray]:
    return lambda votes: read(
        votes, step, majority(votes) if start is None else start, gold=gold, opinion=opinion, rounds=rounds
    )


def _with_features(
    votes: Votes,
    start: np.ndarray,
    features: OutOfFold,
    hidden: list[tuple[Votes, np.ndarray]],
    gold: np.ndarray | None,
) -> list[Reading]:
    """Readings with the opinion of a classifier, which learns from them in turn.

    It never judges a task that it learned from, so that its opinion is kept while votes are hidden. Tempered,
    labels that it bears out were less sure than they are right (LabelMe), so these readings are taken as they are.
    """
    told = (votes.per_item > 0) if gold is None else (votes.per_item > 0) | (gold >= 0)
    posterior = fix_known(start, gold)
    likelihood = votes.by_item @ log_likelihood(votes, estimate(expected_counts(votes, posterior)).matrix)
    posterior = np.exp(features.log_probability(posterior * told[:, None], likelihood))
    for _ in range(REFITS):
        opinion = OPINION * features.log_probability(fix_known(posterior, gold) * told[:, None])
        read_once = [read(votes, step, posterior, gold=gold, opinion=opinion) for step in STEPS.values()]
        posterior = np.mean(read_once, axis=0)
    readers = [_reader(step, posterior, gold, opinion, rounds=10) for step in STEPS.values()]
    return [judge_reading(votes, reader, hidden, gold, temperatures=(1.0,)) for reader in readers]
