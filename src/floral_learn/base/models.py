"""Save and load fitted models without pickle: loading creates known types and calls nothing that the file names."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

import floral_learn
from floral_learn.base.files import MOST_BYTES, write_atomically
from floral_learn.base.model_files import (
    ModelFileError,
    check_loaded,
    check_nodes,
    every_part,
    read_schema,
    unknown_types,
)

FORMAT = 2  # of the files; 1 was that of floral-learn 0.3
_READERS = {"model": "load", "review": "LabelReview.load"}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator or pipeline to `path`, whole or not at all.

    The file is a skops archive with the version of floral-learn that wrote it. What `load` will take only with
    ``trusted=`` or a larger ``max_bytes=`` (a pipeline with a forest, say) is written with a warning that says so.

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
    try:  # what load would say later
        _checked(payload, "model", frozenset(), MOST_BYTES)
    except ModelFileError as error:
        warnings.warn(f"load will refuse this file: {error}", UserWarning, stacklevel=3)
    return payload


def archive_bytes(kind: str, content: Any) -> bytes:
    """A file of this kind, as `read_archive` takes it, with the version that wrote it."""
    from skops.io import dumps

    for part in _estimators(content):
        if callable(getattr(part, "kernel", None)):
            raise ValueError("kernel is a function, which cannot be saved without pickle; use a named kernel")
        if hasattr(getattr(part, "module", None), "state_dict"):
            raise ValueError(
                "module is a network of your own, which a model file cannot hold: save head_ with this function and "
                "the module's state_dict() with torch or safetensors"
            )
    try:
        return dumps({"format": FORMAT, "floral_learn": floral_learn.__version__, kind: content})
    except Exception as error:
        raise ValueError(f"this {kind} cannot be saved: {error}") from error


def load(path: str | os.PathLike[str], *, trusted: Sequence[str] = (), max_bytes: int = MOST_BYTES) -> Any:
    """Read a model that `save` wrote; a file from a stranger can be wrong, but runs no code and takes bounded memory.

    Parameters
    ----------
    path : path
        The file.
    trusted : sequence of str
        Full names of further types that may be created, such as a transformer of your own in a pipeline.
    max_bytes : int, default=2**30
        Most bytes that the file may unpack to.

    Returns
    -------
    estimator
        As it was saved.

    Raises
    ------
    ModelFileError
        A ValueError: the file is not a model file, is damaged, is over a limit, comes from another format, or names
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
    path: str | os.PathLike[str], kind: str, trusted: Sequence[str] = (), max_bytes: int = MOST_BYTES
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
        return _read(path.read_bytes(), kind, frozenset(trusted), max_bytes)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error.__cause__
    except (ImportError, OSError):
        raise
    except MemoryError as error:
        raise ModelFileError(f"{path} needs more memory than there is") from error
    except Exception as error:  # what skops and zipfile raise for files that nobody would write
        raise ModelFileError(f"{path} is not a floral-learn {kind} file, or damaged") from error


def _read(raw: bytes, kind: str, trusted: frozenset[str], max_bytes: int) -> Any:
    """The content of a file, after every check that can be made without creating it, and checked again."""
    from skops.io import loads

    content = loads(raw, trusted=_checked(raw, kind, trusted, max_bytes))[kind]
    check_loaded(content)
    for part in _estimators(content):
        if lost := [name for name in part._get_param_names() if not hasattr(part, name)]:
            raise ModelFileError(f"it is damaged: its {type(part).__name__} has no {lost[0]}")
    return content


def _checked(raw: bytes, kind: str, trusted: frozenset[str], max_bytes: int) -> list[str]:
    """The types that this file needs beside those that skops trusts, all of them allowed; else ModelFileError."""
    from skops.io import get_untrusted_types

    schema = read_schema(raw, max_bytes)
    _check_stamp(schema, kind)
    check_nodes(schema, trusted)
    found = list(get_untrusted_types(data=raw))
    if unknown := [name for name in unknown_types(found, schema) if name not in trusted]:
        raise ModelFileError(
            f"it holds types that are not trusted: {', '.join(unknown)}; if you trust it, load(trusted={unknown})"
        )
    return found


def _estimators(content: Any) -> list[BaseEstimator]:
    return [part for part in every_part(content) if isinstance(part, BaseEstimator)]


def _check_stamp(schema: dict[str, Any], kind: str) -> None:
    """Refuse a file of another format or kind before anything in it is looked at."""
    stamp = schema.get("content")
    if not isinstance(stamp, dict) or not {"format", "floral_learn"} <= set(stamp):
        raise ModelFileError(f"it is not a floral-learn {kind} file")
    made, version = (_plain_value(stamp[name]) for name in ("format", "floral_learn"))
    if not isinstance(made, int) or not isinstance(version, str):
        raise ModelFileError(f"it is not a floral-learn {kind} file: its stamp has no version")
    if made != FORMAT:
        way_out = "make it again with this version" if made < FORMAT else "upgrade to read it"
        raise ModelFileError(f"it was written by floral-learn {version[:40]}, in another format: {way_out}")
    if kind not in stamp:
        others = [f"a {other}, which {reader} reads" for other, reader in _READERS.items() if other in stamp]
        raise ModelFileError(f"it is {', '.join(others) or 'not a floral-learn file'}, not a {kind} file")
    if version.split(".")[:2] != floral_learn.__version__.split(".")[:2]:
        warnings.warn(
            f"the {kind} was written by floral-learn {version[:40]}, this is {floral_learn.__version__}: "
            "check its predictions before you rely on them",
            UserWarning,
            stacklevel=6,
        )


def _plain_value(node: Any) -> Any:
    """The number or text behind a node of a schema; None of any other."""
    plain = isinstance(node, dict) and node.get("__loader__") == "JsonNode"
    return json.loads(node["content"]) if plain else None
