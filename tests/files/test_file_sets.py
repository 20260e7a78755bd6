"""Files that belong together: all or none, and where a process was killed between two of them, anybody can tell."""

import errno
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from floral_learn.app import make_app
from floral_learn.files import atomic_files
from floral_learn.files.atomic_files import LIST, mixed_set, write_set

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


def test_a_kill_at_every_rename_leaves_whole_files_and_a_set_that_can_be_told(tmp_path):
    seen = set()
    for number in range(100):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_set(into(folder, OLD), "floral test")
        killed = killed_at(number, lambda folder=folder: write_set(into(folder, NEW), "floral test"))
        found = contents(folder)
        assert all(found[name] in (OLD[name], NEW[name]) for name in OLD)
        said = mixed_set(folder / "a.csv")
        if found not in (OLD, NEW):
            seen.add("mixed")
            assert "are not all of one run of `floral test`" in said
        else:  # and nobody is told of a set that is whole
            seen.add("whole")
            assert said is None
        if not killed:
            assert (found, said) == (NEW, None)
            break
        write_set(into(folder, NEW), "floral test")
        assert (contents(folder), mixed_set(folder / "a.csv")) == (NEW, None)
    assert number > 6
    assert seen == {"mixed", "whole"}


def test_a_second_kill_does_not_hide_a_mixed_set(tmp_path):
    for number in range(100):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_set(into(folder, OLD), "floral test")
        (folder / "b.html").write_bytes(b"of another run")
        assert mixed_set(folder / "a.csv")
        killed = killed_at(number, lambda folder=folder: write_set(into(folder, NEW), "floral test"))
        assert (mixed_set(folder / "a.csv") is None) == (contents(folder) == NEW)
        if not killed:
            break


def test_a_kill_of_the_first_run_into_a_folder_of_somebody_else_is_told_too(tmp_path):
    for number in range(100):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "a.csv").write_bytes(b"mine")
        killed = killed_at(number, lambda folder=folder: write_set(into(folder, NEW), "floral test"))
        found = contents(folder)
        assert (mixed_set(folder / "a.csv") is None) == (found in ({"a.csv": b"mine"}, NEW))
        if not killed:
            break


def test_a_new_folder_comes_whole(tmp_path):
    for number in range(100):
        folder = tmp_path / str(number)
        killed = killed_at(number, lambda folder=folder: write_set(into(folder, NEW), "floral test"))
        assert not folder.exists() or (contents(folder) == NEW and mixed_set(folder / "a.csv") is None)
        if not killed:
            break


@pytest.mark.parametrize("at", range(4))
def test_a_full_disk_leaves_the_old_set(tmp_path, monkeypatch, at):
    write_set(into(tmp_path, OLD), "floral test")
    before, count, real = sorted(p.name for p in tmp_path.iterdir()), 0, os.fsync

    def full(handle):
        nonlocal count
        count += 1
        if count > at:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle)

    monkeypatch.setattr(atomic_files.os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        write_set(into(tmp_path, NEW), "floral test")
    monkeypatch.undo()
    assert contents(tmp_path) == OLD
    assert mixed_set(tmp_path / "a.csv") is None
    assert sorted(p.name for p in tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", OLD)
def test_a_rename_that_fails_puts_everything_back(tmp_path, monkeypatch, name):
    write_set(into(tmp_path, OLD), "floral test")
    real = os.replace

    def refuse(source, target):
        if Path(target).name == name and str(source).endswith(".part"):
            raise OSError(errno.EIO, "Input/output error")
        return real(source, target)

    monkeypatch.setattr(atomic_files.os, "replace", refuse)
    with pytest.raises(OSError, match="Input/output error"):
        write_set(into(tmp_path, NEW), "floral test")
    monkeypatch.undo()
    assert contents(tmp_path) == OLD
    assert mixed_set(tmp_path / "a.csv") is None


def test_files_of_an_earlier_run_go(tmp_path):
    write_set(into(tmp_path, OLD), "floral test")
    write_set(into(tmp_path, {"a.csv": b"a"}), "floral test", gone=[tmp_path / "b.html", tmp_path / "c.skops"])
    assert contents(tmp_path) == {"a.csv": b"a"}
    assert mixed_set(tmp_path / "a.csv") is None
    (tmp_path / "b.html").write_bytes(b"old b")  # as if the process had been killed before it was removed
    assert mixed_set(tmp_path / "a.csv")


def test_sets_lie_side_by_side(tmp_path):
    for name in "pq":
        write_set({tmp_path / f"{name}.csv": name, tmp_path / f"{name}.csv.flips.csv": name}, "floral poison")
    assert mixed_set(tmp_path / "p.csv") is None
    (tmp_path / "p.csv").write_text("changed")
    assert "p.csv, p.csv.flips.csv are not all of one run" in mixed_set(tmp_path / "p.csv.flips.csv")
    assert mixed_set(tmp_path / "q.csv") is None
    assert mixed_set(tmp_path / "other.csv") is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b"[]",
        b'{"sets": 3}',
        b'{"sets": [{"command": "x", "files": {"../../etc/passwd": "0", "a.csv": "0"}, "gone": []}]}',
        b'{"sets": [{"command": "x", "files": {"a.csv": 7}, "gone": []}]}',
        b'{"sets": [{"command": "x", "files": {"a.csv": "0"}, "gone": [1]}]}',
        b'{"sets": [[]]}',
        b'{"sets": [{"command": "x", "files": {"a.csv": "0"}, "gone": [], "before": 3}]}',
        b'{"sets": [{"command": "x", "files": {"a.csv": "0"}, "gone": [], "before": {"../a.csv": null}}]}',
        b"\xff\xfe",
        b" " * 2_000_000,
    ],
)
def test_a_list_that_is_not_ours_is_no_list(tmp_path, content):
    (tmp_path / LIST).write_bytes(content)
    (tmp_path / "a.csv").write_bytes(b"a")
    assert mixed_set(tmp_path / "a.csv") is None
    write_set(into(tmp_path, NEW), "floral test")
    assert mixed_set(tmp_path / "a.csv") is None


