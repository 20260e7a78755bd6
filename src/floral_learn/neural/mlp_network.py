"""Multi-layer perceptrons and what is read off any trained module: logits, input gradients, where it runs."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from floral_learn.game.arrays import backend_for
from floral_learn.neural.batched_mlp import initial_parameters

_ROWS = 4096  # rows of a forward pass while predicting
_SMALL = 2**18  # parameters of a network that one thread trains fastest


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


def build_mlp(widths: Sequence[int], stream: torch.Generator) -> MLP:
    """An `MLP` with weights drawn as `batched_mlp` draws them: uniform within 1 / sqrt(fan-in)."""
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


def place_of(module: torch.nn.Module) -> tuple[torch.device, torch.dtype]:
    """Where a module's parameters lie and their type; the CPU and 32-bit floats where it has none."""
    first = next((p for p in module.parameters() if p.is_floating_point()), None)
    return (torch.device("cpu"), torch.float32) if first is None else (first.device, first.dtype)


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode for the time of a block, then whatever every part was in before."""
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in before:
            part.training = mode


@contextmanager
def threads_for(module: torch.nn.Module) -> Iterator[None]:
    """One thread for a small network on the CPU: more gain nothing there, and on a busy machine wait for each other."""
    before = torch.get_num_threads()
    small = place_of(module)[0].type == "cpu" and sum(p.numel() for p in module.parameters()) < _SMALL
    torch.set_num_threads(1 if small else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def batches_of(X: Any, size: int, device: torch.device, dtype: torch.dtype) -> Iterator[torch.Tensor]:
    """Rows of X as tensors, `size` at a time."""
    for start in range(0, len(X), size):
        yield torch.tensor(X[start : start + size], dtype=dtype, device=device)


def in_64_bits(module: torch.nn.Module) -> torch.nn.Module:
    """A copy that computes in 64-bit floats."""
    return copy.deepcopy(module).double()


def logits(module: torch.nn.Module, X: np.ndarray, batch_size: int = _ROWS) -> np.ndarray:
    """What `module` gives for rows X, computed in 64 bits so that a row scores the same alone and in any batch."""
    exact = in_64_bits(module).eval()
    device, dtype = place_of(exact)
    with torch.no_grad():
        return np.concatenate([exact(rows).cpu().numpy() for rows in batches_of(X, batch_size, device, dtype)])


def soft_loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross entropy (n,) of class probabilities `target` (n, M); one logit is the log-odds of class 1."""
    if output.ndim == 1 or output.shape[1] == 1:
        odds = output.reshape(-1)
        return torch.nn.functional.binary_cross_entropy_with_logits(odds, target[:, 1], reduction="none")
    return torch.nn.functional.cross_entropy(output, target, reduction="none")


def class_columns(output: torch.Tensor) -> torch.Tensor:
    """Logits (n, M); a single log-odds column f becomes (0, f)."""
    if output.ndim == 1 or output.shape[1] == 1:
        odds = output.reshape(-1, 1)
        return torch.cat([torch.zeros_like(odds), odds], dim=1)
    return output


def input_gradient_norms(
    module: torch.nn.Module, X: np.ndarray, codes: np.ndarray, n_classes: int, batch_size: int = 256
) -> tuple[np.ndarray, np.ndarray]:
    """|d loss_i / d x_i| (n,) and logits (n, M) at rows X with labels `codes`; the module stays as it was."""
    device, dtype = place_of(module)
    target = np.eye(n_classes)[codes]
    norms, scores = [], []
    with evaluating(module):
        for start, rows in enumerate(batches_of(X, batch_size, device, dtype)):
            rows.requires_grad_()
            wanted = torch.tensor(target[start * batch_size :][: len(rows)], dtype=dtype, device=device)
            with torch.enable_grad():
                output = module(rows)
                # Rows do not see each other in evaluation mode: the gradient of the sum is every row's own.
                (gradient,) = torch.autograd.grad(soft_loss(output, wanted).sum(), rows)
            norms.append(gradient.flatten(1).norm(dim=1).double().cpu().numpy())
            scores.append(class_columns(output).detach().double().cpu().numpy())
    return np.concatenate(norms), np.concatenate(scores)
