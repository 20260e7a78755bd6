"""Fine-tuning through transformers' own Trainer, with token numbers that already lie on the device.

The Trainer keeps the optimiser, the schedule, mixed precision and the loop; what is taken from it is everything that
waits, prints or writes: collation row by row, progress bars, logs, checkpoints, checks that make the host wait.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback

from floral_learn.neural.encoders import Tokens, length_batches, quiet

EMBED_TOKENS = {"cuda": 131_072, "cpu": 8_192}  # tokens of a forward pass without gradients


@dataclass(frozen=True)
class TrainingSettings:
    """What decides a fine-tune, the data aside."""

    epochs: int
    learning_rate: float
    weight_decay: float
    batch_size: int
    seed: int


class TokenRows(Dataset):
    """Token numbers and class numbers as tensors on one device; a batch is one indexing, cut to its longest row."""

    def __init__(self, tokens: Tokens, codes: np.ndarray | None, device: str) -> None:
        self.lengths = np.asarray(tokens.lengths)
        self.ids = torch.as_tensor(np.ascontiguousarray(tokens.ids), device=device)
        self.sizes = torch.as_tensor(self.lengths, device=device)
        self.codes = None if codes is None else torch.as_tensor(np.asarray(codes, dtype=np.int64), device=device)
        self.places = torch.arange(self.ids.shape[1], device=device)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitems__(self, rows: Any) -> dict[str, torch.Tensor]:
        """The batch of `rows`; torch's loader asks for whole batches where a data set has this method."""
        rows = np.asarray(rows)
        # multiples of 8 suit matrix units
        width = min(-(-int(self.lengths[rows].max()) // 8) * 8, self.ids.shape[1])
        picks = torch.as_tensor(rows, device=self.ids.device)
        batch = {
            "input_ids": self.ids[picks, :width].long(),
            "attention_mask": (self.places[:width] < self.sizes[picks, None]).long(),
        }
        if self.codes is not None:
            batch["labels"] = self.codes[picks]
        return batch

    def __getitem__(self, row: int) -> dict[str, torch.Tensor]:
        return self.__getitems__([row])


def _as_it_is(batch: Any) -> Any:
    return batch


class _Watch(TrainerCallback):
    """Hands epochs and steps on; the Trainer's own state says where it is."""

    def __init__(self, on_epoch: Callable[[int, float], bool], on_step: Callable[[int, int], None]) -> None:
        self.on_epoch, self.on_step = on_epoch, on_step
        self.trainer: _LeanTrainer | None = None

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A step is done."""
        self.on_step(state.global_step, state.max_steps)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        """An epoch is done: its mean loss goes out, and a true answer ends the training."""
        trainer = self.trainer
        assert trainer is not None
        loss = float(trainer.loss_sum) / max(trainer.loss_count, 1)
        trainer.loss_sum, trainer.loss_count = torch.zeros_like(trainer.loss_sum), 0
        if not math.isfinite(loss):
            raise ValueError(
                f"the loss is {loss} after epoch {round(state.epoch)}: lower learning_rate={args.learning_rate!r}"
            )
        if self.on_epoch(round(state.epoch), loss):
            control.should_training_stop = True
        return control


class _Arguments(TrainingArguments):
    """Arguments that may name a GPU: the Trainer's own choice is always the first."""

    place: torch.device | None = None

    @property
    def device(self) -> torch.device:
        """Where the network and its rows lie already."""
        first = super().device  # asked in any case: it sets accelerate up
        return first if self.place is None else self.place


class _LeanTrainer(Trainer):
    """The Trainer with the sum of its losses kept on the device."""

    loss_sum: torch.Tensor
    loss_count = 0

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        loss = super().training_step(*args, **kwargs)
        self.loss_sum += loss.detach()
        self.loss_count += 1
        return loss

    def floating_point_ops(self, inputs: Any) -> int:
        """Nobody asks for the count, and counting walks through all parameters in every step."""
        return 0


def fine_tune(
    model: Any,
    tokens: Tokens,
    codes: np.ndarray,
    settings: TrainingSettings,
    device: str,
    on_epoch: Callable[[int, float], bool] = lambda epoch, loss: False,
    on_step: Callable[[int, int], None] = lambda step, of: None,
) -> None:
    """Minimise mean cross entropy of `model` over rows with class numbers `codes`, in place; AdamW, linear schedule.

    The model is left in evaluation mode. Losses and scores that are not finite are a ValueError.
    """
    watch, place = _Watch(on_epoch, on_step), torch.device(device)
    with (
        tempfile.TemporaryDirectory(prefix="floral-text-") as folder,
        quiet(),
        own_randomness(settings.seed, device),
        nullcontext() if place.index is None else torch.cuda.device(place),
    ):
        arguments = _Arguments(
            output_dir=folder,
            num_train_epochs=settings.epochs,
            per_device_train_batch_size=settings.batch_size,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            lr_scheduler_type="linear",
            warmup_steps=0,
            optim="adamw_torch_fused" if place.type == "cuda" else "adamw_torch",
            bf16=place.type == "cuda",
            use_cpu=place.type == "cpu",
            seed=settings.seed,
            data_seed=settings.seed,
            save_strategy="no",
            logging_strategy="no",
            logging_nan_inf_filter=False,  # its check would make the host wait in every step
            report_to="none",
            disable_tqdm=True,
            remove_unused_columns=False,
            dataloader_num_workers=0,
            dataloader_pin_memory=False,
        )
        arguments._n_gpu = min(arguments.n_gpu, 1)  # several GPUs would mean DataParallel, another training
        if place.index is not None:
            arguments.place = place
            torch.cuda.set_device(place)  # again: making the arguments chose the first
        rows = TokenRows(tokens, codes, device)
        trainer = _LeanTrainer(
            model=model, args=arguments, train_dataset=rows, data_collator=_as_it_is, callbacks=[watch]
        )
        trainer.loss_sum = torch.zeros((), device=device)
        trainer.remove_callback(PrinterCallback)
        watch.trainer = trainer
        trainer.train()
    scores, _ = forward(model, tokens[: settings.batch_size], device, False)
    if not np.isfinite(scores).all():  # no loss follows the last step
        raise ValueError(f"the scores are not finite after training: lower learning_rate={settings.learning_rate!r}")


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


def forward(
    model: Any, tokens: Tokens, device: str, embeddings: bool, pooling: str = "first"
) -> tuple[np.ndarray, np.ndarray | None]:
    """Logits (n, M) and, where asked for, last-layer embeddings (n, width); float32.

    `pooling` is "first" (the vector at the first token) or "mean" (the mean over a text's tokens, padding left out).
    """
    rows, kind = TokenRows(tokens, None, device), torch.device(device).type
    width = max(int(tokens.lengths.max()), 1)
    size = max(1, EMBED_TOKENS[kind] // width)
    places, logits, vectors = [], [], []
    model.eval()
    with torch.no_grad(), torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda"):
        for picks in length_batches(tokens, size):
            batch = rows.__getitems__(picks)
            output = model(**batch, output_hidden_states=embeddings)
            places.append(picks)
            logits.append(output.logits.float())
            if embeddings:
                last = output.hidden_states[-1].float()
                vectors.append(last[:, 0] if pooling == "first" else _mean(last, batch["attention_mask"]))
    back = np.argsort(np.concatenate(places))
    scores = torch.cat(logits).cpu().numpy()[back]
    return scores, torch.cat(vectors).cpu().numpy()[back] if embeddings else None


def _mean(vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    kept = mask[:, :, None].to(vectors.dtype)
    return (vectors * kept).sum(1) / kept.sum(1).clamp(min=1)


def input_gradients(model: Any, tokens: Tokens, codes: np.ndarray, device: str) -> tuple[np.ndarray, np.ndarray]:
    """|d loss_i / d e_i| (n,) with e_i the input embeddings of row i's tokens, and logits (n, M); float64.

    Rows do not see each other in evaluation mode, so the gradient of the summed loss is every row's own.
    """
    rows, kind = TokenRows(tokens, codes, device), torch.device(device).type
    size = max(1, EMBED_TOKENS[kind] // 4 // max(int(tokens.lengths.max()), 1))
    leaves: list[torch.Tensor] = []

    def as_leaf(table: Any, inputs: Any, vectors: torch.Tensor) -> torch.Tensor:
        leaves[:] = [vectors.detach().requires_grad_()]
        return leaves[0]

    trained = [(p, p.requires_grad) for p in model.parameters()]
    places, norms, logits = [], [], []
    model.eval()
    for parameter, _ in trained:
        parameter.requires_grad_(False)
    # The network reads token numbers, not vectors: models that write text find the last token by them.
    hook = model.get_input_embeddings().register_forward_hook(as_leaf)
    try:
        with torch.enable_grad(), torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda"):
            for picks in length_batches(tokens, size):
                batch = rows.__getitems__(picks)
                labels, ids, mask = batch["labels"], batch["input_ids"], batch["attention_mask"]
                scores = model(input_ids=ids, attention_mask=mask).logits.float()
                loss = torch.nn.functional.cross_entropy(scores, labels, reduction="sum")
                (gradient,) = torch.autograd.grad(loss, leaves)
                places.append(picks)
                norms.append((gradient.float() * mask[:, :, None]).flatten(1).norm(dim=1).double())
                logits.append(scores.detach().double())
    finally:
        hook.remove()
        for parameter, needed in trained:
            parameter.requires_grad_(needed)
    back = np.argsort(np.concatenate(places))
    return torch.cat(norms).cpu().numpy()[back], torch.cat(logits).cpu().numpy()[back]
