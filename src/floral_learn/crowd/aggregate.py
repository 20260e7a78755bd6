"""``aggregate_votes``: labels, probabilities and a judgement of the annotators from votes, with or without features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from floral_learn.base import Shown
from floral_learn.base.alignment import WAY_OUT, align, first_names, index_of
from floral_learn.base.frames import is_frame, same_kind, without_columns
from floral_learn.base.rows import read_rows
from floral_learn.base.validation import generator
from floral_learn.crowd.votes import Votes, read_votes

from . import annotators as people
from .features import encode_items
from .readings import ERROR_RATE, Answers
from .solve import MISLED, Solution, allow_for_shared_mistakes, solve


@dataclass(frozen=True, repr=False)
class VoteAggregation(Shown):
    """What the votes say, per task and per annotator."""

    votes: Votes = field(repr=False)
    solution: Solution = field(repr=False)
    gold: np.ndarray | None = field(default=None, repr=False)
    like: Any = field(default=None, repr=False, compare=False)  # a frame of the caller's, in whose library tables are

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
    def weights(self) -> np.ndarray:
        """(n,) how much more probable the label is than chance, 0 to 1: sample weights for any model."""
        k = len(self.classes)
        return np.ones(len(self.items)) if k < 2 else (self.probability.max(axis=1) - 1 / k) / (1 - 1 / k)

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
    def judged(self) -> people.People:
        """How far each annotator can be relied on, as arrays in the order of `votes.annotators`."""
        s = self.solution
        without = allow_for_shared_mistakes(s.leave_one_out, MISLED, len(self.classes))
        return people.judge(self.votes, s.held, without, s.mirror, s.settled)

    @cached_property
    def people(self) -> Any:
        """`annotators` as a pandas frame, whatever the votes came in."""
        return people.frame(self.judged, self.votes, self.solution.fit, self.solution.agreement)

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
        ``labels``, ``probability``, ``weights``, ``decided``, ``undecided``, ``contested``, ``annotators``, ``notes``.

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
    read = read_votes(
        votes,
        groups=groups,
        X=X,
        classes=classes,
        missing=missing,
        task=task,
        worker=worker,
        label=label,
        negations=True,
    )
    known = read_gold(gold_of_rows(gold, votes, X), read, missing)
    rng = generator(random_state)
    views = None if X is None else encode_items(read_rows(without_columns(X, task)).numbers, rng)
    return VoteAggregation(read, solve(read, views, rng=rng, gold=known), known, votes if is_frame(votes) else None)


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
    n = len(votes.items)
    codes = np.full(n, -1)
    index = index_of(gold)
    if index is not None and list(index) != votes.items.tolist():
        place = {name: row for row, name in enumerate(votes.items.tolist())}
        if odd := [name for name in index if name not in place]:
            raise ValueError(f"gold names tasks that are not there: {first_names(odd)}. {WAY_OUT}")
        if not index.is_unique:
            raise ValueError(f"gold names task {index[index.duplicated()][0]!r} twice")
        pairs = list(zip([place[name] for name in index], values_of(gold), strict=True))
    else:
        values = np.asarray(values_of(gold), dtype=object)
        if values.shape != (n,):
            raise ValueError(
                f"gold must be a mapping task -> class, a Series indexed by task, or hold one entry per task: {n}, got "
                f"shape {values.shape}"
            )
        pairs = list(enumerate(values.tolist()))
    pairs = [(row, v) for row, v in pairs if not (v is None or v != v or v == missing)]
    known = {value: code for code, value in enumerate(votes.classes.tolist())}
    for row, value in pairs:
        if value not in known:
            raise ValueError(f"gold holds {value!r}, which is not among the classes {list(known)[:12]}")
        codes[row] = known[value]
    return codes if (codes >= 0).any() else None


def values_of(gold: Any) -> Any:
    """The values of a mapping or Series as a list; anything else as it is."""
    if isinstance(gold, Mapping) and not hasattr(gold, "iloc"):
        return list(gold.values())
    return gold.tolist() if hasattr(gold, "iloc") else gold


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
    share, limit = doubtful_share(found)
    if solution.checked and share > 0.6 * limit:
        notes.append(
            f"About {100 * share:.0f} % of the votes come from people whose answers do not fit the rest. "
            f"Above {100 * limit:.0f} %, annotators who agree on false answers would win, and nothing in the votes "
            "would show it: answer some tasks (gold)."
            if share <= limit
            else f"More than {100 * limit:.0f} % of the votes come from people whose answers do not fit the rest: "
            "annotators who agree on false answers may have won, and nothing in the votes would show it. Answer some "
            "tasks (gold)."
        )
    if functions := _functions(votes):
        notes.append(functions)
    few = len(votes.annotators) < 3
    if few or not solution.checked:
        notes.append(_why_undecided(votes, few, solution.checked))
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


def _functions(votes: Votes) -> str:
    """A note on voters who name one class only, with several votes each, where they are most of all."""
    one_class = ~Answers.of(votes).varied & (votes.per_annotator > 1)
    if 2 * one_class.sum() <= len(votes.annotators):
        return ""
    return (
        f"{int(one_class.sum()):,} of {len(votes.annotators):,} voters name one class only, as labelling functions do. "
        "Where they abstain is no vote; what they say cannot be checked by hiding votes."
    )


def _why_undecided(votes: Votes, few: bool, read: bool) -> str:
    labels = "read from the votes and what else is known" if read else "those of the majority"
    if few and len(votes.annotators) == 1:
        why = "there is one voter, whom nobody can contradict"
    elif few:
        why = "there are two voters; where they differ either may be right, where they agree nobody can contradict them"
    elif not Answers.of(votes).varied.any():
        why = "nobody names more than one class, so votes cannot check each other"
    else:
        why = "what one person says cannot be foretold from what the others say"
    return f"Labels are {labels}, and none is decided but known answers (gold): {why}."


def doubtful_share(found: VoteAggregation) -> tuple[float, float]:
    """Share of votes by people who hardly follow the labels, and the share above which concerted lies win.

    That is (1 - e - w) / (2 - e - w), e the error of the people who are not doubtful and w its share that falls on the
    lie: e / (K - 1), which is next to nothing with many classes.
    """
    votes = found.votes
    judged = found.judged
    doubtful = judged.p_value < ERROR_RATE
    sizes = votes.per_annotator
    honest = ~doubtful
    if not honest.any():
        return 1.0, 0.5
    error = 1 - float(np.average(judged.reliability[honest], weights=sizes[honest] + 1e-9))
    lost = min(error + error / max(len(votes.classes) - 1, 1), 1.0)
    return float(sizes[doubtful].sum() / sizes.sum()), (1 - lost) / (2 - lost)
