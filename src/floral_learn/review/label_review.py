"""LabelReview: a person answers a few questions, and the other labels are corrected from the answers."""

from __future__ import annotations

import copy
import math
import os
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, check_consistent_length

from floral_learn.base.shown import Shown
from floral_learn.review import saving
from floral_learn.review.answers import UNSURE, Answer, likelihoods, verdict, votes
from floral_learn.review.choosing import Choice
from floral_learn.review.guarantee import Accuracy, Guarantee, counted_accuracy, wrong_bounds
from floral_learn.review.intake import answered, checked_model, column, encoded, whole
from floral_learn.review.memory import values_at_a_time
from floral_learn.review.posterior import Posterior, Problem
from floral_learn.review.questions import ask_settling, pool_of
from floral_learn.review.read_labels import read_classes, training_weights
from floral_learn.review.reading import SETTLED, SUSPECT_GROUP, Material, borne_out, inferred, read
from floral_learn.review.rows import bytes_per_row, measured_rows
from floral_learn.review.scales import better_scale
from floral_learn.review.suspicion import appointed, suspicion
from floral_learn.review.training import fit_reviewed
from floral_learn.review.walk import drawn, on_walk, unbroken
from floral_learn.review.wrong_share import WrongShare, enough_answers, estimated_share

_REVIEWER = "reviewer"
_FEW, _PARTS = 0.1, 5  # rows on the walk from which accuracy is counted in parts, as a share of all, and how many
_DOUBTFUL = 0.7  # rows read right with less are what FLORAL's attacker may flip
_LITTLE = 0.002  # one label in five hundred


