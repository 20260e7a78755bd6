"""What every test shares: where the real data lie, who may read them, and a quiet plotting backend."""

import gc
import ipaddress
import os
import shutil
import socket
import sys
import tempfile
import urllib.request
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

from floral_learn.datasets import search_path

# What several files of tests share lies here.
sys.path[:0] = [str(Path(__file__).parent / folder) for folder in ("tools", "text", "paper")]

os.environ.setdefault("MPLBACKEND", "Agg")
# Matplotlib's list of fonts takes seconds to make: it stays where it is when the caches are hidden below.
os.environ.setdefault("MPLCONFIGDIR", str(search_path()[-1].parent / "matplotlib"))

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
# What tests with the marker `data` find in the environment; an empty value counts as unset.
_WITH_DATA = {
    "FLORAL_DATA": os.environ.get("FLORAL_DATA", str(_BESIDE)),
    "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", ""),
}
with patch.dict(os.environ, _WITH_DATA):
    _FOLDERS = search_path()


def pytest_configure(config):
    """Hide data, caches and the network before anything is collected; see `_marked_tests_see_data`.

    Fixtures of modules and sessions see nothing either, whoever asks for them first.
    """
    if config.getoption("dist", "no") != "no":
        return  # with pytest-xdist this process runs no test, and those it starts need the environment as it is
    hidden = Path(tempfile.mkdtemp(prefix="floral-learn-tests-"))
    # A file where the cache would be: processes that tests start cannot put a download there.
    (hidden / search_path()[-1].name).write_text("tests without the marker `data` have no cache\n")
    change = pytest.MonkeyPatch()
    for name in ("FLORAL_DATA", "FLORAL_WORK", "FLORAL_TEXT_MODEL"):
        change.delenv(name, raising=False)
    for name in ("XDG_CACHE_HOME", "SCIKIT_LEARN_DATA", "HF_HOME"):
        change.setenv(name, str(hidden))
    change.setattr(socket, "getaddrinfo", _of_this_machine)
    change.setattr(urllib.request, "getproxies", dict)  # these would be asked in place of the host
    config.add_cleanup(lambda: (change.undo(), shutil.rmtree(hidden, ignore_errors=True)))


def _of_this_machine(host, *args, _look_up=socket.getaddrinfo, **kwargs):
    """``socket.getaddrinfo`` for addresses and this machine's names; tests download nothing."""
    name = host.decode() if isinstance(host, bytes) else host
    if name and name not in ("localhost", socket.gethostname()):
        try:
            ipaddress.ip_address(name.partition("%")[0])
        except ValueError:
            raise OSError(f"tests have no network, and asked for {name}") from None
    return _look_up(host, *args, **kwargs)


# Half a million objects of torch, transformers and the like live as long as the tests do. The garbage collector would
# look through them again and again, which took a third of all time.
gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """From here on the collector looks only at what tests make."""
    gc.enable()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """And after a file, not at what its tests imported either."""
    yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_collection_modifyitems(items):
    """Skip a test marked ``data("file", ...)`` where one of its files is missing: a fresh clone has none of them."""
    for item in items:
        for marker in item.iter_markers("data"):
            if not marker.args:
                raise pytest.UsageError(f"{item.nodeid}: name the files it needs: @pytest.mark.data('mnist.npz')")
            for name in marker.args:
                if not any((folder / name).is_file() for folder in _FOLDERS):
                    reason = f"{name} is neither in FLORAL_DATA nor in the cache: see CONTRIBUTING.md"
                    item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def _marked_tests_see_data(request, monkeypatch):
    """Show data only to tests with the marker, so that one that forgot it fails here and not on a fresh clone."""
    if request.node.get_closest_marker("data") is not None:
        for name, value in _WITH_DATA.items():
            monkeypatch.setenv(name, value)


def _flipped(X, y, flips, seed, n_classes):
    """Some labels moved to the next class: X, y, and a mask of the flips."""
    flipped = np.isin(np.arange(len(y)), np.random.default_rng(seed).choice(len(y), flips, replace=False))
    return X, np.where(flipped, (y + 1) % n_classes, y), flipped


@pytest.fixture
def noisy_moons():
    """Two moons with some labels flipped: X (n, 2), y (n,) in {0, 1}, mask (n,) of the flips."""

    def build(n=80, flips=8, seed=0):
        return _flipped(*make_moons(n, noise=0.2, random_state=seed), flips, seed, 2)

    return build


@pytest.fixture
def noisy_blobs():
    """Separated blobs, one a class, some labels moved to the next class."""

    def build(n=90, flips=6, seed=0, centers=3):
        angle = 2 * np.pi * np.arange(centers) / centers
        middles = 6.0 * np.column_stack([np.cos(angle), np.sin(angle)])
        return _flipped(*make_blobs(n, centers=middles, cluster_std=0.6, random_state=seed), flips, seed, centers)

    return build
