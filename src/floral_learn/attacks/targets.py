"""Where a targeted attacker spends flips: on the labels of one class, or around the rows that should be misread."""

from itertools import islice
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array

from .constraints import allowed_rows

VOTERS = 15  # rows that say which label a target would get


def aimed_rows(
    target: Any, X: Any, codes: np.ndarray, classes: np.ndarray, flips: int, allowed: np.ndarray
) -> np.ndarray:
    """Return (n,) booleans: the rows that an attacker of ``target`` may flip, out of ``allowed``.

    A label of y: all rows that carry it. Rows, (m, d) features or row numbers of X: the ``flips`` rows nearest to
    them, taken in turn, that carry the label which each target's 15 nearest rows agree on.
    """
    if np.ndim(target) == 0:
        known = {label: code for code, label in enumerate(classes.tolist())}
        label = target.item() if isinstance(target, np.generic) else target
        if label not in known:
            raise ValueError(f"target={target!r} is not a label; labels are {list(known)}, rows are an array")
        return allowed & (codes == known[label])
    if X is None:
        raise ValueError("target rows need features: X is None")
    X = check_array(X, accept_sparse="csr", input_name="X")
    points = target_points(target, X)
    n = len(codes)
    voted = NearestNeighbors(n_neighbors=min(VOTERS, n)).fit(X).kneighbors(points, return_distance=False)
    wins = np.array([np.bincount(codes[row], minlength=len(classes)).argmax() for row in voted])
    # Rows of the winning label by distance, for each target; a flip of any other row would not help the attacker.
    queues: list[np.ndarray] = [np.empty(0, np.intp)] * points.shape[0]
    for code in np.unique(wins):
        mine, aims = np.flatnonzero(allowed & (codes == code)), np.flatnonzero(wins == code)
        if len(mine):
            near = NearestNeighbors(n_neighbors=min(flips, len(mine)) or 1).fit(X[mine])
            for aim, order in zip(aims, near.kneighbors(points[aims], return_distance=False)):
                queues[aim] = mine[order]
    # In turn: the nearest row of every target, then the second nearest; each row once.
    turns = (queue[rank] for rank in range(flips) for queue in queues if rank < len(queue))
    chosen = list(islice(dict.fromkeys(turns), flips))
    if len(chosen) < flips:
        raise ValueError(f"the budget is {flips} flips, but only {len(chosen)} rows may be flipped for this target")
    rows = np.zeros(n, dtype=bool)
    rows[chosen] = True
    return rows


def target_points(target: Any, X: Any) -> Any:
    """Return the features of target rows that are given as features or as row numbers of X."""
    if np.ndim(target) == 1 and not hasattr(target, "toarray"):
        try:
            numbers = np.flatnonzero(allowed_rows(target, X.shape[0]))
        except ValueError as error:
            raise ValueError(str(error).replace("mask must", "target must be a label, (m, d) rows, or")) from None
        if not len(numbers):
            raise ValueError("target names no row")
        return X[numbers]
    points = check_array(target, accept_sparse="csr", input_name="target")
    if points.shape[1] != X.shape[1]:
        raise ValueError(f"target rows have {points.shape[1]} features, X has {X.shape[1]}")
    return points
