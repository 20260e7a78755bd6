"""IMDB with a few answers: TextReview on reviews whose labels the gradient attack poisoned.

    FLORAL_DATA=folder python benchmarks/imdb_answers.py --device cuda --jobs 3 --out runs     # into answers.jsonl

One cell is a draw of 20,000 reviews at one level of poison. `TextReview` fine-tunes an encoder for one epoch on the
poisoned labels, asks on its embeddings and scores, and the true labels are the answers. After the numbers of answers
that --fitted names `fit()` makes a classifier, which is scored on 25,000 reviews. It may be killed at any moment: cells
that are complete in the file are not run again. With --store, poisoned labels and the accuracies of MiniLM on given
and clean labels come from the store of the IMDB suite (imdb_gpu.py) of the same draws, as far as it has them.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import multiprocessing
import os
import sys
import time
import traceback
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import numpy as np

STARTED = time.monotonic()
ANSWERS = (10, 20, 50, 100)
EXPLORED = 9  # the draw on which settings were compared
LEVELS = (30, 40, 25, 35)


@dataclass(frozen=True)
class Task:
    """One cell: a draw and a level, and the numbers of answers after which a classifier is fitted."""

    seed: int
    level: float
    fitted: tuple[int, ...] = (100,)

    @property
    def name(self) -> str:
        return f"{self.seed}/{self.level:g}/{','.join(map(str, self.fitted)) or 'plain'}"


class OutOfTime(Exception):
    """The limit is near."""


class Cell:
    """Runs a task and writes a line per measurement."""

    def __init__(self, task: Task, given: argparse.Namespace) -> None:
        self.task, self.given = task, given
        self.began = time.monotonic()

    def note(self, **values) -> None:
        line = {
            "commit": self.given.commit,
            "draw": self.task.seed,
            "level": self.task.level,
            **{k: round(v, 5) if isinstance(v, float) else v for k, v in values.items()},
            "seconds": round(time.monotonic() - self.began, 1),
        }
        with open(self.given.out / "answers.jsonl", "a") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            stream.write(json.dumps(line) + "\n")
        print(f"{time.monotonic() - self.given.started:6.0f} s {line}", flush=True)

    def in_time(self, needed: float = 45.0) -> None:
        if self.given.limit and time.monotonic() - self.given.started > self.given.limit - needed:
            raise OutOfTime

    def run(self) -> None:
        from sklearn.base import clone

        from floral_bench.families.text_data import draw_of, max_length_of, source_of
        from floral_learn import TextReview
        from floral_learn.neural.text import TextClassifier

        task = self.task
        data = data_of(task.seed, self.given)
        draw = draw_of(data)
        y = draw.y_train
        given, plain = self.poisoned(data, y)
        encoder = TextClassifier(
            source_of(data),
            epochs=int(dict(data.params).get("epochs", 3)),
            max_length=max_length_of(data),
            pooling="first",
            device=self.given.device,
            random_state=task.seed,
        )

        def accuracy(model) -> float:
            return float((model.predict(draw.test) == draw.y_test).mean())

        if "given labels" not in plain and (self.given.plain or self.given.store is None):
            plain["given labels"] = accuracy(clone(encoder).fit(draw.train, given))
        for kind, value in plain.items():
            self.note(kind=kind, accuracy=value)
        if self.given.plain:
            self.note(kind="done", task=task.name)
            return
        self.in_time()
        began = time.monotonic()
        review = TextReview(draw.train, given, encoder=encoder, random_state=task.seed)
        self.note(kind="set up", took=time.monotonic() - began, asked_encoder=accuracy(review.fitted_encoder))
        for goal in sorted({*ANSWERS, *task.fitted}):
            if goal > max(task.fitted):
                break
            began = time.monotonic()
            while (have := len(review.history)) < goal:
                rows = review.ask(min(1 if have < 20 else 5, goal - have))
                review.answer(rows, y[rows])
            wrong = float((review.labels != y).mean())
            self.note(kind="read", answers=goal, wrong=wrong, asking=time.monotonic() - began)
            if goal in task.fitted:
                self.in_time(30.0)
                began = time.monotonic()
                model = review.train()
                took = time.monotonic() - began
                self.note(kind="answers", answers=goal, wrong=wrong, accuracy=accuracy(model), fitting=took)
        self.note(kind="done", task=task.name)

    def poisoned(self, data, y: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
        """Poisoned labels, and the accuracies of the network on clean and given labels as far as they are known."""
        from floral_bench.families.text_encode import encode
        from floral_bench.families.text_heads import gradient_labels
        from floral_bench.spec import Attack

        task, attack = self.task, Attack("gradient")
        if self.given.store is not None:
            return from_store(self.given.store, data, y, task.seed, task.level, attack)
        with open(self.given.out / f"clean-{task.seed}.lock", "w") as lock:  # one process makes the clean encoder
            fcntl.flock(lock, fcntl.LOCK_EX)
            clean = encode(data, y, task.seed, self.given.device)
        plain = {"clean labels": float(clean.accuracy[-1])}
        if not task.level:
            return y, plain | {"given labels": plain["clean labels"]}
        given = gradient_labels(data, attack, [task.level], task.seed, self.given.device, lambda share: None)[0]
        return given, plain


def from_store(path: Path, data, y: np.ndarray, seed: int, level: float, attack) -> tuple[np.ndarray, dict[str, float]]:
    """What the suite's store knows of a draw and level."""
    from floral_bench.spec import attack_cell
    from floral_bench.store import Store
    from floral_bench.suites import SUITES

    with Store(path, read_only=True) as store:
        labels = y if not level else store.trace(attack_cell(data, attack, level, seed), "labels")
        if labels is None:
            raise ValueError(f"{path} has no labels of draw {seed} at {level:g} %")
        plain = {}
        for kind, at in (("clean labels", 0), ("given labels", level)):
            own = [c for c in SUITES["imdb"].cells() if (c.method.name, c.seed, c.level) == ("minilm", seed, at)]
            for _, statistic, metric, value in store.rows(replace(own[0], data=data)):
                if (statistic, metric) == ("last", "accuracy"):
                    plain[kind] = float(value)
    return labels.astype(np.intp), plain


