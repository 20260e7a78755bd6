"""Estimate, without retraining, what each single flip would do to the validation error.

Two estimates. For a binary ``SVC``: while the set of free support vectors S stays the same, its optimality
conditions are linear. Moving row i's signed dual by d changes the values by

    df(x) = d * [k(x, x_i) - (1, k(x, S)) M^-1 (1, k(S, x_i))'],     M = [[0, 1'], [1, K_SS]],

and after the flip the row's dual ends at C or where its new margin is exactly 1. For all other classifiers,
ridge regression on the surrogate's rows is used instead: its validation values are A y, A = k(X_val, X) (K + r I)^-1,
so that the change by a flip is one column of A.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.svm import SVC

from floral_learn.game.kernels import resolve_gamma

from .surrogates import margins

# (fitted model, its class scores on the validation rows, codes, candidates, y_val) -> estimated loss a candidate
Screen = Callable[[Any, np.ndarray, np.ndarray, Sequence[tuple[int, int]], np.ndarray], np.ndarray]
RIDGE = 1.0


def error_then_loss(margin: np.ndarray) -> np.ndarray:
    """Return one number per column of margins (m, r): the errors, plus a fraction below one error for the loss.

    Sorting by it sorts by (error, mean hinge loss), the order in which the attack compares retrained models.
    """
    loss = mean_hinge(margin)
    return ((margin <= 0).sum(axis=0) + loss / (1.0 + loss)) / len(margin)


def mean_hinge(margin: np.ndarray) -> np.ndarray:
    """Return the mean hinge loss of each column of margins (m, r)."""
    return np.maximum(0.0, 1.0 - margin).mean(axis=0)


MEASURES = {"error": error_then_loss, "loss": mean_hinge}


def make_screen(model: Any, X: Any, X_val: Any, n_classes: int, objective: str) -> Screen:
    """Return the estimate that fits the surrogate; ``objective`` is ``"error"`` or ``"loss"``."""
    exact = type(model) is SVC and model.class_weight is None and model.kernel in ("rbf", "linear", "poly", "sigmoid")
    if exact and n_classes == 2:
        return SVCScreen(model, X, X_val, objective)
    return RidgeScreen(X, X_val, n_classes, objective)


def signed_duals(fitted: SVC) -> np.ndarray:
    """Return y * alpha (n_sv,) of a binary SVC, which keeps them sparse after sparse rows."""
    duals = fitted.dual_coef_
    return duals.toarray()[0] if issparse(duals) else duals[0]


class SVCScreen:
    """Linearised optimality conditions of a binary SVC; one factorisation of the free support vectors a step."""

    def __init__(self, model: SVC, X: Any, X_val: Any, objective: str = "error") -> None:
        self.measure = MEASURES[objective]
        gamma = resolve_gamma(model.gamma, X)
        parameters = {
            "linear": {},
            "rbf": {"gamma": gamma},
            "sigmoid": {"gamma": gamma, "coef0": model.coef0},
            "poly": {"gamma": gamma, "coef0": model.coef0, "degree": model.degree},
        }[model.kernel]
        self.gram = pairwise_kernels(X, metric=model.kernel, **parameters)
        self.gram_val = pairwise_kernels(X_val, X, metric=model.kernel, **parameters)

    def __call__(
        self,
        fitted: SVC,
        scores: np.ndarray,
        codes: np.ndarray,
        candidates: Sequence[tuple[int, int]],
        y_val: np.ndarray,
    ) -> np.ndarray:
        """Return the objective on the validation rows after each flip, estimated."""
        rows = np.array([row for row, _ in candidates])
        signs_val = 2.0 * y_val - 1.0
        now = scores[:, 1] - scores[:, 0]
        change = self.value_changes(fitted, codes, rows)
        return self.measure(signs_val[:, None] * (now[:, None] + change))

    def value_changes(self, fitted: SVC, codes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return (m, r) changes of the validation values when the label of each of ``rows`` flips."""
        free, answer = self._responses(fitted, rows)
        signs = 2.0 * codes - 1.0
        duals = signed_duals(fitted)
        beta = np.zeros(len(codes))
        beta[fitted.support_] = duals
        values = self.gram[rows][:, fitted.support_] @ duals + fitted.intercept_[0]
        own = self.gram[rows, rows] - answer[0] - (self.gram[np.ix_(free, rows)] * answer[1:]).sum(axis=0)
        stiffness = np.maximum(own, 1e-12)
        # the flipped row wants -y f = 1: solve for its dual with the others' response, then keep it in [0, C]
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
    """Kernel ridge regression on one-hot labels; flipping row i from a to c moves two columns by A[:, i]."""

    def __init__(self, X: Any, X_val: Any, n_classes: int, objective: str = "error") -> None:
        self.measure = MEASURES[objective]
        gamma = resolve_gamma("scale", X)
        gram = rbf_kernel(X, gamma=gamma)
        gram.flat[:: len(gram) + 1] += RIDGE
        self.smoother = np.linalg.solve(gram, rbf_kernel(X, X_val, gamma=gamma)).T
        self.n_classes = n_classes

    def __call__(
        self,
        fitted: Any,
        scores: np.ndarray,
        codes: np.ndarray,
        candidates: Sequence[tuple[int, int]],
        y_val: np.ndarray,
    ) -> np.ndarray:
        """Return the objective of the stand-in on the validation rows after each flip."""
        values = 2.0 * self.smoother @ np.eye(self.n_classes)[codes]
        rows = np.array([row for row, _ in candidates])
        new = np.array([code for _, code in candidates])
        losses = np.empty(len(candidates))
        for own in range(self.n_classes):
            for code in range(self.n_classes):
                pick = np.flatnonzero((codes[rows] == own) & (new == code))
                for part in np.array_split(pick, max(1, len(pick) * values.size // 10_000_000)):
                    losses[part] = self._losses(values, rows[part], own, code, y_val)
        return losses

    def _losses(self, values: np.ndarray, rows: np.ndarray, own: int, code: int, y_val: np.ndarray) -> np.ndarray:
        """Return the loss after each of ``rows`` moves from class ``own`` to ``code``."""
        step = 2.0 * self.smoother[:, rows]
        if self.n_classes == 2:
            margin = np.where(y_val == 1, 1.0, -1.0)[:, None] * (
                (values[:, 1] - values[:, 0])[:, None] + (2 * code - 1) * 2 * step
            )
            return self.measure(margin)
        losses = np.empty(len(rows))
        for position in range(len(rows)):
            changed = values.copy()
            changed[:, own] -= step[:, position]
            changed[:, code] += step[:, position]
            losses[position] = self.measure(margins(changed, y_val)[:, None])[0]
        return losses
