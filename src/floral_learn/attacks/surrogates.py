"""The attacker's stand-in for the victim: any scikit-learn classifier read in one way, or an SVM on one Gram matrix."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from floral_learn.base.validation import check_svm
from floral_learn.game.gram import MAX_BYTES
from floral_learn.game.kernels import resolve_gamma


def fresh(surrogate: Any, rng: np.random.Generator) -> Any:
    """Return an unfitted copy whose open ``random_state`` parameters are drawn from ``rng``.

    Without this, a surrogate such as a random forest would make a seeded attack unrepeatable.
    """
    if not hasattr(surrogate, "fit") or not hasattr(surrogate, "get_params"):
        raise ValueError(f"surrogate must be a scikit-learn classifier, got {surrogate!r}")
    copy = clone(surrogate)
    unset = [name for name, value in copy.get_params().items() if value is None]
    names = sorted(name for name in unset if name.endswith("random_state"))
    seeds = {name: int(rng.integers(2**31 - 1)) for name in names}
    return copy.set_params(**seeds) if seeds else copy


def class_scores(fitted: Any, X: Any, n_classes: int) -> np.ndarray:
    """Return (n, M) scores of a classifier fitted on codes 0..M-1, larger meaning more likely.

    Two classes: columns -f/2 and f/2, so that their difference is the decision function f. A
    classifier without ``decision_function`` gives its probabilities. A class that the classifier
    has not seen gets the lowest score.
    """
    if hasattr(fitted, "decision_function"):
        values = np.asarray(fitted.decision_function(X), dtype=float)
        if values.ndim == 1:
            values = np.column_stack([-values / 2, values / 2])
    elif hasattr(fitted, "predict_proba"):
        values = np.asarray(fitted.predict_proba(X), dtype=float)
        if values.shape[1] == 2:
            values = values - 0.5
    else:
        raise ValueError(f"surrogate {fitted!r} has neither decision_function nor predict_proba")
    seen = np.asarray(fitted.classes_, dtype=np.intp)
    if values.shape[1] != len(seen):
        raise ValueError(f"surrogate {fitted!r} must give one score per class, got shape {values.shape}")
    if len(seen) == n_classes:
        return values
    scores = np.full((len(values), n_classes), values.min(initial=0.0) - 1.0)
    scores[:, seen] = values
    return scores


def margins(scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return (n,) score of the given class minus the best other: y f for two classes."""
    rows = np.arange(len(codes))
    others = scores.copy()
    others[rows, codes] = -np.inf
    return scores[rows, codes] - others.max(axis=1)


def boundary_distance(scores: np.ndarray) -> np.ndarray:
    """Return (n,) best minus second best score: |f| for two classes."""
    top = np.partition(scores, -2, axis=1)[:, -2:]
    return top[:, 1] - top[:, 0]


def dual_weights(fitted: Any, X: Any, codes: np.ndarray) -> np.ndarray:
    """Return (n,) dual variables: how hard each row pulls at the fitted model.

    Support vector machines expose them (|dual_coef_|, summed over their binary problems). For any
    other classifier with probabilities this is 1 - p(y_i | x_i), the dual of the logistic loss up to
    C; without probabilities, the hinge max(0, 1 - y f).
    """
    if hasattr(fitted, "dual_coef_") and hasattr(fitted, "support_"):
        weights = np.zeros(len(codes))
        dual = fitted.dual_coef_
        dense = dual.toarray() if hasattr(dual, "toarray") else np.asarray(dual)
        weights[fitted.support_] = np.abs(dense).sum(axis=0)
        return weights
    if hasattr(fitted, "predict_proba"):
        return 1.0 - fitted.predict_proba(X)[np.arange(len(codes)), codes]
    scores = class_scores(fitted, X, int(codes.max()) + 1)
    return np.maximum(0.0, 1.0 - margins(scores, codes))


def svm_kernel(svm: Any, X: Any) -> dict[str, Any]:
    """Return name and numbers of the kernel of an SVC, or of an attack on one, for training rows ``X``; checked."""
    check_svm(svm.C, svm.kernel, svm.gamma, ("rbf", "linear", "poly", "sigmoid", "laplacian"))
    return {"name": svm.kernel, "gamma": resolve_gamma(svm.gamma, X), "degree": svm.degree, "coef0": svm.coef0}


def svm_gram(svm: Any, X: Any, Z: Any = None) -> np.ndarray:
    """Return kernel values of rows ``Z`` (by default X) with the training rows ``X``; labels never enter them."""
    if Z is None and (needed := 8 * X.shape[0] ** 2) > MAX_BYTES:
        raise MemoryError(
            f"the Gram matrix of {X.shape[0]:,} rows takes {needed / 1e9:.1f} GB, over {MAX_BYTES / 1e9:.0f} GB; "
            "attack a subset of the rows, or use 'alfa-tilt' with gram='low_rank'"
        )
    kernel = svm_kernel(svm, X)
    rows = X if Z is None else Z
    return pairwise_kernels(rows, X, metric=kernel.pop("name"), filter_params=True, **kernel)


@dataclass(frozen=True)
class SVMFit:
    """Signed duals ``beta = alpha * y`` (n,), intercept, values f(x_i) (n,) and |w|^2."""

    beta: np.ndarray
    intercept: float
    values: np.ndarray
    squared_norm: float


def fit_dual(gram: np.ndarray, signs: np.ndarray, C: float) -> SVMFit:
    """Solve the SVM dual on ``gram`` (n, n) for labels ``signs`` in {-1, +1} and cost C.

    Where an attack has left one class only, the optimum is w = 0 with that class as intercept.
    """
    if (signs == signs[0]).all():
        return SVMFit(np.zeros(len(signs)), float(signs[0]), signs.astype(float), 0.0)
    model = SVC(kernel="precomputed", C=C).fit(gram, signs)
    # libsvm's dual_coef_ are signed: beta_i = alpha_i y_i
    beta = np.zeros(len(signs))
    beta[model.support_] = model.dual_coef_[0]
    product = gram[:, model.support_] @ model.dual_coef_[0]
    intercept = float(model.intercept_[0])
    return SVMFit(beta, intercept, product + intercept, float(beta @ product))
