"""A review as a file: arrays, numbers and text only, checked before anything is computed from them."""

from __future__ import annotations

import os
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from floral_learn.base.files import MOST_BYTES, write_atomically
from floral_learn.base.model_files import ModelFileError
from floral_learn.base.models import archive_bytes, read_archive


def write(path: str | os.PathLike[str], state: dict[str, Any]) -> None:
    """`state` under `path`, whole or not at all."""
    write_atomically(path, archive_bytes("review", state))


def read(path: str | os.PathLike[str], make: Callable[[dict[str, Any]], Any], max_bytes: int = MOST_BYTES) -> Any:
    """The review that `make` builds from what `write` wrote; ModelFileError for any other file."""
    state = read_archive(path, "review", max_bytes=max_bytes)
    try:
        check_state(state)
        return make(state)
    except ModelFileError as error:
        raise ModelFileError(f"{Path(path)}: {error}") from None
    except MemoryError as error:
        raise ModelFileError(f"{Path(path)} needs more memory than there is") from error
    except Exception as error:  # rows that no review would have taken
        raise ModelFileError(f"{Path(path)} is damaged: {error}") from error


def check_state(state: Any) -> None:
    """Raise ModelFileError where this cannot be the state of a review."""
    if not isinstance(state, dict):
        raise ModelFileError("it is damaged: it holds no review")
    needed = {"X", "y", "classes", "trusted", "groups", "sample_weight", "items", "frame"}
    needed |= {"order", "random_share", "random_state", "seed", "turn", "appends", "log"}
    if lost := sorted(needed - set(state)):
        raise ModelFileError(f"it is damaged: it has no {lost[0]}")
    X, classes = state["X"], state["classes"]
    _require(isinstance(X, np.ndarray) or sparse.issparse(X), "X")
    _require(X.ndim == 2 and X.dtype.kind in "biuf" and X.shape[0] >= 2, "X")
    n = X.shape[0]
    _require(isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) >= 2, "classes")
    for name, kinds in (("y", None), ("trusted", "b"), ("sample_weight", "f")):
        column = state[name]
        _require(isinstance(column, np.ndarray) and column.shape == (n,), name)
        _require(kinds is None or column.dtype.kind in kinds, name)
    weight, groups, order = state["sample_weight"], state["groups"], state["order"]
    _require(bool(np.isfinite(weight).all()) and bool((weight >= 0).all()), "sample_weight")
    _require(groups is None or (isinstance(groups, np.ndarray) and groups.shape == (n,)), "groups")
    # The guarantee rests on this order: every row once.
    _require(isinstance(order, np.ndarray) and order.dtype.kind in "iu" and order.shape == (n,), "the order of rows")
    _require(bool((np.sort(order) == np.arange(n)).all()), "the order of rows")
    share, fixed = state["random_share"], state["random_state"]
    _require(isinstance(share, int | float | np.number) and 0.0 <= float(share) <= 1.0, "random_share")
    _require(all(_whole(state[name]) and state[name] >= 0 for name in ("seed", "turn", "appends")), "a counter")
    _require(fixed is None or (_whole(fixed) and fixed >= 0), "random_state")
    _require(isinstance(state["log"], list), "the answers")
    last = 0
    for entry in state["log"]:
        _require(isinstance(entry, list | tuple) and len(entry) == 6, "the answers")
        row, code, reviewer, turn, drawn, along = entry
        for at in (row,) if along is None else (row, along):
            _require(_whole(at) and 0 <= at < n, "the answers")
        _require(code is None or (_whole(code) and 0 <= code < len(classes)), "the answers")
        _require(isinstance(reviewer, str) and isinstance(drawn, bool | np.bool_), "the answers")
        _require(_whole(turn) and last <= turn <= state["turn"], "the answers")
        last = turn
    items = state["items"]
    listed = isinstance(items, list) and len(items) == n and all(isinstance(item, str) for item in items)
    _require(items is None or listed, "the texts")
    if state["frame"] is not None:
        _check_frame(state["frame"], n)


def _check_frame(frame: Any, n: int) -> None:
    _require(isinstance(frame, dict) and isinstance(frame.get("columns"), dict), "the table")
    _require(frame.get("library") in ("pandas", "polars", "pyarrow") and bool(frame["columns"]), "the table")
    for name, values in frame["columns"].items():
        plain = isinstance(values, list) and all(value is None or isinstance(value, str) for value in values)
        _require(isinstance(name, str) and (plain or isinstance(values, np.ndarray)), "the table")
        _require(len(values) == n and (plain or (values.ndim == 1 and values.dtype.kind in "fM")), "the table")


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def _require(fits: bool, what: str) -> None:
    if not fits:
        raise ModelFileError(f"it is damaged: {what} cannot be those of a review")
