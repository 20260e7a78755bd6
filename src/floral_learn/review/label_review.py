"""LabelReview: a person answers a few questions, and the labels are read anew."""

from __future__ import annotations

import copy
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, check_consistent_length

from floral_learn.defenses.labels import encode_labels
from floral_learn.review import saving
from floral_learn.review.answers import (
    UNSURE,
    Answer,
    as_code,
    learned_errors,
    likelihoods,
    start_errors,
    verdict,
    votes,
)
from floral_learn.review.choosing import Choice
from floral_learn.review.groups import group_shifts
from floral_learn.review.guarantee import Accuracy, Guarantee, counted_accuracy, wrong_bounds
from floral_learn.review.posterior import Evidence, Posterior, Problem, default_components, infer, turned
from floral_learn.review.questions import ask_settling, pool_of
from floral_learn.review.rows import measured_rows
from floral_learn.review.suspicion import appointed, suspicion
from floral_learn.review.training import fit_reviewed
from floral_learn.review.transitions import class_beliefs

_TRUSTED = 200  # trusted rows that the posterior looks at, at most
_REVIEWER = "reviewer"
_FIRM = 0.97  # how certain the answer is on which everyone agrees
_SURE = 2.5  # rows that are read right with 70 % and more count in full
_LOOK_AGAIN = 10  # answers from which judges are taught anew, in data of at most so many rows
_LOOK_AGAIN_ROWS = 20_000


@dataclass(frozen=True)
class WrongShare:
    """The model's estimate of the share of given labels that are wrong: `estimate`, and an interval `low` to `high`."""

    estimate: float
    low: float
    high: float

    def __float__(self) -> float:
        return self.estimate

    def __str__(self) -> str:
        return f"{self.estimate:.1%} ({self.low:.1%} to {self.high:.1%})"


