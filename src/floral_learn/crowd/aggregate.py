"""``aggregate_votes``: labels, probabilities, a judgement of the annotators, and what to ask whom next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from floral_learn.base import Shown
from floral_learn.base.alignment import WAY_OUT, align, first_names, index_of
from floral_learn.base.cells import is_missing
from floral_learn.base.frames import is_frame, same_kind, without_columns
from floral_learn.base.rows import read_rows
from floral_learn.base.validation import generator
from floral_learn.crowd.votes import Votes, read_votes

from .annotators import judge
from .features import encode_items
from .readings import ERROR_RATE, Answers
from .solve import MISLED, Solution, allow_for_shared_mistakes, solve


@dataclass(frozen=True, repr=False)
class VoteAggregation(Shown):
    """What the votes say, per task and per annotator."""

    votes: Votes = field(repr=False)
    solution: Solution = field(repr=False)
    gold: np.ndarray | None = field(default=None, repr=False)
    # a frame of the caller's, in whose library tables are
    like: Any = field(default=None, repr=False, compare=False)

    def _facts(self) -> dict[str, str]:
        people, named = self.people, int(self.people["named"].sum())
        facts = {
            "tasks": f"{len(self.items):,}, {len(self.classes)} classes",
            "mean probability of the label": f"{self.probability.max(axis=1).mean():.3f}",
            "contested tasks": f"{int(np.sum(self.contested)):,}",
            "people": f"{len(people):,}, {named:,} of them named",
        }
        return facts | {f"note {number}": text for number, text in enumerate(self.notes[:2], 1)}

    @property
    def classes(self) -> np.ndarray:
        """The classes, in the order of the columns of `probability`."""
        return self.votes.classes

    @property
    def items(self) -> np.ndarray:
        """(n,) names of the tasks, in the order of all arrays.

        With X they are in X's order: its column of tasks, its index, or 0, 1, ... A long frame's tasks are sorted by
        name otherwise, and a wide one's are its index, or its column of tasks.
        """
        return self.votes.items

    @property
    def probability(self) -> np.ndarray:
        """(n, K) probability of each class: soft labels for any model that takes them."""
        return self.solution.posterior

    @property
    def labels(self) -> np.ndarray:
        """(n,) the most probable class of each task."""
        return self.classes[self.probability.argmax(axis=1)]

    @property
    def decided(self) -> np.ndarray:
        """(n,) True where the label's probability is 0.85 or more and nobody contradicts it who may be right.

        False on every task where a reading and its mirror image explain the votes alike: which of them is right is not
        in the votes. `labels` and `probability` are filled in all the same; known answers (`gold`) settle it.
        """
        return self.solution.decided

    @property
    def undecided(self) -> np.ndarray:
        """Names of the tasks that are not `decided`."""
        return self.items[~self.decided]

    @property
    def contested(self) -> np.ndarray:
        """(n,) tasks on which the ways to read the votes say different things: ask about these."""
        return self.solution.contested

    @property
    def confusions(self) -> np.ndarray:
        """(A, K, K) probability of each vote given each truth, per annotator (order of `votes.annotators`)."""
        return self.solution.fit.confusions()

    @cached_property
    def judged(self) -> dict[str, Any]:
        """How far each annotator can be relied on: columns in the order of `votes.annotators`."""
        s = self.solution
        without = allow_for_shared_mistakes(s.leave_one_out, MISLED, len(self.classes))
        return judge(s.fit, s.held, without, s.mirror, s.settled, s.agreement)

    @cached_property
    def people(self) -> Any:
        """`annotators` as a pandas frame, whatever the votes came in: least reliable first, by the upper end."""
        import pandas as pd

        frame = pd.DataFrame(self.judged).sort_values(["high", "reliability"], kind="stable")
        return frame.reset_index(drop=True)

    @property
    def annotators(self) -> Any:
        """Frame: votes, reliability with a 95 % interval, who is named or agrees with whom, and on what evidence."""
        return same_kind(self.people, self.like)

    def to_frame(self) -> Any:
        """Frame with a row per task: task, label, probability of the label, decided, votes (how many)."""
        import pandas as pd

        columns = {
            "task": self.items,
            "label": self.labels,
            "probability": self.probability.max(axis=1),
            "decided": self.decided,
            "votes": np.round(self.votes.per_item).astype(int),
        }
        return same_kind(pd.DataFrame(columns), self.like)

    @cached_property
    def notes(self) -> list[str]:
        """What a reader must know before trusting the labels, in words."""
        return _notes(self)


def aggregate_votes(
    votes: Any,
    X: Any = None,
    *,
    groups: Any = None,
    gold: Any = None,
    classes: Any = None,
    missing: Any = None,
    task: Any = "task",
    worker: Any = "worker",
    label: Any = "label",
    random_state: Any = None,
) -> VoteAggregation:
    """Find the true labels from votes of several people, some of whom may lie, alone or together.

    Parameters
    ----------
    votes : array or frame (n, annotators), long frame with columns task, worker, label, or array (n,)
        NaN, None, empty text and `missing` mean no vote.
    X : array, frame or sparse matrix (n, d), optional
        Features of the tasks, columns of a frame of any kind; tasks that `votes` name are matched to its column
        `task`, or to its index.
    groups : array-like (n,), optional
        With one label per task: who gave it.
    gold : mapping task -> class, Series indexed by task, or array-like (n,), optional
        Answers known to be right; missing entries are unknown. They settle which of two concerted groups lies.
    classes : array-like, optional
        All classes; by default those that occur.
    missing : scalar, optional
        A value in `votes` (and `gold`) that means "no vote", such as -1.
    task, worker, label : str
        The columns of a long frame; a frame (n, annotators) may have the column `task`, too.
    random_state : int, Generator or None
        Source of the folds.

    Returns
    -------
    VoteAggregation
        ``labels``, ``probability``, ``decided``, ``undecided``, ``contested``, ``annotators``, ``notes``.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn import aggregate_votes
    >>> truth = np.tile([0, 1, 2], 20)
    >>> votes = np.column_stack([truth, truth, truth, (truth + 1) % 3])  # the fourth person always lies
    >>> found = aggregate_votes(votes, random_state=0)
    >>> bool((found.labels == truth).all())
    True
    >>> found.annotators["annotator"].tolist()[0]
    3
    """
    columns = {"task": task, "worker": worker, "label": label}
    read = read_votes(votes, groups=groups, X=X, classes=classes, missing=missing, negations=True, **columns)
    known = read_gold(gold_of_rows(gold, votes, X), read, missing)
    rng = generator(random_state)
    Z = None if X is None else encode_items(read_rows(without_columns(X, task)).numbers, rng)
    return VoteAggregation(read, solve(read, Z, rng=rng, gold=known), known, votes if is_frame(votes) else None)


def gold_of_rows(gold: Any, votes: Any, X: Any) -> Any:
    """Known answers in the order of the votes' rows, where these are a plain table and have no names of tasks."""
    if hasattr(votes, "columns") or hasattr(votes, "iloc") or not hasattr(gold, "iloc"):
        return gold
    gold = align(X, gold, ("X", "gold"))
    return gold.to_numpy() if len(gold) == len(votes) else gold


