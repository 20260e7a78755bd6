"""Rows on dask: the game of one machine, also when a worker is killed on the way."""

import os
import signal

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

pytest.importorskip("dask.array")
import dask.array as da
import dask.dataframe as dd

from floral_learn import FloralClassifier
from floral_learn.game import LowRankGram

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 5))
NOISE = 0.3 * RNG.normal(size=900)
TWO = np.where(X[:, 0] * X[:, 1] + NOISE > 0, "a", "b")
THREE = np.digitize(X[:, 0] + NOISE, [-0.5, 0.5])
PARAMS = {"gram": 40, "n_rounds": 30, "random_state": 3, "budget": 0.05}


def spread(y, chunk=250):
    return da.from_array(X, chunks=(chunk, 3)), da.from_array(y, chunks=chunk)


def assert_same_game(many, one):
    np.testing.assert_array_equal(np.sort(many.history_["flips"], axis=1), np.sort(one.history_["flips"], axis=1))
    assert one.history_["flips"].max() > 0  # labels were flipped at all
    np.testing.assert_array_equal(many.support_, one.support_)
    np.testing.assert_allclose(many.dual_coef_, one.dual_coef_, atol=1e-11)
    np.testing.assert_allclose(many.intercept_, one.intercept_, atol=1e-10)
    np.testing.assert_array_equal(many.flip_rate_, one.flip_rate_)
    np.testing.assert_allclose(many.decision_function(X), one.decision_function(X), atol=1e-8)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three classes"])
def test_flips_and_duals_are_those_of_one_machine(y):
    weight = RNG.integers(0, 3, size=900).astype(float)  # rows of weight 0 too
    trusted = RNG.random(900) < 0.2
    one = FloralClassifier(**PARAMS, class_weight="balanced").fit(X, y, sample_weight=weight, trusted=trusted)
    many = FloralClassifier(**PARAMS, class_weight="balanced").fit(
        *spread(y), sample_weight=da.from_array(weight, chunks=500), trusted=trusted
    )
    assert_same_game(many, one)
    assert one.flip_rate_[trusted].max() == 0
    assert many.gamma_ == pytest.approx(one.gamma_, rel=1e-12)
    pd.testing.assert_frame_equal(many.label_issues()[:50], one.label_issues()[:50])


def test_the_rank_is_chosen_as_on_one_machine_and_no_attacker_is_the_svm():
    params = PARAMS | {"gram": "low_rank", "gamma": 0.02}
    one, many = FloralClassifier(**params).fit(X, TWO), FloralClassifier(**params).fit(*spread(TWO))
    assert many.gram_ == one.gram_
    assert_same_game(many, one)
    exact = [FloralClassifier(**PARAMS | {"budget": 0, "n_rounds": 500}).fit(*rows) for rows in ((X, TWO), spread(TWO))]
    np.testing.assert_allclose(exact[1].dual_coef_, exact[0].dual_coef_, atol=1e-8)


def test_predictions_of_dask_rows_are_lazy_and_the_same():
    for y in (TWO, THREE):
        rows, labels = spread(y)
        clf = FloralClassifier(**PARAMS | {"n_rounds": 8}).fit(rows, labels)
        scores, classes = clf.decision_function(rows), clf.predict(rows)
        assert isinstance(scores, da.Array)
        assert scores.shape == clf.decision_function(X).shape
        np.testing.assert_allclose(scores.compute(), clf.decision_function(X), atol=1e-12)
        np.testing.assert_array_equal(classes.compute(), clf.predict(X))


def test_csv_and_parquet_through_dataframes(tmp_path):
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(5)]).assign(label=TWO)
    for i in range(3):
        frame[300 * i : 300 * (i + 1)].to_csv(tmp_path / f"part-{i}.csv", index=False)
        frame[300 * i : 300 * (i + 1)].to_parquet(tmp_path / f"part-{i}.parquet")
    one = FloralClassifier(**PARAMS).fit(X, TWO)
    for table in (dd.read_csv(str(tmp_path / "*.csv")), dd.read_parquet(str(tmp_path / "*.parquet"))):
        many = FloralClassifier(**PARAMS).fit(table, "label")
        assert list(many.feature_names_in_) == [f"f{j}" for j in range(5)]
        assert_same_game(many, one)
        np.testing.assert_array_equal(many.predict(table).compute(), one.predict(X))
        apart = FloralClassifier(**PARAMS).fit(table.drop(columns="label"), table["label"])
        np.testing.assert_array_equal(apart.dual_coef_, many.dual_coef_)


def test_bad_input_is_named():
    rows, labels = spread(TWO)
    broken = X.copy()
    broken[7, 1] = np.nan
    refuses("NaN or infinity", FloralClassifier(**PARAMS).fit, da.from_array(broken, chunks=(400, 5)), labels)
    refuses("900 rows and y has 700", FloralClassifier(**PARAMS).fit, rows, labels[:700])
    refuses("only one class", FloralClassifier(**PARAMS).fit, rows, da.zeros(900, chunks=400))
    for what, wrong in {"gram": "dense", "device": "cpu", "kernel": "sigmoid"}.items():
        refuses(what, FloralClassifier(**{what: wrong}).fit, rows, labels)


def test_a_killed_worker_does_not_change_the_fit(monkeypatch):
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        whole = FloralClassifier(**PARAMS).fit(*spread(TWO))
        before, calls, product = set(client.scheduler_info(n_workers=-1)["workers"]), [], LowRankGram.matmat

        def kill(self, columns):
            calls.append(1)
            if len(calls) == 12:
                os.kill(client.run(os.getpid)[min(before)], signal.SIGKILL)
            return product(self, columns)

        monkeypatch.setattr(LowRankGram, "matmat", kill)
        many = FloralClassifier(**PARAMS).fit(*spread(TWO))
        assert len(calls) > 12
        assert min(before) not in client.scheduler_info(n_workers=-1)["workers"]
    np.testing.assert_array_equal(many.history_["flips"], whole.history_["flips"])
    np.testing.assert_array_equal(many.dual_coef_, whole.dual_coef_)
    assert_same_game(many, FloralClassifier(**PARAMS).fit(X, TWO))
