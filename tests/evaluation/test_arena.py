"""The arena: its cells, its path of budgets, its score card; nothing in it sees a clean label."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

from floral_learn import FloralClassifier
from floral_learn.datasets.arena import ARENA, DEVELOPMENT, HELD_OUT, load_arena
from floral_learn.evaluation.arena import ARENA_SUITES, adapted
from floral_learn.evaluation.arena_card import ORACLE, arena_frame, cell_means, score_card, to_markdown
from floral_learn.evaluation.arena_methods import AUTO, ESTIMATORS, PATH, SVC_DEFAULT, CleanlabSVC, TunedSVC, methods
from floral_learn.evaluation.arena_outputs import write_arena
from floral_learn.evaluation.arena_path import POINTS, ROUNDS, config_name, run_paths
from floral_learn.evaluation.cell_data import poisoned_labels
from floral_learn.evaluation.families.single_fits import make_estimator
from floral_learn.evaluation.runner import run_suite
from floral_learn.evaluation.spec import Attack, Cell, Data, params
from floral_learn.evaluation.store import Store

WITHOUT_FILES = [name for name in ARENA if name != "mnist-1-7"]


@pytest.mark.parametrize("name", WITHOUT_FILES)
def test_every_data_set_has_clean_labels_and_a_split_of_its_own(name):
    first, second = load_arena(name, 1), load_arena(name, 2)
    assert len(first.y_train) <= 500
    assert len(first.y_val) == 0
    assert set(first.y_test) == set(first.y_train)
    assert first.poisoned.size == 0
    assert not np.array_equal(first.X_train, second.X_train)
    np.testing.assert_allclose(first.X_train.std(axis=0).max(), 1, atol=0.2)


@pytest.mark.data("mnist.npz")
def test_mnist_is_reduced_on_its_training_rows():
    data = load_arena("mnist-1-7", 1)
    assert data.X_train.shape == (1000, 50)
    assert SVC().fit(data.X_train, data.y_train).score(data.X_test, data.y_test) > 0.98


def test_bad_names_and_fewer_rows():
    with pytest.raises(ValueError, match="'cifar' is no data set of the arena"):
        load_arena("cifar")
    assert len(load_arena("iris", n_train=30).y_train) == 30
    assert set(DEVELOPMENT).isdisjoint(HELD_OUT)


def test_attacks_on_two_classes_skip_the_others_and_farthest_has_two_victims():
    assert {a.name for a in ARENA_SUITES["arena-moon"].attacks} >= {"alfa", "alfa-tilt", "lfa"}
    assert {a.name for a in ARENA_SUITES["arena-iris"].attacks}.isdisjoint({"alfa", "alfa-tilt", "lfa"})
    data = Data("arena-circles", params(seed=1))
    linear, rbf = (
        poisoned_labels(data, attack, [10], 1)[0]
        for attack in (Attack("farthest"), Attack("farthest", params(kernel="rbf")))
    )
    assert not np.array_equal(linear, rbf)


def test_no_method_is_told_the_attack_or_its_level():
    cell = Cell(Data("arena-iris", params(seed=1)), Attack("random"), 10.0, AUTO, None, None, None, 1)
    for method in methods():
        if method != PATH:
            here = replace(cell, method=method)
            other = replace(cell, method=method, level=30.0, attack=Attack("farthest"))
            assert repr(make_estimator(here)) == repr(make_estimator(other))
    assert make_estimator(cell).budget == "auto"
    assert isinstance(make_estimator(replace(cell, method=SVC_DEFAULT)), SVC)


@pytest.mark.parametrize("name", [n for n in ESTIMATORS if n != "floral-fit"])
def test_every_competitor_takes_any_labels(name):
    if name == "cleanlab":
        pytest.importorskip("cleanlab")
    data = load_arena("iris", 1)
    names = np.array(["a", "b", "c"])
    model = ESTIMATORS[name](0).fit(data.X_train, names[data.y_train])
    assert (model.predict(data.X_test) == names[data.y_test]).mean() > 0.85


def test_cleanlab_falls_back_to_its_svc_where_a_class_is_too_small():
    pytest.importorskip("cleanlab")
    data = load_arena("iris", 1)
    y = data.y_train.copy()
    y[np.flatnonzero(y == 2)[1:]] = 1
    assert CleanlabSVC().fit(data.X_train, y).predict(data.X_test).shape == data.y_test.shape
    assert TunedSVC().fit(data.X_train, data.y_train).search_.best_params_["C"] in (0.1, 1.0, 10.0)


@pytest.mark.parametrize("name", ["circles", "iris"])
def test_a_point_of_the_path_is_the_estimator_with_that_budget(name):
    data = load_arena(name, 1, n_train=90)
    cell = Cell(Data(f"arena-{name}", params(seed=1)), None, 0, PATH, None, None, None, 1)
    (result,) = run_paths([cell], [data.y_train], data)
    found = {config: value for config, _, metric, value in result.rows if metric == "accuracy"}
    assert set(found) == {config_name(*point) for point in POINTS}
    off = FloralClassifier(C=10.0, budget=0, n_rounds=ROUNDS).fit(data.X_train, data.y_train)
    assert found["C=10 B=0"] == off.score(data.X_test, data.y_test)


def frame(rows):
    names = ["group", "data", "attack", "level", "split", "method", "path", "accuracy", "balanced_accuracy", "seconds"]
    return pd.DataFrame(rows, columns=names)


def test_the_numbers_of_the_score_card():
    rows = []
    values = {
        "SVC": (0.9, 0.7, 0.6),
        "FLORAL (auto)": (0.89, 0.75, 0.58),
        "C=10 B=0": (0.8, 0.8, 0.5),
        "C=1 B=0.1": (0.9, 0.6, 0.7),
    }
    for method, (clean, first, second) in values.items():
        for split, shift in ((1, 0.01), (2, -0.01)):
            for attack, level, value in (("clean", 0, clean), ("random", 10, first), ("alfa", 10, second)):
                rows.append(
                    ("held out", "iris", attack, level, split, method, " B=" in method, value + shift, 0.5, 0.1)
                )
    card = score_card(frame(rows)).query("group == 'all'").set_index("method")
    auto, oracle = card.loc["FLORAL (auto)"], card.loc[ORACLE]
    assert auto["poisoned"] == pytest.approx(0.665)
    assert auto["worst"] == pytest.approx(-0.02)
    assert auto["clean_loss"] == pytest.approx(0.01)
    assert auto["deviation"] == pytest.approx(0.01)
    assert oracle["poisoned"] == pytest.approx(0.75)  # the best of the path in each cell: 0.8 and 0.7
    assert auto["gap_closed"] == pytest.approx((0.665 - 0.65) / (0.75 - 0.65))
    assert "| **FLORAL (auto)** |" in to_markdown(score_card(frame(rows)))
    half = frame(rows).drop(index=0)  # SVC has no clean fit of split 1: the others' count no more
    assert cell_means(half).loc[("held out", "iris", "clean", 0), "SVC"] == pytest.approx(0.89)


def test_a_small_arena_from_suites_to_files(tmp_path):
    suites = adapted(quick=True, methods=["svc", "floral-fit", "floral-path"], levels=[0, 10])
    assert [suite.name for suite in suites] == [f"arena-{n}-quick" for n in ("moon", "digits-3-8", "iris", "circles")]
    iris = [replace(suites[2], data=(Data("arena-iris", params(seed=1, n_train=60)),))]
    with Store(tmp_path / "store.sqlite") as store:
        report = run_suite(iris[0], store)
        assert report.failed == 0
        assert run_suite(iris[0], store).computed == 0
        found = arena_frame(iris, store)
    assert set(found["method"]) == {"SVC", "FLORAL (auto)", *(config_name(*point) for point in POINTS)}
    assert set(found["group"]) == {"held out"}
    written = write_arena(found, tmp_path / "arena", {"command": "floral bench arena"})
    assert all(path.stat().st_size > 100 for path in written if path.suffix != ".json")
