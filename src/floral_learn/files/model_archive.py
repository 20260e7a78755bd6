"""What a model file may hold, checked before anything in it is created.

A model file is a skops archive: a zip with a schema (JSON that names types) and arrays. The checks here do not depend
on the version of skops: sizes, the headers of arrays, the indices of sparse matrices, which kinds of node the schema
has, and that names stand for objects of exactly the classes that are allowed. Sizes are counted as they will lie in
memory: zips inside the zip add up, and an array that k objects name counts k times. A digest at the end of the file
tells a damaged file from a whole one; whoever can write the file can write the digest too, so it protects against
accidents only.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Iterator, Mapping, Set
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

MAX_BYTES = 2**30
SCHEMA_SHARE, MEMBER_BYTES = (
    32,
    4096,
)  # the schema may have 1/32 of the bytes, members are at least this large on average
DEPTH = 150  # of the schema; Python and skops recurse into it
PROTOCOL = 2  # the oldest layout of skops that we ever wrote; readers of older ones are less strict
_MARK = b"floral-learn sha256:"
# Kinds of node that create plain values, arrays and objects. Not here: those that call a method or an operator, or bind
# arguments to a function; nor bytes, which no model of ours holds.
_NODES = frozenset(
    {"ObjectNode", "DictNode", "DefaultDictNode", "ListNode", "SetNode", "TupleNode", "JsonNode", "SliceNode"}
    | {"NdArrayNode", "MaskedArrayNode", "DTypeNode", "SparseMatrixNode", "RandomStateNode", "RandomGeneratorNode"}
    | {"TypeNode", "FunctionNode", "TreeNode", "LossNode"}
)
_MAPPINGS = ("DictNode",)
_FILES = {"NdArrayNode": ".npy", "SparseMatrixNode": ".npz"}
_BIT_GENERATORS = frozenset({"PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"})
# Types of compiled code that must come from their own kind of node, which checks what it reads: an object made from
# bare attributes would skip that.
_OWN_NODES = {
    "scipy.sparse._csr.csr_matrix": "SparseMatrixNode",
    "scipy.sparse._csr.csr_array": "SparseMatrixNode",
    "scipy.sparse._csc.csc_matrix": "SparseMatrixNode",
    "scipy.sparse._csc.csc_array": "SparseMatrixNode",
    "numpy.dtype": "DTypeNode",
    "numpy.ma.MaskedArray": "MaskedArrayNode",
}
_NODE_KEYS = ("__loader__", "__class__", "__module__", "__id__")
_SPARSE_FORMATS = (b"csr", b"csc", "csr", "csc")


class ModelFileError(ValueError):
    """A file is not a file of ours, is damaged, too large, or names types that are not trusted.

    The one exception for every file that others may have written: models, reviews, checkpoints and folders of text
    models.

    Examples
    --------
    >>> import os, tempfile
    >>> from floral_learn import load
    >>> from floral_learn.files import ModelFileError
    >>> path = os.path.join(tempfile.mkdtemp(), "model.skops")
    >>> with open(path, "w") as file:
    ...     _ = file.write("not a model")
    >>> try:
    ...     load(path)
    ... except ModelFileError as error:
    ...     print("is not a floral-learn model file" in str(error))
    True
    """


def sealed(archive: bytes) -> bytes:
    """The archive with a digest of itself as the comment of the zip."""
    if archive[-22:-18] != b"PK\x05\x06" or archive[-2:] != b"\0\0":
        return archive  # a comment of somebody else, or zip64 without a plain end: leave it alone
    comment = _MARK + hashlib.sha256(archive).hexdigest().encode()
    return archive[:-2] + struct.pack("<H", len(comment)) + comment


def check_seal(raw: bytes) -> None:
    """Refuse a file whose digest does not fit; files of early versions have none."""
    length = len(_MARK) + 64
    if raw[-length:-64] != _MARK:
        return
    archive = raw[: -length - 2] + b"\0\0"
    if hashlib.sha256(archive).hexdigest().encode() != raw[-64:]:
        raise ModelFileError("it is damaged: its contents do not match the digest stored in it")


def check_archive(raw: bytes, max_bytes: int) -> dict[str, Any]:
    """Sizes, array headers and schema of an archive; returns the schema.

    Nothing is unpacked but the schema, and, once the sizes are known to be within the limit, one sparse matrix after
    the other, whose indices are compared with its shape.
    """
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = archive.infolist()
        _below(len(members), max(max_bytes // MEMBER_BYTES, 16), "members", max_bytes)
        if len({member.filename for member in members}) < len(members):
            raise ModelFileError("it holds two members of one name")
        _below(sum(member.file_size for member in members), max_bytes, "bytes when unpacked", max_bytes)
        schema_info = archive.getinfo("schema.json")
        _below(schema_info.file_size, max(max_bytes // SCHEMA_SHARE, 2**16), "bytes of schema", max_bytes)
        sizes = _sizes(archive)
        _below(sum(sizes.values()), max_bytes, "bytes when unpacked", max_bytes)
        schema = json.loads(archive.read(schema_info))
        if not isinstance(schema, dict) or not isinstance(schema.get("protocol"), int) or schema["protocol"] < PROTOCOL:
            raise ModelFileError("its schema is not one that floral-learn writes")
        _below(_named_bytes(schema, sizes), max_bytes, "bytes in the arrays that its objects name", max_bytes)
        for member in members:
            if member.filename.endswith(".npz"):
                _check_sparse(archive.read(member), member.filename)
    return schema


def schema_of(raw: bytes) -> dict[str, Any]:
    """The schema of an archive that we made ourselves."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return json.loads(archive.read("schema.json"))


