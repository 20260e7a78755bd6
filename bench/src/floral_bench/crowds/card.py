"""The crowd suite's rows, and the tables that are made from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from floral_bench.reporting.results import by_metric, cell_frame
from floral_bench.spec import Cell
from floral_bench.store import Store

OURS = "ours"
MEANS = ("accuracy", "model", "calibration", "seconds", "decided", "accuracy_decided", "ranking")


def crowd_frame(cells: Sequence[Cell], store: Store) -> Any:
    """One row per finished cell: where, what, who, and its numbers."""

    def named(cell: Cell) -> dict[str, Any]:
        assert cell.attack is not None
        data, informed = dict(cell.data.params), dict(cell.attack.params)["informed"]
        attack = cell.attack.name + (" (informed)" if informed else "")
        where = {"data": cell.data.name, "crowd": data["kind"], "split": data["split"]}
        return where | {"attack": attack, "level": cell.level, "method": dict(cell.method.params)["aggregator"]}

    return by_metric(cell_frame(cells, store, named))


def complete(frame: Any) -> Any:
    """Only problems that every method has finished, so that means compare like with like."""
    where = ["data", "crowd", "split", "attack", "level"]
    sizes = frame.groupby(where)["method"].transform("nunique")
    return frame[sizes == frame["method"].nunique()]


def score_card(frame: Any) -> Any:
    """Per method: means over all problems, and ours against the best peer in groups of cells below the limit."""
    frame = complete(frame)
    names = [name for name in MEANS if name in frame]
    methods = frame.groupby("method", sort=False)
    card = methods[names].mean()
    card.insert(1, "worst", methods["accuracy"].min())
    return card.sort_values("accuracy", ascending=False)


def groups(frame: Any) -> Any:
    """Mean accuracy per attack and level, methods as columns, with the lead of ours over the best peer."""
    frame = complete(frame)
    frame = frame[frame["level"] / 100 < frame["limit"]]
    table = frame.pivot_table(index=["attack", "level"], columns="method", values="accuracy", sort=True)
    if OURS in table:
        peers = table.drop(columns=[name for name in table if str(name).startswith(OURS)])
        if len(peers.columns):
            table["lead"] = table[OURS] - peers.max(axis=1)
    return table


def card_text(frame: Any) -> str:
    """The tables as text."""
    done = len(complete(frame)) // max(frame["method"].nunique(), 1)
    parts = [f"{done} problems, label accuracy and what else was measured:", score_card(frame).round(3).to_string()]
    parts += [
        "label accuracy per attack and level, below the limit of concerted lies:",
        groups(frame).round(3).to_string(),
    ]
    return "\n".join(parts)
