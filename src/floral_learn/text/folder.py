"""Text models as folders: safetensors, the tokenizer and a JSON note; a save that fails leaves the folder as it was."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.base.files import MOST_BYTES
from floral_learn.base.model_files import ModelFileError
from floral_learn.base.models import FORMAT

NOTE = "floral.json"


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
    """The JSON note of a folder, with the number of this format; numbers of numpy are numbers, a generator is null."""

    def plain(value: Any) -> Any:
        return None if isinstance(value, np.random.RandomState) else value.item()

    return json.dumps({"format": FORMAT, **content}, indent=1, default=plain) + "\n"


def read_note(folder: str | os.PathLike[str], who: str) -> dict[str, Any]:
    """What `note_text` made for the class `who`; a ModelFileError where there is no such note."""
    try:
        note = _read_json(Path(folder) / NOTE)
        newer = int(note["format"]) > FORMAT
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelFileError(f"{folder} is not a folder that {who}.save wrote") from error
    if newer:
        raise ModelFileError(f"{folder} was written in a newer format: upgrade floral-learn to read it")
    return note


def check_network(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder whose configuration describes another network than its weights are.

    transformers would allocate and draw what the configuration says, whatever the weights are: minutes and gigabytes
    for a number that somebody changed. So the network is laid out without memory first, and every weight compared.
    """
    import torch
    import transformers
    from safetensors import safe_open

    stored: dict[str, list[int]] = {}
    for path in Path(folder).glob("model*.safetensors"):
        with safe_open(path, "np") as tensors:
            stored |= {name: tensors.get_slice(name).get_shape() for name in tensors.keys()}  # noqa: SIM118
    most = max([1000, *(size for shape in stored.values() for size in shape)])
    for key, value in _read_json(Path(folder) / "config.json").items():
        if type(value) is int and abs(value) > (len(stored) if "layer" in key else most):
            raise ValueError(f"{key}={value} does not fit its weights")
    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    with torch.device("meta"):
        network = transformers.AutoModelForSequenceClassification.from_config(config, trust_remote_code=False)
    wanted = {name: list(value.shape) for name, value in network.named_parameters()}
    if wrong := sorted(name for name, shape in wanted.items() if stored.get(name) != shape):
        raise ValueError(f"the weights {wrong[0]} are missing or of another size")


def _read_json(path: Path) -> dict[str, Any]:
    # Python needs some thirty times the bytes of a JSON text
    if path.stat().st_size > MOST_BYTES // 32:
        raise ValueError(f"{path} is too large")
    found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no names and values")
    return found
