"""The networks as scikit-learn estimators: they equal the batched cells, plain torch, and themselves after a file."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

torch = pytest.importorskip("torch")

from floral_bench.batched_mlp import NetworkSettings, train_mlps  # noqa: E402
from floral_bench.mlp import NeuralNetClassifier  # noqa: E402
from floral_learn import poison  # noqa: E402
from floral_learn.attacks.gradient import module_gradients  # noqa: E402
from floral_learn.base.extras import install_line  # noqa: E402
from floral_learn.base.validation import generator  # noqa: E402

X, Y = make_moons(120, noise=0.2, random_state=0)
P, LABELS = make_blobs(150, centers=3, random_state=0)
P = StandardScaler().fit_transform(P)
PGD = 8 / 255


def _expected_failures(estimator):
    reason = "batches count rows: a row of weight two is not two rows"
    return {"check_sample_weight_equivalence_on_dense_data": reason}


@pytest.mark.slow  # a minute
@parametrize_with_checks(
    [
        NeuralNetClassifier(epochs=15, learning_rate=0.05),
        NeuralNetClassifier(epochs=15, learning_rate=0.05, epsilon=PGD, inner_steps=1),
    ],
    expected_failed_checks=_expected_failures,
)
def test_sklearn_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("epsilon", [0.0, PGD])
def test_the_estimator_is_the_batched_cell(epsilon):
    clf = NeuralNetClassifier((8, 4), epochs=3, epsilon=epsilon, random_state=5).fit(X[:70], Y[:70])
    settings = NetworkSettings(hidden=(8, 4), epochs=3, epsilon=epsilon)
    seed = int(generator(5).integers(2**31 - 1))
    cell = train_mlps(X[None, :70], Y[None, :70], X[None, 70:], [seed], settings)
    np.testing.assert_allclose(clf.decision_function(X[70:]), cell.logits[-1, 0], atol=2e-4)
    assert np.abs(cell.logits[-1, 0]).max() > 0.01


def test_several_classes_are_plain_torch_on_cross_entropy():
    clf = NeuralNetClassifier((6,), epochs=2, batch_size=40, random_state=1).fit(P, LABELS)
    stream = torch.Generator().manual_seed(int(generator(1).integers(2**31 - 1)))
    from floral_learn.paper.mlp_network import build_mlp

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
    np.testing.assert_allclose(clf.predict_proba(P).sum(1), 1)
    epoch = np.average([loss for loss, _ in losses[4:]], weights=[size for _, size in losses[4:]])
    assert clf.history_["loss"][1] == pytest.approx(epoch, rel=1e-4)


def test_a_fit_is_repeated_by_its_seed_and_leaves_torch_alone():
    torch.manual_seed(11)
    before = torch.get_rng_state()
    first, second = (NeuralNetClassifier(epochs=2, random_state=3).fit(X, Y).decision_function(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)
    assert not np.allclose(first, NeuralNetClassifier(epochs=2, random_state=4).fit(X, Y).decision_function(X))


def test_a_weight_of_zero_leaves_a_row_out_and_a_common_factor_changes_nothing():
    weight = np.ones(len(X))
    weight[:30] = 0
    left_out = NeuralNetClassifier(epochs=3, random_state=0).fit(X, Y, sample_weight=weight)
    alone = NeuralNetClassifier(epochs=3, random_state=0).fit(X[30:], Y[30:], sample_weight=np.full(90, 7.0))
    np.testing.assert_allclose(left_out.decision_function(X), alone.decision_function(X), atol=1e-6)


def test_weights_move_the_boundary():
    one_sided = NeuralNetClassifier(epochs=20, random_state=0).fit(X, Y, sample_weight=np.where(Y == 1, 50.0, 1.0))
    assert (one_sided.predict(X) == 1).mean() > (
        NeuralNetClassifier(epochs=20, random_state=0).fit(X, Y).predict(X)
    ).mean()


def test_pgd_training_resists_perturbed_inputs_that_a_plain_network_does_not():
    margin = 0.2
    rng = np.random.default_rng(0)
    signs = np.where(rng.random(400) < 0.5, 1, -1)
    # one feature is weak but safe, twenty are strong together and each within reach of the perturbation
    rows = np.column_stack(
        [signs * 1.0 + rng.normal(0, 0.6, 400), *(signs * margin + rng.normal(0, 0.4, 400) for _ in range(20))]
    )
    accuracy = {}
    for name, clf in {
        "nn": NeuralNetClassifier((16,), epochs=40, random_state=0),
        "pgd": NeuralNetClassifier((16,), epochs=40, epsilon=2 * margin, step=0.1, random_state=0),
    }.items():
        clf.fit(rows, signs)
        moved = torch.tensor(rows, dtype=torch.float32).requires_grad_()
        (clf.module_(moved)[:, 0] * torch.tensor(signs)).sum().backward()
        attacked = rows - 2 * margin * np.sign(moved.grad.numpy())
        accuracy[name] = clf.score(attacked, signs)
    assert accuracy["pgd"] > accuracy["nn"] + 0.1


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


def test_a_search_over_a_pipeline_works():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), NeuralNetClassifier(epochs=3, random_state=0)),
        {"neuralnetclassifier__hidden_layer_sizes": [(4,), (8, 8)]},
        cv=2,
    ).fit(X, Y)
    assert search.best_estimator_.predict_proba(X).shape == (120, 2)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epochs": -1}, "'epochs' parameter of NeuralNetClassifier"),
        ({"epochs": 0}, "'epochs' parameter of NeuralNetClassifier"),
        ({"learning_rate": 0}, "'learning_rate' parameter"),
        ({"momentum": 1.0}, "'momentum' parameter"),
        ({"batch_size": 0}, "'batch_size' parameter"),
        ({"hidden_layer_sizes": ()}, r"hidden_layer_sizes=\(\) must be positive integers"),
        ({"hidden_layer_sizes": (8, -1)}, r"hidden_layer_sizes=\(8, -1\) must be"),
        ({"device": "nowhere"}, "device='nowhere' is not a torch device"),
    ],
)
def test_a_wrong_parameter_is_named_before_training(params, message):
    with pytest.raises(ValueError, match=message):
        NeuralNetClassifier(**params).fit(X, Y)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_asked_for_and_absent_is_an_error_before_training():
    with pytest.raises(ValueError, match="device='cuda' was asked for, but torch sees no CUDA device"):
        NeuralNetClassifier(device="cuda").fit(X, Y)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_trains_the_same_network():
    on_cpu, on_gpu = (
        NeuralNetClassifier((8,), epochs=3, device=device, random_state=0).fit(X, Y) for device in ("cpu", "cuda")
    )
    assert on_gpu.module_[0].weight.is_cuda
    np.testing.assert_allclose(on_cpu.decision_function(X), on_gpu.decision_function(X), atol=1e-3)


def test_bad_rows_and_labels_are_named():
    holes = X.copy()
    holes[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        NeuralNetClassifier().fit(holes, Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        NeuralNetClassifier().fit(X, Y[:-1])
    with pytest.raises(ValueError, match="at least 2 classes"):
        NeuralNetClassifier().fit(X, np.zeros(len(X), dtype=int))
    clf = NeuralNetClassifier(epochs=1).fit(X, Y)
    with pytest.raises(ValueError, match="X has 3 features"):
        clf.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="120 places in classes_"):
        clf.input_gradient_norms(X, Y[:3])
    with pytest.raises(ValueError, match="places in classes_"):
        clf.input_gradient_norms(X, Y + 1)


def test_a_training_that_blows_up_says_what_to_do():
    with pytest.raises(ValueError, match=r"the loss is .* scale X or lower learning_rate=1000"):
        NeuralNetClassifier(learning_rate=1000.0, momentum=0.99, random_state=0).fit(1e10 * X, Y)


@pytest.mark.parametrize("name", ["FloralHead", "NeuralFloralClassifier"])
def test_without_torch_the_error_names_the_install_line(name):
    code = f"import sys; sys.modules['torch'] = None; from floral_learn import {name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"ImportError: networks need torch: {install_line('torch')}" in done.stderr
