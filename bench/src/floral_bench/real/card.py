"""The suite's rows as three tables, averaged over splits, and what is made of them: means over sources, intervals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from floral_bench.experiments import Experiment
from floral_bench.real.asking import MODELS as REVIEWED
from floral_bench.real.asking import TRUE_LABELS
from floral_bench.real.cells import ALONE, AUDIT, PLANTED_USE, REVIEW, available, prepare, real_cells
from floral_bench.real.sets import SETS, TRUE
from floral_bench.real.telling_nothing import PLAIN
from floral_bench.real.telling_nothing import TRUE_LABELS as PLAIN_TRUE
from floral_bench.reporting.results import cell_frame
from floral_bench.spec import Cell
from floral_bench.store import Store
from floral_learn.base.files import write_atomically

PLACE = ["use", "source", "set", "kind", "level"]
FILES = {AUDIT: "audit.csv", REVIEW: "review.csv", ALONE: "alone.csv"}
DRAWS, INTERVAL = 2000, (2.5, 97.5)  # of the bootstrap


def frames(cells: Sequence[Cell], store: Store) -> pd.DataFrame:
    """One row per number of a finished cell: where, what, who, and after how many answers."""

    def named(cell: Cell) -> dict[str, Any]:
        assert cell.attack is not None
        name, options = cell.data.name, dict(cell.method.params)
        use, source = (SETS[name].use, SETS[name].source) if name in SETS else (PLANTED_USE, name)
        where = {"use": use, "source": source, "set": name, "kind": cell.attack.name, "level": cell.level}
        return where | {"split": cell.seed} | {key: options[key] for key in ("part", "who", "wrong_answers")}

    return complete(cell_frame(cells, store, named).drop(columns="key"))


def complete(frame: pd.DataFrame) -> pd.DataFrame:
    """Only labels on which everybody of a part has finished, so that means compare like with like."""
    if not len(frame):
        return frame
    at = frame.assign(everybody=frame.groupby(["part", "set"])["who"].transform("nunique"))
    there = at.groupby(["part", *PLACE, "split", "wrong_answers"])["who"].transform("nunique")
    return frame[there == at["everybody"]]


def averaged(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The tables of the parts: numbers are means over splits, and for audits of planted errors over their kinds."""
    out = {}
    for part, columns in ((AUDIT, ["who"]), (REVIEW, ["who", "wrong_answers", "answers"]), (ALONE, ["who", "way"])):
        rows = frame[frame["part"] == part].rename(columns={"config": "way"})
        rows = rows.assign(answers=rows["statistic"] if part == REVIEW else "0").astype({"answers": int})
        if part == AUDIT:
            several = (rows["use"] == PLANTED_USE) & (rows["kind"] != TRUE)
            rows["kind"] = rows["kind"].where(~several, "planted")
        groups = rows.groupby([*PLACE, *columns, "metric"], sort=False)["value"].mean()
        found = groups.unstack("metric")[list(dict.fromkeys(rows["metric"]))] if len(rows) else pd.DataFrame()
        splits = rows.groupby([*PLACE, *columns], sort=False)["split"].nunique()
        out[part] = found.assign(splits=splits).reset_index() if len(rows) else found
    return out


def by_source(table: pd.DataFrame, metric: str, who: str = "who") -> pd.DataFrame:
    """The number of each source (rows) by whom (columns): the mean over kinds of labels, then over its sets."""
    inner = table.groupby([who, "source", "set"], sort=False)[metric].mean()
    return inner.groupby([who, "source"], sort=False).mean().unstack("source").T


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """The mean over sources, and a bootstrap interval that draws them with replacement."""
    values = values[np.isfinite(values)]
    if not len(values):
        return (float("nan"),) * 3
    drawn = np.random.default_rng(0).choice(values, (DRAWS, len(values))).mean(axis=1)
    low, high = np.percentile(drawn, INTERVAL)
    return float(values.mean()), float(low), float(high)


def gains(review: pd.DataFrame) -> pd.DataFrame:
    """Wrong labels left of one before, accuracy won (mean of models), what an SVC lost and has back."""
    if not len(review):
        return review
    at, start = _beside(review, "answers", 0, [*PLACE, "who", "wrong_answers"])
    at = at.assign(left=at["left"] / start["left"], won=(at[[*REVIEWED]] - start[[*REVIEWED]]).mean(axis=1))
    return at.assign(lost=start["SVC" + TRUE_LABELS] - start["SVC"], back=at["SVC"] - start["SVC"]).reset_index()


def over_plain(alone: pd.DataFrame) -> pd.DataFrame:
    """Accuracy over the plain model's, and its time as a multiple."""
    if not len(alone):
        return alone
    at, plain = _beside(alone[alone["way"] != PLAIN_TRUE], "way", PLAIN, [*PLACE, "who"])
    over, times = at["accuracy"] - plain["accuracy"], at["seconds"] / plain["seconds"]
    return at.assign(over=over, times=times).reset_index()


def _beside(table: pd.DataFrame, name: str, value: Any, keys: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All other rows, and for each of them the one with the same keys where column `name` has the value."""
    base = table[table[name] == value].set_index(keys)
    rest = table[table[name] != value].set_index(keys)
    return rest, base.reindex(rest.index)


class RealErrors(Experiment):
    """The suite; three small tables and two pages are written."""

    def write(self, frame: pd.DataFrame, folder: Path, note: dict[str, Any]) -> list[Path]:
        """``audit.csv``, ``review.csv``, ``alone.csv``, ``run.json`` and the pages."""
        from floral_bench.real.page import pages

        folder.mkdir(parents=True, exist_ok=True)
        written = [write_atomically(folder / "run.json", json.dumps(note, indent=1) + "\n")]
        for part, table in averaged(frame).items():
            text = table.to_csv(index=False, float_format="%.4g")
            written.append(write_atomically(folder / FILES[part], text))
        for name, text in pages(folder).items():
            written.append(write_atomically(folder / name, text))
        return written


def real_errors(title: str, changes: dict[str, Any]) -> RealErrors:
    """The suite as the user asked for it."""
    from floral_bench.real.page import card_text

    cells = real_cells(**changes)
    _, away = available(planted=not changes.get("quick"))
    notes = (f"not found, left out: {', '.join(away)}; the folder of the data goes into FLORAL_DATA",) if away else ()
    return RealErrors(title, cells, frames, card_text, (), {}, notes, prepare)


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables that a run wrote; empty where a part was not run."""
    found = {}
    for part, name in FILES.items():
        text = (folder / name).read_text(encoding="utf-8") if (folder / name).is_file() else ""
        found[part] = pd.read_csv(folder / name) if text.strip() else pd.DataFrame()
    return found
