"""From votes to beliefs: what everyone's answers say about every row's true class."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from floral_learn.crowd.authors import judge_authors
from floral_learn.review.answers import WORST, learned_errors, likelihoods, start_errors, verdict
from floral_learn.review.groups import group_shifts
from floral_learn.review.posterior import Evidence, Posterior, Problem, infer
from floral_learn.review.suspicion import Judges, suspicion
from floral_learn.review.transitions import class_beliefs

Votes = dict[int, dict[str, int]]
_TRUSTED = 200  # trusted rows that the posterior looks at, at most
_FIRM = 0.97  # how certain the answer is on which everyone agrees
_LOOK_AGAIN = 10  # answers from which judges are trained again, in data of at most so many rows
_LOOK_AGAIN_ROWS = 20_000
SETTLED = 0.8  # share of the likelihood from which an answer tells what a label should have been
_MOST_BY_GROUP = 3.0  # log-odds: what a group is known for must not drown what is known of the row
_SUSPECT = 0.1  # prior probability that one of several reviewers guesses, or lies
_LYING = 0.95  # how often a liar is wrong
SUSPECT_GROUP = 1.0  # log-odds by which a group's labels are wrong more often, from which they are read anew
_SUSPECTS = 4  # reviewers up to whom each is doubted in turn


@dataclass(frozen=True)
class Material:
    """What a review holds beside the answers.

    `odds` (n, M) are the judges' held-out class probabilities under the given labels, `groups` (n,) numbers or None.
    """

    problem: Problem
    judges: Judges
    odds: np.ndarray
    trusted: np.ndarray
    groups: np.ndarray | None

    @property
    def codes(self) -> np.ndarray:
        """Given labels as class numbers, (n,)."""
        return self.problem.codes

    @property
    def n_classes(self) -> int:
        """Number of classes, M."""
        return self.problem.n_classes


def inferred(material: Material, asked: Votes) -> tuple[Posterior, dict[str, float]]:
    """The posterior given all votes, and each reviewer's error rate, learned where there are several reviewers."""
    errors = _errors(material, asked)
    return _with_groups(material, asked, *_evidence(material, asked, errors)), errors


def _errors(material: Material, asked: Votes) -> dict[str, float]:
    """Each reviewer's error rate: averaged over "all mean well", "this one guesses" and "this one lies".

    Two reviewers who contradict each other leave two such readings. Neither is chosen: each counts as far as it
    explains the answers, and as long as both do, what the two disagree on says nothing. A liar's answers are told by
    reading them backwards, but never used so: they count as none.
    """
    start = start_errors(asked)
    if len(start) < 2:
        return start
    readings: list[tuple[str | None, float]] = [(None, 0.0)]
    if len(start) <= _SUSPECTS:
        readings += [(name, rate) for name in start for rate in (WORST, _LYING)]
    rates, log = [], []
    for suspect, rate in readings:
        errors = start if suspect is None else {**start, suspect: rate}
        posterior = _with_groups(material, asked, *_evidence(material, asked, errors))
        learned = learned_errors(asked, _asked_beliefs(material, asked, posterior, errors))
        rates.append(learned if suspect is None else {**learned, suspect: WORST})
        log.append(posterior.evidence + np.log(1 - _SUSPECT if suspect is None else _SUSPECT / len(readings[1:])))
    weights = np.exp(np.array(log) - max(log))
    weights /= weights.sum()
    return {name: float(sum(w * rate[name] for w, rate in zip(weights, rates, strict=True))) for name in start}


def read(material: Material, asked: Votes, posterior: Posterior, errors: dict[str, float]) -> np.ndarray:
    """P(true class) of every row, (n, M), for reading labels.

    With enough answers a second view joins the posterior: that of judges who are taught the labels as they are read.
    They see more than those who were taught the given labels. Questions go by the first view alone: a judge who has
    accepted what is read so far would not ask where that may be wrong.
    """
    evidence, table = _evidence(material, asked, errors)
    every = np.arange(len(material.codes))
    belief = _beliefs(material, asked, posterior.probability(every), table)
    if len(asked) < _LOOK_AGAIN or len(material.codes) > _LOOK_AGAIN_ROWS:
        return belief
    odds = material.judges.odds(belief.argmax(axis=1), material.n_classes)
    against = np.vstack([posterior.problem.against, suspicion(odds, material.codes)])
    second = tuple(replace(c, view=1) for c in posterior.problem.components)
    both = (*posterior.thinned(1e-3).components, *second)
    wide = infer(replace(posterior.problem, against=against), evidence, both)
    return _beliefs(material, asked, wide.probability(every), table)


