"""Fine-tuning of a text model: AdamW, a linear schedule and cut gradients, as transformers' Trainer has them.

On CUDA nothing waits for the host: a training step is recorded once and replayed as a CUDA graph. A step of a small
transformer takes the device a few milliseconds and the host seventeen, for handing over its many small operations.
Everything that changes from step to step (the rows of the batch, the learning rate, the sum of the losses) lies in
buffers at fixed places on the device, so that a replay needs nothing from the host. Batches of different widths have
graphs of their own. On the CPU, and where recording fails, steps are taken one by one, with the same result.
"""

from __future__ import annotations

import math
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from floral_learn.neural.encoders import quiet
from floral_learn.neural.text_passes import TokenRows, forward, own_randomness
from floral_learn.neural.tokens import Tokens
from floral_learn.neural.training import make_optimizer, make_scheduler, mean_loss, on_device

OPENING = 3  # steps of a width that are taken one by one first: they choose kernels and fill caches
LEAST = 30  # steps that must be left for recording to pay
WIDTH_STEP = 32  # widths of batches are multiples of this, so that few graphs are needed
_CLIP = 1.0  # norm to which gradients are cut, as transformers' Trainer does
_UNDECAYED = re.compile(r"bias|layernorm|rmsnorm|(?:^|\.)norm(?:$|\.)|_norm(?:$|\.)", re.IGNORECASE)


@dataclass(frozen=True)
class TrainingSettings:
    """What decides a fine-tune, the data aside."""

    epochs: int
    learning_rate: float
    weight_decay: float
    batch_size: int
    seed: int
    optimizer: Callable[..., Any] | None = None  # of the user's own, see training.py
    scheduler: Callable[..., Any] | None = None
    loss: Callable[..., Any] | None = None

    @property
    def own(self) -> bool:
        """Whether anything about the steps is the user's own."""
        return any(part is not None for part in (self.optimizer, self.scheduler, self.loss))


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
    """Minimise mean cross entropy of `model` over rows with class numbers `codes`, in place; random batches per epoch.

    `weight` (n,) are weights of the rows, with a mean of one. With `belief` (n, M), probabilities above 0, the loss is
    that of labels in doubt (`weighted_loss`). `on_epoch` gets an epoch's number and mean loss, and ends the training
    where it answers true. The model is left in evaluation mode. Losses and scores that are not finite are a ValueError.
    """
    place = torch.device(device)
    with (
        quiet(),
        own_randomness(settings.seed, device),
        nullcontext() if place.index is None else torch.cuda.device(place),
    ):
        _all_epochs(model, TokenRows(tokens, codes, device, weight, belief), settings, on_epoch, on_step)
    scores, _ = forward(model, tokens[: settings.batch_size], device, False)
    if not np.isfinite(scores).all():  # no loss follows the last step
        raise ValueError(f"the scores are not finite after training: lower learning_rate={settings.learning_rate!r}")


