"""Every defense of the library at its defaults, on the arena's data sets under the same attacks and splits.

    python benchmarks/arena_defenses.py run [--seconds 500]     # into runs/arena.sqlite
    python benchmarks/arena_defenses.py publish                 # the tables of docs/which-defense.md, and their cells

Nobody is told the attack, its level or a clean label. Data sets whose files are not here are left out. `run` goes on
where a former run was stopped; `publish` takes the cells that every method has.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from floral_bench.adapt_suite import adapt
from floral_bench.arena import ARENA_SUITES
from floral_bench.arena_card import CELL, arena_frame
from floral_bench.cell_data import load
from floral_bench.reporting.environment import publishable
from floral_bench.reporting.making import begin
from floral_bench.reporting.tables import markdown
from floral_bench.runner import run_suite
from floral_bench.spec import Attack, Data, Suite, params
from floral_bench.store import Store, StoreError
from floral_learn.files.atomic_files import write_atomically

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
PLAIN = "SVC"
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


def card(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per method: accuracy, and differences to SVC() over poisoned cells; mean and median, best and worst."""
    wide = frame.pivot_table(index=CELL, columns="method", values="accuracy")
    poisoned = wide[wide.index.get_level_values("level") > 0]
    clean = wide[wide.index.get_level_values("level") == 0]
    rows = []
    for name in wide:
        apart = poisoned[name] - poisoned[PLAIN]
        row: dict[str, Any] = {"method": name, "clean": f"{clean[name].mean():.4f}"}
        row |= {"poisoned": f"{poisoned[name].mean():.4f}", "over SVC, mean": f"{apart.mean():+.4f}"}
        row |= {"median": f"{apart.median():+.4f}", "cells above": f"{(apart > 0.0005).mean():.0%}"}
        row |= {"cells > 0.02 below": f"{(apart < -0.02).mean():.0%}", "worst cell": f"{apart.min():+.3f}"}
        rows.append(row | {"clean, over SVC": f"{(clean[name] - clean[PLAIN]).mean():+.4f}"})
    return pd.DataFrame(rows).sort_values("poisoned", ascending=False, kind="stable")


def by_attack(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean difference to SVC() of each method (rows) under each attack (columns), poisoned cells."""
    wide = frame[frame.level > 0].pivot_table(index=CELL, columns="method", values="accuracy")
    apart = wide.sub(wide[PLAIN], axis=0).drop(columns=PLAIN).groupby(level="attack").mean().T
    order = apart.mean(axis=1).sort_values(ascending=False).index
    shown = apart.loc[order].map(lambda value: f"{value:+.3f}")
    return shown.reset_index().rename_axis(columns=None)


def publish(args: argparse.Namespace) -> None:
    """The page and the rows behind it."""
    chosen = suites(args.splits)
    with Store(args.store, read_only=True) as store:
        frame = arena_frame(chosen, store)
        (run,) = [note["info"] for note in store.runs("arena")][-1:]
    publishable(run["environment"])
    several = [*CELL, "split"]
    counts = frame.groupby(several)["method"].nunique()
    whole = counts[counts == frame.method.nunique()].index
    frame = frame.set_index(several).loc[whole].reset_index()
    wide = frame.pivot_table(index=CELL, columns="method", values="accuracy").round(5)
    wide.insert(0, "splits", frame.groupby(CELL)["split"].nunique())
    write_atomically(RESULTS / "arena" / "defenses.csv", wide.to_csv())
    where = run["environment"]
    attacks = frame[frame.level > 0].attack.nunique()
    parts = [
        "# Which defense should I use?",
        "<!-- Written by `python benchmarks/arena_defenses.py publish`; do not edit by hand. -->",
        f"{where['date'][:10]}, commit {where['commit']}, {where['system']}: `{run['command']}`. Every defense at its "
        f"defaults, told nothing, on {frame.data.nunique()} data sets of [the arena](arena.md) under {attacks} attacks "
        f"at 10, 20 and 30 % and on clean labels: {len(wide)} cells, of up to {frame.split.nunique()} splits. Cell by "
        "cell, with the number of splits: [arena/defenses.csv](arena/defenses.csv).",
        markdown(card(frame)).strip(),
        "Differences are to `SVC()` on the same labels, over poisoned cells. A method with a high mean and a low "
        "median owes it to few cells. *safe SVC* is `ContradictedLabels` in front of `SVC()`; its constants were "
        "chosen on these data sets ([what was looked at](looked-at.md)).",
        "## By attack: mean accuracy less that of `SVC()`",
        markdown(by_attack(frame)),
    ]
    text = "\n\n".join(parts)
    write_atomically(RESULTS / "which-defense.md", text)
    print(text)


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
