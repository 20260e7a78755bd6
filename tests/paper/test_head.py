"""FLORAL on the features of a trained network: the features are the network's, the head is FloralClassifier's."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from refusals import refuses
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

torch = pytest.importorskip("torch")

from floral_bench.mlp import NeuralNetClassifier  # noqa: E402
from floral_learn import FloralClassifier, load, save  # noqa: E402
from floral_learn.paper import FloralHead, layer_features  # noqa: E402

X, Y = make_moons(120, noise=0.2, random_state=0)
UNTRUSTED = np.where(np.arange(120) % 10 == 0, 1 - Y, Y)


class AnyWidth(torch.nn.Module):
    """A network for rows of any width, as the estimator checks bring them: random waves of the row."""

    def __init__(self):
        super().__init__()
        self.waves = torch.nn.Identity()
        self.last = torch.nn.Linear(16, 1, dtype=torch.float64)

    def forward(self, rows):
        turns = torch.sin(torch.arange(rows.shape[1] * 16, dtype=rows.dtype).reshape(rows.shape[1], 16) ** 2)
        return self.last(self.waves(torch.cat([torch.cos(rows @ turns), rows.mean(1, keepdim=True)], 1)[:, -16:]))


class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = torch.nn.LSTM(2, 5, batch_first=True)
        self.unused = torch.nn.Linear(2, 2)
        self.drop = torch.nn.Dropout(0.5)
        self.images = torch.nn.Conv1d(2, 3, 1)

    def forward(self, rows):
        output, _ = self.pair(self.drop(rows)[:, None])
        return self.images(rows[:, :, None]).sum((1, 2)) + output.sum((1, 2))


def network(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(16, 8), torch.nn.ReLU(),
            torch.nn.Linear(8, 1),
        )  # fmt: skip


# Our own test below holds the network's parameters, hooks and modes against a copy from before.
EXPLAINED = {"check_estimators_overwrite_params": "joblib hashes where a tensor lies, so that a copy already differs"}


@parametrize_with_checks(
    [FloralHead(AnyWidth(), head={"n_rounds": 10})], expected_failed_checks=lambda estimator: EXPLAINED
)
def test_sklearn_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [FloralHead(AnyWidth(), "waves", head=FloralClassifier(budget=0))],
    expected_failed_checks=lambda estimator: EXPLAINED,
)
def test_sklearn_estimator_checks_of_a_named_layer_and_a_given_head(estimator, check):
    check(estimator)


def test_the_default_features_go_into_the_last_linear_layer():
    module = network().train()
    expected = module[:-1].eval()(torch.tensor(X, dtype=torch.float32)).detach().numpy()
    module.train()
    module[0].eval()
    head = FloralHead(module, random_state=0, batch_size=7).fit(X, UNTRUSTED)
    np.testing.assert_allclose(head.transform(X), expected, atol=1e-6)
    # the network is left as it was: parameters, hooks, and the mode of each of its parts
    assert [part.training for part in module] == [False, True, True, True, True, True]
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    for before, after in zip(network().parameters(), module.parameters(), strict=True):
        assert torch.equal(before, after)


def test_the_head_is_floral_on_these_features():
    module = network()
    head = FloralHead(module, head={"budget": 0.1, "gamma": 2.0}, random_state=3).fit(X, UNTRUSTED)
    alone = FloralClassifier(budget=0.1, gamma=2.0, random_state=head.head_.random_state)
    alone.fit(layer_features(module, X), UNTRUSTED)
    np.testing.assert_allclose(head.decision_function(X), alone.decision_function(layer_features(module, X)))
    np.testing.assert_array_equal(head.head_.flip_rate_, alone.flip_rate_)
    assert head.label_issues().equals(alone.label_issues())
    again = FloralHead(module, head=FloralClassifier(budget=0.1, gamma=2.0), random_state=3).fit(X, UNTRUSTED)
    np.testing.assert_array_equal(again.decision_function(X), head.decision_function(X))


def test_a_layer_is_chosen_by_name():
    module = network()
    rows = torch.tensor(X, dtype=torch.float32)
    expected = module[:2](rows).detach().numpy()
    np.testing.assert_allclose(FloralHead(module, "1").fit(X, Y).transform(X), expected, atol=1e-6)


def test_layers_with_several_outputs_and_axes_are_flattened():
    module = Branches().eval()
    assert layer_features(module, X, "pair").shape == (120, 5)
    assert layer_features(module, X, "images").shape == (120, 3)
    sequence = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2))
    images = np.random.default_rng(0).random((30, 3, 4))
    head = FloralHead(sequence).fit(images, np.arange(30) % 2)
    np.testing.assert_allclose(head.transform(images), images.reshape(30, 12), atol=1e-6)
    assert set(head.predict(images)) <= {0, 1}


def test_several_classes_and_names():
    P, codes = make_blobs(150, centers=3, random_state=0)
    names = np.array(["a", "b", "c"])[codes]
    nn = NeuralNetClassifier((8,), epochs=30, random_state=0).fit(P / 10, names)
    head = FloralHead(nn.module_, random_state=0).fit(P / 10, names)
    assert head.classes_.tolist() == ["a", "b", "c"]
    assert head.score(P / 10, names) >= nn.score(P / 10, names) - 0.03
    assert set(head.label_issues()["given"]) == {"a", "b", "c"}


def test_trusted_labels_and_weights_reach_the_head():
    trusted = np.arange(120) < 60
    head = FloralHead(network(), head={"budget": 0.5}, random_state=0).fit(X, UNTRUSTED, trusted=trusted)
    assert head.head_.flip_rate_[:60].max() == 0 < head.head_.flip_rate_[60:].max()
    weight = np.where(np.arange(120) < 20, 0.0, 1.0)
    head.fit(X, UNTRUSTED, sample_weight=weight)
    assert head.head_.support_.min() >= 20


def test_any_classifier_may_be_the_head():
    head = FloralHead(network(), head=LogisticRegression()).fit(X, Y)
    features = layer_features(network(), X)
    np.testing.assert_array_equal(head.predict(X), LogisticRegression().fit(features, Y).predict(features))
    assert not hasattr(head, "label_issues")
    assert hasattr(FloralHead(network()), "label_issues")


def test_clones_share_the_network_which_no_fit_changes():
    module = network()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    head = FloralHead(module, head={"n_rounds": 10}, random_state=0)
    copies = [clone(head), clone(clone(head).fit(X, Y)).set_params(head={"n_rounds": 20})]
    assert all(copy.module is module for copy in copies)
    first, second = (copy.fit(X, UNTRUSTED).decision_function(X) for copy in copies)
    assert not np.allclose(first, second)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_threads_that_share_a_network_read_their_own_features():
    module, rows = network(), [X * scale for scale in (1.0, 2.0, 3.0, 4.0)]
    expected = [layer_features(module, part, batch_size=2) for part in rows]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda part: layer_features(module, part, batch_size=2), rows))
    for given, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(given, wanted)


def test_the_head_goes_through_a_file_and_the_network_does_not(tmp_path):
    module = network()
    head = FloralHead(module, random_state=0).fit(X, Y)
    refuses("cannot hold", save, head, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())
    save(head.head_, tmp_path / "head.skops")
    back = load(tmp_path / "head.skops")
    np.testing.assert_array_equal(back.predict(layer_features(module, X)), head.predict(X))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_network_on_cuda_stays_there():
    module = network().cuda()
    head = FloralHead(module, random_state=0).fit(X, UNTRUSTED)
    assert module[0].weight.is_cuda
    np.testing.assert_allclose(head.transform(X), layer_features(module.cpu(), X), atol=1e-4)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"module": "bert"}, "'module' parameter of FloralHead"),
        ({"module": torch.nn.ReLU()}, "has no Linear layer"),
        ({"layer": "9"}, "layer='9' is not a layer of the module; it has: 0, 1, 2, 3, 4, 5"),
        ({"layer": ""}, "layer='' is not a layer"),
        ({"head": {"budgte": 1}}, "'budgte' is not a parameter of FloralClassifier"),
        ({"head": {"budget": 500}}, "budget=500"),
        ({"head": "svm"}, "'head' parameter of FloralHead"),
        ({"batch_size": 0}, "'batch_size' parameter of FloralHead"),
        ({"module": Branches(), "layer": "unused"}, "layer='unused' takes no part in the forward pass"),
    ],
)
def test_a_wrong_parameter_is_named(params, message):
    refuses(message, FloralHead(**{"module": network(), **params}).fit, X, Y)


def test_bad_rows_and_labels_are_named_before_the_game(monkeypatch):
    monkeypatch.setattr(FloralClassifier, "fit", lambda *a, **k: pytest.fail("the game began"))
    with pytest.raises(ValueError, match=r"the module does not take rows of shape \(5,\): mat1 and mat2"):
        FloralHead(network()).fit(np.zeros((10, 5)), np.arange(10) % 2)
    refuses("inconsistent numbers of samples", FloralHead(network()).fit, X, Y[:-1])
    refuses("NaN", FloralHead(network()).fit, np.where(X > 1, np.nan, X), Y)


class Backwards(torch.nn.Module):
    """The last layer is defined first."""

    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(4, 2)
        self.body = torch.nn.Linear(2, 4)

    def forward(self, rows):
        return self.out(torch.relu(self.body(rows)))


def test_the_last_linear_layer_is_the_last_one_called_not_the_last_one_defined():
    module = Backwards()
    X = np.random.default_rng(0).normal(size=(10, 2))
    expected = torch.relu(module.body(torch.as_tensor(X, dtype=torch.float32))).detach().numpy()
    np.testing.assert_allclose(layer_features(module, X), expected, atol=1e-6)


def test_what_a_head_cannot_take_is_refused_before_any_training():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.tile([0, 1], 10)
    with pytest.raises(ValueError, match="trusted= was given"):
        FloralHead(Backwards(), head=KNeighborsClassifier()).fit(X, y, trusted=np.zeros(20, bool))
