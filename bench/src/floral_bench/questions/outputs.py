"""What ``floral bench questions`` leaves for people: the card, the cells, the curves."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floral_bench.questions.card import ANSWERS, by_attack, paired, score_card
from floral_bench.questions.cells import REVIEW
from floral_learn.files.atomic_files import write_atomically

if TYPE_CHECKING:
    import pandas as pd


def write_questions(frame: pd.DataFrame, folder: Path, note: dict[str, Any]) -> list[Path]:
    """Write ``scorecard`` (.md, .csv), ``cells.csv``, ``questions.png`` and ``run.json`` into `folder`."""
    from floral_bench.figures.questions import draw_questions
    from floral_bench.figures.style import print_style

    folder.mkdir(parents=True, exist_ok=True)
    with print_style():
        stream = io.BytesIO()
        draw_questions(frame).savefig(stream, format="png", dpi=140, bbox_inches="tight")
    keys = ["group", "data", "attack", "level", "order", "wrong_answers", "reading", "answers"]
    cells = frame.groupby(keys)[["accuracy", "svc", "clean"]].mean().round(4).reset_index()
    return [
        write_atomically(folder / "scorecard.md", card_text(frame)),
        write_atomically(folder / "scorecard.csv", score_card(frame).round(5).to_csv(index=False)),
        write_atomically(folder / "cells.csv", cells.to_csv(index=False)),
        write_atomically(folder / "questions.png", stream.getvalue()),
        write_atomically(folder / "run.json", json.dumps(note, indent=1) + "\n"),
    ]


def card_text(frame: pd.DataFrame) -> str:
    """The card as Markdown: one table per group, recovered shares by attack, and paired differences."""
    card = score_card(frame)
    lines: list[str] = []
    for group in dict.fromkeys(card["group"]):
        part = card[card["group"] == group]
        first = part.iloc[0]
        lines += [
            f"### {group}: {first['cells']} poisoned cells, SVC {first['svc']:.3f}, clean {first['clean']:.3f}",
            "",
        ]
        head = [*(f"{n} answers" for n in ANSWERS), "mean harm", "worst harm", "worst cell"]
        lines.append("| who chooses, how answers are read | " + " | ".join(head) + " |")
        lines.append("|---|" + "---:|" * len(head))
        for (order, wrong, reading), rows in part.groupby(["order", "wrong_answers", "reading"], sort=False):
            words = f"{order}, {reading}" + (f" ({wrong} % of the answers wrong)" if wrong else "")
            shares = [f"{v:.0%}" for v in rows.set_index("answers")["recovered"].reindex(ANSWERS)]
            late = rows[rows["answers"] >= 20]
            lines.append(
                f"| {words} | " + " | ".join(shares) + f" | {rows['mean_harm'].min():+.4f} | "
                f"{late['worst_harm'].min():+.3f} | {late['worst'].min():+.3f} |"
            )
        lines += ["", *_attack_lines(frame, group), "", *_paired_lines(frame, group), ""]
    return "\n".join(lines) + "\n"


def _attack_lines(frame: pd.DataFrame, group: str) -> list[str]:
    table = by_attack(frame, group)
    if not len(table):
        return []
    lines = [
        "| attack | level | SVC | clean | " + " | ".join(map(str, ANSWERS)) + " |",
        "|---" * (4 + len(ANSWERS)) + "|",
    ]
    for (attack, level), row in table.iterrows():
        shares = " | ".join("" if row[n] != row[n] else f"{row[n]:.0%}" for n in ANSWERS)
        lines.append(f"| {attack} | {level:g} % | {row['SVC']:.3f} | {row['clean']:.3f} | {shares} |")
    return lines


def _paired_lines(frame: pd.DataFrame, group: str) -> list[str]:
    lines = ["| ours ahead of | 10 | 20 | 50 | 100 |", "|---|---|---|---|---|"]
    found = {n: paired(frame, group, n) for n in ANSWERS}
    if not all(len(table) for table in found.values()):
        return []  # our own questions were not run
    tables = {n: table.set_index(["order", "reading"]) for n, table in found.items()}
    for key in tables[ANSWERS[0]].index:
        if key != (REVIEW, "posterior"):
            values = [tables[n].loc[key] if key in tables[n].index else None for n in ANSWERS]
            words = ["" if v is None else f"{v['ahead_by']:+.3f} ± {v['standard_error']:.3f}" for v in values]
            lines.append(f"| {', '.join(key)} | " + " | ".join(words) + " |")
    return lines
