"""Ctrl-C or an error at any moment of a fit leaves a text model as it was, whole, or unfitted: weights included."""

from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

torch = pytest.importorskip("torch", reason="text models need torch: pip install '.[text]'")
pytest.importorskip("transformers", reason="text models need transformers")

from interruptions import MOMENTS, Stop, interrupted, moments  # noqa: E402
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


def network_of(model):
    return getattr(model, "encoder_", model).model_


@pytest.mark.parametrize(
    ("name", "every"), [("text", 4), ("frozen", 2), *(pytest.param(name, 1, marks=pytest.mark.slow) for name in MODELS)]
)
def test_an_interrupted_fit_leaves_the_old_model_or_none(name, every, folder):
    make = partial(MODELS[name], folder)
    model = make().fit(TEXTS, Y)
    before, kept = model.decision_function(TEXTS), dict(vars(model))
    weights = {key: value.clone() for key, value in network_of(model).state_dict().items()}
    make().fit(OTHER, LABELS)  # the first fit imports what later ones have
    total = stopped(lambda: make().fit(OTHER, LABELS))
    hit = 0
    for moment in moments(total)[::every]:
        fresh = make()
        try:
            stopped(partial(fresh.fit, OTHER, LABELS), moment)
        except Stop:
            hit += 1
            with pytest.raises(NotFittedError):
                fresh.predict(TEXTS)
        except Exception:  # a library turned the interruption into an error of its own
            assert not hasattr(fresh, "classes_")
        try:
            stopped(lambda: model.fit(OTHER, LABELS), moment)
        except BaseException:
            assert vars(model).keys() == kept.keys(), moment
            assert all(vars(model)[key] is kept[key] for key in kept), moment
            assert all(torch.equal(value, weights[key]) for key, value in network_of(model).state_dict().items()), (
                moment
            )
            np.testing.assert_array_equal(model.decision_function(TEXTS), before)
        else:  # Stop came too late, or a library swallowed it
            model.__dict__ = dict(kept)
    assert hit >= MOMENTS // 2 // every


@pytest.mark.parametrize("name", MODELS)
def test_a_failed_fit_leaves_the_old_model(name, folder):
    model = MODELS[name](folder).fit(TEXTS, Y)
    before = model.decision_function(TEXTS)
    for bad in ((["", *TEXTS[1:]], Y), (TEXTS, np.zeros(12)), (TEXTS, Y[:-1]), ([[1, 2], [10_000]] * 6, Y)):
        with pytest.raises(ValueError):
            model.fit(*bad)
        np.testing.assert_array_equal(model.decision_function(TEXTS), before)
    fresh = MODELS[name](folder)
    with pytest.raises(ValueError):
        fresh.fit(TEXTS, np.zeros(12))
    with pytest.raises(NotFittedError):
        fresh.predict(TEXTS)
