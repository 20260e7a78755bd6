"""Votes under attack and without: real crowds beside peers, honest people, liars named, whom to ask, a million votes.

    python benchmarks/crowd.py run real honest ask choose million --rows FOLDER    # what FOLDER lacks
    python benchmarks/crowd.py page --rows FOLDER                                 # tables into docs/results/crowd.md

The page keeps the tables of parts that FOLDER lacks; peers that it lacks come from docs/results/crowd/cells.csv.

`real`: LabelMe, music, product (3,000 rows), dogs and rte, draws of every attack at 20, 30 and 40 % of the votes, ours
with and without features beside majority, Dawid-Skene, GLAD, MACE (crowd-kit) and CROWDLAB (cleanlab). `honest`:
simulated crowds and redrawn real ones: is anybody named, do intervals cover. `ask`: further votes on the protocol of
ActiveLab's benchmark. `choose`: LabelMe and rte with other values of the constants. Needs the tables of FLORAL_DATA.
"""

import argparse
import importlib
import json
import re
import resource
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import date
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from floral_bench.crowds import peers
from floral_bench.crowds.real import attacked, load, people, redrawn, simulated, sure
from floral_bench.reporting.environment import environment, publishable
from floral_learn import aggregate_votes
from floral_learn.base.files import write_atomically
from floral_learn.crowd import next_tasks

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "crowd.md"
CROWDS = ("labelme", "music", "product", "dogs", "rte")
FEATURED = CROWDS[:3]
ATTACKS = ("spam", "pair", "far", "sleeper", "collusion", "targeted")
PEERS = ("majority", "dawid-skene", "mace", "crowdlab", "glad")
OURS, WITH_FEATURES = "ours", "ours, features"
CONSTANTS = {  # file and name: values tried
    ("solve", "OPINION"): (1.0, 2.0, 3.0),
    ("solve", "REFITS"): (1, 3, 5),
    ("solve", "MISLED"): (0.1, 0.12, 0.15, 0.18),
    ("solve", "DECIDED"): (0.8, 0.85, 0.9),
    ("mirror", "UNSURE"): (0.25, 1 / 3, 0.4),
    ("mirror", "SECOND"): (0.4, 0.45, 0.49),
    ("annotators", "WEAK"): (0.1, 0.2, 0.3),
    ("agreement", "COPIES"): (0.8, 0.9, 1.1),
    ("features", "PENALTY"): (3.0, 10.0, 30.0),
}
HONEST, REDRAWN, ASKED = 1000, 40, 2  # simulated crowds of each kind, redrawn ones per real crowd, tables to ask about


def ours(votes, X, classes, seed=0, **known):
    return aggregate_votes(votes, X, missing=-1, classes=classes, random_state=seed, **known)


def real(crowd, attack, level, draw, method):
    """One cell: labels, how sure they are, and who is named."""
    X, y, votes, classes = load(crowd)
    new, owned = attacked(X, y, votes, classes, attack, level, draw)
    if method in PEERS:
        p = peers.METHODS[method](SimpleNamespace(X=X, classes=classes.tolist()), new, draw)
        return {"accuracy": float((p.argmax(axis=1) == y).mean()), "expected": float(p.max(axis=1).mean())}
    found = ours(new, X if method == WITH_FEATURES else None, classes, draw)
    return sure(found, y, new) | people(found, y, votes, new, owned, attack)


def honest(kind, seed):
    """Is anybody named in an honest crowd, do intervals cover, is the expected share of right labels true?"""
    y, votes, classes = redrawn(kind, seed) if kind in CROWDS else simulated(seed, half_weak=kind == "half weak")
    found = ours(votes, None, classes)
    table = found.annotators
    somebody = {"somebody": table["named"].any(), "agreeing": (table["agrees_with"] != "").any()}
    return sure(found, y, votes) | {name: float(value) for name, value in somebody.items()}


def choose(room, name, value, *cell):
    """A cell of `real` with another value of a constant."""
    module = importlib.import_module(f"floral_learn.crowd.{room}")
    usual = getattr(module, name)
    setattr(module, name, value)
    try:
        return real(*cell)
    finally:
        setattr(module, name, usual)