def read_gold(gold: Any, votes: Votes, missing: Any) -> np.ndarray | None:
    """(n,) class codes of known answers, -1 elsewhere; None where nothing is known."""
    if gold is None:
        return None
    n, index = len(votes.items), index_of(gold)
    values = gold.values() if isinstance(gold, Mapping) and not hasattr(gold, "iloc") else gold
    values = values.tolist() if hasattr(values, "tolist") else list(values)
    rows: Any = range(n)
    if index is not None and list(index) != votes.items.tolist():
        place = {name: row for row, name in enumerate(votes.items.tolist())}
        if odd := [name for name in index if name not in place]:
            raise ValueError(f"gold names tasks that are not there: {first_names(odd)}. {WAY_OUT}")
        if not index.is_unique:
            raise ValueError(f"gold names task {index[index.duplicated()][0]!r} twice")
        rows = [place[name] for name in index]
    elif len(values) != n or np.ndim(values[0]):
        raise ValueError(
            f"gold must be a mapping task -> class, a Series indexed by task, or hold one entry per task: {n}, got "
            f"{len(values)}"
        )
    codes, known = np.full(n, -1), {value: code for code, value in enumerate(votes.classes.tolist())}
    for row, value in zip(rows, values, strict=True):
        if is_missing(value) or value == missing:
            continue
        if value not in known:
            raise ValueError(f"gold holds {value!r}, which is not among the classes {list(known)[:12]}")
        codes[row] = known[value]
    return codes if (codes >= 0).any() else None


