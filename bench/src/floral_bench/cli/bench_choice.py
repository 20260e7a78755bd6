"""What ``floral bench`` is asked to run, from the texts of its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Cells:
    """Work that is a list of cells with a score card at its end, and the function that does it."""

    cells: list[Any]
    run: Callable[..., int]


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


def suite_by_name(name: str, changes: Mapping[str, Any]) -> Any:
    """A suite, the arena's list of them, or `Cells`; a ValueError names what is wrong."""
    from floral_bench.adapt_suite import adapt
    from floral_bench.arena import ARENA_SUITES, adapted
    from floral_bench.suites import SUITES

    known = {**SUITES, **ARENA_SUITES}
    if name in known:
        return adapt(known[name], **changes)
    if name not in ("arena", "questions", "crowd"):
        raise ValueError(
            f"unknown suite {name!r}; known: {', '.join([*SUITES, 'questions', 'crowd', 'arena', *ARENA_SUITES])}"
        )
    changes = dict(changes)
    if changes.pop("reference"):
        raise ValueError(f"--authors-labels exist for the paper's Moon suites, not for {name}")
    if name == "arena":
        return adapted(changes["quick"], changes["reps"], changes["methods"], changes["levels"], changes["seed"])
    if name == "questions":
        from floral_bench.questions.cells import question_cells

        from .bench_questions import run_questions

        return Cells(question_cells(**changes), run_questions)
    from floral_bench.crowds.cells import crowd_cells

    from .bench_crowd import run_crowd

    return Cells(crowd_cells(**changes), run_crowd)


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
