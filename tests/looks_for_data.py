"""Who finds a file among the data, one in the user's cache, and a download: test_fresh_clone.py runs this elsewhere."""

import subprocess
import sys
from urllib.request import urlopen

import pytest

from floral_bench.datasets.download import find_or_download
from floral_learn.datasets import DataNotFoundError, find_file


def look(*download):
    find = find_or_download if download else find_file
    found = []
    for name in ("lies.bin", "cached.bin", "new.bin"):
        try:
            found.append(find(name, *download).read_text())
        except DataNotFoundError:
            found.append(None)
    return found


def download(path):
    path.write_text("downloaded")


if __name__ == "__main__":  # the process that a test starts
    sys.exit(look(download) != [None, None, None])

WHEN_COLLECTED = look(download)


@pytest.fixture(scope="module")
def of_the_module():
    return look(download)


@pytest.fixture(scope="session", autouse=True)
def of_the_session():
    return look(download)


@pytest.mark.data("lies.bin", "cached.bin")
def test_with_the_marker_files_are_seen(of_the_module, of_the_session):
    assert look() == ["data", "data", None]
    assert [WHEN_COLLECTED, of_the_module, of_the_session] == [[None] * 3] * 3


def test_without_it_nothing_is(tmp_path):
    assert look(download) == [None, None, None]
    with pytest.raises(DataNotFoundError, match=r"tests have no network, and asked for example\.org"):
        find_or_download("new.bin", lambda path: urlopen("https://example.org"), data_home=tmp_path)


def test_nor_by_a_process_that_it_starts():
    assert subprocess.run([sys.executable, __file__], check=False).returncode == 0
