"""Experiments that end in one card: cells go through the runner into the store, their rows become a frame, a card.

The suites of the paper have tables and pages of their own (`suites`, `reporting`); the questions and the votes are
data for what stands here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from floral_bench.crowds.card import card_text as votes_card
from floral_bench.crowds.card import crowd_frame
from floral_bench.crowds.cells import crowd_cells
from floral_bench.crowds.peers import METHODS, available
from floral_bench.questions.card import NUMBERS, question_frame
from floral_bench.questions.card import card_text as questions_card
from floral_bench.questions.cells import question_cells
from floral_bench.spec import Cell
from floral_bench.store import Store
from floral_learn.base.extras import bench_install_line
from floral_learn.base.files import write_atomically

SPLIT = "split"
TITLES = {
    "questions": "what a person's answers bring, by who chooses the rows and how answers are read",
    "real": "labels that people, crowds and labelling functions got wrong: audit, review, and nobody to ask",
    "crowd": "labels from votes of people of whom some lie: majority, Dawid-Skene, CROWDLAB, ours, ...",
}


@dataclass(frozen=True)
class Experiment:
    """Cells, how their rows are read, and what is made of them."""

    name: str
    cells: list[Cell]
    read: Callable[[Sequence[Cell], Store], pd.DataFrame]
    card: Callable[[pd.DataFrame], str]
    numbers: tuple[str, ...]  # columns of the frame that are averaged over splits; what is left names a cell
    pictures: Mapping[str, str] = field(default_factory=dict)  # file -> function of `figures.cards`
    notes: tuple[str, ...] = ()  # said before it runs
    ready: Callable[[Sequence[Cell]], None] = lambda cells: None  # done once, before workers begin

    def write(self, frame: pd.DataFrame, folder: Path, note: dict[str, Any]) -> list[Path]:
        """``card.md``, ``cells.csv`` with the number of splits of each cell, the pictures and ``run.json``."""
        from floral_bench.figures import cards
        from floral_bench.figures.style import write_png

        folder.mkdir(parents=True, exist_ok=True)
        written = [
            write_atomically(folder / "card.md", self.card(frame)),
            write_atomically(folder / "cells.csv", self.averaged(frame).to_csv(index=False)),
            write_atomically(folder / "run.json", json.dumps(note, indent=1) + "\n"),
        ]
        for name, function in self.pictures.items():
            written += write_png(partial(getattr(cards, function), frame), folder / f"{name}.png", 110)
        return written

    def averaged(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A line per cell: means over its splits, and how many these are."""
        numbers = [name for name in self.numbers if name in frame]
        groups = frame.groupby([name for name in frame if name not in (*numbers, SPLIT)], sort=False)
        means = groups[numbers].mean().round(4)
        means.insert(0, "splits", groups[SPLIT].nunique())
        return means.reset_index()


def experiment(name: str, changes: Mapping[str, Any]) -> Experiment:
    """The experiment as the user asked for it: quick, reps, methods, levels, seed."""
    title = f"{name}-quick" if changes.get("quick") else name
    if name == "questions":
        found = question_cells(**changes)
        return Experiment(title, found, question_frame, questions_card, NUMBERS, {"answers": "draw_questions"})
    if name == "real":
        from floral_bench.real.card import real_errors

        return real_errors(title, dict(changes))
    lost = [method for method in METHODS if method not in available()]
    measured = ("accuracy", "calibration", "model", "seconds", "limit", "decided", "accuracy_decided", "ranking")
    notes = (f"not installed, left out: {', '.join(lost)} ({bench_install_line(peers=True)})",) if lost else ()
    return Experiment(title, crowd_cells(**changes), crowd_frame, votes_card, measured, notes=notes)
