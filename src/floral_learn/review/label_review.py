"""LabelReview: a person answers a few questions, and the other labels are corrected from the answers."""

from __future__ import annotations

import copy
import math
import os
import secrets
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_consistent_length

from floral_learn.base import Shown
from floral_learn.base.frames import frame_from_parts, frame_parts, is_frame
from floral_learn.base.rows import read_rows, stack_rows
from floral_learn.encoders import encoder_for
from floral_learn.labels.evidence import judge_labels
from floral_learn.review import saving
from floral_learn.review.answers import UNSURE, Answer, Answers, checked_answers
from floral_learn.review.beliefs import Beliefs, ReviewData
from floral_learn.review.guarantee import (
    Accuracy,
    Guarantee,
    answered_start,
    counted_accuracy,
    is_drawn,
    random_order,
    wrong_bounds,
)
from floral_learn.review.posterior import Problem
from floral_learn.review.questions import ask_settling, look_along, pool_of
from floral_learn.review.rows import (
    bytes_per_row,
    checked_column,
    compared_rows,
    encoded_labels,
    is_integer,
    own_scores,
    values_at_a_time,
)
from floral_learn.review.training import (
    Choice,
    checked_model,
    fit_or_constant,
    fit_reviewed,
    misread_among,
    training_set,
)
from floral_learn.review.wrong_share import FIRST_ANSWERS, WrongShare, enough_answers, estimated_share

_REVIEWER = "reviewer"
_FEW = 0.1  # drawn rows from which accuracy is counted in parts, as a share of all
_LITTLE = 0.0002  # stop where an answer is expected to settle less than one label in 5,000


