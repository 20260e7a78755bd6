"""Where and with what numbers were made: versions, machine, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from floral_learn.evaluation.spec import RESULTS_VERSION

PACKAGES = ("floral-learn", "numpy", "scipy", "scikit-learn", "joblib", "torch", "matplotlib", "pandas")


DIRTY = " with local changes"


def environment() -> dict[str, str]:
    """Versions of what computes, and a rough description of the machine (no host or user names)."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    found["system"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    found["results_version"] = str(RESULTS_VERSION)
    found["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    if commit := _commit():
        found["commit"] = commit
    return found


def _commit() -> str | None:
    """The commit of the source tree that is running, with a mark where files differ from it."""
    where = Path(__file__).resolve().parent
    try:
        name = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=where, capture_output=True, text=True, timeout=5, check=True
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--", "."],
            cwd=where,
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        # A copy of the tree on another machine has no history of its own.
        return os.environ.get("FLORAL_COMMIT")
    return name + (DIRTY if changed else "")


def publishable(environment: dict[str, str]) -> None:
    """Raise a ValueError unless numbers made in this environment can be made again from a commit."""
    commit = environment.get("commit")
    if commit is None:
        raise ValueError("the source tree has no commit: results that are published must name one")
    if commit.endswith(DIRTY):
        raise ValueError(f"the source tree differs from commit {commit.removesuffix(DIRTY)}: commit before publishing")
