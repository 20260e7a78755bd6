"""Optimizer, schedule and loss of one's own, in every network here."""

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons

torch = pytest.importorskip("torch")

from floral_bench.mlp import NeuralNetClassifier  # noqa: E402
from floral_learn.paper import NeuralFloralClassifier  # noqa: E402

X, Y = make_moons(60, noise=0.2, random_state=0)


def net(**changes):
    return NeuralNetClassifier((8,), epochs=3, batch_size=16, random_state=0, **changes)


def scores(model, **fit):
    return model.fit(X, Y, **fit).decision_function(X)


def test_the_default_written_out_is_the_default():
    same = net(
        optimizer=partial(torch.optim.SGD, lr=0.01, momentum=0.9),
        scheduler=lambda optimizer, steps: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0),
        loss=torch.nn.CrossEntropyLoss(),
    )
    np.testing.assert_allclose(scores(same), scores(net()), atol=1e-5)


def test_a_class_gets_the_learning_rate():
    by_class = scores(net(optimizer=torch.optim.Adam, learning_rate=0.05))
    np.testing.assert_array_equal(by_class, scores(net(optimizer=partial(torch.optim.Adam, lr=0.05))))
    assert not np.allclose(by_class, scores(net(learning_rate=0.05)))


def test_a_schedule_knows_the_number_of_steps_and_makes_each():
    seen = []

    def schedule(optimizer, steps):
        made = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=steps)
        seen.append((steps, made))
        return made

    stopped = scores(net(scheduler=schedule))
    assert seen[0][0] == 4 * 3
    assert seen[0][1].get_last_lr() == [0.0]
    assert not np.allclose(stopped, scores(net()))


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_loss_sees_class_numbers_and_may_answer_per_row(reduction):
    shapes = []

    def loss(logits, target):
        shapes.append((tuple(logits.shape), target.dtype, tuple(target.shape)))
        return torch.nn.functional.cross_entropy(logits, target, reduction=reduction)

    np.testing.assert_allclose(scores(net(loss=loss)), scores(net()), atol=1e-5)
    assert shapes[0] == ((16, 2), torch.int64, (16,))


def test_weights_need_a_loss_per_row():
    weight = np.linspace(0.1, 2, 60)
    own = net(loss=torch.nn.CrossEntropyLoss(reduction="none"))
    np.testing.assert_allclose(scores(own, sample_weight=weight), scores(net(), sample_weight=weight), atol=1e-5)
    with pytest.raises(ValueError, match="rows have weights: return one loss per row"):
        net(loss=torch.nn.CrossEntropyLoss()).fit(X, Y, sample_weight=weight)


def test_soft_labels_are_probabilities():
    kinds = set()

    def loss(logits, target):
        kinds.add(tuple(target.shape[1:]))
        return torch.nn.functional.cross_entropy(logits, target)

    head = {"n_rounds": 20, "budget": 0.3, "tol": None}
    settings = {"hidden_layer_sizes": (8,), "epochs": 2, "alternations": 1, "head": head, "random_state": 0}
    by_own = NeuralFloralClassifier(**settings, loss=loss, optimizer=torch.optim.AdamW)
    by_default = NeuralFloralClassifier(**settings, optimizer=torch.optim.AdamW)
    np.testing.assert_allclose(scores(by_own), scores(by_default), atol=1e-4)
    assert kinds == {(), (2,)}


def test_pgd_perturbs_against_the_loss_it_is_given():
    own, plain = (net(epsilon=8 / 255, inner_steps=2, loss=loss) for loss in (torch.nn.CrossEntropyLoss(), None))
    np.testing.assert_allclose(scores(own), scores(plain), atol=1e-4)


def test_settings_survive_a_clone():
    model = net(optimizer=partial(torch.optim.Adam, lr=0.03), loss=torch.nn.CrossEntropyLoss(label_smoothing=0.1))
    np.testing.assert_array_equal(scores(clone(model)), scores(model))
    assert model.loss.label_smoothing == clone(model).loss.label_smoothing == 0.1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"optimizer": "adam"}, "'optimizer' parameter"),
        ({"scheduler": 3}, "'scheduler' parameter"),
        ({"loss": "hinge"}, "'loss' parameter"),
        ({"optimizer": lambda parameters: None}, "made NoneType; it must take parameters and return"),
        ({"scheduler": lambda optimizer, steps: 0.1}, "made float; it must take the optimizer and the number of steps"),
        (
            {"scheduler": lambda optimizer, steps: torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)},
            "needs no measurement",
        ),
        ({"loss": lambda logits, target: 0.0}, r"gave float; one number or one per row, \(16,\)"),
        ({"loss": lambda logits, target: logits}, r"gave \(16, 2\); one number or one per row"),
    ],
)
def test_what_does_not_fit_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        net(**wrong).fit(X, Y)
