"""Fine-tune the encoder of a draw on given labels; what is kept: embeddings, test scores an epoch, input gradients."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from floral_bench.families.text_data import (
    Draw,
    digest,
    draw_of,
    max_length_of,
    read_arrays,
    source_of,
    work_folder,
    write_arrays,
)  # fmt: skip
from floral_bench.spec import Data
from floral_bench.split_table import two_parts
from floral_learn.datasets import Dataset
from floral_learn.neural.text import TextClassifier

EPOCHS = 3
EPOCH_ROWS = 5_000  # test rows scored after each epoch but the last, which is scored on all


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
