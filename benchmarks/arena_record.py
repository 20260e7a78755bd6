"""Fit, in every cell of the arena, the plain model and each treatment that a loose rule would try; resumable.

    python benchmarks/arena_record.py FOLDER --plan svc+logistic:all:1-5 --plan forest:cheap:1-2 --processes 5
    python benchmarks/arena_record.py FOLDER --plan floral:cheap:1-2 --seconds 500

A plan names models, attacks (``cheap``, ``alfa``, ``lfa`` or ``all``) and splits; plans run in the given order, each
as tasks of one data set and split. FOLDER keeps poisoned labels (``labels/``) and one csv file per model, attacks, data
set and split (``rows/``, and in ``rows/making/`` how each was made): cells that are there are not run again.
``contradicted_rule.py`` reads the folder.

A treatment's row has what the held-out check says of it, and its test accuracy where any rule could accept it (on the
first split of the fast models always). cleanlab's CleanLearning gets the same held-out probabilities (four folds; a
sigmoid per class on the decision values of SVC, which has none), the plain model behind it, and its own weights for
the last fit.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).parent))
from other_suspects import confident_suspects, restoring_weights, scattered_suspects

from floral_bench.arena import arena_attacks
from floral_bench.arena_data import ARENA, ARENA_FOLDS, SEVERAL_CLASSES, load_arena
from floral_bench.cell_data import poisoned_labels
from floral_bench.reporting.making import Making, begin
from floral_bench.reporting.results import attack_title
from floral_bench.spec import Attack, Data, params
from floral_learn.files.atomic_files import write_atomically
from floral_learn.labels.held_out import deal_folds, fit_weighted, held_out, neighbor_shares, one_scale
from floral_learn.sanitizers.check import compare
from floral_learn.sanitizers.one_way import clumped, one_way_flips
from floral_learn.sanitizers.rule import MEMORISES, RULE, Rule
from floral_learn.sanitizers.suspects import mixed_suspects, rarest_share, undecided

LOOSE = Rule(level=0.5, most_foreign=0.75, own_in_core=0.9, least_share=0.0)
LOOSE_RISE = 0.0  # of the recalls in sum, for one-way flips
ONCE_LOOSE = 0.65  # own labels in the core up to which earlier recordings went
LOOSE_ERRORS = 0.7  # of accuracy or recall, for other suspects
# Smaller forests and fewer trees than the arena has, so that sixteen cores get through them.
MODELS: dict[str, Any] = {
    "svc": SVC(),
    "logistic": LogisticRegression(max_iter=500),
    "forest": RandomForestClassifier(30, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=15, random_state=0),
}
FAST = ("svc", "logistic")
STAGES = {"alfa": ("alfa", "alfa-tilt"), "lfa": ("lfa",)}
TOO_SLOW = {("boosting", name) for name in SEVERAL_CLASSES if name not in ("iris", "wine")} | {("forest", "letters")}
TOO_SLOW |= {("boosting", "imdb"), ("boosting", "mnist-1-7")}  # with weights, many columns take minutes
FIELDS = (
    "model", "data", "fold", "split", "attack", "level_", "n", "kind", "code", "level", "rim", "own_in_core", "own",
    "share", "clumped", "foreign", "check", "check_errors", "check_recall", "recall_errors", "accuracy", "balanced",
    "seconds", "memorised",
)  # fmt: skip


def labels_of(folder: Path, name: str, split: int, attack: Attack, rows: int) -> Iterator[tuple[str, int, np.ndarray]]:
    """(attack, level, labels) at each level, made once and kept under ``labels/``."""
    title = attack_title(attack)
    path = folder / "labels" / f"{name}.{split}.{title.replace(' ', '_')}.{rows}.npz"
    if not path.exists():
        data = Data(f"arena-{name}", params(seed=split, n_train=rows))
        levels = [26.0] if name == "labelme" else [10.0, 20.0, 30.0]
        if attack.name == "lfa":
            attack = Attack("lfa", params(n_first=30, n_check=1))
        found = poisoned_labels(data, attack, levels, split)
        stream = io.BytesIO()
        kept = {f"{level:g}": np.asarray(y, np.int8) for level, y in zip(levels, found, strict=True)}
        np.savez_compressed(stream, **kept)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, stream.getvalue())
    with np.load(path) as found:
        for level in found.files:
            yield title, int(level), found[level].astype(int)


def treatments(
    model: Any, X: np.ndarray, codes: np.ndarray, classes: np.ndarray, every: bool
) -> Iterator[dict[str, Any]]:
    """What a loose rule would try: its weights and what the check says of it; first the plain model and cleanlab's.

    With ``every``, also the ideas that are not in the library.
    """
    ones = np.ones(len(codes))
    folds = deal_folds(codes, 4, np.random.default_rng(0))
    held = held_out(model, X, codes, classes, folds, ask_again=True)
    shares = held.shares
    yield {"kind": "plain", "weights": ones, "memorised": held.memorised(codes)}
    yield {"kind": "cleanlab", "weights": cleanlab_weights(model, shares, codes)}
    near, scaled = neighbor_shares(X, codes, len(classes), 30), one_scale(X)
    tried = list(lost_labels(shares, near, scaled, codes))
    share = {"share": rarest_share(codes, ones)}
    suspects = mixed_suspects(scaled, shares, near, codes, RULE.most_clumped)
    suspects &= ~undecided(suspects, codes, ones)
    if suspects.any():
        tried.append({"kind": "mixed 0", "weights": np.where(suspects, 0.0, 1.0)} | share)
    else:
        none = {"check_errors": -1.0, "recall_errors": -1.0, "check": 0.0, "foreign": 0}
        yield {"kind": "mixed 0", "weights": ones} | share | none
    if every:
        tried += [row | share for row in other_ideas(shares, near, codes)]
    yield from checked(tried, model, X, codes, classes, folds, held.predicted)


def other_ideas(shares: np.ndarray, near: np.ndarray, codes: np.ndarray) -> Iterator[dict[str, Any]]:
    """Treatments that were tried and are not in the library."""
    ones, mean = np.ones(len(codes)), (shares + near) / 2
    both, sure = scattered_suspects(shares, near, codes), confident_suspects(mean, codes)
    for kind, suspects, weight, others in (
        ("both 0.5", both, 0.5, ones),
        ("both 0", both, 0.0, ones),
        ("confident 0.5", sure, 0.5, ones),
        ("restored 0", sure, 0.0, restoring_weights(mean, codes)),
    ):
        suspects = suspects & ~undecided(suspects, codes, ones)
        if suspects.any():
            yield {"kind": kind, "weights": np.where(suspects, weight, others)}


def lost_labels(
    shares: np.ndarray, near: np.ndarray, scaled: np.ndarray, codes: np.ndarray
) -> Iterator[dict[str, Any]]:
    """Each class that may have lost labels, by a loose rule."""
    for one in one_way_flips(shares, near, codes, np.ones(len(codes))):
        if one.counts(LOOSE):
            own = codes == one.code
            yield {
                "kind": "one-way",
                "code": one.code,
                "own": int(own.sum()),
                "share": one.share,
                "level": one.level,
                "rim": one.slopes[-1],
                "own_in_core": one.own_in_core,
                "clumped": clumped(scaled, one.inside, own),
                "weights": np.where(one.foreign, 0.0, 1.0),
            }


def memory(model: Any, X: np.ndarray, codes: np.ndarray, classes: np.ndarray) -> Iterator[dict[str, Any]]:
    """What the model learns by heart; if that is much, also the patterns that were once thought too loose to record."""
    folds = deal_folds(codes, 4, np.random.default_rng(0))
    held = held_out(model, X, codes, classes, folds, ask_again=True)
    yield {"kind": "memory", "memorised": held.memorised(codes), "weights": None}
    if held.memorised(codes) >= MEMORISES:
        found = lost_labels(held.shares, neighbor_shares(X, codes, len(classes), 30), one_scale(X), codes)
        tried = [row for row in found if row["own_in_core"] > ONCE_LOOSE]
        yield from checked(tried, model, X, codes, classes, folds, held.predicted)


def checked(
    tried: list[dict[str, Any]],
    model: Any,
    X: np.ndarray,
    codes: np.ndarray,
    classes: np.ndarray,
    folds: Any,
    plain: Any,
) -> Iterator[dict[str, Any]]:
    """The treatments with what the check says of each."""
    ones = np.ones(len(codes))
    for row in tried:
        mended = held_out(model, X, codes, classes, folds, row["weights"]).predicted
        told = compare(plain, mended, codes, ones)
        row["foreign"] = int((row["weights"] != 1).sum())
        row["check"], row["check_errors"] = told.accuracy[1] - told.accuracy[0], told.accuracy_errors
        row["check_recall"], row["recall_errors"] = told.recall_rise, told.recall_errors
        yield row


def cleanlab_weights(model: Any, shares: np.ndarray, codes: np.ndarray) -> np.ndarray | None:
    """What CleanLearning would train with, given these probabilities; None where it cannot be asked."""
    from cleanlab.classification import CleanLearning

    if not hasattr(model, "predict_proba"):
        shares = calibrated(shares, codes)
    learner = CleanLearning(Remembers(), seed=0, find_label_issues_kwargs={"n_jobs": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            learner.fit(np.arange(len(codes))[:, None], codes, pred_probs=shares)
        except ValueError:
            return None
    weights = np.zeros(len(codes))
    weights[learner.clf.rows_] = learner.clf.weights_
    return weights


class Remembers:
    """A classifier that only remembers which rows it was given, and their weights."""

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: Any = None) -> Remembers:
        """Remember."""
        self.rows_ = X[:, 0]
        self.weights_ = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Nothing is asked of it."""
        raise NotImplementedError

    predict_proba = predict


