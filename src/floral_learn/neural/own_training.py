"""What every training here has in common: its parameters, and the user's own optimizer, schedule and loss."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from sklearn.utils._param_validation import Interval
from torch.optim.lr_scheduler import ReduceLROnPlateau

#: Constraints of the three parameters, as scikit-learn checks them.
OWN_CONSTRAINTS: dict[str, Any] = {
    "optimizer": [callable, None],
    "scheduler": [callable, None],
    "loss": [callable, None],
}


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


_POSITIVE = Interval(Real, 0.0, None, closed="neither")
_COUNT = Interval(Integral, 1, None, closed="left")
#: Parameters that every network here has in common, with the allowed values.
TRAINING_CONSTRAINTS: dict[str, Any] = {
    "hidden_layer_sizes": [tuple, list],
    "epochs": [_COUNT],
    "learning_rate": [_POSITIVE],
    "momentum": [Interval(Real, 0.0, 1.0, closed="left")],
    "batch_size": [_COUNT],
    **OWN_CONSTRAINTS,
    "device": [str, None],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
}


def hidden_sizes(given: Any) -> tuple[int, ...]:
    """Widths of the hidden layers; a ValueError where they are none."""
    sizes = tuple(given)
    if not sizes or any(not isinstance(size, Integral) or size < 1 for size in sizes):
        raise ValueError(f"hidden_layer_sizes={given!r} must be positive integers, one per layer, such as (32,)")
    return sizes


def log_epoch(done: int, epochs: int, history: dict[str, list[float]], lines: int = 10) -> None:
    """One line on stderr, about `lines` times per fit."""
    if done % max(1, epochs // lines) == 0 or done == epochs:
        numbers = "  ".join(f"{name.replace('_', ' ')} {values[-1]:.4f}" for name, values in history.items())
        sys.stderr.write(f"[nn] epoch {done}/{epochs}  {numbers}\n")
