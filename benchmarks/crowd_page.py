"""Tables and picture of docs/results/crowd.md from a run of ``floral bench crowd``.

    python benchmarks/crowd_page.py digits RUN    # a crowd over digits, on which rules were chosen, into the same store
    python benchmarks/crowd_page.py page RUN      # RUN holds store.sqlite

The page marks a table with ``<!-- table: NAME -->`` and ``<!-- end -->``; what stands between is written anew.
Sentences are a person's, and what `page` prints says which numbers they should have.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import time
from pathlib import Path

import pandas as pd
from joblib import Parallel, delayed

from floral_bench.crowds.card import OURS, complete, crowd_frame, groups, score_card, write_crowd
from floral_bench.crowds.cells import crowd_cells
from floral_bench.crowds.score import run_cell
from floral_bench.reporting.making import begin, shortened
from floral_bench.reporting.origin import note_of, parts_of
from floral_bench.spec import Cell
from floral_bench.store import Store
from floral_learn.files.atomic_files import write_atomically

ROOT = Path(__file__).resolve().parents[1]
ORDER = ("majority", "glad", "mace", "dawid-skene", "crowdlab", "ours without features", OURS)
SHOWN = ("accuracy", "worst", "model", "calibration", "ranking", "decided", "accuracy_decided", "seconds")
WHERE = ["data", "crowd", "split", "attack", "level"]
BEHIND = 0.01


def fill(text: str, tables: dict[str, str]) -> str:
    """A page with every marked table written anew; an unknown name is an error."""
    pattern = re.compile(r"(<!-- table: ([a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)
    return pattern.sub(lambda m: f"{m[1]}\n{tables[m[2]]}\n\n{m[3]}", text)


def digits_cells() -> list[Cell]:
    """A sparse crowd over digits without attack and at two levels; GLAD and MACE take minutes on ten classes."""
    return [
        cell
        for cell in crowd_cells(levels=(20.0, 40.0), development=True)
        if cell.data.name == "digits"
        and dict(cell.data.params)["kind"] == "sparse"
        and dict(cell.method.params)["aggregator"] not in ("glad", "mace")
    ]


def run_digits(folder: Path, jobs: int) -> None:
    """Cells that the store does not have."""
    making = begin()
    with Store(folder / "store.sqlite") as store:
        known = store.status(cell.key for cell in digits_cells())
        left = [cell for cell in digits_cells() if cell.key not in known]
        began = time.perf_counter()
        number = store.begin_run("crowd", {"command": making.command, "environment": making.environment})
        for result in Parallel(jobs, return_as="generator_unordered")(delayed(run_cell)(cell) for cell in left):
            store.commit(result)
        store.end_run(number, "done", time.perf_counter() - began)
    print(f"{len(left)} cells in {time.perf_counter() - began:.0f} s")


def markdown(table: pd.DataFrame, digits: int = 3) -> str:
    """A table of numbers, its index as first columns; nothing where there is no number."""
    flat = table.reset_index()
    rows = [[_shown(value, digits) for value in row] for row in flat.itertuples(index=False)]
    names = [str(name) for name in flat.columns]
    return "\n".join("| " + " | ".join(row) + " |" for row in (names, ["---"] * len(names), *rows))


def _shown(value: object, digits: int) -> str:
    if isinstance(value, float):
        if value != value:
            return ""
        return f"{value:.0f}" if value == int(value) and value >= 10 else f"{value:.{digits}f}"
    return str(value)


def by_data(frame: pd.DataFrame, metric: str) -> str:
    """Without attack: data sets down, methods across."""
    free = frame[frame["attack"] == "none"]
    return markdown(free.pivot_table(index="data", columns="method", values=metric)[list(_methods(frame))])


def _methods(frame: pd.DataFrame) -> tuple[str, ...]:
    return tuple(name for name in ORDER if name in set(frame["method"]))


def leads(frame: pd.DataFrame) -> pd.DataFrame:
    """Every problem below the limit, methods across, with the lead of ours over the best peer; smallest first."""
    below = frame[frame["level"] / 100 < frame["limit"]]
    table = below.pivot_table(index=WHERE, columns="method", values="accuracy")[list(_methods(frame))]
    peers = [name for name in table if not name.startswith(OURS)]
    table["lead"] = table[OURS] - table[peers].max(axis=1)
    return table.sort_values("lead").droplevel(["crowd", "split"])


def page(folder: Path, docs: Path) -> None:
    """Tables, picture and note."""
    cells = {"crowd": [*crowd_cells(), *digits_cells()]}
    with Store(folder / "store.sqlite", read_only=True) as store:
        note = note_of(parts_of(store, "crowd", cells))
        note["command"] = "; ".join(shortened(shlex.split(command)) for command in note["command"].split("; "))
        main, digits = crowd_frame(crowd_cells(), store), crowd_frame(digits_cells(), store)
    whole = complete(main)
    table, each = groups(main), leads(whole)
    tables = {
        "all": markdown(score_card(main)[list(SHOWN)]),
        "attacks": markdown(table[[*_methods(main), "lead"]]),
        "without": by_data(whole, "accuracy"),
        "calibration": by_data(whole, "calibration"),
        "worst": markdown(each.head(10)),
        "digits": markdown(score_card(digits)[[name for name in SHOWN if name != "seconds"]]),
    }
    write_crowd(main, docs / "crowd", note)
    both = pd.concat([main, digits]).sort_values([*WHERE, "method"])
    write_atomically(docs / "crowd" / "cells.csv", both.to_csv(index=False, float_format="%.4f"))
    target = docs / "crowd.md"
    write_atomically(target, fill(target.read_text(encoding="utf-8"), tables))
    problems = whole.drop_duplicates(WHERE)
    print(f"{len(problems)} problems, {len(whole)} cells; smallest lead of a group {table['lead'].min():.3f}")
    print(
        f"{(each['lead'] <= -BEHIND + 1e-9).sum()} problems are {BEHIND} or more behind, worst {each['lead'].min():.3f}"
    )
    print(f"commit {note['environment']['commit']}, {note['seconds']:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("digits", "page"))
    parser.add_argument("run", type=Path, help="folder of the run, with store.sqlite")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "results")
    given = parser.parse_args()
    try:
        run_digits(given.run, given.jobs) if given.what == "digits" else page(given.run, given.docs)
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
