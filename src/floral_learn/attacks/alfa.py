"""alfa: flip the labels on which the clean SVM is worst and a newly trained one is best."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.svm import SVC

from .base import Choice, LabelAttack, Problem
from .constraints import cheapest_flips, check_costs, cost_note
from .surrogates import SVMSettings, class_scores, fit_dual, fresh, margins


@dataclass
class Alfa(LabelAttack):
    """argmin_{q, w} ``1/2 |w|^2 + C sum_i q_i (e_i(w) - x_i)`` over the doubled set {(x, y), (x, -y)}.

    q in {0, 1}^2n picks one copy of each row, at most ``budget`` of them flipped; e is the hinge loss
    of the tainted SVM w, x that of the SVM trained on the given labels. The two steps alternate until
    q stays: train w on the copies that q picks, then pick q by the smallest
    (e_flip - x_flip) - (e_keep - x_keep), a sort, or a linear program where rows have costs. Both steps
    lower the objective, so that the rounds end in a local minimum; each of ``n_init`` starts draws e at
    random and the lowest objective wins. Xiao, Xiao and Eckert, ECAI 2012.

    Cost: n_init * (rounds, about 10) SVM fits on one Gram matrix, O(n^2) memory.

    Parameters
    ----------
    C, kernel, gamma, degree, coef0 : float, str, float or str, int, float
        The SVM, as in ``sklearn.svm.SVC``.
    costs : (n,) positive array, optional
        What it costs the attacker to flip each row; needs ``max_cost``.
    max_cost : float, optional
        Most that all flips together may cost. Fewer than ``budget`` flips may fit; the result says so.
    max_iter : int, default=50
        Most rounds of one start.
    n_init : int, default=10
        Starts.
    surrogate : classifier, optional
        Another stand-in for the victim. An ``SVC`` gives its kernel and C; any other classifier is
        refitted each round and judged by the hinge loss alone (a model without weights has no norm).

    Notes
    -----
    The other parameters are those of :class:`LabelAttack`. Two classes.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.attacks import Alfa
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> result = Alfa(budget=0.1, gamma=1.0, n_init=2, random_state=0).poison(X, y)
    >>> len(result.indices), "objective" in result.details
    (10, True)
    """

    _: KW_ONLY
    C: float = 1.0
    kernel: str = "rbf"
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0
    costs: Any = None
    max_cost: float | None = None
    max_iter: int = 50
    n_init: int = 10
    surrogate: Any = None

    name: ClassVar[str] = "alfa"
    multiclass: ClassVar[bool] = False
    accept_sparse: ClassVar[bool] = False

    def _choose(self, problem: Problem) -> Choice:
        counts = (self.max_iter, self.n_init)
        if not all(isinstance(count, Integral) and count >= 1 for count in counts):
            raise ValueError(f"max_iter={self.max_iter!r} and n_init={self.n_init!r} must be whole numbers from 1 on")
        costs = check_costs(self.costs, self.max_cost, len(problem.y))
        victim = _victim(self, problem)
        clean, _ = victim(problem.signs)
        clean_gap = _flip_gap(problem.signs, clean)
        starts = []
        for start in range(self.n_init):
            starts.append(self._descend(problem, victim, clean, clean_gap, costs))
            problem.progress(start + 1, self.n_init)
        best = min(starts, key=lambda found: found.details["objective"])
        details = {**best.details, "objectives": [found.details["objective"] for found in starts]}
        return Choice(best.indices, best.codes, best.scores, best.stopped_early, details)

    def _descend(
        self, problem: Problem, victim: Any, clean: np.ndarray, clean_gap: np.ndarray, costs: np.ndarray | None
    ) -> Choice:
        """Alternate from one random start; return the round with the lowest objective."""
        signs, C = problem.signs, victim.C
        gap = problem.rng.random(len(signs)) - problem.rng.random(len(signs))
        best, history, previous, converged = None, [], None, False
        for _ in range(self.max_iter):
            scores = clean_gap - gap
            indices = cheapest_flips(problem.constraints, scores, problem.flips, costs, self.max_cost)
            if previous is not None and set(indices.tolist()) == previous:
                converged = True
                break
            previous = set(indices.tolist())
            tainted = signs.copy()
            tainted[indices] *= -1
            values, regulariser = victim(tainted)
            loss = np.maximum(0, 1 - tainted * values).sum() - np.maximum(0, 1 - tainted * clean).sum()
            history.append(float(regulariser + C * loss))
            if best is None or history[-1] < best[0]:
                best = (history[-1], indices, scores)
            gap = _flip_gap(signs, values)
        assert best is not None
        objective, indices, scores = best
        note = cost_note(len(indices), problem.flips, self.max_cost)
        details = {"objective": objective, "history": history, "n_iter": len(history), "converged": converged}
        return Choice(indices, 1 - problem.y[indices], scores, note, details)


def _flip_gap(signs: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return (n,) hinge loss of the flipped copy minus that of the kept one."""
    return np.maximum(0, 1 + signs * values) - np.maximum(0, 1 - signs * values)


class _SVMVictim:
    """Tainted labels -> (f on the rows, 1/2 |w|^2), on one Gram matrix."""

    def __init__(self, settings: SVMSettings, X: np.ndarray) -> None:
        self.C, self.gram = settings.C, settings.gram(X)

    def __call__(self, signs: np.ndarray) -> tuple[np.ndarray, float]:
        fit = fit_dual(self.gram, signs, self.C)
        return fit.values, fit.squared_norm / 2


class _AnyVictim:
    """The same for any classifier; its regulariser is unknown and counts as zero."""

    C = 1.0

    def __init__(self, surrogate: Any, problem: Problem) -> None:
        self.model, self.X = fresh(surrogate, problem.rng), problem.X

    def __call__(self, signs: np.ndarray) -> tuple[np.ndarray, float]:
        codes = (signs > 0).astype(np.intp)
        if codes.min() == codes.max():  # one class left: a constant classifier has no loss
            return signs, 0.0
        return signs * margins(class_scores(self.model.fit(self.X, codes), self.X, 2), codes), 0.0


def _victim(attack: Alfa, problem: Problem) -> Any:
    if attack.surrogate is None or (type(attack.surrogate) is SVC and attack.surrogate.class_weight is None):
        return _SVMVictim(SVMSettings.of(attack), problem.X)
    return _AnyVictim(attack.surrogate, problem)
