"""A fit that is killed continues with the same bits."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.datasets import make_blobs, make_moons

from floral_learn import FloralClassifier, load, save
from floral_learn.floral.checkpoint import Checkpoint, resume
from floral_learn.floral.settings import Engine

X, Y = make_moons(120, noise=0.2, random_state=0)
NAMES = np.array(["no", "yes"], dtype=object)[Y]


class StopAt:
    def __init__(self, round):
        self.round = round

    def setup(self, estimator, context): ...
    def teardown(self, estimator, context): ...
    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        if context.parent is not None and context.task_id == self.round:
            raise KeyboardInterrupt


def interrupted(path, at, rows=X, labels=NAMES, every=50, fit=None, **params):
    params = {"budget": 0.1, "random_state": 0, "n_rounds": 150, "tol": 1e-7, **params}
    clf = FloralClassifier(**params).set_callbacks(Checkpoint(path, every=every), StopAt(at))
    with pytest.raises(KeyboardInterrupt):
        clf.fit(rows, labels, **(fit or {}))
    return FloralClassifier(**params).fit(rows, labels, **(fit or {}))


def assert_same(a, b, rows=X):
    np.testing.assert_array_equal(a.decision_function(rows), b.decision_function(rows))
    np.testing.assert_array_equal(a.flip_rate_, b.flip_rate_)
    for name, values in a.history_.items():
        np.testing.assert_array_equal(b.history_[name], values, err_msg=name)


@pytest.mark.parametrize("at", [3, 60, 149])
def test_an_interrupted_fit_continues_with_the_same_bits(tmp_path, at):
    whole = interrupted(tmp_path / "run.ckpt", at)
    assert_same(whole, resume(tmp_path / "run.ckpt"))


@pytest.mark.parametrize("budget", [0.1, 0])
def test_a_fit_that_settled_is_resumed_as_it_is(tmp_path, budget):
    whole = interrupted(tmp_path / "run.ckpt", 20, every=10, budget=budget, tol=1e-3, n_rounds=500)
    assert whole.n_iter_ < 500
    assert_same(whole, resume(tmp_path / "run.ckpt"))
    done = FloralClassifier(budget=budget, random_state=0).set_callbacks(Checkpoint(tmp_path / "done")).fit(X, NAMES)
    assert_same(done, resume(tmp_path / "done"))


def test_weights_trust_and_multi_class_survive(tmp_path):
    P, labels = make_blobs(100, centers=3, cluster_std=3, random_state=0)
    fit = {"sample_weight": np.arange(100) % 3 * 1.0, "trusted": np.arange(100) % 5 == 0}
    whole = interrupted(tmp_path / "run.ckpt", 80, P, labels, fit=fit)
    again = resume(tmp_path / "run.ckpt")
    # Rounds that nobody looks at are closed together: of several columns the bias then agrees to rounding.
    for name in ("flips", "mu", "projection_iterations"):
        np.testing.assert_array_equal(again.history_[name], whole.history_[name], err_msg=name)
    np.testing.assert_array_equal(again.dual_coef_, whole.dual_coef_)
    np.testing.assert_allclose(again.decision_function(P), whole.decision_function(P), rtol=0, atol=1e-12)


def test_csr_rows_low_rank_and_torch_survive(tmp_path):
    S = sparse.csr_matrix(X)
    whole = interrupted(tmp_path / "a", 80, S, Y, engine=Engine(gram="low_rank", rank=40))
    assert_same(whole, resume(tmp_path / "a"), S)
    whole = interrupted(tmp_path / "b", 80, engine=Engine(device="cpu", dtype="float32"))
    assert_same(whole, resume(tmp_path / "b"))


def test_feature_names_survive(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b"])
    interrupted(tmp_path / "run.ckpt", 60, frame)
    assert list(resume(tmp_path / "run.ckpt").feature_names_in_) == ["a", "b"]


def test_a_resumed_fit_can_be_interrupted_again(tmp_path):
    path = tmp_path / "run.ckpt"
    whole = interrupted(path, 60)
    real = Checkpoint._write
    writes = []

    def fail_once(self, running):
        real(self, running)
        writes.append(running.state.round)
        if len(writes) == 1:
            raise KeyboardInterrupt

    Checkpoint._write = fail_once
    try:
        with pytest.raises(KeyboardInterrupt):
            resume(path, every=20)
    finally:
        Checkpoint._write = real
    assert writes == [60]
    assert_same(whole, resume(path))


def test_a_finished_fit_resumes_to_itself_and_may_be_replaced(tmp_path):
    path = tmp_path / "run.ckpt"
    clf = FloralClassifier(n_rounds=30, budget=0.1, random_state=0).set_callbacks(Checkpoint(path)).fit(X, Y)
    assert_same(clf, resume(path))
    FloralClassifier(n_rounds=10).set_callbacks(Checkpoint(path)).fit(X, Y)
    assert resume(path).n_iter_ == 10


def test_an_unfinished_fit_is_not_overwritten_by_accident(tmp_path):
    path = tmp_path / "run.ckpt"
    interrupted(path, 60)
    with pytest.raises(ValueError, match=r"holds a fit that has not ended: continue it with resume"):
        FloralClassifier(n_rounds=10).set_callbacks(Checkpoint(path)).fit(X, Y)
    FloralClassifier(n_rounds=10).set_callbacks(Checkpoint(path, overwrite=True)).fit(X, Y)
    assert resume(path).n_iter_ == 10


def test_a_resumed_model_can_be_saved_and_loaded(tmp_path):
    interrupted(tmp_path / "run.ckpt", 60)
    clf = resume(tmp_path / "run.ckpt")
    save(clf, tmp_path / "model.skops")
    np.testing.assert_array_equal(load(tmp_path / "model.skops").predict(X), clf.predict(X))
    watched = FloralClassifier(n_rounds=10).set_callbacks(Checkpoint(tmp_path / "other")).fit(X, Y)
    save(watched, tmp_path / "watched.skops")
    load(tmp_path / "watched.skops")
    assert watched._skl_callbacks  # saving does not take them away


def test_a_state_of_another_fit_is_not_played_on(tmp_path):
    whole = interrupted(tmp_path / "a", 60)
    interrupted(tmp_path / "b", 60, labels=np.roll(NAMES, 7))
    (tmp_path / "a" / "state.npz").write_bytes((tmp_path / "b" / "state.npz").read_bytes())
    assert_same(whole, resume(tmp_path / "a"))  # from the start


def test_memory_maps_survive_and_paths_are_refused(tmp_path):
    np.save(tmp_path / "X.npy", X)
    whole = interrupted(tmp_path / "run.ckpt", 60, np.load(tmp_path / "X.npy", mmap_mode="r"))
    assert_same(whole, resume(tmp_path / "run.ckpt"))
    clf = FloralClassifier(n_rounds=10).set_callbacks(Checkpoint(tmp_path / "other"))
    with pytest.raises(TypeError, match="rows that are in memory"):
        clf.fit(str(tmp_path / "X.npy"), Y)


def test_errors_say_what_is_wrong(tmp_path):
    with pytest.raises(FileNotFoundError, match="no checkpoint in"):
        resume(tmp_path / "nothing")
    with pytest.raises(ValueError, match="every=0 must be at least 1"):
        Checkpoint(tmp_path, every=0)
    interrupted(tmp_path / "run.ckpt", 60)
    (tmp_path / "run.ckpt" / "state.npz").write_bytes(b"half a file")
    with pytest.raises(ValueError, match="is damaged"):
        resume(tmp_path / "run.ckpt")
    with pytest.raises(TypeError, match="works with FloralClassifier"):
        Checkpoint(tmp_path / "other").setup(BaseEstimator(), None)
    with pytest.raises(ValueError, match="kernel is a function"):
        FloralClassifier(kernel=lambda A, B: A @ B.T).set_callbacks(Checkpoint(tmp_path / "c")).fit(X, Y)


SCRIPT = """
import sys
from sklearn.datasets import make_moons
from floral_learn import FloralClassifier
from floral_learn.floral.checkpoint import Checkpoint
from floral_learn.floral.settings import Engine
X, y = make_moons(400, noise=0.2, random_state=0)
clf = FloralClassifier(budget=0.1, n_rounds=100_000, tol=None, random_state=0)
clf.set_callbacks(Checkpoint(sys.argv[1], every=7)).fit(X, y)
"""


@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_a_process_killed_at_random_moments_leaves_a_checkpoint_that_can_be_read(tmp_path, kills):
    rng = np.random.default_rng(kills)
    P, labels = make_moons(400, noise=0.2, random_state=0)
    for attempt in range(kills):
        path = tmp_path / f"{attempt}.ckpt"
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(path)])
        for _ in range(6000):  # wait for the first state, then kill it in the middle of something
            if (path / "state.npz").exists() or process.poll() is not None:
                break
            time.sleep(0.05)
        time.sleep(rng.uniform(0, 0.3))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        with np.load(path / "state.npz") as state:
            played = int(state["counters"][0])
        assert played > 0
        assert played % 7 == 0
        # Playing 100,000 rounds to the end would only take time: compare the rounds that are there.
        whole = FloralClassifier(budget=0.1, n_rounds=100_000, tol=None, random_state=0)
        whole = whole.set_callbacks(StopAfter(played)).fit(P, labels)
        with np.load(path / "state.npz") as state:
            np.testing.assert_allclose(state["history.bias"][:, 0], whole.history_["bias"], atol=1e-9)


class StopAfter(StopAt):
    def on_fit_task_end(self, estimator, context):
        return context.parent is not None and context.task_id == self.round - 1
