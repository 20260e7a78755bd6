"""Numbers name the commit that made them, and a tree that differs from it anywhere is noticed."""

import importlib.util
import os
import shutil
import subprocess

import pytest

from floral_bench.reporting import environment as original

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
MODULE = "bench/src/floral_bench/reporting/environment.py"


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch):
    """A hook that runs these tests has a repository of its own in the environment."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("FLORAL_COMMIT", raising=False)


def git(folder, *words):
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def repository(folder, *files):
    """A repository with one commit of these files; the module is a copy of the one under test."""
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"# {name}\n")
    shutil.copyfile(original.__file__, folder / next(name for name in files if name.endswith("environment.py")))
    git(folder, "init", "-q")
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "-m", "all")
    return folder


@pytest.fixture
def tree(tmp_path):
    """A repository with the layout of this one."""
    others = (
        "src/floral_learn/game/game.py",
        "benchmarks/run_suites.py",
        "docs/results/summary.md",
        "tests/test_it.py",
    )
    return repository(tmp_path, MODULE, "pyproject.toml", "README.md", ".gitignore", *others)


def environment_of(path):
    """What the copy at `path` says of the tree in which it lies."""
    spec = importlib.util.spec_from_file_location("copy_of_environment", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.environment()


def test_a_clean_tree_is_its_commit(tree):
    assert environment_of(tree / MODULE)["commit"] == git(tree, "rev-parse", "--short", "HEAD")


@pytest.mark.parametrize(
    "name", ["src/floral_learn/game/game.py", "benchmarks/run_suites.py", "pyproject.toml", MODULE]
)
@pytest.mark.parametrize("staged", [False, True], ids=["edited", "staged"])
def test_a_change_of_what_makes_numbers_is_not_published(tree, name, staged):
    with open(tree / name, "a", encoding="utf-8") as stream:
        stream.write("# changed\n")
    if staged:
        git(tree, "add", "-A")
    found = environment_of(tree / MODULE)
    commit = git(tree, "rev-parse", "--short", "HEAD")
    assert found["commit"] == commit + original.DIRTY
    with pytest.raises(ValueError, match=f"differs from commit {commit}: commit before publishing"):
        original.publishable(found)


def test_neither_are_new_nor_removed_files(tree):
    git(tree, "config", "status.showUntrackedFiles", "no")  # a setting of some users
    new = tree / "src/floral_learn/game/accelerated.py"
    new.write_text("# new\n")
    assert environment_of(tree / MODULE)["commit"].endswith(original.DIRTY)
    new.unlink()
    assert not environment_of(tree / MODULE)["commit"].endswith(original.DIRTY)
    (tree / "src/floral_learn/game/game.py").unlink()
    assert environment_of(tree / MODULE)["commit"].endswith(original.DIRTY)


def test_documents_tests_and_what_runs_leave_do_not_count(tree):
    for name in ("docs/results/summary.md", "docs/new.md", "README.md", "tests/test_it.py", "runs/store.sqlite"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("changed\n")
    found = environment_of(tree / MODULE)
    assert found["commit"] == git(tree, "rev-parse", "--short", "HEAD")
    original.publishable(found)
