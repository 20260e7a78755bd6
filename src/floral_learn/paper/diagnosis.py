"""Which of the paper's guarantees apply to a fitted classifier, and which training points it leans on most.

Influence is that of the paper's appendix: FLORAL's duals and a network's input gradients; what their largest quarters
share, on IMDB, is compared there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError

from floral_learn.base import Shown
from floral_learn.base.extras import drawing_axis
from floral_learn.floral.classifier import GameClassifier
from floral_learn.game.arrays import NUMPY
from floral_learn.game.attackers import Recorded
from floral_learn.game.game import Game, GameState, solve
from floral_learn.game.gram import DENSE_ROWS, DenseGram
from floral_learn.paper.theory import (
    Constants,
    Equilibrium,
    constants,
    find_equilibrium,
    kappa_prime_y_worst,
    kappa_y_printed,
    kappa_z,
    multiplier,
)


@dataclass(frozen=True)
class Premise:
    """One condition of a statement.

    Attributes
    ----------
    statement : str
        "Lemma 2", "Theorem", ...
    condition : str
        What must hold.
    holds : bool
        Whether it does.
    measured : str
        The number behind it.
    remedy : str
        What would make it hold; empty where nothing is needed.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import FloralClassifier
    >>> from floral_learn.paper import diagnose
    >>> X, y = make_moons(80, noise=0.2, random_state=0)
    >>> found = diagnose(FloralClassifier(gamma=1.0, budget=0.05, tol=None, random_state=0).fit(X, y), X, y)
    >>> next(p.holds for p in found.premises if p.condition == "the attacker is deterministic top-k")
    False
    """

    statement: str  # "Lemma 2", "Theorem", ...
    condition: str
    holds: bool
    measured: str
    remedy: str  # what would make it hold; empty where nothing is needed


@dataclass(frozen=True, repr=False)
class Diagnosis(Shown):
    """The paper's constants for a fit; ``print(diagnosis)`` is text for people.

    Attributes
    ----------
    n, n_fit : int
        Rows at hand and rows of the fit; fewer at hand where only the support vectors were.
    k, budget : int
        Flips a round and candidates.
    constants : Constants
        kappa_lambda in two norms.
    kappa_z : float
        Of Lemma 1 as proven (printed: 1).
    kappa_y, kappa_y_proven : float
        At the equilibrium, as printed and as proven.
    kappa_prime_y : float
        Largest over all labels.
    gap : float
        delta'.
    equilibrium : Equilibrium
        What the game is compared with.
    proposition_left : float
        2 (kappa_y + kappa'_y) k / (1 - kappa_lambda); inf where kappa_lambda >= 1.
    proposition_best : (float, float) or None
        Step and smallest left side over step sizes; None if no step brings kappa_lambda below 1.
    premises : list of Premise
        Every condition, with what was measured.
    distances : ndarray of shape (rounds,) or None
        Distance to the equilibrium after each round; None where the game cannot be replayed.
    flips_differ : ndarray of shape (rounds,) or None
        How many labels differ from the equilibrium's.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import FloralClassifier
    >>> from floral_learn.paper import diagnose
    >>> X, y = make_moons(80, noise=0.2, random_state=0)
    >>> found = diagnose(FloralClassifier(gamma=1.0, budget=0.05, tol=None, random_state=0).fit(X, y), X, y)
    >>> found.n, found.k, len(found.distances)
    (80, 2, 500)
    """

    n: int
    n_fit: int  # rows of the fit; more than n where only the support vectors were at hand
    k: int
    budget: int
    constants: Constants
    kappa_z: float  # of Lemma 1 as proven (printed: 1)
    kappa_y: float  # as printed, at the equilibrium
    kappa_y_proven: float  # at the equilibrium
    kappa_prime_y: float  # largest over all labels
    gap: float  # delta'
    equilibrium: Equilibrium
    # 2 (kappa_y + kappa'_y) k / (1 - kappa_lambda); inf where kappa_lambda >= 1
    proposition_left: float
    # (eta, smallest left side over step sizes), None if none is below 1
    proposition_best: tuple[float, float] | None
    premises: list[Premise]
    # (rounds,), ||lam_t - lh||_inf; None where the game cannot be replayed
    distances: np.ndarray | None
    flips_differ: np.ndarray | None  # (rounds,), how many labels differ from the equilibrium's

    def __str__(self) -> str:
        return _report(self)

    def _facts(self) -> dict[str, str]:
        game = f"{self.n_fit:,} rows, budget {self.budget:,}, {self.k:,} flips per round"
        met = {premise.condition: "holds" if premise.holds else "fails" for premise in self.premises}
        return {"game": game} | met

    def plot(self, ax: Any = None) -> Any:
        """Draw the distance to equilibrium over the rounds on `ax`, or on a new figure, and return the axis."""
        if self.distances is None:
            raise ValueError("there are no distances: pass X and y to diagnose")
        ax = drawing_axis(ax)
        ax.semilogy(np.maximum(self.distances, 1e-16), label="distance to equilibrium")
        if np.isfinite(self.gap) and self.gap > 0:
            ax.axhline(self.gap, linestyle=":", color="0.4", label="delta': below, the flips no longer change")
        ax.set(xlabel="round", ylabel="largest difference of a dual")
        ax.legend()
        return ax


def diagnose(clf: Any, X: Any = None, y: Any = None) -> Diagnosis:
    """Compute the constants and premises of Lemmas 1 and 2, the Theorem and the Proposition for a fitted classifier.

    Parameters
    ----------
    clf : FloralClassifier
        Fitted, two classes, at most 3,000 rows.
    X, y : array-like, optional
        The data of the fit. A classifier keeps its support vectors only. Without `X` the constants are those of the
        support rows: a premise that fails there fails for all rows too, one that holds may not; and the game cannot
        be replayed.

    Returns
    -------
    Diagnosis
        Constants, premises and distances; printed, it is text for people.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import FloralClassifier
    >>> from floral_learn.paper import diagnose
    >>> X, y = make_moons(80, noise=0.2, random_state=0)
    >>> found = diagnose(FloralClassifier(gamma=1.0, budget=0.05, tol=None, random_state=0).fit(X, y), X, y)
    >>> "kappa_lambda < 1 in the infinity norm" in [p.condition for p in found.premises if not p.holds]
    True
    """
    K, signs, everything = _problem(clf, X, y)
    n, k, eta, C = len(K), int(clf.flips_), float(clf.learning_rate_[0]), float(clf.C)
    known = constants(K, eta)
    rest = find_equilibrium(K, signs, C, k)
    z = rest.dual - eta * (rest.signs * (K @ (rest.signs * rest.dual)) - 1)
    mu = multiplier(z, rest.signs, C)
    kappa_y = kappa_y_printed(C, rest.dual, mu)
    prime = kappa_prime_y_worst(K, rest.dual, eta)
    distances, differ = _replay(clf, K, signs, rest, C) if everything else (None, None)
    left = _left(kappa_y, prime, k, known.kappa_infinity)
    best = _best_step(K, rest, C, k, known)
    return Diagnosis(
        n=n,
        n_fit=len(clf.flip_rate_),
        k=k,
        budget=int(clf.budget_),
        constants=known,
        kappa_z=kappa_z(n),
        kappa_y=kappa_y,
        kappa_y_proven=abs(mu),
        kappa_prime_y=prime,
        gap=rest.gap,
        equilibrium=rest,
        proposition_left=left,
        proposition_best=best,
        premises=_premises(known, rest, k, _attacker(clf), prime, left, best, n),
        distances=distances,
        flips_differ=differ,
    )


def _problem(clf: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, bool]:
    """K, labels as -1/+1, and whether these are all rows of the fit."""
    if not hasattr(clf, "history_"):
        raise ValueError("diagnose needs a fitted FloralClassifier: call fit first")
    if len(clf.classes_) != 2:
        raise ValueError(f"the paper's analysis is for two classes; this fit has {len(clf.classes_)}")
    if clf.kernel == "precomputed":
        if X is None:
            raise ValueError("a precomputed kernel is not kept by the classifier: pass the matrix as X")
        rows, K = np.arange(len(clf.flip_rate_)), np.asarray(X, dtype=float)
    else:
        rows = np.arange(len(clf.flip_rate_)) if X is not None else clf.support_
        vectors = clf.support_vectors_ if X is None else X
        vectors = vectors.toarray() if sparse.issparse(vectors) else np.asarray(vectors, dtype=float)
        if len(vectors) > DENSE_ROWS:
            raise ValueError(f"diagnose forms K and its eigenvalues: at most {DENSE_ROWS:,} rows, got {len(vectors):,}")
        kernel = clf.model_.kernel
        prepared = kernel.prepare(vectors, NUMPY, "float64")
        K = np.asarray(kernel(prepared, prepared, NUMPY), dtype=float)
    if len(K) != len(rows) or K.shape[0] != K.shape[1]:
        raise ValueError(f"X has {len(K)} rows; the fit had {len(rows)}")
    labels = clf.record_.labels[rows]
    if y is not None and X is not None and not np.array_equal(np.asarray(y), clf.classes_[labels]):
        raise ValueError("y differs from the labels of the fit")
    return (K + K.T) / 2, 2.0 * labels - 1, len(rows) == len(clf.flip_rate_)


def _replay(
    clf: Any, K: np.ndarray, given: np.ndarray, rest: Equilibrium, C: float
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Distances of every round's duals from the equilibrium: the recorded flips and steps, played once more."""
    flips = np.asarray(clf.history_["flips"]).reshape(clf.n_iter_, -1)
    if clf.flips_ and not flips.shape[1]:
        return None, None  # they were not kept
    steps = np.asarray(clf.history_["step"]).reshape(clf.n_iter_)
    far, differ = np.empty(len(steps)), np.empty(len(steps), dtype=int)

    def note(state: GameState) -> None:
        far[state.round - 1] = np.abs(state.dual[:, 0] - rest.dual).max()
        differ[state.round - 1] = (state.signs[:, 0] != rest.signs).sum()

    labels, cap = (given > 0).astype(int), np.full(len(K), C)
    again = Game(DenseGram(K), labels, cap, steps, Recorded(flips), warm_up=0)
    ended = float(solve(again, callback=note).history["objective"][-1, 0])
    recorded = float(np.ravel(clf.history_["objective"])[-1])
    # Sample weights change the game and are not recorded: then the replay is another game.
    if abs(ended - recorded) > 1e-3 * max(1.0, abs(recorded)):
        return None, None
    return far, differ


def _attacker(clf: Any) -> tuple[bool, str]:
    """Whether the attacker that was played flips the k largest duals of all rows, and in what it differs."""
    k, budget, per_class = int(clf.flips_), int(clf.budget_), clf._settings().per_class
    seen = f"k = {k} of B = {budget}"
    if k and per_class:
        seen += ", the same share of each class"
    if not clf.record_.may_flip.all():
        seen += ", some labels trusted"
    return k == 0 or (budget <= k and not per_class and bool(clf.record_.may_flip.all())), seen


def _left(kappa_y: float, prime: float, k: int, kappa: float) -> float:
    if k == 0:
        return 0.0
    return 2 * (kappa_y + prime) * k / (1 - kappa) if kappa < 1 else float("inf")


def _best_step(K: np.ndarray, rest: Equilibrium, C: float, k: int, known: Constants) -> tuple[float, float] | None:
    """The step size with the smallest left side of the Proposition: kappa_y stays while 1 - kappa_lambda vanishes."""
    if known.eta_infinity is None:
        return None
    best = (0.0, float("inf"))
    diagonal = np.diag(K)
    others = np.abs(K).sum(axis=1) - np.abs(diagonal)
    for eta in known.eta_infinity * np.geomspace(1e-4, 0.999, 40):
        z = rest.dual - eta * (rest.signs * (K @ (rest.signs * rest.dual)) - 1)
        kappa_y = kappa_y_printed(C, rest.dual, multiplier(z, rest.signs, C))
        kappa = float((np.abs(1 - eta * diagonal) + eta * others).max())
        left = _left(kappa_y, kappa_prime_y_worst(K, rest.dual, eta), k, kappa)
        if left < best[1]:
            best = (float(eta), left)
    return best


def _premises(
    known: Constants,
    rest: Equilibrium,
    k: int,
    attacker: tuple[bool, str],
    prime: float,
    left: float,
    best: tuple[float, float] | None,
    n: int,
) -> list[Premise]:
    no_step = "no step size: K is not strictly diagonally dominant"
    infinity = "" if known.kappa_infinity < 1 else no_step
    if known.eta_infinity is not None and known.kappa_infinity >= 1:
        infinity = f"a step size below {known.eta_infinity:.3g}"
    spectral = "" if known.kappa_spectral < 1 else "no step size: K is numerically singular"
    if known.eta_spectral is not None and known.kappa_spectral >= 1:
        spectral = f"a step size below {known.eta_spectral:.3g}"
    settled = "no step size: the best answers go round in a circle"
    reach = "" if left < rest.gap else "no step size makes it hold"
    if left >= rest.gap and best is not None and best[1] < rest.gap:
        reach = f"a step size of {best[0]:.3g}"
    small_prime = f"a step size below {known.eta / prime:.3g}" if prime >= 1 else ""
    factor = kappa_z(n) * known.kappa_infinity
    printed = "use the proven constants: the printed bound is violated in practice (in a third of random games)"
    random_flips = "PaperFloralClassifier, budget = flips, no trusted labels: else flips are random, or not the largest"
    ties = "a larger C or another k: several duals share the value at the cut"
    dominant = "a kernel that is more diagonally dominant (a larger gamma)"
    kappa, tight = known.kappa_infinity, known.kappa_spectral
    rows: list[tuple[str, str, bool, str, str]] = [
        ("all", "an equilibrium exists", rest.exists, f"{rest.tries} best answers tried", settled),
        ("all", "the attacker is deterministic top-k", *attacker, random_flips),
        ("Lemma 1", "as printed (kappa_z = 1)", n <= 2, f"the proof gives kappa_z = {kappa_z(n):.3f}", printed),
        ("Lemma 2", "kappa_lambda < 1 in the infinity norm", kappa < 1, f"{kappa:.4g}", infinity),
        ("Lemma 2", "kappa'_y < 1", prime < 1, f"at most {prime:.4g}", small_prime),
        ("Theorem", "kappa_lambda < 1 (as printed)", kappa < 1, f"{kappa:.4g}", infinity),
        ("Theorem", "kappa_z kappa_lambda < 1 (Lemma 1 as proven)", factor < 1, f"{factor:.4g}", dominant),
        ("Theorem", "||I - eta Q||_2 < 1 (in the Euclidean norm)", tight < 1, f"{tight:.6g}", spectral),
        ("Theorem", "no ties among the largest duals", rest.gap > 0, f"delta' = {rest.gap:.3g}", ties),
        (
            "Proposition",
            "2 (kappa_y + kappa'_y) k / (1 - kappa_lambda) < delta'",
            left < rest.gap,
            f"{left:.3g} against {rest.gap:.3g}",
            reach,
        ),
    ]
    return [Premise(name, text, bool(holds), seen, "" if holds else remedy) for name, text, holds, seen, remedy in rows]


def _report(found: Diagnosis) -> str:
    """A diagnosis in words that need no theorem: a verdict, the conditions one by one, the numbers."""
    known = found.constants
    proven = all(p.holds for p in found.premises if p.statement in ("all", "Proposition"))
    local = found.equilibrium.exists and found.gap > 0 and known.kappa_spectral < 1
    if found.k == 0:
        verdict = "The attacker is off: this is a plain SVM, and its training settles wherever the step size is stable."
    elif proven:
        verdict = "This game is guaranteed to settle from any start: the paper's global result applies to it."
    elif local and found.budget <= found.k:
        verdict = "This game settles once it is close to its balance point; nothing is promised from far away."
    elif local:
        verdict = (
            "The balance point of this game is stable, but the attacker draws its flips at random in every round: the "
            "training keeps moving around it. That is expected, and why predictions use the averaged model."
        )
    else:
        verdict = (
            "No convergence guarantee of the paper covers this fit. That is common, and says nothing about accuracy: "
            "the iterates are bounded all the same, and predictions use their average."
        )
    lines = [verdict, "", "Conditions:"]
    for p in found.premises:
        lines.append(f"  [{'holds' if p.holds else 'FAILS'}] {p.statement}: {p.condition} ({p.measured})")
        if p.remedy:
            lines.append(f"          to make it hold: {p.remedy}")
    lines += [
        "",
        "Numbers:",
        f"  step size {known.eta:.4g}; stable below 2 / lambda_max = {2 / known.lambda_max:.4g}",
        f"  kappa_lambda {known.kappa_infinity:.4g} (infinity norm), {known.kappa_spectral:.6g} (spectral norm)",
        f"  kappa_y {found.kappa_y:.4g} as printed, {found.kappa_y_proven:.4g} as proven; kappa_z {found.kappa_z:.4g}",
        f"  kappa'_y {found.kappa_prime_y:.4g}; delta' {found.gap:.4g}",
    ]
    if found.n < found.n_fit:
        lines.append(
            f"  Only the {found.n:,} support vectors of {found.n_fit:,} rows were at hand: what fails here fails for "
            "all rows, what holds may not. Pass X and y for all of them."
        )
    return "\n".join(lines)


def dual_influence(model: Any) -> np.ndarray:
    """|dual| of every training row of a fitted FloralClassifier, (n,); the largest over classes.

    The duals are those of the model that predicts: averaged over rounds where the classifier averages.
    """
    if not hasattr(model, "flip_rate_"):
        name = type(model).__name__
        if isinstance(model, GameClassifier):
            raise NotFittedError(f"This {name} instance is not fitted yet: call fit first.")
        raise ValueError(f"{name} has no flip_rate_: give a fitted FloralClassifier, such as the head_ of a text model")
    influence = np.zeros(len(model.flip_rate_))
    influence[model.support_] = np.abs(model.dual_coef_).max(axis=0)
    return influence


def gradient_influence(model: Any, X: Any, y: Any) -> np.ndarray:
    """|d loss / d input| of every row under the labels `y`, (n,), for any model with ``input_gradient_norms``."""
    if not hasattr(model, "input_gradient_norms"):
        raise ValueError(f"{type(model).__name__} has no input_gradient_norms: give a network such as TextClassifier")
    if not hasattr(model, "classes_"):
        raise NotFittedError(f"This {type(model).__name__} instance is not fitted yet: call fit first.")
    y = np.asarray(y)
    codes = np.searchsorted(model.classes_, y).clip(0, len(model.classes_) - 1)
    if (model.classes_[codes] != y).any():
        raise ValueError(f"y has labels that the model does not know; it knows {model.classes_.tolist()}")
    return np.asarray(model.input_gradient_norms(X, codes)[0])


def top_rows(influence: np.ndarray, share: float | int = 0.25) -> np.ndarray:
    """Rows with the largest influence, most influential first; ties in the order of the rows.

    `share` is a fraction of the rows (float) or a count (int). Rows without any influence are never among them.
    """
    influence = np.asarray(influence, dtype=float)
    if influence.ndim != 1 or not np.isfinite(influence).all():
        raise ValueError("influence must be a flat array of finite numbers")
    whole = isinstance(share, (int, np.integer)) and not isinstance(share, bool)
    if not (1 <= share <= len(influence) if whole else 0 < share <= 1):
        raise ValueError(f"share={share!r} must be a fraction in (0, 1] or a count from 1 to {len(influence)}")
    count = int(share) if whole else max(1, int(len(influence) * share + 1e-9))
    order = np.argsort(-influence, kind="stable")[:count]
    return order[influence[order] > 0]


def overlap(first: np.ndarray, second: np.ndarray, share: float = 0.25) -> float:
    """Part of the `share` most influential rows that two models have in common, from 0 to 1.

    Chance alone gives `share`.
    """
    if np.shape(first) != np.shape(second):
        raise ValueError(f"influences of {np.shape(first)} and {np.shape(second)} rows: both must cover the same rows")
    a, b = top_rows(first, share), top_rows(second, share)
    return len(np.intersect1d(a, b)) / max(len(a), len(b), 1)
