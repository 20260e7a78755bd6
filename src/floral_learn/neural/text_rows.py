"""What a fine-tune works on: token numbers that lie on the device, and the settings and seeds of a training."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from floral_learn.neural.encoders import Tokens
from floral_learn.neural.own_training import mean_loss


@dataclass(frozen=True)
class TrainingSettings:
    """What decides a fine-tune, the data aside."""

    epochs: int
    learning_rate: float
    weight_decay: float
    batch_size: int
    seed: int
    optimizer: Callable[..., Any] | None = None  # of the user's own, see own_training.py
    scheduler: Callable[..., Any] | None = None
    loss: Callable[..., Any] | None = None

    @property
    def own(self) -> bool:
        """Whether anything about the steps is the user's own."""
        return any(part is not None for part in (self.optimizer, self.scheduler, self.loss))


class TokenRows(Dataset):
    """Token numbers and class numbers as tensors on one device; a batch is one indexing, cut to its longest row.

    `weight` (n,) are weights of the rows in the loss, with a mean of one; None is one for every row. `belief` (n, M) is
    what is believed of each row's class, where labels are in doubt.
    """

    def __init__(
        self,
        tokens: Tokens,
        codes: np.ndarray | None,
        device: str,
        weight: np.ndarray | None = None,
        belief: np.ndarray | None = None,
    ) -> None:
        self.lengths = np.asarray(tokens.lengths)
        self.ids = torch.as_tensor(np.ascontiguousarray(tokens.ids), device=device)
        self.sizes = torch.as_tensor(self.lengths, device=device)
        self.codes = None if codes is None else torch.as_tensor(np.asarray(codes, dtype=np.int64), device=device)
        self.weight = None if weight is None else torch.as_tensor(np.asarray(weight, dtype=np.float32), device=device)
        self.belief = None if belief is None else torch.as_tensor(np.asarray(belief, dtype=np.float32), device=device)
        self.places = torch.arange(self.ids.shape[1], device=device)

    def __len__(self) -> int:
        return len(self.lengths)

    def width(self, rows: np.ndarray, multiple: int = 8) -> int:
        """Tokens of the longest of `rows`, up to the next `multiple`: multiples of 8 suit matrix units."""
        return min(-(-int(self.lengths[rows].max()) // multiple) * multiple, self.ids.shape[1])

    def batch(self, picks: torch.Tensor, width: int) -> dict[str, torch.Tensor]:
        """Tokens up to `width`, mask and, where there are any, classes and weights of the rows `picks`."""
        found = {
            "input_ids": self.ids[picks, :width].long(),
            "attention_mask": (self.places[:width] < self.sizes[picks, None]).long(),
        }
        if self.codes is not None:
            found["labels"] = self.codes[picks]
        if self.weight is not None:
            found["row_weight"] = self.weight[picks]
        if self.belief is not None:
            found["belief"] = self.belief[picks]
        return found

    def __getitems__(self, rows: Any) -> dict[str, torch.Tensor]:
        """The batch of `rows`; torch's loader asks for whole batches where a data set has this method."""
        rows = np.asarray(rows)
        return self.batch(torch.as_tensor(rows, device=self.ids.device), self.width(rows))

    def __getitem__(self, row: int) -> dict[str, torch.Tensor]:
        return self.__getitems__([row])


def weighted_loss(scores: torch.Tensor, batch: dict[str, torch.Tensor], own: Any = None) -> torch.Tensor:
    """Mean loss of a batch, rows by their weights where it has any; float32.

    Cross entropy, a loss of the user's own, or -log sum_c belief_c q_c where classes are in doubt, q being the softmax:
    the probability of what is believed. A row that may be either says nothing, and a network that is sure of itself
    may overrule a label that is not.
    """
    weight, belief = batch.get("row_weight"), batch.get("belief")
    if own is not None:
        return mean_loss(own, scores.float(), batch["labels"], weight)
    if belief is not None:
        each = -torch.logsumexp(torch.log_softmax(scores.float(), dim=1) + belief.log(), dim=1)
    elif weight is None:
        return torch.nn.functional.cross_entropy(scores.float(), batch["labels"])
    else:
        each = torch.nn.functional.cross_entropy(scores.float(), batch["labels"], reduction="none")
    return each.mean() if weight is None else (each * weight).mean()


@contextmanager
def own_randomness(seed: int, device: str) -> Iterator[None]:
    """Seeds of a training inside, the caller's random states again afterwards: the Trainer sets the global ones."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002 (they are put back, not used)
    with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if device != "cpu" else []):
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002
