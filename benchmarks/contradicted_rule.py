"""Choose the numbers of ContradictedLabels on some data sets of the arena and judge them on the others, in turn.

    python benchmarks/contradicted_rule.py record OUT.csv --models svc,logistic --splits 1,2 --levels 0,30
    python benchmarks/contradicted_rule.py choose OUT.csv
    python benchmarks/contradicted_rule.py publish OUT.csv FOLDER

``record`` fits, in every cell, the plain model and each treatment that a loose rule would try, with what the held-out
check says and what it does to test accuracy (cells already in OUT.csv are not run again; labels are kept beside it).
``choose`` takes, on three folds of data sets, the most careful rule of a grid among those that do no harm there and
gain nearly as much as the best, and judges it on the fourth. ``publish`` writes the judged outcome as a score card of
the arena.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.svm import SVC

from floral_learn.datasets.arena import ARENA, ARENA_FOLDS, SEVERAL_CLASSES, load_arena
from floral_learn.defenses.sanitizers.contradicted import scattered_suspects
from floral_learn.defenses.sanitizers.held_out import class_recalls, deal_folds, fit_weighted, held_out, neighbor_shares
from floral_learn.defenses.sanitizers.one_way import FEWEST, one_way_flips
from floral_learn.defenses.sanitizers.rule import RULE, Rule
from floral_learn.evaluation.arena import arena_attacks
from floral_learn.evaluation.arena_methods import MODELS as TITLES
from floral_learn.evaluation.arena_methods import CleanlabClassifier
from floral_learn.evaluation.cell_data import poisoned_labels
from floral_learn.evaluation.reporting.results import attack_title
from floral_learn.evaluation.spec import Attack, Data, params

LOOSE = Rule(level=0.5, most_foreign=0.75, own_in_core=0.75)
# Smaller forests and fewer trees than the arena has, so that a core gets through them.
MODELS: dict[str, Any] = {
    "svc": SVC(),
    "logistic": LogisticRegression(max_iter=500),
    "forest": RandomForestClassifier(30, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=15, random_state=0),
}
NEVER = 9.0  # a gain that nothing has
NEARLY = 0.004  # of mean accuracy, about a deviation over splits
SLOW = ("logistic", "forest", "boosting")
SLOW_ATTACKS = (
    "clean", "random", "farthest", "near-boundary", "class-biased", "class-biased (rarest class)", "votes", "gradient",
)  # fmt: skip
FIELDS = (
    "model", "data", "fold", "split", "attack", "level_", "n", "kind", "code", "level", "rim", "own_in_core", "own",
    "foreign", "check", "check_recall", "accuracy", "balanced", "seconds",
)  # fmt: skip


def cells(name: str, split: int, rows: int, cache: Path) -> Iterator[tuple[str, int, np.ndarray]]:
    """(attack, level, labels) of a data set; lfa, which is slow, on the first split only."""
    kept = dict(np.load(cache)) if cache.exists() else {}
    if f"{name}|{split}|clean|0" not in kept:
        data = Data(f"arena-{name}", params(seed=split, n_train=rows))
        for attack in arena_attacks(name):
            levels = [26.0] if name == "labelme" else [10.0, 20.0, 30.0]
            if attack.name == "lfa":
                if split > 1:
                    continue
                attack = Attack("lfa", params(n_first=30, n_check=1))
            for level, y in zip(levels, poisoned_labels(data, attack, levels, split), strict=True):
                kept[f"{name}|{split}|{attack_title(attack)}|{level:g}"] = np.asarray(y, dtype=np.int8)
        kept[f"{name}|{split}|clean|0"] = load_arena(name, split, n_train=rows).y_train_clean.astype(np.int8)
        np.savez_compressed(cache, **kept)
    for key, y in kept.items():
        data_name, number, attack_name, level = key.split("|")
        if (data_name, int(number)) == (name, split):
            yield attack_name, int(level), y.astype(int)


def treatments(model: Any, X: np.ndarray, codes: np.ndarray, classes: np.ndarray) -> Iterator[dict[str, Any]]:
    """What a loose rule would try: its weights and what the check says of it. The first has none: the plain model."""
    ones = np.ones(len(codes))
    folds = deal_folds(codes, 4, np.random.default_rng(0))
    shares, plain = held_out(model, X, codes, classes, folds)
    yield {"kind": "plain", "weights": ones}
    near = neighbor_shares(X, codes, len(classes), 30)
    tried = []
    for one in one_way_flips(shares, near, codes, ones):
        if one.counts(LOOSE):
            row = {
                "code": one.code,
                "own": int((codes == one.code).sum()),
                "level": one.level,
                "rim": one.slopes[-1],
                "own_in_core": one.own_in_core,
            }
            tried.append(row | {"kind": "one-way", "weights": np.where(one.foreign, 0.0, 1.0)})
    suspects = scattered_suspects(shares, near, codes)
    for code in np.unique(codes):
        if suspects[codes == code].mean() > 0.5:
            suspects[codes == code] = False
    if suspects.any():
        tried += [{"kind": f"scattered {w:g}", "weights": np.where(suspects, w, 1.0)} for w in (0.5, 0.0)]
    present = np.unique(codes)
    for row in tried:
        _, mended = held_out(model, X, codes, classes, folds, row["weights"])
        row["foreign"] = int((row["weights"] < 1).sum())
        row["check"] = (mended == codes).mean() - (plain == codes).mean()
        change = class_recalls(mended, codes, ones, present) - class_recalls(plain, codes, ones, present)
        row["check_recall"] = change.sum()
        yield row


def record(
    out: Path, models: list[str], splits: list[int], levels: list[int], rows: int, with_cleanlab: bool, seconds: float
) -> None:
    """Append what is missing of the cells to `out`."""
    done = set()
    if out.exists():
        with out.open() as stream:
            done = {(r["model"], r["data"], int(r["split"]), int(r["level_"])) for r in csv.DictReader(stream)}
    started = time.perf_counter()
    with out.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS)
        if not done:
            writer.writeheader()
        for split, model, name in product(splits, models, ARENA):
            missing = [level for level in levels if (model, name, split, level) not in done]
            too_slow = (model == "boosting" and name in SEVERAL_CLASSES) or (model == "forest" and name == "letters")
            if not missing or too_slow:
                continue
            if time.perf_counter() - started > seconds:
                return
            data = load_arena(name, split, n_train=rows)
            found = []
            for attack, level, y in cells(name, split, rows, out.with_suffix(f".{rows}.npz")):
                if (level in missing or level == 26) and (model not in SLOW or attack in SLOW_ATTACKS):
                    rows_of = cell(MODELS[model], data, y, with_cleanlab)
                    where = {"model": model, "data": name, "fold": ARENA_FOLDS[name], "split": split, "attack": attack}
                    found += [where | {"level_": level, "n": len(y)} | row for row in rows_of]
            writer.writerows({key: row.get(key, "") for key in FIELDS} for row in found)
            stream.flush()
            print(f"{time.perf_counter() - started:6.0f} s  {model} {name} {split}: {len(found)} rows", flush=True)


def cell(model: Any, data: Any, y: np.ndarray, with_cleanlab: bool) -> list[dict[str, Any]]:
    """Test scores of the plain model, of each treatment and of cleanlab."""
    classes, codes = np.unique(y, return_inverse=True)
    rows = []
    if len(classes) < 2:
        return rows
    for row in treatments(model, data.X_train, codes, classes):
        weights = row.pop("weights")
        started, kept = time.perf_counter(), weights > 0
        fitted = fit_weighted(clone(model), data.X_train[kept], y[kept], weights[kept])
        rows.append(row | scores(fitted.predict(data.X_test), data.y_test, started))
    if with_cleanlab:
        started = time.perf_counter()
        fitted = CleanlabClassifier(model).fit(data.X_train, y)
        rows.append({"kind": "cleanlab"} | scores(fitted.predict(data.X_test), data.y_test, started))
    return rows


def scores(predicted: np.ndarray, truth: np.ndarray, started: float) -> dict[str, float]:
    """Accuracy, balanced accuracy and seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        balanced = balanced_accuracy_score(truth, predicted)
    spent = time.perf_counter() - started
    return {"accuracy": (predicted == truth).mean(), "balanced": balanced, "seconds": round(spent, 4)}


