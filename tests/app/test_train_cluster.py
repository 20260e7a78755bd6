"""``floral train --cluster``: the model of the workers is the model of one machine, and floral predict reads it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_moons
from typer.testing import CliRunner

pytest.importorskip("distributed")
from distributed import Client, LocalCluster

from floral_learn import load
from floral_learn.app import make_app, train


def run(*arguments):
    return CliRunner().invoke(make_app(), [str(a) for a in arguments])


@pytest.fixture(scope="module")
def address():
    # Two workers behind an address, in threads: tests/floral/test_dask_fit.py has processes.
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**options, protocol="tcp://") as cluster, Client(cluster):
        yield cluster.scheduler_address


@pytest.fixture
def table(tmp_path):
    X, y = make_moons(300, noise=0.15, random_state=0)
    frame = pd.DataFrame({"x1": X[:, 0], "x2": X[:, 1], "colour": np.where(np.arange(300) % 2, "red", "green")})
    frame["x2"] = frame["x2"].where(np.arange(300) % 20 > 0)  # some missing
    frame["verdict"] = np.where(y == 1, "good", "bad")
    frame.to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "parts").mkdir()
    for i in range(3):
        frame[100 * i : 100 * (i + 1)].to_parquet(tmp_path / "parts" / f"{i}.parquet")
    return tmp_path


@pytest.mark.parametrize("source", ["data.csv", "parts"])
def test_a_cluster_trains_what_predict_can_use(address, table, source, monkeypatch):
    make = train.make_classifier
    monkeypatch.setattr(train, "make_classifier", lambda *options: make(*options).set_params(n_rounds=25))
    out = table / "model.skops"
    done = run("train", table / source, "--label", "verdict", "--out", out, "--gamma", "1.0", "--cluster", address)
    assert done.exit_code == 0, done.output
    assert "trained floral on 300 rows, budget 0.05" in done.output
    assert "2 number columns standardised" in done.output
    done = run("predict", out, table / "data.csv", "--out", table / "predictions.csv")
    assert done.exit_code == 0, done.output
    predicted = pd.read_csv(table / "predictions.csv")["prediction"]
    assert (predicted == pd.read_csv(table / "data.csv")["verdict"]).mean() > 0.9
    assert load(out)[-1].gram_.startswith("low rank")


def test_what_a_cluster_cannot_do_is_one_line(address, table):
    out = table / "model.skops"
    common = ("train", table / "data.csv", "--out", out)
    for arguments, message in (
        (("--label", "verdict", "--cluster", address, "--method", "svm"), "--cluster is for --method floral"),
        (("--label", "nothing", "--cluster", address), "no column 'nothing'"),
        (("--label", "verdict", "--cluster", "bad address"), "no dask scheduler answers at --cluster bad address"),
    ):
        done = run(*common, *arguments)
        assert done.exit_code == 2, done.output
        assert message in done.output
        assert "Traceback" not in done.output
        assert not out.exists()