def calibrated(shares: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """A sigmoid per class on held-out decision values, as CalibratedClassifierCV(ensemble=False) has."""
    found = np.zeros_like(shares)
    values = logit(np.clip(shares, 1e-9, 1 - 1e-9))
    for code in np.unique(codes):
        column = values[:, [code]]
        found[:, code] = LogisticRegression(C=1e3).fit(column, codes == code).predict_proba(column)[:, 1]
    return found / found.sum(axis=1, keepdims=True)


def cell(model: Any, data: Any, y: np.ndarray, every: bool, only: str = "") -> list[dict[str, Any]]:
    """Test scores of the plain model, of cleanlab and of each treatment that could pass (or of all)."""
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        return []
    rows: list[dict[str, Any]] = []
    given = (model, data.X_train, codes, classes)
    for row in memory(*given) if only == "memory" else treatments(*given, every):
        weights = row.pop("weights")
        started = time.perf_counter()
        if row["kind"] == "memory":
            rows.append(row)
        elif weights is None:  # cleanlab gives up: the plain model
            rows.append(rows[0] | row)
        elif every or "check" not in row or promising(row):
            kept = weights > 0
            fitted = fit_weighted(clone(model), data.X_train[kept], y[kept], weights[kept])
            rows.append(row | scores(fitted.predict(data.X_test), data.y_test, started))
        else:
            rows.append(row)
    return rows


def promising(row: dict[str, Any]) -> bool:
    """Whether some rule of the grid could accept a treatment."""
    if row["kind"] == "one-way":
        return row["check_recall"] >= LOOSE_RISE
    return max(row["check_errors"], row["recall_errors"]) >= LOOSE_ERRORS


def scores(predicted: np.ndarray, truth: np.ndarray, started: float) -> dict[str, float]:
    """Accuracy, balanced accuracy and seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        balanced = balanced_accuracy_score(truth, predicted)
    spent = time.perf_counter() - started
    return {"accuracy": (predicted == truth).mean(), "balanced": balanced, "seconds": round(spent, 4)}


def floral_cell(data: Any, y: np.ndarray, seed: int) -> list[dict[str, Any]]:
    """Test scores of FloralClassifier as it comes."""
    from floral_learn import FloralClassifier

    started = time.perf_counter()
    fitted = FloralClassifier(random_state=seed).fit(data.X_train, y)
    return [{"kind": "floral"} | scores(fitted.predict(data.X_test), data.y_test, started)]


def run_task(
    folder: Path,
    models: list[str],
    stage: str,
    name: str,
    split: int,
    rows: int,
    end: float,
    making: Making,
    only: str = "",
) -> str:
    """Run what is missing of one data set and split, until `end` (time.time()); each file of rows has its note."""
    started, count = time.time(), 0
    notes: dict[Path, Making] = {}
    slow = {attack for names in STAGES.values() for attack in names}
    attacks: list[Any] = [a for a in arena_attacks(name) if a.name in STAGES.get(stage, ())]
    if stage in ("cheap", "all"):
        attacks = [None, *(a for a in arena_attacks(name) if stage == "all" or a.name not in slow)]
    models = [model for model in models if (model, name) not in TOO_SLOW]
    if not attacks or not models or started > end:
        return ""
    data = load_arena(name, split, n_train=rows)
    for attack in attacks:
        if attack is None:
            found: Any = [("clean", 0, data.y_train_clean)]
        else:
            found = labels_of(folder, name, split, attack, rows)
        for title, level, y in found:
            for model in models:
                path = folder / "rows" / f"{model}.{only}{stage}.{name}.{split}.{rows}.csv"
                if time.time() > end:
                    return f"{models} {stage} {name} {split}: out of time"
                if (title, level) not in finished(path):
                    count += 1
                    cell_started = time.perf_counter()
                    every = split == 1 and model in FAST
                    if model == "floral":
                        new = floral_cell(data, y, split)
                    else:
                        new = cell(MODELS[model], data, y, every, only)
                    where = {"model": "svc" if model == "floral" else model, "data": name, "fold": ARENA_FOLDS[name]}
                    where |= {"split": split, "attack": title, "level_": level, "n": len(y)}
                    append(path, [where | row for row in new])
                    note = notes.setdefault(path, making.beside(path))
                    note.add(time.perf_counter() - cell_started)
    return f"{'+'.join(models)} {stage} {name} {split}: {count} cells, {time.time() - started:.1f} s"


def finished(path: Path) -> set[tuple[str, int]]:
    """The cells that a file has."""
    if not path.exists():
        return set()
    with path.open(newline="") as stream:
        return {(row["attack"], int(row["level_"])) for row in csv.DictReader(stream)}


def append(path: Path, rows: list[dict[str, Any]]) -> None:
    """Add the rows of a cell in one write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS)
    if not path.exists():
        writer.writeheader()
    for row in rows:
        line = {key: row.get(key, "") for key in FIELDS}
        writer.writerow({k: round(v, 6) if isinstance(v, float) else v for k, v in line.items()})
    with path.open("a", newline="") as stream:
        stream.write(text.getvalue())


