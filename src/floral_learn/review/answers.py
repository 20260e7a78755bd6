"""The answers: who said what about which row, in order, and what that makes each class's likelihood."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

UNSURE = -1  # the code of "not sure"
_ERRORS = (1.0, 29.0)  # Beta prior of a reviewer's error rate: about three in a hundred
WORST = 0.5  # a reviewer who is wrong more often than that tells us nothing, rather than the opposite
_ERRING = 0.25  # how often someone errs, at most, who means well


@dataclass(frozen=True)
class Answer:
    """One reviewer's answer about one row: `code` is a class's number, or `UNSURE`; `turn` counts calls of answer()."""

    row: int
    code: int
    reviewer: str
    turn: int
    walk: bool


def votes(log: Iterable[Answer]) -> dict[int, dict[str, int]]:
    """The latest answer of each reviewer about each row, ``{row: {reviewer: code}}``, rows in order of first answer."""
    found: dict[int, dict[str, int]] = {}
    for answer in log:
        found.setdefault(answer.row, {})[answer.reviewer] = answer.code
    return found


def verdict(row_votes: dict[str, int]) -> int | None:
    """The class on which all reviewers who are sure agree; None where nobody is sure or they disagree."""
    sure = {code for code in row_votes.values() if code != UNSURE}
    return sure.pop() if len(sure) == 1 else None


def likelihoods(asked: dict[int, dict[str, int]], errors: dict[str, float], n_classes: int) -> np.ndarray:
    """P(a row's votes | its true class), (m, n_classes): reviewers err independently."""
    table = np.ones((len(asked), n_classes))
    for k, row_votes in enumerate(asked.values()):
        for reviewer, code in row_votes.items():
            if code != UNSURE:
                error = errors[reviewer]
                said = np.full(n_classes, error / (n_classes - 1))
                said[code] = 1 - error
                table[k] *= said
    return table


def start_errors(asked: dict[int, dict[str, int]]) -> dict[str, float]:
    """Every reviewer's error rate before their answers are compared with anything."""
    a, b = _ERRORS
    return {reviewer: a / (a + b) for row_votes in asked.values() for reviewer in row_votes}


def learned_errors(asked: dict[int, dict[str, int]], belief: np.ndarray) -> dict[str, float]:
    """Error rates of reviewers who mean well, given the probabilities (m, n_classes) of the true classes."""
    a, b = _ERRORS
    missed: dict[str, float] = {}
    total: dict[str, int] = {}
    for k, row_votes in enumerate(asked.values()):
        for reviewer, code in row_votes.items():
            missed.setdefault(reviewer, 0.0)
            total.setdefault(reviewer, 0)
            if code != UNSURE:
                missed[reviewer] += 1 - float(belief[k, code])
                total[reviewer] += 1
    return {r: min((a + missed[r]) / (a + b + total[r]), _ERRING) for r in missed}


def as_code(label: Any, classes: np.ndarray) -> int:
    """The code of a label that a reviewer gave; None and NaN are "not sure"."""
    if label is None or (isinstance(label, float) and np.isnan(label)):
        return UNSURE
    found = np.flatnonzero(classes == label)
    if len(found) != 1:
        allowed = ", ".join(repr(c) for c in classes.tolist())
        raise ValueError(f"labels holds {label!r}; an answer is one of {allowed}, or None where the person is not sure")
    return int(found[0])
