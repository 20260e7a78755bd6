"""What every test shares: where the real data lie, who may read them, and a quiet plotting backend."""

import gc
import os
from pathlib import Path

import pytest

from floral_learn.datasets.files import search_path

os.environ.setdefault("MPLBACKEND", "Agg")
_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
if "FLORAL_DATA" not in os.environ and _BESIDE.is_dir():
    os.environ["FLORAL_DATA"] = str(_BESIDE)

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
                if not any((folder / name).is_file() for folder in search_path()):
                    reason = f"{name} is neither in FLORAL_DATA nor in the cache: see CONTRIBUTING.md"
                    item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def _only_marked_tests_see_data(request, monkeypatch):
    """Hide the data from tests without the marker, so that one that forgot it fails here and not on a fresh clone."""
    if request.node.get_closest_marker("data") is None:
        monkeypatch.delenv("FLORAL_DATA", raising=False)
