"""Where and with what numbers were made: versions, machine, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("floral-learn", "numpy", "scipy", "scikit-learn", "joblib", "torch", "matplotlib", "pandas")


def environment() -> dict[str, str]:
    """Versions of what computes, and a rough description of the machine (no host or user names)."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    found["system"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
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
        return None
    return name + (" with local changes" if changed else "")
