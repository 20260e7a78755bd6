import json
import lzma

import numpy as np
import pytest

from floral_bench.split_table import load_split_table
from floral_learn.datasets import imdb, load_imdb


def write(path, n=80):
    lines = ["x,kind,y"] + [f"{i % 13},{'ab'[i % 2]},{'pn'[(i // 2) % 2]}" for i in range(n)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_table_is_split_by_seed_and_class(tmp_path):
    path = write(tmp_path / "t.csv")
    data = load_split_table(path, "y", seed=3, val_size=0.2)
    assert (len(data.y_train), len(data.y_val), len(data.y_test)) == (40, 16, 24)
    assert data.X_train.shape[1] == 3  # a number and two categories
    for y in (data.y_train, data.y_test):
        assert (y == "p").mean() == pytest.approx(0.5)
    again, other = load_split_table(path, "y", seed=3, val_size=0.2), load_split_table(path, "y", seed=4, val_size=0.2)
    np.testing.assert_array_equal(again.X_train, data.X_train)
    assert not np.array_equal(other.X_train, data.X_train)


def test_the_encoding_is_learned_on_training_rows_alone(tmp_path):
    data = load_split_table(write(tmp_path / "t.csv"), "y", seed=0)
    np.testing.assert_allclose(data.X_train[:, 0].mean(), 0, atol=1e-12)
    np.testing.assert_allclose(data.X_train[:, 0].std(), 1)
    assert abs(data.X_test[:, 0].mean()) > 1e-6


@pytest.mark.parametrize(
    ("content", "label", "message"),
    [
        ("a,b\n1,2\n", "y", "no column 'y'"),
        ("x,y\n" + "1,p\n2,n\n" * 3, "y", "at least 4 are needed"),
        ("x,y\n" + "".join(f"{i},{i}\n" for i in range(40)), "y", "40 different values"),
        ("x,y\n" + "1,p\n2,n\n" * 8 + "3,\n", "y", "1 missing labels"),
    ],
)
def test_a_table_that_cannot_be_used_is_explained(tmp_path, content, label, message):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(ValueError, match=message):
        load_split_table(tmp_path / "t.csv", label)
    with pytest.raises(ValueError, match="No such file"):
        load_split_table(tmp_path / "none.csv", label)


def test_a_file_of_other_reviews_is_refused(tmp_path):
    with lzma.open(tmp_path / imdb.FILE, "wt") as stream:
        stream.write(json.dumps({"text": "a film", "label": 1, "split": "train"}) + "\n")
    with pytest.raises(ValueError, match="does not hold the known IMDB reviews"):
        load_imdb(data_home=tmp_path)
    (tmp_path / imdb.FILE).write_bytes(b"not compressed")
    with pytest.raises(ValueError, match="not a file of IMDB reviews"):
        load_imdb(data_home=tmp_path)


def test_without_file_and_network_the_places_searched_are_named(tmp_path, monkeypatch):
    from floral_learn.datasets import DataNotFoundError

    monkeypatch.setenv("FLORAL_DATA", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("urllib.request.urlopen", _offline)
    with pytest.raises(DataNotFoundError, match=r"empty.*set FLORAL_DATA"):
        load_imdb()
    assert not list((tmp_path / "cache").rglob("*.xz"))


def _offline(*_args, **_kwargs):
    raise OSError("no network")


@pytest.mark.data(imdb.FILE)
def test_the_real_reviews_have_the_papers_split():
    data = load_imdb(n_train=20_000, n_val=5_000, n_test=100, random_state=1)
    assert (len(data.X_train), len(data.X_val), len(data.X_test)) == (20_000, 5_000, 100)
    assert set(np.unique(data.y_train)) == {-1, 1}
    assert abs((data.y_train == 1).mean() - 0.5) < 0.02
    assert isinstance(data.X_train[0], str)
    assert not set(data.X_train[:200]) & set(data.X_val)
