"""How far a judge can be trusted: language models, rules or older classifiers, held against blind answers of a person.

Rows are drawn one after the other, at random and without replacement, twice as often where judges disagree. The value
y_i of a row is 1 where the judge is wrong. If q_t(i) is the probability with which row i is drawn at step t, and the
mean of y over all n rows were m, then

    E[ y_i / (n q_t(i)) | the past ]  =  m - (sum of y over rows drawn before) / n,

so a bet on the left being larger is a fair game, and a capital that has grown to 2 / alpha rules m out (Ville's
inequality; betting: Waudby-Smith and Ramdas, 2024; weighted draws without replacement: Shekhar et al., 2023). This
holds at every moment at once: no order of looking at the interval, and no rule of stopping, bends it.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_learn.crowd import Votes, read_votes
from floral_learn.review.calibration import TAIL

# answers at which intervals (of 1 - TAIL) are made to be narrow: what a person gives in an hour
HORIZON = 50


@dataclass(frozen=True)
class Estimate:
    """A share with an interval that holds at every moment at once."""

    value: float
    low: float
    high: float

    def scaled(self, size: float, shift: float = 0.0) -> Estimate:
        """The same of something linear in the share."""
        return Estimate(*(shift + size * part for part in (self.value, self.low, self.high)))


@dataclass(frozen=True)
class JudgeReport:
    """What is known of the judges after some answers; every table is a list of rows (dicts of plain values)."""

    answered: int
    # judge, class ("" for all), rows, answered, error, low, high
    errors: list[dict[str, Any]]
    # judge, agreement, kappa: beyond chance (Cohen, 1960)
    agreement: list[dict[str, Any]]
    totals: list[dict[str, Any]]  # judge, class, given, corrected, low, high
    # rows on which judges disagree, those without an answer first
    disagreements: list[Any]
    # the judge whose error rate is lowest, where all others are worse beyond doubt; else None
    best: Any
    width: float  # of the widest interval of an error rate
    width_after: float  # what it will be after as many answers again, about
    notes: list[str]


class JudgeReview:
    """Ask a person blind questions about rows that judges labelled; say how often each judge is wrong.

    Parameters
    ----------
    answers : array or frame (n, judges), long frame with columns task, worker, label, or array (n,)
        What each judge says of each row; missing where it says nothing. See `floral_learn.crowd.read_votes`.
    classes : array-like, optional
        All classes, if a row may have one that no judge gives.
    missing : scalar, optional
        A value that means "no answer", such as -1.
    prompt : str or bytes, optional
        What the judges were asked. Answers are bound to it: a state with another prompt is refused.
    random_state : int, default=0
        Which rows are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.review.judge import JudgeReview
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=500)
    >>> judges = np.where(rng.random((500, 2)) < [0.05, 0.3], 1 - truth[:, None], truth[:, None])
    >>> review = JudgeReview(judges)
    >>> rows = review.ask(50)
    >>> review.answer(rows, truth[rows])
    >>> [bool(row["low"] <= error <= row["high"]) for row, error in zip(review.report().errors, [0.05])]
    [True]
    """

    def __init__(
        self, answers: Any, *, classes: Any = None, missing: Any = None, prompt: Any = None, random_state: int = 0
    ) -> None:
        with warnings.catch_warnings():
            # refused below
            warnings.filterwarnings("ignore", message=".*all of these votes are blank")
            votes = read_votes(answers, classes=classes, missing=missing)
        n, judges, k = votes.shape
        if k < 2:
            raise ValueError(f"answers: judges give one class only, {votes.classes[0]!r}; there is nothing to compare")
        if silent := [name for name in _names(answers) if name not in set(votes.annotators.tolist())]:
            raise ValueError(f"answers: judge {silent[0]!r} never answers")
        self.votes: Votes = votes
        # class numbers, -1 where a judge says nothing
        self.said = np.full((n, judges), -1)
        self.said[votes.item, votes.annotator] = votes.label
        self.random_state, self.prompt = int(random_state), _digest(prompt)
        self.drawn: list[int] = []  # row numbers, in the order of the draws
        # row number -> class number; None where a person cannot tell
        self.given: dict[int, int | None] = {}
        self._place = {name: row for row, name in enumerate(votes.items.tolist())}

    @property
    def disagree(self) -> np.ndarray:
        """(n,) rows on which judges say different things."""
        high = self.said.max(axis=1)
        return np.where(self.said < 0, high[:, None], self.said).min(axis=1) != high

    def ask(self, k: int = 1) -> np.ndarray:
        """Names of k rows to show without what the judges say; rows that still wait for an answer come first."""
        waiting = [row for row in self.drawn if row not in self.given][:k]
        weight = 1.0 + self.disagree
        weight[self.drawn] = 0.0
        while len(waiting) < k and weight.any():
            rng = np.random.default_rng([self.random_state, len(self.drawn)])
            row = int(rng.choice(len(weight), p=weight / weight.sum()))
            weight[row] = 0.0
            self.drawn.append(row)
            waiting.append(row)
        return self.votes.items[waiting]

    def answer(self, rows: Iterable[Any], labels: Iterable[Any]) -> None:
        """Give the labels of rows that were asked about; None where a person cannot tell. Later answers replace."""
        codes = {name: code for code, name in enumerate(self.votes.classes.tolist())}
        found = {}
        for name, label in zip(list(rows), list(labels), strict=True):
            row = self._place.get(name)
            if row is None or row not in self.drawn:
                raise ValueError(f"row {name!r} was not asked about: intervals rest on rows that were drawn (ask)")
            if label is not None and label not in codes:
                raise ValueError(f"label {label!r} is given by no judge; name it in classes= if rows may have it")
            found[row] = None if label is None else codes[label]
        self.given |= found

    def gold(self) -> dict[Any, Any]:
        """Row -> label, as `aggregate_votes(gold=)` takes it."""
        names, classes = self.votes.items, self.votes.classes
        return {names[row]: classes[code] for row, code in self.given.items() if code is not None}

    def state(self) -> dict[str, Any]:
        """Everything that was asked and answered, as a plain dict for a JSON file."""
        given = {str(row): code for row, code in self.given.items()}
        known = {"answers": self._digest_of_answers(), "prompt": self.prompt, "random_state": self.random_state}
        return known | {"drawn": list(self.drawn), "given": given}

    def resume(self, state: dict[str, Any]) -> JudgeReview:
        """Go on from a `state` of the same answers and the same prompt; any other is refused."""
        for name, mine in (("answers", self._digest_of_answers()), ("prompt", self.prompt)):
            if state[name] != mine:
                raise ValueError(f"this review was begun with another {name}: its intervals do not hold for these")
        self.random_state, self.drawn = state["random_state"], list(state["drawn"])
        self.given = {int(row): code for row, code in state["given"].items()}
        return self

    def _digest_of_answers(self) -> str:
        parts = (self.votes.items, self.votes.annotators, self.votes.classes)
        names = [str(name) for part in parts for name in part]
        return _digest(json.dumps([names, self.said.tolist()])) or ""

    def report(self) -> JudgeReport:
        """Error rates, agreement, corrected totals, disagreements, and whether more answers are worth it."""
        names, classes = self.votes.annotators.tolist(), self.votes.classes.tolist()
        errors, agreement, totals = [], [], []
        for judge, name in enumerate(names):
            said = self.said[:, judge]
            for code, label in [(-1, ""), *enumerate(classes)]:
                domain = said >= 0 if code < 0 else said == code
                if domain.any():
                    found = self.estimate(domain, _wrong(said))
                    seen = int(domain[list(self.given)].sum())
                    row = {"judge": name, "class": label, "rows": int(domain.sum()), "answered": seen}
                    errors.append(row | {"error": found.value, "low": found.low, "high": found.high})
            agreement.append({"judge": name} | self._beyond_chance(said))
            totals += [{"judge": name, "class": label} | self._total(said, c) for c, label in enumerate(classes)]
        of_all = [row for row in errors if row["class"] == ""]
        best = self._best(of_all)
        width = max(row["high"] - row["low"] for row in of_all)
        apart = np.flatnonzero(self.disagree)
        apart = apart[np.argsort(np.isin(apart, list(self.given)), kind="stable")]
        later = float(width / np.sqrt(2))
        notes = [f"Error rates: within {width:.2f} now, about {later:.2f} after as many answers again."]
        if len(names) > 1 and best is None:
            notes.append("Which judge errs least is not settled: more answers are worth it where that matters.")
        rows = self.votes.items[apart].tolist()
        return JudgeReport(len(self.given), errors, agreement, totals, rows, best, width, later, notes)

    def estimate(self, domain: np.ndarray, value: Any, low: float = 0.0, high: float = 1.0) -> Estimate:
        """The mean over the rows `domain` (n,) of value(row, true class), which lies between `low` and `high`."""
        weight = (1.0 + self.disagree) * domain
        n, lower, upper, chance = int(domain.sum()), [], [], []
        for row in self.drawn:
            if row not in self.given:
                # what was drawn later waits for it, or the answers would be chosen
                break
            if domain[row]:
                code = self.given[row]
                share = None if code is None else (value(row, code) - low) / (high - low)
                # who cannot tell is counted against either side
                lower.append(0.0 if share is None else share)
                upper.append(1.0 if share is None else share)
                chance.append(weight[row] / weight.sum())
                weight[row] = 0.0
        return bet(np.array(lower), np.array(upper), np.array(chance), n).scaled(high - low, low)

    def _total(self, said: np.ndarray, code: int) -> dict[str, float]:
        """How many rows are of a class: what the judge says, and the mean of what it lacks (Rogan and Gladen, 1978)."""
        n, given = len(said), int((said == code).sum())
        lacks = self.estimate(np.ones(n, dtype=bool), lambda row, c: float(c == code) - (said[row] == code), -1.0)
        found = lacks.scaled(n, given)
        low, high = max(found.low, 0.0), min(found.high, float(n))
        return {"given": given, "corrected": float(np.clip(found.value, low, high)), "low": low, "high": high}

    def _beyond_chance(self, said: np.ndarray) -> dict[str, float]:
        """Share of rows on which judge and person agree, and Cohen's kappa, each answer weighted back."""
        rows = [row for row in self.drawn if self.given.get(row) is not None and said[row] >= 0]
        if not rows:
            return {"agreement": np.nan, "kappa": np.nan}
        k = len(self.votes.classes)
        table = np.zeros((k, k))
        truth = np.array([self.given[row] for row in rows], dtype=int)
        np.add.at(table, (said[rows], truth), 1 / (1.0 + self.disagree[rows]))
        table /= table.sum()
        same, chance = float(np.trace(table)), float(table.sum(axis=0) @ table.sum(axis=1))
        return {"agreement": same, "kappa": (same - chance) / (1 - chance) if chance < 1 else np.nan}

    def _best(self, of_all: list[dict[str, Any]]) -> Any:
        """The judge with the lowest error rate, if the interval of every other one's excess is above zero."""
        first = int(np.argmin([row["error"] for row in of_all]))
        mine = self.said[:, first]
        for judge in range(len(of_all)):
            both = (mine >= 0) & (self.said[:, judge] >= 0)
            if judge == first or not both.any():
                continue
            theirs = _wrong(self.said[:, judge])
            worse = self.estimate(both, lambda row, c, t=theirs: t(row, c) - _wrong(mine)(row, c), -1.0)
            if worse.low <= 0:
                return None
        return of_all[first]["judge"] if len(of_all) > 1 else None


