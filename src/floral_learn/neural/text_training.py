"""Fine-tuning, and what a network says of texts: scores, embeddings, input gradients.

On the CPU transformers' own Trainer keeps the optimiser, the schedule and the loop; what is taken from it is everything
that prints or writes: collation row by row, progress bars, logs, checkpoints. On CUDA, where it would make the device
wait for the host in every step, the same training runs as recorded steps (`text_graph`).
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback

from floral_learn.neural.encoders import Tokens, length_batches, quiet
from floral_learn.neural.own_training import make_optimizer, make_scheduler
from floral_learn.neural.text_graph import fine_tune_by_steps
from floral_learn.neural.text_rows import TokenRows, TrainingSettings, own_randomness, weighted_loss

EMBED_TOKENS = {"cuda": 131_072, "cpu": 8_192}  # tokens of a forward pass without gradients


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


class _LeanTrainer(Trainer):
    """The Trainer with the sum of its losses, and with weights of rows."""

    loss_sum: torch.Tensor
    loss_count = 0
    own_loss: Any = None

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        loss = super().training_step(*args, **kwargs)
        self.loss_sum += loss.detach()
        self.loss_count += 1
        return loss

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Cross entropy or a loss of the user's own, rows by their weights where they have any."""
        if self.own_loss is None and not {"row_weight", "belief"} & set(inputs):
            return super().compute_loss(model, inputs, *args, **kwargs)
        output = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        return weighted_loss(output.logits, inputs, self.own_loss)

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
    weight: np.ndarray | None = None,
    belief: np.ndarray | None = None,
) -> None:
    """Minimise mean cross entropy of `model` over rows with class numbers `codes`, in place; AdamW, linear schedule.

    `weight` (n,) are weights of the rows, with a mean of one. With `belief` (n, M), probabilities above 0, the loss is
    that of labels in doubt (`weighted_loss`). The model is left in evaluation mode. Losses and scores
    that are not finite are a ValueError.
    """
    place = torch.device(device)
    with (
        quiet(),
        own_randomness(settings.seed, device),
        nullcontext() if place.index is None else torch.cuda.device(place),
    ):
        rows = TokenRows(tokens, codes, device, weight, belief)
        train = fine_tune_by_steps if place.type == "cuda" else _by_trainer
        train(model, rows, settings, on_epoch, on_step)
    scores, _ = forward(model, tokens[: settings.batch_size], device, False)
    if not np.isfinite(scores).all():  # no loss follows the last step
        raise ValueError(f"the scores are not finite after training: lower learning_rate={settings.learning_rate!r}")


def _by_trainer(
    model: Any,
    rows: TokenRows,
    settings: TrainingSettings,
    on_epoch: Callable[[int, float], bool],
    on_step: Callable[[int, int], None],
) -> None:
    """The training on the CPU, in transformers' Trainer."""
    watch = _Watch(on_epoch, on_step)
    with tempfile.TemporaryDirectory(prefix="floral-text-") as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            num_train_epochs=settings.epochs,
            per_device_train_batch_size=settings.batch_size,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            lr_scheduler_type="linear",
            warmup_steps=0,
            optim="adamw_torch",
            use_cpu=True,
            seed=settings.seed,
            data_seed=settings.seed,
            save_strategy="no",
            logging_strategy="no",
            logging_nan_inf_filter=False,  # a loss that is not finite is an error here
            report_to="none",
            disable_tqdm=True,
            remove_unused_columns=False,
            dataloader_num_workers=0,
            dataloader_pin_memory=False,
        )
        trainer = _LeanTrainer(
            model=model, args=arguments, train_dataset=rows, data_collator=_as_it_is, callbacks=[watch]
        )
        trainer.loss_sum, trainer.own_loss = torch.zeros(()), settings.loss
        if settings.optimizer is not None:
            trained = [p for p in model.parameters() if p.requires_grad]
            trainer.optimizer = make_optimizer(settings.optimizer, trained, settings.learning_rate)
        if settings.scheduler is not None:
            steps = -(-len(rows) // settings.batch_size) * settings.epochs
            trainer.lr_scheduler = make_scheduler(settings.scheduler, trainer.create_optimizer(), steps)
        trainer.remove_callback(PrinterCallback)
        watch.trainer = trainer
        trainer.train()


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