class LabelReview(Shown):
    """Find out which labels are wrong by asking a person about a few well-chosen rows.

    Keeps a posterior over "this label is wrong" for every row, asks about the rows whose true label would settle most
    of what is in doubt, and corrects the other labels after every answer. Three questions in ten come from a secret
    random order of all rows: `guarantee` rests on these alone. A review is a conversation, not an estimator: what it
    says changes with every answer, and each part is computed once per answer.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n, d)
        Rows: features or embeddings; of a pandas or polars frame, columns of any kind (`TableEncoder` makes the numbers
        that rows are compared by, and models are trained on the untouched frame). For comparing rows, never for
        `train`, holes stand at their column's mean, and dense columns are standardised, or all scaled alike where
        held-out models tell the given labels better so (principal components, pixels).
    y : array-like of shape (n,)
        Given labels, of any kind, which may be wrong.
    trusted : bool array-like of shape (n,), optional
        Rows whose labels are known to be right.
    groups : array-like of shape (n,), optional
        Who or what each label comes from. A group whose labels do not fit the rest, or that answers catch with wrong
        labels, makes its other labels suspect; it is judged as the annotators of a crowd are.
    classes : array-like, optional
        The labels that can be true, where `y` may lack some of them; by default those that occur in `y`.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, passed on to `train` times the review's own, and to what a question is worth.
    random_share : float, default=0.3
        Share of the questions that come from a secret random order of all rows.
    max_memory : str or float, default="4GB"
        Most memory that the review takes beside `X` itself, in bytes or as text such as "500MB". Less is slower at
        most; a review whose rows alone would take more is refused. A classifier that `train` fits takes its own.
    random_state : int, Generator, RandomState or None, default=None
        Anything but None makes questions repeatable and the random order predictable: `guarantee` then says that it is
        void against an attacker who knows the seed. None draws both from the system's entropy.
        Probabilities depend on the number of threads in the last digits (they agree to 1e-12).

    Attributes
    ----------
    classes : ndarray of shape (M,)
        The labels that occur.
    labels : ndarray of shape (n,)
        The corrected labels; the given ones as long as there are neither answers nor groups.
    label_probability : ndarray of shape (n, M)
        P(true class), for every row.
    wrong_probability : ndarray of shape (n,)
        P(the given label is wrong), for every row.
    wrong_share : WrongShare
        The model's estimate of the share of wrong labels, once there are some twenty answers; `guarantee` is the number
        that does not rest on a model.
    training_labels, training_weights : ndarray of shape (n,)
        What `train` trains on, for models that are trained elsewhere.
    reviewers : dict of str to float
        Estimated error rate of everyone who answered.
    history : list of dict
        Every answer in order: row, label (None for "not sure"), reviewer, turn, drawn (from the random order).
    should_stop : bool
        Whether ten more answers would settle less than one label in 500, after twenty answers or more.

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

    _looks = 0  # first questions of the review's own choice that look along the scores
    _asking: tuple[np.ndarray, float] | None
    _share: WrongShare | None

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        trusted: Any = None,
        groups: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        random_share: float = 0.3,
        max_memory: str | float = "4GB",
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> None:
        if not isinstance(random_share, int | float | np.number) or not 0.0 <= random_share <= 1.0:
            raise ValueError(f"random_share={random_share!r} must be a number from 0 to 1")
        self.random_share, self.max_memory = float(random_share), max_memory
        self.random_state = _seed_from(random_state)
        self._seed = secrets.randbits(63) if self.random_state is None else self.random_state
        self._log: list[Answer] = []
        self._turn = 0
        self._order = np.zeros(0, dtype=np.intp)
        self._set_up(X, y, trusted, groups, sample_weight, classes)

    # -- asking and answering ------------------------------------------------------------------------------------

    def ask(self, n: int = 1) -> np.ndarray:
        """Rows to ask about next, best first, (n,): fewer where fewer are left.

        Asking again without an answer gives the same rows.
        """
        if not is_integer(n) or n < 1:
            raise ValueError(f"n={n!r} must be an integer of at least 1")
        return np.array([row for row, _ in self._next_rows(n)], dtype=np.intp)

    def _next_rows(self, n: int) -> list[tuple[int, bool]]:
        """Rows to ask about next, best first, each with whether it comes from the random order."""
        waiting = self._order[self._beliefs.free[self._order]]
        kinds = [is_drawn(len(self._answers) + k, self.random_share) for k in range(min(n, len(waiting)))]
        settling = iter(()) if all(kinds) else iter(self._settling(len(kinds))[0].tolist())
        drawn = iter(waiting.tolist())
        chosen: dict[int, bool] = {}
        for at_random in kinds:
            first, then = (drawn, settling) if at_random else (settling, drawn)
            row = next((r for r in first if r not in chosen), None)
            if row is None:
                chosen[next(r for r in then if r not in chosen)] = not at_random
            else:
                chosen[row] = at_random
        return list(chosen.items())

    def _rows_like(self, row: int) -> int:
        """About how many other rows an answer about `row` tells, too: squared correlations of their fields, summed."""
        posterior = self._beliefs.posterior.thinned()
        here, there = posterior.seen_from(np.array([row])), posterior.seen_from(self._pool)
        shared = posterior.covariance(here, there)[:, 0] ** 2 / (here.variance * there.variance)
        return round(float((posterior.weights @ np.minimum(shared, 1.0)).mean()) * (len(self.given) - 1))

    def answer(self, rows: Any, labels: Any, *, reviewer: str = _REVIEWER) -> None:
        """Take in the true labels of `rows`.

        Parameters
        ----------
        rows : int or sequence of int
            Row numbers, usually from `ask`; any row may be answered.
        labels : label or sequence of labels
            One of `classes` per row; None where the person is not sure.
        reviewer : str
            Who answers. A later answer of the same reviewer replaces the former; those of others are further votes.
        """
        if not isinstance(reviewer, str) or not reviewer:
            raise ValueError(f"reviewer={reviewer!r} must be a name that is not empty")
        numbers, codes = checked_answers(rows, labels, len(self.given), self.classes)
        if not numbers:
            return
        self._turn += 1
        reached = set(self._drawn({**self._answers.votes, **dict.fromkeys(numbers)}))
        self._log += [
            Answer(row, code, reviewer, self._turn, row in reached) for row, code in zip(numbers, codes, strict=True)
        ]
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
        """Every answer in order: row, label (None for "not sure"), reviewer, turn, drawn (from the random order)."""
        names = self.classes.tolist()
        labels = [None if a.code == UNSURE else names[a.code] for a in self._log]
        return [
            {"row": a.row, "label": label, "reviewer": a.reviewer, "turn": a.turn, "drawn": a.drawn}
            for a, label in zip(self._log, labels, strict=True)
        ]

    # -- what is known now -----------------------------------------------------------------------------------------

    @property
    def labels(self) -> np.ndarray:
        """The corrected labels, (n,)."""
        return self.classes[self._beliefs.labels]

    @property
    def label_probability(self) -> np.ndarray:
        """P(true class), for every row, (n, M)."""
        return self._beliefs.label_probability

    @property
    def wrong_probability(self) -> np.ndarray:
        """P(the given label is wrong), for every row, (n,)."""
        return 1.0 - self.label_probability[np.arange(len(self.given)), self._data.codes]

    @property
    def wrong_share(self) -> WrongShare:
        """The share of wrong labels with an interval of about 90 %; `known` is False before twenty answers."""
        if self._share is None:
            sure = self.guarantee(confidence=0.9)
            answered = len(self._answers) + int(self.trusted.sum())
            if enough_answers(answered, sure.checked, len(self.given)):
                drawn = {a.row for a in self._log if a.drawn}
                self._share = estimated_share(self._beliefs, self.wrong_probability, drawn)
            else:
                self._share = WrongShare(math.nan, sure.low, sure.high, known=False)
        return self._share

    @property
    def training_labels(self) -> np.ndarray:
        """Labels to train a model on now, (n,): those that `train` uses.

        `labels`, once an answer contradicts a given label and corrections would have been right on the answered rows;
        before that the given ones, and the answers.
        """
        return self.classes[self._training[0]]

    @property
    def training_weights(self) -> np.ndarray:
        """Weights to train a model with now, (n,): those that `train` uses."""
        return self._weight * self._training[1]

    @property
    def reviewers(self) -> dict[str, float]:
        """Estimated error rate of everyone who answered."""
        return dict(self._beliefs.answers.errors)

    @property
    def should_stop(self) -> bool:
        """Whether ten more answers would settle less than one label in 500, after twenty answers or more."""
        if not self._beliefs.free.any():
            return True
        return len(self._answers) >= FIRST_ANSWERS and bool(self._settling(1)[1] < _LITTLE)

    def guarantee(self, *, confidence: float = 0.95, reviewer: str | None = None) -> Guarantee:
        """An interval for the share of labels that the reviewer would change, which no attacker can influence.

        Rests on the random order alone, which is secret and was drawn after the labels were fixed. The rows at its
        start that have all been answered are a random sample without replacement; the interval holds at every moment,
        so one may look after each answer and stop at will. "Not sure" counts as right in the lower end and as wrong in
        the upper one, and so do rows on which reviewers disagree.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability with which the interval holds at all moments.
        reviewer : str, optional
            Whose answers count; None takes everyone's.
        """
        _check_confidence(confidence)
        answers = self._answers
        if reviewer is not None:
            if reviewer not in answers.errors:
                raise ValueError(f"reviewer={reviewer!r} has given no answer")
            answers = Answers.from_log((a for a in self._log if a.reviewer == reviewer), len(self.classes))
        given = self._data.codes
        codes = [(row, answers.agreed.get(row, int(given[row]))) for row in self._drawn(answers.votes)]
        unsure = [code is None for _, code in codes]
        wrong = [code is not None and code != given[row] for row, code in codes]
        total = len(self._order)
        low, high = wrong_bounds(total, np.array(wrong, bool), 1 - confidence, np.array(unsure, bool))
        share = 1 / max(1, total)
        valid = self.random_state is None
        return Guarantee(
            low * share, high * share, len(wrong), sum(wrong), sum(unsure), total, confidence, valid
        )  # fmt: skip

    # -- using it --------------------------------------------------------------------------------------------------

    def train(self, estimator: Any, *, weighted: bool = True) -> Any:
        """A fitted clone of any scikit-learn classifier, trained on the labels that the answers confirm or correct.

        As long as no answer contradicts a label, this is a plain fit. After that rows in doubt weigh less, and labels
        are corrected, if such corrections would have been right on the answered rows, each held out in turn. Answered
        and trusted rows are ``trusted`` where fit takes that; a FLORAL ``budget`` that still
        has its default becomes the expected share of wrong labels among those trained on, where that is less.
        `groups` are evidence of their own, and need no answers.

        Parameters
        ----------
        estimator : classifier
            Not fitted; pipelines get their rows as they were given.
        weighted : bool, default=True
            Whether rows in doubt weigh less, where fit takes ``sample_weight``: `training_weights`.
        """
        if weighted not in (True, False):
            raise ValueError(f"weighted={weighted!r} must be True or False")
        checked_model(estimator, "estimator")
        if len(read := np.unique(self.training_labels)) < 2:
            words = f"every label is read as {read[0]!s}"
            raise ValueError(f"training needs two classes, and {words}; answer other rows first")
        return self._train_on(estimator, np.arange(len(self.given)), weighted=weighted)

    def accuracy(self, estimator: Any, *, confidence: float = 0.95, reviewed: bool = True) -> Accuracy:
        """An interval for the accuracy of `train(estimator)` on rows like these, counted on rows kept out of it.

        With ``reviewed=False``, for the same model trained on the labels as given.

        The answered rows at the start of the random order are a random sample. A clone is trained without them and
        without what their answers say about other rows, and tried on them; where they are more than a tenth of all
        rows, five clones are, each without a fifth of them. "Not sure" counts as a miss below and as a hit above. Exact
        for one look (Clopper and Pearson). Which other rows were asked may still depend on these answers.
        """
        _check_confidence(confidence)
        checked_model(estimator, "estimator")
        agreed = self._answers.agreed
        drawn = [row for row in self._drawn(agreed) if row in agreed]
        if not drawn:
            raise ValueError("accuracy needs answers to rows drawn at random: answer what ask() gives, at least four")
        parts = 1 if len(drawn) <= _FEW * len(self.given) else min(5, len(drawn))
        hits: list[bool | None] = []
        for rows in (drawn[k::parts] for k in range(parts)):
            blind = copy.copy(self)
            blind._log = [a for a in self._log if a.row not in set(rows)]
            blind._forget()
            train = np.setdiff1d(np.arange(len(self.given)), rows)
            if reviewed:
                model = blind._train_on(estimator, train)
            else:
                model = fit_or_constant(clone(estimator), self._rows.take(train), self.given[train])
            guess = model.predict(self._rows.take(rows))
            for row, label in zip(rows, guess, strict=True):
                code = agreed[row]
                hits.append(None if code is None else bool(label == self.classes[code]))
        return counted_accuracy(hits, confidence)

    def choose(
        self, candidates: Mapping[str, Any] | Sequence[Any], *, folds: int = 5, confidence: float = 0.95
    ) -> Choice:
        """Compare settings by answers about rows on which they disagree; the first is the default.

        Parameters
        ----------
        candidates : sequence or mapping of name to classifier
            Not fitted, at least two: other budgets, C, gamma.
        folds : int, default=5
            Each candidate is cross-fitted, so that no row is judged by a model that saw it.
        confidence : float, default=0.95
            Another than the first is chosen only if it is better with this confidence, at whatever moment one looks.

        Returns
        -------
        Choice
            ``choice.ask(n)`` names rows, ``review.answer`` takes their labels, ``choice.name`` and
            ``choice.estimator`` say which candidate to use now.
        """
        if isinstance(candidates, str) or not isinstance(candidates, Mapping | Sequence):
            raise ValueError(
                f"candidates={candidates!r} must be a list of classifiers, or a dict of name to classifier"
            )
        named = candidates if isinstance(candidates, Mapping) else {str(c): c for c in candidates}
        if len(named) < 2:
            raise ValueError(f"candidates names {len(named)} different settings; give at least two")
        for model in named.values():
            checked_model(model, "candidates")
        if not is_integer(folds) or folds < 2:
            raise ValueError(f"folds={folds!r} must be an integer of at least 2")
        _check_confidence(confidence)
        rng = np.random.default_rng(self._seed + 1 if self.random_state is not None else None)
        return Choice(self, named, folds, rng, 1 - confidence)

    def append(self, X: Any, y: Any, *, trusted: Any = None, groups: Any = None, sample_weight: Any = None) -> None:
        """Add rows with their given labels; answers stay, and the random order takes new rows in at random places."""
        as_given = is_frame(X) or encoder_for(X) is not None
        more = X if as_given else read_rows(X, allow_nan=True).numbers
        self._extend(stack_rows(self._rows.given, more), y, trusted, groups, sample_weight)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the review, with its rows and the secret order, to a skops file: whole or not at all."""
        saving.write(path, self._state())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, max_bytes: int = saving.MOST_BYTES) -> LabelReview:
        """Read a review that `save` wrote; any other file, or one that unpacks to more bytes, is a ModelFileError."""
        return saving.read(path, cls._from_state, max_bytes)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _set_up(self, X: Any, y: Any, trusted: Any, groups: Any, sample_weight: Any, classes: Any) -> None:
        """Check everything, compute what does not depend on answers, and only then take it over."""
        given = read_rows(X, allow_nan=True, min_rows=2, encoder=encoder_for(X), y=y)
        X, y = given.numbers, np.asarray(y)
        known, codes = encoded_labels(y, classes)
        check_consistent_length(X, y)
        if not sparse.issparse(X) and np.isnan(X).all():
            raise ValueError("X holds missing values only")
        n, M = len(y), len(known)
        trusted = checked_column(trusted, n, "trusted", bool)
        groups = None if groups is None else checked_column(groups, n, "groups", None)
        weight = checked_column(sample_weight, n, "sample_weight", float)
        at_a_time = values_at_a_time(self.max_memory, n, bytes_per_row(X), M)
        rng = np.random.default_rng(self._seed)
        scale_rng = np.random.default_rng([self._seed, 1])
        rows = compared_rows(X, codes, M, at_a_time, scale_rng)
        proba = np.zeros((n, M))
        present = np.unique(codes)
        # Labels of one class leave nothing to judge: each is as probable as can be.
        proba[:, present] = 1.0 if len(present) < 2 else judge_labels(given, codes, random_state=rng).probability
        own = np.clip(proba[np.arange(n), codes], 1e-9, 1 - 1e-9)
        against = np.clip(np.log1p(-own) - np.log(own), -4, 4)
        problem = Problem(rows, codes, M, against, scores=self._scores(X, codes, M))
        numbers = None if groups is None else np.unique(groups, return_inverse=True)[1]
        self._data = ReviewData(problem, proba, trusted, numbers)
        self._pool = pool_of(n, rng)
        self._rows, self.given, self.classes = given, y, known
        self.trusted, self._groups, self._weight = trusted, groups, weight
        self._order = random_order(n, self.random_state, self._order)
        self._forget()

    def _extend(self, X: Any, y: Any, trusted: Any, groups: Any, sample_weight: Any) -> None:
        """Set up again with more rows: `X` has all of them, the rest is that of the new ones."""
        if (groups is None) != (self._groups is None):
            raise ValueError("groups must be given for the new rows exactly if the review has them")
        y, count = np.asarray(y), X.shape[0] - len(self.given)
        if len(y) != count:
            raise ValueError(f"X has {count} new rows and y has {len(y)} labels; they must match")
        unknown = sorted({str(v) for v in y.tolist()} - {str(c) for c in self.classes.tolist()})
        if unknown:
            raise ValueError(f"y holds labels that the review does not know: {', '.join(unknown)}")
        self._set_up(
            X,
            np.concatenate([self.given, y]),
            np.concatenate([self.trusted, checked_column(trusted, count, "trusted", bool)]),
            None if groups is None else np.concatenate([self._groups, checked_column(groups, count, "groups", None)]),
            np.concatenate([self._weight, checked_column(sample_weight, count, "sample_weight", float)]),
            self.classes,
        )

    def _scores(self, X: Any, codes: np.ndarray, n_classes: int) -> np.ndarray:
        """Places (n,) of the rows on which regions may lie: what a held-out model thinks of the given labels."""
        return own_scores(X, codes, n_classes, np.random.default_rng([self._seed, 2]))

    def _forget(self) -> None:
        """Drop what followed from the answers."""
        self._answers = Answers.from_log(self._log, len(self.classes))
        self._beliefs = Beliefs(self._data, self._answers)
        self._asking = self._share = None
        self.__dict__.pop("_training", None)

    def _drawn(self, answered: Mapping[int, Any]) -> list[int]:
        """The rows at the start of the random order that are all answered or trusted."""
        if not self.trusted.any():
            return answered_start(self._order, answered)
        return answered_start(self._order, answered.keys() | set(np.flatnonzero(self.trusted).tolist()))

    def _settling(self, n: int) -> tuple[np.ndarray, float]:
        """At least n rows to ask about, if there are as many in the pool, and what the first is expected to settle."""
        if self._asking is None or len(self._asking[0]) < n:
            rng = np.random.default_rng([self._seed, len(self._log)])
            beliefs = self._beliefs
            free = self._pool[beliefs.free[self._pool]]
            misread = np.zeros(len(self.given))
            misread[self._pool] = misread_among(beliefs, self._pool)
            rows, gain = ask_settling(beliefs.posterior, free, self._pool, misread, self._weight, n, rng)
            # Where there are looks to come, the first questions go along the scores: a stretch that was turned over is
            # seen before it is suspected.
            looked = len({a.row for a in self._log if not a.drawn})
            if looked < self._looks:
                scores, more = beliefs.data.problem.scores, min(n, self._looks - looked)
                first = look_along(scores, beliefs.free, looked, more, self._seed)
                rows = np.concatenate([first, rows[~np.isin(rows, first)]])
            self._asking = rows, gain
        return self._asking

    @cached_property
    def _training(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Class numbers and weights that `train` trains with, and P(wrong) of these labels, three arrays (n,)."""
        return training_set(self._beliefs)

    def _train_on(self, estimator: Any, train: np.ndarray, *, weighted: bool = True) -> Any:
        codes, _, wrong = self._training
        weights = self.training_weights if weighted else self._weight
        return fit_reviewed(
            estimator,
            self._rows.take(train),
            self.classes[codes[train]],
            weights[train],
            self._beliefs.known[train],
            float(wrong[train].mean()),
        )

    def _facts(self) -> dict[str, str]:
        answered = len(self._answers)
        facts = {"rows": f"{len(self.given):,}, {len(self.classes)} classes", "answers": f"{answered:,}"}
        if not answered:
            return facts
        return facts | {
            "labels changed so far": f"{int(np.sum(self.labels != self.given)):,}",
            "wrong labels, estimated": str(self.wrong_share),
            "guaranteed": str(self.guarantee()),
        }

    def _state(self) -> dict[str, Any]:
        return {
            "X": self._rows.numbers,
            "frame": frame_parts(self._rows.given) if is_frame(self._rows.given) else None,
            "y": self.given,
            "classes": self.classes,
            "trusted": self.trusted,
            "groups": self._groups,
            "sample_weight": self._weight,
            "order": self._order,
            "random_share": self.random_share,
            "max_memory": self.max_memory,
            "random_state": self.random_state,
            "seed": self._seed,
            "turn": self._turn,
            "log": [[a.row, a.code, a.reviewer, a.turn, a.drawn] for a in self._log],
        }

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Any:
        review = cls.__new__(cls)
        for name in ("random_share", "random_state", "max_memory"):
            setattr(review, name, state[name])
        review._seed, review._turn = state["seed"], state["turn"]
        review._log = [Answer(*entry) for entry in state["log"]]
        review._order = state["order"]  # of as many rows: setting up keeps it
        review._restore(state)
        rows = state["X"] if state.get("frame") is None else frame_from_parts(state["frame"])
        review._set_up(rows, *(state[name] for name in ("y", "trusted", "groups", "sample_weight", "classes")))
        return review

    def _secret(self) -> dict[str, Any]:
        """What makes questions and the random order those of this review, where the rows are kept elsewhere."""
        return {"order": self._order.tolist(), "seed": self._seed, "random_state": self.random_state}

    def _keep_secret(self, secret: Mapping[str, Any]) -> None:
        """Go on with the order and seed of an earlier review of the same rows."""
        self._order, self._seed = np.array(secret["order"], dtype=np.intp), secret["seed"]
        self._forget()

    def _restore(self, state: dict[str, Any]) -> None:
        """What a subclass has kept beside the rows, before it is set up again."""


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
