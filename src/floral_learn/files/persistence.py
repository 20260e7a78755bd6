"""Save and load fitted models without pickle: loading creates known types and calls nothing that the file names."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

import floral_learn
from floral_learn.files.atomic_files import write_atomically
from floral_learn.files.light_skops import import_skops
from floral_learn.files.model_archive import (
    MAX_BYTES,
    ModelFileError,
    check_archive,
    check_nodes,
    check_seal,
    is_own_class,
    sealed,
)

_FORMAT = 1
# Types that a model file may name beside those that skops knows: sparse rows, what scikit-learn's searches and
# calibrated classifiers hold; our own classes are known by `is_own_class`. Never a function: skops would call it.
_KNOWN = frozenset(
    {
        "scipy.sparse._csr.csr_matrix",
        "scipy.sparse._csr.csr_array",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.model_selection._split.KFold",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.metrics._scorer._Scorer",
        "sklearn.metrics._scorer._PredictScorer",
        "sklearn.utils._bunch.Bunch",
        "sklearn.utils._metadata_requests.MetadataRequest",
        "sklearn.utils._metadata_requests.MethodMetadataRequest",
        "numpy.ma.MaskedArray",
        "numpy.dtype",
    }
)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator or pipeline to `path`, whole or not at all.

    The file is a skops archive with the version of floral-learn that wrote it and a digest against accidents. Callbacks
    are not part of the model.

    Parameters
    ----------
    model : estimator
        Fitted: a defense of this library, or a pipeline or search around one.
    path : path
        File to write, such as ``model.skops``.

    Raises
    ------
    ValueError
        If the model holds something that cannot be saved without pickle, such as a callable kernel.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import FloralClassifier, load, save
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> path = os.path.join(tempfile.mkdtemp(), "model.skops")
    >>> save(FloralClassifier(n_rounds=50).fit(X, y), path)
    >>> load(path).n_iter_
    50
    """
    if callable(getattr(model, "save", None)):
        kind = type(model).__name__
        raise ValueError(
            f"{kind} is a folder of files: save it with model.save(folder), read it with {kind}.load(folder)"
        )
    skops_io = import_skops()
    _refuse_callables(model)
    with _without_callbacks(model):
        payload = _dump(skops_io, model)
    write_atomically(path, sealed(payload))


def _dump(skops_io: Any, model: Any) -> bytes:
    stamp = {"format": _FORMAT, "floral_learn": floral_learn.__version__, "model": model}
    try:
        return skops_io.dumps(stamp)
    except Exception as error:
        raise ValueError(f"this model cannot be saved: {error}") from error


def load(path: str | os.PathLike[str], trusted: Sequence[str] = (), *, max_bytes: int = MAX_BYTES) -> Any:
    """Read a model that `save` wrote; a file from a stranger can be wrong, but runs no code and takes bounded memory.

    Parameters
    ----------
    path : path
        The file.
    trusted : sequence of str
        Full names of further types that may be created, such as a transformer of your own in a pipeline.
    max_bytes : int, default=2**30
        Most bytes that the file may unpack to; the limits on its schema (a 32nd) and its members follow from it.

    Returns
    -------
    estimator
        As it was saved.

    Raises
    ------
    ModelFileError
        A ValueError: the file is not a model file, is damaged, is over a limit, comes from a newer format, or names
        a type that is not trusted.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn import FloralClassifier, load, save
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> path = os.path.join(tempfile.mkdtemp(), "model.skops")
    >>> model = FloralClassifier(random_state=0).fit(X, y)
    >>> save(model, path)
    >>> bool((load(path).predict(X) == model.predict(X)).all())
    True
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no model file at {path}")
    if isinstance(trusted, str):
        raise TypeError(f"trusted={trusted!r} must be a list of names, even for one: [{trusted!r}]")
    if path.stat().st_size > max_bytes:
        raise ModelFileError(f"{path} has more than max_bytes={max_bytes} bytes; if you trust it, raise the limit")
    try:
        stamp = _read(path.read_bytes(), frozenset(trusted), max_bytes)
        return _checked(stamp, path)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error.__cause__
    except (ImportError, OSError):
        raise
    except MemoryError as error:
        raise ModelFileError(f"{path} needs more memory than there is") from error
    except Exception as error:  # what skops and zipfile raise for files that nobody would write
        raise ModelFileError(f"{path} is not a floral-learn model file, or damaged") from error


def _read(raw: bytes, trusted: frozenset[str], max_bytes: int) -> Any:
    """Everything that the file holds, after every check that can be made without creating it."""
    check_seal(raw)
    check_nodes(check_archive(raw, max_bytes), trusted)
    found = import_skops().get_untrusted_types(data=raw)
    if unknown := [name for name in found if name not in _KNOWN and name not in trusted and not is_own_class(name)]:
        raise ModelFileError(
            f"it holds types that are not trusted: {', '.join(sorted(unknown))}; see load(trusted=...)"
        )
    return import_skops().loads(raw, trusted=list(found))


def _checked(stamp: Any, path: Path) -> Any:
    """The model of a stamp that has what stamps have, its estimators with all their parameters."""
    if not isinstance(stamp, dict) or not {"model", "format", "floral_learn"} <= set(stamp):
        raise ModelFileError("it is not a floral-learn model file")
    made, version = stamp["format"], stamp["floral_learn"]
    if not isinstance(made, int) or not isinstance(version, str):
        raise ModelFileError("it is not a floral-learn model file: its stamp has no version")
    if made > _FORMAT:
        raise ModelFileError(f"it was written by floral-learn {version[:40]}, in a newer format: upgrade to read it")
    for part in _parts(stamp["model"]):
        if lost := [name for name in part._get_param_names() if not hasattr(part, name)]:
            raise ModelFileError(f"it is damaged: its {type(part).__name__} has no {lost[0]}")
    if version.split(".")[:2] != floral_learn.__version__.split(".")[:2]:
        warnings.warn(
            f"{path} was written by floral-learn {version[:40]}, this is {floral_learn.__version__}: "
            "check its predictions before you rely on them",
            UserWarning,
            stacklevel=3,
        )
    return stamp["model"]


@contextmanager
def _without_callbacks(model: Any) -> Iterator[None]:
    """Callbacks (a Checkpoint, a progress bar) belong to a fit, not to the model: leave them out of the file."""
    owners = [o for o in _parts(model) if "_skl_callbacks" in getattr(o, "__dict__", {})]
    taken = [(o, o.__dict__.pop("_skl_callbacks")) for o in owners]
    try:
        yield
    finally:
        for owner, callbacks in taken:
            owner._skl_callbacks = callbacks


def _parts(model: Any) -> list[Any]:
    """`model` and every estimator among its parameters and fitted attributes."""
    seen: list[Any] = []
    waiting = list(model.values()) if isinstance(model, dict) else [model]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list | tuple):
            waiting.extend(item)
        elif isinstance(item, BaseEstimator) and not any(item is known for known in seen):
            seen.append(item)
            waiting.extend(vars(item).values())
    return seen


def _refuse_callables(model: Any) -> None:
    for part in _parts(model):
        if callable(getattr(part, "kernel", None)):
            raise ValueError("kernel is a function, which cannot be saved without pickle; use a named kernel")
        if hasattr(getattr(part, "module", None), "state_dict"):
            raise ValueError(
                "module is a network of your own, which a model file cannot hold: save head_ with this function and "
                "the module's state_dict() with torch or safetensors"
            )
