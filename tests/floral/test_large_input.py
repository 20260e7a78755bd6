"""A fit that reads X from a file is the fit of the matrix, without the matrix in memory."""

import re
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from floral_learn import FloralClassifier, load, save
from floral_learn.floral.settings import Engine
from floral_learn.game import row_blocks

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3300, 6))
Y = np.where(X[:, 0] * X[:, 1] + 0.2 * RNG.normal(size=3300) > 0, "yes", "no")
ENGINE = Engine(gram="low_rank", rank=50, dtype="float64")
PARAMS = {"engine": ENGINE, "n_rounds": 40, "random_state": 0, "budget": 0.05}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setattr(row_blocks, "BLOCK_BYTES", 6 * 8 * 1000)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(6)]).assign(label=Y)
    frame.to_parquet(tmp_path / "data.parquet", row_group_size=800)
    return tmp_path


@pytest.fixture(scope="module")
def in_memory():
    return FloralClassifier(**PARAMS).fit(X, Y)


def sources(folder):
    return {
        "npy": (folder / "X.npy", Y),
        "npy and labels in a file": (str(folder / "X.npy"), folder / "y.npy"),
        "memory map": (np.load(folder / "X.npy", mmap_mode="r"), Y),
        "parquet": (folder / "data.parquet", "label"),
    }


def test_every_source_gives_the_model_of_the_matrix(files, in_memory):
    for name, (rows, labels) in sources(files).items():
        clf = FloralClassifier(**PARAMS).fit(rows, labels)
        np.testing.assert_array_equal(clf.history_["flips"], in_memory.history_["flips"], err_msg=name)
        np.testing.assert_allclose(clf.dual_coef_, in_memory.dual_coef_, atol=1e-10, err_msg=name)
        np.testing.assert_array_equal(clf.predict(rows), in_memory.predict(X), err_msg=name)
        assert clf.support_vectors_.shape == (0, 6)
        assert clf.n_features_in_ == 6
        assert len(clf.label_issues()) == 3300


def test_weights_of_zero_leave_rows_of_a_file_out(files):
    weight = (np.arange(3300) % 3 > 0).astype(float)
    clf = FloralClassifier(**PARAMS).fit(files / "X.npy", Y, sample_weight=weight)
    same = FloralClassifier(**PARAMS).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(clf.decision_function(X), same.decision_function(X), atol=1e-8)


def test_names_of_parquet_columns_decide_not_their_order(files):
    clf = FloralClassifier(**PARAMS).fit(files / "data.parquet", "label")
    assert list(clf.feature_names_in_) == [f"f{j}" for j in range(6)]
    frame = pd.read_parquet(files / "data.parquet")
    frame[["f3", "label", "f0", "f1", "f2", "f5", "f4"]].to_parquet(files / "mixed.parquet")
    expected = clf.predict(files / "data.parquet")
    assert len(set(expected)) == 2
    np.testing.assert_array_equal(clf.predict(files / "mixed.parquet"), expected)
    frame.drop(columns="f2").to_parquet(files / "less.parquet")
    with pytest.raises(ValueError, match="no column 'f2'"):
        clf.predict(files / "less.parquet")


def test_a_model_from_a_file_is_saved_and_loaded(files):
    clf = FloralClassifier(**PARAMS).fit(files / "X.npy", Y)
    save(clf, files / "model.skops")
    np.testing.assert_array_equal(load(files / "model.skops").predict(X), clf.predict(X))


def test_wrong_input_is_refused(files):
    with pytest.raises(ValueError, match="3,300 rows and y has shape"):
        FloralClassifier().fit(files / "X.npy", Y[:-1])
    with pytest.raises(ValueError, match="no column 'target'"):
        FloralClassifier().fit(files / "data.parquet", "target")
    with pytest.raises(ValueError, match="only a Parquet file"):
        FloralClassifier().fit(np.load(files / "X.npy", mmap_mode="r"), "label")
    with pytest.raises(ValueError, match="named kernel"):
        FloralClassifier(kernel="precomputed").fit(files / "X.npy", Y)
    clf = FloralClassifier(**PARAMS).fit(files / "X.npy", Y)
    np.save(files / "narrow.npy", X[:, :4])
    with pytest.raises(ValueError, match="4 features, but the model expects 6"):
        clf.predict(files / "narrow.npy")


def test_progress_shows_the_factor_and_the_rounds(files, capfd):
    FloralClassifier(**PARAMS, verbose=1).fit(files / "X.npy", Y)
    shown = capfd.readouterr().err
    assert "low-rank kernel: 50 columns of at most 50" in shown
    assert "round 40/40" in shown


def test_the_features_are_never_in_memory_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(row_blocks, "BLOCK_BYTES", 2**20)
    wide = np.lib.format.open_memmap(tmp_path / "wide.npy", "w+", np.float32, (8000, 1500))  # 48 MB
    wide[:] = np.arange(1500, dtype=np.float32) % 7
    wide[:, 0] = np.arange(8000) % 50
    wide.flush()
    labels = np.arange(8000) % 2
    tracemalloc.start()  # sees what numpy allocates, not the pages of a memory map
    clf = FloralClassifier(engine=Engine(gram="low_rank", rank=8), n_rounds=5, gamma=1e-3, budget=0.02)
    clf.fit(tmp_path / "wide.npy", labels)
    clf.predict(tmp_path / "wide.npy")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < wide.nbytes / 4


def test_the_page_on_scale_runs(tmp_path, monkeypatch):
    page = (Path(__file__).resolve().parents[2] / "docs" / "scale.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    assert blocks
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        names = {}
        exec(compile(block, "<document>", "exec"), names)
        assert (names["labels"] == names["y"]).mean() > 0.8
