"""The loaders return the published rows, find files in the documented order and refuse wrong ones."""

import inspect

import numpy as np
import pytest
from refusals import refuses

from floral_bench.datasets import DATASETS, load_mnist, mnist
from floral_bench.datasets.download import find_or_download
from floral_learn.datasets import DataNotFoundError, Dataset, find_file, load_moon, search_path

REFERENCE = "moon_reference_seed42.npz"


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine with no data files at all."""
    monkeypatch.delenv("FLORAL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_moon_has_the_paper_sizes_labels_and_scale():
    data = load_moon(random_state=3)
    assert [len(part) for part in (data.y_train, data.y_val, data.y_test)] == [500, 500, 1000]
    assert set(data.y_train) == {-1, 1}
    everything = np.vstack([data.X_train, data.X_val, data.X_test])
    np.testing.assert_allclose(everything.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(everything.std(0), 1, atol=1e-12)
    assert len(np.unique(everything, axis=0)) == 2000
    assert len(data.poisoned) == 0


def test_moon_replications_differ_and_repeat():
    assert not np.array_equal(load_moon(random_state=2).X_train, load_moon(random_state=3).X_train)
    np.testing.assert_array_equal(load_moon(random_state=2).X_train, load_moon(random_state=2).X_train)


def test_moon_other_sizes():
    data = load_moon(random_state=0, n_train=30, n_val=10, n_test=20)
    assert (data.X_train.shape, data.X_val.shape, data.X_test.shape) == ((30, 2), (10, 2), (20, 2))


@pytest.mark.data(REFERENCE)
def test_moon_seed_one_is_the_authors_replication_row_for_row():
    with np.load(find_file(REFERENCE)) as stored:
        data = load_moon()
        for ours, theirs in (("train", "train"), ("val", "validation"), ("test", "test")):
            np.testing.assert_allclose(getattr(data, f"X_{ours}"), stored[f"X_{theirs}"], rtol=0, atol=1e-14)
            np.testing.assert_array_equal(getattr(data, f"y_{ours}"), stored[f"y_{theirs}"])


@pytest.mark.data(REFERENCE)
@pytest.mark.parametrize(
    ("labels", "flips"),
    [
        ("farthest-5", 25),
        ("farthest-10", 50),
        ("farthest-15", 75),
        ("farthest-20", 100),
        ("farthest-25", 119),
        ("lfa-5", 25),
        ("lfa-10", 50),
        ("lfa-25", 125),
    ],
)
def test_moon_reference_labels_have_the_published_number_of_flips(labels, flips):
    data = load_moon(labels=labels)
    assert len(data.poisoned) == flips
    np.testing.assert_array_equal(data.y_train_clean, load_moon().y_train)


def test_moon_and_mnist_refuse_what_they_do_not_have():
    refuses("published for random_state=1", load_moon, random_state=2, labels="lfa-5")
    refuses("labels must be", load_moon, labels="lfa-6")
    refuses("positive integers", load_moon, n_val=0)
    refuses("digits must be", load_mnist, digits=(1, 1))


def test_moon_reference_labels_without_the_file_say_where_they_were_looked_for(bare):
    with pytest.raises(DataNotFoundError, match=r"moon_reference_seed42\.npz not found in"):
        load_moon(labels="lfa-5", data_home=bare)


@pytest.mark.data(mnist.FILE)
def test_mnist_one_against_seven_is_complete():
    data = load_mnist()
    assert data.X_train.shape == (13007, 784)
    assert data.X_test.shape == (2163, 784)
    assert set(data.y_train) == {-1, 1}
    assert (data.X_train.min(), data.X_train.max()) == (0, 1)
    assert data.X_train.dtype == np.float32


@pytest.mark.data(mnist.FILE)
def test_mnist_subsets_are_disjoint_seeded_and_keep_labels():
    data = load_mnist(digits=(3, 8, 9), n_train=200, n_val=100, n_test=50, random_state=1)
    assert set(data.y_train) == {3, 8, 9}
    assert (len(data.y_train), len(data.y_val), len(data.y_test)) == (200, 100, 50)
    together = np.vstack([data.X_train, data.X_val])
    assert len(np.unique(together, axis=0)) == 300
    again = load_mnist(digits=(3, 8, 9), n_train=200, n_val=100, n_test=50, random_state=1)
    other = load_mnist(digits=(3, 8, 9), n_train=200, n_val=100, n_test=50, random_state=2)
    np.testing.assert_array_equal(data.X_train, again.X_train)
    assert not np.array_equal(data.X_train, other.X_train)
    refuses("do not fit", load_mnist, n_train=13007, n_val=1)


def test_mnist_refuses_a_file_with_other_data(bare):
    np.savez(bare / mnist.FILE, **{name: np.zeros(3, np.uint8) for name in mnist.ARRAY_SHA256})
    refuses("not the known MNIST data", load_mnist, data_home=bare)
    np.savez(bare / mnist.FILE, x_train=np.zeros(3))
    refuses("lacks", load_mnist, data_home=bare)


def test_mnist_offline_error_names_the_folders_and_leaves_nothing(bare, monkeypatch):
    def no_network(path):
        raise OSError("network is unreachable")

    monkeypatch.setattr(mnist, "download_openml", no_network)
    refuses(r"download failed \(network is unreachable\).*FLORAL_DATA", load_mnist, error=DataNotFoundError)
    assert not any(search_path()[-1].iterdir())


def test_files_are_looked_for_in_the_documented_order(bare, monkeypatch):
    home, env, cache = bare / "home", bare / "env", search_path()[-1]
    monkeypatch.setenv("FLORAL_DATA", str(env))
    for folder in (cache, env, home):
        folder.mkdir(parents=True)
        (folder / "x.bin").write_text(folder.name)
        assert find_file("x.bin", data_home=home).read_text() == folder.name


def test_a_wrong_checksum_is_refused(bare):
    (bare / "x.bin").write_text("changed")
    refuses("not the expected file", find_file, "x.bin", checksum="0" * 64, data_home=bare)


def test_a_download_lands_in_data_home_once(bare):
    calls = []

    def download(path):
        calls.append(path)
        path.write_text("rows")

    for _ in range(2):
        assert find_or_download("x.bin", download, data_home=bare) == bare / "x.bin"
    assert len(calls) == 1
    assert [path.name for path in bare.iterdir()] == ["x.bin"]


def test_dataset_arrays_cannot_be_written_and_lengths_must_match():
    data = load_moon(n_train=10, n_val=5, n_test=5)
    with pytest.raises(ValueError, match="read-only"):
        data.y_train[0] = 9
    assert len(data.with_labels(-data.y_train).poisoned) == 10
    refuses("X_train has 10 rows, y_train has 3", data.with_labels, data.y_train[:3])
    assert isinstance(data, Dataset)


@pytest.mark.parametrize("name", DATASETS)
def test_every_data_set_takes_random_state_and_data_home(name):
    taken = set(inspect.signature(DATASETS[name]).parameters)
    assert {"random_state", "data_home", "n_train", "n_val", "n_test"} <= taken


def test_a_cache_that_cannot_be_written_is_a_clear_error(bare):
    (bare / "cache").write_text("a file where the folder would be")
    with pytest.raises(
        DataNotFoundError, match=r"x\.bin not found in .*cache.*, and the download failed .*Put it there\."
    ):
        find_or_download("x.bin", lambda path: path.write_text("rows"), hint="Put it there.")


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_the_cache_can_be_moved_on_every_system(monkeypatch, tmp_path, system):
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert search_path()[-1] == tmp_path / "floral-learn"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert search_path()[-1].name == "floral-learn"
    assert not search_path()[-1].is_relative_to(tmp_path)