def unpacked_bytes(raw: bytes) -> int:
    """Bytes that an archive of ours takes in memory, as `check_archive` counts them."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        sizes = _sizes(archive)
    return max(sum(sizes.values()), _named_bytes(schema_of(raw), sizes))


def read_arrays(path: Path, max_bytes: int = MAX_BYTES) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, which may unpack to `max_bytes`; ModelFileError for any other file."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _below(len(members), max(max_bytes // MEMBER_BYTES, 16), "members", max_bytes)
            _below(sum(member.file_size for member in members), max_bytes, "bytes when unpacked", max_bytes)
            for member in members:
                with archive.open(member) as stream:
                    _check_array(stream, member.file_size, member.filename)
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise
    except Exception as error:  # what zipfile and numpy raise for files that nobody would write
        raise ModelFileError(f"{path} is damaged: {error}") from error


def check_nodes(schema: dict[str, Any], trusted: Set[str]) -> None:
    """Refuse kinds of node that call code, and our own names for anything but objects of exactly our classes."""
    for node, depth in _nodes(schema):
        if depth > DEPTH:
            raise ModelFileError(f"its schema is nested more than {DEPTH} levels deep")
        loader, name = node.get("__loader__"), node_name(node)
        if not isinstance(loader, str) or loader not in _NODES:
            raise ModelFileError(f"it holds types that are not trusted: {name} as {loader}, which could run code")
        ours = name == "floral_learn" or name.startswith("floral_learn.")
        if ours and name not in trusted and (loader != "ObjectNode" or not is_own_class(name)):
            raise ModelFileError(f"it holds types that are not trusted: {name} as {loader}")
        if _OWN_NODES.get(name, loader) != loader or (loader == "SparseMatrixNode" and name not in _OWN_NODES):
            raise ModelFileError(f"it holds types that are not trusted: {name} as {loader}")
        if loader in _FILES and "file" in node and not str(node["file"]).endswith(_FILES[loader]):
            raise ModelFileError(f"its {loader} reads {str(node['file'])[:80]!r}, which is not a {_FILES[loader]} file")
        if loader == "RandomGeneratorNode" and _bit_generator(node) not in _BIT_GENERATORS:
            raise ModelFileError("it holds types that are not trusted: an unknown random generator")
    _check_repeats(schema)


def node_names(schema: dict[str, Any]) -> set[str]:
    """Full names of everything that the schema names."""
    return {node_name(node) for node, _ in _nodes(schema)}


def node_name(node: dict[str, Any]) -> str:
    """The full name that a node claims for its object."""
    return f"{node.get('__module__')}.{node.get('__class__')}"


def is_own_class(name: str) -> bool:
    """Whether `name` is, by its full name, an estimator or a dataclass of ours: no function, no imported name."""
    module, _, attribute = name.rpartition(".")
    if not module.startswith("floral_learn.") or attribute.startswith("__"):
        return False
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError):
        return False
    known = isinstance(found, type) and (issubclass(found, BaseEstimator) or is_dataclass(found))
    return known and found.__module__ == module and found.__qualname__ == attribute


def _nodes(schema: Any) -> Iterator[tuple[dict[str, Any], int]]:
    """Every node of the schema with its depth, without recursion."""
    waiting: list[tuple[Any, int]] = [(schema, 0)]
    while waiting:
        item, depth = waiting.pop()
        if isinstance(item, list):
            waiting.extend((value, depth + 1) for value in item)
        elif isinstance(item, dict):
            if any(key in item for key in _NODE_KEYS):
                yield item, depth
            for key, value in item.items():
                if key == "content" and item.get("__loader__") in _MAPPINGS and isinstance(value, dict):
                    # The user's own keys, which may be called __class__ too: only their values are nodes.
                    waiting.extend((inner, depth + 2) for inner in value.values())
                else:
                    waiting.append((value, depth + 1))


def _bit_generator(node: dict[str, Any]) -> Any:
    try:
        return json.loads(node["content"]["bit_generator"]["content"]["bit_generator"]["content"])
    except (KeyError, TypeError, ValueError):
        return None


def _below(found: int, limit: int, what: str, max_bytes: int) -> None:
    if found > limit:
        raise ModelFileError(
            f"it holds {found:,} {what}, more than the limit of {limit:,}; if you trust it, raise the limit: "
            f"max_bytes={2 * max_bytes * max(1, found // limit)} (--max-bytes)"
        )


def _check_array(stream: Any, size: int, name: str) -> None:
    """The header of an array must announce as many bytes as follow, and no Python objects."""
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"version {version}")
        shape, _, dtype = read(stream)
    except (ValueError, EOFError, OSError, struct.error) as error:
        raise ModelFileError(f"its array {name} cannot be read ({str(error)[:80]})") from None
    announced = dtype.itemsize
    for axis in shape:  # Python's integers do not overflow
        announced *= int(axis)
    if dtype.hasobject or announced != size - stream.tell():
        raise ModelFileError(f"its array {name} announces {announced:,} bytes and holds {size - stream.tell():,}")


def _sizes(archive: zipfile.ZipFile) -> dict[str, int]:
    """Unpacked bytes of every member, zips inside the zip included; the headers of arrays must be true."""
    sizes = {member.filename: member.file_size for member in archive.infolist()}
    for member in archive.infolist():
        if member.filename.endswith(".npy"):
            with archive.open(member) as stream:
                _check_array(stream, member.file_size, member.filename)
        elif member.filename.endswith(".npz"):
            sizes[member.filename] = _nested_bytes(archive.read(member), member.filename)
    return sizes


def _nested_bytes(raw: bytes, name: str) -> int:
    """Bytes of the arrays of a sparse matrix, which are a zip inside the zip, by their headers."""
    with zipfile.ZipFile(io.BytesIO(raw)) as inner:
        members = inner.infolist()
        if len({member.filename for member in members}) < len(members) or len(members) > 8:
            raise ModelFileError(f"its {name} is not a sparse matrix")
        for member in members:
            with inner.open(member) as stream:
                _check_array(stream, member.file_size, f"{name}/{member.filename}")
        return len(raw) + sum(member.file_size for member in members)


def _check_sparse(raw: bytes, name: str) -> None:
    """Indices out of range would make compiled code read or write outside of its arrays."""
    try:
        with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
            if arrays["format"].item() not in _SPARSE_FORMATS:
                raise ValueError("it is neither CSR nor CSC")
            if arrays["data"].dtype.kind not in "biufc":
                raise ValueError("its values are not numbers")
            if any(arrays[part].dtype.kind not in "iu" for part in ("indices", "indptr", "shape")):
                raise ValueError("its indices are not integers")
        matrix = sparse.load_npz(io.BytesIO(raw))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"its sparse matrix {name} is damaged: {str(error)[:80]}") from None


def _named_bytes(schema: dict[str, Any], sizes: Mapping[str, int]) -> int:
    """Bytes that the arrays take once they are created: a file that k objects name is read k times."""
    total, seen = 0, set[tuple[int, str]]()
    for node, _ in _nodes(schema):
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
