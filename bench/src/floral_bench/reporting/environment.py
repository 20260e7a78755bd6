"""Where and with what numbers were made: versions, machine, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from floral_bench.spec import RESULTS_VERSION

PACKAGES = ["floral-learn", "numpy", "scipy", "scikit-learn", "joblib", "torch", "transformers", "matplotlib", "pandas"]
DIRTY = " with local changes"
# From the root of the repository. Documents, tests and what runs leave behind change no number.
MAKES_NUMBERS = ("src", "bench", "benchmarks", "pyproject.toml")


def environment(device: str | None = None) -> dict[str, str]:
    """Versions of what computes, and a rough description of the machine (no host or user names).

    With a torch `device` such as "cuda" also the name of the GPU that computes.
    """
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    found["system"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    if device is not None and device.startswith("cuda"):
        import torch

        found["gpu"] = torch.cuda.get_device_name(device)
    found["results_version"] = str(RESULTS_VERSION)
    found["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    if commit := _commit():
        found["commit"] = commit
    return found


def _commit() -> str | None:
    """The commit of the source tree that is running, with a mark where what makes numbers differs from it."""
    package = Path(__file__).resolve().parents[1]
    try:
        root, name = _git("rev-parse", "--show-toplevel", "--short", "HEAD", folder=package).splitlines()
        # An installed copy may lie inside somebody else's repository, whose commit says nothing about it.
        if not os.path.samefile(Path(root) / "bench" / "src" / package.name, package):
            return os.environ.get("FLORAL_COMMIT")
        # New files count too, whatever the user's own settings of git say.
        changed = _git("status", "--porcelain", "--untracked-files=normal", "--", *MAKES_NUMBERS, folder=Path(root))
    except (OSError, ValueError, subprocess.SubprocessError):
        # A copy of the tree on another machine has no history of its own.
        return os.environ.get("FLORAL_COMMIT")
    return name + (DIRTY if changed else "")


def _git(*words: str, folder: Path) -> str:
    # Without locks, so that a commit that is being made meanwhile does not fail.
    command = ["git", "--no-optional-locks", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=5, check=True).stdout.strip()


def publishable(environment: dict[str, str]) -> None:
    """Raise a ValueError unless numbers made in this environment can be made again from a commit."""
    commit = environment.get("commit")
    if commit is None:
        raise ValueError("the source tree has no commit: results that are published must name one")
    if commit.endswith(DIRTY):
        raise ValueError(f"the source tree differs from commit {commit.removesuffix(DIRTY)}: commit before publishing")
