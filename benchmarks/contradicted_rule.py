"""Choose the numbers of ContradictedLabels on some data sets of the arena and judge them on the others, in turn.

    python benchmarks/contradicted_rule.py record OUT.csv --models svc,logistic --splits 1,2 --rows 400
    python benchmarks/contradicted_rule.py choose OUT.csv [--markdown]

``record`` fits, in every cell, the plain model and each treatment that a loose rule would try, with what the held-out
check says and what it does to test accuracy (cells already in OUT.csv are not run again; labels are kept beside it).
``choose`` takes the rule of a grid that gains most on three folds of data sets among those that do no harm there, and
judges it on the fourth.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.svm import SVC

from floral_learn.datasets.arena import ARENA, ARENA_FOLDS, load_arena
from floral_learn.defenses.sanitizers.contradicted import scattered_suspects
from floral_learn.defenses.sanitizers.held_out import class_recalls, deal_folds, fit_weighted, held_out, neighbor_shares
from floral_learn.defenses.sanitizers.one_way import one_way_flips
from floral_learn.defenses.sanitizers.rule import RULE, Rule
from floral_learn.evaluation.arena import arena_attacks
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
SLOW = ("forest", "boosting")
SLOW_ATTACKS = ("clean", "random", "farthest", "class-biased", "class-biased (rarest class)", "votes", "gradient")
FIELDS = (
    "model", "data", "fold", "split", "attack", "level_", "kind", "code", "level", "rim", "own_in_core", "foreign",
    "check", "check_recall", "accuracy", "balanced", "seconds",
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
            row = {"code": one.code, "level": one.level, "rim": one.slopes[-1], "own_in_core": one.own_in_core}
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


def record(out: Path, models: list[str], splits: list[int], rows: int, with_cleanlab: bool, seconds: float) -> None:
    """Append what is missing of the cells to `out`."""
    done = set()
    if out.exists():
        with out.open() as stream:
            done = {(r["model"], r["data"], int(r["split"])) for r in csv.DictReader(stream)}
    started = time.perf_counter()
    with out.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS)
        if not done:
            writer.writeheader()
        for split, model, name in product(splits, models, ARENA):
            if (model, name, split) in done or (name == "letters" and model in SLOW):
                continue
            if time.perf_counter() - started > seconds:
                return
            data = load_arena(name, split, n_train=rows)
            found = []
            for attack, level, y in cells(name, split, rows, out.with_suffix(f".{rows}.npz")):
                if model not in SLOW or (attack in SLOW_ATTACKS and level != 10):
                    rows_of = cell(MODELS[model], data, y, with_cleanlab)
                    where = {"model": model, "data": name, "fold": ARENA_FOLDS[name], "split": split, "attack": attack}
                    found += [where | {"level_": level} | row for row in rows_of]
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
    for level, own, gain in product((0.6, 0.7, 0.8), (0.5, 0.6, 0.7), (0.2, 0.3, 0.4))
    for scattered, weight in ((9.0, 0.5), *product((0.0, 0.005, 0.01, 0.02), (0.5, 0.0)))
]


def outcome(frame: Any, rule: Rule) -> Any:
    """Per model and fit: what the rule makes of accuracy and balanced accuracy, minus the plain model's."""
    key = ["model", "fold", "data", "attack", "level_", "split"]
    plain = frame[frame.kind == "plain"].set_index(key)[["accuracy", "balanced"]]
    ways = frame[
        (frame.kind == "one-way")
        & (frame.level >= rule.level)
        & (frame.rim <= rule.most_foreign)
        & (frame.own_in_core <= rule.own_in_core)
    ]
    ways = ways.sort_values("foreign").groupby(key).last()
    acting = ways[ways.check_recall >= rule.one_way_gain]
    spread = frame[frame.kind == f"scattered {rule.scattered_weight:g}"].set_index(key)
    spread = spread[(spread.check >= rule.scattered_gain) & (spread.check_recall >= 0) & ~spread.index.isin(ways.index)]
    change = plain * 0.0
    for found in (acting, spread):
        change.loc[found.index] = found[["accuracy", "balanced"]] - plain.loc[found.index]
    return change


def card(change: Any) -> dict[str, float]:
    """The numbers that decide, over cells (means over splits)."""
    means = change.groupby(level=["model", "data", "attack", "level_"]).mean()
    poisoned = means.index.get_level_values("level_") > 0
    return {
        "clean": means.accuracy[~poisoned].mean(),
        "poisoned": means.accuracy[poisoned].mean(),
        "worst": means.accuracy.min(),
        "below": (means.accuracy < -0.02).mean(),
        "balanced_clean": means.balanced[~poisoned].mean(),
        "balanced": means.balanced[poisoned].mean(),
        "acted": (change.accuracy != 0).mean(),
        "cells": len(means),
    }


def harmless(numbers: dict[str, float]) -> bool:
    """The goals that come before any gain."""
    return (
        numbers["clean"] >= -0.002
        and numbers["below"] <= 0.02
        and numbers["worst"] >= -0.05  # one split makes a cell noisy: the goal for means of five is -0.03
        and min(numbers["balanced"], numbers["balanced_clean"]) >= 0
    )


def best(frame: Any) -> Rule:
    """The harmless rule that gains most; where none is, the one with the fewest cells far below."""
    found = [(rule, card(outcome(frame, rule))) for rule in GRID]
    safe = [pair for pair in found if harmless(pair[1])]
    if safe:
        return max(safe, key=lambda pair: pair[1]["poisoned"])[0]
    return min(found, key=lambda pair: (pair[1]["below"], -pair[1]["poisoned"]))[0]


def choose(path: Path, markdown: bool) -> None:
    """Print the rule of each turn, its numbers on the judged fold, and the rule chosen on all folds."""
    import pandas as pd

    frame = pd.read_csv(path)
    judged = []
    for fold in sorted(set(frame.fold)):
        rule = best(frame[frame.fold != fold])
        changed = {name: value for name, value in asdict(rule).items() if name != "most_foreign"}
        print(f"fold {fold} judged, the others choose {changed}")
        judged.append(outcome(frame[frame.fold == fold], rule))
    chosen = best(frame)
    print(f"chosen on all folds: {asdict(chosen)}")
    tables = {"judged": pd.concat(judged), "shipped": outcome(frame, RULE)}
    plain = frame[frame.kind == "plain"].set_index(["model", "fold", "data", "attack", "level_", "split"])
    rival = frame[frame.kind == "cleanlab"].set_index(plain.index.names)
    tables["cleanlab"] = rival[["accuracy", "balanced"]] - plain.loc[rival.index, ["accuracy", "balanced"]]
    rows = []
    for model in [*dict.fromkeys(frame.model), "all"]:
        for name, change in tables.items():
            part = change if model == "all" else change[change.index.get_level_values("model") == model]
            if len(part):
                rows.append({"model": model, "rule": name, **card(part)})
    table = pd.DataFrame(rows).round(4)
    print(table.to_markdown(index=False) if markdown else table.to_string(index=False))
    lowest = tables["judged"].groupby(level=["model", "data", "attack", "level_"]).accuracy.mean().sort_values()
    print(lowest.head(12).round(3).to_string())
    print(lowest.tail(8).round(3).to_string())


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "choose"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--splits", default="1,2")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--no-cleanlab", action="store_true")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after the data set that passes this")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    if given.what == "choose":
        choose(given.file, given.markdown)
    else:
        splits = [int(text) for text in given.splits.split(",")]
        record(given.file, given.models.split(","), splits, given.rows, not given.no_cleanlab, given.seconds)


if __name__ == "__main__":
    main()
