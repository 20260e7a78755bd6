"""Rows read in blocks are the rows of the file, and what is computed from them is what the whole matrix gives."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from floral_learn.floral.inputs import open_rows, read_column
from floral_learn.game import row_blocks
from floral_learn.game.kernels import Kernel, resolve_gamma
from floral_learn.game.low_rank import LowRankGram
from floral_learn.game.row_blocks import ArrayBlocks, gamma_of

RNG = np.random.default_rng(0)
X = RNG.normal(loc=3, size=(500, 7)).astype(np.float32)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(row_blocks, "BLOCK_BYTES", 64 * 7 * 4)  # 64 rows a block: 500 is no multiple


@pytest.fixture
def npy(tmp_path):
    np.save(tmp_path / "X.npy", X)
    return tmp_path / "X.npy"


@pytest.fixture
def parquet(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    for i, rows in enumerate((X[:210], X[210:])):
        table = pa.table({f"f{j}": rows[:, j] for j in range(7)} | {"label": np.arange(len(rows)) % 2})
        pq.write_table(table, folder / f"part-{i}.parquet", row_group_size=90)
    return folder


def sources(npy, parquet):
    return {
        "npy": open_rows(npy),
        "memory map": open_rows(np.load(npy, mmap_mode="r")),
        "parquet": open_rows(parquet, without=["label"]),
        "chunks": ArrayBlocks([X[:123], X[123:124], X[124:]]),
        "csr chunks": ArrayBlocks([sparse.csr_matrix(X[:123]), sparse.csr_matrix(X[123:])]),
    }


def dense(block):
    return block.toarray() if sparse.issparse(block) else block


def test_every_source_gives_the_rows_in_order_and_in_blocks(npy, parquet):
    for name, rows in sources(npy, parquet).items():
        blocks = list(rows.blocks())
        assert max(block.shape[0] for _, block in blocks) <= 64, name
        assert [start for start, _ in blocks] == list(np.cumsum([0] + [b.shape[0] for _, b in blocks[:-1]])), name
        np.testing.assert_array_equal(np.concatenate([dense(b) for _, b in blocks]), X, err_msg=name)
        np.testing.assert_array_equal(np.asarray(rows), X, err_msg=name)
        assert rows.shape == X.shape


def test_single_rows_come_in_the_order_asked_for(npy, parquet):
    asked = np.array([499, 0, 210, 209, 0, 123])
    for name, rows in sources(npy, parquet).items():
        np.testing.assert_array_equal(dense(rows.take(asked)), X[asked], err_msg=name)


def test_kept_rows_are_the_others_left_out(npy, parquet):
    kept = np.flatnonzero(RNG.random(500) < 0.3)
    for name, rows in sources(npy, parquet).items():
        some = rows.keep(kept)
        np.testing.assert_array_equal(np.asarray(some), X[kept], err_msg=name)
        np.testing.assert_array_equal(dense(some.take(np.array([5, 2]))), X[kept[[5, 2]]], err_msg=name)


def test_mean_variance_and_gamma_are_those_of_the_matrix(npy, parquet):
    weight = RNG.uniform(0.5, 2, size=500)
    for name, rows in sources(npy, parquet).items():
        found = rows.moments()
        np.testing.assert_allclose(found.mean, X.mean(axis=0), rtol=1e-5, err_msg=name)
        assert found.variance == pytest.approx(X.astype(float).var(), rel=1e-5)
        assert gamma_of("scale", rows.moments(weight)) == pytest.approx(
            resolve_gamma("scale", X.astype(float), weight), rel=1e-5
        )
        assert gamma_of("auto", found) == 1 / 7
        assert gamma_of(0.3, found) == 0.3


def test_the_factor_of_blocks_is_the_factor_of_the_matrix(npy, parquet):
    kernel = Kernel("rbf", gamma=0.05)
    whole = LowRankGram(X, kernel, 40, 0.0, np.random.default_rng(3), "float64")
    for name, rows in sources(npy, parquet).items():
        made = LowRankGram(rows, kernel, 40, 0.0, np.random.default_rng(3), "float64")
        np.testing.assert_array_equal(made.landmarks, whole.landmarks, err_msg=name)
        np.testing.assert_allclose(made.factor, whole.factor, atol=1e-9, err_msg=name)


def test_a_bad_number_is_named_by_its_row(npy):
    broken = X.copy()
    broken[321, 2] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity, first in row 321"):
        ArrayBlocks([broken]).moments()


def test_columns_of_parquet_files(parquet, tmp_path):
    assert open_rows(parquet, without=["label"]).names == [f"f{j}" for j in range(7)]
    np.testing.assert_array_equal(read_column(parquet, "label"), np.r_[np.arange(210) % 2, np.arange(290) % 2])
    with pytest.raises(ValueError, match="no column 'target'"):
        open_rows(parquet, without=["target"])
    pq.write_table(pa.table({"name": ["a", "b"]}), tmp_path / "text.parquet")
    with pytest.raises(ValueError, match=r"column 'name' .* is string, not a number"):
        open_rows(tmp_path / "text.parquet")


def test_what_cannot_be_read_in_blocks_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.npy"):
        open_rows(tmp_path / "nothing.npy")
    (tmp_path / "x.txt").write_text("1 2")
    with pytest.raises(ValueError, match=r"use \.npy, \.parquet"):
        open_rows(tmp_path / "x.txt")
    np.save(tmp_path / "flat.npy", np.zeros(3))
    with pytest.raises(ValueError, match="numeric matrix"):
        open_rows(tmp_path / "flat.npy")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no \.parquet files"):
        open_rows(tmp_path / "empty")
