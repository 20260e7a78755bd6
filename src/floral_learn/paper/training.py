"""Train any torch module on class probabilities: min_theta mean_i w_i CE(t_i, f_theta(x_i)), by SGD.

Targets t_i are one-hot for given labels and soft for sanitised ones. Optimizer, schedule and loss may be the user's
own, here and in the fine-tuning of texts.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from sklearn.utils._param_validation import Interval
from torch.optim.lr_scheduler import ReduceLROnPlateau

from floral_learn.paper.mlp_network import class_columns, place_of, soft_loss, threads_for

History = dict[str, list[float]]
Measure = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None], torch.Tensor]
# Rows of a batch, their targets and the loss -> rows to train on in their place.
Perturb = Callable[[torch.nn.Module, torch.Tensor, torch.Tensor, Measure], torch.Tensor]


_POSITIVE = Interval(Real, 0.0, None, closed="neither")
_COUNT = Interval(Integral, 1, None, closed="left")
#: Parameters that every network here has in common, with the allowed values.
TRAINING_CONSTRAINTS: dict[str, Any] = {
    "hidden_layer_sizes": [tuple, list],
    "epochs": [_COUNT],
    "learning_rate": [_POSITIVE],
    "momentum": [Interval(Real, 0.0, 1.0, closed="left")],
    "batch_size": [_COUNT],
    "optimizer": [callable, None],
    "scheduler": [callable, None],
    "loss": [callable, None],
    "device": [str, None],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
}


@dataclass(frozen=True)
class MLPSettings:
    """Shape and training of a network.

    From the paper: two hidden layers, SGD with momentum 0.9, batches of 32, binary cross-entropy. Not given there and
    fixed here: ReLU, PyTorch's default initialisation, learning rate 0.01, the number of epochs.
    """

    hidden: tuple[int, ...] = (32, 32)
    epochs: int = 100
    learning_rate: float = 0.01
    momentum: float = 0.9
    batch_size: int = 32
    optimizer: Callable[..., Any] | None = None  # of one's own
    scheduler: Callable[..., Any] | None = None
    loss: Callable[..., Any] | None = None


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
    perturb: Perturb | None = None,
    after_epoch: Callable[[History], None] = lambda history: None,
) -> History:
    """Train `module` in place and return what happened in each epoch.

    Batches and perturbations come from `stream`; layers with randomness of their own (dropout) from torch's generator,
    which is seeded from `stream` for the time of the training and left as it was. Weights have mean 1. `after_epoch`
    is called with the history so far.
    """
    device, dtype = place_of(module)
    X, target = (torch.tensor(a, dtype=dtype, device=device) for a in (rows.X, rows.target))
    weight = None if rows.weight is None else torch.tensor(rows.weight, dtype=dtype, device=device)
    # a schedule is told all steps: batches an epoch, rounded up, times epochs
    optimiser, schedule = _optimiser(module, settings, -(-len(X) // settings.batch_size) * settings.epochs)
    measure = _loss_of(settings, device)
    joined = any(isinstance(part, torch.nn.modules.batchnorm._BatchNorm) for part in module.modules())
    history: History = {"loss": [], "accuracy": []}
    with _own_randomness(stream, device), _training(module), threads_for(module):
        for _ in range(settings.epochs):
            losses, hits = 0.0, 0
            for picks in _batches(len(X), settings.batch_size, stream, joined):
                batch, wanted = X[picks], target[picks]
                if perturb is not None:
                    batch = perturb(module, batch, wanted, measure)
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
            after_epoch(history)
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


def _batches(n: int, size: int, stream: torch.Generator, joined: bool) -> Iterator[torch.Tensor]:
    """A fresh order of the rows in batches; `joined` never leaves one row alone, which batch norm cannot train on."""
    parts = list(torch.randperm(n, generator=stream).split(size))
    if joined and len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    yield from parts


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


def make_optimizer(
    own: Callable[..., Any], parameters: Iterable[torch.nn.Parameter], learning_rate: float
) -> torch.optim.Optimizer:
    """The optimizer that `own` makes: a class of torch.optim gets `learning_rate`, a function just the parameters."""
    is_class = isinstance(own, type) and issubclass(own, torch.optim.Optimizer)
    made: Any = own(parameters, lr=learning_rate) if is_class else own(parameters)
    if not isinstance(made, torch.optim.Optimizer):
        raise ValueError(
            f"optimizer={own!r} made {type(made).__name__}; it must take parameters and return a torch.optim.Optimizer"
        )
    return made


def make_scheduler(own: Callable[..., Any], optimizer: torch.optim.Optimizer, steps: int) -> Any:
    """The schedule that ``own(optimizer, steps)`` makes; its ``step()`` is called after each of the `steps` batches."""
    made = own(optimizer, steps)
    if isinstance(made, ReduceLROnPlateau) or not hasattr(made, "step"):
        raise ValueError(
            f"scheduler={own!r} made {type(made).__name__}; it must take the optimizer and the number of steps and "
            "return a schedule whose step() needs no measurement"
        )
    return made


def mean_loss(
    own: Callable[..., Any], scores: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None
) -> torch.Tensor:
    """Mean of ``own(scores, target)`` over a batch, rows by their weights where there are any.

    `own` gets scores (n, M) and class numbers (n,), or class probabilities (n, M) where labels are soft, and returns
    one loss per row or, if there are no weights, their mean.
    """
    found = own(scores, target)
    if not isinstance(found, torch.Tensor) or tuple(found.shape) not in [(), (len(scores),)]:
        shape = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
        raise ValueError(f"loss={own!r} gave {shape}; one number or one per row, ({len(scores)},), is expected")
    if weight is None:
        return found.mean()
    if found.ndim == 0:
        raise ValueError(f"loss={own!r} gave one number, and rows have weights: return one loss per row")
    return (weight * found).mean()


def on_device(loss: Any, device: Any) -> Any:
    """A loss that is a module with buffers, such as class weights, where the scores are; a copy, as training is."""
    if isinstance(loss, torch.nn.Module):
        return copy.deepcopy(loss).to(device)
    return loss


def hidden_sizes(given: Any) -> tuple[int, ...]:
    """Widths of the hidden layers; a ValueError where they are none."""
    sizes = tuple(given)
    if not sizes or any(not isinstance(size, Integral) or size < 1 for size in sizes):
        raise ValueError(f"hidden_layer_sizes={given!r} must be positive integers, one per layer, such as (32,)")
    return sizes


def log_epoch(done: int, epochs: int, history: dict[str, list[float]]) -> None:
    """One line on stderr, about ten times per fit."""
    if done % max(1, epochs // 10) == 0 or done == epochs:
        numbers = "  ".join(f"{name.replace('_', ' ')} {values[-1]:.4f}" for name, values in history.items())
        sys.stderr.write(f"[nn] epoch {done}/{epochs}  {numbers}\n")