def ask(seed, liars, order):
    """Labels right after 0 to 500 further votes, 100 per round: 2,000 rows, 30 people, 85 % right, 1.1 votes each."""
    from sklearn.datasets import make_classification

    shape = {"n_features": 20, "n_informative": 10, "n_classes": 4, "class_sep": 1.2}
    X, y = make_classification(2000, **shape, random_state=seed)
    rng = np.random.default_rng(seed)
    lying, k, classes = np.arange(30) < round(30 * liars), 4, np.arange(4)

    def answer(items, who):
        right = rng.random(len(items)) < 0.85
        honest = np.where(right, y[items], (y[items] + rng.integers(1, k, size=len(items))) % k)
        return np.where(lying[who], (y[items] + 1) % k, honest)

    votes = np.full((2000, 30), -1)
    first = rng.integers(30, size=2000)
    votes[np.arange(2000), first] = answer(np.arange(2000), first)
    again, second = rng.choice(2000, 200, replace=False), rng.integers(30, size=200)  # CROWDLAB needs some second votes
    votes[again, second] = answer(again, second)
    problem, out = SimpleNamespace(X=X, classes=[0, 1, 2, 3]), {}
    for spent in range(0, 501, 100):
        found = ours(votes, X, classes)
        out[f"ours_{spent}"] = float((found.labels == y).mean())
        if order == "ActiveLab":
            p = peers.crowdlab(problem, votes, 0)
            out[f"crowdlab_{spent}"] = float((p.argmax(axis=1) == y).mean())
        if spent == 500:
            break
        if order == "next_tasks":
            tasks = next_tasks(found, 100)
            items, who = tasks["task"].to_numpy(dtype=int), tasks["annotator"].to_numpy(dtype=int)
        else:
            items = rng.choice(2000, 100, replace=False) if order == "random" else active_lab(problem, votes, 100)
            who = np.array([rng.choice(np.flatnonzero(votes[i] < 0)) for i in items])
        votes[items, who] = answer(items, who)
    return out


def active_lab(problem, votes, n):
    """Items in the order of cleanlab's ActiveLab, most in need first."""
    from cleanlab.multiannotator import get_active_learning_scores, get_majority_vote_label

    first = np.asarray(get_majority_vote_label(peers._frame(votes), verbose=False))
    scores, _ = get_active_learning_scores(peers._frame(votes), peers._held_out(problem, first, 0))
    return np.argsort(scores)[:n]


