"""Votes of real crowds beside peers, under attacks on them, and of honest people.

    python benchmarks/crowd.py run --rows FOLDER [--jobs 2 --limit 600]    # what FOLDER lacks
    python benchmarks/crowd.py page --rows FOLDER                          # two tables into docs/results/crowd.md

`real`: public crowds as they are and with their people drawn anew (bootstrap). `liars`: five crowds, every attack at 20
and 40 % of the votes. `honest`: simulated crowds in which nobody lies. Peers are those of crowd-kit at its defaults.
Needs FLORAL_DATA.
"""

import argparse
import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from floral_bench.crowds.peers import KIT, as_frame, long_of, majority_of
from floral_bench.crowds.real import ATTACKS, FEATURED, PUBLIC, attacked, load, public, redrawn_people, simulated, sure
from floral_bench.crowds.tables import liar_table, real_table, shown
from floral_bench.reporting.tables import between_marks
from floral_learn import aggregate_votes

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "crowd.md"
CROWDS = ("labelme", "music", "product", "dogs", "rte")
OURS, WITH_FEATURES = "ours", "ours, features"
PEERS = ("majority", *KIT)
BOOTSTRAP, DRAWS, HONEST = 20, 5, 100
FIELDS = ["part", "crowd", "attack", "level", "draw", "method", "accuracy", "expected", "decided", "right_decided",
          "said_decided", "named", "seconds"]  # fmt: skip


def accuracy(probability, y):
    """Share of labels that are right; a tie counts as one over the classes tied."""
    top = np.round(probability, 9) == np.round(probability.max(axis=1, keepdims=True), 9)
    return float((top[np.arange(len(y)), y] / top.sum(axis=1))[y >= 0].sum() / (y >= 0).sum())


def label(method, votes, X, classes, draw):
    """Probabilities (n, K) in the order of the tasks, and the whole result where it is ours."""
    if method == "majority":
        return majority_of(votes, len(classes)), None
    if method in KIT:
        return as_frame(KIT[method](draw), votes, len(classes)), None
    found = aggregate_votes(votes, X if method == WITH_FEATURES else None, classes=classes, random_state=max(draw, 0))
    return found.probability, found


def cell(part, crowd, attack, level, draw, method):
    """One row: labels right, and for ours how sure they are and how many people are named."""
    warnings.filterwarnings("ignore")
    X = None
    if part == "real":
        y, votes, classes = public(crowd)
        if draw >= 0:
            y, votes = redrawn_people(y, votes, draw)
    elif part == "liars":
        X, y, table, classes = load(crowd)
        table, _ = attacked(X, y, table, classes, attack, level, draw)
        votes = long_of(table)
    else:
        y, table, classes = simulated(draw, half_weak=crowd == "half weak")
        votes = long_of(table)
    began = time.process_time()
    probability, found = label(method, votes, X if X is None else pd.DataFrame(X), classes, draw)
    row = {"accuracy": accuracy(probability, y), "seconds": time.process_time() - began}
    if found is not None:
        known = np.flatnonzero(y >= 0)
        row |= sure(found, y, known) | {"named": int(found.people["named"].sum())}
    return dict(zip(FIELDS, (part, crowd, attack, level, draw, method), strict=False)) | row


def cells():
    """Every cell, ours first and slow peers last."""
    found = [("real", crowd, "none", 0.0, draw, OURS) for draw, crowd in product(range(-1, BOOTSTRAP), PUBLIC)]
    for draw, crowd, level, attack in product(range(DRAWS), CROWDS, (0.0, 0.2, 0.4), ("none", *ATTACKS)):
        if (attack == "none") != (level == 0) or (level == 0 and draw) or (attack == "far" and crowd not in FEATURED):
            continue
        for method in (OURS, WITH_FEATURES, "majority", "dawid-skene", "one-coin"):
            if method != WITH_FEATURES or crowd in FEATURED:
                found.append(("liars", crowd, attack, level, draw, method))
    found += [("honest", kind, "none", 0.0, n, OURS) for kind in ("simulated", "half weak") for n in range(HONEST)]
    for method, draw, crowd in product(PEERS, range(-1, BOOTSTRAP), PUBLIC):
        if draw < 0 or method in PEERS[:2]:  # the others are slow
            found.append(("real", crowd, "none", 0.0, draw, method))
    return found


def run(folder, jobs, limit):
    """Compute the cells that `folder` lacks, until `limit` seconds have passed."""
    folder.mkdir(parents=True, exist_ok=True)
    file, began = folder / "rows.jsonl", time.time()
    known = {tuple(row[name] for name in FIELDS[:6]) for row in read_rows(folder)}
    left = [task for task in cells() if task not in known]
    with ProcessPoolExecutor(jobs) as pool, file.open("a") as out:
        waiting = {pool.submit(cell, *task): task for task in left}
        try:
            for done in as_completed(waiting, timeout=limit):
                if done.exception() is None:
                    out.write(json.dumps(done.result()) + "\n")
                    out.flush()
                else:
                    print(waiting[done], repr(done.exception())[:200])
        except TimeoutError:
            workers = list(pool._processes.values())
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.terminate()
    print(f"{len(left)} cells wanted, {len(read_rows(folder))} rows, {time.time() - began:.0f} s")


def read_rows(folder):
    return [json.loads(line) for file in folder.glob("rows.jsonl") for line in file.read_text().splitlines()]


def page(folder):
    """Write both tables into the page, and means of all cells beside it."""
    rows = pd.DataFrame(read_rows(folder))
    for name, table in (("real", real_table(rows)), ("liars", liar_table(rows))):
        between_marks(PAGE, f"<!-- table: {name} -->", "<!-- end -->", f"\n\n{shown(table)}\n")
    where = rows.assign(drawn=rows["draw"] >= 0).groupby([*FIELDS[:4], "drawn", "method"])
    where[FIELDS[6:]].mean().assign(draws=where.size()).round(4).to_csv(PAGE.with_suffix("") / "cells.csv")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("run", "page"))
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=600.0)
    given = parser.parse_args()
    if given.action == "run":
        run(given.rows, given.jobs, given.limit)
    else:
        page(given.rows)


if __name__ == "__main__":
    main()
