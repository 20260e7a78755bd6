"""Two camps that contradict each other: which of them lies is not in the votes, unless one is clearly larger.

Where some people dissent from the labels as they are read, time and again, theirs is another reading of the votes. It
is worked out by the same EM, from a start that believes them. Of the two camps the one with more votes to give is
believed. Counting the votes for each label instead would let liars win with (1 - e) / (2 - e) of the votes, e the error
of honest people: all that they say together against the share 1 - e that honest people get right; with two classes
honest mistakes fall on the lie, too, and (1 - 2 e) / (2 - 2 e) would be enough. Where the camps are nearly equal, per
region and per pair of classes, labels are not decided.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from floral_learn.labels.votes import Votes

from .confusion import estimate
from .em import State, counts, loglik

LEAST_VOTES = 3.0  # dissenting votes from which a person is taken to dissent in a class or region
DISSENT = 0.6  # share of a person's votes there
LEAST_CAMP = 0.1  # share of all votes below which no second reading is looked for
NEARLY_EQUAL = 0.8  # of the larger camp's votes, from which the smaller one is not outvoted
LEAST_SECOND = 5.0  # votes for the second reading that a region and pair of classes must have
DEVIATIONS = 2.0  # by which the larger camp must be larger than chance explains
PER_VOTE = 1.0  # log-odds of belonging to a camp, per vote for its reading
AS_GOOD = 0.3  # log-likelihood per contested vote by which a reading may be worse and still be preferred
SECOND = 0.25  # weight of the second reading where nobody can tell: more often than not the larger camp is right
SETTLED = 3.0  # difference of log-likelihoods of the votes on known answers from which they tell the camps apart


@dataclass(frozen=True)
class Camps:
    """Which items are decided, and the reading that could be right elsewhere."""

    decided: np.ndarray  # (n,)
    posterior: np.ndarray  # (n, K), both readings mixed where not decided


def camp_start(votes: Votes, state: State, region: np.ndarray | None) -> np.ndarray | None:
    """(n, K) what the people say who dissent time and again; None where they have too few votes to matter."""
    read = state.posterior.argmax(axis=1)[votes.item]
    dissents = _often(votes, read, len(votes.classes))
    if region is not None:
        dissents |= _often(votes, region[votes.item], int(region.max()) + 1, read)
    if float(votes.weight[dissents].sum()) < LEAST_CAMP * float(votes.weight.sum()):
        return None
    n, k = len(votes.items), len(votes.classes)
    cell = votes.item[dissents] * k + votes.label[dissents]
    said = np.bincount(cell, votes.weight[dissents], minlength=n * k).reshape(n, k)
    there = said.sum(axis=1) > 0
    start = state.posterior.copy()
    start[there] = (said[there] + 0.1 / k) / (said[there].sum(axis=1, keepdims=True) + 0.1)
    return start


def _often(votes: Votes, cell: np.ndarray, n_cells: int, read: np.ndarray | None = None) -> np.ndarray:
    """(V,) mask of votes by people who dissent from what is read in most of their votes in this `cell` (V,)."""
    other = (votes.label != (cell if read is None else read)) * votes.weight
    place = votes.annotator * n_cells + cell
    size = len(votes.annotators) * n_cells
    wrong = np.bincount(place, other, minlength=size)
    total = np.bincount(place, votes.weight, minlength=size)
    return ((wrong >= LEAST_VOTES) & (wrong >= DISSENT * total))[place]


def camp_of(votes: Votes, state: State, second: State) -> np.ndarray:
    """(V,) probability that a vote's author belongs to the second camp, by all votes where the two readings differ."""
    one, other = state.posterior.argmax(axis=1)[votes.item], second.posterior.argmax(axis=1)[votes.item]
    lead = ((votes.label == other).astype(float) - (votes.label == one)) * votes.weight * (one != other)
    return expit(PER_VOTE * np.bincount(votes.annotator, lead, minlength=len(votes.annotators)))[votes.annotator]


def outvoted(votes: Votes, state: State, second: State, gold: np.ndarray | None) -> bool:
    """Whether the second reading is to be preferred: known answers say so, or its camp has more votes to give.

    What counts is who votes, not how often each vote is right: people who err now and then do not lose to fewer people
    who never do. A reading that explains the votes much worse is not preferred without known answers.
    """
    known = gold_evidence(votes, second, gold) - gold_evidence(votes, state, gold)
    if abs(known) > SETTLED:
        return known > 0
    differ = (state.posterior.argmax(axis=1) != second.posterior.argmax(axis=1))[votes.item]
    in_second = camp_of(votes, state, second)[differ]
    larger = float((votes.weight[differ] * (2 * in_second - 1)).sum()) > 0
    contested = float(votes.weight[differ].sum() / votes.weight.sum())
    return larger and second.score > state.score - AS_GOOD * contested


def weigh_camps(votes: Votes, state: State, second: State, region: np.ndarray | None, gold: np.ndarray | None) -> Camps:
    """Compare two readings; `gold` (n,) holds class codes of known answers, -1 elsewhere."""
    first_says, second_says = state.posterior.argmax(axis=1), second.posterior.argmax(axis=1)
    decided = np.ones(len(first_says), dtype=bool)
    if gold_evidence(votes, state, gold) - gold_evidence(votes, second, gold) > SETTLED:
        return Camps(decided, state.posterior)
    k = len(votes.classes)
    in_second = camp_of(votes, state, second) * votes.weight
    per_item = np.bincount(votes.item, in_second, minlength=len(votes.items))
    differ = np.flatnonzero(first_says != second_says)
    where = np.zeros(len(differ), dtype=int) if region is None else region[differ]
    groups = (where * k + first_says[differ]) * k + second_says[differ]
    for group in np.unique(groups):
        items = differ[groups == group]
        for_second = float(per_item[items].sum())
        for_first = float(votes.per_item[items].sum()) - for_second
        clear = for_first - for_second > DEVIATIONS * np.sqrt(for_first + for_second)
        few = for_second < LEAST_SECOND  # an item or two is ordinary doubt, which its probability tells
        decided[items] = few or (clear and for_second < NEARLY_EQUAL * for_first)
    mixed = state.posterior.copy()
    mixed[~decided] = (1 - SECOND) * state.posterior[~decided] + SECOND * second.posterior[~decided]
    # Labels stay as they are read: the second reading is not the better one.
    unsure = np.flatnonzero(~decided & (mixed.argmax(axis=1) != first_says))
    mixed[unsure] = 0.5 * mixed[unsure] + 0.5 * np.eye(k)[first_says[unsure]]
    return Camps(decided, mixed)


def gold_evidence(votes: Votes, state: State, gold: np.ndarray | None) -> float:
    """Log-likelihood of the votes on known answers, by confusion matrices that have not seen these."""
    if gold is None:
        return 0.0
    known = gold[votes.item] >= 0
    unseen = estimate(counts(votes.reweighted(votes.weight * ~known), state.posterior[votes.item]))
    at = np.flatnonzero(known)
    return float(loglik(votes, unseen.matrix)[at, gold[votes.item[at]]].sum())
