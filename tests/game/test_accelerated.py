"""Games without an attacker: the accelerated solver ends where libsvm ends."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from floral_learn.game import NUMPY, DenseGram, Game, Kernel, solve, step_schedule
from floral_learn.game.accelerated import minimise

X, Y = make_moons(120, noise=0.2, random_state=0)
KERNEL = Kernel("rbf", gamma=1.0)


def problem(backend=NUMPY, labels=Y, C=2.0, rounds=20_000, **more):
    gram = DenseGram.from_rows(X, KERNEL, "float64", backend)
    weight = None if "weight" not in more else backend.columns(more["weight"])
    eta = 1 / gram.lambda_max(200, 1e-8, centred=True, weight=weight)
    return Game(gram, labels, np.broadcast_to(C, len(X)), step_schedule(eta, rounds), **more)


def test_every_column_is_libsvm(backend):
    rng = np.random.default_rng(0)
    labels = np.where(rng.random((120, 5)) < 0.15, 1 - Y[:, None], Y[:, None])
    found = minimise(problem(backend, labels), tol=1e-4)
    assert found.state.settled
    assert found.residual.max() <= 1e-4
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    for j in range(5):
        svc = SVC(kernel="precomputed", C=2.0, tol=1e-6).fit(K, labels[:, j])
        values = K @ found.weights[:, j] + found.bias[j]
        np.testing.assert_allclose(values, svc.decision_function(K), atol=5e-3)
        assert found.weights[:, j].sum() == pytest.approx(0, abs=1e-9)


def test_sample_weights_are_caps_and_a_metric():
    weight = np.random.default_rng(1).uniform(0.2, 3, size=120)
    found = minimise(problem(C=1.5 * weight, weight=weight), tol=1e-5)
    svc = SVC(C=1.5, gamma=1.0, tol=1e-7).fit(X, Y, sample_weight=weight)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    np.testing.assert_allclose(K @ found.weights[:, 0] + found.bias[0], svc.decision_function(X), atol=1e-3)


def test_it_takes_far_fewer_rounds_than_plain_steps():
    plain = solve(problem(rounds=3000)).history["residual"][:, 0]
    found = minimise(problem(rounds=3000), tol=float(plain[-1]))
    assert found.state.round < 1000


def test_it_says_when_the_rounds_were_too_few():
    found = minimise(problem(rounds=5), tol=1e-6)
    assert not found.state.settled
    assert found.residual[0] > 1e-6
