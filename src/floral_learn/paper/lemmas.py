"""The constants of the paper's Lemmas 1 and 2, as printed and as the proof needs them.

One round is z = lam - eta (Q lam - 1), Q = diag(y) K diag(y), then lam = clip(z - mu y, 0, C) with y'lam = 0. With
(lh, yh) an equilibrium, zh its unprojected point and ||.|| the largest absolute entry, the lemmas read

    Lemma 1   ||lam_t - lh|| <= kappa_z ||z_t - zh|| + kappa_y ||y_t - yh||
    Lemma 2   ||z_t - zh||   <= kappa_lambda ||lam_{t-1} - lh|| + kappa'_y ||y_t - yh||.

Lemma 1 is printed with kappa_z = 1 and kappa_y = C / |I_z| + |mu|. Its proof bounds the single entries of two Jacobians
where the induced norm (the largest row sum) is needed. What does hold, for any two points:

    kappa_z = 2 - 2/n       the projection's Jacobian on the free points is I - yy'/m, with row sums 2 - 2/m, m <= n;
    kappa_y = (|mu(z, y)| + |mu(z, yh)|) / 2       since clip moves no further than its argument, mu y - muh yh.

The second needs no derivative along labels between -1 and +1, where the printed one would use y_i^2 = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