def borne_out(
    material: Material, asked: Votes, posterior: Posterior, errors: dict[str, float]
) -> tuple[np.ndarray, np.ndarray]:
    """P(true class) of every row, (n, M), by what the answers bear out alone, and by everything.

    That a label is contradicted by its neighbours is the opinion of models which were taught the other labels. To
    correct by it is to train a model on what another one said: it is left out of the first, but for the labels of
    groups that are known to be off. With several classes it is kept: flips go to many classes there, so that most
    labels around a wrong one are right, and corrections by them were measured to help.
    """
    table, every = likelihoods(asked, errors, material.n_classes), np.arange(len(material.codes))
    wrong = posterior.probability(every)
    by_region = wrong if material.n_classes > 2 else posterior.by_region(every)
    shift = posterior.problem.shift
    if shift is not None:
        by_region = np.where(shift > SUSPECT_GROUP, wrong, by_region)
    return _beliefs(material, asked, by_region, table), _beliefs(material, asked, wrong, table)


def _evidence(material: Material, asked: Votes, errors: dict[str, float]) -> tuple[Evidence, np.ndarray]:
    """Votes and trusted rows as likelihoods of "right" and "wrong", and those of the classes, (m, M), by votes."""
    table = likelihoods(asked, errors, material.n_classes)
    at = rows_of(asked)
    each, codes = np.arange(len(at)), material.codes[at]
    # what a wrong label should have been, before the votes: with two classes there is one way only
    others = material.odds[at] + 0.05
    others[each, codes] = 0.0
    others /= others.sum(axis=1, keepdims=True)
    right, wrong = table[each, codes], (table * others).sum(axis=1)
    said = np.flatnonzero(table.min(axis=1, initial=1.0) < 1)  # "not sure" says nothing
    known = np.setdiff1d(np.flatnonzero(material.trusted), at)[:_TRUSTED]
    evidence = Evidence(
        np.concatenate([at[said], known]),
        np.concatenate([right[said], np.ones(len(known))]),
        np.concatenate([wrong[said], np.full(len(known), 1e-3)]),
    )
    return evidence, table


def _with_groups(material: Material, asked: Votes, evidence: Evidence, table: np.ndarray) -> Posterior:
    """The posterior, with what is known of each label's group where labels come from groups.

    First what all labels of a group say of it, by the crowd's model of annotators, then what the answers say beyond
    that. Answers are about suspicious rows, so they speak against a group only as far as they are worse than the
    suspicions were: they are not handed to the crowd's model, which would take them for a fair sample.
    """
    if material.groups is None:
        return infer(material.problem, evidence, material.problem.components)
    known = np.where(material.trusted, material.codes, -1)
    shift = judge_authors(material.codes, material.groups, material.odds, known=known).shift(material.odds)
    problem = replace(material.problem, shift=np.clip(shift, -_MOST_BY_GROUP, _MOST_BY_GROUP))
    posterior = infer(problem, evidence, problem.components)
    chance = np.clip(posterior.weights @ posterior.own(evidence.at), 1e-3, 1 - 1e-3)
    further = group_shifts(material.groups, material.codes, evidence.at, chance, evidence.right, evidence.wrong)
    return infer(replace(problem, shift=problem.shift + further), evidence, problem.components)


def _beliefs(material: Material, asked: Votes, wrong: np.ndarray, table: np.ndarray) -> np.ndarray:
    """P(true class) of all rows, (n, M), from P(wrong): answered rows by their votes, trusted rows as given."""
    every, at, unit = np.arange(len(material.codes)), rows_of(asked), np.eye(material.n_classes)
    belief = class_beliefs(material.problem, material.odds, wrong, every, at, table)
    seen = belief[at] * table  # the posterior has seen the votes through "wrong" only; here they name classes
    belief[at] = seen / seen.sum(axis=1, keepdims=True)
    for row, row_votes, likely in zip(at, asked.values(), table, strict=True):
        code = verdict(row_votes)
        if code is not None and likely[code] >= SETTLED * likely.sum():  # not by someone who has been found out
            belief[row] = _FIRM * unit[code] + (1 - _FIRM) / material.n_classes
    belief[material.trusted] = unit[material.codes[material.trusted]]
    return belief


def _asked_beliefs(material: Material, asked: Votes, posterior: Posterior, errors: dict[str, float]) -> np.ndarray:
    """P(true class) of the asked rows, (m, M), by votes and model, no vote taken for certain."""
    at, table = rows_of(asked), likelihoods(asked, errors, material.n_classes)
    belief = class_beliefs(material.problem, material.odds, posterior.probability(at), at, at, table) * table
    return belief / belief.sum(axis=1, keepdims=True)


def rows_of(asked: Votes) -> np.ndarray:
    """The answered rows, in order of their first answer."""
    return np.fromiter(asked, dtype=np.intp, count=len(asked))