def plan_tasks(plan: str) -> Iterator[tuple[list[str], str, str, int]]:
    """The tasks of ``models:stage:splits``; split by split, so that an early end leaves whole splits."""
    models, stage, splits = plan.split(":")
    first, _, last = splits.partition("-")
    for split in range(int(first), int(last or first) + 1):
        for name in ARENA:
            yield models.split("+"), stage, name, split


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plan", action="append", required=True, metavar="MODELS:STAGE:SPLITS")
    parser.add_argument("--rows", type=int, default=1000, help="most training rows")
    parser.add_argument("--data", default=",".join(ARENA), help="names of data sets, separated by commas")
    parser.add_argument("--only", default="", choices=("", "memory"), help="only what a model learns by heart")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="start no cell after this")
    parser.add_argument("--trial", action="store_true", help="run a tree with local changes, for a look")
    given = parser.parse_args()
    making = begin(trial=given.trial)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    end, started = time.time() + given.seconds, time.time()
    tasks = [task for plan in given.plan for task in plan_tasks(plan) if task[2] in given.data.split(",")]
    with ProcessPoolExecutor(given.processes) as pool:
        waiting = [pool.submit(run_task, given.folder, *task, given.rows, end, making, given.only) for task in tasks]
        for task, done in zip(tasks, waiting, strict=True):
            try:
                told = done.result()
            except Exception as error:  # one broken cell must not end the others
                told = f"{task}: {type(error).__name__}: {error}"
            if told:
                print(f"{time.time() - started:6.0f} s  {told}", flush=True)


if __name__ == "__main__":
    main()
