"""One cell: poison the votes, aggregate, and compare with the truth."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from floral_bench.crowds.peers import METHODS
from floral_bench.crowds.problems import CrowdProblem, load_problem
from floral_bench.spec import Cell, CellResult
from floral_learn.attacks.votes import poison_votes


def calibration_error(probability: np.ndarray, y: np.ndarray, bins: int = 10) -> float:
    """Expected calibration error of the most probable class, ten bins of equal width."""
    sure = probability.max(axis=1)
    right = probability.argmax(axis=1) == y
    place = np.minimum((sure * bins).astype(int), bins - 1)
    gap = [abs(float(right[place == b].mean() - sure[place == b].mean())) * (place == b).mean() for b in set(place)]
    return float(sum(gap))


def run_cell(cell: Cell) -> CellResult:
    """Rows of one cell; an error is part of the result."""

    def work(result: CellResult) -> None:
        for metric, value in measure(cell).items():
            result.add(metric, value)

    return CellResult.of(cell, work)


def measure(cell: Cell) -> dict[str, float]:
    """Accuracy of labels and of a model trained on them, calibration, ranking of people, seconds."""
    assert cell.attack is not None
    settings, told = dict(cell.data.params), dict(cell.attack.params)
    problem = load_problem(cell.data.name, settings["kind"], settings["split"])
    votes, owned = problem.votes, np.zeros(problem.votes.shape[1], dtype=bool)
    if cell.level:
        found = poison_votes(
            votes, problem.X, problem.y, attack=cell.attack.name, budget=cell.level / 100,
            informed=told["informed"], missing=-1, classes=problem.classes, random_state=settings["split"],
        )  # fmt: skip
        votes, owned = found.votes, np.isin(np.arange(votes.shape[1]), found.annotators)
    name = dict(cell.method.params)["aggregator"]
    started = time.process_time()
    answer = METHODS[name](problem, votes, settings["split"])
    seconds = time.process_time() - started
    probability, decided = answer if isinstance(answer, tuple) else (answer, None)
    labels = probability.argmax(axis=1)
    out = {
        "accuracy": float((labels == problem.y).mean()),
        "calibration": calibration_error(probability, problem.y),
        "model": model_accuracy(problem, labels),
        "seconds": seconds,
        "limit": limit(problem, owned),
    }
    if decided is not None:
        out["decided"] = float(decided.mean())
        if decided.any():
            out["accuracy_decided"] = float((labels == problem.y)[decided].mean())
    if owned.any() and not owned.all():
        out["ranking"] = ranking(votes, labels, owned)
    return out


def limit(problem: CrowdProblem, owned: np.ndarray) -> float:
    """The share (1 - e) / (2 - e) of votes above which concerted lies win, e the error of the honest."""
    votes = problem.votes[:, ~owned]
    error = float((votes != problem.y[:, None])[votes >= 0].mean()) if (votes >= 0).any() else 1.0
    return (1 - error) / (2 - error)


def model_accuracy(problem: CrowdProblem, labels: np.ndarray) -> float:
    """Test accuracy of the same logistic regression on everybody's labels."""
    if len(np.unique(labels)) < 2:
        return float((problem.y_test == labels[0]).mean())
    model: Any = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=300))
    return float(model.fit(problem.X, labels).score(problem.X_test, problem.y_test))


def ranking(votes: np.ndarray, labels: np.ndarray, owned: np.ndarray) -> float:
    """AUC of telling owned people from honest ones by how often the labels confirm them."""
    given = (votes >= 0).sum(axis=0)
    confirmed = ((votes == labels[:, None]) & (votes >= 0)).sum(axis=0)
    share = (confirmed + 1) / (given + 2)
    return float(roc_auc_score(~owned, share))