GRID = [
    replace(RULE, level=level, own_in_core=own, one_way_gain=gain, scattered_gain=scattered, scattered_weight=weight)
    for level, own, gain in product((0.6, 0.65, 0.7), (0.5, 0.55, 0.6), (0.2, 0.3, 0.4))
    for scattered, weight in ((NEVER, 0.5), (0.8, 0.5), (0.6, 0.5), (0.6, 0.0))
]
CELL = ["model", "fold", "data", "attack", "level_"]
SCORES = ["accuracy", "balanced"]


class Records:
    """The recorded fits as arrays, so that hundreds of rules can be tried on them."""

    def __init__(self, frame: Any) -> None:
        self.plain = frame[frame.kind == "plain"].set_index([*CELL, "split"])[SCORES]
        self.cell = self.plain.index.droplevel("split")
        ways = frame[(frame.kind == "one-way") & (frame.own >= FEWEST)]
        self.ways = self._part(ways.sort_values("foreign"))
        self.scattered = {w: self._part(frame[frame.kind == f"scattered {w:g}"]) for w in (0.5, 0.0)}
        self.cleanlab = self._part(frame[frame.kind == "cleanlab"])

    def _part(self, frame: Any) -> Any:
        at = self.plain.index.get_indexer(frame.set_index([*CELL, "split"]).index)
        change = frame[SCORES].to_numpy() - self.plain.to_numpy()[at]
        return frame.assign(at=at, d_accuracy=change[:, 0], d_balanced=change[:, 1])

    def outcome(self, rule: Rule) -> np.ndarray:
        """What the rule makes of accuracy and balanced accuracy (fits, 2), minus the plain model's."""
        ways = self.ways
        counts = (ways.level >= rule.level) & (ways.rim <= rule.most_foreign) & (ways.own_in_core <= rule.own_in_core)
        ways = ways[counts].drop_duplicates("at", keep="last")  # the pattern with the most foreign labels
        change = np.zeros((len(self.plain), 2))
        found = self.scattered[rule.scattered_weight]
        enough = found.check * np.sqrt(found.n) >= rule.scattered_gain
        found = found[enough & (found.check_recall >= 0) & ~found["at"].isin(ways["at"])]
        for part in (ways[ways.check_recall >= rule.one_way_gain], found):
            change[part["at"]] = part[["d_accuracy", "d_balanced"]]
        return change

    def rival(self) -> np.ndarray:
        """The same for cleanlab; NaN where it was not run."""
        change = np.full((len(self.plain), 2), np.nan)
        change[self.cleanlab["at"]] = self.cleanlab[["d_accuracy", "d_balanced"]]
        return change

    def card(self, change: np.ndarray, rows: np.ndarray) -> dict[str, float]:
        """The numbers that decide, over cells (means over splits), on some of the fits."""
        codes, _ = self.cell[rows].factorize()
        sizes = np.bincount(codes)
        accuracy, balanced = (np.bincount(codes, weights=change[rows, k]) / sizes for k in (0, 1))
        level = np.bincount(codes, weights=self.cell.get_level_values("level_").to_numpy()[rows])
        poisoned = level > 0
        return {
            "clean": accuracy[~poisoned].mean(),
            "poisoned": accuracy[poisoned].mean(),
            "worst": accuracy.min(),
            "below": (accuracy < -0.02).mean(),
            "balanced_clean": balanced[~poisoned].mean(),
            "balanced": balanced[poisoned].mean(),
            "acted": (change[rows, 0] != 0).mean(),
            "cells": len(sizes),
        }


