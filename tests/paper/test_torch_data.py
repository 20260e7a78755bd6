"""A Dataset or DataLoader as X, and images through an encoder of one's own."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset  # noqa: E402

from floral_bench.mlp import NeuralNetClassifier  # noqa: E402
from floral_learn.paper import (  # noqa: E402
    FloralHead,
    NeuralFloralClassifier,
    layer_features,
)
from floral_learn.paper.torch_data import read_torch_data  # noqa: E402

X, Y = make_moons(60, noise=0.2, random_state=0)
X = X.astype(np.float32)


class Items(Dataset):
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, number):
        return self.items[number]


class Stream(IterableDataset):
    def __iter__(self):
        yield from zip(X, Y, strict=True)


def conv(channels=3):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return torch.nn.Sequential(
            torch.nn.Conv2d(channels, 6, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten()
        )


def pairs():
    return TensorDataset(torch.tensor(X), torch.tensor(Y))


@pytest.mark.parametrize(
    "make",
    [
        lambda: NeuralNetClassifier((4,), epochs=2, random_state=0),
        lambda: FloralHead(torch.nn.Linear(2, 2), head={"n_rounds": 5}, random_state=0),
        lambda: NeuralFloralClassifier(hidden_layer_sizes=(4,), epochs=2, head={"n_rounds": 5}, random_state=0),
    ],
)
@pytest.mark.parametrize(
    "data",
    [
        pairs,
        lambda: DataLoader(pairs(), batch_size=7, shuffle=True),
        lambda: Stream(),
        lambda: Items([{"x": x, "label": int(y)} for x, y in zip(X, Y, strict=True)]),
    ],
    ids=["dataset", "shuffled loader", "stream", "dicts"],
)
def test_a_data_set_is_fitted_and_read_as_its_arrays(make, data):
    torch.manual_seed(0)
    by_arrays = make()
    given = make()
    if isinstance(given, FloralHead):
        given.module = by_arrays.module
    by_arrays.fit(X, Y)
    given.fit(data())
    np.testing.assert_array_equal(given.decision_function(X), by_arrays.decision_function(X))
    np.testing.assert_array_equal(given.predict(data()), by_arrays.predict(X))


def test_labels_of_ones_own_count_before_those_of_the_data_set():
    other = np.where(np.arange(60) % 5 == 0, 1 - Y, Y)
    model, expected = (NeuralNetClassifier((4,), epochs=2, random_state=0) for _ in range(2))
    np.testing.assert_array_equal(
        model.fit(pairs(), other).decision_function(X), expected.fit(X, other).decision_function(X)
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (TensorDataset(torch.tensor(X)), "hold no labels"),
        (Items([]), "without items"),
        (Items([(1, 2, 3)]), "item 0 of X has 3 parts"),
        (Items([{"colour": 1}]), r"item 0 of X has the keys \['colour'\]; one of"),
        (Items([(X[0], 1), X[1]]), "some items of X have labels"),
        (Items([(X[0], 1), (X[0, :1], 0)]), "different shapes"),
        (Items([(object(), 1)]), "tensors, arrays or texts are expected"),
        (Items([(X[0], np.ones(2))]), "one label per row"),
    ],
)
def test_data_sets_that_cannot_be_read_say_what_to_pass(data, message):
    with pytest.raises(ValueError, match=message):
        NeuralNetClassifier(epochs=1).fit(data)


def test_a_data_set_without_a_length_is_refused():
    class Endless(Dataset):
        def __getitem__(self, number):
            return X[0], 0

    with pytest.raises(ValueError, match="without __len__"):
        read_torch_data(Endless())


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_images_go_through_an_encoder_without_a_linear_layer(dtype):
    images = np.random.default_rng(0).integers(0, 255, size=(20, 3, 8, 8)).astype(dtype)
    labels = np.arange(20) % 2
    encoder = conv()
    head = FloralHead(encoder, "output", head={"n_rounds": 5}, random_state=0).fit(images, labels)
    expected = encoder(torch.tensor(images, dtype=torch.float32)).detach().numpy()
    np.testing.assert_allclose(head.transform(images), expected, rtol=1e-5)
    np.testing.assert_allclose(
        layer_features(encoder, TensorDataset(torch.tensor(images)), "output"), expected, rtol=1e-5
    )
    with pytest.raises(ValueError, match=r'no Linear layer.*layer="output"'):
        FloralHead(encoder).fit(images, labels)


def test_channels_last_are_refused_with_the_way_out():
    images = np.zeros((10, 8, 8, 3))
    with pytest.raises(ValueError, match=r"rows of shape \(8, 8, 3\) \(torch wants channels first: X.transpose"):
        FloralHead(conv(), "output").fit(images, np.arange(10) % 2)


def test_a_network_on_images_is_trained_as_a_copy():
    images = np.random.default_rng(0).normal(size=(24, 1, 8, 8)).astype(np.float32)
    labels = (images.mean((1, 2, 3)) > 0).astype(int)
    module = torch.nn.Sequential(*conv(1), torch.nn.Linear(24, 2))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    model = NeuralFloralClassifier(module, epochs=2, head={"n_rounds": 5}, random_state=0)
    first, second = (
        model.fit(images, labels),
        NeuralFloralClassifier(module, epochs=3, random_state=0).fit(images, labels),
    )
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert not torch.equal(first.module_[0].weight, second.module_[0].weight)
