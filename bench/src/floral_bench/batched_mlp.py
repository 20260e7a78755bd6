"""Many small networks trained at once: min_theta mean BCE(y, f_theta(x)), and its PGD version on perturbed inputs.

R networks of one shape (other seeds, labels, rows) are one stack of parameters; `torch.func.vmap` of `torch.func.grad`
takes the gradient of all of them in one call. Every network draws its weights, batches and perturbations from a
generator of its own, so that it ends the same alone and in any stack (up to the rounding of batched products).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.func import grad, vmap

from floral_learn.paper.network import MLPSettings, initial_parameters

Parameters = dict[str, torch.Tensor]  # each with the networks as first axis


@dataclass(frozen=True)
class NetworkSettings(MLPSettings):
    """Settings of a network, and of the moved inputs of NN-PGD.

    From the paper: an L-infinity ball of 8/255 with steps of 2/255; ours: 7 steps from a random start in the ball.
    """

    epsilon: float = 0.0  # radius of the perturbations; 0 is the plain network
    step: float = 2 / 255
    inner_steps: int = 7
    clip: tuple[float, float] | None = None  # range of valid inputs, such as (0, 1) for pixels


@dataclass(frozen=True)
class BatchedMLP:
    """R trained networks."""

    parameters: Parameters
    logits: np.ndarray  # (epochs, R, m) on the test rows, after each epoch
    kept: dict[int, Parameters] = field(default_factory=dict)  # parameters after the epochs that were asked for

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Logits of rows X (R, m, d), each network on its own rows; (R, m)."""
        device = self.parameters["weight0"].device
        with torch.no_grad():
            return _all(self.parameters, torch.tensor(X, dtype=torch.float32, device=device)).cpu().numpy()

    def features(self, X: np.ndarray, epoch: int | None = None) -> np.ndarray:
        """What goes into the last layer for rows X (R, m, d), after a kept epoch or at the end; (R, m, width)."""
        parameters = self.parameters if epoch is None else self.kept[epoch]
        device = parameters["weight0"].device
        with torch.no_grad():
            return _all_features(parameters, torch.tensor(X, dtype=torch.float32, device=device)).cpu().numpy()


def train_mlps(
    X: np.ndarray,
    y: np.ndarray,
    X_test: np.ndarray,
    seeds: list[int],
    settings: NetworkSettings = NetworkSettings(),
    *,
    keep: Collection[int] = (),
    device: str | None = None,
) -> BatchedMLP:
    """Train R networks on rows X (R, n, d) with labels y (R, n) in [0, 1]; test rows X_test (R, m, d).

    Labels between 0 and 1 are soft ones. `keep` names epochs (from 1) whose parameters are kept.
    """
    place = torch.device(device or "cpu")
    rows, labels, test = (torch.as_tensor(a, dtype=torch.float32, device=place) for a in (X, y, X_test))
    models, n, width = rows.shape
    streams = [torch.Generator().manual_seed(int(seed)) for seed in seeds]
    parameters = initial_parameters((width, *settings.hidden, 1), streams, place)
    velocity = {name: torch.zeros_like(value) for name, value in parameters.items()}
    logits = np.empty((settings.epochs, models, test.shape[1]), dtype=np.float32)
    kept: dict[int, Parameters] = {}
    everyone = torch.arange(models, device=place)[:, None]
    for epoch in range(settings.epochs):
        order = torch.stack([torch.randperm(n, generator=stream) for stream in streams]).to(place)
        for start in range(0, n, settings.batch_size):
            picks = order[:, start : start + settings.batch_size]
            batch, target = rows[everyone, picks], labels[everyone, picks]
            if settings.epsilon > 0:
                batch = _perturbed(parameters, batch, target, settings, streams)
            gradients = _parameter_gradients(parameters, batch, target)
            for name, value in parameters.items():
                velocity[name] = settings.momentum * velocity[name] + gradients[name]
                parameters[name] = value - settings.learning_rate * velocity[name]
        with torch.no_grad():
            logits[epoch] = _all(parameters, test).cpu().numpy()
        if epoch + 1 in keep:
            kept[epoch + 1] = dict(parameters)  # steps make new tensors: these stay as they are
    return BatchedMLP(parameters, logits, kept)


def _features(parameters: Parameters, x: torch.Tensor) -> torch.Tensor:
    """What goes into the last layer of one network for rows x (m, d)."""
    for layer in range(len(parameters) // 2 - 1):
        x = torch.relu(x @ parameters[f"weight{layer}"] + parameters[f"bias{layer}"])
    return x


def _forward(parameters: Parameters, x: torch.Tensor) -> torch.Tensor:
    """Logits (m,) of one network for rows x (m, d)."""
    last = len(parameters) // 2 - 1
    return (_features(parameters, x) @ parameters[f"weight{last}"] + parameters[f"bias{last}"]).squeeze(-1)


def _loss(parameters: Parameters, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.binary_cross_entropy_with_logits(_forward(parameters, x), target)


_all: Any = vmap(_forward)
_all_features: Any = vmap(_features)
_parameter_gradients: Any = vmap(grad(_loss))
_input_gradients: Any = vmap(grad(_loss, argnums=1))


def _perturbed(
    parameters: Parameters, batch: torch.Tensor, target: torch.Tensor, settings: NetworkSettings, streams: list[Any]
) -> torch.Tensor:
    """Inputs within epsilon of `batch` that raise the loss: sign steps from a random start, projected onto the ball."""
    start = torch.stack([torch.rand(batch.shape[1:], generator=stream) for stream in streams]).to(batch.device)
    away = (2 * start - 1) * settings.epsilon
    for _ in range(settings.inner_steps):
        moved = _valid(batch + away, settings)
        moved = moved + settings.step * _input_gradients(parameters, moved, target).sign()
        away = (moved - batch).clamp(-settings.epsilon, settings.epsilon)
    return _valid(batch + away, settings)


def _valid(x: torch.Tensor, settings: NetworkSettings) -> torch.Tensor:
    """`x` in the range of valid inputs."""
    return x if settings.clip is None else x.clamp(*settings.clip)
