"""What the questions suite is held against: recovered shares, harm, and the other orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from floral_bench.questions.card import ANSWERS, paired, score_card
from floral_bench.questions.cells import REVIEW

if TYPE_CHECKING:
    import pandas as pd

RECOVERED = {10: 0.40, 20: 0.60, 50: 0.75, 100: 0.85}
MEAN_HARM, WORST_HARM = -0.005, -0.03  # at every number of answers; from 20 answers on


def goal_rows(frame: pd.DataFrame, group: str = "tables") -> list[tuple[str, str, str, bool]]:
    """(what, goal, measured, reached) for our questions with our reading and right answers."""
    card = score_card(frame[(frame["group"] == group) & (frame["wrong_answers"] == 0)])
    ours = card[(card["order"] == REVIEW) & (card["reading"] == "posterior")].set_index("answers")
    rows = []
    for answers, goal in RECOVERED.items():
        share = float(ours["recovered"].get(answers, float("nan")))
        rows.append((f"recovered with {answers} answers", f"{goal:.0%}", f"{share:.0%}", share >= goal))
    mean = float(ours["mean_harm"].min())
    rows.append(("lowest mean harm, any number of answers", f"{MEAN_HARM}", f"{mean:+.4f}", mean >= MEAN_HARM))
    worst = float(ours.loc[ours.index >= 20, "worst_harm"].min())
    rows.append(("worst harm, from 20 answers on", f"{WORST_HARM}", f"{worst:+.3f}", worst >= WORST_HARM))
    for reading, words in (
        ("fixed only", "ahead of every order, label fixed only"),
        ("posterior", "behind no order with our reading, beyond two standard errors"),
    ):
        found = {n: paired(frame, group, n) for n in ANSWERS}
        apart = [
            (
                row["ahead_by"] if reading == "fixed only" else row["ahead_by"] + 2 * row["standard_error"],
                row["order"],
                n,
            )
            for n, table in found.items()
            if len(table)
            for _, row in table[table["reading"] == reading].iterrows()
            if (row["order"], reading) != (REVIEW, "posterior")
        ]
        if apart:
            least, order, answers = min(apart)
            measured = f"least {least:+.3f} ({order}, {answers} answers)"
            rows.append((words, "above 0", measured, least > 0))
    return rows
