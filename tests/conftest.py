"""What every test shares: where the real data lie, who may read them, and a quiet plotting backend."""

import os
from pathlib import Path

import pytest

from floral_learn.datasets.files import search_path

os.environ.setdefault("MPLBACKEND", "Agg")
_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
if "FLORAL_DATA" not in os.environ and _BESIDE.is_dir():
    os.environ["FLORAL_DATA"] = str(_BESIDE)


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
