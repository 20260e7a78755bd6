"""What the paper's tables rest on and the library does not do: its projection as printed, and an SVM stopped early.

The paper's projection *as printed* (Algorithm 2) is not a projection: its update reads mu_t = phi(mu_{t-1}) / |I_z|
where the derivation in the appendix has mu_{t-1} + phi(mu_{t-1}) / |I_z|, so that mu swings between two values for as
long as it is let. And an attack on "the duals of the SVM" means those of an SVM that was stopped after a fixed number
of rounds, far from the optimum, as the paper's tables train it. Both play the rounds of `core.game`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from floral_learn.game.arrays import NUMPY, NumpyBackend, backend_for
from floral_learn.game.dual import Projection
from floral_learn.game.game import Game, solve, step_schedule
from floral_learn.game.gram import DenseGram
from floral_learn.game.kernels import Kernel

PRINTED_ROUNDS, PRINTED_TOLERANCE = 1000, 1e-21  # T_proj and epsilon of the paper
SWING = 1e-12


def project_as_printed(
    z: np.ndarray, signs: np.ndarray, cap: np.ndarray, mu: Any = 0.0, backend: NumpyBackend = NUMPY, weight: None = None
) -> Projection:
    """Algorithm 2 on columns z (n, R) with caps (n, R) or (n, 1), without its lines 5 to 7; for `Game.projection`.

    What comes out need not satisfy ``signs' dual = 0``. Lines 5 to 7 stop where that sum is zero to the last bit, which
    float64 meets or misses by chance: met, the result is the exact projection; missed, mu swings until the rounds are
    over. Only the second reading can be repeated.
    """
    cap = np.broadcast_to(cap, z.shape)
    last, going = np.zeros(z.shape[1]), np.arange(z.shape[1])  # columns leave once their end is known
    mu = np.zeros(z.shape[1])
    before = np.full(z.shape[1], np.nan)
    for t in range(1, PRINTED_ROUNDS + 1):
        part, sign, top = z[:, going], signs[:, going], cap[:, going]
        dual = np.clip(part - mu * sign, 0, top)
        signed = dual * sign
        inner = (dual > 0) & (dual < top)
        count = inner.sum(0)
        eta = np.maximum(count, 1)
        # points at the cap add C y, points inside lambda y, points at zero nothing: all of it is lambda' y
        new = (eta - count) / eta * mu + signed.sum(0) / eta
        settled = np.abs(new - mu) <= PRINTED_TOLERANCE
        swings = np.abs(new - before) <= SWING  # to rounding; which of its two values comes last is known
        ends = settled | swings if t < PRINTED_ROUNDS else np.ones(len(going), bool)
        even = (PRINTED_ROUNDS - t) % 2 == 0
        last[going[ends]] = np.where(settled | even, new, mu)[ends]
        going, before, mu = going[~ends], mu[~ends], new[~ends]
        if not len(going):
            break
    dual = np.asfortranarray(np.clip(z - last * signs, 0, cap))
    left = np.abs((signs * dual).sum(0))
    return Projection(dual, last, PRINTED_ROUNDS, left, left <= PRINTED_TOLERANCE)


class EarlyStoppedSVC(ClassifierMixin, BaseEstimator):
    """An SVM after so many projected gradient rounds, for an attack on its duals (``dual_coef_``, ``support_``)."""

    def __init__(
        self, C: float = 5.0, gamma: float = 0.005, eta: float = 1e-4, rounds: int = 500, device: str | None = None
    ) -> None:
        self.C, self.gamma, self.eta, self.rounds, self.device = C, gamma, eta, rounds, device

    def fit(self, X: np.ndarray, y: np.ndarray) -> EarlyStoppedSVC:
        """Train on two classes; K is held in float32."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        gram = DenseGram.from_rows(X, Kernel("rbf", self.gamma), "float32", backend_for(self.device))
        game = Game(gram, codes, np.full(len(codes), self.C), step_schedule(self.eta, self.rounds))
        self.support_, self.dual_coef_ = np.arange(len(codes)), solve(game).weights.T
        return self
