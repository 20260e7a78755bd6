"""Files come whole, together or not at all; permissions are what the process's umask says, which nobody changes."""

import os
import stat
import threading

import pytest

from floral_learn.base import files


def test_the_mode_follows_the_umask_and_the_umask_is_never_touched(tmp_path, monkeypatch):
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask of the process was changed"))
        files.write_atomically(tmp_path / "a.txt", "text")
    finally:
        monkeypatch.undo()
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


def test_threads_writing_one_file_leave_one_of_their_contents(tmp_path):
    contents = [f"{i}" * 50_000 for i in range(8)]
    threads = [threading.Thread(target=files.write_atomically, args=(tmp_path / "a", text)) for text in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "a").read_text() in contents
    assert os.listdir(tmp_path) == ["a"]


def test_a_new_folder_is_made_with_its_files_or_not_at_all(tmp_path, monkeypatch):
    out = tmp_path / "report"
    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(OSError, match=r"cannot write .*report.*No space left"):
            files.write_all({out / "a": "1", out / "b": "2"})
    assert os.listdir(tmp_path) == []
    files.write_all({out / "a": "1", out / "b": "2"})
    assert sorted(os.listdir(out)) == ["a", "b"]
    files.write_all({out / "a": "3"})
    assert (out / "a").read_text() == "3"


@pytest.mark.parametrize("name", ["x" * 300, "no/where", "a\0b"])
def test_names_that_cannot_be_written_are_named(tmp_path, name):
    with pytest.raises((OSError, ValueError)):
        files.write_atomically(tmp_path / "sub" / name if "/" in name else tmp_path / name, "text")
    assert os.listdir(tmp_path) == []


def test_a_name_as_long_as_the_system_allows_works(tmp_path):
    files.write_atomically(tmp_path / ("x" * 250), "text")
    assert len(os.listdir(tmp_path)) == 1


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="it is a folder"):
        files.write_all({tmp_path / "b": "1", tmp_path / "a": "2"})
    assert os.listdir(tmp_path) == ["a"]
