"""IMDB's reviews."""

import json
import lzma

import numpy as np
import pytest
from refusals import refuses

from floral_bench.datasets import imdb, load_imdb
from floral_learn.datasets import DataNotFoundError


def test_a_file_of_other_reviews_is_refused(tmp_path):
    with lzma.open(tmp_path / imdb.FILE, "wt") as stream:
        stream.write(json.dumps({"text": "a film", "label": 1, "split": "train"}) + "\n")
    refuses("does not hold the known IMDB reviews", load_imdb, data_home=tmp_path)
    (tmp_path / imdb.FILE).write_bytes(b"not compressed")
    refuses("not a file of IMDB reviews", load_imdb, data_home=tmp_path)


def test_without_file_and_network_the_places_searched_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("FLORAL_DATA", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("urllib.request.urlopen", _offline)
    refuses(r"empty.*set FLORAL_DATA", load_imdb, error=DataNotFoundError)
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
