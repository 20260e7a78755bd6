"""Readings of votes: three ways to say how people err, and how well each foretells votes that it has not seen.

A reading is an EM over two unknowns, the truth of the items and what each person says when the truth is c. The three
differ in one step, how confusion matrices are estimated from expected counts:

- ``own matrices``: every person has a matrix of one's own (Dawid and Skene, 1979);
- ``knows or guesses``: a person knows the truth, or guesses by a habit that ignores the item (MACE, Hovy et al., 2013);
- ``shrunk matrices``: a matrix is shrunk to the person's accuracy and the pool's pattern (see ``confusion.py``).

No one of them is best on all crowds: ten classes and few votes want few parameters, twelve per cent positives want a
matrix. Which one describes a crowd can be seen without knowing the truth: hide some votes, read the rest, and ask how
probable the hidden votes are. Readings are averaged by that number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from floral_learn.labels.votes import Votes

from .confusion import estimate
from .features import FOLDS

ROUNDS = 50  # of an EM, at most: most end before
TEMPERATURES = (1.0, 0.7, 0.5, 0.35)  # scales of a reading's log-probabilities, of which hidden votes choose one

Step = Callable[[np.ndarray, np.ndarray | None], np.ndarray]


def own_matrices(counts: np.ndarray, previous: np.ndarray | None) -> np.ndarray:
    """Rows of the counts (A, truth, vote) as shares, a tenth of a vote spread over each: Dawid and Skene's M-step."""
    smoothed = counts + 0.1 / counts.shape[1]
    return smoothed / smoothed.sum(axis=2, keepdims=True)


def knows_or_guesses(counts: np.ndarray, previous: np.ndarray | None) -> np.ndarray:
    """P(vote | truth) = know * [vote = truth] + (1 - know) * habit(vote), per person: one EM step of MACE.

    A vote that equals the truth was known with probability 1 - guessed / P(vote | truth), where guessed = (1 - know) *
    habit(vote) is what a row of `previous` has off its diagonal.
    """
    k = counts.shape[1]
    if previous is None:
        previous = np.broadcast_to(0.7 * np.eye(k) + 0.3 / k, counts.shape)
    at = np.arange(k)
    guessed = previous[:, (at + 1) % k, at]
    known = counts[:, at, at] * (1 - guessed / previous[:, at, at])
    by_habit = counts.sum(axis=1) - known + 1.0 / k
    know = (known.sum(axis=1) + 0.5) / (counts.sum(axis=(1, 2)) + 1.0)
    habit = by_habit / by_habit.sum(axis=1, keepdims=True)
    return know[:, None, None] * np.eye(k) + ((1 - know)[:, None] * habit)[:, None, :]


def shrunk_matrices(counts: np.ndarray, previous: np.ndarray | None) -> np.ndarray:
    """Matrices with a prior in three levels, `confusion.estimate`."""
    return estimate(counts).matrix


STEPS: dict[str, Step] = {
    "own matrices": own_matrices,
    "knows or guesses": knows_or_guesses,
    "shrunk matrices": shrunk_matrices,
}


@dataclass(frozen=True)
class Reading:
    """What one reading, or an average of some, holds to be true."""

    posterior: np.ndarray  # (n, K)
    score: float  # mean log-probability of hidden votes
    temperature: float  # by which the log-probabilities were scaled


def majority(votes: Votes) -> np.ndarray:
    """Smoothed shares of the votes, (n, K)."""
    share = votes.shares + 0.5 / len(votes.classes)
    return share / share.sum(axis=1, keepdims=True)


def expected_counts(votes: Votes, posterior: np.ndarray) -> np.ndarray:
    """Expected counts (A, truth, vote), from posteriors (n, K) of the items."""
    n_people, k = len(votes.annotators), len(votes.classes)
    return (votes.by_answer @ posterior[votes.item]).reshape(n_people, k, k).transpose(0, 2, 1)


def habits(votes: Votes) -> np.ndarray:
    """(A, K) shares in which each person gives the classes, one vote more spread over them."""
    k = len(votes.classes)
    given = np.zeros((len(votes.annotators), k))
    np.add.at(given, (votes.annotator, votes.label), votes.weight)
    return (given + 1 / k) / (given.sum(axis=1, keepdims=True) + 1)


def log_likelihood(votes: Votes, matrix: np.ndarray) -> np.ndarray:
    """(V, K) log-probability of each vote if the truth were c, times the vote's weight."""
    k = len(votes.classes)
    table = np.log(np.maximum(matrix, 1e-9)).transpose(0, 2, 1).reshape(-1, k)
    return table[votes.annotator * k + votes.label] * votes.weight[:, None]


def class_shares(posterior: np.ndarray) -> np.ndarray:
    """(K,) log of the shares of the classes, one item more for each."""
    share = posterior.sum(axis=0) + 1.0
    return np.log(share / share.sum())


