"""Every defense of the library at its defaults, on the arena's data sets under the same attacks and splits.

    python benchmarks/arena_defenses.py run [--seconds 500]     # into runs/arena.sqlite
    python benchmarks/arena_defenses.py publish                 # the tables of docs/which-defense.md, and their cells

Nobody is told the attack, its level or a clean label. Data sets whose files are not here are left out. `run` goes on
where a former run was stopped; `publish` takes the cells that every method has.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd

from floral_bench.adapt_suite import adapt
from floral_bench.arena import ARENA_SUITES, CELL, arena_card, arena_frame, over_plain
from floral_bench.cell_data import load
from floral_bench.reporting.environment import publishable
from floral_bench.reporting.making import begin
from floral_bench.reporting.tables import markdown
from floral_bench.runner import run_suite
from floral_bench.spec import Attack, Data, Suite, params
from floral_bench.store import Store, StoreError
from floral_learn.files.atomic_files import write_atomically

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "docs" / "results", ROOT / "docs" / "which-defense.md"
OPEN, CLOSE = "<!-- by `python benchmarks/arena_defenses.py publish` -->", "<!-- end -->"
BEHIND_SVC = ("plain-svc", "safe-svc", "cleanlab-svc")  # and all that end in -default
#: Data sets on which no number of the library's evidence about labels was chosen (docs/results/looked-at.md), and those
#: on which one was.
UNSEEN = ("spambase", "pima", "htru2", "magic04", "moon", "imbalanced", "spambase-rare", "ellipses")
SEEN = ("phoneme", "banknote", "breast-cancer", "mnist-1-7", "digits-3-8", "wine", "satimage")
ATTACKS = (Attack("random"), Attack("class-biased"), Attack("near-boundary"), Attack("farthest"), Attack("alfa-tilt"))
LEVELS, SPLITS, ROWS = (0, 10, 30), 2, 400


def suites(splits: int) -> list[Suite]:
    """The arena's suites with the defenses that have an SVM behind them, or take its place; 400 training rows."""
    found = []
    for name in (*UNSEEN, *SEEN):
        suite = adapt(ARENA_SUITES[f"arena-{name}"], reps=splits, levels=LEVELS)
        try:
            load(suite.data[0])
        except (FileNotFoundError, ValueError):
            continue
        kept = tuple(m for m in suite.methods if m.name in BEHIND_SVC or m.name.endswith("-default"))
        data = tuple(Data(d.name, params(**dict(d.params), n_train=ROWS)) for d in suite.data)
        attacks = tuple(attack for attack in ATTACKS if attack in suite.attacks)
        found.append(replace(suite, data=data, methods=kept, attacks=attacks))
    return found


def run(args: argparse.Namespace) -> None:
    """All cells that the store does not have, data set by data set until the time is over."""
    making, chosen, started = begin(), suites(args.splits), time.monotonic()
    with Store(args.store) as store:
        number = store.begin_run("arena", {"command": making.command, "environment": making.environment})
        computed = failed = 0
        for suite in chosen:
            if time.monotonic() - started > args.seconds:
                print(f"time is over before {suite.name}: call it again to go on")
                break
            report = run_suite(suite, store, jobs=args.jobs, retry_errors=True)
            computed, failed = computed + report.computed, failed + report.failed
            print(
                f"{suite.name}: {report.computed} cells in {report.seconds:.0f} s, {report.failed} failed", flush=True
            )
        store.end_run(number, "done", time.monotonic() - started)
    print(f"{computed} cells computed, {failed} failed")


def by_attack(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean difference to SVC() of each method (rows) under each attack (columns), poisoned cells."""
    apart = over_plain(frame[frame.level > 0]).groupby(level="attack").mean().T
    shown = apart.loc[apart.mean(axis=1).sort_values(ascending=False).index].map("{:+.3f}".format)
    return shown.rename_axis("method").reset_index().rename_axis(columns=None)


def publish(args: argparse.Namespace) -> None:
    """The tables of the page, between its markers, and the cells behind them."""
    cells = [cell for suite in suites(args.splits) for cell in suite.cells()]
    with Store(args.store, read_only=True) as store:
        frame = arena_frame(cells, store)
        notes = [note for note in store.runs("arena") if note["status"] == "done"]
    where, command = notes[-1]["info"]["environment"], notes[-1]["info"]["command"]
    publishable(where)
    several = [*CELL, "split"]
    counts = frame.groupby(several)["method"].transform("nunique")
    frame = frame[counts == frame.method.nunique()]
    wide = frame.pivot_table(index=CELL, columns="method", values="accuracy").round(4)
    wide.insert(0, "splits", frame.groupby(CELL)["split"].nunique())
    write_atomically(RESULTS / "arena" / "defenses.csv", wide.to_csv())
    seconds = sum(note["seconds"] for note in notes)
    run = {"command": command, "environment": where, "started": notes[0]["started"], "seconds": round(seconds, 1)}
    write_atomically(RESULTS / "arena" / "run.json", json.dumps(run | {"cells": len(frame)}, indent=1) + "\n")
    unseen, seen = (frame[frame.data.isin(names)] for names in (UNSEEN, SEEN))
    parts = [
        f"{where['date'][:10]}, commit {where['commit']}, {where['system']}, {seconds / 60:.0f} min: `{command}`. "
        f"{ROWS} training rows, {args.splits} splits, {len(ATTACKS)} attacks at 10 and 30 % (alfa-tilt on two classes "
        "only) and clean labels. Cell by cell: [defenses.csv](results/arena/defenses.csv).",
        f"**On {unseen.data.nunique()} data sets on which no number of the present rules was chosen** "
        f"({', '.join(UNSEEN)}): {arena_card(unseen).strip()}",
        f"**On {seen.data.nunique()} on which one was** ({', '.join(SEEN)}): {arena_card(seen).strip()}",
        "**By attack**, all data sets: mean accuracy less that of `SVC()` over poisoned cells.",
        markdown(by_attack(frame)).strip(),
    ]
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(OPEN)
    after = rest.partition(CLOSE)[2]
    write_atomically(PAGE, f"{before}{OPEN}\n{chr(10).join(f'{part}{chr(10)}' for part in parts)}{CLOSE}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "publish"))
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further data set after so long")
    parser.add_argument("--store", type=Path, default=ROOT / "runs" / "arena.sqlite")
    args = parser.parse_args()
    try:
        run(args) if args.action == "run" else publish(args)
    except (ValueError, StoreError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
