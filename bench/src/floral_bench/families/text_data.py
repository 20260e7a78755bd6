"""A draw of IMDB as token numbers, and its encoder fine-tuned on given labels, kept in a work folder.

Reading and tokenising 50,000 reviews costs half a minute. Of a fine-tune are kept embeddings, test scores an epoch and
input gradients. The work folder is ``$FLORAL_WORK``, or ``text`` in the user's cache; everything in it can be computed
again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from floral_bench.cell_data import load
from floral_bench.spec import Data
from floral_bench.split_table import two_parts
from floral_learn.base.files import user_cache
from floral_learn.datasets import Dataset
from floral_learn.text.classifier import TextClassifier
from floral_learn.text.network import load_part, require_transformers, resolve_encoder
from floral_learn.text.tokens import Tokens, tokenize

WORK_VARIABLE = "FLORAL_WORK"
MAX_LENGTH = 256
TOKENS = ("ids", "lengths", "pad")
EPOCHS = 3
EPOCH_ROWS = 5_000  # test rows scored after each epoch but the last, which is scored on all
_LAYER = "embeddings.LayerNorm.weight"  # as float16 it tells MiniLM from every other model
_MINILM_SHA256 = "def258b6ff17046bd76123177f09ce80048eaae432297da2978e5897a66f490e"
_NOT_LOADED = ("encoder", "epochs", "max_length")  # what is done with the reviews, not which they are


@dataclass(frozen=True)
class Draw:
    """Training and test reviews of one replication, as token numbers, with their clean labels (-1 and +1)."""

    train: Tokens
    test: Tokens
    y_train: np.ndarray
    y_test: np.ndarray


def work_folder() -> Path:
    """Where token numbers and embeddings are kept between jobs."""
    given = os.environ.get(WORK_VARIABLE)
    return Path(given) if given else user_cache() / "text"


def source_of(data: Data) -> str:
    """The folder or name of the encoder of a cell's data; ``"minilm"`` is the default encoder."""
    name = dict(data.params).get("encoder", "minilm")
    return resolve_encoder(None if name == "minilm" else name)


def encoder_name(source: str) -> str:
    """``"minilm"`` for a folder that holds MiniLM's weights, in float32 or halved; else `source` itself."""
    weights = Path(source) / "model.safetensors"
    if weights.is_file():
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(weights, "np") as tensors:
                found = np.asarray(tensors.get_tensor(_LAYER), dtype=np.float16).tobytes()
        except (SafetensorError, TypeError):  # another network: no such layer, or a type that numpy does not know
            return source
        if hashlib.sha256(found).hexdigest() == _MINILM_SHA256:
            return "minilm"
    return source


def max_length_of(data: Data) -> int:
    """Tokens of a review that are read."""
    return int(dict(data.params).get("max_length", MAX_LENGTH))


