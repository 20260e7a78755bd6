"""Other ways to spend answers: orders of rows whose answered labels are fixed, and no others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

FOLDS, EVERY = 5, 10  # folds of held-out probabilities; answers between two fits
WIDE = 100  # columns from which the logistic regression is held tighter
#: name -> the weight of answered rows in training; names of the page
WEIGHTS = {"doubtful": 1.0, "active-cleaning": 1.0, "uncertainty": 1.0, "random": 1.0, "random-weight-10": 10.0}


def held_out(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Held-out class probabilities (n, M) by logistic regression."""
    model = LogisticRegression(C=0.01 if X.shape[1] > WIDE else 1.0, max_iter=300)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    return cross_val_predict(model, X, labels, method="predict_proba", cv=folds)


def _uncertain_first(X: np.ndarray, labels: np.ndarray, left: np.ndarray) -> np.ndarray:
    """The rows `left`, ten of them with the smallest margins first: scikit-activeml's uncertainty sampling."""
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import UncertaintySampling

    strategy = UncertaintySampling(method="margin_sampling", random_state=0)
    model = SklearnClassifier(LogisticRegression(max_iter=300), classes=np.unique(labels))
    first = strategy.query(X, labels.astype(float), model, candidates=left, batch_size=EVERY)
    return np.concatenate([first, left[~np.isin(left, first)]])


def _doubtful_first(who: str, X: np.ndarray, labels: np.ndarray, given: np.ndarray, left: np.ndarray) -> np.ndarray:
    """The rows `left` by the cross-entropy of the given label; active label cleaning subtracts the model's entropy."""
    share = np.clip(held_out(X, labels), 1e-9, 1)
    score = -np.log(share[np.arange(len(given)), np.searchsorted(np.unique(labels), given)])
    if who == "active-cleaning":  # Bernhardt et al. 2022, equation 2
        score = score + (share * np.log(share)).sum(axis=1)
    return left[np.argsort(-score[left], kind="stable")]


def fixed_labels(who: str, X: np.ndarray, y: np.ndarray, given: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """Labels with 1, 2, ... of them fixed, in the order of a peer that looks at them again after every ten."""
    labels = given.copy()
    left = np.random.default_rng(seed).permutation(len(y))
    for turn in range(len(y)):
        enough = min(np.unique(labels, return_counts=True)[1]) >= FOLDS
        if not who.startswith("random") and turn % EVERY == 0 and enough:
            if who == "uncertainty":
                left = _uncertain_first(X, labels, left)
            else:
                left = _doubtful_first(who, X, labels, given, left)
        row, left = left[0], left[1:]
        labels[row] = y[row]
        yield labels
