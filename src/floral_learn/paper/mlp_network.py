"""Multi-layer perceptrons, and any trained module in batches: where it runs, in which mode, its loss and classes."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch

from floral_learn.game.arrays import backend_for

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