def million():
    """A million votes of 10,000 people, a fifth of them liars, on 100,000 items with 50 features and 10 classes."""
    rng = np.random.default_rng(0)
    n, crowd, k = 100_000, 10_000, 10
    y = rng.integers(k, size=n)
    X = rng.normal(size=(n, 50)) + 1.5 * rng.normal(size=(k, 50))[y] / np.sqrt(5)
    item, who = np.repeat(np.arange(n), 10), rng.integers(crowd, size=10 * n)
    truth = y[item]
    said = np.where(rng.random(len(item)) < 0.75, truth, rng.integers(k, size=len(item)))
    said = np.where(who < crowd // 5, (truth + 1) % k, said)
    votes = pd.DataFrame({"task": item, "worker": who, "label": said}).drop_duplicates(["task", "worker"])
    wall, cpu = time.perf_counter(), time.process_time()
    found = aggregate_votes(votes, pd.DataFrame(X), random_state=0)
    return {
        "votes": len(votes),
        "seconds": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "accuracy": float((found.labels == y).mean()),
        "decided": float(found.decided.mean()),
    }


PARTS = {"real": real, "honest": honest, "ask": ask, "choose": choose, "million": million}


def tasks(parts, draws, methods=(OURS, WITH_FEATURES, *PEERS)):
    """(part, arguments) of every cell: ours, then quick peers, then GLAD; first draws first."""
    found = []
    if "million" in parts:
        found.append(("million", ()))
    if "real" in parts:
        for method, draw, crowd in product(methods, range(draws), CROWDS):
            if method in (WITH_FEATURES, "crowdlab") and crowd not in FEATURED:
                continue
            levels = (0.2, 0.4) if method in PEERS else (0.2, 0.3, 0.4)
            threats = [(a, level) for level in levels for a in ATTACKS if a != "far" or crowd in FEATURED]
            found += [("real", (crowd, a, level, draw, method)) for a, level in threats]
            found += [("real", (crowd, "none", 0.0, 0, method))] * (draw == 0)
    if "honest" in parts:
        found += [("honest", (crowd, seed)) for seed in range(REDRAWN) for crowd in CROWDS]
        found += [("honest", (kind, seed)) for kind in ("simulated", "half weak") for seed in range(HONEST)]
    if "ask" in parts:
        found += [("ask", cell) for cell in product(range(ASKED), (0.0, 0.2), ("next_tasks", "ActiveLab", "random"))]
    if "choose" in parts:
        cells = [cell for part, cell in tasks(["real"], 1) if cell[0] in ("labelme", "rte") and cell[-1] not in PEERS]
        for (room, name), values in CONSTANTS.items():
            found += [("choose", (room, name, value, *cell)) for value in values for cell in cells]
    return sorted(found, key=lambda task: (task[1][-1:] == ("glad",), task[1][-1:] in [(name,) for name in PEERS]))


def one(part, arguments):
    warnings.filterwarnings("ignore")
    began = time.process_time()
    try:
        row = PARTS[part](*arguments)
    except Exception as error:  # a cell that fails is named in the table of what is missing
        row = {"error": repr(error)[:300]}
    return {"part": part, "cell": list(arguments), "cpu_seconds": time.process_time() - began} | row


def run(parts, folder, jobs, limit, draws, methods):
    """Compute the cells that `folder` lacks, until `limit` seconds have passed."""
    folder.mkdir(parents=True, exist_ok=True)
    file, began, here = folder / "rows.jsonl", time.time(), environment()
    made = {"commit": here.get("commit"), "system": here["system"]}
    known = {(row["part"], tuple(row["cell"])) for row in read_rows(folder) if "error" not in row}
    left = [task for task in tasks(parts, draws, methods) if task not in known]
    with ProcessPoolExecutor(jobs) as pool, file.open("a") as out:
        waiting = [pool.submit(one, *task) for task in left]
        try:
            for done in as_completed(waiting, timeout=limit):
                out.write(json.dumps(done.result() | made) + "\n")
                out.flush()
        except TimeoutError:
            for task in waiting:
                task.cancel()
            for worker in list(pool._processes.values()):
                worker.terminate()
    print(f"{len(left)} cells wanted, {len(read_rows(folder))} rows, {time.time() - began:.0f} s")


def read_rows(folder):
    file = folder / "rows.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def frame(rows, part, names):
    """The rows of a part, its cells as columns, the last one where a cell was computed twice."""
    last = {tuple(row["cell"]): row for row in rows if row["part"] == part and "error" not in row}
    found = pd.DataFrame(list(last.values()))
    found[names] = pd.DataFrame(found["cell"].tolist(), index=found.index)
    return found.dropna(axis=1, how="all").drop(columns=["cell", "part"])


def markdown(table, digits=3):
    """A table of numbers, its index as first columns; nothing where there is no number."""
    flat = table.reset_index()
    lines = [[str(name) for name in flat.columns], ["---"] * len(flat.columns)]
    for row in flat.itertuples(index=False):
        cells = ["" if v != v else f"{v:.{digits}f}" if isinstance(v, float) else str(v) for v in row]
        lines.append(cells)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def percent(table, name="level"):
    """Levels as words."""
    flat = table.reset_index()
    flat[name] = [f"{round(100 * float(v))} %" for v in flat[name]]
    return flat.set_index(list(table.index.names))


def of_naming(real):
    """Tables of who is named in the real crowds."""
    named = real[(real["level"] == 0.3) & real["method"].str.startswith(OURS)]
    sums = named.groupby(["method", "attack", "crowd"])[["liars", "liars_named", "liars_best"]].sum()
    shares = sums[["liars_named", "liars_best"]].div(sums["liars"], axis=0)
    pairs = shares["liars_named"].map("{:.2f}".format) + " of " + shares["liars_best"].map("{:.2f}".format)
    wrong = named.groupby(["method", "attack"])[
        ["honest_named", "weak_named", "liars_named", "honest_agree", "liars_agree", "liars"]
    ].sum()
    return {"named": markdown(pairs.unstack("crowd").fillna("")), "named honest": markdown(wrong.astype(int))}


def kept_peers(rows):
    """Rows of the peers from cells.csv, which a change of ours does not touch, of methods that `rows` lacks."""
    there = {row["cell"][-1] for row in rows if row["part"] == "real"}
    cells = pd.read_csv(PAGE.with_suffix("") / "cells.csv")
    commit = json.loads((PAGE.with_suffix("") / "note.json").read_text())["peers"]
    names = ["crowd", "attack", "level", "draw", "method"]
    return [
        {"part": "real", "cell": [row[name] for name in names], "commit": commit}
        | {name: row[name] for name in ("accuracy", "expected")}
        for row in cells[cells["method"].isin([name for name in PEERS if name not in there])].to_dict("records")
    ]


def of_real(real):
    """Tables of labels in the real crowds, ours beside the peers'."""
    order = [name for name in (*PEERS, OURS, WITH_FEATURES) if name in set(real["method"])]
    asked = real[real["level"] != 0.3]
    cells = asked.groupby(["crowd", "level", "attack", "method"])["accuracy"].mean().unstack()[order]
    crowds = cells.groupby(["crowd", "level"]).mean()
    draws = real.groupby("method")["draw"].nunique()
    peers = [name for name in order[:-2] if draws[name] == draws[OURS]]  # compared where all draws were run
    alone = [name for name in peers if name != "crowdlab"]
    low, high = (
        cells[at] for at in (cells.index.get_level_values("level") < 0.3, cells.index.get_level_values(1) > 0.3)
    )
    lead = pd.concat([(low[OURS] - low[alone].max(axis=1)).rename("votes alone"),
                      (low[WITH_FEATURES] - low[peers].max(axis=1)).rename("features")], axis=1)  # fmt: skip
    against = high[[OURS, WITH_FEATURES]].sub(high["dawid-skene"], axis=0)
    of_us = real[real["method"].str.startswith(OURS)]
    shown = ["accuracy", "expected", "decided", "right_decided", "said_decided", "covered"]
    off = (of_us["right_decided"] < 0.85) | (of_us["right_decided"] < of_us["said_decided"] - 0.03)
    broken = of_us[off].set_index(["method", "crowd", "level", "attack", "draw"])[shown[:-1]].sort_index()
    by_level = of_us.assign(broken=off).groupby(["method", "level"])["broken"].agg(["sum", "size"])
    return {
        "crowds": markdown(percent(crowds)),
        "means": markdown(percent(crowds[[*alone, OURS]].groupby("level").mean())),
        "featured": markdown(percent(crowds.loc[list(FEATURED)].groupby("level").mean())),
        "worst": smallest(lead),
        "forty": smallest(against),
        "sure": markdown(percent(of_us.groupby(["method", "crowd", "level"])[shown].mean())),
        "pairs": markdown(compared(cells, alone, peers)),
        "glad": against_glad(asked),
        "kept": markdown(percent(by_level.rename(columns={"sum": "cells that break it", "size": "cells"}))),
        "broken": markdown(percent(broken)),
        "cells": markdown(percent(cells)),
    }


def against_glad(real):
    """GLAD and ours where GLAD was run, draw by draw, so that both saw the same votes."""
    draws = real.pivot_table(index=["crowd", "level", "attack", "draw"], columns="method", values="accuracy")
    draws = draws.dropna(subset=["glad"]).groupby(["crowd", "level"])
    return markdown(percent(draws[["glad", OURS, WITH_FEATURES]].mean().assign(draws=draws.size())))


def smallest(table):
    """The eight rows with the smallest number."""
    return markdown(percent(table.loc[table.min(axis=1).sort_values().index[:8]]))


def compared(cells, alone, peers):
    """Per peer: the mean difference over cells, in how many ours is right more often or less, Wilcoxon's p-value."""
    found = {}
    for us, peer in [*product([OURS], alone), *product([WITH_FEATURES], peers)]:
        gain = (cells[us] - cells[peer]).dropna()
        found[us, peer] = {
            "mean difference": float(gain.mean()),
            "median": float(gain.median()),
            "cells ahead": int((gain > 0.0005).sum()),
            "behind": int((gain < -0.0005).sum()),
            "p": f"{wilcoxon(gain).pvalue:.1g}",
        }
    return pd.DataFrame(found).T.infer_objects().rename_axis(["", "against"])


def of_the_rest(rows):
    """Tables of honest crowds, of further votes and of a million."""
    found = {}
    if any(row["part"] == "honest" for row in rows):
        honest = frame(rows, "honest", ["kind", "seed"])
        good = honest[honest["accuracy"] >= 0.85]
        table = honest.groupby("kind")[["somebody", "agreeing", "covered", "accuracy", "expected", "decided"]].mean()
        table["right, where 0.85 are: four in five decided"] = (good["decided"] >= 0.8).groupby(good["kind"]).mean()
        found["honest"] = markdown(table.assign(crowds=honest.groupby("kind").size()))
    if any(row["part"] == "ask" for row in rows):
        asked = frame(rows, "ask", ["seed", "share", "order"])
        columns = [f"ours_{n}" for n in (0, 100, 200, 500)] + [f"crowdlab_{n}" for n in (100, 200, 500)]
        votes = asked.groupby(["share", "order"])[columns].mean()
        votes.columns = [name.replace("ours_", "ours, ").replace("crowdlab_", "CROWDLAB, ") for name in votes.columns]
        found["ask"] = markdown(percent(votes, "share"))
    if big := [row for row in rows if row["part"] == "million" and "error" not in row]:
        found["million"] = (
            f"{big[-1]['votes']:,} votes: {big[-1]['cpu']:.0f} s of one core, {big[-1]['gib']:.1f} GiB at most, "
            f"{big[-1]['accuracy']:.4f} of the labels right, {big[-1]['decided']:.2f} decided."
        )
    if not any(row["part"] == "choose" for row in rows):
        return found
    tried = frame(rows, "choose", ["room", "name", "value", "crowd", "attack", "level", "draw", "method"])
    size = tried.groupby(["name", "value"])["cpu_seconds"].transform("size")
    tried = tried[size == size.max()]  # values with all of their cells
    off = (tried["right_decided"] < 0.85) | (tried["right_decided"] < tried["said_decided"] - 0.03)
    tried = tried.assign(broken=off.astype(float)).groupby(["name", "value", "crowd", "method"])
    tried = tried[["accuracy", "expected", "decided", "broken", "liars_named", "honest_named"]].mean()
    return found | {"choose": markdown(tried)}


def write_page(rows):
    """Write the tables between the marks of the page, each part's facts, and cells.csv."""
    rows = rows + kept_peers(rows)
    real = frame(rows, "real", ["crowd", "attack", "level", "draw", "method"])
    peers = [row for row in rows if row["part"] == "real" and row["cell"][-1] in PEERS]
    mine = [row for row in rows if row not in peers]
    commits, theirs = (sorted({row["commit"] for row in part}) for part in (mine, peers))
    draws = real.groupby("method")["draw"].nunique()
    tables = of_naming(real) | of_the_rest(rows) | of_real(real)
    tables |= {f"facts {part}": facts(mine, part) for part in PARTS if any(row["part"] == part for row in mine)}
    tables["facts"] = (
        f"{facts(mine, 'real')} Peers at {', '.join(theirs)}. Draws of every attack: "
        f"{', '.join(f'{name} {n}' for name, n in draws.items())}; {len(real):,} cells, every one in "
        f"[cells.csv](crowd/cells.csv)."
    )
    write_cells(real, commits, theirs)
    text = PAGE.read_text(encoding="utf-8")
    for name, table in tables.items():
        pattern = re.compile(rf"(<!-- table: {re.escape(name)} -->\n).*?(<!-- end -->)", re.S)
        text = pattern.sub(lambda m, t=table: m[1] + "\n" + t + "\n\n" + m[2], text)
    write_atomically(PAGE, text)


def facts(rows, part):
    """What was run when, of one part."""
    rows = [row for row in rows if row["part"] == part]
    commits, systems = (sorted({row[name] for row in rows}) for name in ("commit", "system"))
    return (
        f"{date.today()}, commit {', '.join(commits)} ({'; '.join(systems)}): `python benchmarks/crowd.py run {part} "
        "--rows build/crowd`, then `python benchmarks/crowd.py page --rows build/crowd`."
    )


def write_cells(real, commits, peers):
    """Every cell of the real crowds, and a note of where they come from."""
    keep = ["crowd", "attack", "level", "draw", "method", "accuracy", "expected", "decided", "right_decided", "covered"]
    note = {"commit": ", ".join(commits), "peers": ", ".join(peers), "date": str(date.today())}
    note["command"] = "python benchmarks/crowd.py run"
    write_atomically(PAGE.with_suffix("") / "note.json", json.dumps(note, indent=1) + "\n")
    csv = real.sort_values(keep[:5])[keep].to_csv(index=False, float_format="%.4f")
    write_atomically(PAGE.with_suffix("") / "cells.csv", csv)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "page"))
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; page takes none")
    parser.add_argument("--rows", type=Path, default=Path("build/crowd"), help="folder of rows.jsonl")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds")
    parser.add_argument("--draws", type=int, default=5, help="of each attack, and the number of honest crowds with it")
    methods = (OURS, WITH_FEATURES, *PEERS)
    parser.add_argument("--methods", action="append", choices=methods, help="of `real`; all, where none is given")
    given = parser.parse_args()
    if given.what == "run":
        run(given.parts or list(PARTS), given.rows, given.jobs, given.limit, given.draws, given.methods or methods)
    else:
        rows = read_rows(given.rows)
        for commit in {row.get("commit") for row in rows}:
            publishable({"commit": commit})
        write_page(rows)


if __name__ == "__main__":
    main()
