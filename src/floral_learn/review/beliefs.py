"""What is known after the answers so far: every row's true class, everyone's errors, labels as they should be read.

`ReviewData` holds what does not depend on answers, `Beliefs` what follows from them; each part is computed once. All
numbers that are shown (wrong labels, labels still wrong, what ten more answers bring) come from `Beliefs.wrong`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from floral_learn.review.answers import USUAL, Answers
from floral_learn.review.calibration import Calibration, calibrate
from floral_learn.review.groups import group_shift
from floral_learn.review.posterior import REGIONS, SAMPLE, Evidence, Posterior, Problem, infer


@dataclass(frozen=True)
class ReviewData:
    """What a review computes before any answer.

    Attributes
    ----------
    problem : Problem
        Rows, labels and what held-out models say of them.
    proba : ndarray of shape (n, M)
        Held-out class probabilities under the given labels.
    audited : float
        The audit's estimate of the share of wrong labels.
    before : ndarray
        P(wrong) of some rows before any answer.
    trusted : bool ndarray of shape (n,)
        Rows whose labels are known to be right.
    groups : int ndarray of shape (n,) or None
        Numbers of the labels' sources.
    pool : int ndarray
        Rows among which questions are sought: all, or a sample that stands for them.
    """

    problem: Problem
    proba: np.ndarray
    audited: float
    before: np.ndarray
    trusted: np.ndarray
    groups: np.ndarray | None
    pool: np.ndarray

    @property
    def codes(self) -> np.ndarray:
        """Given labels as class numbers, (n,)."""
        return self.problem.codes


class Beliefs:
    """What the answers so far say about every row; every part is computed once, when it is first asked for."""

    def __init__(self, data: ReviewData, answers: Answers) -> None:
        self.data, self._start = data, answers

    @cached_property
    def answers(self) -> Answers:
        """The answers, with each reviewer's error rate as it is learned where there are several reviewers."""
        return self._start.with_errors(_learned_errors(self.data, self._start))

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior over "this label is wrong"."""
        return _posterior(self.data, self.answers)

    @cached_property
    def free(self) -> np.ndarray:
        """Rows that may still be asked about, (n,) booleans."""
        free = ~self.data.trusted
        free[list(self._start.votes)] = False
        return free

    @cached_property
    def known(self) -> np.ndarray:
        """Rows whose labels are known to be right, (n,) booleans: trusted, or answered by someone who is believed."""
        known = self.data.trusted.copy()
        known[list(self.answers.settled)] = True
        return known

    @cached_property
    def calibration(self) -> Calibration:
        """How far the posterior's log-odds are off: it starts from the audit's estimate and learns from the answers."""
        at = np.flatnonzero(np.isin(self.posterior.at, list(self.answers.settled)))
        return calibrate(self.data.before, self.data.audited, self.posterior.left_out()[at], self.contradicted[at])

    @cached_property
    def label_probability(self) -> np.ndarray:
        """P(true class) of every row, (n, M), by all that is known."""
        return self.of(np.arange(len(self.data.codes)))

    def of(self, rows: np.ndarray) -> np.ndarray:
        """`label_probability` of `rows` in ascending order, (len(rows), M)."""
        wrong = self.calibration.corrected(self.posterior.probability(rows))
        return _true_classes(self.data, self.answers, wrong, rows)

    @cached_property
    def wrong(self) -> np.ndarray:
        """P(the given label is wrong) of every row, (n,)."""
        return 1.0 - self.label_probability[np.arange(len(self.data.codes)), self.data.codes]

    @cached_property
    def contradicted(self) -> np.ndarray:
        """Whether a believed answer contradicts the label, of each row that the posterior has evidence on, (m,)."""
        said, codes = self.answers.settled, self.data.codes
        rows = self.posterior.at.tolist()
        return np.array([said.get(row, codes[row]) != codes[row] for row in rows], dtype=bool)

    @cached_property
    def speaks(self) -> bool:
        """Whether any answer speaks against a label."""
        return bool(self.contradicted.any())

    @cached_property
    def labels(self) -> np.ndarray:
        """Class numbers of the corrected labels, (n,): the likeliest class, once an answer speaks against a label."""
        read = self.label_probability.argmax(axis=1)
        # one class is nothing to learn from: rows that nobody has answered stay as given then, too
        if self.speaks and len(np.unique(read)) > 1:
            return read
        return np.where(self.free, self.data.codes, read)


def _learned_errors(data: ReviewData, answers: Answers) -> dict[str, float]:
    """Each reviewer's error rate: averaged over "all mean well", "this one guesses" and "this one lies".

    Two reviewers who contradict each other leave two such readings: the two who err most are doubted in turn. Neither
    is chosen: each counts as far as it explains the answers, and as long as both do, what the two disagree on says
    nothing. A liar's answers are told by reading them backwards, but never used so: they count as none.
    """
    if len(answers.errors) < 2:
        return dict(answers.errors)
    evidence, mean_well = _read_with(data, answers, answers.errors)
    log, rates = [evidence + np.log(1 - USUAL)], [mean_well]
    for suspect in sorted(mean_well, key=lambda name: mean_well[name])[-2:]:
        for rate in (answers.guessing, 1 - USUAL):
            evidence, learned = _read_with(data, answers, {**answers.errors, suspect: rate})
            log.append(evidence + np.log(USUAL / 4))
            rates.append({**learned, suspect: answers.guessing})
    weights = np.exp(np.array(log) - max(log))
    weights /= weights.sum()
    weighed = list(zip(weights, rates, strict=True))
    return {name: float(sum(weight * rate[name] for weight, rate in weighed)) for name in mean_well}


def _read_with(data: ReviewData, answers: Answers, errors: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """Log evidence of the answers if reviewers err as `errors` says, and the rates that they show then."""
    read = answers.with_errors(errors)
    posterior = _posterior(data, read)
    # P(true class) of the answered rows, no answer taken for certain
    belief = _class_beliefs(data, posterior.probability(read.rows), read.rows, read) * read.likelihood
    return posterior.evidence, read.learned_errors(belief / belief.sum(axis=1, keepdims=True))


def _evidence(data: ReviewData, answers: Answers) -> Evidence:
    """Answers and trusted rows as likelihoods of "right" and "wrong"."""
    at, table = answers.rows, answers.likelihood
    each, codes = np.arange(len(at)), data.codes[at]
    # what a wrong label should have been, before the answers: with two classes there is one way only
    others = data.proba[at] + 0.05
    others[each, codes] = 0.0
    others /= others.sum(axis=1, keepdims=True)
    right, wrong = table[each, codes], (table * others).sum(axis=1)
    # "not sure" says nothing
    said = np.flatnonzero(table.min(axis=1, initial=1.0) < 1)
    trusted = np.setdiff1d(np.flatnonzero(data.trusted), at)
    # not the first ones: rows may be sorted
    trusted = trusted[:: max(1, -(-len(trusted) // SAMPLE))]
    return Evidence(
        np.concatenate([at[said], trusted]),
        np.concatenate([right[said], np.ones(len(trusted))]),
        np.concatenate([wrong[said], np.full(len(trusted), 1e-3)]),
    )


def _posterior(data: ReviewData, answers: Answers) -> Posterior:
    """The posterior, with what is known of each label's group where groups turn out to differ."""
    evidence, problem = _evidence(data, answers), data.problem
    posterior = infer(problem, evidence)
    if data.groups is None:
        return posterior
    usual = float(np.clip(data.audited, 0.01, 0.4))
    shift = group_shift(data.groups, data.codes, data.proba, usual, evidence, posterior.left_out())
    return posterior if shift is None else infer(replace(problem, shift=shift), evidence)


