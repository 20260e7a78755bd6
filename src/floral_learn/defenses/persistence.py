"""Save and load fitted models without pickle: loading runs no code from the file."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import floral_learn

_FORMAT = 1
# Types that a model file may name beside those of scikit-learn and numpy, which skops knows: ours, and sparse rows.
_OWN = "floral_learn."
_ROWS = ("scipy.sparse._csr.csr_matrix", "scipy.sparse._csr.csr_array")


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator or pipeline to `path`, whole or not at all.

    The file is a skops archive with the version of floral-learn that wrote it. Callbacks are not part of the model.

    Raises
    ------
    ValueError
        If the model holds something that cannot be saved without pickle, such as a callable kernel.
    """
    skops_io = _skops()
    _refuse_callables(model)
    stamp = {"format": _FORMAT, "floral_learn": floral_learn.__version__, "model": model}
    try:
        payload = skops_io.dumps(stamp)
    except Exception as error:
        raise ValueError(f"this model cannot be saved: {error}") from error
    write_atomically(path, payload)


def load(path: str | os.PathLike[str], trusted: Sequence[str] = ()) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : path
    trusted : sequence of str
        Full names of further types that may be created, such as a transformer of your own in a pipeline.

    Raises
    ------
    ValueError
        If the file is no model file, comes from a newer format, or names a type that is not trusted.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no model file at {path}")
    try:
        found = _skops().get_untrusted_types(file=path)
    except Exception as error:
        raise ValueError(f"{path} is not a floral-learn model file") from error
    unknown = [name for name in found if not name.startswith(_OWN) and name not in (*_ROWS, *trusted)]
    if unknown:
        raise ValueError(
            f"{path} holds types that are not trusted: {', '.join(sorted(unknown))}; see load(trusted=...)"
        )
    stamp = _skops().load(path, trusted=list(found))
    if not isinstance(stamp, dict) or "model" not in stamp or "format" not in stamp:
        raise ValueError(f"{path} is not a floral-learn model file")
    if stamp["format"] > _FORMAT:
        raise ValueError(
            f"{path} was written by floral-learn {stamp['floral_learn']}, in a newer format: upgrade to read it"
        )
    if stamp["floral_learn"].split(".")[:2] != floral_learn.__version__.split(".")[:2]:
        warnings.warn(
            f"{path} was written by floral-learn {stamp['floral_learn']}, this is {floral_learn.__version__}: "
            "check its predictions before you rely on them",
            UserWarning,
            stacklevel=2,
        )
    return stamp["model"]


def _skops() -> Any:
    # Imported on use: skops looks for pandas and torch and loads them where they are installed.
    import skops.io

    return skops.io


def write_atomically(path: str | os.PathLike[str], payload: bytes) -> None:
    """Write bytes to `path`, whole or not at all: a reader sees the old file or the new one."""
    path = Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(payload)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _refuse_callables(model: Any) -> None:
    found = model.values() if isinstance(model, dict) else [model]
    params = [item.get_params(deep=True).items() for item in found if hasattr(item, "get_params")]
    for name, value in (pair for items in params for pair in items):
        if callable(value) and name.split("__")[-1] == "kernel":
            raise ValueError(f"{name} is a function, which cannot be saved without pickle; use a named kernel")
