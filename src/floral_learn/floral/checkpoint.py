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
from floral_learn.files.model_archive import MAX_BYTES, ModelFileError, read_arrays
from floral_learn.files.persistence import archive_bytes, read_archive
from floral_learn.floral.classifier import GameClassifier
from floral_learn.game.arrays import backend_for
from floral_learn.game.state import GameState

_FIT, _STATE = "fit.skops", "state.npz"
_PARTS = {"id", "estimator", "X", "y", "sample_weight", "trusted", "seeds", "feature_names"}


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
    >>> from floral_learn import FloralClassifier
    >>> from floral_learn.floral.checkpoint import Checkpoint, resume
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> folder = tempfile.mkdtemp()
    >>> clf = FloralClassifier(n_rounds=60, tol=None).set_callbacks(Checkpoint(folder)).fit(X, y)
    >>> resume(folder).n_iter_
    60
    """

    def __init__(
        self, path: str | os.PathLike[str], *, every: int = 50, seconds: float = 60.0, overwrite: bool = False
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
        write_atomically(self.path / _FIT, archive_bytes("checkpoint", record))

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


def resume(
    path: str | os.PathLike[str], *, every: int = 50, seconds: float = 60.0, max_bytes: int = MAX_BYTES
) -> GameClassifier:
    """Continue the fit that a `Checkpoint` saved in the folder `path`, to its end.

    The result has the same bits as a fit that was never interrupted (on the same machine and number of threads; with
    three or more classes, more than 4,096 rows, or on a GPU, the same flips and duals, and biases equal to rounding).
    The checkpoint goes on being written, so that a resumed fit can be killed and resumed again; a fit that had ended is
    returned as it is.

    Parameters
    ----------
    path : path
        The folder.
    every : int, default=50
        Rounds between two writes.
    seconds : float, default=60
        Seconds between two writes.
    max_bytes : int, default=2**30
        Most bytes that each of its two files may unpack to.

    Returns
    -------
    FloralClassifier
        Fitted.

    Raises
    ------
    ModelFileError
        A ValueError: the folder holds something else, is damaged, over the limit, or describes a fit that cannot be.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import FloralClassifier
    >>> from floral_learn.floral.checkpoint import Checkpoint, resume
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> folder = tempfile.mkdtemp()
    >>> clf = FloralClassifier(n_rounds=60, tol=None, random_state=0).set_callbacks(Checkpoint(folder)).fit(X, y)
    >>> bool((resume(folder).decision_function(X) == clf.decision_function(X)).all())
    True
    """
    path = Path(path)
    record, arrays = _read_record(path, max_bytes), _read_state(path, max_bytes)
    estimator: GameClassifier = record["estimator"]
    estimator.set_callbacks(Checkpoint(path, every=every, seconds=seconds))
    estimator._resumed_from, estimator._resumed_id = path, record["id"]
    try:
        state = None
        if arrays is not None and str(arrays["id"]) == record["id"]:
            state = GameState.from_arrays(arrays, backend_for(estimator._settings().device))
        given = (record[name] for name in ("X", "y", "sample_weight", "trusted"))
        estimator._resume(*given, seeds=record["seeds"], state=state)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{path} is not a checkpoint that can be continued: {error}") from error
    finally:
        del estimator._resumed_from, estimator._resumed_id
        estimator.set_callbacks()
    if record["feature_names"] is not None:
        estimator.feature_names_in_ = record["feature_names"]
    return estimator


def _read_record(path: Path, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """What does not change during a fit: rows, labels, parameters and seeds."""
    if not (path / _FIT).is_file():
        raise FileNotFoundError(f"no checkpoint in {path}")
    record = read_archive(path / _FIT, "checkpoint", max_bytes=max_bytes)
    whole = isinstance(record, dict) and set(record) == _PARTS
    if not whole or not isinstance(record["estimator"], GameClassifier) or not isinstance(record["id"], str):
        raise ModelFileError(f"{path / _FIT} is damaged: it does not hold what a checkpoint holds")
    seeds = record["seeds"]
    if not isinstance(seeds, np.ndarray) or seeds.dtype.kind not in "iu" or seeds.shape != (2,) or (seeds < 0).any():
        raise ModelFileError(f"{path / _FIT} is damaged: its seeds are not two numbers")
    return record


def _read_state(path: Path, max_bytes: int = MAX_BYTES) -> dict[str, np.ndarray] | None:
    """Where the game stood; None where it was killed before the first round was saved: play from the start."""
    if not (path / _STATE).is_file():
        return None
    arrays = read_arrays(path / _STATE, max_bytes)
    if not {"id", "n_rounds", "counters"} <= set(arrays):
        raise ModelFileError(f"{path / _STATE} is damaged: it does not hold what a checkpoint holds")
    return arrays


def _unfinished(path: Path) -> bool:
    if not (path / _FIT).is_file():
        return False
    try:
        arrays, record = _read_state(path), _read_record(path)
        if arrays is None or str(arrays["id"]) != record["id"]:
            return False
        rounds, settled = (int(i) for i in arrays["counters"])
        return rounds < int(arrays["n_rounds"]) and not settled
    except ModelFileError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelFileError(f"{path / _STATE} is damaged: {error}") from error
