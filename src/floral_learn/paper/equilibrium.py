"""Find what the paper calls a Stackelberg equilibrium: a fixed point of simultaneous best answers.

Duals that solve the SVM for the labels that the top-k attacker makes of them:

argmin_lam D(lam, yh) s.t. yh'lam = 0, 0 <= lam <= C, where yh flips the k largest of that very lam.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.svm import SVC

from floral_learn.paper.lemmas import projected


@dataclass(frozen=True)
class Equilibrium:
    """An equilibrium (lh, yh), or the best that was seen and the word that it is none.

    Attributes
    ----------
    dual, signs : ndarray of shape (n,)
        lh, and the labels after the attack.
    gap : float
        Half the distance of the k-th and the next dual, the paper's delta'.
    residual : float
        How far lh is from its own projected step with eta = 1 / lambda_max; 0 at an exact solution.
    exists : bool
        Whether the attacker's answer to lh is yh.
    tries : int
        Best answers computed.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.paper import find_equilibrium
    >>> rest = find_equilibrium(np.eye(4), np.array([1.0, 1, -1, -1]), C=1.0, k=0)
    >>> rest.exists, rest.dual.round(6).tolist()
    (True, [1.0, 1.0, 1.0, 1.0])
    """

    dual: np.ndarray  # (n,)
    signs: np.ndarray  # (n,), labels after the attack
    gap: float  # (lh_(k) - lh_(k+1)) / 2, the paper's delta'
    residual: float  # ||lh - Prox(lh - eta grad)||_inf for eta = 1 / lambda_max: 0 at an exact solution
    exists: bool  # whether the attacker's answer to lh is yh
    tries: int


def attack(dual: np.ndarray, given: np.ndarray, k: int) -> np.ndarray:
    """Flip the labels of the k largest positive duals (ties by row number), (n,)."""
    signs = given.copy()
    order = np.argsort(-dual, kind="stable")[:k]
    order = order[dual[order] > 0]
    signs[order] *= -1
    return signs


def solve_dual(K: np.ndarray, signs: np.ndarray, C: float) -> np.ndarray:
    """The SVM dual for labels `signs`, by libsvm; all zero where only one class is left, (n,)."""
    if (signs == signs[0]).all():
        return np.zeros(len(signs))
    model = SVC(C=C, kernel="precomputed", tol=1e-9, cache_size=50).fit(K, signs)
    dual = np.zeros(len(signs))
    dual[model.support_] = np.abs(model.dual_coef_[0])
    return dual


def find_equilibrium(K: np.ndarray, given: np.ndarray, C: float, k: int, max_tries: int = 50) -> Equilibrium:
    """Let SVM and attacker answer each other until both repeat themselves, or a cycle shows that they will not.

    Best replies need not settle: an attacker who flips a label takes away the reason to flip it. `exists` says whether
    they did.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix.
    given : ndarray of shape (n,)
        Labels, -1 or +1.
    C : float
        Cap of the duals.
    k : int
        Flips.
    max_tries : int, default=50
        Best answers at most.

    Returns
    -------
    Equilibrium
        It, or the last answer with ``exists=False``.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.paper import find_equilibrium
    >>> K = np.array([[1.0, 0.5, 0, 0], [0.5, 1, 0, 0], [0, 0, 1, 0.5], [0, 0, 0.5, 1]])
    >>> find_equilibrium(K, np.array([1.0, 1, -1, -1]), C=1.0, k=0).exists
    True
    """
    signs, seen = given.copy(), set()
    eta = 1 / max(float(np.linalg.eigvalsh(K)[-1]), 1e-300)
    tries = 0
    while True:
        tries += 1
        dual = solve_dual(K, signs, C)
        answer = attack(dual, given, k)
        if (answer == signs).all() or signs.tobytes() in seen or tries >= max_tries:
            break
        seen.add(signs.tobytes())
        signs = answer
    # at an equilibrium the step of Algorithm 1 moves nothing
    residual = np.abs(projected(dual - eta * (signs * (K @ (signs * dual)) - 1), signs, C) - dual).max()
    return Equilibrium(dual, signs, gap(dual, k), float(residual), bool((answer == signs).all()), tries)


def gap(dual: np.ndarray, k: int) -> float:
    """delta' = (lh_(k) - lh_(k+1)) / 2; infinity where nothing is flipped."""
    if k == 0 or k >= len(dual):
        return float("inf")
    ranked = np.sort(dual)[::-1]
    difference = float(ranked[k - 1] - ranked[k])
    return difference / 2 if difference > 1e-7 * ranked[0] else 0.0  # libsvm's own error is not a gap
