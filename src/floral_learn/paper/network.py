"""Networks: build a perceptron, run any trained module in batches, train one by SGD on class probabilities.

Training is min_theta mean_i w_i CE(t_i, f_theta(x_i)). Targets t_i are one-hot for given labels, soft for sanitised
ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from sklearn.utils._param_validation import Interval

from floral_learn.attacks.gradient import class_columns, place_of
from floral_learn.game.arrays import backend_for

History = dict[str, list[float]]
# Module, rows of a batch and their targets -> rows to train on in their place.
Perturb = Callable[[torch.nn.Module, torch.Tensor, torch.Tensor], torch.Tensor]

_POSITIVE = Interval(Real, 0.0, None, closed="neither")
_COUNT = Interval(Integral, 1, None, closed="left")
#: Parameters that every network here has in common, with the allowed values.
TRAINING_CONSTRAINTS: dict[str, Any] = {
    "hidden_layer_sizes": [tuple, list],
    "epochs": [_COUNT],
    "learning_rate": [_POSITIVE],
    "momentum": [Interval(Real, 0.0, 1.0, closed="left")],
    "batch_size": [_COUNT],
    "device": [str, None],
    "random_state": ["random_state", np.random.Generator],
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


@dataclass(frozen=True)
class Rows:
    """Rows (n, ...), class probabilities (n, M) and weights (n,) or None."""

    X: np.ndarray
    target: np.ndarray
    weight: np.ndarray | None = None


def torch_device(device: str | None) -> torch.device:
    """The torch device behind a `device` parameter; one that is not there is a ValueError."""
    return backend_for(device or "cpu").device


class MLP(torch.nn.Sequential):
    """Linear layers of the given widths with ReLU between them, weights still to be set."""

    def __init__(self, widths: Sequence[int]) -> None:
        layers: list[torch.nn.Module] = []
        for fan_in, fan_out in pairwise(widths):
            # skip_init: torch would draw weights from its global generator, which is not ours to move.
            layers += [torch.nn.utils.skip_init(torch.nn.Linear, fan_in, fan_out), torch.nn.ReLU()]
        super().__init__(*layers[:-1])
        self.widths = tuple(int(width) for width in widths)


def initial_parameters(
    widths: tuple[int, ...], streams: list[torch.Generator], place: torch.device
) -> dict[str, torch.Tensor]:
    """PyTorch's default for linear layers, uniform within 1 / sqrt(fan-in); one stream per network, the first axis."""
    parameters: dict[str, torch.Tensor] = {}
    for layer, (fan_in, fan_out) in enumerate(pairwise(widths)):
        bound = fan_in**-0.5
        for name, shape in ((f"weight{layer}", (fan_in, fan_out)), (f"bias{layer}", (fan_out,))):
            draws = [(2 * torch.rand(shape, generator=stream) - 1) * bound for stream in streams]
            parameters[name] = torch.stack(draws).to(place)
    return parameters


def build_mlp(widths: Sequence[int], stream: torch.Generator) -> MLP:
    """An `MLP` with weights drawn by `initial_parameters`."""
    module = MLP(widths)
    start = initial_parameters(module.widths, [stream], torch.device("cpu"))
    with torch.no_grad():
        for number, layer in enumerate(part for part in module if isinstance(part, torch.nn.Linear)):
            layer.weight.copy_(start[f"weight{number}"][0].T)
            layer.bias.copy_(start[f"bias{number}"][0])
    return module


def packed(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a fitted estimator with an `MLP` as ``module_`` in plain arrays: a model file needs no pickle."""
    module = state.get("module_")
    if not isinstance(module, MLP):
        return state
    arrays = {name: value.detach().cpu().numpy().copy() for name, value in module.state_dict().items()}
    rest = {name: value for name, value in state.items() if name != "module_"}
    return {**rest, "_network": {"widths": list(module.widths), "arrays": arrays}}


def unpacked(state: dict[str, Any]) -> dict[str, Any]:
    """The state behind `packed`, its network on the CPU."""
    if "_network" not in state:
        return state
    kept = state["_network"]
    module = MLP(kept["widths"])
    module.load_state_dict({name: torch.tensor(value) for name, value in kept["arrays"].items()})
    rest = {name: value for name, value in state.items() if name != "_network"}
    return {**rest, "module_": module.eval()}


def batches_of(X: Any, size: int, device: torch.device, dtype: torch.dtype) -> Iterator[torch.Tensor]:
    """Rows of X as tensors, `size` at a time."""
    for start in range(0, len(X), size):
        yield torch.tensor(X[start : start + size], dtype=dtype, device=device)


def mean_loss(output: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
    """Mean cross entropy of class probabilities `target` (n, M), by `weight`; one logit is the log-odds of class 1."""
    functional = torch.nn.functional
    if output.ndim == 1 or output.shape[1] == 1:
        odds = output.reshape(-1)
        each = functional.binary_cross_entropy_with_logits(odds, target[:, 1], reduction="none")
    else:
        each = functional.cross_entropy(output, target, reduction="none")
    return each.mean() if weight is None else (weight * each).mean()


def train(
    module: torch.nn.Module,
    rows: Rows,
    settings: MLPSettings,
    stream: torch.Generator,
    perturb: Perturb | None = None,
) -> History:
    """Train `module` in place and return what happened in each epoch.

    Batches and perturbations come from `stream`; layers with randomness of their own (dropout) from torch's generator,
    which is seeded from `stream` for the time of the training and left as it was. Weights have mean 1.
    """
    device, dtype = place_of(module)
    X, target = (torch.tensor(a, dtype=dtype, device=device) for a in (rows.X, rows.target))
    weight = None if rows.weight is None else torch.tensor(rows.weight, dtype=dtype, device=device)
    optimiser = torch.optim.SGD(module.parameters(), lr=settings.learning_rate, momentum=settings.momentum)
    joined = any(isinstance(part, torch.nn.modules.batchnorm._BatchNorm) for part in module.modules())
    history: History = {"loss": [], "accuracy": []}
    with _own_randomness(stream, device), _training(module):
        for _ in range(settings.epochs):
            losses, hits = 0.0, 0
            for picks in _batches(len(X), settings.batch_size, stream, joined):
                batch, wanted = X[picks], target[picks]
                if perturb is not None:
                    batch = perturb(module, batch, wanted)
                output = module(batch)
                loss = mean_loss(output, wanted, None if weight is None else weight[picks])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                losses += float(loss.detach()) * len(picks)
                hits += int((class_columns(output.detach()).argmax(1) == wanted.argmax(1)).sum())
            history["loss"].append(losses / len(X))
            history["accuracy"].append(hits / len(X))
            if not np.isfinite(losses):
                raise ValueError(
                    f"the loss is {losses} after epoch {len(history['loss'])}: scale X or lower "
                    f"learning_rate={settings.learning_rate!r}"
                )
    return history


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


def hidden_sizes(given: Any) -> tuple[int, ...]:
    """Widths of the hidden layers; a ValueError where they are none."""
    sizes = tuple(given)
    if not sizes or any(not isinstance(size, Integral) or size < 1 for size in sizes):
        raise ValueError(f"hidden_layer_sizes={given!r} must be positive integers, one per layer, such as (32,)")
    return sizes
