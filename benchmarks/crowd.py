"""Votes under attack and without: real crowds first, honest people, liars named, whom to ask next, a million votes.

    python benchmarks/crowd.py run real people named ask --rows FOLDER --draws 5    # adds what FOLDER lacks
    python benchmarks/crowd.py run million --rows FOLDER
    python benchmarks/crowd.py page FOLDER                                       # tables into docs/results/crowd.md

`real`: LabelMe, music, product (3,000 rows), dogs and rte, draws of every attack at 20 and 40 % of the votes, ours
with and without features beside majority, Dawid-Skene, GLAD, MACE (crowd-kit) and CROWDLAB (cleanlab). `people`: honest
crowds, simulated and redrawn from real ones: who is named, do intervals cover. `named`: 30 % liars. `ask`: further
votes on the protocol of ActiveLab's benchmark. Needs the tables of FLORAL_DATA.
"""

import argparse
import json
import os
import resource
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from floral_bench.reporting.environment import environment, publishable

ROOT = Path(__file__).resolve().parents[1]
CROWDS = ("labelme", "music", "product", "dogs", "rte")
FEATURED = ("labelme", "music", "product")
ATTACKS = ("spam", "pair", "far", "sleeper", "collusion", "targeted")
PEERS = ("majority", "dawid-skene", "mace", "crowdlab", "glad")
OURS, WITH_FEATURES = "ours", "ours, features"
HONEST = 200  # simulated crowds per draw
REDRAWN = 8  # crowds per draw and real crowd


