"""LFA: greedily flip the label that most raises the validation error after retraining."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from floral_learn.game.kernels import resolve_gamma
from floral_learn.labels.rows import MOST_VALUES

from .base import Choice, LabelAttack, Problem, check_whole
from .constraints import flipped_first
from .surrogates import class_scores, fresh, margins, svm_gram

Candidate = tuple[int, int]
# (fitted model, its class scores on the validation rows, codes, candidates, y_val) -> estimated loss per candidate
Screen = Callable[[Any, np.ndarray, np.ndarray, Sequence[Candidate], np.ndarray], np.ndarray]


@dataclass
class LabelFlipping(LabelAttack):
    """argmax_{i, c} validation error of the surrogate retrained with y_i = c, one flip after the other.

    The error on ``X_val, y_val`` moves in steps of 1 / len(y_val), so that many flips tie: equal errors
    are decided by the mean hinge loss on the same rows. Each row is flipped at most once. With more
    classes every other class of every row is a candidate. Paudice, Munoz-Gonzalez and Lupu, 2018.

    Cost: ``n_first`` + k * ``n_check`` fits of the surrogate for k flips. The loss after every flip is estimated (by
    the SVM's own optimality conditions for an ``SVC``, ridge regression for other classifiers), and only the
    ``n_check`` most promising are retrained for. With ``n_check`` and ``n_first`` of at least n every flip is, as
    published.

    Parameters
    ----------
    surrogate : classifier, optional
        The victim, ``SVC()`` by default.
    X_val, y_val : array-like, optional
        Validation rows. Without them ``validation_fraction`` of the training rows (a stratified
        draw) plays that part: these rows still may be flipped, but their given labels measure the error.
    validation_fraction : float, default=0.3
        See above.
    n_check : int, default=10
        Flips retrained for in each step.
    n_first : int, default=500
        The same in the first step.
    n_jobs : int or None
        Parallel fits, as in joblib.

    Notes
    -----
    The other parameters are those of :class:`LabelAttack`.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.attacks import LabelFlipping
    >>> X, y = make_moons(60, noise=0.2, random_state=0)
    >>> attack = LabelFlipping(LogisticRegression(), budget=2, n_first=10, n_check=3, random_state=0)
    >>> len(attack.poison(X, y).indices)
    2
    """

    surrogate: Any = None
    _: KW_ONLY
    X_val: Any = None
    y_val: Any = None
    validation_fraction: float = 0.3
    n_check: int = 10
    n_first: int = 500
    n_jobs: int | None = None

    name: ClassVar[str] = "lfa"

    def _choose(self, problem: Problem) -> Choice:
        check_whole(self, n_check=1, n_first=1)
        X_val, y_val = self._validation(problem)
        model = fresh(SVC() if self.surrogate is None else self.surrogate, problem.rng)
        trainer = _Trainer(model, problem.X, X_val, y_val, len(problem.classes))
        screen = make_screen(model, problem.X, X_val, len(problem.classes))
        # each row is tried with every other class, unless a flip matrix has drawn one
        targets = self._targets(problem)
        codes, current = problem.y.copy(), trainer.fit(problem.y)
        flipped: list[int] = []
        history, scores, note = [current.error], np.zeros(len(codes)), None
        measured, fits = np.full((len(codes), len(problem.classes)), -np.inf), 1
        with Parallel(n_jobs=self.n_jobs) as parallel:
            while len(flipped) < problem.flips:
                candidates = _candidates(problem, codes, flipped, targets)
                if not candidates:
                    note = f"any further flip leaves one class only, after {len(flipped)} of {problem.flips} flips"
                    break
                estimates = screen(current.model, current.scores, codes, candidates, y_val)
                last = np.full(len(codes), -np.inf)
                np.maximum.at(last, [row for row, _ in candidates], estimates)
                scores = np.where(np.isfinite(last), last, scores)
                candidates = self._shortlist(candidates, estimates, measured)
                trials = parallel(delayed(trainer.try_one)(codes, candidate) for candidate in candidates)
                fits += len(candidates)
                for candidate, trial in zip(candidates, trials, strict=True):
                    # the second measure only breaks ties of the first
                    measured[candidate] = trial.error - current.error + 1e-3 * (trial.loss - current.loss)
                winner = max(range(len(trials)), key=lambda j: (trials[j].error, trials[j].loss))
                current, (row, codes[row]) = trials[winner], candidates[winner]
                flipped.append(row)
                history.append(current.error)
                problem.progress(len(flipped), problem.flips)
        indices = np.array(flipped, dtype=np.intp)
        details = {"n_fits": fits, "validation_error": np.array(history)}
        return Choice(indices, codes[indices], flipped_first(scores, indices), note, details)

    def _shortlist(self, candidates: list[Candidate], estimates: np.ndarray, measured: np.ndarray) -> list[Candidate]:
        """Return the flips worth retraining for: half by estimate, half by what retraining last said of them.

        The first step retrains for ``n_first``, so that later ones have measurements to go by: gains
        change slowly from flip to flip, while the estimates are rough where many duals reach C.
        """
        by_estimate = np.argsort(-estimates, kind="stable")
        if not np.isfinite(measured).any():
            return [candidates[j] for j in by_estimate[: max(self.n_first, self.n_check)]]
        known = np.array([measured[candidate] for candidate in candidates])
        by_measurement = np.argsort(-known, kind="stable")[: (self.n_check + 1) // 2]
        chosen = dict.fromkeys(by_measurement.tolist())
        for j in by_estimate:
            if len(chosen) >= self.n_check:
                break
            chosen[int(j)] = None
        return [candidates[j] for j in chosen]

    def _validation(self, problem: Problem) -> tuple[Any, np.ndarray]:
        """Return validation rows and codes: the given ones, or a stratified draw of the training rows."""
        given = problem.held_out(self.X_val, self.y_val)
        if given is not None:
            return given
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction={self.validation_fraction!r} must be in (0, 1)")
        seed = int(problem.rng.integers(2**31 - 1))
        smallest = np.bincount(problem.y).min()
        rows = train_test_split(
            np.arange(len(problem.y)),
            test_size=max(self.validation_fraction, len(problem.classes) / len(problem.y)),
            random_state=seed,
            stratify=problem.y if smallest > 1 else None,
        )[1]
        return problem.X[rows], problem.y[rows]

    def _targets(self, problem: Problem) -> list[Sequence[int]]:
        """Return the new classes to try for each row: all others, or the one that the flip matrix draws."""
        everyone = np.arange(len(problem.y))
        if problem.constraints.flip_distribution is not None:
            drawn = problem.constraints.new_codes(everyone, problem.rng)
            return [[int(code)] for code in drawn]
        classes = range(len(problem.classes))
        others = [[code for code in classes if code != own] for own in classes]
        return [others[own] for own in problem.y]


def _candidates(
    problem: Problem, codes: np.ndarray, flipped: list[int], targets: list[Sequence[int]]
) -> list[Candidate]:
    """The flips that are open after those of the rows `flipped`: each row once, and two classes must be left."""
    n_classes, closed = len(problem.classes), np.zeros(len(codes), dtype=bool)
    closed[flipped] = True
    room = problem.constraints.limits - np.bincount(problem.y[flipped], minlength=n_classes)
    counts = np.bincount(codes, minlength=n_classes)
    rows = np.flatnonzero(problem.constraints.allowed & ~closed & (room[problem.y] > 0))
    pairs = ((row, code) for row in rows.tolist() for code in targets[row])
    return [(row, code) for row, code in pairs if _keeps_two(counts, codes[row], code)]


def _keeps_two(counts: np.ndarray, own: int, code: int) -> bool:
    """Whether at least two classes are left after a flip from ``own`` to ``code``: classifiers need them."""
    left = np.count_nonzero(counts) - (counts[own] == 1) + (counts[code] == 0)
    return bool(left > 1)


class _Trial(NamedTuple):
    """A retrained surrogate: its error and hinge loss on the validation rows, the model, its class scores there."""

    error: float
    loss: float
    model: Any
    scores: np.ndarray


@dataclass(frozen=True)
class _Trainer:
    """Retrain the surrogate on changed codes and measure it on the validation rows."""

    model: Any
    X: Any
    X_val: Any
    y_val: np.ndarray
    n_classes: int

    def fit(self, codes: np.ndarray) -> _Trial:
        model = clone(self.model).fit(self.X, codes)
        scores = class_scores(model, self.X_val, self.n_classes)
        # with two classes the prediction is the sign of the score; it need not be computed again
        predicted = scores.argmax(axis=1) if self.n_classes == 2 else np.asarray(model.predict(self.X_val))
        error = float((predicted != self.y_val).mean())
        loss = float(mean_hinge(margins(scores, self.y_val)))
        return _Trial(error, loss, model, scores)

    def try_one(self, codes: np.ndarray, candidate: Candidate) -> _Trial:
        changed = codes.copy()
        changed[candidate[0]] = candidate[1]
        return self.fit(changed)


def error_then_loss(margin: np.ndarray) -> np.ndarray:
    """Return one number per column of margins (m, r): the errors, plus a fraction below one error for the loss.

    Sorting by it sorts by (error, mean hinge loss), the order in which the attack compares retrained models.
    """
    loss = mean_hinge(margin)
    return ((margin <= 0).sum(axis=0) + loss / (1.0 + loss)) / len(margin)


def mean_hinge(margin: np.ndarray) -> np.ndarray:
    """Return the mean hinge loss of each column of margins (m, r)."""
    return np.maximum(0.0, 1.0 - margin).mean(axis=0)


def make_screen(model: Any, X: Any, X_val: Any, n_classes: int) -> Screen:
    """Return the estimate that fits the surrogate."""
    plain = type(model) is SVC and model.class_weight is None
    if n_classes == 2 and plain and model.kernel in ("rbf", "linear", "poly", "sigmoid"):
        return SVCScreen(model, X, X_val)
    return RidgeScreen(X, X_val, n_classes)


def signed_duals(fitted: SVC) -> np.ndarray:
    """Return y * alpha (n_sv,) of a binary SVC, which keeps them sparse after sparse rows."""
    duals = fitted.dual_coef_
    return duals.toarray()[0] if issparse(duals) else duals[0]


class SVCScreen:
    """Estimate, without retraining, what each single flip does to the validation values of a binary SVC.

    While the set of free support vectors S stays the same, the optimality conditions are linear. Moving row i's signed
    dual by d changes the values by

        df(x) = d * [k(x, x_i) - (1, k(x, S)) M^-1 (1, k(S, x_i))'],     M = [[0, 1'], [1, K_SS]],

    and after the flip the row's dual ends at C or where its new margin is exactly 1. One factorisation per step.
    """

    def __init__(self, model: SVC, X: Any, X_val: Any) -> None:
        self.gram, self.gram_val = svm_gram(model, X), svm_gram(model, X, X_val)

    def __call__(
        self,
        fitted: SVC,
        scores: np.ndarray,
        codes: np.ndarray,
        candidates: Sequence[Candidate],
        y_val: np.ndarray,
    ) -> np.ndarray:
        """Return the error (and loss) on the validation rows after each flip, estimated."""
        rows = np.array([row for row, _ in candidates])
        signs_val = 2.0 * y_val - 1.0
        now = scores[:, 1] - scores[:, 0]
        change = self.value_changes(fitted, codes, rows)
        return error_then_loss(signs_val[:, None] * (now[:, None] + change))

    def value_changes(self, fitted: SVC, codes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return (m, r) changes of the validation values when the label of each of ``rows`` flips."""
        free, answer = self._responses(fitted, rows)
        signs = 2.0 * codes - 1.0
        duals = signed_duals(fitted)
        beta = np.zeros(len(codes))
        beta[fitted.support_] = duals
        values = self.gram[rows][:, fitted.support_] @ duals + fitted.intercept_[0]
        response = self.gram[np.ix_(free, rows)] * answer[1:]
        own = self.gram[rows, rows] - answer[0] - response.sum(axis=0)
        stiffness = np.maximum(own, 1e-12)
        # the flipped row wants -y f = 1: solve for its dual with the others' response, then keep it in [0, C]
        # Newton on the one dual: the gap to the margin over the curvature k_ii - k_iS M^-1 k_Si
        wanted = beta[rows] - signs[rows] * (1.0 + signs[rows] * values) / stiffness
        alpha = np.clip(-signs[rows] * wanted, 0.0, fitted.C)
        delta = -signs[rows] * alpha - beta[rows]
        return delta * (self.gram_val[:, rows] - answer[0] - self.gram_val[:, free] @ answer[1:])

    def _responses(self, fitted: SVC, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the free support vectors S and, for each of ``rows``, M^-1 (1, k(S, x_i))' with i left out of S."""
        duals = np.abs(signed_duals(fitted))
        free = fitted.support_[(duals > 1e-6 * fitted.C) & (duals < (1 - 1e-6) * fitted.C)]
        if len(free) == 0:
            return free, np.zeros((1, len(rows)))
        size = len(free) + 1
        system = np.zeros((size, size))
        system[0, 1:] = system[1:, 0] = 1.0
        system[1:, 1:] = self.gram[np.ix_(free, free)]
        system[1:, 1:].flat[::size] += 1e-8  # duplicate rows make K_SS singular
        inverse = np.linalg.inv(system)
        answer = inverse @ np.vstack([np.ones(len(rows)), self.gram[np.ix_(free, rows)]])
        # a row that is free itself answers to the others only: take it out of S by the block inverse
        place = np.full(len(self.gram), -1)
        place[free] = np.arange(1, size)
        own = np.flatnonzero(place[rows] > 0)
        spot = place[rows[own]]
        answer[:, own] = -inverse[:, spot] / inverse[spot, spot]
        answer[spot, own] = 0.0
        return free, answer


class RidgeScreen:
    """The same estimate for any other classifier, by kernel ridge regression on one-hot labels in its place.

    Its validation values are A Y, A = k(X_val, X) (K + I)^-1, so that a flip of row i from a to c moves two columns
    by A[:, i].
    """

    def __init__(self, X: Any, X_val: Any, n_classes: int) -> None:
        gamma = resolve_gamma("scale", X)
        gram = rbf_kernel(X, gamma=gamma)
        gram.flat[:: len(gram) + 1] += 1.0  # K + I: the prior variance of a label is that of its noise
        self.smoother = np.linalg.solve(gram, rbf_kernel(X, X_val, gamma=gamma)).T
        self.n_classes = n_classes

    def __call__(
        self,
        fitted: Any,
        scores: np.ndarray,
        codes: np.ndarray,
        candidates: Sequence[Candidate],
        y_val: np.ndarray,
    ) -> np.ndarray:
        """Return the error (and loss) of the stand-in on the validation rows after each flip."""
        values = 2.0 * self.smoother @ np.eye(self.n_classes)[codes]
        rows = np.array([row for row, _ in candidates])
        new = np.array([code for _, code in candidates])
        losses = np.empty(len(candidates))
        for own in range(self.n_classes):
            for code in range(self.n_classes):
                pick = np.flatnonzero((codes[rows] == own) & (new == code))
                for part in np.array_split(pick, max(1, len(pick) * values.size // MOST_VALUES)):
                    losses[part] = self._losses(values, rows[part], own, code, y_val)
        return losses

    def _losses(self, values: np.ndarray, rows: np.ndarray, own: int, code: int, y_val: np.ndarray) -> np.ndarray:
        """Return the loss after each of ``rows`` moves from class ``own`` to ``code``."""
        step = 2.0 * self.smoother[:, rows]
        changed = np.repeat(values[:, None], len(rows), axis=1)  # (m, r, M)
        changed[..., own] -= step
        changed[..., code] += step
        margin = margins(changed.reshape(-1, self.n_classes), np.repeat(y_val, len(rows)))
        return error_then_loss(margin.reshape(step.shape))