# -- the commands -------------------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(make_app(), [str(argument) for argument in arguments])


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
    assert run(*arguments).exit_code == 0
    known = json.loads((out / LIST).read_text())["sets"][0]["files"]
    assert len(known) >= 2
    for file in known:
        (out / file).write_bytes(b"of an earlier run")
    first = next(iter(known))

    def again():
        real, done = os.replace, []

        def stop(source, target):
            if done:
                os._exit(99)
            if Path(target).name == first:
                done.append(target)
            real(source, target)

        os.replace = stop
        run(*arguments)

    assert killed_at(10**6, again)
    assert (out / first).read_bytes() != b"of an earlier run"
    data = next((out / file for file in known if file.endswith(".csv")), None)
    said = run("train", data, "-l", "y", "-o", table.parent / "m.skops").stderr
    assert f"are not all of one run of `floral {name}" in said
    assert run(*arguments).exit_code == 0
    assert mixed_set(out / first) is None
    assert "not all of one run" not in run("train", data, "-l", "y", "-o", table.parent / "m.skops").stderr


def test_a_review_on_a_full_disk_leaves_nothing_of_its_end(table, monkeypatch):
    arguments = commands(table)["review"]
    real, count = os.fsync, 0

    def full(handle):
        nonlocal count
        count += 1
        if count > 4:  # the model and others are staged by then
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle)

    monkeypatch.setattr(atomic_files.os, "fsync", full)
    done = run(*arguments)
    assert done.exit_code == 2
    assert "No space left on device" in done.stderr
    assert [p.name for p in (table.parent / "out").iterdir()] == ["answers.sqlite"]


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0 or not shutil.which("mount"), reason="needs root to mount")
def test_a_review_on_a_small_tmpfs_leaves_nothing_of_its_end(table):
    small = table.parent / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=170k", "tmpfs", small], check=False).returncode
    if mounted:
        pytest.skip("mounting is not allowed here")
    try:
        done = run("review", table, "-l", "y", "-o", small / "out", "--finish", "--no-browser")
        assert done.exit_code == 2
        assert "No space left" in done.stderr
        assert [p.name for p in (small / "out").iterdir()] == ["answers.sqlite"]
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.parametrize("rows", [2, 3, 12, 19])
def test_every_table_that_can_be_reviewed_can_be_finished(tmp_path, rows):
    lines = [f"{i / 7:.3f},p{i % 2},{'yes' if i % 2 else 'no'}" for i in range(rows)]
    (tmp_path / "t.csv").write_text("a,who,y\n" + "\n".join(lines) + "\n")
    done = run("review", tmp_path / "t.csv", "-l", "y", "-g", "who", "-o", tmp_path / "out", "--finish")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "out" / "cleaned.csv").read_bytes() == (tmp_path / "t.csv").read_bytes()
    assert "<html" in (tmp_path / "out" / "report.html").read_text()


def test_a_class_of_three_rows_can_be_finished(tmp_path):
    lines = [f"{i / 7:.3f},{'rare' if i < 3 else 'yes' if i % 2 else 'no'}" for i in range(30)]
    (tmp_path / "t.csv").write_text("a,y\n" + "\n".join(lines) + "\n")
    done = run("review", tmp_path / "t.csv", "-l", "y", "-o", tmp_path / "out", "--finish")
    assert done.exit_code == 0, done.stderr
