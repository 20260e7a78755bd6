"""The game on a cluster of processes is the game of one machine, also when a worker is killed on the way."""

import os
import signal

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("distributed")
import dask.array as da
import dask.dataframe as dd
from distributed import Client, LocalCluster

from floral_learn import FloralClassifier
from floral_learn.floral import dask_rows
from floral_learn.floral.dask_rows import tie_ranks
from floral_learn.floral.settings import Engine
from floral_learn.game.arrays import draw
from floral_learn.game.attackers import TIES
from floral_learn.paper import PaperFloralClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1500, 5))
NOISE = 0.3 * RNG.normal(size=1500)
TWO = np.where(X[:, 0] * X[:, 1] + NOISE > 0, "a", "b")
THREE = np.digitize(X[:, 0] + NOISE, [-0.5, 0.5])
ENGINE = Engine(gram="low_rank", rank=40, dtype="float64")
PARAMS = {"engine": ENGINE, "n_rounds": 30, "random_state": 3, "budget": 0.05}
SHORT = PARAMS | {"n_rounds": 8}


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as made:
        yield made


def spread(y, chunk=400):
    return da.from_array(X, chunks=(chunk, 3)), da.from_array(y, chunks=chunk)


def assert_same_game(many, one):
    np.testing.assert_array_equal(many.history_["flips"], one.history_["flips"])
    assert one.history_["flips"].max() > 0  # labels were flipped at all
    np.testing.assert_array_equal(many.support_, one.support_)
    np.testing.assert_allclose(many.dual_coef_, one.dual_coef_, atol=1e-11)
    np.testing.assert_allclose(many.history_["objective"], one.history_["objective"], rtol=1e-10)
    np.testing.assert_allclose(many.history_["residual"], one.history_["residual"], atol=1e-10)
    np.testing.assert_allclose(many.intercept_, one.intercept_, atol=1e-10)
    np.testing.assert_array_equal(many.flip_rate_, one.flip_rate_)
    np.testing.assert_allclose(many.decision_function(X), one.decision_function(X), atol=1e-8)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three classes"])
def test_flips_and_duals_are_those_of_one_machine(client, y):
    weight = RNG.uniform(0.5, 2, size=1500)
    trusted = RNG.random(1500) < 0.2
    params = PARAMS | {"class_weight": "balanced", "gamma": "scale"}
    one = FloralClassifier(**params).fit(X, y, sample_weight=weight, trusted=trusted)
    many = FloralClassifier(**params).fit(*spread(y), sample_weight=da.from_array(weight, chunks=500), trusted=trusted)
    assert_same_game(many, one)
    assert one.flip_rate_[trusted].max() == 0
    assert many.gamma_ == pytest.approx(one.gamma_, rel=1e-12)
    assert many.learning_rate_ == pytest.approx(one.learning_rate_, rel=1e-9)
    pd.testing.assert_frame_equal(many.label_issues()[:50], one.label_issues()[:50])


def test_the_rank_is_chosen_as_on_one_machine(client):
    params = PARAMS | {"engine": Engine(gram="low_rank", dtype="float64"), "gamma": 0.02}
    one, many = FloralClassifier(**params).fit(X, TWO), FloralClassifier(**params).fit(*spread(TWO))
    assert many.gram_ == one.gram_
    assert_same_game(many, one)


def test_predictions_of_dask_rows_are_lazy_and_the_same(client):
    for y in (TWO, THREE):
        rows, labels = spread(y)
        clf = FloralClassifier(**SHORT).fit(rows, labels)
        scores, classes = clf.decision_function(rows), clf.predict(rows)
        assert isinstance(scores, da.Array)
        assert scores.shape == clf.decision_function(X).shape
        np.testing.assert_allclose(scores.compute(), clf.decision_function(X), atol=1e-12)
        np.testing.assert_array_equal(classes.compute(), clf.predict(X))


class KillOnce:
    """Callback that kills a worker process after a round, without a word to anybody."""

    def __init__(self, client, after):
        self.client, self.after, self.killed, self.rounds = client, after, None, []

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.parent is None:
            return
        self.rounds.append(estimator._running_fit.state.round)
        if self.rounds[-1] == self.after and self.killed is None:
            self.killed = sorted(self.client.scheduler_info(n_workers=-1)["workers"])[0]
            os.kill(self.client.run(os.getpid)[self.killed], signal.SIGKILL)

    def teardown(self, estimator, context):
        pass


