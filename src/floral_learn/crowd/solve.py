"""Cliques first, then several starts of the EM; the one that explains left-out votes best is kept."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from floral_learn.labels.votes import Votes

from .alike import regions_of
from .camps import SETTLED, camp_start, gold_evidence, outvoted, weigh_camps
from .cliques import Cliques, find_cliques, once_per_clique
from .em import LARGE, ROUNDS, State, run
from .features import OutOfFold

CLOSE = 0.01  # starts whose left-out votes differ by less than 1 % in likelihood cannot be told apart


@dataclass(frozen=True)
class Solution:
    """The chosen state, and how sure the choice is."""

    state: State
    votes: Votes  # with the weights that were used
    start: str
    scores: dict[str, float]  # per start, see `State.score`
    contested: np.ndarray  # (n,) items on which another start, nearly as likely, says something else
    cliques: Cliques
    view: int | None  # which representation of the items was chosen
    confirmed: Cliques  # those of the cliques that the final posterior holds to be linked, too
    decided: np.ndarray  # (n,) False where two camps contradict each other and neither is clearly larger
    region: np.ndarray | None = None  # (n,) which of a few regions of the features an item lies in


def majority(votes: Votes) -> np.ndarray:
    """Smoothed shares of the votes, (n, K)."""
    share = votes.shares + 0.5 / len(votes.classes)
    return share / share.sum(axis=1, keepdims=True)


def solve(
    votes: Votes,
    views: list[np.ndarray] | None,
    *,
    rng: np.random.Generator,
    gold: np.ndarray | None = None,
) -> Solution:
    """Find the truth behind `votes`, with features `views` of the items where there are any.

    Cliques are looked for after two rounds: later the posterior may have come to believe them.
    """
    features = None if views is None else OutOfFold.split(views, rng)
    glance = run(votes, majority(votes), features, gold=gold, rng=rng, rounds=2)
    cliques = find_cliques(votes, glance, rng)
    if cliques.groups:
        votes = once_per_clique(votes, cliques)
    first = majority(votes)
    rounds = ROUNDS if len(votes) <= LARGE else ROUNDS // 2
    # Votes alone stay in the race: features that say nothing should not be listened to.
    states = {"votes": run(votes, first, None, gold=gold, rng=rng, rounds=rounds)}
    if features is not None:
        starts = {
            "votes first": states["votes"].posterior,
            "features first": np.exp(features.log_probability(first)),
        }
        if len(votes) <= LARGE:
            starts["majority"] = first
        states |= {
            name: run(votes, start, features, gold=gold, rng=rng, rounds=rounds) for name, start in starts.items()
        }
    region = None if views is None else regions_of(views[0], int(rng.integers(2**31 - 1)))
    name = max(states, key=lambda name: states[name].score)
    decided = np.ones(len(votes.items), dtype=bool)
    dissent = camp_start(votes, states[name], region)
    if dissent is not None:
        opinion = features if states[name].log_classifier is not None else None
        second = run(votes, dissent, opinion, gold=gold, rng=rng, rounds=rounds)
        read = states[name]
        if outvoted(votes, read, second, gold):
            name, states["dissenters"], read, second = "dissenters", second, second, read
        camps = weigh_camps(votes, read, second, region, gold)
        decided = camps.decided
        states[name] = replace(read, posterior=camps.posterior)
    view = None if features is None else features.chosen or 0
    scores = {key: state.score for key, state in states.items()}
    confirmed = cliques.among(find_cliques(votes, states[name], rng), len(votes.annotators))
    return Solution(
        states[name],
        votes,
        name,
        scores,
        _contested(states, name, votes, gold),
        cliques,
        view,
        confirmed,
        decided,
        region,
    )


def _contested(states: dict[str, State], name: str, votes: Votes, gold: np.ndarray | None) -> np.ndarray:
    """Items on which another state, nearly as likely and not ruled out by known answers, says something else."""
    chosen = states[name]
    said = chosen.posterior.argmax(axis=1)
    contested = np.zeros(len(said), dtype=bool)
    fit = gold_evidence(votes, chosen, gold)
    for state in states.values():
        close = state is not chosen and chosen.score - state.score < CLOSE
        if close and fit - gold_evidence(votes, state, gold) < SETTLED:
            contested |= state.posterior.argmax(axis=1) != said
    return contested
