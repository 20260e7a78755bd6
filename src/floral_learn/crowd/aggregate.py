"""``aggregate_votes``: labels, probabilities and a judgement of the annotators from votes, with or without features."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from floral_learn.base import Shown
from floral_learn.base.frames import is_frame, same_kind, without_columns
from floral_learn.base.rows import read_rows
from floral_learn.base.validation import generator
from floral_learn.labels.votes import Votes, read_votes

from . import annotators as people
from .agreement import ERROR_RATE
from .features import encode_items
from .solve import Solution, solve


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
        """Names of the tasks, in the order of all arrays."""
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
        return self.solution.confusions.matrix

    @cached_property
    def judged(self) -> people.People:
        """How far each annotator can be relied on, as arrays in the order of `votes.annotators`."""
        return people.judge(self.solution)

    @cached_property
    def people(self) -> Any:
        """`annotators` as a pandas frame, whatever the votes came in."""
        return people.frame(self.judged, self.solution, self.votes)

    @property
    def annotators(self) -> Any:
        """Frame: votes, reliability with a 95 % interval, who is named or agrees with whom, and on what evidence."""
        return same_kind(self.people, self.like)

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
    gold : array-like (n,) or mapping task -> class, optional
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
        votes, groups=groups, X=X, classes=classes, missing=missing, task=task, worker=worker, label=label
    )
    known = read_gold(gold, read, missing)
    rng = generator(random_state)
    views = None if X is None else encode_items(read_rows(without_columns(X, task)).numbers, rng)
    return VoteAggregation(read, solve(read, views, rng=rng, gold=known), known, votes if is_frame(votes) else None)


def read_gold(gold: Any, votes: Votes, missing: Any) -> np.ndarray | None:
    """(n,) class codes of known answers, -1 elsewhere; None where nothing is known."""
    if gold is None:
        return None
    n = len(votes.items)
    codes = np.full(n, -1)
    if hasattr(gold, "items") and not hasattr(gold, "index"):
        place = {value: row for row, value in enumerate(votes.items.tolist())}
        if odd := [key for key in gold if key not in place]:
            raise ValueError(f"gold names tasks that are not there, such as {odd[0]!r}")
        pairs = [(place[key], value) for key, value in gold.items()]
    else:
        values = np.asarray(gold, dtype=object)
        if values.shape != (n,):
            raise ValueError(
                f"gold must be a mapping task -> class or hold one entry per task: {n}, got shape {values.shape}"
            )
        pairs = list(enumerate(values.tolist()))
    pairs = [(row, v) for row, v in pairs if not (v is None or v != v or v == missing)]
    known = {value: code for code, value in enumerate(votes.classes.tolist())}
    for row, value in pairs:
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
    share, limit = doubtful_share(found)
    if share > 0.6 * limit:
        notes.append(
            f"About {100 * share:.0f} % of the votes come from people whose answers do not fit the rest. "
            f"Above {100 * limit:.0f} %, annotators who agree on false answers would win, and nothing in the votes "
            "would show it: answer some tasks (gold)."
            if share <= limit
            else f"More than {100 * limit:.0f} % of the votes come from people whose answers do not fit the rest: "
            "annotators who agree on false answers may have won, and nothing in the votes would show it. Answer some "
            "tasks (gold)."
        )
    if open_items := len(found.undecided):
        why = (
            "their votes are too few or contradict each other. Another vote or a known answer (gold) settles them."
            if solution.settled
            else "so many people contradict the rest that nobody can tell who is right. Known answers (gold) settle it."
        )
        notes.append(f"Tasks that are not decided: {open_items:,}, since {why}")
    if contested := int(found.contested.sum()):
        notes.append(f"Tasks that can be read in two ways: {contested:,}. They need another answer.")
    return notes


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
