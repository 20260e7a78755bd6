"""alfa-tilt: flip the labels that turn the SVM's hyperplane the farthest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.svm import SVC

from floral_learn.game.accelerated import minimise
from floral_learn.game.arrays import NUMPY
from floral_learn.game.game import Game, step_schedule
from floral_learn.game.gram import DENSE_ROWS
from floral_learn.game.kernels import Kernel
from floral_learn.game.low_rank import LowRankGram

from .base import Choice, Problem, SVMAttack, Try, best_of, check_whole, flipped
from .surrogates import fit_dual, svm_gram, svm_kernel

BATCH = 25  # proposals that are solved at once: columns of the same products


@dataclass
class AlfaTilt(SVMAttack):
    """argmax_flips angle(w, w')  over ``n_restarts`` random proposals, w' trained on the flipped labels.

    Each proposal draws a random SVM and flips the rows with the smallest ::

        alpha_i / C - beta1 * s_i - beta2 * q_i,    s = y f(x) / max,    q = y f_random(x) / max,

    that is, non-support vectors that both the trained and the random SVM call easy. The proposal with the
    largest angle between the clean and the tainted hyperplane in feature space (smallest cosine) wins.
    Xiao, Biggio, Nelson, Xiao, Eckert and Roli, Neurocomputing 2015; after Biggio, Nelson and Laskov, 2011.

    Cost: n_restarts + 1 SVM fits on one Gram matrix; above 3,000 rows, batches of duals by accelerated
    projected gradient on K ~ F F' (randomly pivoted Cholesky): O(n * rank) memory and a few seconds.

    Parameters
    ----------
    C, kernel, gamma, degree, coef0 : float, str, float or str, int, float
        The SVM, as in ``sklearn.svm.SVC``.
    n_restarts : int, default=100
        Random proposals (2,000 in the original).
    beta1, beta2 : float, default=0.1
        Weights of s and q.
    gram : {"auto", "dense", "low_rank"}, default="auto"
        How the kernel matrix is held.
    rank : int, default=256
        Columns of a low-rank factor.
    surrogate : SVC, optional
        Its kernel and C are used instead; other classifiers have no hyperplane.

    Notes
    -----
    The other parameters are those of :class:`LabelAttack`. Two classes.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.attacks import AlfaTilt
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> result = AlfaTilt(budget=0.1, gamma=1.0, n_restarts=5, random_state=0).poison(X, y)
    >>> len(result.indices)
    10
    """

    _: KW_ONLY
    n_restarts: int = 100
    beta1: float = 0.1
    beta2: float = 0.1
    gram: str = "auto"
    rank: int = 256

    name: ClassVar[str] = "alfa-tilt"

    def _choose(self, problem: Problem) -> Choice:
        if self.surrogate is not None and not isinstance(self.surrogate, SVC):
            raise ValueError(f"surrogate={self.surrogate!r} has no hyperplane to tilt: alfa-tilt needs an SVC")
        check_whole(self, n_restarts=1)
        if self.gram not in ("auto", "dense", "low_rank"):
            raise ValueError(f"gram={self.gram!r} must be one of 'auto', 'dense', 'low_rank'")
        low_rank = self.gram == "low_rank" or (self.gram == "auto" and len(problem.y) > DENSE_ROWS)
        svm = _LowRankSVM(self, problem) if low_rank else _DenseSVM(self, problem)
        best, worth = best_of(problem, self._proposals(problem, svm), self.n_restarts)
        angle = float(np.degrees(np.arccos(np.clip(-best.worth, -1, 1))))
        details = {"cosine": -best.worth, "angle_degrees": angle, "cosines": -worth, "gram": svm.note}
        return problem.switch(best.indices, best.scores, details)

    def _proposals(self, problem: Problem, svm: _DenseSVM | _LowRankSVM) -> Iterator[Try]:
        """Flips that random SVMs propose, worth minus the cosine of the angle by which they turn the hyperplane."""
        signs, rng = problem.signs, problem.rng
        # alpha / C - beta1 s, the part of the ranking that all proposals share
        base = np.abs(svm.beta) / svm.C - self.beta1 * _normalised(signs * svm.values)
        for start in range(0, self.n_restarts, BATCH):
            # A hyperplane that knows nothing of the data: random labels, and duals in [0, C]. The authors' library
            # leaves the labels out, so that all proposals favour rows of one class in dense regions.
            duals = rng.random((min(BATCH, self.n_restarts - start), len(signs))) * svm.C
            duals *= rng.choice([-1.0, 1.0], size=duals.shape)
            scores = [self.beta2 * _normalised(signs * values) - base for values in svm.product(duals.T).T]
            flips = [problem.constraints.best(ranking, problem.flips) for ranking in scores]
            cosines = svm.cosines(flipped(signs, -signs, flips))
            for cosine, *found in zip(cosines, flips, scores, strict=True):
                yield Try(-float(cosine), *found)


class _DenseSVM:
    """Exact fits by libsvm on the whole Gram matrix, one proposal at a time."""

    def __init__(self, attack: AlfaTilt, problem: Problem) -> None:
        self.C, self.gram = attack.svm.C, svm_gram(attack.svm, problem.X)
        fit = fit_dual(self.gram, problem.signs, self.C)
        self.beta, self.values, self.norm = fit.beta, fit.values, np.sqrt(fit.squared_norm)
        self.image, self.note = fit.values - fit.intercept, f"dense, {len(self.gram):,} rows"

    def product(self, columns: np.ndarray) -> np.ndarray:
        return self.gram @ columns

    def cosines(self, tainted: np.ndarray) -> Iterator[float]:
        for signs in tainted.T:
            fit = fit_dual(self.gram, signs, self.C)
            # <w, w'> = beta' K beta; `image` is K beta of the clean SVM
            yield float(_cosine(fit.beta @ self.image, self.norm, fit.squared_norm))


class _LowRankSVM:
    """Batches of duals on K ~ F F': all proposals of a batch are columns of the same products."""

    def __init__(self, attack: AlfaTilt, problem: Problem) -> None:
        kernel = Kernel(**svm_kernel(attack.svm, problem.X))
        if not kernel.definite:
            raise ValueError(f"kernel={kernel.name!r} may be indefinite: use gram='dense'")
        self.C, self.gram = attack.svm.C, LowRankGram(problem.X, kernel, attack.rank, 0.0, problem.rng)
        # labels do not change the eigenvalues of diag(y) K diag(y): one step serves all proposals
        self.step, self.note = 1.0 / self.gram.lambda_max(centred=True), self.gram.describe()
        beta, bias = self._duals(problem.signs[:, None], tol=0.05, rounds=3000)
        self.image = self.product(beta)[:, 0]
        self.beta, self.values = beta[:, 0], self.image + bias[0]
        self.norm = np.sqrt(self.beta @ self.image)

    def product(self, columns: np.ndarray) -> np.ndarray:
        return np.asarray(self.gram.matmat(NUMPY.columns(columns)))

    def cosines(self, tainted: np.ndarray) -> np.ndarray:
        # the cosine settles long before the duals do: 200 rounds and 1,000 rank proposals alike (MNIST)
        beta, _ = self._duals(tainted, tol=0.3, rounds=400)
        return _cosine(self.image @ beta, self.norm, (beta * self.product(beta)).sum(axis=0))

    def _duals(self, signs: np.ndarray, tol: float, rounds: int) -> tuple[np.ndarray, np.ndarray]:
        """Signed duals (n, c) and biases (c,) for each column of labels."""
        steps = step_schedule(self.step, rounds)
        game = Game(self.gram, (signs > 0).astype(int), np.full(len(signs), self.C), steps)
        found = minimise(game, tol)
        return found.weights, found.bias


def _cosine(inner: Any, norm: float, squared_norm: Any) -> Any:
    """Return <w, w'> / (|w| |w'|); one where w' vanishes, since there is nothing to turn."""
    length = norm * np.sqrt(np.maximum(squared_norm, 0.0))
    return np.where(length > 0, inner / np.maximum(length, 1e-300), 1.0)


def _normalised(values: np.ndarray) -> np.ndarray:
    return values / max(float(np.abs(values).max()), 1e-300)
