"""Long fits that survive being killed: a callback that saves the game, and `resume`, which plays on."""

from __future__ import annotations

import io
import os
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from floral_learn.files.atomic_files import write_atomically
from floral_learn.files.persistence import load, save
from floral_learn.floral.classifier import GameClassifier
from floral_learn.game.arrays import backend_for
from floral_learn.game.state import GameState

_FIT, _STATE = "fit.skops", "state.npz"


class Checkpoint:
    """Callback that saves a running fit of `FloralClassifier` to the folder `path`, for `resume`.

    The data and parameters are written once, the state of the game each `every` rounds or `seconds` seconds, whichever
    comes first, and after the last round. Each file is replaced as a whole: a process killed at any moment leaves a
    checkpoint that can be resumed.

    Parameters
    ----------
    path : path
        Folder to write to; created if needed.
    every : int, default=50
        Rounds between two writes.
    seconds : float, default=60
        Seconds between two writes.
    overwrite : bool, default=False
        Whether to replace a checkpoint of a fit that has not ended; otherwise that is an error.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import Checkpoint, FloralClassifier, resume
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> folder = tempfile.mkdtemp()
    >>> clf = FloralClassifier(n_rounds=60, tol=None).set_callbacks(Checkpoint(folder)).fit(X, y)
    >>> resume(folder).n_iter_
    60
    """

    def __init__(
        self, path: str | os.PathLike[str], every: int = 50, seconds: float = 60.0, overwrite: bool = False
    ) -> None:
        if every < 1:
            raise ValueError(f"every={every!r} must be at least 1")
        self.path = Path(path)
        self.every = every
        self.seconds = seconds
        self.overwrite = overwrite

    def setup(self, estimator: Any, context: Any) -> None:
        """Write what does not change during the fit."""
        running = getattr(estimator, "_running_fit", None)
        if running is None:
            raise TypeError(f"Checkpoint works with FloralClassifier, not with {type(estimator).__name__}")
        self._written = time.monotonic()
        if getattr(estimator, "_resumed_from", None) == self.path:
            self._fit_id = estimator._resumed_id
            return
        if not isinstance(running.X, np.ndarray) and not sparse.issparse(running.X):
            raise TypeError("Checkpoint stores rows that are in memory (arrays, CSR matrices), not files or clusters")
        if not self.overwrite and _unfinished(self.path):
            raise ValueError(
                f"{self.path} holds a fit that has not ended: continue it with resume({str(self.path)!r}), or pass "
                "overwrite=True to start over"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        # The two files carry the same id: a state of another fit is as good as none.
        self._fit_id = uuid.uuid4().hex
        record = {
            "id": self._fit_id,
            "estimator": type(estimator)(**estimator.get_params(deep=False)),
            "X": running.X,
            "y": running.y,
            "sample_weight": None if running.sample_weight is None else np.asarray(running.sample_weight),
            "trusted": None if running.trusted is None else np.asarray(running.trusted),
            "seeds": running.seeds,
            "feature_names": running.feature_names,
        }
        save(record, self.path / _FIT)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing to do: a round is saved when it is over."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Save the state, if its turn has come."""
        running = getattr(estimator, "_running_fit", None)
        if context.parent is None or running is None or running.state is None:
            return
        late = time.monotonic() - self._written > self.seconds
        last = running.state.round >= running.n_rounds or running.state.settled
        if running.state.round % self.every == 0 or late or last:
            self._write(running)

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing to do: the last round that was due is on disk."""

    def _write(self, running: Any) -> None:
        buffer = io.BytesIO()
        np.savez(buffer, id=self._fit_id, n_rounds=running.n_rounds, **running.state.to_arrays(running.backend))
        write_atomically(self.path / _STATE, buffer.getvalue())
        self._written = time.monotonic()


def resume(path: str | os.PathLike[str], every: int = 50, seconds: float = 60.0) -> GameClassifier:
    """Continue the fit that a `Checkpoint` saved in the folder `path`, to its end.

    The result has the same bits as a fit that was never interrupted (on the same machine and number of threads; with
    three or more classes, and on a GPU, the same flips and duals, and biases equal to rounding). The
    checkpoint goes on being written, so that a resumed fit can be killed and resumed again; a fit that had ended is
    returned as it is.

    Parameters
    ----------
    path : path
        The folder.
    every : int, default=50
        Rounds between two writes.
    seconds : float, default=60
        Seconds between two writes.

    Returns
    -------
    FloralClassifier
        Fitted.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import Checkpoint, FloralClassifier, resume
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> folder = tempfile.mkdtemp()
    >>> clf = FloralClassifier(n_rounds=60, tol=None, random_state=0).set_callbacks(Checkpoint(folder)).fit(X, y)
    >>> bool((resume(folder).decision_function(X) == clf.decision_function(X)).all())
    True
    """
    path = Path(path)
    if not (path / _FIT).is_file():
        raise FileNotFoundError(f"no checkpoint in {path}")
    record = load(path / _FIT)
    estimator: GameClassifier = record["estimator"]
    arrays = _read_state(path)
    state = None
    if arrays is not None and str(arrays["id"]) == record["id"]:
        state = GameState.from_arrays(arrays, backend_for(estimator._settings().device))
    estimator.set_callbacks(Checkpoint(path, every, seconds))
    estimator._resumed_from, estimator._resumed_id = path, record["id"]
    try:
        estimator._resume(
            record["X"],
            record["y"],
            record["sample_weight"],
            record["trusted"],
            seeds=np.asarray(record["seeds"]),
            state=state,
        )
    finally:
        del estimator._resumed_from, estimator._resumed_id
        estimator.set_callbacks()
    if record["feature_names"] is not None:
        estimator.feature_names_in_ = record["feature_names"]
    return estimator


def _read_state(path: Path) -> dict[str, np.ndarray] | None:
    if not (path / _STATE).is_file():
        return None  # killed before the first round was saved: play from the start
    try:
        with np.load(path / _STATE) as file:
            return dict(file)
    except Exception as error:
        raise ValueError(f"{path / _STATE} is damaged: {error}") from error


def _unfinished(path: Path) -> bool:
    if not (path / _FIT).is_file():
        return False
    arrays = _read_state(path)
    if arrays is None or str(arrays["id"]) != load(path / _FIT)["id"]:
        return False
    rounds, settled = (int(i) for i in arrays["counters"])
    return rounds < int(arrays["n_rounds"]) and not settled
