"""The arena: its data sets and attacks, its methods, its score card; nothing in it sees a clean label."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

from floral_bench.arena import ARENA_SUITES, RAREST, VOTES, adapted, arena_card, over_plain, score_card
from floral_bench.arena_data import ARENA, SEVERAL_CLASSES, load_arena
from floral_bench.arena_methods import BASES, ESTIMATORS, MODELS, CleanlabClassifier, TunedSVC, methods
from floral_bench.cell_data import poisoned_labels
from floral_bench.experiments import experiment
from floral_bench.families.single_fits import make_estimator
from floral_bench.public_tables import TABLES, load_table
from floral_bench.runner import run_cells
from floral_bench.spec import Attack, Cell, Data, params
from floral_bench.store import Store
from floral_learn.datasets import DataNotFoundError

WITH_FILES = (  # under FLORAL_DATA, or downloaded
    "spambase", "spambase-rare", "labelme", "phoneme", "phoneme-rare", "pima", "htru2", "mnist-1-7", "magic04",
    "magic04-overlap", "satimage", "banknote", "imdb",
)  # fmt: skip
WITHOUT_FILES = [name for name in ARENA if name not in WITH_FILES]


def check_split(name):
    first, second = load_arena(name, 1), load_arena(name, 2)
    assert len(first.y_train) <= 1000
    assert len(first.y_test) <= 1000
    assert len(first.y_val) == 0
    assert set(first.y_test) == set(first.y_train)
    assert first.poisoned.size == 0
    assert (len(first.classes) > 2) == (name in SEVERAL_CLASSES)
    assert not np.array_equal(first.X_train, second.X_train)


@pytest.mark.parametrize("name", WITHOUT_FILES)
def test_every_data_set_has_clean_labels_and_a_split_of_its_own(name):
    check_split(name)
    np.testing.assert_allclose(load_arena(name, 1).X_train.std(axis=0).max(), 1, atol=0.2)


@pytest.mark.data("tables/spambase.npz")
@pytest.mark.parametrize("name", [name for name in WITH_FILES if name not in ("imdb", "mnist-1-7")])
def test_every_real_table_has_them_too(name):
    check_split(name)


@pytest.mark.data("mnist.npz")
def test_mnist_is_reduced_on_its_training_rows():
    data = load_arena("mnist-1-7", 1)
    assert data.X_train.shape == (1000, 50)
    assert SVC().fit(data.X_train, data.y_train).score(data.X_test, data.y_test) > 0.98


@pytest.mark.data("tables/labelme_crowd.npz")
def test_labelme_brings_real_votes_a_quarter_of_them_wrong():
    data = load_arena("labelme", 1, n_train=400)
    (labels,) = poisoned_labels(Data("arena-labelme", params(seed=1, n_train=400)), VOTES, [26], 1)
    np.testing.assert_array_equal(labels, data.info["votes"])
    assert 0.15 < (labels != data.y_train_clean).mean() < 0.4


def test_bad_names_missing_files_and_fewer_rows(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="unknown data set 'cifar' of the arena"):
        load_arena("cifar")
    with pytest.raises(ValueError, match="unknown table 'adult'; known: spambase"):
        load_table("adult")
    assert len(load_arena("iris", n_train=30).y_train) == 30
    monkeypatch.setenv("FLORAL_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(DataNotFoundError, match=r"imdb-minilm.npz not found.*imdb_embeddings.py"):
        load_arena("imdb")


def test_a_table_comes_from_openml_once_and_from_the_cache_afterwards(tmp_path, monkeypatch):
    calls = []

    def fetch(data_id, **_):
        calls.append(data_id)
        return type("Bunch", (), {"data": np.arange(12.0).reshape(6, 2), "target": np.array(list("121122"))})

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    monkeypatch.setenv("FLORAL_DATA", "")
    for _ in range(2):
        X, y = load_table("phoneme", data_home=tmp_path)
        assert X.shape == (6, 2)
        assert y.tolist() == [-1, 1, -1, -1, 1, 1]
    assert calls == [TABLES["phoneme"].openml]

    def refuse(data_id, **_):
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", refuse)
    with pytest.raises(DataNotFoundError, match=r"spambase.npz not found in .* no network"):
        load_table("spambase", data_home=tmp_path)


def test_attacks_on_two_classes_skip_the_others_and_farthest_has_two_victims():
    assert {a.name for a in ARENA_SUITES["arena-moon"].attacks} >= {"alfa", "alfa-tilt", "lfa"}
    assert {a.name for a in ARENA_SUITES["arena-iris"].attacks}.isdisjoint({"alfa", "alfa-tilt", "lfa"})
    assert ARENA_SUITES["arena-imdb"].attacks[0].name == "gradient"
    data = Data("arena-circles", params(seed=1))
    linear, rbf = (
        poisoned_labels(data, attack, [10], 1)[0]
        for attack in (Attack("farthest"), Attack("farthest", params(kernel="rbf")))
    )
    assert not np.array_equal(linear, rbf)


def test_the_rarest_class_loses_twice_the_level_of_its_own_labels():
    data = load_arena("imbalanced", 1)
    (labels,) = poisoned_labels(Data("arena-imbalanced", params(seed=1)), RAREST, [30], 1)
    changed = labels != data.y_train_clean
    assert set(data.y_train_clean[changed]) == {1}
    assert changed.sum() == int(0.6 * (data.y_train_clean == 1).sum())


def test_no_method_is_told_the_attack_or_its_level():
    cell = Cell(Data("arena-iris", params(seed=1)), Attack("random"), 10.0, methods()[0], None, None, None, 1)
    for method in methods():
        here = replace(cell, method=method)
        other = replace(cell, method=method, level=30.0, attack=Attack("farthest"))
        assert repr(make_estimator(here)) == repr(make_estimator(other))
        assert BASES[method.title] in {title for title, _ in MODELS.values()}
    assert isinstance(make_estimator(cell), SVC)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_competitor_takes_any_labels(name):
    if name.startswith("cleanlab"):
        pytest.importorskip("cleanlab")
    if "boosting" in name or name in ("cleanlab-forest", "safe-forest"):
        return  # the same code as the others, and slow
    data = load_arena("iris", 1)
    names = np.array(["a", "b", "c"])
    model = ESTIMATORS[name](0).fit(data.X_train, names[data.y_train])
    assert (model.predict(data.X_test) == names[data.y_test]).mean() > 0.85


def test_cleanlab_falls_back_to_its_model_where_a_class_is_too_small():
    pytest.importorskip("cleanlab")
    data = load_arena("iris", 1)
    y = data.y_train.copy()
    y[np.flatnonzero(y == 2)[1:]] = 1
    assert CleanlabClassifier(SVC()).fit(data.X_train, y).predict(data.X_test).shape == data.y_test.shape
    assert TunedSVC().fit(data.X_train, data.y_train).search_.best_params_["C"] in (0.1, 1.0, 10.0)


def test_the_numbers_of_the_score_card():
    rows = []
    values = {"SVC": (0.9, 0.7, 0.6), "safe SVC": (0.89, 0.75, 0.57), "k-NN": (0.8, 0.8, 0.5)}
    for method, (clean, first, second) in values.items():
        for split, shift in ((1, 0.01), (2, -0.01)):
            more = 0.02 * split if method == "safe SVC" else 0.0
            for attack, level, value in (("clean", 0, clean), ("random", 10, first + more), ("alfa", 10, second)):
                rows.append(("iris", attack, level, split, method, value + shift, value, 0.1))
    names = ["data", "attack", "level", "split", "method", "accuracy", "balanced_accuracy", "seconds"]
    frame = pd.DataFrame(rows, columns=names)
    card = score_card(frame).set_index("method")
    assert card.index[0] == "safe SVC", "the best on poisoned labels is first"
    expected = {"poisoned": (0.75 + 0.03 + 0.57) / 2, "gain": (0.08 - 0.03) / 2, "median": (0.08 - 0.03) / 2}
    expected |= {"worst": -0.03, "clean_gain": -0.01, "below": 0.5, "above": 0.5, "balanced": (0.08 - 0.03) / 2}
    assert card.loc["safe SVC", list(expected)].to_dict() == pytest.approx(expected)
    assert np.isnan(card.loc["SVC", "gain"])
    assert "| safe SVC |" in arena_card(frame)
    half = frame.drop(index=0)  # SVC has no clean fit of split 1: there is no pair
    assert over_plain(half).loc[("iris", "clean", 0), "safe SVC"] == pytest.approx(-0.01)


def test_a_small_arena_from_cells_to_files(tmp_path):
    given = {"quick": True, "methods": ["plain-svc", "safe-svc", "knn"], "levels": [0, 30]}
    assert [suite.name for suite in adapted(**given)] == [
        f"arena-{n}-quick" for n in ("moon", "digits-3-8", "iris", "imbalanced")
    ]
    arena = experiment("arena", given)
    iris = replace(arena, cells=[cell for cell in arena.cells if cell.data.name == "arena-iris"])
    with Store(tmp_path / "store.sqlite") as store:
        assert run_cells(iris.cells, store).failed == 0
        assert run_cells(iris.cells, store).computed == 0
        found = iris.read(iris.cells, store)
    assert set(found["method"]) == {"SVC", "safe SVC", "k-NN"}
    assert iris.averaged(found)["splits"].eq(1).all()
    written = iris.write(found, tmp_path / "arena", {"command": "floral bench arena"})
    assert {path.name for path in written} == {"card.md", "cells.csv", "run.json"}
