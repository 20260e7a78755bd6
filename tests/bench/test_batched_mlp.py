"""A stack of networks trains each of them as if it were alone."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_moons

torch = pytest.importorskip("torch")

from floral_bench import batched_mlp  # noqa: E402
from floral_bench.batched_mlp import NetworkSettings, train_mlps  # noqa: E402

SHORT = NetworkSettings(hidden=(8, 4), epochs=3)


def problem(networks=3, n=70):
    sets = [make_moons(2 * n, noise=0.2, random_state=seed) for seed in range(networks)]
    X = np.stack([X for X, _ in sets]).astype(np.float32)
    y = np.stack([y for _, y in sets])
    return X[:, :n], y[:, :n], X[:, n:], y[:, n:]


@pytest.mark.parametrize("epsilon", [0.0, 0.1], ids=["nn", "nn-pgd"])
def test_a_network_ends_the_same_alone_and_in_a_stack(epsilon):
    X, y, test, _ = problem()
    settings = replace(SHORT, epsilon=epsilon)
    together = train_mlps(X, y, test, [5, 6, 7], settings)
    for j, seed in enumerate([5, 6, 7]):
        alone = train_mlps(X[j : j + 1], y[j : j + 1], test[j : j + 1], [seed], settings)
        np.testing.assert_allclose(alone.logits[:, 0], together.logits[:, j], atol=2e-4)


def moved(network, batch, target, settings, stream):
    """Seven sign steps from a random start, each projected onto the ball."""
    away = (2 * torch.rand(batch.shape, generator=stream) - 1) * settings.epsilon
    for _ in range(7):
        at = (batch + away).requires_grad_()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(network(at)[:, 0], target)
        (slope,) = torch.autograd.grad(loss, at)
        away = (at + 2 / 255 * slope.sign() - batch).clamp(-settings.epsilon, settings.epsilon).detach()
    return batch + away


@pytest.mark.parametrize("epsilon", [0.0, 8 / 255], ids=["nn", "nn-pgd"])
def test_training_is_plain_torch_sgd_with_momentum(epsilon):
    X, y, test, _ = problem(1)
    settings = replace(SHORT, epsilon=epsilon)
    ours = train_mlps(X, y, test, [3], settings)
    stream = torch.Generator().manual_seed(3)
    start = batched_mlp.initial_parameters((2, 8, 4, 1), [stream], torch.device("cpu"))
    layers = []
    for layer in range(3):
        linear = torch.nn.Linear(*start[f"weight{layer}"].shape[1:])
        linear.weight.data = start[f"weight{layer}"][0].T.clone()
        linear.bias.data = start[f"bias{layer}"][0].clone()
        layers += [linear, torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers[:-1])
    optimiser = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    rows, labels = torch.tensor(X[0]), torch.tensor(y[0], dtype=torch.float32)
    for _ in range(SHORT.epochs):
        order = torch.randperm(len(rows), generator=stream)
        for first in range(0, len(rows), 32):
            batch, target = rows[order[first : first + 32]], labels[order[first : first + 32]]
            if epsilon:
                batch = moved(network, batch, target, settings, stream)
            optimiser.zero_grad()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(network(batch)[:, 0], target)
            loss.backward()
            optimiser.step()
    expected = network(torch.tensor(test[0]))[:, 0].detach().numpy()
    np.testing.assert_allclose(ours.logits[-1, 0], expected, atol=1e-4)


def test_features_of_a_kept_epoch_are_those_of_a_shorter_training():
    X, y, test, _ = problem(2)
    long = train_mlps(X, y, test, [1, 2], replace(SHORT, epochs=4), keep=(2, 4))
    short = train_mlps(X, y, test, [1, 2], replace(SHORT, epochs=2))
    assert sorted(long.kept) == [2, 4]
    np.testing.assert_array_equal(long.features(test, 2), short.features(test))
    np.testing.assert_array_equal(long.features(test, 4), long.features(test))
    last = {name: long.parameters[f"{name}2"].numpy() for name in ("weight", "bias")}
    expected = (long.features(test) @ last["weight"])[:, :, 0] + last["bias"]
    np.testing.assert_allclose(long.logits[-1], expected, atol=1e-5)
