"""Choose the most valuable flips when each flip has its price."""

from typing import Any

import numpy as np
from scipy.optimize import linprog

from .constraints import Constraints


def check_costs(costs: Any, max_cost: Any, n: int) -> np.ndarray | None:
    """Return the (n,) costs as floats; costs and their limit come together or not at all."""
    if costs is None and max_cost is None:
        return None
    if costs is None or max_cost is None:
        raise ValueError("costs and max_cost must be given together")
    costs = np.asarray(costs, dtype=float)
    if costs.shape != (n,) or not np.isfinite(costs).all() or not (costs > 0).all():
        raise ValueError(f"costs must be {n} positive numbers, got shape {costs.shape}")
    if not max_cost > 0:
        raise ValueError(f"max_cost={max_cost!r} must be positive")
    return costs


def cost_note(flips: int, budget: int, max_cost: float | None) -> str | None:
    """Return why fewer flips than the budget were made, or None where they were not."""
    return None if flips == budget else f"max_cost={max_cost} pays for {flips} of {budget} flips"


def cheapest_flips(
    constraints: Constraints, values: np.ndarray, count: int, costs: np.ndarray | None, max_cost: float | None
) -> np.ndarray:
    """argmax_q values'q  s.t. sum q <= count, costs'q <= max_cost, class limits, q in {0, 1}^n allowed.

    Without costs this is a sort. With costs the linear relaxation (HiGHS) is solved, its fractional
    entries (at most one for each coupling constraint) are dropped, and rows that still fit are added in
    the order of their value, so that the limits hold exactly.
    """
    if costs is None or max_cost is None:
        return constraints.best(values, count)
    rows = np.flatnonzero(constraints.allowed)
    if not len(rows):
        return rows
    codes = constraints.codes[rows]
    per_class = (codes == np.arange(len(constraints.limits))[:, None]).astype(float)
    solution = linprog(
        -values[rows],
        A_ub=np.vstack([np.ones(len(rows)), costs[rows], per_class]),
        b_ub=np.concatenate([[count, max_cost], constraints.limits]),
        bounds=(0, 1),
        method="highs",
    )
    picked = solution.x > 1 - 1e-9
    spent = float(costs[rows[picked]].sum())
    used = np.bincount(codes[picked], minlength=len(constraints.limits))
    chosen = list(rows[picked][np.argsort(-values[rows[picked]], kind="stable")])
    for position in np.argsort(-values[rows], kind="stable"):
        if len(chosen) == count:
            break
        row, code = rows[position], codes[position]
        if not picked[position] and spent + costs[row] <= max_cost and used[code] < constraints.limits[code]:
            chosen.append(row)
            spent += float(costs[row])
            used[code] += 1
    return np.array(chosen, dtype=np.intp)