def _notes(found: VoteAggregation) -> list[str]:
    votes, solution = found.votes, found.solution
    notes = []
    without = int((votes.per_item == 0).sum())
    if without:
        source = "features alone" if solution.featured else "the shares of the classes"
        notes.append(f"Tasks without a vote: {without:,}. Their class comes from {source}.")
    if len(votes.classes) == 1:
        notes.append(f"Everybody voted {votes.classes[0]}: where nobody differs, votes cannot show what is wrong.")
    if unseen := [str(c) for c, count in zip(votes.classes, votes.shares.sum(axis=0)) if count == 0]:
        notes.append(f"Nobody voted for {', '.join(unseen[:8])}.")
    spelled: dict[str, list[str]] = {}
    for name in map(str, votes.classes):
        spelled.setdefault(" ".join(name.split()).casefold(), []).append(name)
    if alike := [" and ".join(map(repr, names)) for names in spelled.values() if len(names) > 1]:
        notes.append(f"Classes that differ in capitals or spaces only count as different ones: {', '.join(alike[:4])}.")
    varied, several = Answers.of(votes).varied, votes.per_annotator > 1
    if 2 * (functions := int((several & ~varied).sum())) > len(votes.annotators):
        notes.append(
            f"{functions:,} of {len(votes.annotators):,} voters name one class only, as labelling functions do. Where "
            "they abstain is no vote; what they say cannot be checked by hiding votes."
        )
    if against := int(votes.negative.sum()):
        notes.append(f"Votes that say what a task is not: {against:,}.")
    if len(votes.annotators) < 3 or not solution.checked:
        labels = "read from the votes and what else is known" if solution.checked else "those of the majority"
        why = _why_undecided(len(votes.annotators), bool(varied.any()))
        notes.append(f"Labels are {labels}, and none is decided but known answers (gold): {why}.")
    elif open_items := len(found.undecided):
        why = (
            "their votes are too few or contradict each other. Another vote or a known answer (gold) settles them."
            if solution.settled
            else "so many people contradict the rest that nobody can tell who is right. Known answers (gold) settle it."
        )
        notes.append(f"Tasks that are not decided: {open_items:,}, since {why}")
    if contested := int(found.contested.sum()):
        notes.append(f"Tasks that can be read in two ways: {contested:,}. They need another answer.")
    return notes


def _why_undecided(voters: int, varied: bool) -> str:
    if voters == 1:
        return "there is one voter, whom nobody can contradict"
    if voters == 2:
        return (
            "there are two voters; where they differ either may be right, where they agree nobody can contradict them"
        )
    if not varied:
        return "nobody names more than one class, so votes cannot check each other"
    return "what one person says cannot be foretold from what the others say"


def next_tasks(found: VoteAggregation, n: int = 10) -> Any:
    """Return the tasks whose label is likeliest to be put right by one more vote, and whom to ask.

    The gain of asking person a about task i is the expected rise of the label's probability of being right,
    sum_v p(v) max_c p(c | v) - max_c p(c), under a's confusion matrix. Items with two readings come first where gains
    are equal; nobody is asked twice about one task, and the work is dealt out among the reliable.

    Parameters
    ----------
    found : VoteAggregation
    n : int, default=10
        Number of tasks.

    Returns
    -------
    DataFrame
        task, annotator (empty where everybody has voted), gain, probability (of the present label), decided, most
        useful first. Tasks that are not decided come early: there an answer of your own (`gold`) says more than any
        vote.
    """
    import pandas as pd

    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n={n!r} must be a number of tasks, at least 1")
    votes, people = found.votes, found.judged
    trusted = np.flatnonzero(people["p_value"] > ERROR_RATE)
    asked = np.arange(len(votes.annotators)) if not len(trusted) else trusted
    asked = asked[np.argsort(-people["low"][asked], kind="stable")[:50]]
    rows = np.arange(len(votes.items)) if found.gold is None else np.flatnonzero(found.gold < 0)
    confusions = found.solution.fit.confusions(asked)
    held = found.solution.held[rows]  # one more person is misled as well where everybody is
    gain = _gain(held, confusions.mean(axis=0)).round(6)
    first = np.lexsort((held.max(axis=1), ~found.contested[rows], -gain))[:n]
    rows, held = rows[first], held[first]
    gains = np.column_stack([_gain(held, confusion) for confusion in confusions])
    row, column = np.full(len(votes.items), -1), np.full(len(votes.annotators), -1)
    row[rows], column[asked] = np.arange(len(rows)), np.arange(len(asked))
    place = row[votes.item], column[votes.annotator]
    has_voted = np.minimum(*place) >= 0
    gains[place[0][has_voted], place[1][has_voted]] = -1.0
    load, whom = np.zeros(len(asked)), np.zeros(len(rows), dtype=int)
    for task, each in enumerate(gains):
        whom[task] = np.where(each >= max(0.95 * each.max(), 0.0), load, np.inf).argmin()
        load[whom[task]] += 1
    names = votes.annotators[asked[whom]].astype(object)
    names[gains.max(axis=1) < 0] = None
    columns = {
        "task": votes.items[rows],
        "annotator": names,
        "gain": np.maximum(gains[np.arange(len(rows)), whom], 0.0),
        "probability": found.probability[rows].max(axis=1),
        "decided": found.decided[rows],
    }
    return same_kind(pd.DataFrame(columns), found.like)


def _gain(probability: np.ndarray, confusion: np.ndarray) -> np.ndarray:
    """Expected rise of the largest probability by one vote with this confusion matrix, (n,)."""
    n, k = probability.shape
    right = np.empty(n)
    # (rows, truth, vote) at a time
    for part in gen_batches(n, max(1, 4_000_000 // k**2)) if n else ():
        joint = probability[part, :, None] * confusion[None]
        right[part] = joint.max(axis=1).sum(axis=1)
    return right - probability.max(axis=1)
