"""What skops does not check of a model file: sizes before anything is unpacked, kinds of node, and numbers that fit.

A model file is a skops archive: a zip with a schema (JSON that names types) and arrays. skops creates no type that it
is not told to trust. It does not look at sizes (here counted as they will lie in memory: zips inside the zip add up,
an array that k objects name counts k times), and scikit-learn's compiled code trusts the arrays of its own fit: with
support vectors fewer than their weights, or a class number beyond the last class, it reads memory that is not its own.
Two rules close that: classes of scikit-learn are created only where what they run on stored numbers is numpy, and for
the few others that are needed (libsvm, nearest neighbours, one-hot columns, vocabularies, random states) the numbers
must fit each other. Accidents are found by the checksums that every zip has.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator


class ModelFileError(ValueError):
    """A file is not a file of ours, is damaged, too large, or names types that are not trusted.

    The one exception for every file that others may have written: models, reviews and folders of text models.

    Examples
    --------
    >>> import os, tempfile
    >>> from floral_learn import load
    >>> from floral_learn.base import ModelFileError
    >>> path = os.path.join(tempfile.mkdtemp(), "model.skops")
    >>> with open(path, "w") as file:
    ...     _ = file.write("not a model")
    >>> try:
    ...     load(path)
    ... except ModelFileError as error:
    ...     print("is not a floral-learn model file" in str(error))
    True
    """


# Kinds of node that create plain values, arrays and objects. Not here: those that call a method or an operator, or bind
# arguments to a function; nor bytes, which no model of ours holds.
_NODES = frozenset(
    {"ObjectNode", "DictNode", "DefaultDictNode", "ListNode", "SetNode", "TupleNode", "JsonNode", "SliceNode"}
    | {"NdArrayNode", "MaskedArrayNode", "DTypeNode", "SparseMatrixNode", "RandomStateNode", "RandomGeneratorNode"}
    | {"TypeNode", "FunctionNode", "TreeNode", "LossNode"}
)
_FILES = {"NdArrayNode": ".npy", "SparseMatrixNode": ".npz"}
# Types of compiled code that must come from their own kind of node, which checks what it reads: an object made from
# bare attributes would skip that.
_OWN_NODES = {
    **{
        f"scipy.sparse._{kind}.{kind}_{of}": "SparseMatrixNode" for kind in ("csr", "csc") for of in ("matrix", "array")
    },
    "numpy.dtype": "DTypeNode",
    "numpy.ma.MaskedArray": "MaskedArrayNode",
}
_NODE_KEYS = ("__loader__", "__class__", "__module__", "__id__")
# Packages and modules of scikit-learn whose classes use their fitted numbers through numpy and scipy.sparse alone, or
# are checked below. Not here, and so refused unless the caller names them: trees, forests and boosted trees (their
# nodes are places in memory), k-d and ball trees, k-means, splines.
_PLAIN = frozenset(
    """
    calibration compose cross_decomposition discriminant_analysis dummy feature_selection frozen gaussian_process
    isotonic kernel_approximation kernel_ridge linear_model multiclass multioutput naive_bayes neural_network pipeline
    random_projection semi_supervised._self_training svm._classes metrics._scorer impute._base utils._bunch
    utils._encode utils._metadata_requests decomposition._base decomposition._incremental_pca decomposition._pca
    decomposition._truncated_svd ensemble._bagging ensemble._stacking ensemble._voting feature_extraction._hash
    feature_extraction.text model_selection neighbors._classification neighbors._nearest_centroid neighbors._regression
    neighbors._unsupervised preprocessing._data preprocessing._discretization preprocessing._encoders
    preprocessing._function_transformer preprocessing._label preprocessing._polynomial
    """.split()  # noqa: SIM905 (a list would be forty lines)
)
_COMPILED = ("sklearn.preprocessing._polynomial.SplineTransformer",)


def allowed_sklearn(name: str) -> bool:
    """Whether this is a class of scikit-learn that may be created from a file that nobody vouches for."""
    package, _, module = name.rpartition(".")[0].partition(".")
    return package == "sklearn" and name not in _COMPILED and bool({module, module.partition(".")[0]} & _PLAIN)


def is_own_class(name: str) -> bool:
    """Whether `name` is, by its full name, an estimator or a dataclass of ours: no function, no imported name."""
    found = _python_class(name) if name.startswith("floral_learn.") else None
    return found is not None and (issubclass(found, BaseEstimator) or is_dataclass(found))


def _python_class(name: str) -> type | None:
    """The class of this full name, where a module written in Python defines it; never a function: skops calls those."""
    module, _, attribute = name.rpartition(".")
    try:
        source = import_module(module)
        found = vars(source)[attribute]
    except (ImportError, KeyError, ValueError):
        return None
    plain = isinstance(found, type) and (found.__module__, found.__qualname__) == (module, attribute)
    return found if plain and str(getattr(source, "__file__", "")).endswith(".py") else None


def unknown_types(found: Iterable[str], schema: Any) -> list[str]:
    """Names of types that are not created unless the caller names them: strange to skops and us, or compiled code."""
    known = {n for n in found if is_own_class(n) or n in _OWN_NODES or (allowed_sklearn(n) and _python_class(n))}
    compiled = {n for n in map(node_name, _nodes(schema)) if n.startswith("sklearn.") and not allowed_sklearn(n)}
    return sorted(set(found) - known | compiled)


def read_schema(raw: bytes, max_bytes: int) -> dict[str, Any]:
    """The schema of an archive whose sizes are within the limit, whose arrays have true headers and whole contents."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = archive.infolist()
        if len({member.filename for member in members}) < len(members):
            raise ModelFileError("it holds two members of one name")
        _below(sum(member.file_size for member in members), max_bytes, "bytes when unpacked", max_bytes)
        # Python needs some thirty times the bytes of a JSON text.
        _below(archive.getinfo("schema.json").file_size, max(max_bytes // 32, 2**16), "bytes of schema", max_bytes)
        sizes = _sizes(archive)
        _below(sum(sizes.values()), max_bytes, "bytes when unpacked", max_bytes)
        if (damaged := archive.testzip()) is not None:
            raise ModelFileError(f"it is damaged: {damaged[:80]} does not have its checksum")
        schema = json.loads(archive.read("schema.json"))
        protocol = schema.get("protocol") if isinstance(schema, dict) else None
        if not isinstance(protocol, int) or protocol < 2:  # what skops reads of older ones is less strict
            raise ModelFileError("its schema is not one that floral-learn writes")
        _below(_named_bytes(schema, sizes), max_bytes, "bytes in the arrays that its objects name", max_bytes)
    return schema


def check_nodes(schema: dict[str, Any], trusted: Set[str]) -> None:
    """Refuse kinds of node that call code, and our own names for anything but objects of exactly our classes."""
    for node in _nodes(schema):
        loader, name = node.get("__loader__"), node_name(node)
        if not isinstance(loader, str) or loader not in _NODES:
            raise ModelFileError(f"it holds types that are not trusted: {name} as {loader}, which could run code")
        ours = name.split(".")[0] == "floral_learn"
        strange = ours and (loader != "ObjectNode" or not is_own_class(name))
        no_matrix = loader == "SparseMatrixNode" and name not in _OWN_NODES
        disguised = no_matrix or _OWN_NODES.get(name, loader) != loader
        if disguised or (strange and name not in trusted):
            raise ModelFileError(f"it holds types that are not trusted: {name} as {loader}")
        if loader in _FILES and "file" in node and not str(node["file"]).endswith(_FILES[loader]):
            raise ModelFileError(f"its {loader} reads {str(node['file'])[:80]!r}, which is not a {_FILES[loader]} file")
    _check_repeats(schema)


def node_name(node: dict[str, Any]) -> str:
    """The full name that a node claims for its object."""
    return f"{node.get('__module__')}.{node.get('__class__')}"


def check_loaded(model: Any) -> None:
    """Raise ModelFileError where fitted numbers contradict each other in a way that compiled code would not notice."""
    for part in every_part(model):
        if sparse.issparse(part):
            _require(part.format in ("csr", "csc") and part.dtype.kind in "biufc", part, "format")
            try:
                part.check_format(full_check=True)
            except ValueError as error:
                raise ModelFileError(f"it is damaged: a sparse matrix in it has wrong indices ({error})") from None
        for base in type(part).__mro__:
            if check := _CHECKS.get(f"{base.__module__}.{base.__qualname__}"):
                check(part)


def every_part(model: Any) -> Iterator[Any]:
    """`model` and everything that it holds: values of dicts, lists, object arrays and attributes, each once."""
    waiting, seen = [model], dict[int, Any]()
    while waiting:
        item = waiting.pop()
        if item is None or isinstance(item, str | int | float | type) or id(item) in seen:
            continue
        seen[id(item)] = item  # kept, so that no number is used twice
        yield item
        if isinstance(item, dict):
            waiting.extend((*item.keys(), *item.values()))
        elif isinstance(item, list | tuple | set | frozenset):
            waiting.extend(item)
        elif isinstance(item, np.ndarray):
            waiting.extend(item.ravel().tolist() if item.dtype.hasobject else ())
        else:
            waiting.extend(getattr(item, "__dict__", {}).values())


def _below(found: int, limit: int, what: str, max_bytes: int) -> None:
    if found > limit:
        raise ModelFileError(
            f"it holds {found:,} {what}, more than the limit of {limit:,}; if you trust it, raise the limit: "
            f"max_bytes={2 * max_bytes * max(1, found // limit)} (--max-bytes)"
        )


def _sizes(archive: zipfile.ZipFile) -> dict[str, int]:
    """Unpacked bytes of every member, zips inside the zip included."""
    sizes = {member.filename: member.file_size for member in archive.infolist()}
    for name in sizes:
        # skops reads arrays without pickles, and numpy no more bytes than there are; but it would take a zip for one
        if name.endswith(".npy") and archive.open(name).read(6) != np.lib.format.MAGIC_PREFIX:
            raise ModelFileError(f"its array {name} cannot be read")
        if name.endswith(".npz"):
            with zipfile.ZipFile(io.BytesIO(archive.read(name))) as inner:
                sizes[name] += sum(part.file_size for part in inner.infolist())
    return sizes


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every node of the schema, without recursion."""
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, dict):
            if any(key in item for key in _NODE_KEYS):
                yield item
            for key, value in item.items():
                # The user's own keys in a dict may be called __class__ too: only their values are nodes.
                own = key == "content" and item.get("__loader__") == "DictNode" and isinstance(value, dict)
                waiting.extend(value.values() if own else [value])


def _named_bytes(schema: dict[str, Any], sizes: Mapping[str, int]) -> int:
    """Bytes that the arrays take once they are created: a file that k objects name is read k times."""
    total, seen = 0, set[tuple[int, str]]()
    for node in _nodes(schema):
        file, number = node.get("file"), node.get("__id__")
        if not isinstance(file, str) or (number, file) in seen:
            continue  # the same object, named again: skops reads it once
        if type(number) is int and number > 0:
            seen.add((number, file))
        total += sizes.get(file, 0)
    return total


def _check_repeats(schema: dict[str, Any]) -> None:
    """What has the number of another object must be that object, written out again.

    skops takes the first one for all of them. With other contents, a few lines could stand for a tree of any size.
    """
    interned: dict[Any, int] = {}
    first: dict[int, int] = {}

    def shape(item: Any) -> int:
        """A number that equal values share, whatever numbers their objects have."""
        if isinstance(item, dict):
            parts = [(key, shape(value)) for key, value in item.items() if key != "__id__" or isinstance(value, dict)]
            if item.get("__loader__") == "DTypeNode":
                parts = []  # each time written out with an (empty) array of another name
            found = interned.setdefault(("dict", *sorted(parts)), len(interned))
            number = item.get("__id__")
            if number is None or isinstance(number, dict):
                return found
            if type(number) is not int or first.setdefault(number, found) != found:
                raise ModelFileError("it is damaged: two different objects have the same number")
            return found
        if isinstance(item, list):
            return interned.setdefault(("list", *map(shape, item)), len(interned))
        return interned.setdefault((type(item).__name__, item), len(interned))

    shape(schema)


def _require(fits: Any, part: Any, what: str) -> None:
    if not fits:
        raise ModelFileError(f"it is damaged: {what} of its {type(part).__name__} does not fit the rest")


def _array(part: Any, name: str, kinds: str, shape: tuple[int | None, ...]) -> np.ndarray:
    """The fitted attribute `name`, an array of these kinds of number and this shape (None: any length)."""
    found = vars(part).get(name)
    _require(isinstance(found, np.ndarray) and found.dtype.kind in kinds, part, name)
    sizes = zip(found.shape, shape, strict=False)
    _require(found.ndim == len(shape) and all(want in (None, has) for has, want in sizes), part, name)
    return found


def _within(values: np.ndarray, part: Any, name: str, stop: int) -> None:
    _require(values.size == 0 or (values.min() >= 0 and values.max() < stop), part, name)


def _check_svm(part: Any) -> None:
    """libsvm reads (M - 1, n_sv) weights, n_sv rows and M (M - 1) / 2 intercepts wherever it is told to."""
    own = vars(part)
    _require("_impl" not in own and not callable(own.get("kernel")), part, "kernel")
    if not {"support_", "support_vectors_", "_n_support", "_dual_coef_"} & set(own):
        return  # not fitted: there is nothing that predict could read
    classifies = type(part).__name__ in ("SVC", "NuSVC")
    classes = len(_array(part, "classes_", "biufUSO", (None,))) if classifies else 2
    rows, pairs = (classes - 1, classes * (classes - 1) // 2) if classifies else (1, 1)
    shape = own.get("shape_fit_")
    _require(classes >= 2 and isinstance(shape, tuple) and list(map(type, shape)) == [int, int], part, "shape_fit_")
    _require(own.get("n_features_in_") in (None, shape[1]), part, "n_features_in_")
    support = _array(part, "support_", "i", (None,))
    per_class = _array(part, "_n_support", "i", (classes,))
    n_sv = len(support)
    _within(support, part, "support_", shape[0])
    counted = per_class if classifies else per_class[:1]
    _require((per_class >= 0).all() and counted.sum(dtype=np.int64) == n_sv, part, "_n_support")
    if own.get("_sparse") is True:
        vectors, weights = own.get("support_vectors_"), own.get("_dual_coef_")
        _require(all(sparse.issparse(v) and v.format == "csr" for v in (vectors, weights)), part, "support_vectors_")
        fits = vectors.shape == (n_sv, shape[1]) and weights.data.shape == (rows * n_sv,)
        _require(fits, part, "_dual_coef_")
    else:
        _require(own.get("_sparse") is False, part, "_sparse")
        wide = own.get("kernel") != "precomputed"
        _array(part, "support_vectors_", "f", (n_sv, shape[1]) if wide else (None, None))
        _array(part, "_dual_coef_", "f", (rows, n_sv))
    _array(part, "_intercept_", "f", (pairs,))
    for name in ("_probA", "_probB"):
        _require(len(_array(part, name, "f", (None,))) in (0, pairs), part, name)


def _check_neighbours(part: Any) -> None:
    """Votes are counted at the places that the class numbers name; rows are read as far as X is wide."""
    own = vars(part)
    if "_fit_X" not in own:
        return
    rows = own["_fit_X"]
    _require((isinstance(rows, np.ndarray) or sparse.issparse(rows)) and rows.ndim == 2, part, "_fit_X")
    sizes = own.get("n_samples_fit_", rows.shape[0]), own.get("n_features_in_", rows.shape[1])
    _require(rows.dtype.kind in "biuf" and sizes == rows.shape, part, "_fit_X")
    _require(not callable(own.get("metric")) and not callable(own.get("weights")), part, "metric")
    if "classes_" in own:
        classes = _array(part, "classes_", "biufUSO", (None,))
        _within(_array(part, "_y", "iu", rows.shape[:1]), part, "_y", len(classes))


def _check_one_hot(part: Any) -> None:
    """A category becomes the number of a column: there must be as many columns as categories."""
    own = vars(part)
    groups = own.get("categories_", [])
    _require(isinstance(groups, list) and all(isinstance(g, np.ndarray) and g.ndim == 1 for g in groups), part, "them")
    if "_n_features_outs" not in own:
        return
    nothing = [None] * len(groups)
    rare = own["_default_to_infrequent_mappings"] if own.get("_infrequent_enabled") else nothing
    dropped = own.get("_drop_idx_after_grouping")
    counts = []
    drops = nothing if dropped is None else dropped.tolist()
    for group, place, drop in zip(groups, rare, drops, strict=True):
        count = len(group) if place is None else len(set(place.tolist()))
        if place is not None:  # rare categories share a column
            _require(place.shape == group.shape and place.dtype.kind in "iu", part, "rare categories")
            _within(place, part, "rare categories", count)
        _require(drop is None or 0 <= drop < count, part, "dropped categories")
        counts.append(count - (drop is not None))
    fits = list(own["_n_features_outs"]) == counts and own.get("n_features_in_", len(groups)) == len(groups)
    _require(fits, part, "_n_features_outs")


def _check_vocabulary(part: Any) -> None:
    """A word becomes the number of a column: each number below their count once."""
    known = vars(part).get("vocabulary_")
    _require(known is None or sorted(known.values()) == list(range(len(known))), part, "vocabulary_")


def _check_random_state(part: Any) -> None:
    """The Mersenne Twister reads its key at `pos`, Philox its buffer at `buffer_pos`, without looking."""
    state = part.get_state(legacy=False) if isinstance(part, np.random.RandomState) else part.bit_generator.state
    fits = 0 <= state["state"].get("pos", 0) <= 624 and 0 <= state.get("buffer_pos", 0) <= 4
    _require(fits, part, "the state")


_CHECKS: dict[str, Callable[[Any], None]] = {
    "sklearn.svm._base.BaseLibSVM": _check_svm,
    "sklearn.neighbors._base.NeighborsBase": _check_neighbours,
    "sklearn.preprocessing._encoders.OneHotEncoder": _check_one_hot,
    "sklearn.feature_extraction.text.CountVectorizer": _check_vocabulary,
    "numpy.random.mtrand.RandomState": _check_random_state,
    "numpy.random._generator.Generator": _check_random_state,
}
