"""The network as a scikit-learn estimator: it equals the batched cells and plain torch."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons
from sklearn.preprocessing import StandardScaler

torch = pytest.importorskip("torch")

from floral_bench.batched_mlp import NetworkSettings, train_mlps  # noqa: E402
from floral_bench.mlp import NeuralNetClassifier  # noqa: E402
from floral_learn import poison  # noqa: E402
from floral_learn.attacks.gradient import module_gradients  # noqa: E402
from floral_learn.base.validation import generator  # noqa: E402

X, Y = make_moons(120, noise=0.2, random_state=0)
P, LABELS = make_blobs(150, centers=3, random_state=0)
P = StandardScaler().fit_transform(P)


def test_the_estimator_is_the_batched_cell():
    clf = NeuralNetClassifier((8, 4), epochs=3, random_state=5).fit(X[:70], Y[:70])
    settings = NetworkSettings(hidden=(8, 4), epochs=3)
    seed = int(generator(5).integers(2**31 - 1))
    cell = train_mlps(X[None, :70], Y[None, :70], X[None, 70:], [seed], settings)
    np.testing.assert_allclose(clf.decision_function(X[70:]), cell.logits[-1, 0], atol=2e-4)
    assert np.abs(cell.logits[-1, 0]).max() > 0.01


def test_several_classes_are_plain_torch_on_cross_entropy():
    clf = NeuralNetClassifier((6,), epochs=2, batch_size=40, random_state=1).fit(P, LABELS)
    stream = torch.Generator().manual_seed(int(generator(1).integers(2**31 - 1)))
    from floral_learn.paper.network import build_mlp

    network = build_mlp((2, 6, 3), stream)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    losses = []
    for _ in range(2):
        for picks in torch.randperm(150, generator=stream).split(40):
            loss = torch.nn.functional.cross_entropy(
                network(torch.tensor(P[picks], dtype=torch.float32)), torch.tensor(LABELS[picks])
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append((loss.item(), len(picks)))
    expected = network.double()(torch.tensor(P)).detach().numpy()
    np.testing.assert_allclose(clf.decision_function(P), expected, atol=1e-5)
    epoch = np.average([loss for loss, _ in losses[4:]], weights=[size for _, size in losses[4:]])
    assert clf.history_["loss"][1] == pytest.approx(epoch, rel=1e-4)


def test_a_fit_is_repeated_by_its_seed_and_leaves_torch_alone():
    torch.manual_seed(11)
    before = torch.get_rng_state()
    first, second = (NeuralNetClassifier(epochs=2, random_state=3).fit(X, Y).decision_function(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)
    assert not np.allclose(first, NeuralNetClassifier(epochs=2, random_state=4).fit(X, Y).decision_function(X))


@pytest.mark.parametrize(("rows", "labels"), [(X, Y), (P, LABELS)], ids=["two", "three"])
def test_the_gradient_attack_takes_the_estimator_as_its_module(rows, labels):
    clf = NeuralNetClassifier((8,), epochs=10, random_state=0).fit(rows, np.array(["a", "b", "c"])[labels])
    names = clf.classes_[labels]
    own = poison(rows, names, attack="gradient", budget=0.1, random_state=0, surrogate=clf)
    module = poison(rows, names, attack="gradient", budget=0.1, random_state=0, surrogate=clf.module_)
    np.testing.assert_array_equal(own.indices, module.indices)
    np.testing.assert_array_equal(own.y, module.y)
    norms, scores = clf.input_gradient_norms(rows, labels)
    expected, logits = module_gradients(clf.module_, rows, labels, len(clf.classes_), 64)
    np.testing.assert_allclose(norms, expected, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(scores, logits, atol=1e-5)
    assert set(own.indices) <= set(np.argsort(-norms)[: len(own.indices)])
