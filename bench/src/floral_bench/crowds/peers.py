"""Aggregators that people use, ours among them: votes (and features) in, class probabilities out."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from floral_learn.crowd import aggregate_votes

from .problems import CrowdProblem

Found = np.ndarray | tuple[np.ndarray, np.ndarray]  # probabilities (n, K), and which items are decided (n,)
Aggregator = Callable[[CrowdProblem, np.ndarray, int], Found]


def majority(problem: CrowdProblem, votes: np.ndarray, seed: int) -> np.ndarray:
    """Shares of the votes; ties to the class that comes first."""
    counts = np.stack([(votes == c).sum(axis=1) for c in problem.classes], axis=1) + 1e-3
    return counts / counts.sum(axis=1, keepdims=True)


def ours(problem: CrowdProblem, votes: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """`aggregate_votes` with features."""
    return _ours(votes, problem.X, problem, seed)


def ours_without_features(problem: CrowdProblem, votes: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """`aggregate_votes` from votes alone."""
    return _ours(votes, None, problem, seed)


def kit(name: str) -> Aggregator:
    """An aggregator of crowd-kit at its own defaults."""

    def aggregate(problem: CrowdProblem, votes: np.ndarray, seed: int) -> np.ndarray:
        return as_frame(KIT[name](seed), long_of(votes), len(problem.classes), len(votes))

    return aggregate


def _kit(name: str, **known: Any) -> Any:
    import crowdkit.aggregation

    return getattr(crowdkit.aggregation, name)(**known)


KIT: dict[str, Callable[[int], Any]] = {  # seed -> aggregator
    "dawid-skene": lambda seed: _kit("DawidSkene"),
    "one-coin": lambda seed: _kit("OneCoinDawidSkene"),
    "mace": lambda seed: _kit("MACE", random_state=max(seed, 0)),
    "glad": lambda seed: _kit("GLAD"),
}


def crowdlab(problem: CrowdProblem, votes: np.ndarray, seed: int) -> np.ndarray:
    """A classifier taught by majority labels, and votes, weighed by agreement (cleanlab)."""
    from cleanlab.multiannotator import get_label_quality_multiannotator, get_majority_vote_label

    table = pd.DataFrame(np.where(votes >= 0, votes, np.nan))
    first = np.asarray(get_majority_vote_label(table, verbose=False))
    probability = _held_out(problem, first, seed)
    found = get_label_quality_multiannotator(
        table, probability, verbose=False, return_detailed_quality=False, return_annotator_stats=False
    )["label_quality"]
    labels, quality = found["consensus_label"].to_numpy(dtype=int), found["consensus_quality_score"].to_numpy()
    k = len(problem.classes)
    out = np.repeat(((1 - quality) / (k - 1))[:, None], k, axis=1)
    out[np.arange(len(labels)), labels] = np.maximum(quality, 1 / k + 1e-6)
    return out


METHODS: dict[str, Aggregator] = {
    "majority": majority,
    **{name: kit(name) for name in KIT},
    "crowdlab": crowdlab,
    "ours without features": ours_without_features,
    "ours": ours,
}
NEEDS = {**dict.fromkeys(KIT, "crowdkit"), "crowdlab": "cleanlab"}


def available() -> list[str]:
    """Methods whose library is installed."""
    return [name for name in METHODS if name not in NEEDS or find_spec(NEEDS[name]) is not None]


def _ours(votes: np.ndarray, X: Any, problem: CrowdProblem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    found = aggregate_votes(votes, X, missing=-1, classes=problem.classes, random_state=seed)
    return found.probability, found.decided


def long_of(votes: np.ndarray) -> Any:
    """A line per vote of a table (n, people), -1 where there is none."""
    item, person = np.nonzero(votes >= 0)
    return pd.DataFrame({"task": item, "worker": person, "label": votes[item, person]})


def as_frame(aggregator: Any, votes: Any, k: int, n: int | None = None) -> np.ndarray:
    """(n, K) probabilities of tasks 0 to n - 1 from a long frame; uniform where there is no vote."""
    found = aggregator.fit_predict_proba(votes)
    out = np.full((votes["task"].max() + 1 if n is None else n, k), 1 / k)
    values = np.zeros((len(found), k))
    values[:, [int(c) for c in found.columns]] = found.to_numpy()
    out[found.index.to_numpy(dtype=int)] = values
    return out


def majority_of(votes: Any, k: int) -> np.ndarray:
    """(n, K) shares of the votes of a long frame."""
    n = int(votes["task"].max()) + 1
    counts = np.bincount(votes["task"].to_numpy() * k + votes["label"].to_numpy(), minlength=n * k).reshape(n, k)
    return counts / counts.sum(axis=1, keepdims=True)


def _held_out(problem: CrowdProblem, labels: np.ndarray, seed: int) -> np.ndarray:
    """Out-of-sample probabilities of a logistic regression, the model that ours has inside."""
    steps: list[Any] = [StandardScaler()]
    if problem.X.shape[1] > 50:
        steps.append(PCA(50, random_state=seed))
    model = make_pipeline(*steps, LogisticRegression(C=0.1, max_iter=300))
    out = np.full((len(labels), len(problem.classes)), 1e-6)
    folds = KFold(5, shuffle=True, random_state=seed)
    if len(np.unique(labels)) < 2:
        return np.full_like(out, 1 / out.shape[1])
    for train, test in folds.split(problem.X):
        if len(np.unique(labels[train])) < 2:
            out[test] = 1 / out.shape[1]
            continue
        fitted = model.fit(problem.X[train], labels[train])
        out[np.ix_(test, fitted.classes_)] = fitted.predict_proba(problem.X[test])
    return out / out.sum(axis=1, keepdims=True)
