"""``floral bench questions``: run what is missing, then the score card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .bench_cells import run_cells


def run_questions(cells: list[Any], out: Path, jobs: int, retry_errors: bool, quick: bool) -> int:
    """Run the cells that the store does not have, write and print the card; returns how many failed."""
    from floral_bench.questions import ask_and_score
    from floral_bench.questions.card import question_frame
    from floral_bench.questions.cells import problem_of
    from floral_bench.questions.outputs import card_text, write_questions

    def report(store: Any, note: dict[str, Any]) -> str | None:
        frame = question_frame(cells, store)
        if not len(frame):
            return None
        write_questions(frame, out / ("questions-quick" if quick else "questions"), note)
        return card_text(frame)

    together = (problem_of, ask_and_score.run_cells)
    return run_cells(
        "questions",
        cells,
        ask_and_score.run_cell,
        out,
        jobs,
        retry_errors=retry_errors,
        report=report,
        together=together,
    )
