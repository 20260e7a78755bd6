"""alfa: flip the labels on which the clean SVM is worst and a newly trained one is best."""

from dataclasses import KW_ONLY, dataclass, replace
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from sklearn.svm import SVC

from .base import Choice, Problem, SVMAttack, Try, best_of, check_whole, flipped
from .surrogates import class_scores, fit_dual, fresh, margins, svm_gram


@dataclass
class Alfa(SVMAttack):
    """argmin_{q, w} ``1/2 |w|^2 + C sum_i q_i (e_i(w) - x_i)`` over the doubled set {(x, y), (x, -y)}.

    q in {0, 1}^2n picks one copy of each row, at most ``budget`` of them flipped; e is the hinge loss
    of the tainted SVM w, x that of the SVM trained on the given labels. The two steps alternate until
    q stays: train w on the copies that q picks, then pick q by the smallest
    (e_flip - x_flip) - (e_keep - x_keep), a sort. Both steps lower the objective, so that the rounds end
    in a local minimum; each of ``n_init`` starts draws e at random and the lowest objective wins. Xiao,
    Xiao and Eckert, ECAI 2012, for flips that all cost the same.

    Cost: n_init * (rounds, about 10) SVM fits on one Gram matrix, O(n^2) memory.

    Parameters
    ----------
    C, kernel, gamma, degree, coef0 : float, str, float or str, int, float
        The SVM, as in ``sklearn.svm.SVC``.
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
    max_iter: int = 50
    n_init: int = 10

    name: ClassVar[str] = "alfa"

    def _choose(self, problem: Problem) -> Choice:
        check_whole(self, max_iter=1, n_init=1)
        victim = _victim(self, problem)
        clean, _ = victim(problem.signs)
        starts = (self._descend(problem, victim, clean) for _ in range(self.n_init))
        best, worth = best_of(problem, starts, self.n_init)
        return problem.switch(best.indices, best.scores, best.details | {"objectives": (-worth).tolist()})

    def _descend(self, problem: Problem, victim: Any, clean: np.ndarray) -> Try:
        """Alternate from one random start; return the round with the lowest objective."""
        signs = problem.signs
        # e of both copies starts at random
        gap = problem.rng.random(len(signs)) - problem.rng.random(len(signs))
        clean_gap, rounds, converged = _flip_gap(signs, clean), list[Try](), False
        for _ in range(self.max_iter):
            # the linear program over q without prices: the rows whose flip lowers the objective most
            scores = clean_gap - gap
            indices = problem.constraints.best(scores, problem.flips)
            converged = bool(rounds) and set(indices.tolist()) == set(rounds[-1].indices.tolist())
            if converged:
                break
            tainted = flipped(signs, -signs, [indices])[:, 0]
            values, regulariser = victim(tainted)
            # e - x of the copies that q picks: losses of the tainted SVM less those of the clean one
            hinge, clean_hinge = (np.maximum(0, 1 - tainted * scored) for scored in (values, clean))
            loss = hinge.sum() - clean_hinge.sum()
            rounds.append(Try(-float(regulariser + victim.C * loss), indices, scores))
            gap = _flip_gap(signs, values)
        best = max(rounds, key=attrgetter("worth"))
        history = [-found.worth for found in rounds]
        details = {"objective": -best.worth, "history": history}
        details |= {"n_iter": len(history), "converged": converged}
        return replace(best, details=details)


def _flip_gap(signs: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return (n,) hinge loss of the flipped copy minus that of the kept one."""
    return np.maximum(0, 1 + signs * values) - np.maximum(0, 1 - signs * values)


class _SVMVictim:
    """Tainted labels -> (f on the rows, 1/2 |w|^2), on one Gram matrix."""

    def __init__(self, svm: Any, X: np.ndarray) -> None:
        self.C, self.gram = svm.C, svm_gram(svm, X)

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
    surrogate = attack.surrogate
    if surrogate is None or (type(surrogate) is SVC and surrogate.class_weight is None):
        return _SVMVictim(attack.svm, problem.X)
    return _AnyVictim(surrogate, problem)
