"""What ``floral bench`` is asked to run, from the texts of its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def suite_of_file(
    path: Path,
    label: str | None,
    attacks: list[str],
    reading: Mapping[str, Any],
    changes: Mapping[str, Any],
    thorough: bool = False,
) -> Any:
    """The comparison on a user's own table."""
    from floral_bench.adapt_suite import adapt

    from .bench_data import suite_for_file

    if label is None:
        raise ValueError("--data needs --label, the name of the label column")
    suite = suite_for_file(path, label, attacks, reading, thorough=thorough, everything=bool(changes["methods"]))
    return adapt(suite, **changes)


def by_name(name: str, changes: Mapping[str, Any]) -> Any:
    """A suite or an experiment; a ValueError names what is wrong."""
    from floral_bench.adapt_suite import adapt
    from floral_bench.arena import ARENA_SUITES
    from floral_bench.experiments import TITLES, experiment
    from floral_bench.suites import SUITES

    known = {**SUITES, **ARENA_SUITES}
    if name in known:
        return adapt(known[name], **changes)
    if name not in TITLES:
        raise ValueError(f"unknown suite {name!r}; known: {', '.join([*SUITES, *TITLES, *ARENA_SUITES])}")
    changes = dict(changes)
    if changes.pop("reference"):
        raise ValueError(f"--authors-labels exist for the paper's Moon suites, not for {name}")
    return experiment(name, changes)


def percentages(levels: Sequence[str]) -> list[float]:
    """The numbers of ``--level``, with or without a percent sign."""
    try:
        return [float(text.removesuffix("%")) for text in listed(levels)]
    except ValueError:
        given = ",".join(levels)
        raise ValueError(f"--levels {given!r} must be percentages, such as --levels 0,10,25") from None


def listed(names: Sequence[str]) -> list[str]:
    """The names of an option that may be repeated, each of which may hold several, separated by commas."""
    return [text.strip() for name in names for text in name.split(",") if text.strip()]
