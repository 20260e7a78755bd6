"""The numbers that steer a review, in one place, each with what chose it.

"Prior" means: a belief before any answer, which answers average out or overrule. "Chosen" means: on development data,
where other values were no better.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

_V = os.environ.get("RV", "")

_GRIDS = {
    "26a": (((-2.5, 1.0), (-1.5, 2.0)), tuple(("given", "rows", w) for w in (0.1, 0.5, 3.0)) + (("class", "rows", 0.3),) + tuple((t, "scores", w) for t in ("given", "any") for w in (0.2, 1.0, 6.0)), (-8.0, -2.2, -1.0)),
    "24b": (((-4.0, 0.5), (-2.5, 1.0), (-1.5, 2.0), (-0.7, 4.0)), (("given", "rows", 0.2), ("given", "rows", 1.5), ("class", "rows", 0.3), ("given", "scores", 1.0), ("any", "scores", 1.0)), (-4.0,)),
    "24c": (((-3.5, 0.7), (-2.0, 1.5), (-1.0, 3.0)), (("given", "rows", 0.2), ("given", "rows", 1.5), ("class", "rows", 0.3), ("given", "scores", 0.4), ("given", "scores", 3.0), ("any", "scores", 1.0)), (-8.0, -1.8)),
}
_GRIDS["24d"] = (((-3.5, 0.7), (-1.5, 0.7), (-3.0, 2.5), (-1.0, 2.5)), _GRIDS["24b"][1], (-4.0,))
_GRIDS["24e"] = (((-3.5, 0.7), (-1.5, 0.7), (-3.0, 2.5), (-1.0, 2.5)), (("given", "rows", 0.5), ("class", "rows", 0.3), ("given", "scores", 1.0), ("any", "scores", 1.0)), (-8.0, -1.8))
_GRIDS["52"] = (_GRIDS["24b"][0], _GRIDS["26a"][1], _GRIDS["26a"][2])
_GRID = _GRIDS[next((k for k in _GRIDS if k in _V), "24c")]


@dataclass(frozen=True)
class Rules:
    """What changes which rows are asked about, how labels are read, and what a model is trained on."""

    # (b, a) of logit q = b + a s: hardly any label wrong by itself; some, where contradicted; many; prior
    own: tuple[tuple[float, float], ...] = _GRID[0]
    # regions: how they tie given labels, on what they lie, and how narrow they are; prior
    regions: tuple[tuple[str, str, float], ...] = _GRID[1]
    no_regions: tuple[float, ...] = (-float("inf"),) if "r0" in _V else _GRID[2]  # logit r without regions: nowhere, or at random; prior
    regions_prior: float = 0.2 if 'hon' in _V else 0.87
    questions_prior: float = 0.2  # P(labels were flipped in regions) before any answer; chosen
    height: float = 3.0  # standard deviation of logit r between regions; chosen (5 is level)
    centres: tuple[float, ...] = ((-3.0, -2.0, -1.0) if len(_GRID[0]) == 3 else (-3.0, -1.0, -3.0, -1.0)) if "cen" in _V else (-1.0,) * len(_GRID[0])
    centre: float = -1.0  # mean of logit r where regions are possible; chosen (0 is level)
    majority: float = 60.0  # how fast belief falls in a hypothesis by which more than half of the labels are wrong
    class_width: float = 0.3
    components: int = 16  # principal components in which rows with more columns are compared; chosen
    error_prior: tuple[float, float] = (1.0, 29.0)  # Beta prior of a reviewer's error rate: about three in a hundred
    suspect: float = 0.1  # prior probability that one of several reviewers guesses, or lies
    settled: float = 0.8  # share of the likelihood from which an answer is taken for the label
    least_weight: float = 0.1  # of a row in doubt; prior
    few_answers: float = 3.0  # answers with which doubt and the expected sizes of classes count half; chosen


RULES = Rules()
VARIANT = _V
