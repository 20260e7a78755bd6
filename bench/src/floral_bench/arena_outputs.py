"""What ``floral bench arena`` leaves for people: the score card, the cells behind it, a picture and a note."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floral_bench.arena_card import CELL, score_card, to_markdown
from floral_learn.files.atomic_files import write_atomically

if TYPE_CHECKING:
    import pandas as pd


def write_arena(frame: pd.DataFrame, folder: Path, note: dict[str, Any]) -> list[Path]:
    """Write ``tables/scorecard`` (.md, .csv), ``tables/cells.csv``, ``figures/arena.png`` and ``run.json``."""
    from floral_bench.figures.arena import draw_arena
    from floral_bench.figures.style import print_style

    (folder / "tables").mkdir(parents=True, exist_ok=True)
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    card = score_card(frame)
    cells = frame.pivot_table(index=CELL, columns="method", values="accuracy")
    with print_style():
        stream = io.BytesIO()
        draw_arena(frame).savefig(stream, format="png", dpi=140, bbox_inches="tight")
    return [
        write_atomically(folder / "tables" / "scorecard.md", to_markdown(card)),
        write_atomically(folder / "tables" / "scorecard.csv", card.round(6).to_csv(index=False)),
        write_atomically(folder / "tables" / "cells.csv", cells.round(5).to_csv()),
        write_atomically(folder / "figures" / "arena.png", stream.getvalue()),
        write_atomically(folder / "run.json", json.dumps(note, indent=1) + "\n"),
    ]
