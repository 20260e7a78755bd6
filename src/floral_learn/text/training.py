"""Fine-tuning of a text model by transformers' Trainer: AdamW, a linear schedule, gradients cut to a norm of one."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from floral_learn.text.network import quiet
from floral_learn.text.passes import batch_of, forward
from floral_learn.text.tokens import Tokens


@dataclass(frozen=True)
class TrainingSettings:
    """What decides a fine-tune, the data aside."""

    epochs: int
    learning_rate: float
    weight_decay: float
    batch_size: int
    seed: int
    verbose: int = 0


@dataclass(frozen=True)
class TrainingRows:
    """Texts with class numbers (n,) and weights (n,) of mean one."""

    tokens: Tokens
    codes: np.ndarray
    weight: np.ndarray

    def batch(self, picks: list[int]) -> dict[str, torch.Tensor]:
        """What the network and the loss need of some rows."""
        rows = np.asarray(picks)
        told = {
            "labels": torch.as_tensor(self.codes[rows]).long(),
            "weight": torch.as_tensor(self.weight[rows]).float(),
        }
        return batch_of(self.tokens, rows, "cpu") | told


def fine_tune(
    model: Any, rows: TrainingRows, settings: TrainingSettings, device: str, on_epoch: Callable[[float], None]
) -> None:
    """Minimise the mean loss of `model` over `rows`, in place; `on_epoch` gets the mean loss of each epoch.

    The model is left in evaluation mode. Losses and scores that are not finite are a ValueError.
    """
    place = torch.device(device)
    on_place = nullcontext() if place.index is None else torch.cuda.device(place)
    with quiet(), own_seeds(device), on_place, tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            num_train_epochs=settings.epochs,
            per_device_train_batch_size=settings.batch_size,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            seed=settings.seed,
            optim="adamw_torch",  # offsets and layer norms are not decayed; gradients are cut to a norm of 1
            bf16=place.type == "cuda",
            use_cpu=place.type == "cpu",
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=not settings.verbose,
            remove_unused_columns=False,
            dataloader_pin_memory=False,
        )
        arguments._n_gpu = min(arguments.n_gpu, 1)  # one device, the one that was asked for
        trainer = _WeightedTrainer(
            model, arguments, data_collator=rows.batch, train_dataset=list(range(len(rows.codes)))
        )
        trainer.remove_callback(PrinterCallback)
        trainer.add_callback(_EpochEnd(trainer, on_epoch))
        trainer.train()
        # bf16 leaves a wrapper around forward, which would outlive the training
        trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)
    scores, _ = forward(model.eval(), rows.tokens[: settings.batch_size], device, False)
    if not np.isfinite(scores).all():  # no loss follows the last step
        raise ValueError(f"the scores are not finite after training: lower learning_rate={settings.learning_rate!r}")


class _WeightedTrainer(Trainer):
    """Rows by their weights; remembers the losses of an epoch."""

    losses: list[torch.Tensor]

    def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> torch.Tensor:
        scores = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits
        each = torch.nn.functional.cross_entropy(scores.float(), inputs["labels"], reduction="none")
        loss = (each * inputs["weight"]).mean()
        self.losses = [*getattr(self, "losses", []), loss.detach() * len(scores)]
        return loss


class _EpochEnd(TrainerCallback):
    def __init__(self, trainer: Any, on_epoch: Callable[[float], None]) -> None:
        self.trainer, self.on_epoch = trainer, on_epoch

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        loss = float(torch.stack(self.trainer.losses).sum()) / len(self.trainer.train_dataset)
        self.trainer.losses = []  # of the next epoch
        if not np.isfinite(loss):
            raise ValueError(
                f"the loss is {loss} in epoch {round(state.epoch)}: lower learning_rate={args.learning_rate!r}"
            )
        self.on_epoch(loss)
        self.trainer.model.train()


def held_out_scores(logits: np.ndarray, codes: np.ndarray) -> dict[str, float]:
    """Accuracy and mean hinge loss, max(0, 1 - (own logit - best other logit))."""
    rows = np.arange(len(codes))
    others = logits.astype(np.float64)
    own = others[rows, codes].copy()
    others[rows, codes] = -np.inf
    margin = own - others.max(axis=1)
    return {
        "accuracy": float((logits.argmax(1) == codes).mean()),
        "hinge_loss": float(np.maximum(0, 1 - margin).mean()),
    }


@contextmanager
def own_seeds(device: str) -> Iterator[None]:
    """The Trainer seeds every generator there is: the caller's states are put back afterwards."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if device != "cpu" else []):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
