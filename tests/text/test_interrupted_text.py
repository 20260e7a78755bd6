"""Ctrl-C or an error at any moment of a fit leaves a text model as it was, whole, or unfitted: weights included."""

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="text models need torch: pip install '.[text]'")
pytest.importorskip("transformers", reason="text models need transformers")

from interruptions import check_interrupted, check_refused, interrupted  # noqa: E402
from tiny_text import make_reviews, make_roberta  # noqa: E402

from floral_learn import TextClassifier  # noqa: E402
from floral_learn.paper import LabelNoiseSVC, TextFloralClassifier  # noqa: E402

TEXTS, Y = make_reviews(12)
OTHER = [f"{text} the plot" for text in TEXTS]
LABELS = np.array(["cat", "dog", "bird"] * 4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_roberta(tmp_path_factory.mktemp("roberta"))


def encoder(folder):
    return TextClassifier(folder, epochs=1, batch_size=6, learning_rate=1e-3, device="cpu", random_state=0)


MODELS = {
    "text": encoder,
    "text-floral": lambda folder: TextFloralClassifier(encoder(folder), LabelNoiseSVC(), random_state=0),
    "frozen": lambda folder: TextFloralClassifier(encoder(folder), LabelNoiseSVC(), fine_tune=False, random_state=0),
}


# Our own code, the training loop and the layers.
stopped = partial(interrupted, inside=("floral_learn", "transformers/trainer.py", "modeling_roberta"))


def weights(model):
    network = getattr(model, "encoder_", model).model_
    return {name: value.numpy().copy() for name, value in network.state_dict().items()}


@pytest.mark.parametrize(
    ("name", "every"), [("text", 4), ("frozen", 2), *(pytest.param(name, 1, marks=pytest.mark.slow) for name in MODELS)]
)
def test_an_interrupted_fit_leaves_the_old_model_or_none(name, every, folder):
    make, data, other = partial(MODELS[name], folder), (TEXTS, Y), (OTHER, LABELS)
    check_interrupted(make, data, other, "decision_function", stopped, every, errors=(Exception,), state=weights)


@pytest.mark.parametrize("name", MODELS)
def test_a_failed_fit_leaves_the_old_model(name, folder):
    bad = ((["", *TEXTS[1:]], Y), (TEXTS, np.zeros(12)), (TEXTS, Y[:-1]), ([[1, 2], [10_000]] * 6, Y))
    check_refused(partial(MODELS[name], folder), (TEXTS, Y), bad, "decision_function")
