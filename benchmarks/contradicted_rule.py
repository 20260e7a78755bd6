"""Choose the numbers of ContradictedLabels on some data sets of the arena and judge them on the others, in turn.

    python benchmarks/contradicted_rule.py choose FOLDER-OR-CSV
    python benchmarks/contradicted_rule.py merge FOLDER OUT.csv.gz
    python benchmarks/contradicted_rule.py cost phoneme

FOLDER is what ``arena_record.py`` wrote. ``choose`` takes, on three folds of data sets, the most careful rule of a
grid among those that do no harm there and gain nearly as much as the best, and judges it on the fourth: first for
models that smooth over contradicted labels, then for those that learn them by heart. ``merge`` puts the rows into one
file, and how they were made into another beside it; ``cost`` prints the CPU time of a sanitised fit in plain fits, on
1,000 rows with 20 % random flips. ``arena_pages.py`` publishes the judged outcome.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from floral_bench.reporting.making import beside_merged, keep_parts, makings
from floral_learn.sanitizers.one_way import FEWEST
from floral_learn.sanitizers.rule import MEMORISES, RULE, RULE_MEMORISING, Rule

NEVER = 99.0  # standard errors that nothing has
# Mean accuracy that a careful rule may cost. Where a model learns labels by heart, doing nothing is costly too.
NEARLY = (0.004, 0.001)
# A rule is harmful from -0.03 on, and a mean over five splits is known to half a point. A cell with fewer splits than
# FEW, some with 50 test rows, is too noisy to be the worst; it counts in the share of cells that are far below.
FEW = 3
OFF = replace(RULE, scattered_errors=NEVER)


def _one_way(most_own: Sequence[float]) -> list[Rule]:
    return [
        replace(OFF, level=level, own_in_core=own, most_foreign=rim, least_share=share, one_way_gain=rise)
        for level, own, rim in product((0.6, 0.7, 0.8), most_own, (0.55, 0.7))
        for share, rise in product((0.25, 0.35, 0.5), (0.05, 0.1, 0.2))
    ]


# What counts as a class that lost labels: where a model smooths, and where it learns labels by heart.
ONE_WAY = (_one_way((0.5, 0.6)), _one_way((0.5, 0.6, 0.7, 0.8, 0.9)))
SCATTERED = [
    {"scattered_errors": errors, "recall_errors": recall, "scattered_share": share}
    for errors, recall in product((-NEVER, 0.0, 1.0, 2.0, 3.0), (0.0, 1.0, 2.0, 3.0))
    for share in (0.0, 0.35, 0.6)
]
SCATTERED += [SCATTERED[0] | {"scattered_errors": NEVER}]
CELL = ["model", "fold", "data", "attack", "level_"]
SCORES = ["accuracy", "balanced"]
SHIPPED = "mixed 0"  # the scattered suspects of the library, left out
Rules = tuple[Rule, Rule]  # for a model that smooths, and for one that learns by heart
SHIPPED_RULES: Rules = (RULE, RULE_MEMORISING)
NUMBERS = ["level", "rim", "own_in_core", "share", "clumped", "check_errors", "check_recall", "recall_errors"]


def read_rows(path: Path) -> pd.DataFrame:
    """All rows of a folder that ``arena_record.py`` wrote, or of a file that ``merge`` wrote."""
    if path.is_dir():
        return pd.concat([pd.read_csv(part) for part in sorted(path.glob("rows/*.csv"))], ignore_index=True)
    return pd.read_csv(path)


class Records:
    """The recorded fits as arrays, so that hundreds of rules can be tried on them."""

    def __init__(self, frame: pd.DataFrame) -> None:
        frame = frame.drop_duplicates([*CELL, "split", "kind", "code"])
        known = frame.dropna(subset="memorised").set_index([*CELL, "split"]).memorised
        self.plain = frame[frame.kind == "plain"].set_index([*CELL, "split"])[SCORES]
        asked = frame[frame.kind == SHIPPED].set_index([*CELL, "split"]).index
        self.plain = self.plain[self.plain.index.isin(asked)]  # fits of which everything is known
        self.cell = self.plain.index.droplevel("split")
        self.share_memorised = known[~known.index.duplicated()].reindex(self.plain.index).to_numpy()
        self.memorised = self.share_memorised >= MEMORISES
        self.model = self.cell.get_level_values("model").to_numpy()
        self.fold = self.cell.get_level_values("fold").to_numpy()
        self.codes, cells = self.cell.factorize()
        self.poisoned = cells.get_level_values(CELL.index("level_")).to_numpy() > 0
        ways = frame[(frame.kind == "one-way") & (frame.own >= FEWEST)]
        self.ways = self._part(ways.sort_values("foreign"))
        self.others = {kind: self._part(part) for kind, part in frame.groupby("kind")}

    def _part(self, frame: pd.DataFrame) -> dict[str, np.ndarray]:
        at = self.plain.index.get_indexer(frame.set_index([*CELL, "split"]).index)
        frame, at = frame[at >= 0], at[at >= 0]
        numbers = {name: frame[name].to_numpy() for name in NUMBERS}
        return numbers | {"at": at, "change": frame[SCORES].to_numpy() - self.plain.to_numpy()[at]}

    def outcome(self, rules: Rules, kind: str = SHIPPED) -> np.ndarray:
        """What the rules make of accuracy and balanced accuracy (fits, 2), minus the plain model's.

        ``kind`` are the scattered suspects that they would leave out or weigh down.
        """
        return np.where(self.memorised[:, None], self.by(rules[1], kind), self.by(rules[0], kind))

    def by(self, rule: Rule, kind: str = SHIPPED) -> np.ndarray:
        """The same by one rule, whatever the model learns by heart."""
        ways = self.ways
        counts = (ways["level"] >= rule.level) & (ways["rim"] <= rule.most_foreign)
        counts &= (ways["own_in_core"] <= rule.own_in_core) & (ways["share"] >= rule.least_share)
        rows = np.flatnonzero(counts & (ways["clumped"] <= rule.most_clumped))
        pattern = np.full(len(self.plain), -1)
        pattern[ways["at"][rows]] = rows  # the one with the most foreign labels comes last and stays
        change = np.zeros((len(self.plain), 2))
        found = pattern[pattern >= 0]
        found = found[ways["check_recall"][found] >= rule.one_way_gain]
        found = found[ways["recall_errors"][found] >= rule.one_way_errors]
        change[ways["at"][found]] = ways["change"][found]
        others = self.others.get(kind)
        if others is not None:
            helps = (others["check_errors"] >= rule.scattered_errors) & (others["share"] >= rule.scattered_share)
            helps &= (others["recall_errors"] >= rule.recall_errors) & (pattern[others["at"]] < 0)
            change[others["at"][helps]] = others["change"][helps]
        return change

    def alone(self, kind: str) -> np.ndarray:
        """The same for something that is always done (cleanlab, floral, a treatment); NaN where it was not run."""
        change = np.full((len(self.plain), 2), np.nan)
        if kind in self.others:
            part = self.others[kind]
            change[part["at"]] = part["change"]
        return change

    def card(self, change: np.ndarray, rows: np.ndarray) -> dict[str, float]:
        """The numbers that decide, over cells (means over splits), on some of the fits."""
        rows = rows & ~np.isnan(change[:, 0])
        codes, count = self.codes[rows], len(self.poisoned)
        sizes = np.bincount(codes, minlength=count)
        run = sizes > 0
        accuracy, balanced = (
            np.bincount(codes, weights=change[rows, k], minlength=count)[run] / sizes[run] for k in (0, 1)
        )
        poisoned = self.poisoned[run]
        return {
            "clean": _mean(accuracy[~poisoned]),
            "poisoned": _mean(accuracy[poisoned]),
            "worst": accuracy.min(),
            "worst_sure": accuracy[sizes[run] >= FEW].min(initial=0.0),
            "below": (accuracy < -0.02).mean(),
            "balanced_clean": _mean(balanced[~poisoned]),
            "balanced": _mean(balanced[poisoned]),
            "acted": (change[rows, 0] != 0).mean(),
            "cells": int(run.sum()),
        }


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else np.nan


def harmless(records: Records, change: np.ndarray, rows: np.ndarray) -> bool:
    """The goals that come before any gain, for each model."""
    for name in np.unique(records.model[rows]):
        numbers = records.card(change, rows & (records.model == name))
        if numbers["clean"] < -0.002 or numbers["below"] > 0.02:
            return False
        if numbers["worst_sure"] < -0.035:
            return False
        if min(numbers["balanced"], numbers["balanced_clean"]) < 0:
            return False
    return True


def best_of(records: Records, rows: np.ndarray, branch: int, rules: Sequence[Rules]) -> Rules:
    """The most careful of the harmless rules that gain nearly as much as the best of them.

    Where no rule is harmless, the one with the highest worst cell.
    """
    here = rows & records.memorised if branch else rows
    if not here.any():
        return rules[0]
    cards = [records.card(records.outcome(pair), here) for pair in rules]
    gains = np.nan_to_num([card["poisoned"] for card in cards])
    order = np.argsort(-gains, kind="stable")
    top = next((at for at in order if harmless(records, records.outcome(rules[at]), rows)), None)
    if top is None:
        return rules[max(range(len(rules)), key=lambda at: (cards[at]["worst"], gains[at]))]
    near = np.flatnonzero((gains >= gains[top] - NEARLY[branch]) & (gains <= gains[top]))
    careful = sorted((rules[at] for at in near), key=lambda pair: care(pair[branch]), reverse=True)
    return next(pair for pair in careful if harmless(records, records.outcome(pair), rows))


def best(records: Records, rows: np.ndarray) -> Rules:
    """What counts as a class that lost labels, then what is done about scattered suspects.

    First one rule for all fits; then another for those that learn by heart.
    """
    first = best_of(records, rows, 0, [(way, way) for way in ONE_WAY[0]])[0]
    everywhere = [replace(first, **scattered) for scattered in SCATTERED]
    first = best_of(records, rows, 0, [(rule, rule) for rule in everywhere])[0]
    second = best_of(records, rows, 1, [(first, way) for way in ONE_WAY[1]])[1]
    return best_of(records, rows, 1, [(first, replace(second, **scattered)) for scattered in SCATTERED])


def care(rule: Rule) -> tuple[float, ...]:
    """Larger for a rule that asks for more before it acts, and then does less."""
    one_way = (-rule.own_in_core, rule.least_share, rule.level, rule.one_way_gain, -rule.most_foreign)
    return (*one_way, rule.scattered_errors, rule.recall_errors, rule.scattered_share)


def judge(records: Records) -> tuple[np.ndarray, dict[int, Rules]]:
    """The outcome (fits, 2) on each fold of the rules that the other folds choose, and these rules."""
    judged, rules = np.zeros((len(records.fold), 2)), {}
    for number in sorted(set(records.fold)):
        rules[int(number)] = best(records, records.fold != number)
        judged[records.fold == number] = records.outcome(rules[int(number)])[records.fold == number]
    return judged, rules


def choose(path: Path) -> None:
    """Print the rule of each turn, its numbers on the judged fold, and the rule chosen on all folds."""
    records = Records(read_rows(path))
    judged, rules = judge(records)
    for number, pair in [*rules.items(), ("none", best(records, records.fold >= 0))]:
        for words, rule in zip(("smoothing", "learning by heart"), pair, strict=True):
            print(f"fold {number} judged, {words}: {rule}")
    unknown = np.isnan(records.share_memorised).mean()
    print(f"fits that learn by heart: {records.memorised.mean():.1%}, not known: {unknown:.1%}")
    tables = {
        "judged": judged,
        "shipped": records.outcome(SHIPPED_RULES),
        "shipped, as if every model smoothed": records.by(RULE),
        "shipped, as if every model learned by heart": records.by(RULE_MEMORISING),
        "cleanlab": records.alone("cleanlab"),
        "FLORAL": records.alone("floral"),
    }
    rows = []
    for name in [*dict.fromkeys(records.model), "all"]:
        for title, change in tables.items():
            part = ((records.model == name) | (name == "all")) & ~np.isnan(change[:, 0])
            if part.any():
                rows.append({"model": name, "rule": title, **records.card(change, part)})
    print(pd.DataFrame(rows).round(4).to_string(index=False))
    lowest = pd.Series(judged[:, 0], index=records.cell).groupby(level=CELL).mean().sort_values()
    print(lowest.head(15).round(3).to_string())


def cost(name: str) -> None:
    """Print how many plain fits a sanitised one takes, by the lowest of three CPU times each."""
    from sklearn.base import clone
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC

    from floral_bench.arena_data import load_arena
    from floral_learn import ContradictedLabels, FloralClassifier, SanitizedClassifier, poison

    data = load_arena(name, 2)
    y = poison(data.X_train, data.y_train, attack="random", budget=0.2, random_state=0).y
    models = (SVC(), LogisticRegression(max_iter=500), RandomForestClassifier(random_state=0))
    for model in (*models, HistGradientBoostingClassifier(random_state=0), FloralClassifier(random_state=0)):
        times = []
        for fitted in (model, SanitizedClassifier(ContradictedLabels(), model)):
            found = []
            for _ in range(3):
                started = time.process_time()
                clone(fitted).fit(data.X_train, y)
                found.append(time.process_time() - started)
            times.append(min(found))
        print(f"{type(model).__name__}: {times[0]:.3f} s, {times[1]:.3f} s, {times[1] / times[0]:.1f} plain fits")


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("choose", "merge", "cost"))
    parser.add_argument("source", type=Path, help="folder or csv file; for cost, a data set of the arena")
    parser.add_argument("out", type=Path, nargs="?", help="where merge writes")
    given = parser.parse_args()
    if given.what == "choose":
        choose(given.source)
    elif given.what == "cost":
        cost(str(given.source))
    else:
        read_rows(given.source).sort_values([*CELL, "split"]).to_csv(given.out, index=False)
        keep_parts(makings(given.source / "rows"), beside_merged(given.out))


if __name__ == "__main__":
    main()
