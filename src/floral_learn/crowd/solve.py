"""From votes, and features where there are some, to the truth: an average of readings held against its mirror image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from floral_learn.labels.votes import Votes

from .confusion import Confusions, estimate
from .em import LARGE, run
from .features import OutOfFold
from .mirror import contradicting, fitting_votes, opposing_start, settle
from .readings import (
    STEPS,
    Reading,
    Step,
    average,
    expected_counts,
    fix_known,
    hide_votes,
    judge_reading,
    leave_out,
    majority,
    read,
    shrunk_matrices,
)

# Chosen on LabelMe and rte, with and without liars (benchmarks/crowd.py, how sure):
SHARED = 0.1  # correlation of the mistakes on one task
MISLED = 0.1  # share of the tasks on which the votes say nothing at all, since everybody was misled
MISLED_WITH_FEATURES = 0.06  # a classifier that learned from other tasks is misled less often
DECIDED = 0.75  # probability from which a label is decided
CLOSE = 0.01  # features may foretell hidden votes worse than votes alone by as much: people share mistakes


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
    scores: dict[str, float]  # per reading, mean log-probability of hidden votes
    temperature: float = 1.0  # of the average
    mirror: np.ndarray | None = None  # (n, K) the mirror image where nobody can tell it from the truth
    view: int | None = None  # which representation of the items was chosen
    featured: bool = False  # whether features were listened to

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
    hidden = hide_votes(votes, rng, times=1 if large else 2)
    features = None if views is None else OutOfFold.split(views, rng)
    readings = {
        name: judge_reading(votes, _reader(step, None, gold, 15 if large else 50), hidden, gold)
        for name, step in STEPS.items()
    }
    best = average(list(readings.values()))
    featured = False
    if features is not None:
        starts = {"votes first": best.posterior, "features first": np.exp(features.log_probability(majority(votes)))}
        with_features = {
            name: _with_features(votes, start, features, hidden, gold, rng) for name, start in starts.items()
        }
        together = _better(votes, *with_features.values())
        # Votes can be hidden on tasks with several only. Where these are few, somebody chose them for being hard.
        chosen_tasks = float((votes.per_item > 1.5).mean()) < 0.5
        featured = chosen_tasks or together.score > best.score - CLOSE
        best = together if featured else best
        readings |= with_features
    posterior, mirror, rival = best.posterior, None, None
    start = opposing_start(votes, posterior)
    if start is not None and featured:
        assert features is not None
        mirror = _with_features(votes, start, features, [], gold, rng).posterior
    elif start is not None:
        mirror = average(
            [judge_reading(votes, _reader(step, start, gold, 50), hidden, gold) for step in STEPS.values()]
        ).posterior
    if not featured:
        rival = contradicting(posterior, [readings[name].posterior for name in STEPS])
    posterior, mirror, decided = settle(votes, posterior, mirror, gold, rival)
    held, posterior = posterior, shared_mistakes(votes, posterior, gold, MISLED_WITH_FEATURES if featured else MISLED)
    decided &= posterior.max(axis=1) >= DECIDED
    contested = np.zeros(len(decided), dtype=bool)
    for reading in readings.values():
        if reading.score > best.score - CLOSE:
            contested |= reading.posterior.argmax(axis=1) != posterior.argmax(axis=1)
    confusions = estimate(expected_counts(votes, held))
    return Solution(
        votes,
        posterior,
        held,
        confusions,
        leave_out(votes, held, confusions.matrix, best.temperature, gold),
        decided,
        contested,
        {name: reading.score for name, reading in readings.items()},
        best.temperature,
        mirror,
        None if features is None else features.chosen or 0,
        featured,
    )


def shared_mistakes(votes: Votes, posterior: np.ndarray, gold: np.ndarray | None, misled: float) -> np.ndarray:
    """Posteriors that allow for mistakes which people share, and which hidden votes therefore cannot show.

    Log-probabilities are divided by 1 + (m - 1) * SHARED, m the number of votes on the task: the design effect of m
    answers with correlation SHARED (Kish, 1965). On a share `misled` of the tasks the votes say nothing at all.
    """
    scale = 1 / (1 + np.maximum(votes.per_item - 1, 0) * SHARED)
    allowed = softmax(np.log(np.maximum(posterior, 1e-12)) * scale[:, None], axis=1)
    return fix_known((1 - misled) * allowed + misled / posterior.shape[1], gold)


def _reader(
    step: Step, start: np.ndarray | None, gold: np.ndarray | None, rounds: int
) -> Callable[[Votes], np.ndarray]:
    return lambda votes: read(votes, step, majority(votes) if start is None else start, gold=gold, rounds=rounds)


def _better(votes: Votes, first: Reading, second: Reading) -> Reading:
    """Of two ends of one EM, the one that foretells hidden votes better.

    Hidden votes cannot tell a reading from its mirror image: of two that contradict each other on most tasks, it is the
    one under which more votes come from people who fit it.
    """
    if contradicting(first.posterior, [second.posterior]) is None:
        return max(first, second, key=lambda reading: reading.score)
    return max(first, second, key=lambda reading: fitting_votes(votes, reading.posterior))


def _with_features(
    votes: Votes,
    start: np.ndarray,
    features: OutOfFold,
    hidden: list[tuple[Votes, np.ndarray]],
    gold: np.ndarray | None,
    rng: np.random.Generator,
) -> Reading:
    """The EM with a classifier; its opinion is out of fold, so that it is kept while votes are hidden."""
    state = run(votes, start, features, gold=gold, rng=rng)
    opinion, trust = state.log_classifier, state.trust

    def reader(some: Votes) -> np.ndarray:
        if some is votes:
            return state.posterior
        return read(some, shrunk_matrices, state.posterior, gold=gold, opinion=opinion, trust=trust, rounds=10)

    judged = judge_reading(votes, reader, hidden, gold)
    return Reading(fix_known(state.posterior, gold), judged.score, 1.0)
