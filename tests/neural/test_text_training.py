"""Fine-tuning takes the steps of transformers' Trainer, whatever device it runs on, recorded or not."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate", reason="the Trainer, which is compared with, needs accelerate")
sys.path.insert(0, str(Path(__file__).parent))

import torch
from tiny_text import by_trainer, make_reviews, make_roberta

from floral_learn import TextClassifier
from floral_learn.neural import text_training
from floral_learn.neural.encoders import load_network
from floral_learn.neural.text_passes import forward
from floral_learn.neural.text_training import Steps, TrainingSettings, fine_tune, weighted_loss


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_roberta(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def reviews():
    texts, y = make_reviews(48)
    return texts, (y > 0).astype(int)


def _trained(folder, reviews, train=fine_tune, weight=None, size=48, epochs=4, belief=None):
    texts, codes = reviews
    network = load_network(folder, "cpu", "auto", n_classes=2, seed=0)
    tokens = network.tokens(texts)
    losses = []
    settings = TrainingSettings(epochs, 3e-3, 0.1, size, seed=0)
    told = lambda epoch, loss: bool(losses.append(loss))  # noqa: E731
    train(network.model, tokens, codes, settings, "cpu", told, weight=weight, belief=belief)
    return forward(network.model, tokens, "cpu", False)[0], losses


@pytest.mark.parametrize("believed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_steps_are_those_of_the_trainer(folder, reviews, weighted, believed):
    # one batch holds all rows, so that the order of the rows does not matter: optimiser, schedule, decay and cuts do
    weight = np.linspace(0.1, 1.9, 48) if weighted else None
    belief = np.where(np.arange(2) == reviews[1][:, None], 0.9, 0.1) if believed else None
    ours, our_losses = _trained(folder, reviews, fine_tune, weight, belief=belief)
    theirs, their_losses = _trained(folder, reviews, by_trainer, weight, belief=belief)
    np.testing.assert_allclose(our_losses, their_losses, rtol=1e-4)
    np.testing.assert_allclose(ours, theirs, atol=2e-3)
    assert our_losses[-1] < our_losses[0]


def test_small_batches_learn_and_the_last_may_be_short(folder, reviews):
    scores, losses = _trained(folder, reviews, size=10, epochs=5)
    assert len(losses) == 5
    assert (scores.argmax(1) == reviews[1]).mean() > 0.9


def test_a_loss_that_is_not_finite_is_an_error(folder, reviews):
    texts, codes = reviews
    network = load_network(folder, "cpu", "auto", n_classes=2, seed=0)
    settings = TrainingSettings(2, 1e30, 0.0, 12, seed=0)
    with pytest.raises(ValueError, match="lower learning_rate"):
        fine_tune(network.model, network.tokens(texts), codes, settings, "cpu")


def test_frozen_parts_stay_as_they_were(folder, reviews):
    texts, codes = reviews
    network = load_network(folder, "cpu", "auto", n_classes=2, seed=0)
    frozen = network.model.get_input_embeddings().weight.requires_grad_(False)
    before = frozen.clone()
    settings = TrainingSettings(1, 1e-2, 0.1, 12, seed=0)
    fine_tune(network.model, network.tokens(texts), codes, settings, "cpu")
    assert torch.equal(before, frozen)


class _Recorder:
    """A stand-in for a CUDA graph: counts how often it is replayed, and repeats the step."""

    def __init__(self, steps, width):
        self.steps, self.width, self.replays = steps, width, 0

    def replay(self):
        self.replays += 1
        self.steps._step(self.steps.picks, self.width)


def test_whole_batches_come_from_the_recording_and_the_others_do_not(folder, reviews, monkeypatch):
    made = []

    def record(self, width):
        self.graphs[width] = _Recorder(self, width)
        made.append(self.graphs[width])

    class Recording(Steps):
        def __init__(self, *args):
            super().__init__(*args)
            self.recording = True

        _record = record

    monkeypatch.setattr(text_training, "Steps", Recording)
    monkeypatch.setattr(text_training, "LEAST", 2)
    recorded, losses = _trained(folder, reviews, size=10, epochs=5)
    assert sum(one.replays for one in made) == 25 - 5 - len(made) * text_training.OPENING
    monkeypatch.undo()
    plain, plain_losses = _trained(folder, reviews, size=10, epochs=5)
    np.testing.assert_array_equal(recorded, plain)
    assert losses == plain_losses


def test_weights_of_texts(folder, reviews):
    texts, codes = reviews
    wrong = codes.copy()
    wrong[:20] = 1 - wrong[:20]
    weight = np.ones(48)
    weight[:20] = 0.0
    left_out = TextClassifier(folder, epochs=4, learning_rate=1e-2, random_state=0, device="cpu")
    left_out.fit(texts, wrong, sample_weight=weight)
    alone = TextClassifier(folder, epochs=4, learning_rate=1e-2, random_state=0, device="cpu")
    alone.fit(texts[20:], wrong[20:])
    np.testing.assert_allclose(left_out.decision_function(texts), alone.decision_function(texts), rtol=1e-3, atol=1e-4)
    weight[:20] = 1e-6
    lowered = TextClassifier(folder, epochs=8, batch_size=8, learning_rate=3e-3, random_state=0, device="cpu")
    assert lowered.fit(texts, wrong, sample_weight=weight).score(texts, codes) > 0.9


def test_belief_of_texts(folder, reviews):
    texts, codes = reviews
    sure = np.eye(2)[codes]
    fits = {"epochs": 4, "learning_rate": 3e-3, "random_state": 0, "device": "cpu"}
    plain = TextClassifier(folder, **fits).fit(texts, codes)
    believed = TextClassifier(folder, **fits).fit(texts, codes, belief=sure)
    np.testing.assert_allclose(believed.decision_function(texts), plain.decision_function(texts), atol=1e-2)
    either = sure.copy()
    either[:20] = 0.5  # their labels say nothing, right or wrong
    wrong = codes.copy()
    wrong[:20] = 1 - wrong[:20]
    taught = [TextClassifier(folder, **fits).fit(texts, y, belief=either) for y in (codes, wrong)]
    np.testing.assert_array_equal(*(model.decision_function(texts) for model in taught))


def test_a_label_in_doubt_may_be_overruled():
    scores = torch.tensor([[-6.0, 6.0]], requires_grad=True)
    batch = {"labels": torch.tensor([0]), "belief": torch.tensor([[0.9, 0.1]])}
    weighted_loss(scores, batch).backward()
    assert float(scores.grad.abs().max()) < 1e-3, "the network is sure, the label is not"
    scores.grad = None
    weighted_loss(scores, {"labels": batch["labels"], "row_weight": torch.tensor([0.8])}).backward()
    assert float(scores.grad.abs().max()) > 0.7


@pytest.mark.parametrize(
    ("belief", "message"),
    [
        (np.full((3, 2), 0.5), r"one row per text and one column per class, \(48, 2\)"),
        (np.full((48, 2), 0.7), "whose sum is 1"),
        (np.full((48, 2), np.nan), "probabilities"),
    ],
)
def test_bad_beliefs_are_named(folder, reviews, belief, message):
    with pytest.raises(ValueError, match=message):
        TextClassifier(folder).fit(reviews[0], reviews[1], belief=belief)
    with pytest.raises(ValueError, match="not both"):
        TextClassifier(folder, loss=torch.nn.CrossEntropyLoss()).fit(*reviews, belief=np.eye(2)[reviews[1]])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(3), "one weight per text"),
        (np.full(48, np.nan), "finite numbers"),
        (-np.ones(48), "at least 0"),
        (np.zeros(48), "0 for every text"),
    ],
)
def test_bad_weights_are_named(folder, reviews, weight, message):
    with pytest.raises(ValueError, match=message):
        TextClassifier(folder).fit(reviews[0], reviews[1], sample_weight=weight)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
def test_on_cuda_steps_are_recorded_and_learn(folder, reviews, recwarn):
    texts, codes = reviews
    network = load_network(folder, "cuda", "auto", n_classes=2, seed=0)
    settings = TrainingSettings(20, 1e-2, 0.1, 12, seed=0)
    tokens = network.tokens(texts)
    fine_tune(network.model, tokens, codes, settings, "cuda")
    assert not [w for w in recwarn if "could not be recorded" in str(w.message)]
    assert (forward(network.model, tokens, "cuda", False)[0].argmax(1) == codes).mean() > 0.9