class LabelReview:
    """Find out which labels are wrong by asking a person about a few well-chosen rows.

    Keeps a posterior over "this label is wrong" for every row, asks about the rows whose true label would settle most
    of what is in doubt, and reads the labels anew after every answer. One question in four walks through all rows in a
    secret random order: `guarantee` rests on these alone.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Rows: features or embeddings. Dense columns are standardised for comparing rows, never for `fit`.
    y : array-like of shape (n,)
        Given labels, of any kind, which may be wrong.
    trusted : bool array-like of shape (n,), optional
        Rows whose labels are known to be right.
    groups : array-like of shape (n,), optional
        Who or what each label comes from. A group caught with wrong labels makes its other labels suspect.
    classes : array-like, optional
        The labels that can be true, where `y` may lack some of them; by default those that occur in `y`.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, passed on to `fit` times the review's own, and to what a question is worth.
    walk_share : float, default=0.25
        Share of the questions that walk through all rows in a secret random order.
    random_state : int or None, default=None
        A seed makes questions repeatable, and the walk predictable: `guarantee` then says that it is void against
        an attacker who knows the seed. None draws both from the system's entropy.

    Attributes
    ----------
    classes_ : ndarray of shape (M,)
        The labels that occur.
    labels_ : ndarray of shape (n,)
        Labels as they should be read now.
    wrong_probability_ : ndarray of shape (n,)
        P(the given label is wrong), for every row.
    label_probability_ : ndarray of shape (n, M)
        P(true class), for every row.
    wrong_share_ : WrongShare
        The model's estimate of the share of wrong labels; `guarantee` is the number that does not rest on a model.
    reviewers_ : dict of str to float
        Estimated error rate of everyone who answered.
    history_ : list of dict
        Every answer in order: row, label (None for "not sure"), reviewer, turn, walk.
    should_stop_ : bool
        Whether the next answers are expected to change fewer than one label in five hundred.

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

    _known: Posterior | None
    _belief: np.ndarray | None
    _errors: dict[str, float]

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
        random_state: int | None = None,
    ) -> None:
        if not 0.0 <= walk_share <= 1.0:
            raise ValueError(f"walk_share={walk_share!r} must be a number from 0 to 1")
        if random_state is not None and not isinstance(random_state, int | np.integer):
            raise ValueError(f"random_state={random_state!r} must be an integer or None")
        self.walk_share = float(walk_share)
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
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n={n!r} must be an integer of at least 1")
        done = set(self._votes) | set(np.flatnonzero(self.trusted).tolist())
        count, chosen, walked = len(self._votes), [], 0
        waiting = [r for r in self._walk.tolist() if r not in done] if len(done) < len(self.given) else []
        active = []
        total = min(n, len(waiting))
        on_walk = [self._is_walk(count + k) for k in range(total)]
        if not all(on_walk):
            active = self._active(on_walk.count(False) + on_walk.count(True), done).tolist()
        for walk in on_walk:
            free = [r for r in (waiting if walk else active) if r not in chosen] or [
                r for r in waiting if r not in chosen
            ]
            chosen.append(free[0])
            walked += walk
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
        if np.ndim(rows) == 0:
            rows, labels = [rows], [labels]
        rows, labels = list(rows), list(labels)
        if len(rows) != len(labels):
            raise ValueError(f"rows has {len(rows)} entries and labels has {len(labels)}; they must match")
        if not isinstance(reviewer, str) or not reviewer:
            raise ValueError(f"reviewer={reviewer!r} must be a name that is not empty")
        numbers = []
        for row in rows:
            if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < len(self.given):
                raise ValueError(f"rows holds {row!r}; a row is an integer from 0 to {len(self.given) - 1}")
            numbers.append(int(row))
        if len(set(numbers)) != len(numbers):
            raise ValueError("rows names the same row twice in one call")
        codes = [as_code(label, self.classes_) for label in labels]
        if not numbers:
            return
        self._turn += 1
        on_walk = self._walk_reach(numbers)
        self._log += [
            Answer(row, code, reviewer, self._turn, row in on_walk) for row, code in zip(numbers, codes, strict=True)
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
    def history_(self) -> list[dict[str, Any]]:
        """Every answer in order: row, label (None for "not sure"), reviewer, turn, walk."""
        labels = [None if a.code == UNSURE else self.classes_[a.code] for a in self._log]
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
            self._belief = self._believe()
        return self._belief

    @property
    def labels_(self) -> np.ndarray:
        """Labels as they should be read now, (n,)."""
        return self.classes_[self._read()]

    @property
    def wrong_share_(self) -> WrongShare:
        """The model's estimate of the share of wrong labels, with an interval of about 90 %."""
        wrong = self.wrong_probability_
        estimate = float(wrong.mean())
        # spread of the components' own estimates, and the coin tosses of the rows that were not asked
        some = self._pool
        by_component = self._posterior().by_component(some).mean(axis=1)
        weights = self._posterior().weights
        spread = float(weights @ (by_component - weights @ by_component) ** 2)
        spread += self._shared_variance(some) + float((wrong * (1 - wrong)).sum()) / len(wrong) ** 2
        half = 1.645 * np.sqrt(spread)
        return WrongShare(estimate, max(0.0, estimate - half), min(1.0, estimate + half))

    @property
    def reviewers_(self) -> dict[str, float]:
        """Estimated error rate of everyone who answered."""
        self._posterior()
        return dict(self._errors)

    @property
    def should_stop_(self) -> bool:
        """Whether the next answers are expected to change fewer than one label in five hundred."""
        if len(self._votes) >= len(self.given) - int(self.trusted.sum()):
            return True
        if len(self._votes) < 10:
            return False
        wrong = self.wrong_probability_[self._pool]
        return bool(np.minimum(wrong, 1 - wrong).mean() < 0.002)

    def guarantee(self, *, confidence: float = 0.95, reviewer: str | None = None) -> Guarantee:
        """An interval for the share of labels that the reviewer would change, which no attacker can bend.

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
        codes = [(row, verdict(asked[row])) for row in self._walk_prefix(asked)]
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
        """A fitted clone of any scikit-learn classifier, trained on the labels as they are read now.

        Rows in doubt weigh less where its fit takes ``sample_weight``; answered and trusted rows are ``trusted`` where
        it takes that; a FLORAL ``budget`` that still has its default becomes the share of labels still in doubt.
        """
        return self._fit_on(estimator, np.arange(len(self.given)))

    def accuracy(self, estimator: Any, *, confidence: float = 0.95) -> Accuracy:
        """An interval for the accuracy of `fit(estimator)` on rows like these, counted on rows kept out of it.

        The answered rows at the start of the walk are a random sample. A clone is trained without them and without what
        their answers say about other rows, and tried on them; "not sure" counts as a miss below and as a hit above.
        Exact for one look (Clopper and Pearson). Which other rows were asked may still depend on these answers.
        """
        if not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence={confidence!r} must lie between 0 and 1")
        prefix = self._walk_prefix(self._votes)
        if not prefix:
            raise ValueError("accuracy needs answers on the walk: answer the rows that ask() gives, at least four")
        blind = copy.copy(self)
        blind._log = [a for a in self._log if a.row not in set(prefix)]
        blind._forget()
        kept = np.setdiff1d(np.arange(len(self.given)), prefix)
        guess = blind._fit_on(estimator, kept).predict(self._X[prefix])
        truth = [self._verdicts()[row] for row in prefix]
        return counted_accuracy(
            [None if t is None else bool(g == t) for g, t in zip(guess, truth, strict=True)], confidence
        )

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
        named = candidates if isinstance(candidates, Mapping) else {str(c): c for c in candidates}
        if len(named) < 2:
            raise ValueError(f"candidates names {len(named)} different settings; give at least two")
        if not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence={confidence!r} must lie between 0 and 1")
        rng = np.random.default_rng(self._seed + 1 if self.random_state is not None else None)
        return Choice(self, named, folds, rng, 1 - confidence)

    def append(self, X: Any, y: Any, *, trusted: Any = None, groups: Any = None, sample_weight: Any = None) -> None:
        """Add rows with their given labels; answers stay, and the walk takes the new rows in at random places."""
        old = len(self.given)
        X = check_array(X, accept_sparse="csr", dtype="numeric")
        if X.shape[1] != self._X.shape[1]:
            raise ValueError(f"X has {X.shape[1]} columns and the review has {self._X.shape[1]}")
        if (groups is None) != (self._groups is None):
            raise ValueError("groups must be given for the new rows exactly if the review has them")
        count = X.shape[0]
        y = np.asarray(y)
        check_consistent_length(X, y)
        unknown = sorted({str(v) for v in y.tolist()} - {str(c) for c in self.classes_.tolist()})
        if unknown:
            raise ValueError(f"y holds labels that the review does not know: {', '.join(unknown)}")
        join = sparse.vstack if sparse.issparse(self._X) else np.vstack
        new_trusted = np.zeros(count, bool) if trusted is None else np.asarray(trusted, bool)
        weight = np.ones(count) if sample_weight is None else np.asarray(sample_weight, float)
        self._set_up(
            join([self._X, X]),
            np.concatenate([self.given, y]),
            np.concatenate([self.trusted, new_trusted]),
            None if groups is None else np.concatenate([self._groups, np.asarray(groups)]),
            np.concatenate([self._weight, weight]),
            self.classes_,
            grown_from=old,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the review, with its rows and the secret walk, to a skops file: whole or not at all."""
        saving.write(path, self._state())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LabelReview:
        """Read a review that `save` wrote."""
        return cls._from_state(saving.read(path))

    # -- inside ----------------------------------------------------------------------------------------------------

    def _set_up(
        self,
        X: Any,
        y: Any,
        trusted: Any,
        groups: Any,
        sample_weight: Any,
        classes: Any,
        grown_from: int | None = None,
    ) -> None:
        X = check_array(X, accept_sparse="csr", dtype="numeric", ensure_min_samples=2)
        y = np.asarray(y)
        if y.ndim != 1:
            raise ValueError(f"y must have one dimension, and has shape {y.shape}")
        check_consistent_length(X, y)
        n = len(y)
        classes, codes = _encoded(y, classes)
        self.trusted = _column(trusted, n, "trusted", bool)
        self._groups = None if groups is None else _column(groups, n, "groups", None)
        self._weight = _column(sample_weight, n, "sample_weight", float)
        if (self._weight < 0).any() or not np.isfinite(self._weight).all():
            raise ValueError("sample_weight must be finite and not negative")
        self._X, self.given, self.classes_, self._codes = X, y, classes, codes
        rng = np.random.default_rng(self._seed)
        self._walk = self._extended_walk(grown_from, n)
        rows = measured_rows(X)
        self._judges = appointed(rows, rng)
        self._odds = self._judges.odds(codes, len(classes))
        against = suspicion(self._odds, codes)[None, :]
        self._group_numbers = None if self._groups is None else np.unique(self._groups, return_inverse=True)[1]
        self._problem = Problem(rows, codes, len(classes), against)
        self._pool = pool_of(n, rng)
        self._forget()

    def _extended_walk(self, old: int | None, n: int) -> np.ndarray:
        """A random order of all rows that keeps the order of those that had one: as if drawn at once for all."""
        rng = np.random.default_rng(self._seed if self.random_state is not None else secrets.randbits(128))
        if old is None:
            return rng.permutation(n)
        keys = rng.random(n)
        walk = np.argsort(keys)
        before = walk < old
        walk[before] = self._walk
        return walk

    def _forget(self) -> None:
        """Drop what followed from the answers."""
        self._votes = votes(self._log)
        self._known = None
        self._belief = None
        self._errors = {}

    def _is_walk(self, number: int) -> bool:
        return int((number + 1) * self.walk_share) > int(number * self.walk_share)

    def _walk_prefix(self, asked: Mapping[int, Any]) -> list[int]:
        """The rows at the start of the walk that have all been answered."""
        return list(takewhile(lambda row: row in asked, self._walk.tolist()))

    def _walk_reach(self, rows: list[int]) -> set[int]:
        """Those of `rows` that extend the walk without a gap."""
        reach: set[int] = set()
        for row in self._walk.tolist():
            if row in rows:
                reach.add(row)
            elif row not in self._votes:
                break
        return reach

    def _active(self, n: int, done: set[int]) -> np.ndarray:
        rng = np.random.default_rng([self._seed, len(self._log)])
        free = np.array([r for r in self._pool.tolist() if r not in done], dtype=np.intp)
        return ask_settling(self._posterior(), free, self._pool, n, rng)

    def _posterior(self) -> Posterior:
        if self._known is None:
            self._known, self._errors = self._inferred()
        return self._known

    def _evidence(self, errors: dict[str, float]) -> tuple[Evidence, np.ndarray]:
        """Votes and trusted rows as likelihoods of "right" and "wrong", and the votes' likelihoods of the classes."""
        table = (
            likelihoods(self._votes, errors, len(self.classes_)) if self._votes else np.ones((0, len(self.classes_)))
        )
        at = np.fromiter(self._votes, dtype=np.intp, count=len(self._votes))
        codes = self._codes[at]
        right = table[np.arange(len(at)), codes]
        if len(self.classes_) > 2:
            others = self._odds[at] + 0.05
            others[np.arange(len(at)), codes] = 0.0
            others /= others.sum(axis=1, keepdims=True)
            wrong = (table * others).sum(axis=1)
        else:
            wrong = table[np.arange(len(at)), 1 - codes]
        said = np.flatnonzero(table.min(axis=1) < 1)  # "not sure" says nothing
        at, right, wrong = at[said], right[said], wrong[said]
        known = np.setdiff1d(np.flatnonzero(self.trusted), at)[:_TRUSTED]
        return (
            Evidence(
                np.concatenate([at, known]),
                np.concatenate([right, np.ones(len(known))]),
                np.concatenate([wrong, np.full(len(known), 1e-3)]),
            ),
            table,
        )

    def _inferred(self) -> tuple[Posterior, dict[str, float]]:
        errors = start_errors(self._votes)
        posterior = self._infer(errors)
        if len(errors) > 1:
            for _ in range(4):
                errors = learned_errors(self._votes, self._asked_belief(posterior, errors))
                posterior = self._infer(errors)
        return posterior, errors

    def _infer(self, errors: dict[str, float]) -> Posterior:
        evidence = self._evidence(errors)[0]
        problem, components = self._problem, default_components()
        posterior = infer(problem, evidence, components)
        if self._group_numbers is not None:
            at = evidence.at
            chance = np.clip(posterior.weights @ posterior.own(at), 1e-3, 1 - 1e-3)
            shift = group_shifts(self._group_numbers, self._codes, at, chance, evidence.right, evidence.wrong)
            problem = replace(problem, shift=shift)
            posterior = infer(problem, evidence, components)
        return posterior

    def _reading_posterior(self) -> Posterior:
        """For reading labels: the posterior, with a second view by judges who are taught the labels as they are read.

        They see more than those who were taught the given labels. Questions go by the first view alone: a judge who has
        accepted what is read so far would not ask where that may be wrong.
        """
        posterior = self._posterior()
        if len(self._votes) < _LOOK_AGAIN or len(self.given) > _LOOK_AGAIN_ROWS:
            return posterior
        evidence, table = self._evidence(self._errors)
        problem = posterior.problem
        read = self._beliefs(posterior, table).argmax(axis=1)
        against = suspicion(self._judges.odds(read, len(self.classes_)), self._codes)
        problem = replace(problem, against=np.vstack([problem.against, against]))
        second = tuple(replace(c, view=1) for c in default_components())
        return infer(problem, evidence, (*posterior.thinned(1e-3).components, *second))

    def _beliefs(self, posterior: Posterior, table: np.ndarray) -> np.ndarray:
        """P(true class) of all rows, (n, M): answered rows by their votes, trusted rows as given."""
        every = np.arange(len(self.given))
        at = np.fromiter(self._votes, dtype=np.intp, count=len(self._votes))
        belief = class_beliefs(self._problem, self._odds, posterior.probability(every), every, at, table)
        unit = np.eye(len(self.classes_))
        if len(at):
            seen = belief[at] * table  # the posterior has seen the votes through "wrong" only; here they name classes
            belief[at] = seen / seen.sum(axis=1, keepdims=True)
            codes = [verdict(v) for v in self._votes.values()]
            firm = at[[c is not None for c in codes]]
            belief[firm] = unit[[c for c in codes if c is not None]] * _FIRM + (1 - _FIRM) / len(self.classes_)
        belief[self.trusted] = unit[self._codes[self.trusted]]
        return belief

    def _asked_belief(self, posterior: Posterior, errors: dict[str, float]) -> np.ndarray:
        """P(true class) of the asked rows, (m, M), by the votes and the model, no vote taken for certain."""
        at = np.fromiter(self._votes, dtype=np.intp, count=len(self._votes))
        table = self._evidence(errors)[1]
        belief = class_beliefs(self._problem, self._odds, posterior.probability(at), at, at, table) * table
        return belief / belief.sum(axis=1, keepdims=True)

    def _believe(self) -> np.ndarray:
        return self._beliefs(self._reading_posterior(), self._evidence(self._errors)[1])

    def _read(self) -> np.ndarray:
        belief = self.label_probability_
        best = belief.argmax(axis=1)
        sure = belief[np.arange(len(best)), best] > 0.5
        read = np.where(sure, best, self._codes)
        return read if len(np.unique(read)) > 1 else self._codes

    def _weights(self) -> np.ndarray:
        belief = self.label_probability_
        chance = belief[np.arange(len(belief)), self._read()]
        return self._weight * np.clip(_SURE * (2 * chance - 1), 0.1, 1.0)

    def _fit_on(self, estimator: Any, train: np.ndarray) -> Any:
        wrong = 1 - self.label_probability_[np.arange(len(self.given)), self._read()]
        firm = self.trusted.copy()
        firm[[r for r, v in self._votes.items() if verdict(v) is not None]] = True
        return fit_reviewed(
            estimator,
            self._X[train],
            self.labels_[train],
            self._weights()[train],
            firm[train],
            float(wrong[train].mean()),
        )

    def _given_rows(self, at: np.ndarray) -> Any:
        return self._X[at]

    def _asked(self) -> set[int]:
        return set(self._votes)

    def _verdicts(self) -> dict[int, Any]:
        found = {row: verdict(v) for row, v in self._votes.items()}
        return {row: None if code is None else self.classes_[code] for row, code in found.items()}

    def _shared_variance(self, at: np.ndarray) -> float:
        """Variance of the mean probability that comes from what rows share, by the main component, first order."""
        posterior = self._posterior().thinned(self._posterior().weights.max())
        some = at[:: max(1, len(at) // 300)]
        own, (mean, variance) = posterior.own(some)[0], (m[0] for m in posterior.moments(some))
        step = 1e-3
        slope = (turned(own, mean + step, variance) - turned(own, mean - step, variance)) / (2 * step)
        return float(slope @ posterior.covariance(some, some)[0] @ slope) / len(some) ** 2

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
            "random_state": self.random_state,
            "seed": self._seed,
            "turn": self._turn,
            "log": [[a.row, a.code, a.reviewer, a.turn, a.walk] for a in self._log],
        }

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Any:
        review = cls.__new__(cls)
        review.walk_share, review.random_state = state["walk_share"], state["random_state"]
        review._seed, review._turn = state["seed"], state["turn"]
        review._log = [Answer(*entry) for entry in state["log"]]
        review._walk = state["walk"]
        given = (state[name] for name in ("X", "y", "trusted", "groups", "sample_weight", "classes"))
        review._set_up(*given)
        review._walk = state["walk"]
        return review


def _encoded(y: np.ndarray, classes: Any) -> tuple[np.ndarray, np.ndarray]:
    """The classes, sorted, and the code of each label among them."""
    if classes is None:
        return encode_labels(y, "LabelReview")
    known = np.asarray(classes)
    if known.ndim != 1 or len(np.unique(known)) < 2:
        raise ValueError(f"classes={classes!r} must list at least two different labels")
    if unknown := sorted({str(v) for v in np.unique(y).tolist()} - {str(c) for c in known.tolist()}):
        raise ValueError(f"y holds labels that classes does not list: {', '.join(unknown)}")
    found, codes = encode_labels(np.concatenate([y, known]), "LabelReview")
    return found, codes[: len(y)]


def _column(values: Any, n: int, name: str, kind: Any) -> np.ndarray:
    """`values` as one entry per row; None is False or one."""
    if values is None:
        return np.zeros(n, bool) if kind is bool else np.ones(n)
    values = np.asarray(values)
    if values.shape != (n,):
        raise ValueError(f"{name} must have one entry per row, shape ({n},), and has shape {values.shape}")
    if kind is bool and values.dtype != bool:
        raise ValueError(f"{name} must hold True and False, and has dtype {values.dtype}")
    return values if kind is None else values.astype(kind)
