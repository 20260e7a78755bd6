"""The constants of the paper's Lemmas 1 and 2, as printed and as the proof needs them, and its equilibrium.

One round is z = lam - eta (Q lam - 1), Q = diag(y) K diag(y), then lam = clip(z - mu y, 0, C) with y'lam = 0. With
(lh, yh) an equilibrium, zh its unprojected point and ||.|| the largest absolute entry, the lemmas read

    Lemma 1   ||lam_t - lh|| <= kappa_z ||z_t - zh|| + kappa_y ||y_t - yh||
    Lemma 2   ||z_t - zh||   <= kappa_lambda ||lam_{t-1} - lh|| + kappa'_y ||y_t - yh||.

Lemma 1 is printed with kappa_z = 1 and kappa_y = C / |I_z| + |mu|. Its proof bounds the single entries of two Jacobians
where the induced norm (the largest row sum) is needed. What does hold, for any two points:

    kappa_z = 2 - 2/n       the projection's Jacobian on the free points is I - yy'/m, with row sums 2 - 2/m, m <= n;
    kappa_y = (|mu(z, y)| + |mu(z, yh)|) / 2       since clip moves no further than its argument, mu y - muh yh.

The second needs no derivative along labels between -1 and +1, where the printed one would use y_i^2 = 1.

What the paper calls a Stackelberg equilibrium is a fixed point of simultaneous best answers, duals that solve the SVM
for the labels that the top-k attacker makes of them:

    argmin_lam D(lam, yh) s.t. yh'lam = 0, 0 <= lam <= C, where yh flips the k largest of that very lam.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.svm import SVC

from floral_learn.game.arrays import NUMPY
from floral_learn.game.dual import Projection, project_exact


@dataclass(frozen=True)
class Constants:
    """kappa_lambda in two norms, and what step sizes would bring it below 1.

    Attributes
    ----------
    eta : float
        The step.
    kappa_infinity, kappa_spectral : float
        The norms of I - eta Q.
    lambda_min, lambda_max : float
        Outermost eigenvalues of K.
    dominance : float
        min_i of K_ii minus the other absolute entries of its row: above 0, K is strictly diagonally dominant.
    eta_infinity, eta_spectral : float or None
        Steps below this bring the norm below 1; None where no step does.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.paper import constants
    >>> constants(np.eye(3), eta=0.5).kappa_infinity
    0.5
    """

    eta: float
    kappa_infinity: float  # ||I - eta Q||_inf
    kappa_spectral: float  # ||I - eta Q||_2
    lambda_min: float
    lambda_max: float
    dominance: float  # min_i K_ii - sum_{j != i} |K_ij|: above 0, K is strictly diagonally dominant
    eta_infinity: float | None  # steps below this give kappa_infinity < 1; None: no step does
    eta_spectral: float | None  # the same for kappa_spectral


def constants(K: np.ndarray, eta: float) -> Constants:
    """Compute kappa_lambda for a Gram matrix; labels change neither norm of I - eta diag(y) K diag(y).

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Symmetric.
    eta : float
        The step.

    Returns
    -------
    Constants
        Both norms and the steps that would bring them below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.paper import constants
    >>> found = constants(np.array([[1.0, 0.9], [0.9, 1.0]]), eta=0.1)
    >>> round(found.kappa_infinity, 2), round(found.eta_infinity, 2)
    (0.99, 1.05)
    """
    # the infinity norm of I - eta K is its largest absolute row sum
    diagonal = np.diag(K)
    rest = np.abs(K).sum(axis=1) - np.abs(diagonal)
    values = np.linalg.eigvalsh(K)
    low, high = float(values[0]), float(values[-1])
    dominance = float((diagonal - rest).min())
    # Below rounding an eigenvalue or a row's slack is not known to be positive.
    tiny = len(K) * 2.0**-52 * max(high, 1e-300)
    return Constants(
        eta=float(eta),
        kappa_infinity=float((np.abs(1 - eta * diagonal) + eta * rest).max()),
        kappa_spectral=float(max(abs(1 - eta * low), abs(1 - eta * high))),
        lambda_min=low,
        lambda_max=high,
        dominance=dominance,
        eta_infinity=float((2 / (diagonal + rest)).min()) if dominance > tiny else None,
        eta_spectral=2 / high if low > tiny else None,
    )


def kappa_z(n: int) -> float:
    """||P_y(z) - P_y(z')||_inf <= kappa_z ||z - z'||_inf for the projection onto {y'a = 0, 0 <= a <= C}."""
    return 2 - 2 / n


def kappa_y_printed(C: float, dual: np.ndarray, mu: float) -> float:
    """C / |I_z| + |mu|, as printed; with no free point the derivative is 0 almost everywhere, and so is this."""
    free = int(((dual > 0) & (dual < C)).sum())
    return C / free + abs(mu) if free else 0.0


def kappa_y_proven(z: np.ndarray, signs: np.ndarray, other: np.ndarray, C: float) -> float:
    """(|mu(z, y)| + |mu(z, yh)|) / 2, so that ||P_y(z) - P_yh(z)||_inf <= kappa_y ||y - yh||_inf."""
    return (abs(multiplier(z, signs, C)) + abs(multiplier(z, other, C))) / 2


def multiplier(z: np.ndarray, signs: np.ndarray, C: float) -> float:
    """mu of the projection of `z` under labels `signs`, both (n,)."""
    return float(_projection(z, signs, C).mu[0])


def projected(z: np.ndarray, signs: np.ndarray, C: float) -> np.ndarray:
    """The projection itself, (n,)."""
    return _projection(z, signs, C).dual[:, 0]


def kappa_prime_y(K: np.ndarray, dual: np.ndarray, between: np.ndarray, eta: float) -> float:
    """||eta (K o (xi lh') + diag(K (lh o xi)))||_inf for labels xi = `between` on the way from yh to y_t.

    The gradient is quadratic in the labels, so that the mean value theorem is exact with xi the midpoint.
    """
    # derivative of y o (K (y o lh)) by y: one term for each place that y has
    matrix = K * np.outer(between, dual)
    matrix[np.diag_indices_from(matrix)] += K @ (dual * between)
    return float(eta * np.abs(matrix).sum(axis=1).max())


def kappa_prime_y_worst(K: np.ndarray, dual: np.ndarray, eta: float) -> float:
    """The largest kappa'_y over all labels: 2 eta max_i sum_j |K_ij| lh_j."""
    return float(2 * eta * (np.abs(K) @ dual).max())


def _projection(z: np.ndarray, signs: np.ndarray, C: float) -> Projection:
    cap = np.full((len(z), 1), float(C))
    return project_exact(NUMPY.columns(z), NUMPY.columns(signs, np.float64), cap)


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
    step = dual - eta * (signs * (K @ (signs * dual)) - 1)
    residual = float(np.abs(projected(step, signs, C) - dual).max())
    return Equilibrium(dual, signs, gap(dual, k), residual, bool((answer == signs).all()), tries)


def gap(dual: np.ndarray, k: int) -> float:
    """delta' = (lh_(k) - lh_(k+1)) / 2; infinity where nothing is flipped."""
    if k == 0 or k >= len(dual):
        return float("inf")
    ranked = np.sort(dual)[::-1]
    difference = float(ranked[k - 1] - ranked[k])
    return difference / 2 if difference > 1e-7 * ranked[0] else 0.0  # libsvm's own error is not a gap
