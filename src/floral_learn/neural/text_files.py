"""Text models as folders: safetensors, the tokenizer and a JSON note; a save that fails leaves the folder as it was."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

NOTE = "floral.json"
_FORMAT = 1


@contextmanager
def replaced_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """A new folder beside `folder` to write into; its files take their places in `folder` if nothing failed."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; give a folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".saving-", dir=folder.parent))
    try:
        yield made
        files = sorted(path.relative_to(made) for path in made.rglob("*") if path.is_file())
        for file in files:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            os.replace(made / file, folder / file)
        if any(file.match("model*.safetensors") for file in files):
            # Weights of an earlier save in more or fewer files would be read in place of the new ones.
            for old in folder.glob("model*.safetensors*"):
                if old.relative_to(folder) not in files:
                    old.unlink()
    finally:
        shutil.rmtree(made, ignore_errors=True)


def note_text(content: dict[str, Any]) -> str:
    """The JSON note of a folder, with the number of this format; made before anything is written."""
    return json.dumps({"format": _FORMAT, **content}, indent=1) + "\n"


def read_note(folder: str | os.PathLike[str], who: str) -> dict[str, Any]:
    """What `write_note` wrote for the class `who`; a ValueError where there is no such note."""
    try:
        note = json.loads((Path(folder) / NOTE).read_text(encoding="utf-8"))
        newer = int(note["format"]) > _FORMAT
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder} is not a folder that {who}.save wrote") from error
    if newer:
        raise ValueError(f"{folder} was written in a newer format: upgrade floral-learn to read it")
    return note


def plain(value: Any) -> Any:
    """A parameter as JSON can hold it: numpy's numbers as Python's, a random generator as None."""
    if isinstance(value, np.random.RandomState):
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value