def load(name, most=3000):
    """Features or None, truth, votes (-1: none) and classes of a real crowd."""
    data = np.load(Path(os.environ["FLORAL_DATA"]) / "tables" / f"{name}_crowd.npz")
    votes, y = data["answers"].astype(int), data["y"].astype(int)
    X = data.get("X", None)
    if set(np.unique(y)) == {-1, 1}:
        votes, y = np.where(votes == 0, -1, (votes + 1) // 2), (y + 1) // 2
    if len(y) > most:
        some = np.random.default_rng(0).permutation(len(y))[:most]
        votes, y, X = votes[some], y[some], None if X is None else X[some]
    votes = votes[:, (votes >= 0).any(axis=0)]
    return X, y, votes, np.arange(max(y.max(), votes.max()) + 1)


def attacked(X, y, votes, classes, attack, level, draw):
    """Votes, and who is owned (A,)."""
    from floral_learn import poison_votes

    if not level:
        return votes, np.zeros(votes.shape[1], dtype=bool)
    options = {"attack": attack, "budget": level, "classes": classes, "missing": -1, "random_state": draw}
    found = poison_votes(votes, X, y, **options)
    return np.asarray(found.votes), np.isin(np.arange(votes.shape[1]), found.annotators)


def ours(votes, X, classes, seed=0, **known):
    from floral_learn import aggregate_votes

    return aggregate_votes(votes, X, missing=-1, classes=classes, random_state=seed, **known)


def real(crowd, attack, level, draw, method):
    """One cell of the table."""
    X, y, votes, classes = load(crowd)
    votes, _ = attacked(X, y, votes, classes, attack, level, draw)
    if method in PEERS:
        from floral_bench.crowds import peers

        p = peers.METHODS[method](SimpleNamespace(X=X, classes=classes.tolist()), votes, draw)
        return {"accuracy": float((p.argmax(axis=1) == y).mean()), "expected": float(p.max(axis=1).mean())}
    found = ours(votes, X if method == WITH_FEATURES else None, classes, draw)
    right, sure, decided = found.labels == y, found.probability.max(axis=1), found.decided
    out = {"accuracy": right.mean(), "expected": sure.mean(), "decided": decided.mean()}
    if decided.any():
        out |= {"right_decided": right[decided].mean(), "said_decided": sure[decided].mean()}
    return {name: float(value) for name, value in out.items()} | {"covered": covered(votes, y, found)}


def covered(votes, y, found):
    """Share of the people whose share of right answers lies in their interval."""
    people = found.annotators.set_index("annotator")
    there = [a for a in range(votes.shape[1]) if (votes[:, a] >= 0).any()]
    share = np.array([(votes[:, a] == y)[votes[:, a] >= 0].mean() for a in there])
    low, high = people.loc[there, "low"].to_numpy(), people.loc[there, "high"].to_numpy()
    return float(((low - 1e-9 <= share) & (share <= high + 1e-9)).mean())


def simulated(seed):
    """An honest crowd: everybody knows at least one answer in five beyond chance; hard items, shared mistakes."""
    rng = np.random.default_rng(seed)
    k, n, people = rng.choice([2, 3, 5, 8]), int(rng.integers(150, 400)), int(rng.integers(12, 60))
    per_item, hard, shared = int(rng.integers(3, 8)), rng.choice([0.0, 1.0]), rng.choice([0.0, 0.5])
    y = rng.choice(k, size=n, p=rng.dirichlet(np.full(k, 5.0)))
    knows = rng.uniform(0.2, 0.95, people) if rng.random() < 0.5 else np.clip(rng.beta(6, 3, people), 0.2, 1.0)
    ease = np.exp(-hard * np.abs(rng.standard_normal(n)))  # a hard item halves and quarters what people know
    tempting = (y + rng.integers(1, max(k, 2), size=n)) % k
    rate = (knows[None, :] * (ease / ease.mean())[:, None]).clip(0, 0.98)
    guess = np.where(rng.random((n, people)) < shared, tempting[:, None], rng.integers(k, size=(n, people)))
    # A tempting answer must not make a person worse than chance: it replaces guesses, and half of them at most.
    guess = np.where(rng.random((n, people)) < 0.5, guess, rng.integers(k, size=(n, people)))
    votes = np.where(rng.random((n, people)) < rate, y[:, None], guess)
    return y, np.where(np.argsort(rng.random((n, people)), axis=1) < per_item, votes, -1), np.arange(k)


def redrawn(crowd, seed):
    """Votes of a real crowd drawn anew from its fitted confusion matrices, in which everybody knows something."""
    _, _, votes, classes = load(crowd, 1000)
    found, rng, k = ours(votes, None, classes), np.random.default_rng(seed), len(classes)
    y, matrix = found.probability.argmax(axis=1), found.confusions.copy()
    share = np.bincount(y, minlength=k) / len(y)
    right = matrix[:, np.arange(k), np.arange(k)] @ share
    chance = (share @ matrix) @ share
    lift = np.clip((chance + 0.2 * (1 - chance) - right) / (1 - right), 0, 1)[:, None, None]
    cumulated = np.cumsum((1 - lift) * matrix + lift * np.eye(k), axis=2)
    item, person = np.nonzero(votes >= 0)
    names = found.votes.annotators.tolist()
    row = np.array([names.index(a) for a in range(votes.shape[1])])[person]
    said = (rng.random(len(item))[:, None] > cumulated[row, y[item]]).sum(axis=1)
    new = np.full_like(votes, -1)
    new[item, person] = np.minimum(said, k - 1)
    return y, new, classes


def people(kind, seed):
    """Is anybody named in an honest crowd, do intervals cover, is the expected share of right labels true?"""
    y, votes, classes = simulated(seed) if kind == "simulated" else redrawn(kind, seed)
    found = ours(votes, None, classes)
    right, sure = found.labels == y, found.probability.max(axis=1)
    return {
        "somebody": bool(found.annotators["named"].any()),
        "named": int(found.annotators["named"].sum()),
        "covered": covered(votes, y, found),
        "accuracy": float(right.mean()),
        "expected": float(sure.mean()),
        "decided": float(found.decided.mean()),
    }


def named(crowd, attack, draw, method):
    """With 30 % liars: the share of those with 20 votes or more who are named, and honest people who are."""
    X, y, votes, classes = load(crowd)
    new, owned = attacked(X, y, votes, classes, attack, 0.3, draw)
    found = ours(new, X if method == WITH_FEATURES else None, classes, draw)
    told = found.annotators.set_index("annotator")["named"]
    told = told.reindex(np.arange(new.shape[1]), fill_value=False).to_numpy()
    many = (new >= 0).sum(axis=0) >= 20
    accuracy = np.array([(votes[:, a] == y)[votes[:, a] >= 0].mean() for a in range(votes.shape[1])])
    weak = accuracy < 1.2 / len(classes)  # hardly right before any attack
    return {
        "liars": int((owned & many).sum()),
        "liars_named": int((owned & many & told).sum()),
        "honest_named": int((~owned & ~weak & told).sum()),
        "weak_named": int((~owned & weak & told).sum()),
        "settled": bool(found.solution.settled),
        "accuracy": float((found.labels == y).mean()),
    }


def ask(seed, liars, order):
    """Labels right after 0 to 500 further votes, 100 per round: 2,000 rows, 30 people, 85 % right, 1.1 votes each."""
    from sklearn.datasets import make_classification

    from floral_bench.crowds import peers
    from floral_learn.crowd import next_tasks

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

    from floral_bench.crowds.peers import _frame, _held_out

    first = np.asarray(get_majority_vote_label(_frame(votes), verbose=False))
    scores, _ = get_active_learning_scores(_frame(votes), _held_out(problem, first, 0))
    return np.argsort(scores)[:n]


def million():
    """A million votes of 10,000 people, a fifth of them liars, on 100,000 items with 50 features and 10 classes."""
    from floral_learn import aggregate_votes

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


PARTS = {"real": real, "people": people, "named": named, "ask": ask, "million": million}


def tasks(parts, draws):
    """(part, arguments) of every cell, quick ones and first draws first."""
    found = []
    if "real" in parts:
        for method, draw, crowd in product((OURS, WITH_FEATURES, *PEERS), range(draws), CROWDS):
            if method in (WITH_FEATURES, "crowdlab") and crowd not in FEATURED:
                continue
            threats = [(a, level) for level in (0.2, 0.4) for a in ATTACKS if a != "far" or crowd in FEATURED]
            found += [
                ("real", (crowd, a, level, draw, method)) for a, level in [("none", 0.0), *threats] if level or not draw
            ]
    if "named" in parts:
        for draw, crowd, attack, method in product(range(draws), CROWDS, ATTACKS, (OURS, WITH_FEATURES)):
            if crowd in FEATURED or (attack != "far" and method == OURS):
                found.append(("named", (crowd, attack, draw, method)))
    if "people" in parts:
        found += [("people", (crowd, seed)) for seed in range(REDRAWN * draws) for crowd in CROWDS]
        found += [("people", ("simulated", seed)) for seed in range(HONEST * draws)]
    if "ask" in parts:
        found += [("ask", cell) for cell in product(range(draws), (0.0, 0.2), ("next_tasks", "ActiveLab", "random"))]
    if "million" in parts:
        found.append(("million", ()))
    return found


def one(part, arguments):
    warnings.filterwarnings("ignore")
    began = time.process_time()
    try:
        row = PARTS[part](*arguments)
    except Exception as error:  # a cell that fails is named in the table of what is missing
        row = {"error": repr(error)[:300]}
    return {"part": part, "cell": list(arguments), "cpu_seconds": time.process_time() - began} | row


def run(parts, folder, jobs, limit, draws):
    """Compute the cells that `folder` lacks, until `limit` seconds have passed."""
    folder.mkdir(parents=True, exist_ok=True)
    file, began, here = folder / "rows.jsonl", time.time(), environment()
    made = {"commit": here.get("commit"), "system": here["system"]}
    known = {(row["part"], tuple(row["cell"])) for row in read_rows(folder) if "error" not in row}
    order = {"million": 0, "ask": 1}
    wanted = sorted(
        tasks(parts, draws), key=lambda task: (task[1][-1:] == ("glad",), order.get(task[0], 2))
    )  # the slowest peer last
    left = [task for task in wanted if (task[0], task[1]) not in known]
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "page"))
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; page takes none")
    parser.add_argument("--rows", type=Path, default=Path("build/crowd"), help="folder of rows.jsonl")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds")
    parser.add_argument("--draws", type=int, default=5, help="of each attack, and the number of honest crowds with it")
    given = parser.parse_args()
    if given.what == "run":
        run(given.parts or list(PARTS), given.rows, given.jobs, given.limit, given.draws)
    else:
        from crowd_tables import write_page

        rows = read_rows(given.rows)
        for commit in {row.get("commit") for row in rows}:
            publishable({"commit": commit})
        write_page(rows)


if __name__ == "__main__":
    main()