@pytest.mark.parametrize(
    "after", [pytest.param(1, marks=pytest.mark.slow), 28], ids=["before a checkpoint", "after a checkpoint"]
)
def test_a_killed_worker_does_not_lose_the_fit(client, after):
    one = FloralClassifier(**PARAMS).fit(X, TWO)
    client.wait_for_workers(2)  # another test may have killed one
    kill = KillOnce(client, after)
    many = FloralClassifier(**PARAMS).set_callbacks(kill).fit(*spread(TWO))
    assert kill.killed is not None
    assert kill.killed not in client.scheduler_info(n_workers=-1)["workers"]
    assert kill.rounds == list(range(1, 31))  # each round is reported once
    assert_same_game(many, one)


def test_a_worker_killed_while_the_factor_grows_is_replaced(client, monkeypatch):
    params = PARAMS | {"engine": Engine(gram="low_rank", rank=120, dtype="float64"), "n_rounds": 5}
    one = FloralClassifier(**params).fit(X, TWO)
    client.wait_for_workers(2)
    before = set(client.scheduler_info(n_workers=-1)["workers"])
    grown = []

    def kill(made, most):
        grown.append(made)
        if len(grown) == 1:
            os.kill(client.run(os.getpid)[min(before)], signal.SIGKILL)

    monkeypatch.setattr("floral_learn.floral.fitting._factor_log", kill)
    many = FloralClassifier(**params, verbose=1).fit(*spread(TWO))
    assert min(before) not in client.scheduler_info(n_workers=-1)["workers"]
    assert grown.count(grown[0]) == 2  # the factor was begun twice
    assert_same_game(many, one)


def test_csv_and_parquet_through_dataframes(client, tmp_path):
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(5)]).assign(label=TWO)
    for i in range(3):
        frame[500 * i : 500 * (i + 1)].to_csv(tmp_path / f"part-{i}.csv", index=False)
        frame[500 * i : 500 * (i + 1)].to_parquet(tmp_path / f"part-{i}.parquet")
    one = FloralClassifier(**SHORT).fit(X, TWO)
    for table in (dd.read_csv(str(tmp_path / "*.csv")), dd.read_parquet(str(tmp_path / "*.parquet"))):
        many = FloralClassifier(**SHORT).fit(table, "label")
        assert list(many.feature_names_in_) == [f"f{j}" for j in range(5)]
        np.testing.assert_array_equal(many.history_["flips"], one.history_["flips"])
        np.testing.assert_allclose(many.dual_coef_, one.dual_coef_, atol=1e-9)
        np.testing.assert_array_equal(many.predict(table).compute(), one.predict(X))
        apart = FloralClassifier(**SHORT).fit(table.drop(columns="label"), table["label"])
        np.testing.assert_array_equal(apart.history_["flips"], one.history_["flips"])


def test_bad_input_is_named(client):
    rows, labels = spread(TWO)
    broken = X.copy()
    broken[7, 1] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity"):
        FloralClassifier(**PARAMS).fit(da.from_array(broken, chunks=(400, 5)), labels)
    with pytest.raises(ValueError, match="1,500 rows and y has 1,400"):
        FloralClassifier(**PARAMS).fit(rows, labels[:1400])
    with pytest.raises(ValueError, match="only one class"):
        FloralClassifier(**PARAMS).fit(rows, da.zeros(1500, chunks=400))
    with pytest.raises(ValueError, match="weight 0"):
        FloralClassifier(**PARAMS).fit(rows, labels, sample_weight=np.r_[0.0, np.ones(1499)])
    refused = {
        "gram": FloralClassifier(engine=Engine(gram="dense")),
        "device": FloralClassifier(engine=Engine(device="cpu")),
        "kernel": FloralClassifier(kernel="sigmoid"),
        "projection": PaperFloralClassifier(projection="fixed_point"),
    }
    for what, clf in refused.items():
        with pytest.raises(ValueError, match=what):
            clf.fit(rows, labels)


def test_without_a_client_the_way_to_one_is_shown(monkeypatch):
    import distributed.client

    monkeypatch.setattr(distributed.client, "_get_global_client", lambda: None)
    with pytest.raises(ValueError, match="make a client first"):
        FloralClassifier(**PARAMS).fit(*spread(TWO))


def test_places_among_ties_need_no_sort_of_all_rows(monkeypatch):
    monkeypatch.setattr(dask_rows, "_RANKED_AT_ONCE", 100)
    seeds = np.array([12345])
    order = draw(seeds, 3 * TIES, np.arange(950)[:, None])
    expected = np.argsort(np.argsort(order, axis=0, kind="stable"), axis=0)
    found = np.concatenate([tie_ranks(seeds, start, stop, 950) for start, stop in ((0, 333), (333, 950))])
    np.testing.assert_array_equal(found, expected)
