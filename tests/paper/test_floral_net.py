"""Network and head in one fit: the parts are those one would train by hand, in turns as well."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses
from sklearn.datasets import make_blobs, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from floral_learn.paper import floral_net

torch = pytest.importorskip("torch")

from floral_learn import FloralClassifier, load, poison, save  # noqa: E402
from floral_learn.paper import FloralHead, NeuralFloralClassifier  # noqa: E402
from floral_learn.paper.floral_net import sanitised  # noqa: E402
from floral_learn.paper.network import MLPSettings, Rows, train  # noqa: E402

X, Y = make_moons(120, noise=0.2, random_state=0)
UNTRUSTED = np.where(np.arange(120) % 10 == 0, 1 - Y, Y)
HEAD = {"budget": 0.2, "n_rounds": 100}


def network(outputs=1, width=2):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(width, 8), torch.nn.ReLU(), torch.nn.Linear(8, outputs))


@parametrize_with_checks(
    [NeuralFloralClassifier(epochs=8, learning_rate=0.1, head={"budget": 0.2, "n_rounds": 10}, alternations=1)],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": "batches and the attacker count rows"
    },
)
def test_sklearn_estimator_checks(estimator, check):
    check(estimator)


@given(rate=st.lists(st.floats(0, 1), min_size=1, max_size=20), classes=st.integers(2, 5), seed=st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_soft_labels_are_probabilities_between_the_given_and_the_heads_label(rate, classes, seed):
    rng = np.random.default_rng(seed)
    rate = np.array(rate)
    given, judged = rng.integers(classes, size=(2, len(rate)))
    soft = sanitised(np.eye(classes)[given], rate, judged)
    rows = np.arange(len(rate))
    np.testing.assert_allclose(soft.sum(1), 1)
    np.testing.assert_allclose(soft[rows, given], np.where(given == judged, 1, 1 - rate))
    np.testing.assert_allclose(soft[rows, judged], np.where(given == judged, 1, rate))


def test_without_turns_it_is_the_network_and_then_the_head():
    clf = NeuralFloralClassifier(network(), epochs=4, head=HEAD, random_state=1).fit(X, UNTRUSTED)
    assert clf.history_["loss"].shape == (1, 4)
    np.testing.assert_array_equal(clf.soft_labels_, np.eye(2)[UNTRUSTED])
    head = FloralHead(clf.module_, head=clf.head_).fit(X, UNTRUSTED)
    np.testing.assert_allclose(clf.decision_function(X), head.decision_function(X))
    assert clf.label_issues().equals(head.label_issues())
    assert torch.equal(network()[0].weight, network()[0].weight)
    assert not torch.equal(clf.module_[0].weight, network()[0].weight)


def test_the_given_module_is_not_touched():
    module = network()
    NeuralFloralClassifier(module, epochs=2, head=HEAD).fit(X, Y)
    for before, after in zip(network().parameters(), module.parameters(), strict=True):
        assert torch.equal(before, after)


def test_a_turn_retrains_the_network_on_the_soft_labels_of_the_first_head():
    once = NeuralFloralClassifier(network(), epochs=3, head=HEAD, random_state=1).fit(X, UNTRUSTED)
    twice = NeuralFloralClassifier(network(), epochs=3, head=HEAD, random_state=1, alternations=1).fit(X, UNTRUSTED)
    np.testing.assert_array_equal(twice.history_["loss"][0], once.history_["loss"][0])
    soft = sanitised(np.eye(2)[UNTRUSTED], once.head_.flip_rate_, once.predict(X))
    np.testing.assert_allclose(twice.soft_labels_, soft, atol=1e-6)
    assert ((soft > 0) & (soft < 1)).any()
    # by hand: the same first weights and the same batches, other labels
    stream = torch.Generator().manual_seed(int(np.random.default_rng(1).integers(2**31 - 1, size=2)[0]))
    module = network()
    train(module, Rows(X, soft.astype(np.float32)), MLPSettings(epochs=3), stream)
    for ours, expected in zip(twice.module_.parameters(), module.parameters(), strict=True):
        torch.testing.assert_close(ours, expected, atol=1e-6, rtol=1e-5)


def test_trusted_labels_stay_hard():
    trusted = np.arange(120) < 60
    clf = NeuralFloralClassifier(epochs=3, head={"budget": 0.8, "n_rounds": 50}, alternations=1, random_state=0)
    clf.fit(X, UNTRUSTED, trusted=trusted)
    np.testing.assert_array_equal(clf.soft_labels_[:60], np.eye(2)[UNTRUSTED[:60]])
    assert (clf.soft_labels_[60:].max(1) < 1).any()


def test_a_fit_is_repeated_by_its_seed_with_dropout_too():
    module = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))
    before = torch.get_rng_state()
    first, second, other = (
        NeuralFloralClassifier(module, epochs=2, head=HEAD, random_state=seed).fit(X, Y).decision_function(X)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.allclose(first, other)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_last_batch_of_one_row_does_not_stop_batch_norm():
    module = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    clf = NeuralFloralClassifier(module, epochs=1, batch_size=7, head=HEAD).fit(X[:113], Y[:113])
    assert np.isfinite(clf.decision_function(X)).all()
    assert np.isfinite(clf.history_["loss"]).all()


def test_images_and_several_classes():
    P, codes = make_blobs(90, n_features=12, centers=3, random_state=0)
    images = StandardScaler().fit_transform(P).reshape(90, 3, 4)
    module = torch.nn.Sequential(torch.nn.Flatten(), *network(3, 12))
    clf = NeuralFloralClassifier(module, epochs=20, head={"n_rounds": 50}, alternations=1, random_state=0)
    clf.fit(images, np.array(["a", "b", "c"])[codes])
    assert clf.score(images, np.array(["a", "b", "c"])[codes]) > 0.9
    assert clf.transform(images).shape == (90, 8)
    assert clf.soft_labels_.shape == (90, 3)


def test_a_model_with_its_own_network_comes_back_from_a_file(tmp_path):
    clf = make_pipeline(StandardScaler(), NeuralFloralClassifier(epochs=3, head=HEAD, alternations=1, random_state=0))
    clf.fit(X, np.array(["no", "yes"])[UNTRUSTED])
    save(clf, tmp_path / "model.skops")
    back = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(back.decision_function(X), clf.decision_function(X))
    assert back[-1].label_issues().equals(clf[-1].label_issues())
    np.testing.assert_array_equal(back[-1].history_["loss"], clf[-1].history_["loss"])
    with pytest.raises(ValueError, match="cannot hold"):
        save(NeuralFloralClassifier(network(), epochs=1, head=HEAD).fit(X, Y), tmp_path / "other.skops")


def test_the_gradient_attack_takes_its_network():
    clf = NeuralFloralClassifier(epochs=5, head=HEAD, random_state=0).fit(X, Y)
    own = poison(X, Y, attack="gradient", budget=0.1, random_state=0, surrogate=clf)
    module = poison(X, Y, attack="gradient", budget=0.1, random_state=0, surrogate=clf.module_)
    np.testing.assert_array_equal(own.indices, module.indices)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epochs": -3}, "'epochs' parameter of NeuralFloralClassifier"),
        ({"alternations": -1}, "'alternations' parameter"),
        ({"hidden_layer_sizes": (0,)}, "hidden_layer_sizes="),
        ({"module": torch.nn.Flatten()}, "has no Linear layer"),
        ({"module": network(), "layer": "nope"}, "layer='nope' is not a layer of the module"),
        ({"module": network(3)}, r"logits of shape \(1, 3\) for one row, and there are 2 classes"),
        ({"module": network(1, 5)}, r"does not take rows of shape \(2,\)"),
        ({"module": network().requires_grad_(False)}, "no parameter to train; FloralHead takes a network as it is"),
        ({"head": {"C": -1}}, "'C' parameter of FloralClassifier"),
        ({"head": LogisticRegression(), "alternations": 1}, "alternations=1 needs a FloralClassifier as head"),
        ({"device": "nowhere"}, "device='nowhere' is not a torch device"),
    ],
)
def test_a_wrong_parameter_is_named_before_training(monkeypatch, params, message):
    monkeypatch.setattr("floral_learn.paper.floral_net.train", lambda *a, **k: pytest.fail("training began"))
    refuses(message, NeuralFloralClassifier(**params).fit, X, Y)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_asked_for_and_absent_is_an_error_before_training(monkeypatch):
    monkeypatch.setattr("floral_learn.paper.floral_net.train", lambda *a, **k: pytest.fail("training began"))
    refuses("torch sees no CUDA device", NeuralFloralClassifier(device="cuda").fit, X, Y)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_trains_the_same_network_and_head():
    on_cpu, on_gpu = (
        NeuralFloralClassifier(epochs=3, head=HEAD, alternations=1, device=device, random_state=0).fit(X, UNTRUSTED)
        for device in ("cpu", "cuda")
    )
    assert next(on_gpu.module_.parameters()).is_cuda
    assert (on_cpu.predict(X) == on_gpu.predict(X)).mean() > 0.95


def test_bad_rows_labels_weights_and_trust_are_named_before_training(monkeypatch):
    monkeypatch.setattr("floral_learn.paper.floral_net.train", lambda *a, **k: pytest.fail("training began"))
    clf = NeuralFloralClassifier()
    refuses("NaN", clf.fit, np.where(X > 1, np.nan, X), Y)
    refuses("inconsistent numbers of samples", clf.fit, X, Y[:-1])
    refuses("at least 2 classes", clf.fit, X, np.zeros(120, dtype=int))
    refuses("sample_weight", clf.fit, X, Y, sample_weight=np.ones(3))
    refuses("trusted", clf.fit, X, Y, trusted=np.ones(3, dtype=bool))
    refuses("dim 3", clf.fit, X[:, :, None], Y)


def test_any_head_without_turns():
    clf = NeuralFloralClassifier(epochs=2, head=LogisticRegression(), random_state=0).fit(X, Y)
    features = clf.transform(X)
    np.testing.assert_array_equal(clf.predict(X), LogisticRegression().fit(features, Y).predict(features))
    assert isinstance(NeuralFloralClassifier(epochs=1, head=FloralClassifier(n_rounds=5)).fit(X, Y).head_.gram_, str)


def test_weights_that_leave_a_class_out_are_refused_before_the_network_is_trained(monkeypatch):
    monkeypatch.setattr(floral_net, "train", lambda *_, **__: pytest.fail("the network was trained"))
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.tile([0, 1], 10)
    refuses("sample_weight 0", NeuralFloralClassifier(epochs=2).fit, X, y, sample_weight=y.astype(float))
