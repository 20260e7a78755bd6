"""Save and load fitted models without pickle: loading creates known types and calls nothing that the file names."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

import floral_learn
from floral_learn.files.atomic_files import write_atomically
from floral_learn.files.loaded_parts import allowed_sklearn, check_loaded
from floral_learn.files.model_archive import (
    MAX_BYTES,
    ModelFileError,
    check_archive,
    check_nodes,
    check_seal,
    is_own_class,
    node_names,
    schema_of,
    sealed,
    unpacked_bytes,
)

_FORMAT = 1
_READERS = {"model": "load", "review": "LabelReview.load"}
# Types that a model file may name beside those that skops knows: sparse rows, what scikit-learn's searches and
# calibrated classifiers hold; our own classes are known by `is_own_class`. Never a function: skops would call it.
_KNOWN = frozenset(
    {
        "scipy.sparse._csr.csr_matrix",
        "scipy.sparse._csr.csr_array",
        "scipy.sparse._csc.csc_matrix",
        "scipy.sparse._csc.csc_array",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.model_selection._split.KFold",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.metrics._scorer._Scorer",
        "sklearn.metrics._scorer._PredictScorer",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
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
    are not part of the model. What `load` will take only with ``trusted=`` or a larger ``max_bytes=`` (a pipeline with
    a forest, say) is written with a warning that says so.

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
    >>> model = FloralClassifier(n_rounds=50).fit(X, y)
    >>> save(model, path)
    >>> bool((load(path).predict(X) == model.predict(X)).all())
    True
    """
    write_atomically(path, model_bytes(model))


def model_bytes(model: Any) -> bytes:
    """What `save` writes, for callers that write several files together."""
    if callable(getattr(model, "save", None)):
        kind = type(model).__name__
        raise ValueError(
            f"{kind} is a folder of files: save it with model.save(folder), read it with {kind}.load(folder)"
        )
    payload = archive_bytes("model", model)
    _warn_of_refusal(payload)
    return payload


def archive_bytes(kind: str, content: Any) -> bytes:
    """A file of this kind, as `read_archive` takes it, with the version that wrote it and a digest."""
    _refuse_callables(content)
    stamp = {"format": _FORMAT, "floral_learn": floral_learn.__version__, kind: content}
    try:
        with _without_callbacks(content):
            return sealed(import_skops().dumps(stamp))
    except Exception as error:
        raise ValueError(f"this {kind} cannot be saved: {error}") from error


def _warn_of_refusal(payload: bytes) -> None:
    """Say at once what `load` would say later."""
    schema = schema_of(payload)
    if unknown := _unknown(import_skops().get_untrusted_types(data=payload), schema, frozenset()):
        warnings.warn(
            f"load will refuse this file unless it is told trusted={unknown}: what these types do with the numbers of "
            "a file cannot be checked",
            UserWarning,
            stacklevel=4,
        )
    elif (size := unpacked_bytes(payload)) > MAX_BYTES:
        warnings.warn(f"load will refuse this file unless it is told max_bytes={size}", UserWarning, stacklevel=4)


def load(path: str | os.PathLike[str], *, trusted: Sequence[str] = (), max_bytes: int = MAX_BYTES) -> Any:
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
    return read_archive(path, "model", trusted, max_bytes)


def read_archive(
    path: str | os.PathLike[str], kind: str, trusted: Sequence[str] = (), max_bytes: int = MAX_BYTES
) -> Any:
    """What `archive_bytes` made of one kind of content; the one way in which files of ours are read.

    Raises ModelFileError for every file that is not one, FileNotFoundError where there is none.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no {kind} file at {path}")
    if isinstance(trusted, str):
        raise TypeError(f"trusted={trusted!r} must be a list of names, even for one: [{trusted!r}]")
    if path.stat().st_size > max_bytes:
        raise ModelFileError(f"{path} has more than max_bytes={max_bytes} bytes; if you trust it, raise the limit")
    try:
        stamp = _read(path.read_bytes(), frozenset(trusted), max_bytes)
        return _checked(stamp, kind, path)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error.__cause__
    except (ImportError, OSError):
        raise
    except MemoryError as error:
        raise ModelFileError(f"{path} needs more memory than there is") from error
    except Exception as error:  # what skops and zipfile raise for files that nobody would write
        raise ModelFileError(f"{path} is not a floral-learn {kind} file, or damaged") from error


def _read(raw: bytes, trusted: frozenset[str], max_bytes: int) -> Any:
    """Everything that the file holds, after every check that can be made without creating it, and checked again."""
    check_seal(raw)
    schema = check_archive(raw, max_bytes)
    check_nodes(schema, trusted)
    found = import_skops().get_untrusted_types(data=raw)
    if unknown := _unknown(found, schema, trusted):
        raise ModelFileError(f"it holds types that are not trusted: {', '.join(unknown)}; see load(trusted=...)")
    stamp = import_skops().loads(raw, trusted=list(found))
    check_loaded(stamp)
    return stamp


def _unknown(found: Sequence[str], schema: Any, trusted: frozenset[str]) -> list[str]:
    """Names of types that `load` does not create: strange to skops, or compiled code of scikit-learn."""
    named = {name for name in node_names(schema) if name.startswith("sklearn.") and not allowed_sklearn(name)}
    strange = {name for name in found if name not in _KNOWN and not is_own_class(name)}
    return sorted((named - _KNOWN | strange) - trusted)


def _checked(stamp: Any, kind: str, path: Path) -> Any:
    """The content of a stamp that has what stamps have, its estimators with all their parameters."""
    if not isinstance(stamp, dict) or not {"format", "floral_learn"} <= set(stamp):
        raise ModelFileError(f"it is not a floral-learn {kind} file")
    made, version = stamp["format"], stamp["floral_learn"]
    if not isinstance(made, int) or not isinstance(version, str):
        raise ModelFileError(f"it is not a floral-learn {kind} file: its stamp has no version")
    if made > _FORMAT:
        raise ModelFileError(f"it was written by floral-learn {version[:40]}, in a newer format: upgrade to read it")
    if kind not in stamp:
        others = [f"a {other}, which {reader} reads" for other, reader in _READERS.items() if other in stamp]
        raise ModelFileError(f"it is {', '.join(others) or 'not a floral-learn file'}, not a {kind} file")
    for part in _parts(stamp[kind]):
        if lost := [name for name in part._get_param_names() if not hasattr(part, name)]:
            raise ModelFileError(f"it is damaged: its {type(part).__name__} has no {lost[0]}")
    if version.split(".")[:2] != floral_learn.__version__.split(".")[:2]:
        warnings.warn(
            f"{path} was written by floral-learn {version[:40]}, this is {floral_learn.__version__}: "
            "check its predictions before you rely on them",
            UserWarning,
            stacklevel=3,
        )
    return stamp[kind]


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


# skops lists every estimator of scikit-learn. The search walks through all its packages, these bridges among them, and
# importing a bridge imports what is behind it: two seconds of every `floral train` and `floral predict`.
_BRIDGES = ("sklearn.externals.array_api_compat.torch", "sklearn.externals.array_api_compat.dask")


def import_skops() -> Any:
    """``skops.io``, imported without scikit-learn's bridges to torch and dask unless these are there already."""
    hidden = [] if "skops.io" in sys.modules else [name for name in _BRIDGES if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # cannot be imported, so the search passes over it
    try:
        import skops.io
    finally:
        for name in hidden:
            sys.modules.pop(name, None)
    return skops.io