def harmless(numbers: dict[str, float]) -> bool:
    """The goals that come before any gain."""
    return (
        numbers["clean"] >= -0.002
        and numbers["below"] <= 0.02
        and numbers["worst"] >= -0.05  # one split makes a cell noisy: the goal for means of five is -0.03
        and min(numbers["balanced"], numbers["balanced_clean"]) >= 0
    )


def best(records: Records, rows: np.ndarray) -> Rule:
    """The most careful of the harmless rules that gain nearly as much as the best of them.

    Where no rule is harmless, the one with the fewest cells far below.
    """
    found = [(rule, records.card(records.outcome(rule), rows)) for rule in GRID]
    safe = [(rule, numbers["poisoned"]) for rule, numbers in found if harmless(numbers)]
    if not safe:
        return min(found, key=lambda pair: (pair[1]["below"], -pair[1]["poisoned"]))[0]
    most = max(gain for _, gain in safe)
    return max((rule for rule, gain in safe if gain >= most - NEARLY), key=care)


def care(rule: Rule) -> tuple[float, ...]:
    """Larger for a rule that asks for more before it acts, and then does less."""
    return (-rule.own_in_core, rule.one_way_gain, rule.level, rule.scattered_weight, rule.scattered_gain)


def judge(records: Records) -> np.ndarray:
    """The outcome (fits, 2) on each fold of the rule that the other folds choose."""
    fold = records.cell.get_level_values("fold").to_numpy()
    judged = np.zeros((len(fold), 2))
    for number in sorted(set(fold)):
        rule = best(records, fold != number)
        judged[fold == number] = records.outcome(rule)[fold == number]
        print(f"fold {number} judged, the others choose {rule}")
    return judged


