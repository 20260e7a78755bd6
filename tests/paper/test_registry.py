"""DEFENSES: every name builds a classifier, and naming them imports nothing."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from refusals import refuses
from sklearn.multioutput import MultiOutputClassifier
from sklearn.svm import SVC

import floral_learn
from floral_learn import paper
from floral_learn.paper import DEFENSES

FULL_NAMES = {
    "floral": "FloralClassifier",
    "svm": "SVC",
    "ln-svm": "LabelNoiseSVC",
    "rs": "RandomizedSmoothingClassifier",
    "dpa": "PartitionAggregationClassifier",
    "rsrnn": "RSRNNClassifier",
    "transformer": "TextClassifier",
}


@pytest.mark.parametrize(("name", "full"), FULL_NAMES.items())
def test_each_name_gives_the_public_class(name, full):
    assert name in DEFENSES
    assert DEFENSES[name].__name__ == full
    room = paper if full in paper.__all__ else floral_learn
    assert full == "SVC" or getattr(room, full) is DEFENSES[name]


@pytest.mark.parametrize(
    ("name", "sanitizer"), [("curie", "CurieFilter"), ("ls-svm", "KNNRelabel"), ("k-lid", "KLIDWeights")]
)
def test_a_sanitiser_stands_in_front_of_an_svc_and_settings_find_their_part(name, sanitizer):
    model = DEFENSES[name](n_neighbors=7, C=3.0, gamma=0.5)
    assert type(model.sanitizer).__name__ == sanitizer
    assert model.sanitizer.n_neighbors == 7
    assert (type(model.estimator), model.estimator.C, model.estimator.gamma) == (SVC, 3.0, 0.5)
    if "random_state" in model.sanitizer.get_params():
        seeded = DEFENSES[name](random_state=5)
        assert (seeded.sanitizer.random_state, seeded.estimator.random_state) == (5, None)
    refuses("has no setting 'colour'", DEFENSES[name], colour="red", error=TypeError)


def test_contradicted_labels_stand_in_front_of_an_svc():
    model = DEFENSES["contradicted"](C=3.0, random_state=5)
    assert type(model.sanitizer).__name__ == "ContradictedLabels"
    assert (model.sanitizer.random_state, model.estimator.C) == (5, 3.0)


def test_every_registered_class_is_a_classifier_with_defaults():
    for name in DEFENSES:
        model = DEFENSES[name]()
        assert model.__sklearn_tags__().estimator_type == "classifier", name


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(KeyError, match=r"'svn' is not a defense; known names: floral, svm"):
        DEFENSES["svn"]


def test_listing_names_imports_neither_sklearn_nor_torch():
    code = "import sys; from floral_learn.paper.defenses import DEFENSES; list(DEFENSES); 'svm' in DEFENSES;"
    code += "sys.exit(any(m in sys.modules for m in ('sklearn', 'torch', 'pandas', 'matplotlib')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def made():
    """One of each defense, with rows that it takes."""
    rng = np.random.default_rng(0)
    for name in DEFENSES:
        if name == "svm":  # scikit-learn's own
            continue
        if name == "transformer" and importlib.util.find_spec("torch") is None:
            continue
        yield name, DEFENSES[name](), ["some text"] * 40 if name == "transformer" else rng.normal(size=(40, 3))


def test_every_defense_refuses_a_regression_target():
    target = np.random.default_rng(1).normal(size=40)
    for name, model, X in made():
        refuses("Unknown label type", model.fit, X, target)
        assert not hasattr(model, "classes_"), name


@pytest.mark.parametrize("y", [np.tile([[0, 1], [1, 1]], (20, 1)), [["a"], ["b", "c"]] * 20], ids=["matrix", "lists"])
def test_every_defense_refuses_several_labels_per_row(y):
    for name, model, X in made():
        words = "one label per row|1-D|inhomogeneous" if name == "transformer" else "one label per row.*multilabel"
        refuses(words, model.fit, X, y)
        assert not hasattr(model, "classes_"), name


def test_the_way_out_of_several_labels_works():
    X = np.random.default_rng(0).normal(size=(60, 2))
    Y = (X > 0).astype(int)
    model = MultiOutputClassifier(DEFENSES["floral"](n_rounds=50, random_state=0)).fit(X, Y)
    assert (model.predict(X) == Y).mean() > 0.8


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        (paper.CurieFilter, {"confidence": [0.5, 1.0], "compare": ["some"], "eps": [0.0], "label_weight": [-1.0]}),
        (paper.KLIDWeights, {"planted": [0.5, 0.0], "batch_size": [2], "lid_gamma": [-1.0]}),
        (paper.KNNRelabel, {"n_neighbors": [0, 2.5], "threshold": [0.4, 1.1]}),
        (paper.LabelNoiseSVC, {"noise": [0.5]}),
        (
            paper.RandomizedSmoothingClassifier,
            {"flip_probability": [0.5, 0.0], "kernel": ["cubic"], "n_components": [0]},
        ),
        (paper.RandomizedSmoothingClassifier, {"ridge": [0.0]}),
    ],
)
def test_bad_parameters_are_named_with_value_and_range(noisy_moons, method, wrong):
    X, y, _ = noisy_moons()
    for name, value in ((name, value) for name, values in wrong.items() for value in values):
        model = method(**{name: value})
        words = rf"'{name}' parameter of {method.__name__} must be .* Got {value!r}"
        refuses(words, getattr(model, "fit_resample", None) or model.fit, X, y)
