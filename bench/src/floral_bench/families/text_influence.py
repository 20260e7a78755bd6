"""The imdb-influence cells: how many of their most influential quarter of the reviews FLORAL and the network share.

FLORAL is the fixed configuration on embeddings of the encoder tuned on the same labels; against "own" is that network,
against "clean" the one tuned on clean labels, as in the two panels of the paper's figure.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from floral_bench.families.text_data import Draw
from floral_bench.families.text_encode import Encoded
from floral_bench.spec import Cell, CellResult
from floral_learn.floral.classifier import FloralClassifier
from floral_learn.floral.engine import Engine
from floral_learn.neural.influence import dual_influence, overlap, top_rows

SHARE = 0.25
POINTS = 5


def influence_cell(
    cell: Cell, draw: Draw, labels: np.ndarray, own: Encoded, clean: Encoded, device: str | None
) -> CellResult:
    """Rows: the overlap, and how many poisoned labels are among each model's top rows; traces: the top rows."""
    duals = _duals(cell, own, labels, device)
    network = own if dict(cell.method.params).get("against") == "own" else clean
    result = CellResult(cell)
    result.add("overlap", overlap(duals, network.norms, SHARE))
    poisoned = labels != draw.y_train
    for name, influence in (("floral", duals), ("network", network.norms)):
        result.add(f"poisoned_share_{name}", float(poisoned[top_rows(influence, SHARE)].mean()))
        result.traces["", f"top_{name}"] = top_rows(influence, min(POINTS, len(labels)))
    return result


def _duals(cell: Cell, own: Encoded, labels: np.ndarray, device: str | None) -> np.ndarray:
    return _fitted_duals(own.train.tobytes(), own.train.shape, labels.tobytes(), cell.C, cell.gamma, cell.seed, device)


@lru_cache(maxsize=1)
def _fitted_duals(
    rows: bytes,
    shape: tuple[int, int],
    labels: bytes,
    C: float,
    gamma: float,
    seed: int,
    device: str | None,
) -> np.ndarray:
    """Both cells of a level ask for the same game."""
    X = np.frombuffer(rows, np.float16).reshape(shape).astype(np.float32)
    y = np.frombuffer(labels, np.int64)
    clf = FloralClassifier(C=C, gamma=gamma, budget=0.02, engine=Engine(device=device), random_state=seed)
    return dual_influence(clf.fit(X, y))
