"""``floral bench crowd``: run what is missing, then the score card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from floral_learn.base.extras import bench_install_line

from .bench_cells import run_cells


def run_crowd(cells: list[Any], out: Path, jobs: int, retry_errors: bool, quick: bool) -> int:
    """Run the cells that the store does not have, write and print the card; returns how many failed."""
    from floral_bench.crowds.card import card_text, crowd_frame, write_crowd
    from floral_bench.crowds.peers import METHODS, available
    from floral_bench.crowds.score import run_cell

    if missing := [name for name in METHODS if name not in available()]:
        typer.echo(f"crowd: not installed, left out: {', '.join(missing)} ({bench_install_line(peers=True)})", err=True)

    def report(store: Any, note: dict[str, Any]) -> str | None:
        frame = crowd_frame(cells, store)
        if not len(frame):
            return None
        write_crowd(frame, out / ("crowd-quick" if quick else "crowd"), note)
        return card_text(frame)

    return run_cells("crowd", cells, run_cell, out, jobs, retry_errors=retry_errors, report=report)