def publish(path: Path, folder: Path) -> None:
    """Write the arena's score card, cells and picture of the recorded fits; "safe" is the judged outcome."""
    import pandas as pd

    from floral_learn.evaluation.arena_outputs import write_arena
    from floral_learn.evaluation.reporting.environment import environment

    records = Records(pd.read_csv(path))
    titles = {name: title for name, (title, _) in TITLES.items()}
    parts = []
    for words, change in (("", 0.0), ("safe ", judge(records)), ("cleanlab, ", records.rival())):
        part = (records.plain + change).dropna().reset_index()
        part["method"] = [words + titles[name] for name in part["model"]]
        parts.append(part)
    frame = pd.concat(parts).rename(columns={"level_": "level", "balanced": "balanced_accuracy"})
    frame["seconds"] = np.nan
    note = {"command": f"python benchmarks/contradicted_rule.py publish {path.name}", "environment": environment()}
    for written in write_arena(frame, folder, note):
        print(written)


def choose(path: Path) -> None:
    """Print the rule of each turn, its numbers on the judged fold, and the rule chosen on all folds."""
    import pandas as pd

    records = Records(pd.read_csv(path))
    model = records.cell.get_level_values("model").to_numpy()
    judged = judge(records)
    print(f"chosen on all folds: {best(records, model != '')}")
    never = replace(RULE, scattered_gain=NEVER)
    tables = {
        "judged": judged,
        "shipped": records.outcome(RULE),
        "shipped, one-way only": records.outcome(never),
        "cleanlab": records.rival(),
    }
    rows = []
    for name in [*dict.fromkeys(model), "all"]:
        for title, change in tables.items():
            part = ((model == name) | (name == "all")) & ~np.isnan(change[:, 0])
            if part.any():
                rows.append({"model": name, "rule": title, **records.card(change, part)})
    table = pd.DataFrame(rows).round(4)
    print(table.to_string(index=False))
    lowest = pd.Series(judged[:, 0], index=records.cell).groupby(level=CELL).mean().sort_values()
    print(lowest.head(12).round(3).to_string())


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "choose", "publish"))
    parser.add_argument("file", type=Path)
    parser.add_argument("folder", type=Path, nargs="?", help="where publish writes")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--splits", default="1,2")
    parser.add_argument("--levels", default="0,10,20,30")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--no-cleanlab", action="store_true")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after the data set that passes this")
    given = parser.parse_args()
    if given.what == "choose":
        choose(given.file)
    elif given.what == "publish":
        publish(given.file, given.folder)
    else:
        splits, levels = ([int(text) for text in texts.split(",")] for texts in (given.splits, given.levels))
        models, rows = given.models.split(","), given.rows
        record(given.file, models, splits, levels, rows, not given.no_cleanlab, given.seconds)


if __name__ == "__main__":
    main()