class LabelReview(Shown):
    """Find out which labels are wrong by asking a person about a few well-chosen rows.

    Keeps a posterior over "this label is wrong" for every row, asks about the rows whose true label would settle most
    of what is in doubt, and corrects the other labels after every answer. One question in four walks through all rows
    in a secret random order: `guarantee` rests on these alone.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Rows: features or embeddings. For comparing rows, never for `fit`, dense columns are standardised, or all
        scaled alike where held-out models tell the given labels better so (principal components, pixels).
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
        Weights of the rows, passed on to `fit` times the review's own, and to what a question is worth.
    walk_share : float, default=0.25
        Share of the questions that walk through all rows in a secret random order.
    max_memory : str or float, default="4GB"
        Most memory that the review takes beside `X` itself, in bytes or as text such as "500MB". Less is slower at
        most; a review whose rows alone would take more is refused. A classifier that `fit` trains takes its own.
    random_state : int or None, default=None
        A seed makes questions repeatable, and the walk predictable: `guarantee` then says that it is void against
        an attacker who knows the seed. None draws both from the system's entropy.

    Attributes
    ----------
    classes_ : ndarray of shape (M,)
        The labels that occur.
    labels_ : ndarray of shape (n,)
        Labels as they should be read now; as given as long as there are neither answers nor groups.
    training_labels_, training_weights_ : ndarray of shape (n,)
        What `fit` trains on, for models that are trained elsewhere.
    wrong_probability_ : ndarray of shape (n,)
        P(the given label is wrong), for every row.
    label_probability_ : ndarray of shape (n, M)
        P(true class), for every row.
    wrong_share_ : WrongShare
        The model's estimate of the share of wrong labels, once there are some twenty answers; `guarantee` is the number
        that does not rest on a model.
    reviewers_ : dict of str to float
        Estimated error rate of everyone who answered.
    history_ : list of dict
        Every answer in order: row, label (None for "not sure"), reviewer, turn, walk.
    should_stop_ : bool
        Whether the next ten answers are expected to settle less than one label in five hundred.

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
    >>> bool((review.labels_ != y).mean() < 0.5 * (given != y).mean())
    True
    >>> model = review.fit(SVC())
    """

    _any_scale = True  # whether rows may be compared in the scale in which they were given
    _known: Posterior | None
    _belief: np.ndarray | None
    _errors: dict[str, float]
    _asking: tuple[np.ndarray, float] | None
    _lesson: tuple[np.ndarray, np.ndarray, np.ndarray] | None

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        trusted: Any = None,
        groups: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        walk_share: float = 0.25,
        max_memory: str | float = "4GB",
        random_state: int | None = None,
    ) -> None:
        if not isinstance(walk_share, int | float | np.number) or not 0.0 <= walk_share <= 1.0:
            raise ValueError(f"walk_share={walk_share!r} must be a number from 0 to 1")
        if random_state is not None and not (whole(random_state) and random_state >= 0):
            raise ValueError(f"random_state={random_state!r} must be an integer that is not negative, or None")
        self.walk_share, self.max_memory = float(walk_share), max_memory
        self.random_state = None if random_state is None else int(random_state)
        self._seed = secrets.randbits(63) if random_state is None else int(random_state)
        self._log: list[Answer] = []
        self._turn = 0
        self._walk = np.zeros(0, dtype=np.intp)
        self._set_up(X, y, trusted, groups, sample_weight, classes)

    # -- asking and answering ------------------------------------------------------------------------------------

    def ask(self, n: int = 1) -> np.ndarray:
        """Rows to ask about next, best first, (n,): fewer where fewer are left.

        Asking again without an answer gives the same rows.
        """
        if not whole(n) or n < 1:
            raise ValueError(f"n={n!r} must be an integer of at least 1")
        waiting = self._walk[self._free()[self._walk]]
        kinds = [on_walk(len(self._votes) + k, self.walk_share) for k in range(min(n, len(waiting)))]
        active = iter(()) if all(kinds) else iter(self._settling(len(kinds))[0].tolist())
        walking, chosen = iter(waiting.tolist()), []
        for walks in kinds:
            first, then = (walking, active) if walks else (active, walking)
            row = next((r for r in first if r not in chosen), None)
            chosen.append(next(r for r in then if r not in chosen) if row is None else row)
        return np.array(chosen, dtype=np.intp)

    def answer(self, rows: Any, labels: Any, *, reviewer: str = _REVIEWER) -> None:
        """Take in the true labels of `rows`.

        Parameters
        ----------
        rows : int or sequence of int
            Row numbers, usually from `ask`; any row may be answered.
        labels : label or sequence of labels
            One of `classes_` per row; None where the person is not sure.
        reviewer : str
            Who answers. A later answer of the same reviewer replaces the former; those of others are further votes.
        """
        if not isinstance(reviewer, str) or not reviewer:
            raise ValueError(f"reviewer={reviewer!r} must be a name that is not empty")
        numbers, codes = answered(rows, labels, len(self.given), self.classes_)
        if not numbers:
            return
        self._turn += 1
        reached = set(self._prefix({**self._votes, **dict.fromkeys(numbers)}))
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

    def _facts(self) -> dict[str, str]:
        answered = len(self._asked())
        facts = {"rows": f"{len(self.given):,}, {len(self.classes_)} classes", "answers": f"{answered:,}"}
        if not answered:
            return facts
        return facts | {
            "labels changed so far": f"{int(np.sum(self.labels_ != self.given)):,}",
            "wrong labels, estimated": str(self.wrong_share_),
            "guaranteed": str(self.guarantee()),
        }

    @property
    def history_(self) -> list[dict[str, Any]]:
        """Every answer in order: row, label (None for "not sure"), reviewer, turn, walk."""
        names = self.classes_.tolist()
        labels = [None if a.code == UNSURE else names[a.code] for a in self._log]
        return [
            {"row": a.row, "label": label, "reviewer": a.reviewer, "turn": a.turn, "walk": a.walk}
            for a, label in zip(self._log, labels, strict=True)
        ]

    # -- what is known now -----------------------------------------------------------------------------------------

    @property
    def wrong_probability_(self) -> np.ndarray:
        """P(the given label is wrong), for every row, (n,)."""
        return 1.0 - self.label_probability_[np.arange(len(self.given)), self._codes]

    @property
    def label_probability_(self) -> np.ndarray:
        """P(true class), for every row, (n, M)."""
        if self._belief is None:
            posterior = self._posterior()
            self._belief = read(self._material, self._votes, posterior, self._errors)
        return self._belief

    @property
    def labels_(self) -> np.ndarray:
        """Labels as they should be read now, (n,)."""
        return self.classes_[self._read()]

    @property
    def training_labels_(self) -> np.ndarray:
        """Labels to train a model on now, (n,): those that `fit` uses.

        Like `labels_`, but with two classes a label that only other models contradict stays as given: a model that
        learns from all labels overrules it anyway, and one that is taught the correction learns the mistakes of whoever
        made it.
        """
        return self.classes_[self._training()[0]]

    @property
    def training_weights_(self) -> np.ndarray:
        """Weights to train a model with now, (n,): those that `fit` uses."""
        return self._training()[1]

    @property
    def wrong_share_(self) -> WrongShare:
        """The share of wrong labels with an interval of about 90 %; `known` is False before twenty answers."""
        sure = self.guarantee(confidence=0.9)
        answered = len(self._votes) + int(self.trusted.sum())
        if not enough_answers(answered, sure.checked, len(self.given)):
            return WrongShare(math.nan, sure.low, sure.high, known=False)
        return estimated_share(self._posterior(), self.wrong_probability_, self._pool)

    @property
    def reviewers_(self) -> dict[str, float]:
        """Estimated error rate of everyone who answered."""
        self._posterior()
        return dict(self._errors)

    @property
    def should_stop_(self) -> bool:
        """Whether the next ten answers are expected to settle less than one label in five hundred."""
        if not self._free().any():
            return True
        return len(self._votes) >= 10 and bool(10 * self._settling(1)[1] < _LITTLE)

    def guarantee(self, *, confidence: float = 0.95, reviewer: str | None = None) -> Guarantee:
        """An interval for the share of labels that the reviewer would change, which no attacker can influence.

        Rests on the walk alone: rows in a secret random order, drawn after the labels were fixed. The rows at the
        start of the walk that have all been answered are a random sample without replacement; the interval holds at
        every moment, so one may look after each answer and stop at will. "Not sure" counts as right in the lower end
        and as wrong in the upper one, and so do rows on which reviewers disagree.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability with which the interval holds at all moments.
        reviewer : str, optional
            Whose answers count; None takes everyone's.
        """
        if not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence={confidence!r} must lie between 0 and 1")
        if reviewer is not None and not any(a.reviewer == reviewer for a in self._log):
            raise ValueError(f"reviewer={reviewer!r} has given no answer")
        asked = votes(a for a in self._log if reviewer in (None, a.reviewer))
        codes = [(row, self._verdict(row, asked)) for row in self._prefix(asked)]
        unsure = [code is None for _, code in codes]
        wrong = [code is not None and code != self._codes[row] for row, code in codes]
        low, high = wrong_bounds(len(self._walk), np.array(wrong, bool), 1 - confidence, np.array(unsure, bool))
        total = max(1, len(self._walk))
        return Guarantee(
            low / total,
            high / total,
            len(wrong),
            sum(wrong),
            sum(unsure),
            len(self._walk),
            confidence,
            self.random_state is None,
        )

    # -- using it --------------------------------------------------------------------------------------------------

    def fit(self, estimator: Any) -> Any:
        """A fitted clone of any scikit-learn classifier, trained on what the answers bear out.

        Labels in regions that answers show to be turned over are corrected. A stray label that only its neighbours
        contradict stays as given (of two classes), though `labels_` may read it otherwise: most classifiers bear such
        labels better than corrections by another model. Rows in doubt weigh less where fit takes ``sample_weight``;
        answered and trusted rows are ``trusted`` where it takes that; a FLORAL ``budget`` that still has its default
        becomes the share of rows that are still in doubt (right with less than 70 %), at most 5 %. Without answers and
        groups this is a plain fit.
        """
        return self._fit_on(checked_model(estimator, "estimator"), np.arange(len(self.given)))

    def accuracy(self, estimator: Any, *, confidence: float = 0.95) -> Accuracy:
        """An interval for the accuracy of `fit(estimator)` on rows like these, counted on rows kept out of it.

        The answered rows at the start of the walk are a random sample. A clone is trained without them and without what
        their answers say about other rows, and tried on them; where they are more than a tenth of all rows, five clones
        are, each without a fifth of them. "Not sure" counts as a miss below and as a hit above. Exact for one look
        (Clopper and Pearson). Which other rows were asked may still depend on these answers.
        """
        if not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence={confidence!r} must lie between 0 and 1")
        checked_model(estimator, "estimator")
        prefix = [row for row in self._prefix(self._votes) if row in self._votes]
        if not prefix:
            raise ValueError("accuracy needs answers on the walk: answer the rows that ask() gives, at least four")
        parts = 1 if len(prefix) <= _FEW * len(self.given) else min(_PARTS, len(prefix))
        verdicts, hits = self._verdicts(), []
        for rows in (prefix[k::parts] for k in range(parts)):
            blind = copy.copy(self)
            blind._log = [a for a in self._log if a.row not in set(rows)]
            blind._forget()
            guess = blind._fit_on(estimator, np.setdiff1d(np.arange(len(self.given)), rows)).predict(self._X[rows])
            truth = [verdicts[row] for row in rows]
            hits += [None if t is None else bool(g == t) for g, t in zip(guess, truth, strict=True)]
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
            ``choice.ask(n)`` names rows, ``review.answer`` takes their labels, ``choice.name_`` and
            ``choice.estimator_`` say which candidate to use now.
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
        if not whole(folds) or folds < 2:
            raise ValueError(f"folds={folds!r} must be an integer of at least 2")
        if not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence={confidence!r} must lie between 0 and 1")
        rng = np.random.default_rng(self._seed + 1 if self.random_state is not None else None)
        return Choice(self, named, folds, rng, 1 - confidence)

    def append(self, X: Any, y: Any, *, trusted: Any = None, groups: Any = None, sample_weight: Any = None) -> None:
        """Add rows with their given labels; answers stay, and the walk takes the new rows in at random places."""
        X = check_array(X, accept_sparse="csr", dtype="numeric", input_name="X")
        if X.shape[1] != self._X.shape[1]:
            raise ValueError(f"X has {X.shape[1]} columns and the review has {self._X.shape[1]}")
        if sparse.issparse(X) != sparse.issparse(self._X):
            kinds = ["dense", "sparse"]
            raise ValueError(f"X is {kinds[sparse.issparse(X)]} and the review's rows are not; give both alike")
        if (groups is None) != (self._groups is None):
            raise ValueError("groups must be given for the new rows exactly if the review has them")
        count = X.shape[0]
        y = np.asarray(y)
        check_consistent_length(X, y)
        unknown = sorted({str(v) for v in y.tolist()} - {str(c) for c in self.classes_.tolist()})
        if unknown:
            raise ValueError(f"y holds labels that the review does not know: {', '.join(unknown)}")
        self._set_up(
            (sparse.vstack if sparse.issparse(X) else np.vstack)([self._X, X]),
            np.concatenate([self.given, y]),
            np.concatenate([self.trusted, column(trusted, count, "trusted", bool)]),
            None if groups is None else np.concatenate([self._groups, column(groups, count, "groups", None)]),
            np.concatenate([self._weight, column(sample_weight, count, "sample_weight", float)]),
            self.classes_,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the review, with its rows and the secret walk, to a skops file: whole or not at all."""
        saving.write(path, self._state())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, max_bytes: int = saving.MAX_BYTES) -> LabelReview:
        """Read a review that `save` wrote; any other file, or one that unpacks to more bytes, is a ModelFileError."""
        return saving.read(path, cls._from_state, max_bytes)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _set_up(
        self,
        X: Any,
        y: Any,
        trusted: Any,
        groups: Any,
        sample_weight: Any,
        classes: Any,
    ) -> None:
        """Check everything, compute what does not depend on answers, and only then take it over."""
        X = check_array(X, accept_sparse="csr", dtype="numeric", ensure_min_samples=2, input_name="X")
        y = np.asarray(y)
        check_consistent_length(X, y)
        known, codes = encoded(y, classes)
        n, M = len(y), len(known)
        trusted = column(trusted, n, "trusted", bool)
        groups = None if groups is None else column(groups, n, "groups", None)
        weight = column(sample_weight, n, "sample_weight", float)
        at_a_time = values_at_a_time(self.max_memory, n, bytes_per_row(X), M)
        rng = np.random.default_rng(self._seed)
        chance = np.random.default_rng([self._seed, 1])
        measured = better_scale(X, codes, M, chance) if self._any_scale else measured_rows
        rows = measured(X, at_a_time)
        judges = appointed(rows, rng)
        odds = judges.odds(codes, M)
        problem = Problem(rows, codes, M, suspicion(odds, codes)[None, :], lines=self._lines(n))
        numbers = None if groups is None else np.unique(groups, return_inverse=True)[1]
        self._material = Material(problem, judges, odds, trusted, numbers)
        self._pool = pool_of(n, rng)
        self._X, self.given, self.classes_, self._codes = X, y, known, codes
        self.trusted, self._groups, self._weight = trusted, groups, weight
        self._walk = drawn(n, self.random_state, self._walk)
        self._forget()

    def _restore(self, state: dict[str, Any]) -> None:
        """What a subclass has kept beside the rows, before it is set up again."""

    def _lines(self, n: int) -> np.ndarray | None:
        """Places (k, n) of the rows on lines on which regions may lie; None where nothing but rows is known."""
        return None

    def _forget(self) -> None:
        """Drop what followed from the answers."""
        self._votes = votes(self._log)
        self._known, self._belief, self._errors, self._asking, self._lesson = None, None, {}, None, None

    def _free(self) -> np.ndarray:
        """Rows that may still be asked about, (n,) booleans."""
        free = ~self.trusted
        free[list(self._votes)] = False
        return free

    def _prefix(self, asked: Mapping[int, Any]) -> list[int]:
        """The rows at the start of the walk that are all answered or trusted."""
        if not self.trusted.any():
            return unbroken(self._walk, asked)
        return unbroken(self._walk, asked.keys() | set(np.flatnonzero(self.trusted).tolist()))

    def _verdict(self, row: int, asked: Mapping[int, dict[str, int]]) -> int | None:
        return verdict(asked[row]) if row in asked else int(self._codes[row])

    def _settling(self, n: int) -> tuple[np.ndarray, float]:
        """At least n rows to ask about, if there are as many in the pool, and what the first is expected to settle."""
        if self._asking is None or len(self._asking[0]) < n:
            rng = np.random.default_rng([self._seed, len(self._log)])
            free = self._pool[self._free()[self._pool]]
            self._asking = ask_settling(self._posterior(), free, self._pool, self._weight, n, rng)
        return self._asking

    def _posterior(self) -> Posterior:
        if self._known is None:
            self._known, self._errors = inferred(self._material, self._votes)
        return self._known

    def _has_evidence(self) -> bool:
        """Whether anything is known beside the given labels: alone, they do not say which of them are wrong."""
        return bool(self._votes) or self._groups is not None

    def _read(self) -> np.ndarray:
        """Class numbers as the labels are read now, (n,); before any answer only groups can speak against labels."""
        if not self._has_evidence():
            return self._codes
        read = read_classes(self.label_probability_, self._codes, self._free())
        if self._votes:
            return read
        shift = self._posterior().problem.shift
        return self._codes if shift is None else np.where(shift > SUSPECT_GROUP, read, self._codes)

    def _training(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Class numbers and weights that `fit` trains with, and which rows are in doubt, three arrays (n,)."""
        if self._lesson is None:
            posterior, codes = self._posterior(), self._codes
            acted, every = borne_out(self._material, self._votes, posterior, self._errors)
            if self._has_evidence():
                codes = read_classes(acted, codes, self._free())
                weights = training_weights(acted, codes, self._codes, every, len(self._votes))
            else:
                weights = np.ones(len(codes))
            self._lesson = codes, self._weight * weights, every[np.arange(len(codes)), codes] < _DOUBTFUL
        return self._lesson

    def _fit_on(self, estimator: Any, train: np.ndarray) -> Any:
        codes, weights, doubtful = self._training()
        return fit_reviewed(
            estimator,
            self._X[train],
            self.classes_[codes[train]],
            weights[train],
            self._firm()[train],
            float(doubtful[train].mean()),
        )

    def _firm(self) -> np.ndarray:
        """Rows whose labels are known to be right, (n,) booleans: trusted, or answered by someone who is believed."""
        firm, table = self.trusted.copy(), likelihoods(self._votes, self.reviewers_, len(self.classes_))
        for likely, (row, row_votes) in zip(table, self._votes.items(), strict=True):
            code = verdict(row_votes)
            firm[row] |= code is not None and likely[code] >= SETTLED * likely.sum()
        return firm

    def _given_rows(self, at: np.ndarray) -> Any:
        return self._X[at]

    def _asked(self) -> set[int]:
        return set(self._votes)

    def _verdicts(self) -> dict[int, Any]:
        found = {row: verdict(v) for row, v in self._votes.items()}
        return {row: None if code is None else self.classes_[code] for row, code in found.items()}

    def _state(self) -> dict[str, Any]:
        return {
            "X": self._X,
            "y": self.given,
            "classes": self.classes_,
            "trusted": self.trusted,
            "groups": self._groups,
            "sample_weight": self._weight,
            "walk": self._walk,
            "walk_share": self.walk_share,
            "max_memory": self.max_memory,
            "random_state": self.random_state,
            "seed": self._seed,
            "turn": self._turn,
            "log": [[a.row, a.code, a.reviewer, a.turn, a.walk] for a in self._log],
        }

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Any:
        review = cls.__new__(cls)
        review.walk_share, review.random_state = state["walk_share"], state["random_state"]
        review.max_memory = state.get("max_memory", "4GB")  # files of earlier versions name none
        review._seed, review._turn = state["seed"], state["turn"]
        review._log = [Answer(*entry) for entry in state["log"]]
        review._walk = state["walk"]  # of as many rows: setting up keeps it
        review._restore(state)
        given = (state[name] for name in ("X", "y", "trusted", "groups", "sample_weight", "classes"))
        review._set_up(*given)
        return review
