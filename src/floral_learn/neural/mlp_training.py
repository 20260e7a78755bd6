"""Train any torch module on class probabilities: min_theta mean_i w_i CE(t_i, f_theta(x_i + d_i)), by SGD.

d_i is zero, or, for PGD training, the perturbation within a ball that raises row i's loss. Targets t_i are one-hot for
given labels and soft for sanitised ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from floral_learn.neural.batched_mlp import MLPSettings
from floral_learn.neural.mlp_network import class_columns, evaluating, place_of, soft_loss, threads_for
from floral_learn.neural.own_training import make_optimizer, make_scheduler, mean_loss, on_device

History = dict[str, list[float]]
Measure = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None], torch.Tensor]


@dataclass(frozen=True)
class Rows:
    """Rows (n, ...), class probabilities (n, M) and weights (n,) or None."""

    X: np.ndarray
    target: np.ndarray
    weight: np.ndarray | None = None


def train(
    module: torch.nn.Module,
    rows: Rows,
    settings: MLPSettings,
    stream: torch.Generator,
    *,
    validation: Rows | None = None,
    patience: int | None = None,
    after_epoch: Callable[[History], bool] = lambda history: False,
) -> History:
    """Train `module` in place and return what happened in each epoch.

    Batches and perturbations come from `stream`; layers with randomness of their own (dropout) from torch's generator,
    which is seeded from `stream` for the time of the training and left as it was. Weights have mean 1.

    Parameters
    ----------
    validation : rows that only the history sees, unless
    patience : epochs without a lower validation loss after which training stops, with the best epoch's parameters
    after_epoch : called with the history so far; true stops the training
    """
    device, dtype = place_of(module)
    X, target = (torch.tensor(a, dtype=dtype, device=device) for a in (rows.X, rows.target))
    weight = None if rows.weight is None else torch.tensor(rows.weight, dtype=dtype, device=device)
    optimiser, schedule = _optimiser(module, settings, -(-len(X) // settings.batch_size) * settings.epochs)
    measure = _loss_of(settings, device)
    joined = any(isinstance(part, torch.nn.modules.batchnorm._BatchNorm) for part in module.modules())
    history: History = {"loss": [], "accuracy": []}
    best, best_state = np.inf, None
    with _own_randomness(stream, device), _training(module), threads_for(module):
        for _ in range(settings.epochs):
            losses, hits = 0.0, 0
            for picks in _batches(len(X), settings.batch_size, stream, joined):
                batch, wanted = X[picks], target[picks]
                if settings.epsilon > 0:
                    batch = perturbed(module, batch, wanted, settings, stream, measure)
                output = module(batch)
                loss = measure(output, wanted, None if weight is None else weight[picks])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                if schedule is not None:
                    schedule.step()
                losses += float(loss.detach()) * len(picks)
                hits += int((class_columns(output.detach()).argmax(1) == wanted.argmax(1)).sum())
            history["loss"].append(losses / len(X))
            history["accuracy"].append(hits / len(X))
            if not np.isfinite(losses):
                raise ValueError(
                    f"the loss is {losses} after epoch {len(history['loss'])}: scale X or lower "
                    f"learning_rate={settings.learning_rate!r}"
                )
            if validation is not None:
                value = _measure(module, validation, history)
                if patience is not None and value < best:
                    best, best_state = value, {k: v.clone() for k, v in module.state_dict().items()}
            stop = after_epoch(history)
            if stop or (patience is not None and _stalled(history["validation_loss"], patience)):
                break
    if best_state is not None:
        module.load_state_dict(best_state)
    return history


def _optimiser(module: torch.nn.Module, settings: MLPSettings, steps: int) -> tuple[torch.optim.Optimizer, Any]:
    """SGD with momentum and no schedule, or what the settings make; a batch less per epoch leaves a schedule short."""
    made: torch.optim.Optimizer
    if settings.optimizer is None:
        made = torch.optim.SGD(module.parameters(), lr=settings.learning_rate, momentum=settings.momentum)
    else:
        made = make_optimizer(settings.optimizer, module.parameters(), settings.learning_rate)
    return made, None if settings.scheduler is None else make_scheduler(settings.scheduler, made, steps)


def _loss_of(settings: MLPSettings, device: torch.device) -> Measure:
    """Mean loss of (output, class probabilities, weights or None): cross entropy, or one of the user's own."""
    if settings.loss is None:

        def cross_entropy(output: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
            each = soft_loss(output, target)
            return each.mean() if weight is None else (weight * each).mean()

        return cross_entropy
    own = on_device(settings.loss, device)

    def given(output: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
        hard = bool(((target == 0) | (target == 1)).all())
        return mean_loss(own, class_columns(output), target.argmax(1) if hard else target, weight)

    return given


def perturbed(
    module: torch.nn.Module,
    batch: torch.Tensor,
    target: torch.Tensor,
    settings: MLPSettings,
    stream: torch.Generator,
    measure: Measure,
) -> torch.Tensor:
    """Inputs within epsilon of `batch` that raise the loss: sign steps from a random start, projected onto the ball."""
    start = torch.rand(batch.shape, generator=stream).to(batch)
    moved = _valid(batch + (2 * start - 1) * settings.epsilon, settings)
    for _ in range(settings.inner_steps):
        moved = moved.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(measure(module(moved), target, None), moved)
        moved = moved.detach() + settings.step * gradient.sign()
        moved = _valid(batch + (moved - batch).clamp(-settings.epsilon, settings.epsilon), settings)
    return moved.detach()


def _valid(x: torch.Tensor, settings: MLPSettings) -> torch.Tensor:
    return x if settings.clip is None else x.clamp(*settings.clip)


def _batches(n: int, size: int, stream: torch.Generator, joined: bool) -> Iterator[torch.Tensor]:
    """A fresh order of the rows in batches; `joined` never leaves one row alone, which batch norm cannot train on."""
    parts = list(torch.randperm(n, generator=stream).split(size))
    if joined and len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    yield from parts


def _measure(module: torch.nn.Module, rows: Rows, history: History) -> float:
    """Add the loss and accuracy of held-out rows to the history; returns the loss."""
    device, dtype = place_of(module)
    losses, hits = [], []
    with evaluating(module), torch.no_grad():
        for start in range(0, len(rows.X), 4096):
            part = slice(start, start + 4096)
            X, target = (torch.tensor(a[part], dtype=dtype, device=device) for a in (rows.X, rows.target))
            output = module(X)
            losses.append(soft_loss(output, target).cpu())
            hits.append((class_columns(output).argmax(1) == target.argmax(1)).cpu())
    loss, accuracy = float(torch.cat(losses).mean()), float(torch.cat(hits).double().mean())
    history.setdefault("validation_loss", []).append(loss)
    history.setdefault("validation_accuracy", []).append(accuracy)
    return loss


def _stalled(losses: list[float], patience: int) -> bool:
    return len(losses) - 1 - int(np.argmin(losses)) >= patience


@contextmanager
def _training(module: torch.nn.Module) -> Iterator[None]:
    """Training mode for the time of a block, then evaluation: a trained network is there to predict."""
    module.train()
    try:
        yield
    finally:
        module.eval()


@contextmanager
def _own_randomness(stream: torch.Generator, device: torch.device) -> Iterator[None]:
    """Dropout and its like draw from the seed of `stream`; torch's own generators are then as they were."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(stream.initial_seed())
        yield
