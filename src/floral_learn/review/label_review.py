"""LabelReview: a person answers a few questions, and the other labels are corrected from the answers."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from floral_learn.base import ModelFileError, Shown
from floral_learn.base.files import MOST_BYTES, write_atomically
from floral_learn.base.models import archive_bytes, read_archive
from floral_learn.review.answers import Answer, Answers, checked_answers, read_log
from floral_learn.review.beliefs import Beliefs
from floral_learn.review.calibration import Expected, WrongShare, widened
from floral_learn.review.guarantee import (
    Guarantee,
    answered_start,
    is_drawn,
    random_order,
    spent_on,
    wrong_bounds,
)
from floral_learn.review.questions import Question, Ranking, rank_questions, rows_like
from floral_learn.review.table import ReviewTable, is_integer, prepare
from floral_learn.review.training import (
    checked_model,
    fit_reviewed,
    reviewed_frame,
    training_frame,
    training_set,
)

# before which nobody is told to stop, and the share is hardly more than what the audit said
FIRST_ANSWERS = 20


class LabelReview(Shown):
    """Find out which labels are wrong by asking a person about a few well-chosen rows.

    Keeps a posterior over "this label is wrong" for every row, asks about the rows whose answers are expected to set
    most labels right (their own, and others that will be corrected with them), and corrects the other labels after
    every answer. One question in ten comes from a secret random order of all rows: `guarantee` rests on these alone. A
    review is a conversation, not an estimator: what it says changes with every answer, and each part is computed
    once per answer.

    Parameters
    ----------
    X : array-like, sparse matrix, frame, or list or Series of texts or pictures
        Rows: features or embeddings; of a pandas or polars frame, columns of any kind (`TableEncoder` makes the numbers
        that rows are compared by, and models are trained on the untouched frame); texts and pictures
        (`floral_learn.encoders`). For comparing rows, never for `train`, missing values stand at their column's mean,
        and dense columns are standardised, or all scaled alike where held-out models tell the given labels better so.
    y : array-like of shape (n,)
        Given labels, of any kind, which may be wrong.
    trusted : bool array-like of shape (n,), optional
        Rows whose labels are known to be right.
    groups : array-like of shape (n,), optional
        Who or what each label comes from. Once labels and answers show that groups differ, the labels of a bad one are
        suspect; until then nothing changes.
    classes : array-like, optional
        The labels that can be true, where `y` may lack some of them; by default those that occur in `y`.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, passed on to `train` times the review's own, and to what a question is worth.
    random_share : float, default=0.1
        Share of the questions that come from a secret random order of all rows, for `guarantee`; 0 for none.
    random_state : int, Generator, RandomState or None, default=None
        Anything but None makes questions repeatable and the random order predictable: `guarantee` then says that it is
        void against an attacker who knows the seed. None draws both from the system's entropy.
        Probabilities depend on the number of threads in the last digits (they agree to 1e-12).
    secret : mapping, optional
        `secret` of an earlier review of the same rows: with the same answers this one asks and says the same.

    Attributes
    ----------
    classes, given, trusted : ndarrays of shape (M,), (n,) and (n,)
        The labels that can be true, the given labels, and which of them are known to be right.
    labels : ndarray of shape (n,)
        The corrected labels: the likeliest class; the given ones as long as no answer contradicts one.
    label_probability, wrong_probability : ndarrays of shape (n, M) and (n,)
        P(true class), and P(the given label is wrong), for every row.
    wrong_share : WrongShare
        An interval for the share of wrong labels, and its estimate, the mean of `wrong_probability`; `guarantee` is
        the number that does not rest on a model.
    still_wrong : float
        How many of `labels` are expected to be wrong.
    ten_more : Expected
        How many labels the next ten answers are expected to set right, those of the ten rows included.
    should_stop : bool
        Whether that is less than one label, after twenty answers or more.
    training : DataFrame, or dict of arrays where pandas is not installed
        What to train on, a row for each: label, weight, wrong_probability (of the given label) and state ("answered",
        "corrected", "given").
    reviewers : dict of str to float
        Estimated error rate of everyone who answered.
    answers : dict of int to label
        The label on which all who were sure agree, by row; None where nobody is sure or they disagree.
    history : list of dict
        Every answer in order: row, label (None for "not sure"), reviewer, turn, drawn (from the random order).
    secret : dict
        What makes questions and the random order those of this review.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> from floral_learn import LabelReview, poison
    >>> X, y = make_moons(400, noise=0.2, random_state=0)
    >>> given = poison(X, y, attack="farthest", budget=0.2).y
    >>> review = LabelReview(X, given, random_state=0)
    >>> for _ in range(30):
    ...     rows = review.ask(1)
    ...     review.answer(rows, y[rows])
    >>> bool((review.labels != y).mean() < 0.5 * (given != y).mean())
    True
    >>> model = review.train(SVC())
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        trusted: Any = None,
        groups: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        random_share: float = 0.1,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        secret: Mapping[str, Any] | None = None,
    ) -> None:
        self.random_share, self.random_state = _checked_share(random_share), _seed_from(random_state)
        self._seed = secrets.randbits(63) if self.random_state is None else self.random_state
        self._log: list[Answer] = []
        self._appends, self._order = 0, np.zeros(0, dtype=np.intp)
        if secret is not None:
            self.random_state, self._seed = secret["random_state"], secret["seed"]
            self._order = np.array(secret["order"], dtype=np.intp)
        self._set_up(ReviewTable.read(X, y, trusted, groups, sample_weight, classes))

    # -- asking and answering ------------------------------------------------------------------------------------

    def ask(self, n: int = 1) -> np.ndarray:
        """Rows to ask about next, best first, (n,): fewer where fewer are left.

        Asking again without an answer gives the same rows.
        """
        return np.array([question.row for question in self.questions(n)], dtype=np.intp)

    def questions(self, n: int = 1) -> list[Question]:
        """The rows of `ask`, each with whether it comes from the random order."""
        if not is_integer(n) or n < 1:
            raise ValueError(f"n={n!r} must be an integer of at least 1")
        unseen = self.beliefs.free.copy()
        # `guarantee` counts rows that somebody looked at
        unseen[list(self._answers.along)] = True
        waiting = self._order[unseen[self._order]]
        kinds = [is_drawn(len(self._answers) + k, self.random_share) for k in range(min(n, len(waiting)))]
        ranked = [] if all(kinds) else self._ranked(n).rows.tolist()
        best, drawn = iter(ranked), iter(waiting.tolist())
        chosen: dict[int, bool] = {}
        for at_random in kinds:
            first, then = (drawn, best) if at_random else (best, drawn)
            row = next((r for r in first if r not in chosen), None)
            if row is None:
                chosen[next(r for r in then if r not in chosen)] = not at_random
            else:
                chosen[row] = at_random
        return [Question(row, at_random) for row, at_random in chosen.items()]

    def related(self, row: int) -> int:
        """About how many other rows an answer about `row` tells, too."""
        return rows_like(self.beliefs.posterior, row, self._data.pool)

    def nearest(self, row: int, n: int = 5, *, nearer: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
        """The `n` rows most like `row` by all columns, nearest first, and whether each is nearly the same.

        Nearly the same are rows within `nearer` of the typical distance to the nearest one: one answer may do for them.
        """
        return self.table.likeness.nearest(row, n, nearer)

    def answer(self, rows: Any, labels: Any, *, reviewer: str = "reviewer", along: Any = ()) -> None:
        """Take in the true labels of `rows`.

        Parameters
        ----------
        rows : int or sequence of int
            Row numbers, usually from `ask`; any row may be answered.
        labels : label or sequence of labels
            One of `classes` per row; None where the person is not sure.
        reviewer : str
            Who answers. A later answer of the same reviewer replaces the former; those of others are further votes.
        along : sequence of int
            Further rows, nearly the same as the one of `rows`, for which its answer holds, too (`nearest`). All count
            as one answer: estimates learn from the row that was looked at, and to `guarantee` a row counts once it
            comes up in the random order and is answered itself, so that rows made to look alike cannot fool it.
        """
        if not isinstance(reviewer, str) or not reviewer:
            raise ValueError(f"reviewer={reviewer!r} must be a name that is not empty")
        numbers, codes = checked_answers(rows, labels, len(self.given), self.classes)
        if not numbers:
            return
        every = [*numbers, *along]
        every, _ = checked_answers(every, [None] * len(every), len(self.given), self.classes)
        if len(every) > len(numbers) > 1:
            raise ValueError(f"along names rows that are like the one of rows, which has {len(numbers)}")
        turn = self._log[-1].turn + 1 if self._log else 1
        reached = set(self._drawn({*self._answers.rows.tolist(), *numbers}))
        self._log += [
            Answer(row, code, reviewer, turn, row in reached) for row, code in zip(numbers, codes, strict=True)
        ]
        # never drawn: whoever made these rows look alike could have known which one would be looked at
        self._log += [Answer(row, codes[0], reviewer, turn, False, numbers[0]) for row in every[len(numbers) :]]
        self._forget()

    def undo(self) -> list[int]:
        """Take back the latest call of `answer`; returns its rows."""
        if not self._log:
            raise ValueError("there is no answer to undo")
        turn = self._log[-1].turn
        rows = [a.row for a in self._log if a.turn == turn]
        self._log = [a for a in self._log if a.turn != turn]
        self._forget()
        return rows

    @property
    def history(self) -> list[dict[str, Any]]:
        """Every answer in order: row, label (None for "not sure"), reviewer, turn, drawn (from the random order),
        along (the row that was looked at in its place, or None)."""
        names = self.classes.tolist()
        labels = [None if a.code is None else names[a.code] for a in self._log]
        return [
            {"row": a.row, "label": label, "reviewer": a.reviewer, "turn": a.turn, "drawn": a.drawn, "along": a.along}
            for a, label in zip(self._log, labels, strict=True)
        ]

    # -- what is known now -----------------------------------------------------------------------------------------

    @property
    def labels(self) -> np.ndarray:
        """The corrected labels, (n,)."""
        return self.classes[self.beliefs.labels]

    @property
    def label_probability(self) -> np.ndarray:
        """P(true class), for every row, (n, M)."""
        return self.beliefs.label_probability

    @property
    def wrong_probability(self) -> np.ndarray:
        """P(the given label is wrong), for every row, (n,)."""
        return self.beliefs.wrong

    @property
    def wrong_share(self) -> WrongShare:
        """The share of wrong labels: an interval of about 90 %, and its estimate."""
        beliefs, n = self.beliefs, len(self.given)
        estimate, told = float(beliefs.wrong.mean()), float(beliefs.wrong[~beliefs.free].sum())
        chance = beliefs.posterior.probability(np.flatnonzero(beliefs.free))
        low, high = (total / n for total in beliefs.calibration.interval(chance, told))
        known = len(self._answers) + int(self.trusted.sum()) >= min(FIRST_ANSWERS, n)
        return WrongShare(estimate, *widened(estimate, low, high), known)

    @property
    def still_wrong(self) -> float:
        """How many of `labels` are expected to be wrong."""
        belief = self.beliefs.label_probability
        return float((1.0 - belief[np.arange(len(belief)), self.beliefs.labels]).sum())

    @property
    def ten_more(self) -> Expected:
        """How many labels the next ten answers are expected to set right."""
        return self._ranked(10).expected(10)

    @property
    def should_stop(self) -> bool:
        """Whether ten more answers are expected to set less than one label right, after twenty answers or more."""
        if not self.beliefs.free.any():
            return True
        return len(self._answers) >= FIRST_ANSWERS and self.ten_more.labels < 1

    @property
    def reviewers(self) -> dict[str, float]:
        """Estimated error rate of everyone who answered."""
        return dict(self.beliefs.answers.errors)

    @property
    def answers(self) -> dict[int, Any]:
        """The label on which all who were sure agree, by row; None where nobody is sure or they disagree."""
        names = self.classes.tolist()
        return {row: None if code is None else names[code] for row, code in self._answers.agreed.items()}

    def guarantee(self, *, confidence: float = 0.95, reviewer: str | None = None) -> Guarantee:
        """An interval for the share of labels that the reviewer would change, which no attacker can influence.

        Rests on the random order alone, which is secret and was drawn after the labels were fixed. The rows at its
        start that have all been answered are a random sample without replacement; the interval holds at every moment,
        so one may look after each answer and stop at will. "Not sure" counts as right in the lower end and as wrong in
        the upper one, and so do rows on which reviewers disagree.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability with which the interval holds at all moments, over all calls of `append`.
        reviewer : str, optional
            Whose answers count; None takes everyone's.
        """
        _check_confidence(confidence)
        answers = self._answers
        if reviewer is not None:
            if reviewer not in answers.errors:
                raise ValueError(f"reviewer={reviewer!r} has given no answer")
            own = [answer for answer in self._log if answer.reviewer == reviewer]
            answers = Answers.from_log(own, len(self.classes))
        given = self.table.codes
        rows = self._drawn(answers.rows.tolist())
        codes = [(row, answers.agreed.get(row, int(given[row]))) for row in rows]
        unsure = np.array([code is None for _, code in codes], dtype=bool)
        wrong = np.array([code is not None and code != given[row] for row, code in codes], dtype=bool)
        total = len(self._order)
        low, high = wrong_bounds(total, wrong, spent_on(1 - confidence, self._appends), unsure)
        return Guarantee(
            low=low / total,
            high=high / total,
            checked=len(codes),
            wrong=int(wrong.sum()),
            unsure=int(unsure.sum()),
            total=total,
            confidence=confidence,
            valid=self.random_state is None,
        )

    # -- what comes out --------------------------------------------------------------------------------------------

    @property
    def training(self) -> Any:
        """What to train on: label, weight, wrong_probability and state of each row."""
        return training_frame(self.table, self.beliefs)

    def to_frame(self) -> Any:
        """Every row's given and corrected label, P(wrong), P(each class) and state, as a frame like `X`."""
        return reviewed_frame(self.table, self.beliefs)

    def train(self, estimator: Any, *, weighted: bool = True) -> Any:
        """A clone of `estimator` fitted on the labels as they are now.

        As long as no answer contradicts a label, it is the plain fit. Answered and trusted rows are ``trusted`` where
        fit takes that; a FLORAL ``budget`` that still has its default becomes the expected share of wrong labels among
        those trained on, where that is less.

        Parameters
        ----------
        estimator : classifier
            Not fitted; pipelines get their rows as they were given.
        weighted : bool, default=True
            Whether rows in doubt weigh less, where fit takes ``sample_weight``: the weights of `training`.
        """
        checked_model(estimator, "estimator")
        codes = np.unique(training_set(self.beliefs)[0])
        if len(codes) < 2:
            words = f"every label is read as {self.classes[codes[0]]!s}"
            raise ValueError(f"training needs two classes, and {words}; answer other rows first")
        return fit_reviewed(estimator, self.table, self.beliefs, weighted=weighted)

    def append(self, X: Any, y: Any, *, trusted: Any = None, groups: Any = None, sample_weight: Any = None) -> None:
        """Add rows with their given labels; answers stay, and the random order takes new rows in at random places.

        `guarantee` goes on to hold at its confidence, over all calls together: each makes it a little wider.
        """
        self._set_up(self.table.with_more(X, y, trusted, groups, sample_weight))
        self._appends += 1

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the review, with its rows and the secret order, to a skops file: whole or not at all."""
        write_atomically(path, archive_bytes("review", self.state()))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, max_bytes: int = MOST_BYTES) -> LabelReview:
        """Read a review that `save` wrote; any other file, or one that unpacks to more bytes, is a ModelFileError."""
        state = read_archive(path, "review", max_bytes=max_bytes)
        try:
            return cls._from_state(state)
        except KeyError as error:
            raise ModelFileError(f"{path} is damaged: it has no {error.args[0]}") from error
        except MemoryError as error:
            raise ModelFileError(f"{path} needs more memory than there is") from error
        except Exception as error:  # what no review would have taken
            raise ModelFileError(f"{path} is damaged: {error}") from error

    def state(self) -> dict[str, Any]:
        """What `save` writes: arrays and plain values."""
        log = [[a.row, a.code, a.reviewer, a.turn, a.drawn, a.along] for a in self._log]
        own = {"random_share": self.random_share, "random_state": self.random_state}
        counts = {"seed": self._seed, "appends": self._appends, "order": self._order}
        return {**self.table.state(), **own, **counts, "log": log}

    @property
    def secret(self) -> dict[str, Any]:
        """What makes questions and the random order those of this review, where the rows are kept elsewhere."""
        return {"order": self._order.tolist(), "seed": self._seed, "random_state": self.random_state}

    # -- inside ----------------------------------------------------------------------------------------------------

    def _set_up(self, table: ReviewTable) -> None:
        """Compute what does not depend on answers, and only then take the table over."""
        self._data = prepare(table, self._seed)
        self.table, self.given, self.classes, self.trusted = table, table.given, table.classes, table.trusted
        self._order = random_order(len(table.given), self.random_state, self._order)
        self._forget()

    def _forget(self) -> None:
        """Drop what followed from the answers."""
        self._answers = Answers.from_log(self._log, len(self.classes))
        self.beliefs = Beliefs(self._data, self._answers)
        self._ranking: Ranking | None = None

    def _drawn(self, answered: Iterable[int]) -> list[int]:
        """The rows at the start of the random order that are all answered or trusted."""
        return answered_start(self._order, {*answered, *np.flatnonzero(self.trusted).tolist()})

    def _ranked(self, n: int) -> Ranking:
        """The best rows to ask about, at least ten and at least n if the pool has as many."""
        if self._ranking is None or len(self._ranking.rows) < n:
            rng = np.random.default_rng([self._seed, len(self._log)])
            self._ranking = rank_questions(self.beliefs, self.table.weight, max(n, 10), rng)
        return self._ranking

    def _facts(self) -> dict[str, str]:
        facts = {"rows": f"{len(self.given):,}, {len(self.classes)} classes", "answers": f"{len(self.answers):,}"}
        if not self.answers:
            return facts
        return facts | {
            "labels changed so far": f"{int(np.sum(self.labels != self.given)):,}",
            "wrong labels": str(self.wrong_share),
            "ten more answers set right": f"{self.ten_more.labels:.1f} labels",
            "guaranteed": str(self.guarantee()),
        }

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> LabelReview:
        review, table = cls.__new__(cls), ReviewTable.from_state(state)
        review.random_share = _checked_share(state["random_share"])
        review.random_state, review._seed = _seed_from(state["random_state"]), int(state["seed"])
        review._appends, review._order = int(state["appends"]), state["order"].astype(np.intp)
        review._log = read_log(state["log"], len(table.given), len(table.classes))
        if len(review._order) != len(table.given):
            raise ValueError("the order of rows is not of these rows")
        review._set_up(table)  # which keeps the order
        return review


def _checked_share(random_share: Any) -> float:
    if not isinstance(random_share, int | float | np.number) or not 0.0 <= random_share <= 1.0:
        raise ValueError(f"random_share={random_share!r} must be a number from 0 to 1")
    return float(random_share)


def _seed_from(random_state: Any) -> int | None:
    """An integer that stands for `random_state`, or None for the system's entropy."""
    if random_state is None:
        return None
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63 - 1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if is_integer(random_state) and random_state >= 0:
        return int(random_state)
    raise ValueError(
        f"random_state={random_state!r} must be an integer that is not negative, a Generator, a RandomState or None"
    )


def _check_confidence(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence={confidence!r} must lie between 0 and 1")
