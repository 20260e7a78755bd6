"""What a model file may hold, checked before anything in it is unpacked or created.

A model file is a skops archive: a zip with a schema (JSON that names types) and arrays. The checks here do not depend
on the version of skops: sizes, the headers of arrays, which kinds of node the schema has, and that our own names stand
for objects of exactly our classes. A digest at the end of the file tells a damaged file from a whole one; whoever can
write the file can write the digest too, so it protects against accidents only.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Iterator, Set
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
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
# arguments to a function.
_NODES = frozenset(
    {"ObjectNode", "DictNode", "DefaultDictNode", "ListNode", "SetNode", "TupleNode", "JsonNode", "SliceNode"}
    | {"NdArrayNode", "MaskedArrayNode", "DTypeNode", "SparseMatrixNode", "RandomStateNode", "RandomGeneratorNode"}
    | {"TypeNode", "FunctionNode", "TreeNode", "LossNode", "BytesNode", "BytearrayNode"}
)
_MAPPINGS = ("DictNode",)
_FILES = {"NdArrayNode": ".npy", "SparseMatrixNode": ".npz"}
_BIT_GENERATORS = frozenset({"PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"})


class ModelFileError(ValueError):
    """A file is not a model file of ours, is damaged, too large, or names types that are not trusted.

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
    """Sizes, array headers and schema of an archive; returns the schema. Nothing but the schema is unpacked."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = archive.infolist()
        _below(len(members), max(max_bytes // MEMBER_BYTES, 16), "members", max_bytes)
        _below(sum(member.file_size for member in members), max_bytes, "bytes when unpacked", max_bytes)
        schema_info = archive.getinfo("schema.json")
        _below(schema_info.file_size, max(max_bytes // SCHEMA_SHARE, 2**16), "bytes of schema", max_bytes)
        for member in members:
            if member.filename.endswith(".npy"):
                with archive.open(member) as stream:
                    _check_array(stream, member.file_size, member.filename)
            elif member.filename.endswith(".npz"):
                _check_nested(archive.read(member), member.filename, max_bytes)
        schema = json.loads(archive.read(schema_info))
    if not isinstance(schema, dict) or not isinstance(schema.get("protocol"), int) or schema["protocol"] < PROTOCOL:
        raise ModelFileError("its schema is not one that floral-learn writes")
    return schema


def check_nodes(schema: dict[str, Any], trusted: Set[str]) -> None:
    """Refuse kinds of node that call code, and our own names for anything but objects of exactly our classes."""
    for node, depth in _nodes(schema):
        if depth > DEPTH:
            raise ModelFileError(f"its schema is nested more than {DEPTH} levels deep")
        loader, name = node.get("__loader__"), f"{node.get('__module__')}.{node.get('__class__')}"
        if not isinstance(loader, str) or loader not in _NODES:
            raise ModelFileError(f"it holds types that are not trusted: {name} as {loader}, which could run code")
        ours = name == "floral_learn" or name.startswith("floral_learn.")
        if ours and name not in trusted and (loader != "ObjectNode" or not is_own_class(name)):
            raise ModelFileError(f"it holds types that are not trusted: {name} as {loader}")
        if loader in _FILES and "file" in node and not str(node["file"]).endswith(_FILES[loader]):
            raise ModelFileError(f"its {loader} reads {str(node['file'])[:80]!r}, which is not a {_FILES[loader]} file")
        if loader == "RandomGeneratorNode" and _bit_generator(node) not in _BIT_GENERATORS:
            raise ModelFileError("it holds types that are not trusted: an unknown random generator")


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
            if "__loader__" in item or "__class__" in item or "__module__" in item:
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


def _check_nested(raw: bytes, name: str, max_bytes: int) -> None:
    """The arrays of a sparse matrix are a zip inside the zip."""
    with zipfile.ZipFile(io.BytesIO(raw)) as inner:
        _below(sum(member.file_size for member in inner.infolist()), max_bytes, f"bytes in {name}", max_bytes)
        for member in inner.infolist():
            with inner.open(member) as stream:
                _check_array(stream, member.file_size, f"{name}/{member.filename}")
