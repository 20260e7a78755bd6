"""Fine-tuning by transformers' Trainer: it learns, rows weigh what they are told to, and nothing else changes."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from tiny_text import make_reviews, make_roberta

from floral_learn import TextClassifier


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_roberta(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def reviews():
    texts, y = make_reviews(48)
    return texts, (y > 0).astype(int)


def tiny(folder, **settings):
    return TextClassifier(
        folder, **({"epochs": 4, "learning_rate": 3e-3, "random_state": 0, "device": "cpu"} | settings)
    )


def test_small_batches_learn_and_the_last_may_be_short(folder, reviews):
    model = tiny(folder, epochs=6, batch_size=10).fit(*reviews)
    assert model.score(*reviews) > 0.9
    assert model.history_["loss"][-1] < 0.5 * model.history_["loss"][0]


def test_the_first_loss_is_that_of_the_new_layer(folder, reviews):
    """Steps of no size: every epoch has the loss of the network as it came, by hand."""
    model = tiny(folder, epochs=2, learning_rate=1e-12, batch_size=7).fit(*reviews)
    told = model.predict_proba(reviews[0])[np.arange(48), reviews[1]]
    np.testing.assert_allclose(model.history_["loss"], -np.log(told).mean(), rtol=1e-4)


def test_weights_of_texts(folder, reviews):
    texts, codes = reviews
    wrong = codes.copy()
    wrong[:20] = 1 - wrong[:20]
    weight = np.ones(48)
    weight[:20] = 0.0
    left_out = tiny(folder, learning_rate=1e-2).fit(texts, wrong, sample_weight=weight)
    alone = tiny(folder, learning_rate=1e-2).fit(texts[20:], wrong[20:])
    np.testing.assert_allclose(left_out.decision_function(texts), alone.decision_function(texts), rtol=1e-3, atol=1e-4)
    weight[:20] = 1e-6
    lowered = tiny(folder, epochs=8, batch_size=8)
    assert lowered.fit(texts, wrong, sample_weight=weight).score(texts, codes) > 0.9


def test_bad_weights_are_named(folder, reviews):
    for weight, message in ((np.ones(3), r"sample_weight.shape == \(3,\)"), (-np.ones(48), "weights are 0 or more")):
        with pytest.raises(ValueError, match=message):
            TextClassifier(folder).fit(*reviews, sample_weight=weight)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
def test_on_cuda_it_learns_and_answers_in_single_precision(folder, reviews):
    model = tiny(folder, epochs=20, learning_rate=1e-2, batch_size=12, device="cuda").fit(*reviews)
    assert model.score(*reviews) > 0.9
    assert model.embed(reviews[0]).dtype == np.float32
