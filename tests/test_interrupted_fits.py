"""Ctrl-C or an error at any moment of a fit leaves the old model, whole, or none at all: every estimator we have.

A profiler counts the calls of a fit and raises inside one of them, at moments spread over the whole fit.
"""

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from interruptions import Stop, check_interrupted, check_refused, interrupted, moments
from sklearn.datasets import make_blobs, make_moons
from sklearn.linear_model import LogisticRegression

from floral_learn import CrowdClassifier, SanitizedClassifier
from floral_learn.base import TableEncoder
from floral_learn.paper import DEFENSES, KNNRelabel, LabelNoiseSVC

if find_spec("torch"):
    from floral_learn.paper import FloralHead, NeuralFloralClassifier

X, Y = make_moons(60, noise=0.2, random_state=0)
OTHER_X, OTHER = make_blobs(48, centers=2, random_state=1)
OTHER_X, OTHER = OTHER_X[:, ::-1] * 3, np.array(["dog", "cat"])[OTHER]
QUICK = {"n_rounds": 8, "epochs": 2, "n_partitions": 3, "n_estimators": 3, "max_iter": 5, "hidden_layer_sizes": (4,)}
# FloralClassifier has tests of its own; text models are in tests/text, on a tiny encoder.
LEFT_OUT = {"floral", "svm", "transformer"}


def defense(name):
    model = DEFENSES[name]()
    known = model.get_params(deep=False)
    return model.set_params(**{key: value for key, value in QUICK.items() if key in known and key != "max_iter"})


MODELS = {
    **{name: lambda name=name: defense(name) for name in DEFENSES if name not in LEFT_OUT},
    "sanitised": lambda: SanitizedClassifier(KNNRelabel(), LogisticRegression()),
    "crowd": lambda: CrowdClassifier(estimator=LogisticRegression(), random_state=0),
}
if find_spec("torch"):
    MODELS["neural-floral"] = lambda: NeuralFloralClassifier(
        hidden_layer_sizes=(4,), epochs=2, head=LabelNoiseSVC(), random_state=0
    )
    MODELS["head"] = lambda: FloralHead(_network(), head=LabelNoiseSVC(), random_state=0)


def _network():
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(2, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2)).double()


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)], ids=["a few moments", "ten moments"])
@pytest.mark.parametrize("name", MODELS)
def test_an_interrupted_fit_leaves_the_old_model_or_none(name, every):
    check_interrupted(MODELS[name], (X, Y), (OTHER_X, OTHER), every=every)


@pytest.mark.filterwarnings("ignore:invalid value encountered in reduce:RuntimeWarning")  # infinity among the rows
@pytest.mark.parametrize("name", MODELS)
def test_a_failed_fit_leaves_the_old_model(name):
    check_refused(MODELS[name], (X, Y), ((X * np.nan, Y), (X, np.zeros(60)), (X, Y[:-1]), (X[:, :1] * np.inf, Y)))


def test_an_interrupted_encoder_is_the_old_one():
    frame = pd.DataFrame(
        {"a": X[:, 0], "c": list("uvw") * 20, "t": [f"word{i % 7} of some text {i}" for i in range(60)]}
    )
    encoder = TableEncoder(text=["t"]).fit(frame)
    before = encoder.transform(frame)
    other = frame.assign(a=X[:, 1], c=list("xy") * 30)
    total = interrupted(lambda: TableEncoder(text=["t"]).fit(other))
    for moment in moments(total)[1:-2]:
        with pytest.raises(Stop):
            interrupted(lambda: encoder.fit(other), moment)
        np.testing.assert_array_equal(encoder.transform(frame), before)
