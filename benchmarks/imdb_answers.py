"""IMDB with a few answers: TextReview on reviews whose labels the gradient attack poisoned, turn by turn.

    FLORAL_DATA=folder python benchmarks/imdb_answers.py --device cuda --jobs 3 --out runs     # into answers.jsonl

One cell is a draw of 20,000 reviews at one level of poison. An encoder is fine-tuned for one epoch on the poisoned
labels, and questions are asked on its embeddings and scores and answered with the true labels. After the numbers of
answers that --fitted names a classifier is fine-tuned on the labels as they are read, and scored on 25,000 reviews. It
may be killed at any moment: cells that are complete in the file are not run again. Several commands may share a folder.
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
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import numpy as np

STARTED = time.monotonic()
ANSWERS = (10, 20, 50, 100)
TURNS = ()
EXPLORED = 9  # the draw on which settings were compared
LEVELS = (40, 30, 35, 25)


@dataclass(frozen=True)
class Task:
    """One cell: a draw, a level, how the encoder is asked, and what else is tried at its end."""

    seed: int
    level: float
    asking_epochs: int | None = 1
    answers: tuple[int, ...] = ANSWERS
    fitted: tuple[int, ...] = ANSWERS
    given: bool = True  # whether the network on the given labels is measured, too
    more: bool = False
    scored: bool = True

    @property
    def name(self) -> str:
        return f"{self.seed}/{self.level:g}/{self.asking_epochs}{'' if self.scored else '/rows'}"


FITS = {  # epochs of the final model, None being the encoder's own, and weights of the rows
    "as the library": (None, lambda review: review._text_weights()),
    "no weights": (None, lambda review: None),
    "2 epochs": (2, lambda review: review._text_weights()),
    "sure rows alone": (None, lambda review: (review.label_probability_.max(axis=1) > 0.9).astype(float)),
}


def final(review, encoder, name: str):
    """A model fitted on the labels as they are read now."""
    from sklearn.base import clone

    epochs, weights = FITS[name]
    model = clone(encoder) if epochs is None else clone(encoder).set_params(epochs=epochs)
    return model.fit(review.texts, review.labels_, sample_weight=weights(review))


class OutOfTime(Exception):
    """The limit is near."""


class Cell:
    """Runs a task and writes a line per measurement."""

    def __init__(self, task: Task, given: argparse.Namespace) -> None:
        self.task, self.given = task, given
        self.began = time.monotonic()
        self.pace = 12.0  # seconds of a fine-tune

    def note(self, **values) -> None:
        line = {
            "draw": self.task.seed,
            "level": self.task.level,
            "asking_epochs": self.task.asking_epochs,
            "scored": self.task.scored,
            **{k: round(v, 5) if isinstance(v, float) else v for k, v in values.items()},
            "seconds": round(time.monotonic() - self.began, 1),
        }
        with open(self.given.out / "answers.jsonl", "a") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            stream.write(json.dumps(line) + "\n")
        print(f"{time.monotonic() - self.given.started:6.0f} s {line}", flush=True)

    def in_time(self, needed: float | None = None) -> None:
        needed = 1.3 * self.pace + 3.0 if needed is None else needed
        if self.given.limit and time.monotonic() - self.given.started > self.given.limit - needed:
            raise OutOfTime

    def run(self) -> None:
        from sklearn.base import clone

        from floral_learn import TextReview

        class RowsAlone(TextReview):
            _scored = False

        from floral_learn.evaluation.families.text_data import draw_of, max_length_of, source_of
        from floral_learn.evaluation.families.text_encode import encode
        from floral_learn.evaluation.families.text_heads import gradient_labels
        from floral_learn.evaluation.spec import Attack
        from floral_learn.neural.text import TextClassifier

        task, device = self.task, self.given.device
        data = data_of(task.seed, self.given)
        draw = draw_of(data)
        y = draw.y_train
        with open(self.given.out / f"clean-{task.seed}.lock", "w") as lock:  # one process makes the clean encoder
            fcntl.flock(lock, fcntl.LOCK_EX)
            clean = encode(data, y, task.seed, device)
        given = gradient_labels(data, Attack("gradient"), [task.level], task.seed, device, lambda share: None)[0]
        self.in_time()
        self.note(kind="clean labels", accuracy=float(clean.accuracy[-1]), took=clean.seconds)
        encoder = TextClassifier(
            source_of(data),
            epochs=int(dict(data.params).get("epochs", 3)),
            max_length=max_length_of(data),
            pooling="first",
            device=device,
            random_state=task.seed,
        )

        def accuracy(model) -> float:
            return float((model.predict(draw.test) == draw.y_test).mean())

        if task.given and not any(
            row["kind"] == "given labels" and (row["draw"], row["level"]) == (task.seed, task.level)
            for row in lines_of(self.given.out / "answers.jsonl")
        ):
            began = time.monotonic()
            poisoned = clone(encoder).fit(draw.train, given)
            took = time.monotonic() - began
            wrong = float((given != y).mean())
            self.note(kind="given labels", answers=0, wrong=wrong, accuracy=accuracy(poisoned), took=took)
        self.in_time()
        began = time.monotonic()
        kind = TextReview if task.scored else RowsAlone
        review = kind(draw.train, given, encoder=encoder, asking_epochs=task.asking_epochs, random_state=task.seed)
        self.note(kind="set up", took=time.monotonic() - began, asked_encoder=accuracy(review.encoder_))
        if task.more:
            self.keep(review, y)
        for goal in task.answers:
            self.in_time()
            began = time.monotonic()
            while (have := len(review.history_)) < goal:
                rows = review.ask(min(1 if have < 20 else 5, goal - have))
                review.answer(rows, y[rows])
            asking = time.monotonic() - began
            before = float((review.labels_ != y).mean())
            if goal in TURNS:
                review.retrain()
                self.in_time(8.0)
            wrong = review.labels_ != y
            weight = review._text_weights()
            if goal not in task.fitted:
                self.note(kind="read", answers=goal, wrong=float(wrong.mean()), asking=asking)
                continue
            began = time.monotonic()
            done = accuracy(final(review, encoder, self.given.fit))
            self.note(kind="answers", answers=goal, wrong_before=before, wrong=float(wrong.mean()), accuracy=done,
                      fitting=time.monotonic() - began, asking=asking, turns=review.turns_,
                      wrong_weighted=float((wrong * weight).sum() / weight.sum()),
                      wrong_share=review.wrong_share_.estimate, light=float((weight < 1).mean()))  # fmt: skip
        if task.more:
            self.more(review, encoder, draw, accuracy)
        self.note(kind="done")

    def keep(self, review, y) -> None:
        """The first principal components of the embeddings, small enough to be carried home."""
        X = review._X - review._X.mean(axis=0)
        axes = np.linalg.eigh(X.T @ X)[1][:, ::-1][:, :32]
        folder = self.given.out / "export"
        folder.mkdir(exist_ok=True)
        np.savez_compressed(
            folder / f"asked-{self.task.name.replace('/', '-')}.npz",
            X=(X @ axes).astype(np.float16),
            axes=axes.astype(np.float32),
            scores=review.encoder_.decision_function(review.texts).astype(np.float32),
            given=review.given.astype(np.int8),
            y=y.astype(np.int8),
            all=float((X**2).sum()),
        )

    def more(self, review, encoder, draw, accuracy) -> None:
        """Other ways to fit on the labels as they are read with all answers."""
        for name in FITS:
            if name != self.given.fit:
                self.in_time()
                self.note(kind=f"fit: {name}", accuracy=accuracy(final(review, encoder, name)))
        self.in_time()
        review.retrain()
        wrong = review.labels_ != draw.y_train
        done = accuracy(final(review, encoder, self.given.fit))
        self.note(kind="one more turn", wrong=float(wrong.mean()), accuracy=done)


def data_of(seed: int, given: argparse.Namespace):
    """The IMDB suite's data of a draw."""
    from floral_learn.evaluation.adapt_suite import adapt
    from floral_learn.evaluation.spec import Data, params
    from floral_learn.evaluation.suites import SUITES

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
    while (task := tasks.get()) is not None:
        cell = Cell(task, given)
        try:
            (given.out / f"claim-{task.name.replace('/', '-')}").touch(exist_ok=False)  # others may share the folder
        except FileExistsError:
            continue
        try:
            cell.in_time(40.0)
            cell.run()
        except OutOfTime:
            print(f"{task.name}: no time left", flush=True)
        except Exception:
            traceback.print_exc()
            sys.stderr.flush()