def data_of(seed: int, given: argparse.Namespace):
    """The IMDB suite's data of a draw."""
    from floral_bench.adapt_suite import adapt
    from floral_bench.spec import Data, params
    from floral_bench.suites import SUITES

    base = adapt(SUITES["imdb"], reps=1).data[0]
    sizes = {} if given.rows is None else {"n_train": given.rows, "n_val": 10, "n_test": given.rows}
    if given.epochs is not None:
        sizes["epochs"] = given.epochs
    if given.max_length is not None:
        sizes["max_length"] = given.max_length
    return Data(base.name, params(**(dict(base.params) | sizes | {"seed": seed})))


def work(tasks, given: argparse.Namespace) -> None:
    """Take tasks until there are none."""
    warnings.filterwarnings("ignore", message="eta = ")
    making = given.making.beside(given.out / "answers.jsonl")
    while (task := tasks.get()) is not None:
        cell = Cell(task, given)
        try:
            cell.in_time(30.0 if given.plain else 50.0)
            cell.run()
            making.add(time.monotonic() - cell.began)
        except OutOfTime:
            print(f"{task.name}: no time left", flush=True)
        except Exception:
            traceback.print_exc()
            sys.stderr.flush()


def lines_of(path: Path) -> list[dict]:
    """Measurements so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--levels", type=float, nargs="+", default=list(LEVELS))
    parser.add_argument("--fitted", type=int, nargs="+", default=[100], help="answers after which to fit")
    parser.add_argument("--plain", action="store_true", help="measure MiniLM on given labels alone, without answers")
    parser.add_argument("--jobs", type=int, default=1, help="processes; they share one GPU")
    parser.add_argument("--device", default=None)
    parser.add_argument("--store", type=Path, default=None, help="store.sqlite of the IMDB suite")
    parser.add_argument("--model", default=None, help="folder of the encoder; without it the installed MiniLM")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--limit", type=float, default=0.0, help="seconds after which nothing new is begun")
    parser.add_argument("--rows", type=int, default=None, help="training and test rows, for a trial")
    parser.add_argument("--epochs", type=int, default=None, help="for a trial")
    parser.add_argument("--max-length", type=int, default=None, help="for a trial")
    return parser.parse_args()


def main() -> None:
    given = options()
    given.started = STARTED
    given.out.mkdir(parents=True, exist_ok=True)
    if given.model is not None:
        os.environ["FLORAL_TEXT_MODEL"] = str(Path(given.model).resolve())
    os.environ.setdefault("FLORAL_WORK", str((given.out / "work").resolve()))
    from floral_bench.reporting.making import begin

    trial = any(v is not None for v in (given.rows, given.epochs, given.max_length))
    given.making = begin(trial=trial, device=given.device)
    given.commit = given.making.environment.get("commit", "")
    levels = [int(level) if level == int(level) else level for level in given.levels]
    fitted = () if given.plain else tuple(given.fitted)
    wanted = [Task(seed, level, fitted) for level in levels for seed in given.draws]
    known = {line.get("task") for line in lines_of(given.out / "answers.jsonl") if line["kind"] == "done"}
    context = multiprocessing.get_context("spawn")
    tasks = context.Queue()
    for task in [task for task in wanted if task.name not in known] + [None] * given.jobs:
        tasks.put(task)
    workers = [context.Process(target=work, args=(tasks, given)) for _ in range(given.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