def _all_epochs(
    model: Any,
    rows: TokenRows,
    settings: TrainingSettings,
    on_epoch: Callable[[int, float], bool],
    on_step: Callable[[int, int], None],
) -> None:
    """Every step of a training; the network is left in training mode."""
    n, size = len(rows), settings.batch_size
    per_epoch = -(-n // size)
    total = per_epoch * settings.epochs
    draws = torch.Generator().manual_seed(settings.seed)
    model.train()
    steps, done = Steps(model, rows, settings, total), 0
    multiple = WIDTH_STEP if steps.recording else 8
    if steps.stream is not None:
        steps.stream.wait_stream(torch.cuda.current_stream(steps.device))
    try:
        with nullcontext() if steps.stream is None else torch.cuda.stream(steps.stream):
            for epoch in range(1, settings.epochs + 1):
                order = torch.randperm(n, generator=draws)
                on_host, placed = order.numpy(), order.to(steps.device)
                for start in range(0, n, size):
                    width = rows.width(on_host[start : start + size], multiple)
                    steps.take(placed[start : start + size], width, total - done)
                    done += 1
                    on_step(done, total)
                loss = float(steps.loss_sum) / per_epoch
                steps.loss_sum.zero_()
                if not math.isfinite(loss):
                    rate = settings.learning_rate
                    raise ValueError(f"the loss is {loss} after epoch {epoch}: lower learning_rate={rate!r}")
                if on_epoch(epoch, loss):
                    break
                model.train()
    finally:
        if steps.stream is not None:
            torch.cuda.current_stream(steps.device).wait_stream(steps.stream)
        steps.close()


class Steps:
    """Steps of AdamW with a linear schedule over `total` steps, in place on `model`; rows lie on their device."""

    def __init__(self, model: Any, rows: TokenRows, settings: TrainingSettings, total: int) -> None:
        self.model, self.rows, self.total = model, rows, total
        self.device = rows.ids.device
        on_cuda = self.device.type == "cuda"
        self.base = settings.learning_rate
        self.rate = torch.tensor(self.base, device=self.device)
        self.number = torch.zeros((), device=self.device)
        self.loss_sum = torch.zeros((), device=self.device)
        self.picks = torch.zeros(settings.batch_size, dtype=torch.int64, device=self.device)
        self.trained = [p for p in model.parameters() if p.requires_grad]
        self.optimizer: torch.optim.Optimizer
        self.schedule: Any = None  # None: `rate` is written in every step, which a graph can do, too
        if settings.optimizer is None and settings.scheduler is None:
            groups = _groups(model, settings.weight_decay)
            self.optimizer = torch.optim.AdamW(groups, lr=self.rate, fused=on_cuda, capturable=on_cuda)
        else:
            self.optimizer, self.schedule = _own_steps(model, self.trained, settings, total)
        self.loss = on_device(settings.loss, self.device)
        self.stream = torch.cuda.Stream(self.device) if on_cuda else None
        self.recording = on_cuda and not settings.own  # code of the user's own may wait for the host
        self.graphs: dict[int, Any] = {}
        self.pool: Any = None
        self.seen: Counter[int] = Counter()

    def take(self, picks: torch.Tensor, width: int, left: int) -> None:
        """One step on the rows `picks`, of `left` that remain: from a graph where there is one."""
        whole = len(picks) == len(self.picks)
        if whole and self.recording and width not in self.graphs and self.seen[width] >= OPENING and left >= LEAST:
            self._record(width)
        if whole and width in self.graphs:
            self.picks.copy_(picks)
            self.graphs[width].replay()
        else:
            self.seen[width] += whole
            self._step(picks, width)

    def _step(self, picks: torch.Tensor, width: int) -> None:
        self.rate.copy_(self.base * (1 - self.number / self.total))
        self.number += 1
        batch = self.rows.batch(picks, width)
        kind = self.device.type
        # a cache of rounded weights would outlive the step that is being recorded
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda", cache_enabled=False):
            scores = self.model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
        loss = weighted_loss(scores, batch, self.loss)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.trained, _CLIP)
        self.optimizer.step()
        if self.schedule is not None:
            self.schedule.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.loss_sum += loss.detach()

    def _record(self, width: int) -> None:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"):
                self._step(self.picks, width)
        except Exception as error:  # whatever an operation that cannot be recorded raises
            self.recording = False
            self.optimizer.zero_grad(set_to_none=True)
            _renew_generator(self.device)
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            warnings.warn(f"a training step could not be recorded as a CUDA graph ({first}): slower", stacklevel=2)
            return
        self.graphs[width] = graph
        self.pool = graph.pool()

    def close(self) -> None:
        """Give the graphs' memory back."""
        self.optimizer.zero_grad(set_to_none=True)
        self.graphs.clear()


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


def _own_steps(model: Any, trained: list[Any], settings: TrainingSettings, total: int) -> tuple[Any, Any]:
    """Optimizer and schedule where one of them is the user's own; the other is as without."""
    optimizer: torch.optim.Optimizer
    if settings.optimizer is None:
        optimizer = torch.optim.AdamW(_groups(model, settings.weight_decay), lr=settings.learning_rate)
    else:
        optimizer = make_optimizer(settings.optimizer, trained, settings.learning_rate)
    if settings.scheduler is None:
        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / total))
    return optimizer, make_scheduler(settings.scheduler, optimizer, total)


def _groups(model: Any, weight_decay: float) -> list[dict[str, Any]]:
    """Parameters that are trained, in two groups: offsets and scales of layers are not decayed."""
    scales = {
        id(p)
        for module in model.modules()
        if isinstance(module, torch.nn.LayerNorm)
        for p in module.parameters(recurse=False)
    }
    kinds: dict[bool, list[Any]] = {True: [], False: []}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            kinds[id(parameter) not in scales and not _UNDECAYED.search(name)].append(parameter)
    return [
        {"params": kinds[True], "weight_decay": weight_decay},
        {"params": kinds[False], "weight_decay": 0.0},
    ]


def _renew_generator(device: torch.device) -> None:
    """A recording that fails leaves the device's generator in the middle of it: put a new one in its place."""
    place = torch.cuda.current_device() if device.index is None else device.index
    generator = torch.cuda.default_generators[place]
    fresh = torch.Generator(device=f"cuda:{place}").manual_seed(int(np.random.default_rng(place).integers(2**31)))
    renew = getattr(generator, "graphsafe_set_state", None)
    if renew is not None:
        renew(fresh)


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


class EpochReport:
    """Lines on stderr: what ``verbose=1`` shows."""

    def __init__(self, epochs: int) -> None:
        self.epochs, self.began = epochs, time.monotonic()

    def step(self, step: int, of: int) -> None:
        """A step of all."""
        every = max(1, of // (10 * self.epochs))
        if step % every == 0:
            left = (time.monotonic() - self.began) / step * (of - step)
            sys.stderr.write(f"[text] step {step}/{of}  {left:.1f} s left\n")

    def epoch(self, epoch: int, values: dict[str, float]) -> None:
        """An epoch of all."""
        numbers = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
        sys.stderr.write(f"[text] epoch {epoch}/{self.epochs}  {numbers}\n")