def lines_of(path: Path) -> list[dict]:
    """Measurements so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def finished(path: Path) -> set[str]:
    """Tasks that the file holds whole."""
    lines = lines_of(path)
    return {
        Task(e["draw"], e["level"], e["asking_epochs"], scored=e.get("scored", True)).name
        for e in lines
        if e["kind"] == "done"
    }


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--known", type=float, nargs="+", default=[], help="levels whose given labels are not measured")
    parser.add_argument("--more", action="store_true", help="other ways to fit, and a second turn, on the first draw")
    parser.add_argument("--draws", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--levels", type=float, nargs="+", default=list(LEVELS))
    parser.add_argument("--answers", type=int, nargs="+", default=list(ANSWERS))
    parser.add_argument("--fitted", type=int, nargs="+", default=list(ANSWERS), help="answers after which to fit")
    parser.add_argument("--fit", choices=sorted(FITS), default="as the library", help="how the final model is fitted")
    parser.add_argument("--asking-epochs", type=int, nargs="+", default=[1], help="0 is as many as the encoder has")
    parser.add_argument("--jobs", type=int, default=1, help="processes; they share one GPU")
    parser.add_argument("--device", default=None)
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
    asking = [epochs or None for epochs in given.asking_epochs]
    levels = [int(level) if level == int(level) else level for level in given.levels]
    answers, fitted = tuple(given.answers), tuple(given.fitted)
    wanted = [
        Task(seed, level, epochs, answers, fitted, level not in given.known, given.more and seed == given.draws[0])
        for epochs in asking
        for level in levels
        for seed in given.draws
    ]
    known = finished(given.out / "answers.jsonl")
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