def digest(*parts: Any) -> str:
    """A name for what `parts` (JSON values, bytes) decide."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part if isinstance(part, bytes) else json.dumps(part, sort_keys=True).encode())
        found.update(b"|")
    return found.hexdigest()[:24]


@lru_cache(maxsize=1)
def draw_of(data: Data) -> Draw:
    """The reviews behind a cell."""
    unread = [pair for pair in data.params if pair[0] != "epochs"]  # training does not change the tokens
    folder = work_folder() / f"draw-{digest(data.name, unread)}"
    arrays = read_arrays(folder)
    if arrays is None:
        reviews = load(Data(data.name, tuple(pair for pair in data.params if pair[0] not in _NOT_LOADED)))
        tokenizer = load_part(require_transformers().AutoTokenizer, source_of(data))
        arrays = {"y_train": reviews.y_train_clean, "y_test": reviews.y_test}
        for part, texts in (("train", reviews.X_train), ("test", reviews.X_test)):
            tokens = tokenize(tokenizer, texts.tolist(), max_length_of(data))
            arrays |= {f"{part}_{name}": np.array(getattr(tokens, name)) for name in TOKENS}
        write_arrays(folder, arrays)
    parts = ([arrays[f"{part}_{name}"] for name in TOKENS] for part in ("train", "test"))
    train, test = (Tokens(ids, lengths, int(pad)) for ids, lengths, pad in parts)
    return Draw(train, test, arrays["y_train"], arrays["y_test"])


def read_arrays(folder: Path) -> dict[str, np.ndarray] | None:
    """The arrays that `write_arrays` left, or None."""
    if not folder.is_dir():
        return None
    return {path.stem: np.load(path, allow_pickle=False) for path in sorted(folder.glob("*.npy"))}


def write_arrays(folder: Path, arrays: dict[str, Any]) -> None:
    """One .npy a name, in a folder that appears whole; where two processes made the same, the first one stays."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    try:
        for name, array in arrays.items():
            np.save(made / f"{name}.npy", np.asarray(array), allow_pickle=False)
        try:
            os.rename(made, folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


@dataclass(frozen=True)
class Encoded:
    """A fine-tuned encoder's view of a draw."""

    train: np.ndarray  # (n, d), stored as float16
    test: np.ndarray  # (m, d)
    scores: np.ndarray  # (m,) log-odds of the test rows after the last epoch
    accuracy: np.ndarray  # (epochs,)
    hinge_loss: np.ndarray  # (epochs,)
    norms: np.ndarray  # (n,) norm of the loss gradient in the input embeddings, under the labels of the training
    logits: np.ndarray  # (n, 2) of the training rows
    seconds: float

    def dataset(self, draw: Draw) -> Dataset:
        """The embeddings as a data set for heads; labels are clean."""
        rows, test = self.train.astype(np.float32), self.test.astype(np.float32)
        return two_parts("imdb", rows, draw.y_train, test, draw.y_test, {})


def encoded_name(data: Data, y: np.ndarray, seed: int) -> str:
    """The folder of a fine-tune inside the work folder."""
    return f"encoder-{digest(data.name, list(data.params), seed, np.asarray(y, np.int8).tobytes())}"


def encode(data: Data, y: np.ndarray, seed: int, device: str | None) -> Encoded:
    """The encoder fine-tuned on labels `y` (-1, +1) of the draw; from the work folder where it was made before."""
    folder = work_folder() / encoded_name(data, y, seed)
    arrays = read_arrays(folder)
    if arrays is None:
        arrays = _fine_tune(data, y, seed, device)
        write_arrays(folder, arrays)
    seconds = float(arrays.pop("seconds"))
    return Encoded(**arrays, seconds=seconds)


def _fine_tune(data: Data, y: np.ndarray, seed: int, device: str | None) -> dict[str, Any]:
    draw, started = draw_of(data), time.perf_counter()
    epochs = int(dict(data.params).get("epochs", EPOCHS))
    model = TextClassifier(
        source_of(data),
        epochs=epochs,
        max_length=max_length_of(data),
        pooling="first",  # the paper's
        device=device,
        random_state=seed,
    )
    some = np.arange(min(EPOCH_ROWS, len(draw.test)))
    model.fit(draw.train, y, validation=(draw.test[some], draw.y_test[some]))
    train = model.embed(draw.train)
    logits, test = model.forward(draw.test)
    norms, train_logits = model.input_gradient_norms(draw.train, (y == model.classes_[1]).astype(int))
    scores = logits[:, 1] - logits[:, 0]
    accuracy, hinge = (model.history_[name].copy() for name in ("accuracy", "hinge_loss"))
    signs = np.where(draw.y_test == 1, 1.0, -1.0)
    accuracy[-1] = ((scores > 0) == (signs > 0)).mean()
    hinge[-1] = np.maximum(0, 1 - signs * scores).mean()
    return {
        "train": train.astype(np.float16),
        "test": test.astype(np.float16),
        "scores": scores.astype(np.float32),
        "accuracy": accuracy,
        "hinge_loss": hinge,
        "norms": norms.astype(np.float32),
        "logits": train_logits.astype(np.float32),
        "seconds": time.perf_counter() - started,
    }
