"""Files that belong together: all or none, and where a process was killed between two of them, anybody can tell."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from commands import floral, refused

from floral_learn.base import files

OLD = {"a.csv": b"old a", "b.html": b"old b", "c.skops": b"old c"}
NEW = {"a.csv": b"new a", "b.html": b"new b", "c.skops": b"new c"}
RENAMES = ("replace", "rename", "link", "unlink")


def into(folder, content):
    return {folder / name: raw for name, raw in content.items()}


def contents(folder, names=OLD):
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}


def killed_at(number, call):
    """Run `call` in a child that ends, as by kill -9, before its rename of this number; whether it came to that."""
    pid = os.fork()
    if pid == 0:  # pragma: no cover - the child
        code, made = 1, 0
        try:

            def counted(function):
                def step(*args, **kwargs):
                    nonlocal made
                    if made == number:
                        os._exit(99)
                    made += 1
                    return function(*args, **kwargs)

                return step

            for name in RENAMES:
                setattr(os, name, counted(getattr(os, name)))
            call()
            code = 0
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (0, 99)
    return status == 99


def test_a_kill_at_every_rename_leaves_whole_files_and_word_of_a_set_that_may_be_mixed(tmp_path):
    seen = set()
    for number in range(100):
        folder = tmp_path / str(number)
        folder.mkdir()
        files.write_set(into(folder, OLD), "floral test")
        killed = killed_at(number, lambda folder=folder: files.write_set(into(folder, NEW), "floral test"))
        found = contents(folder)
        assert all(found[name] in (OLD[name], NEW[name]) for name in OLD)
        said = files.unfinished(folder / "a.csv")
        seen.add("mixed" if found not in (OLD, NEW) else "whole")
        if found not in (OLD, NEW):
            assert "'floral test' was stopped while it put 'a.csv', 'b.html', 'c.skops' in place" in said
        if not killed:
            assert (found, said) == (NEW, None)
            break
        files.write_set(into(folder, NEW), "floral test")
        assert (contents(folder), files.unfinished(folder / "a.csv")) == (NEW, None)
        assert not [path for path in folder.iterdir() if path.suffix == ".unfinished"]
    assert number > 4
    assert seen == {"mixed", "whole"}


def test_a_second_kill_does_not_hide_a_mixed_set(tmp_path):
    for first in range(3, 6):
        folder = tmp_path / str(first)
        folder.mkdir()
        files.write_set(into(folder, OLD), "floral test")
        assert killed_at(first - 1, lambda folder=folder: files.write_set(into(folder, NEW), "floral test"))
        assert files.unfinished(folder / "a.csv")
        killed_at(0, lambda folder=folder: files.write_set(into(folder, NEW), "floral test"))
        assert files.unfinished(folder / "a.csv")


@pytest.mark.parametrize("at", range(4))
def test_a_full_disk_leaves_the_old_set(tmp_path, monkeypatch, at):
    files.write_set(into(tmp_path, OLD), "floral test")
    before, count, real = sorted(p.name for p in tmp_path.iterdir()), 0, os.fsync

    def full(handle):
        nonlocal count
        count += 1
        if count > at:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle)

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        files.write_set(into(tmp_path, NEW), "floral test")
    monkeypatch.undo()
    assert contents(tmp_path) == OLD
    assert files.unfinished(tmp_path / "a.csv") is None
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_a_rename_that_fails_is_told_of(tmp_path, monkeypatch):
    files.write_set(into(tmp_path, OLD), "floral test")
    real = os.replace

    def refuse(source, target):
        if Path(target).name == "b.html":
            raise OSError(errno.EIO, "Input/output error")
        return real(source, target)

    monkeypatch.setattr(files.os, "replace", refuse)
    with pytest.raises(OSError, match=r"cannot write .*b\.html: Input/output error"):
        files.write_set(into(tmp_path, NEW), "floral test")
    assert files.unfinished(tmp_path / "c.skops")


def test_files_of_an_earlier_run_go(tmp_path):
    files.write_set(into(tmp_path, OLD), "floral test")
    files.write_set(into(tmp_path, {"a.csv": b"a"}), "floral test", gone=[tmp_path / "b.html", tmp_path / "c.skops"])
    assert contents(tmp_path) == {"a.csv": b"a"}
    assert files.unfinished(tmp_path / "a.csv") is None


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b"[]", b'{"command": "x", "files": 3}', b"\xff\xfe"])
def test_a_note_that_is_not_ours_says_nothing(tmp_path, content):
    (tmp_path / "a.csv.unfinished").write_bytes(content)
    (tmp_path / "a.csv").write_bytes(b"a")
    assert files.unfinished(tmp_path / "a.csv") is None


# -- the commands -------------------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    rows = [f"{i / 7:.3f},{i % 5},{'yes' if i % 2 else 'no'}" for i in range(30)]
    (tmp_path / "t.csv").write_text("a,b,y\n" + "\n".join(rows) + "\n")
    return tmp_path / "t.csv"


def commands(table):
    who = table.with_name("votes.csv")
    votes = [f"i{i},w{k},{'yes' if (i + k) % 3 else 'no'}" for i in range(12) for k in range(3)]
    who.write_text("item,worker,label\n" + "\n".join(votes) + "\n")
    return {
        "audit": ("audit", table, "-l", "y", "-o", table.parent / "out"),
        "certify": ("certify", table, "-l", "y", "-o", table.parent / "out"),
        "poison": ("poison", table, "-l", "y", "-a", "random", "-o", table.parent / "out" / "p.csv"),
        "crowd": ("crowd", who, "--task", "item", "--worker", "worker", "-l", "label", "-o", table.parent / "out"),
        "review": ("review", table, "-l", "y", "-o", table.parent / "out", "--finish", "--no-browser"),
    }


@pytest.mark.parametrize("name", ["audit", "certify", "poison", "crowd", "review"])
def test_a_command_killed_between_two_files_is_told_of_and_made_whole(table, name):
    out, arguments = table.parent / "out", commands(table)[name]
    out.mkdir()
    floral(*arguments)
    known = [path.name for path in out.iterdir() if path.suffix in (".csv", ".html", ".json", ".skops")]
    assert len(known) >= 2
    for file in known:
        (out / file).write_bytes(b"of an earlier run")

    def again():
        real, done = os.replace, []

        def stop(source, target):
            if done:
                os._exit(99)
            if Path(target).name in known:
                done.append(target)
            real(source, target)

        os.replace = stop
        floral(*arguments)

    assert killed_at(10**6, again)
    data = next(out / file for file in known if file.endswith(".csv"))
    said = floral("train", data, "-l", "y", "-o", table.parent / "m.skops", code=2).stderr
    assert f"'floral {name}" in said
    assert "was stopped while it put" in said
    floral(*arguments)
    assert files.unfinished(data) is None


def test_a_review_on_a_full_disk_leaves_nothing_of_its_end(table, monkeypatch):
    arguments = commands(table)["review"]
    real, count = os.fsync, 0

    def full(handle):
        nonlocal count
        count += 1
        if count > 4:  # the model and others are staged by then
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle)

    monkeypatch.setattr(files.os, "fsync", full)
    assert "No space left on device" in refused(*arguments)
    assert [p.name for p in (table.parent / "out").iterdir()] == ["answers.sqlite"]


@pytest.mark.parametrize("rows", [2, 19, 30])
def test_every_table_that_can_be_reviewed_can_be_finished(tmp_path, rows):
    label = np.where(np.arange(rows) % 2, "yes", "no")
    label[:3] = np.where(rows == 30, "few", label[:3])  # a class of three rows
    lines = [f"{i / 7:.3f},p{i % 2},{label[i]}" for i in range(rows)]
    (tmp_path / "t.csv").write_text("a,who,y\n" + "\n".join(lines) + "\n")
    floral("review", tmp_path / "t.csv", "-l", "y", "-g", "who", "-o", tmp_path / "out", "--finish")
    assert (tmp_path / "out" / "cleaned.csv").read_bytes() == (tmp_path / "t.csv").read_bytes()
    assert "<html" in (tmp_path / "out" / "report.html").read_text()
