"""Fill the numbers of the pages from the rows under docs/results: nobody types a result, nobody holds a sentence to it.

    python benchmarks/fill_numbers.py            # writes the pages whose numbers have changed
    python benchmarks/fill_numbers.py --check    # says what would change, and ends with 1; a test runs this

A number is followed by a comment that says what it is, which readers do not see:

    FLORAL has 0.788<!--=moon; floral; last; 25--> in its last round

    suite; method; statistic; levels     a mean accuracy; several levels (10 25) or "poisoned" are averaged
    suite; method - other; ...           the difference of two methods, cell by cell
    ...; paper                           the paper's number
    ...; min, max, median                in place of the mean over cells
    ...; points                          times 100, without sign
    ...; attack=top-k, C=10, gamma=1     which of several; an attack by the beginning of its name
    ...; config=B=10 k=5                 of one setting, where a statistic has a line for each
    ...; metric=hinge_loss
    counted; method - other; higher      over all poisoned cells of the paper's tables, each once (summary.md): higher,
                                         lower, cells, mean, median, min, max
    leads; last; paper                   cells in which FLORAL is first, in the paper's numbers or in ours

A number keeps its digits after the point, and its sign where it had one.
"""

from __future__ import annotations

import argparse
import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from floral_bench.reporting import summary
from floral_bench.reporting.paper import paper_value
from floral_bench.suites import SUITES
from floral_learn.base.files import write_atomically

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
PAGES = (*sorted((ROOT / "docs").glob("*.md")), *sorted(RESULTS.glob("*.md")))
PLACE = re.compile(r"(?P<text>[-+]?\d+(?:\.\d+)?)<!--=(?P<what>[^>]+?)-->")
REDUCE = {"mean": np.mean, "min": np.min, "max": np.max, "median": np.median}
# Where the numbers of the paper do not stand in our rows: another attack, another network.
PAPER_TABLES = {
    "mnist-duals": "comp-mnist1vs7", "mnist-rs": "comp-mnist1vs7-rs-comp", "mnist-rsrnn": "comp-mnist-rsrnn-comp",
}  # fmt: skip
PAPER_NAMES = {"minilm, fine-tuned": "roberta"}


@cache
def rows(suite: str) -> pd.DataFrame:
    """All lines of a suite."""
    return pd.read_csv(RESULTS / suite / "rows.csv.gz", low_memory=False)


@cache
def counted() -> pd.DataFrame:
    """Every poisoned cell of the paper's tables, once."""
    return summary.once([s for s in summary.read_suites(RESULTS) if s.name not in summary.OTHER_LABELS])


def number(what: str) -> float:
    """The number that a comment names; a ValueError where rows do not have it."""
    first, *rest = (part.strip() for part in what.split(";"))
    if first == "leads":
        return summary.leads(counted(), rest[0], "paper" if "paper" in rest else "mean").first
    if first == "counted":
        method, other = rest[0].split(" - ")
        values = summary.differences(counted(), method, other)
        counts = {"higher": (values > 0.0005).sum(), "lower": (values < -0.0005).sum(), "cells": len(values)}
        return float(counts[rest[1]]) if rest[1] in counts else _shown(REDUCE[rest[1]](values), rest[2:])
    method, statistic, levels, *options = rest
    given = dict(option.split("=", 1) for option in options if "=" in option)
    if "paper" in options:
        return _paper(first, method, statistic, float(levels), given)
    values = _values(first, method, statistic, levels, given)
    reduce = next((REDUCE[option] for option in options if option in REDUCE), np.mean)
    return _shown(reduce(values), options)


def _values(suite: str, method: str, statistic: str, levels: str, given: dict[str, str]) -> np.ndarray:
    found = rows(suite)
    found = found[(found.statistic == statistic) & (found.metric == given.pop("metric", "accuracy"))]
    found = found[found.level > 0] if levels == "poisoned" else found[found.level.isin([*map(float, levels.split())])]
    for name, value in given.items():
        column = {"config": "configuration"}.get(name, name)
        same = found[column].astype(str).str.startswith(value) if name == "attack" else None
        found = found[same if same is not None else found[column].isin([value, _float(value)])]
    where = ["attack", "C", "gamma", "level"]
    one, _, other = method.partition(" - ")
    mine = found[found.method == one].drop_duplicates([*where, "configuration"]).set_index(where)["mean"]
    if other:
        mine = (mine - found[found.method == other].drop_duplicates(where).set_index(where)["mean"]).dropna()
    if not len(mine):
        raise ValueError(f"{suite} has no {statistic!r} of {method!r} at {levels} % with {given}")
    return mine.to_numpy()


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _shown(value: float, options: list[str]) -> float:
    return abs(100 * float(value)) if "points" in options else float(value)


def _paper(name: str, method: str, statistic: str, level: float, given: dict[str, str]) -> float:
    suite = SUITES[name.removesuffix("-reference")]
    table = PAPER_TABLES.get(name, suite.paper_table)
    setting = (float(given.get("C", suite.settings[0][0])), float(given.get("gamma", suite.settings[0][1])))
    method, metric = PAPER_NAMES.get(method, method), given.get("metric", "accuracy")
    for kind in (statistic, "last"):  # the paper lists its single fits under "last"
        if (value := paper_value(table, level, setting, method, metric, kind)) is not None:
            return value
    raise ValueError(f"the paper has no {statistic!r} of {method!r} at {level:g} % for {name}")


def filled(text: str) -> str:
    """The text of a page with its numbers as the rows have them."""

    def fill(found: re.Match[str]) -> str:
        old = found["text"]
        digits = len(old.partition(".")[2])
        new = f"{number(found['what']):.{digits}f}"
        new = new.removeprefix("-") if float(new) == 0 else new
        if old.startswith("+") and not new.startswith("-"):
            new = f"+{new}"
        return f"{new}<!--={found['what']}-->"

    return PLACE.sub(fill, text)


def changes(page: Path) -> list[str]:
    """What differs on a page, in words."""
    before = page.read_text(encoding="utf-8")
    after = filled(before)
    old, new = ([m["text"] for m in PLACE.finditer(text)] for text in (before, after))
    what = [m["what"] for m in PLACE.finditer(before)]
    out = [f"{page.name}: {a} -> {b} ({w})" for a, b, w in zip(old, new, what, strict=True) if a != b]
    if before.count("<!--=") != len(old):
        out.append(f"{page.name}: a comment <!--=...--> does not follow a number")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 where a number is not that of the rows")
    args = parser.parse_args()
    found = [line for page in PAGES for line in changes(page)]
    print("\n".join(found) if found else "every number is that of the rows")
    if args.check:
        sys.exit(1 if found else 0)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if (new := filled(text)) != text:
            write_atomically(page, new)


if __name__ == "__main__":
    main()
