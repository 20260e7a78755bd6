"""The IMDB cells of one draw and poisoning level: the transformer itself, and every head on its embeddings.

"own encoder" is fine-tuned on the labels that the head gets, poison included; "clean encoder" on the clean labels of
the same reviews. The paper does not say which of the two its heads were trained on.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from floral_bench.cell_data import gradient_labels as labels_by_gradient
from floral_bench.families.games import run_games
from floral_bench.families.sanitise import assumed_noise
from floral_bench.families.single_fits import run_fits
from floral_bench.families.text_data import Draw, Encoded, draw_of, encode
from floral_bench.metrics import binary_scores
from floral_bench.spec import Attack, Cell, CellResult, Data
from floral_learn.datasets import Dataset
from floral_learn.floral.classifier import FloralClassifier
from floral_learn.paper.diagnosis import dual_influence, overlap, top_rows

TRANSFORMER = "minilm"
INFLUENCE, SHARE, POINTS = "influence", 0.25, 5
EVERY = 10  # rounds between two points of a stored curve
_CURVES = ("accuracy", "hinge_loss", "recovery")


class _Known:
    """Input gradients that were computed when the encoder was trained, for the attack that asks for them."""

    def __init__(self, encoded: Encoded) -> None:
        self.encoded = encoded

    def input_gradient_norms(self, X: Any, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Norms and logits of all training rows."""
        return self.encoded.norms, self.encoded.logits


def gradient_labels(data: Data, attack: Attack, levels: list[float], seed: int, device: str | None) -> list[np.ndarray]:
    """Training labels after the gradient attack at each of `levels` (percent), by an encoder tuned on clean labels."""
    if attack.name != "gradient":
        raise ValueError(f"attack {attack.name!r} is not defined for texts; use 'gradient'")
    draw = draw_of(data)
    victim = _Known(encode(data, draw.y_train, seed, device))
    rows = np.arange(len(draw.y_train))[:, None]
    return labels_by_gradient(victim, rows, draw.y_train, levels, seed)


def run_text(cells: list[Cell], labels: np.ndarray, device: str | None) -> list[CellResult]:
    """Every cell of one draw and level; `labels` are its training labels.

    Cells that would compute the same (an encoder of its own on clean labels is the clean encoder) are computed once.
    """
    first = cells[0]
    draw = draw_of(first.data)
    own = encode(first.data, labels, first.seed, device)
    same = bool((labels == draw.y_train).all())
    clean = own if same else encode(first.data, draw.y_train, first.seed, device)
    results: dict[Cell, CellResult] = {}
    for name, encoded in (("own", own), ("clean", clean)):
        mine = [cell for cell in cells if dict(cell.method.params).get("encoder") == name]
        known = {_work(cell, same): results[cell] for cell in results}
        fresh = list({_work(cell, same): cell for cell in reversed(mine) if _work(cell, same) not in known}.values())
        done = _heads(fresh, labels, encoded.dataset(draw), device)
        known |= {_work(result.cell, same): result for result in done}
        results |= {cell: _copy(known[_work(cell, same)], cell) for cell in mine}
    for cell in cells:
        if cell.method.name == TRANSFORMER:
            results[cell] = _transformer(cell, own, draw)
        elif cell.method.name == INFLUENCE:
            results[cell] = _influence(cell, draw, labels, own, clean, device)
    return [
        results.get(cell) or CellResult(cell, error=f"{cell.method.name!r} is not a method for texts") for cell in cells
    ]


def _work(cell: Cell, same_encoder: bool) -> tuple[Any, ...]:
    """What decides a head's numbers: cells with equal work share them."""
    settings = dict(cell.method.params)
    own = settings.pop("encoder", None)
    settings["level"] = assumed_noise(cell.level, matched=settings.pop("matched", False))
    encoder = "own" if same_encoder else own
    return encoder, cell.method.name, tuple(sorted(settings.items())), cell.grid, cell.C, cell.gamma


def _copy(result: CellResult, cell: Cell) -> CellResult:
    return replace(result, cell=cell, rows=list(result.rows), traces=dict(result.traces))


def _heads(cells: list[Cell], labels: np.ndarray, dataset: Dataset, device: str | None) -> list[CellResult]:
    games = [cell for cell in cells if cell.grid is not None]
    fits = [cell for cell in cells if cell.grid is None]
    results: list[CellResult] = []
    if games:
        started = time.perf_counter()
        results += run_games(games, [labels] * len(games), dataset, device, traced=_CURVES[:2])
        took = time.perf_counter() - started
        columns = sum(len(result.traces) for result in results) or 1
        for result in results:  # a cell's share of the batch; the encoder's time is the transformer's
            result.seconds = took * max(len(result.traces), 1) / columns
    if fits:
        results += run_fits(fits, [labels] * len(fits), dataset, device=device)
    for result in results:
        for (config, name), values in result.traces.items():
            if name in _CURVES and len(values) > 10 * EVERY:
                result.traces[config, name] = values[EVERY - 1 :: EVERY]
    return results


def _transformer(cell: Cell, encoded: Encoded, draw: Draw) -> CellResult:
    """The fine-tuned network's own predictions; best is the peak over epochs."""
    result = CellResult(cell, seconds=encoded.seconds)
    result.add_course({"accuracy": encoded.accuracy, "hinge_loss": encoded.hinge_loss})
    balanced = binary_scores(encoded.scores[:, None], draw.y_test == 1)["balanced_accuracy"][0]
    result.add("balanced_accuracy", float(balanced), "last")
    result.traces["", "hinge_loss"] = encoded.hinge_loss.astype(np.float16)
    return result


def _influence(
    cell: Cell, draw: Draw, labels: np.ndarray, own: Encoded, clean: Encoded, device: str | None
) -> CellResult:
    """How many of their most influential quarter of the reviews FLORAL and a network share; the top rows as traces.

    FLORAL is the fixed configuration on embeddings of the encoder tuned on the same labels; against "own" is that
    network, against "clean" the one tuned on clean labels, as in the two panels of the paper's figure.
    """
    duals = _duals(own.train.tobytes(), own.train.shape, labels.tobytes(), cell.C, cell.gamma, cell.seed, device)
    network = own if dict(cell.method.params).get("against") == "own" else clean
    result, poisoned = CellResult(cell), labels != draw.y_train
    result.add("overlap", overlap(duals, network.norms, SHARE))
    for name, influence in (("floral", duals), ("network", network.norms)):
        result.add(f"poisoned_share_{name}", float(poisoned[top_rows(influence, SHARE)].mean()))
        result.traces["", f"top_{name}"] = top_rows(influence, min(POINTS, len(labels)))
    return result


@lru_cache(maxsize=1)
def _duals(
    rows: bytes, shape: tuple[int, int], labels: bytes, C: float, gamma: float, seed: int, device: str | None
) -> np.ndarray:
    """Both cells of a level ask for the same game."""
    X = np.frombuffer(rows, np.float16).reshape(shape).astype(np.float32)
    clf = FloralClassifier(C=C, gamma=gamma, budget=0.02, device=device, random_state=seed)
    return dual_influence(clf.fit(X, np.frombuffer(labels, np.int64)))