def _true_classes(data: ReviewData, answers: Answers, wrong: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """P(true class) of `rows`, (len(rows), M), from P(wrong): answered rows by their answers, trusted rows as given."""
    M = data.problem.n_classes
    belief, unit = _class_beliefs(data, wrong, rows, answers), np.eye(M)
    # the posterior has seen the answers through "wrong" only; here they name classes
    place = np.searchsorted(rows, answers.rows)
    there = np.flatnonzero(rows[np.minimum(place, len(rows) - 1)] == answers.rows)
    seen = belief[place[there]] * answers.likelihood[there]
    belief[place[there]] = seen / seen.sum(axis=1, keepdims=True)
    for at in np.flatnonzero(np.isin(rows, list(answers.settled))).tolist():
        belief[at] = (1 - USUAL) * unit[answers.settled[int(rows[at])]] + USUAL / M
    trusted = data.trusted[rows]
    belief[trusted] = unit[data.codes[rows[trusted]]]
    return belief


def _class_beliefs(data: ReviewData, wrong: np.ndarray, rows: np.ndarray, answers: Answers) -> np.ndarray:
    """P(true class) of `rows`, (len(rows), M), from P(wrong) and, for several classes, local transition rows.

    Which class a wrong label should have been: held-out probabilities, worth one answer, and the answers nearby about
    the same given label, by a kernel.
    """
    problem, codes, out = data.problem, data.codes[rows], np.arange(len(rows))
    share = data.proba[rows].copy()
    share[out, codes] = 0.0
    if problem.n_classes > 2:
        share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-12)
        table, asked = answers.likelihood, answers.rows
        said = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-12)
        reach = next(width for tie, _, width in REGIONS if tie == "class")
        step = max(1, problem.rows.at_a_time // (len(asked) + 1))
        for start in range(0, len(rows) if len(asked) else 0, step):
            part = slice(start, start + step)
            near = np.exp(-reach * problem.rows.distances(rows[part], asked))
            near *= codes[part][:, None] == data.codes[asked][None, :]
            share[part] += near @ said
        share[out, codes] = 0.0
    share = np.maximum(share, 1e-12)
    share[out, codes] = 0.0
    belief = share / share.sum(axis=1, keepdims=True) * wrong[:, None]
    belief[out, codes] = 1 - wrong
    return belief