def fix_known(posterior: np.ndarray, gold: np.ndarray | None) -> np.ndarray:
    """Posteriors with the known answers put in; `gold` (n,) holds class codes, -1 elsewhere."""
    if gold is None:
        return posterior
    known = gold >= 0
    posterior = posterior.copy()
    posterior[known] = np.eye(posterior.shape[1])[gold[known]]
    return posterior


def read(
    votes: Votes,
    step: Step,
    start: np.ndarray,
    *,
    gold: np.ndarray | None = None,
    opinion: np.ndarray | None = None,
    rounds: int = ROUNDS,
) -> np.ndarray:
    """Posterior (n, K) of the truth by EM from `start` (n, K).

    `opinion` (n, K) is what features say, as log-probabilities; without it the shares of the classes stand there.
    """
    posterior, matrix = fix_known(start, gold), None
    unseen = np.bincount(votes.label, minlength=len(votes.classes)) == 0  # free to explain whatever fits nothing else
    for _ in range(rounds):
        matrix = step(expected_counts(votes, posterior), matrix)
        total = votes.by_item @ log_likelihood(votes, matrix)
        total += class_shares(posterior) if opinion is None else opinion
        total[:, unseen] = -np.inf
        new = fix_known(softmax(total, axis=1), gold)
        change = float(np.abs(new - posterior).max(axis=1).mean())
        posterior = new
        if change < 1e-3:
            break
    return posterior


def leave_out(
    votes: Votes, posterior: np.ndarray, matrix: np.ndarray, temperature: float, gold: np.ndarray | None
) -> np.ndarray:
    """(V, K) posterior of the voted item without this vote.

    `posterior` need not be a product over the votes (it may be an average): what the votes on the item say together is
    taken out of it, and what all but one of them say is put in.
    """
    own = temperature * log_likelihood(votes, matrix)
    together = votes.by_item @ own
    by_product = softmax(together + class_shares(posterior), axis=1)
    others = softmax((together + class_shares(posterior))[votes.item] - own, axis=1)
    # Where the product and the posterior differ, so will what is left without one vote.
    found = others * (posterior / np.maximum(by_product, 1e-6))[votes.item].clip(0.1, 10.0)
    found /= found.sum(axis=1, keepdims=True)
    if gold is not None:
        known = np.flatnonzero(gold[votes.item] >= 0)
        found[known] = np.eye(found.shape[1])[gold[votes.item[known]]]
    return found


def hide_votes(votes: Votes, rng: np.random.Generator) -> list[tuple[Votes, np.ndarray]]:
    """Two pairs (the rest, numbers of the hidden votes), a fold each of FOLDS; items with one vote keep it."""
    several = np.flatnonzero(votes.per_item[votes.item] > 1.5)
    if not len(several):
        return []
    fold = rng.permutation(len(several)) % FOLDS
    found = []
    for number in range(2):
        hidden = np.sort(several[fold == number])
        seen = np.ones(len(votes), dtype=bool)
        seen[hidden] = False
        found.append((votes.some(seen), hidden))
    return found


def foretell(votes: Votes, hidden: np.ndarray, rest: Votes, posterior: np.ndarray) -> np.ndarray:
    """Log-probability of the `hidden` votes, by matrices that the `rest` and its `posterior` give."""
    matrix = estimate(expected_counts(rest, posterior)).matrix
    said = matrix[votes.annotator[hidden], :, votes.label[hidden]]
    return np.log(np.maximum((posterior[votes.item[hidden]] * said).sum(axis=1), 1e-9))


def temper(posterior: np.ndarray, temperature: float) -> np.ndarray:
    """Posteriors with log-probabilities scaled by `temperature`."""
    return posterior if temperature == 1 else softmax(temperature * np.log(np.maximum(posterior, 1e-12)), axis=1)


def judge_reading(
    votes: Votes,
    reader: Callable[[Votes], np.ndarray],
    hidden_parts: list[tuple[Votes, np.ndarray]],
    gold: np.ndarray | None = None,
    temperatures: tuple[float, ...] = TEMPERATURES,
) -> Reading:
    """The reading of all votes, at the temperature at which the same reader foretells hidden votes best."""
    posterior = reader(votes)
    total, n_hidden = np.zeros(len(temperatures)), 0
    for rest, hidden in hidden_parts:
        guess = reader(rest)
        total += [foretell(votes, hidden, rest, fix_known(temper(guess, t), gold)).sum() for t in temperatures]
        n_hidden += len(hidden)
    best = int(total.argmax())
    temperature = temperatures[best]
    return Reading(fix_known(temper(posterior, temperature), gold), float(total[best] / max(n_hidden, 1)), temperature)


def average(readings: list[Reading]) -> Reading:
    """The mean of several readings; the weight of each is the geometric mean of its probabilities of hidden votes."""
    weight = softmax([reading.score for reading in readings])
    posterior = sum(w * reading.posterior for w, reading in zip(weight, readings, strict=True))
    score, temperature = (
        float(np.dot(weight, [getattr(reading, name) for reading in readings])) for name in ("score", "temperature")
    )
    return Reading(np.asarray(posterior), score, temperature)