def bet(lower: np.ndarray, upper: np.ndarray, chance: np.ndarray, n: int, points: int = 1001) -> Estimate:
    """The mean of n values in [0, 1], of which T were drawn with probabilities `chance` (T,), one after the other.

    `lower` and `upper` (T,) are the values as far as known. A bet on a mean above m uses the lower ones, a bet on one
    below m the complement of the upper ones; bets never risk more than the capital.
    """
    if not len(chance):
        return Estimate(0.5, 0.0, 1.0)
    grid = np.linspace(0, 1, points)
    above = _ruled_out(lower, chance, n, grid)
    below = _ruled_out(1 - upper, chance, n, 1 - grid)
    left = grid[~(above | below)]
    middle = (lower + upper) / 2
    seen = np.r_[0.0, np.cumsum(middle)[:-1]]
    value = float(np.clip(np.mean((seen + middle / chance) / n), 0, 1))
    if not len(left):  # an event of probability alpha: what is left is a point
        return Estimate(value, value, value)
    low, high = max(left[0] - 1 / (points - 1), 0.0), min(left[-1] + 1 / (points - 1), 1.0)
    return Estimate(float(np.clip(value, low, high)), float(low), float(high))


def _ruled_out(values: np.ndarray, chance: np.ndarray, n: int, grid: np.ndarray) -> np.ndarray:
    """Which means `grid` are too small for the `values` drawn, at level TAIL / 2."""
    goal = np.log(2 / TAIL)
    log, ruled, seen = np.zeros(len(grid)), np.zeros(len(grid), dtype=bool), 0.0
    paid = values / (n * chance)
    for t, pay in enumerate(paid):
        mean = grid - seen / n  # of what is paid next
        ruled |= mean < 0  # more was seen than there would be
        # variance if values were 0 or 1
        spread = np.maximum(mean * (1 - t / n) - mean**2, 1 / n)
        rate = np.sqrt(2 * goal / (max(HORIZON, t + 1) * spread))
        rate = np.minimum(rate, 1 / np.maximum(mean, 1e-9))
        log = log + np.log(np.maximum(1 + rate * (pay - np.maximum(mean, 0)), 1e-300))
        ruled |= log >= goal
        seen += values[t]
    return ruled


def _wrong(said: np.ndarray) -> Any:
    return lambda row, code: float(said[row] != code)


def _names(answers: Any) -> list[Any]:
    """The judges of a wide table; nothing of a long frame, which names those only who answer."""
    if hasattr(answers, "columns"):
        names = list(answers.columns)
        return [] if {"worker", "label"} <= set(names) else [name for name in names if name != "task"]
    return list(range(np.shape(answers)[1])) if np.ndim(answers) == 2 else []


def _digest(text: Any) -> str | None:
    if text is None:
        return None
    return hashlib.sha256(text if isinstance(text, bytes) else str(text).encode()).hexdigest()
