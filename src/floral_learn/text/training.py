"""Fine-tuning of a text model by transformers' Trainer: AdamW, a linear schedule, gradients cut to a norm of one."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from floral_learn.text.network import TextNetwork, quiet
from floral_learn.text.passes import batch_of, forward, own_randomness
from floral_learn.text.tokens import Tokens

History = dict[str, list[float]]


def fine_tune(
    network: TextNetwork,
    rows: tuple[Tokens, np.ndarray, np.ndarray],
    held: tuple[Tokens, np.ndarray] | None,
    seed: int,
    **settings: Any,
) -> History:
    """Minimise the mean loss over `rows`, in place: texts, their class numbers, and weights of mean one.

    Returns the mean loss of each epoch, and accuracy and hinge loss on the texts and class numbers `held`. The model is
    left in evaluation mode. `settings` are the Trainer's. Losses and scores that are not finite are a ValueError.
    """
    tokens, codes, weight = rows
    place = torch.device(network.device)
    on_place = nullcontext() if place.index is None else torch.cuda.device(place)

    def batch(picks: list[int]) -> dict[str, torch.Tensor]:
        some = np.asarray(picks)
        labels, weights = torch.as_tensor(codes[some]).long(), torch.as_tensor(weight[some]).float()
        return batch_of(tokens, some, "cpu") | {"labels": labels, "weight": weights}

    with quiet(), own_randomness(seed, network.device), on_place, tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            seed=seed,
            # offsets and layer norms are not decayed; gradients are cut to a norm of 1
            optim="adamw_torch",
            bf16=place.type == "cuda",
            use_cpu=place.type == "cpu",
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            remove_unused_columns=False,
            dataloader_pin_memory=False,
            **settings,
        )
        arguments._n_gpu = min(arguments.n_gpu, 1)  # one device, the one that was asked for
        every = list(range(len(codes)))
        trainer = _WeightedTrainer(network.model, arguments, data_collator=batch, train_dataset=every)
        trainer.remove_callback(PrinterCallback)
        epochs = _Epochs(trainer, network, held)
        trainer.add_callback(epochs)
        trainer.train()
        # bf16 leaves a wrapper around forward, which would outlive the training
        trainer.accelerator.unwrap_model(network.model, keep_fp32_wrapper=False)
    scores, _ = forward(network.model.eval(), tokens[: arguments.per_device_train_batch_size], network.device)
    if not np.isfinite(scores).all():  # no loss follows the last step
        raise ValueError(f"the scores are not finite after training: lower learning_rate={arguments.learning_rate!r}")
    return epochs.history


class _WeightedTrainer(Trainer):
    """Rows by their weights; remembers the losses of an epoch."""

    losses: list[torch.Tensor]

    def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> torch.Tensor:
        scores = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits
        each = torch.nn.functional.cross_entropy(scores.float(), inputs["labels"], reduction="none")
        loss = (each * inputs["weight"]).mean()
        self.losses = [*getattr(self, "losses", []), loss.detach() * len(scores)]
        return loss


class _Epochs(TrainerCallback):
    """What each epoch ended with."""

    def __init__(self, trainer: Any, network: TextNetwork, held: Any) -> None:
        self.trainer, self.network, self.held = trainer, network, held
        self.history: History = {"loss": []}

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        loss = float(torch.stack(self.trainer.losses).sum()) / len(self.trainer.train_dataset)
        self.trainer.losses = []  # of the next epoch
        if not np.isfinite(loss):
            raise ValueError(
                f"the loss is {loss} in epoch {round(state.epoch)}: lower learning_rate={args.learning_rate!r}"
            )
        self.history["loss"].append(loss)
        if self.held is not None:
            scores, _ = forward(self.network.model, self.held[0], self.network.device)
            for name, value in _held_out_scores(scores, self.held[1]).items():
                self.history.setdefault(name, []).append(value)
            self.network.model.train()


def _held_out_scores(logits: np.ndarray, codes: np.ndarray) -> dict[str, float]:
    """Accuracy and mean hinge loss, max(0, 1 - (own logit - best other logit))."""
    others = logits.astype(np.float64)
    own = others[np.arange(len(codes)), codes].copy()
    others[np.arange(len(codes)), codes] = -np.inf
    hinge = np.maximum(0, 1 - own + others.max(axis=1))
    return {"accuracy": float((logits.argmax(1) == codes).mean()), "hinge_loss": float(hinge.mean())}
