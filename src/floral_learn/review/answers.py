"""The answers: who said what about which row, and what that makes each class's likelihood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from floral_learn.base.alignment import align, index_of

# Beta prior of a reviewer's error rate: about three in a hundred
ERROR_PRIOR = (1.0, 29.0)
# how often reviewers err, before anything is known of them
USUAL = ERROR_PRIOR[0] / sum(ERROR_PRIOR)


@dataclass(frozen=True)
class Answer:
    """One reviewer's answer about one row.

    `code` is a class's number, or None for "not sure"; `turn` counts calls of answer(); `drawn` says whether the row
    had been reached in the secret random order; `along` is the row that was looked at in its place.
    """

    row: int
    code: int | None
    reviewer: str
    turn: int
    drawn: bool
    along: int | None = None


def latest_answers(log: Iterable[Any]) -> dict[int, dict[str, Any]]:
    """The latest answer of each reviewer about each row, ``{row: {reviewer: answer}}``, in order of first answer."""
    latest: dict[int, dict[str, Any]] = {}
    for answer in log:
        latest.setdefault(answer.row, {})[answer.reviewer] = answer
    return latest


@dataclass(frozen=True)
class Answers:
    """All answers that stand, and how often each reviewer is believed to err.

    Parameters
    ----------
    votes : dict
        ``{row: {reviewer: code}}``: the latest answer of each reviewer about each row.
    n_classes : int
        Number of classes, M.
    errors : dict of str to float
        Error rates; before anything is learned, everyone's prior mean.
    along : set of int
        Rows that nobody looked at: their answers came with that about a row that is nearly the same. They set labels,
        and count as no answers of their own.
    """

    votes: Mapping[int, Mapping[str, int | None]]
    n_classes: int
    errors: Mapping[str, float]
    along: frozenset[int] = frozenset()

    @classmethod
    def from_log(cls, log: Iterable[Answer], n_classes: int) -> Answers:
        """The answers that stand, everyone's error rate as it is before their answers are compared with anything."""
        latest = latest_answers(log)
        votes = {row: {who: a.code for who, a in said.items()} for row, said in latest.items()}
        along = {row for row, said in latest.items() if all(a.along is not None for a in said.values())}
        errors = {who: USUAL for said in votes.values() for who in said}
        return cls(votes, n_classes, errors, frozenset(along))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def guessing(self) -> float:
        """How often someone errs who guesses: such answers say nothing, and nobody's say less than that."""
        return 1 - 1 / self.n_classes

    @cached_property
    def rows(self) -> np.ndarray:
        """The rows that somebody looked at, (m,), in order of their first answer."""
        return np.array([row for row in self.votes if row not in self.along], dtype=np.intp)

    @cached_property
    def likelihood(self) -> np.ndarray:
        """P(a row's answers | its true class), (m, M): reviewers err independently, towards all other classes alike."""
        return np.array([self._likely(row) for row in self.rows.tolist()]).reshape(-1, self.n_classes)

    def _likely(self, row: int) -> np.ndarray:
        likely = np.ones(self.n_classes)
        for reviewer, code in self.votes[row].items():
            if code is not None:
                error = self.errors[reviewer]
                chance = np.full(self.n_classes, error / (self.n_classes - 1))
                chance[code] = 1 - error
                likely *= chance
        return likely

    @cached_property
    def agreed(self) -> dict[int, int | None]:
        """The class on which all reviewers who are sure agree, by row; None where nobody is sure or they disagree."""
        found: dict[int, int | None] = {}
        for row, said in self.votes.items():
            sure = {code for code in said.values() if code is not None}
            found[row] = sure.pop() if len(sure) == 1 else None
        return found

    @cached_property
    def settled(self) -> dict[int, int]:
        """The class of each row on which reviewers agree who are believed: who err as is usual rather than guess."""
        least = 1 - (USUAL + self.guessing) / 2
        likely = {row: self._likely(row) for row in self.agreed}
        return {
            row: code
            for row, code in self.agreed.items()
            if code is not None and likely[row][code] >= least * likely[row].sum()
        }

    def with_errors(self, errors: Mapping[str, float]) -> Answers:
        """The same answers, reviewers believed to err otherwise."""
        return replace(self, errors=dict(errors))

    def learned_errors(self, belief: np.ndarray) -> dict[str, float]:
        """Error rates of all reviewers, given the probabilities (m, M) of the true classes.

        The posterior mean under a Beta prior, with expected counts: the M step of Dawid and Skene (1979) for one
        error rate per person.
        """
        a, b = ERROR_PRIOR
        missed, total = dict.fromkeys(self.errors, 0.0), dict.fromkeys(self.errors, 0)
        for k, row in enumerate(self.rows.tolist()):
            for reviewer, code in self.votes[row].items():
                if code is not None:
                    missed[reviewer] += 1 - float(belief[k, code])
                    total[reviewer] += 1
        return {who: min((a + missed[who]) / (a + b + total[who]), self.guessing) for who in missed}


def read_log(entries: Iterable[Any], n: int, n_classes: int) -> list[Answer]:
    """The answers about `n` rows that a file lists."""
    log = [Answer(int(row), code, str(who), int(turn), bool(drawn), at) for row, code, who, turn, drawn, at in entries]
    codes, rows = {None, *range(n_classes)}, {None, *range(n)}
    known = all({a.row, a.along} <= rows and a.code in codes for a in log)
    if not known or any(a.turn > b.turn for a, b in pairwise(log)):
        raise ValueError("the answers cannot be those of a review")
    return log


def checked_answers(rows: Any, labels: Any, n: int, classes: np.ndarray) -> tuple[list[int], list[int | None]]:
    """Row numbers and class codes of one call of ``answer``."""
    if np.ndim(rows) == 0:
        rows, labels = [rows], [labels]
    rows = list(rows)
    if labels is None or isinstance(labels, str) or np.ndim(labels) == 0:
        if len(rows) != 1:
            raise ValueError(f"labels={labels!r} must hold one label per row, {len(rows)} in all")
        labels = [labels]
    names = index_of(labels)
    if isinstance(labels, Mapping) or (names is not None and set(names) == set(rows)):
        labels = align(dict.fromkeys(rows), labels, ("rows", "labels"))
    labels = list(labels)
    if len(rows) != len(labels):
        raise ValueError(f"rows has {len(rows)} entries and labels has {len(labels)}; they must match")
    for row in rows:
        if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < n:
            raise ValueError(f"rows holds {row!r}; a row is an integer from 0 to {n - 1}")
    numbers = [int(row) for row in rows]
    if len(set(numbers)) != len(numbers):
        raise ValueError("rows names the same row twice in one call")
    return numbers, [_code(label, classes) for label in labels]


def _code(label: Any, classes: np.ndarray) -> int | None:
    """The code of a label that a reviewer gave; None where it is None or NaN, "not sure"."""
    if label is None or (isinstance(label, float) and np.isnan(label)):
        return None
    match = np.flatnonzero(classes == label)
    if len(match) != 1:
        allowed = ", ".join(repr(c) for c in classes.tolist())
        raise ValueError(f"labels holds {label!r}; an answer is one of {allowed}, or None where the person is not sure")
    return int(match[0])
