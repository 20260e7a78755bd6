"""alfa-tilt: flip the labels that turn the SVM's hyperplane the farthest."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.svm import SVC

from floral_learn.game.accelerated import minimise
from floral_learn.game.arrays import Array, NumpyBackend, backend_for
from floral_learn.game.game import Game, step_schedule
from floral_learn.game.gram import DENSE_ROWS, Gram
from floral_learn.game.kernels import Kernel, resolve_gamma
from floral_learn.game.low_rank import LowRankGram

from .base import Choice, LabelAttack, Problem
from .constraints import cheapest_flips, check_costs, cost_note
from .surrogates import SVMSettings, fit_dual

BATCH = 25


@dataclass
class AlfaTilt(LabelAttack):
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
    random_svm : {"signed", "unsigned"}, default="signed"
        ``"signed"`` draws random duals in [0, C] with random labels, a hyperplane that knows nothing
        of the data; ``"unsigned"`` leaves the labels out, as the authors' library does, so that all
        proposals favour rows of one class in dense regions.
    costs, max_cost : array of shape (n,) and float, optional
        Price of each flip and most that all may cost, as in ``Alfa``.
    gram : {"auto", "dense", "low_rank"}, default="auto"
        How the kernel matrix is held.
    rank : int, default=256
        Columns of a low-rank factor.
    device : str, optional
        Torch device for the duals of a low-rank kernel, such as ``"cuda"``; numpy by default.
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
    C: float = 1.0
    kernel: str = "rbf"
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0
    n_restarts: int = 100
    beta1: float = 0.1
    beta2: float = 0.1
    random_svm: str = "signed"
    costs: Any = None
    max_cost: float | None = None
    gram: str = "auto"
    rank: int = 256
    device: str | None = None
    surrogate: Any = None

    name: ClassVar[str] = "alfa-tilt"
    multiclass: ClassVar[bool] = False
    accept_sparse: ClassVar[bool] = False

    def _choose(self, problem: Problem) -> Choice:
        self._check()
        costs = check_costs(self.costs, self.max_cost, len(problem.y))
        low_rank = self.gram == "low_rank" or (self.gram == "auto" and len(problem.y) > DENSE_ROWS)
        svm = _LowRankSVM(self, problem) if low_rank else _DenseSVM(self, problem)
        signs, rng = problem.signs, problem.rng
        clean = svm.clean
        base = np.abs(clean.beta) / svm.C - self.beta1 * _normalised(signs * clean.values)
        best_cosine, best_flips, best_scores, cosines = np.inf, np.empty(0, np.intp), base, []
        for size in _batch_sizes(self.n_restarts):
            duals = rng.random((size, len(signs))) * svm.C
            if self.random_svm == "signed":
                duals *= rng.choice([-1.0, 1.0], size=duals.shape)
            proposals = []
            for values in svm.product(duals.T).T:
                scores = self.beta2 * _normalised(signs * values) - base
                flips = cheapest_flips(problem.constraints, scores, problem.flips, costs, self.max_cost)
                proposals.append((flips, scores))
            tainted = np.repeat(signs[:, None], size, axis=1)
            for column, (flips, _) in enumerate(proposals):
                tainted[flips, column] *= -1
            for (flips, scores), cosine in zip(proposals, svm.cosines(tainted), strict=True):
                cosines.append(float(cosine))
                if cosine < best_cosine:
                    best_cosine, best_flips, best_scores = float(cosine), flips, scores
                problem.progress(len(cosines), self.n_restarts)
        angle = float(np.degrees(np.arccos(np.clip(best_cosine, -1, 1))))
        details = {"cosine": best_cosine, "angle_degrees": angle, "cosines": np.array(cosines), "gram": svm.describe()}
        note = cost_note(len(best_flips), problem.flips, self.max_cost)
        return Choice(best_flips, 1 - problem.y[best_flips], best_scores, note, details)

    def _check(self) -> None:
        if self.surrogate is not None and not isinstance(self.surrogate, SVC):
            raise ValueError(f"surrogate={self.surrogate!r} has no hyperplane to tilt: alfa-tilt needs an SVC")
        if self.n_restarts < 1:
            raise ValueError(f"n_restarts={self.n_restarts!r} must be at least 1")
        for name, allowed in {"random_svm": ("signed", "unsigned"), "gram": ("auto", "dense", "low_rank")}.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r} must be one of {allowed}")


@dataclass(frozen=True)
class _Clean:
    beta: np.ndarray
    values: np.ndarray


class _DenseSVM:
    """Exact fits by libsvm on the whole Gram matrix, one proposal at a time."""

    def __init__(self, attack: AlfaTilt, problem: Problem) -> None:
        settings = SVMSettings.of(attack)
        self.C, self.gram = settings.C, settings.gram(problem.X)
        fit = fit_dual(self.gram, problem.signs, self.C)
        self.clean, self.norm = _Clean(fit.beta, fit.values), np.sqrt(fit.squared_norm)
        self.image = fit.values - fit.intercept

    def product(self, columns: np.ndarray) -> np.ndarray:
        return self.gram @ columns

    def cosines(self, tainted: np.ndarray) -> Iterator[float]:
        for signs in tainted.T:
            fit = fit_dual(self.gram, signs, self.C)
            yield float(_cosine(fit.beta @ self.image, self.norm, fit.squared_norm))

    def describe(self) -> str:
        return f"dense, {len(self.gram):,} rows"


class _LowRankSVM:
    """Batches of duals on K ~ F F': all proposals of a batch are columns of the same products."""

    def __init__(self, attack: AlfaTilt, problem: Problem) -> None:
        settings = SVMSettings.of(attack)
        gamma = resolve_gamma(settings.gamma, problem.X)
        kernel = Kernel(settings.kernel, gamma, settings.degree, settings.coef0)
        if not kernel.definite:
            raise ValueError(f"kernel={settings.kernel!r} may be indefinite: use gram='dense'")
        self.C, self.backend = settings.C, backend_for(attack.device)
        # The factor is made in numpy wherever the duals are: its pivots are drawn, and must be the same.
        made = LowRankGram(problem.X, kernel, attack.rank, 0.0, problem.rng)
        self.step, self.note = 1.0 / made.lambda_max(centred=True), made.describe()
        self.gram: Gram = made if attack.device is None else _Factor(made.factor, self.backend)
        beta, bias = self._duals(problem.signs[:, None], tol=0.05, rounds=3000)
        self.image = self.product(beta)[:, 0]
        self.clean = _Clean(beta[:, 0], self.image + bias[0])
        self.norm = np.sqrt(self.clean.beta @ self.image)

    def product(self, columns: np.ndarray) -> np.ndarray:
        return np.asarray(self.backend.numpy(self.gram.matmat(self.backend.columns(columns))))

    def cosines(self, tainted: np.ndarray) -> np.ndarray:
        # the cosine settles long before the duals do: 200 rounds and 1,000 rank proposals alike (MNIST)
        beta, _ = self._duals(tainted, tol=0.3, rounds=400)
        return _cosine(self.image @ beta, self.norm, (beta * self.product(beta)).sum(axis=0))

    def _duals(self, signs: np.ndarray, tol: float, rounds: int) -> tuple[np.ndarray, np.ndarray]:
        """Signed duals (n, c) and biases (c,) for each column of labels."""
        game = Game(
            self.gram,
            (signs > 0).astype(int),
            np.full(len(signs), self.C),
            step_schedule(self.step, rounds),
        )
        found = minimise(game, tol)
        return found.weights, found.bias

    def describe(self) -> str:
        return self.note


class _Factor(Gram):
    """F F' on another device."""

    kind = "low rank"

    def __init__(self, factor: np.ndarray, backend: NumpyBackend) -> None:
        self.factor, self.backend = backend.array(factor), backend
        self.n, self.dtype, self.nbytes = len(factor), str(factor.dtype), factor.nbytes

    def matmat(self, columns: Array) -> Array:
        inner = self.factor.T @ self.backend.cast(columns, self.factor.dtype)
        return self.backend.cast(self.factor @ inner, self.backend.float64)


def _cosine(inner: Any, norm: float, squared_norm: Any) -> Any:
    """Return <w, w'> / (|w| |w'|); one where w' vanishes, since there is nothing to turn."""
    length = norm * np.sqrt(np.maximum(squared_norm, 0.0))
    return np.where(length > 0, inner / np.maximum(length, 1e-300), 1.0)


def _normalised(values: np.ndarray) -> np.ndarray:
    return values / max(float(np.abs(values).max()), 1e-300)


def _batch_sizes(total: int) -> list[int]:
    return [min(BATCH, total - start) for start in range(0, total, BATCH)]
