"""A review as a skops file: arrays, numbers and text only, so that loading runs nothing that the file names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import floral_learn
from floral_learn.files.atomic_files import write_atomically
from floral_learn.files.light_skops import import_skops

_FORMAT = 1
_KNOWN = ("scipy.sparse._csr.csr_matrix", "scipy.sparse._csr.csr_array")


def write(path: str | os.PathLike[str], state: dict[str, Any]) -> None:
    """`state` under `path`, whole or not at all."""
    stamp = {"format": _FORMAT, "floral_learn": floral_learn.__version__, "review": state}
    write_atomically(path, import_skops().dumps(stamp))


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What `write` wrote; anything else is an error that says what is wrong."""
    path, skops_io = Path(path), import_skops()
    if not path.is_file():
        raise FileNotFoundError(f"no review file at {path}")
    try:
        found = skops_io.get_untrusted_types(file=path)
    except Exception as error:
        raise ValueError(f"{path} is not a review file") from error
    if unknown := sorted(set(found) - set(_KNOWN)):
        raise ValueError(f"{path} is not a review file: it holds {', '.join(unknown)}")
    stamp = skops_io.load(path, trusted=list(found))
    if not isinstance(stamp, dict) or "review" not in stamp:
        raise ValueError(f"{path} is not a review file")
    if stamp.get("format", 0) > _FORMAT:
        raise ValueError(f"{path} was written by floral-learn {stamp['floral_learn']}, in a newer format")
    return stamp["review"]
