"""Which encoder gives the paper's pattern on IMDB at 40 % poison: heads at 0.86, the same in their best and last round?

    FLORAL_DATA=folder python benchmarks/imdb_encoders.py --device cuda --out runs      # rows into encoders.jsonl
    ... imdb_encoders.py --draws 2 3 --levels 40 30 25 35 --only "rate 1e-5" --looks 3  # one of them, third epoch alone

MiniLM is fine-tuned on the poisoned labels (or clean ones, or not at all) with several learning rates, with lower
layers frozen, and its embeddings are taken after every epoch; the SVM, FLORAL and LS-SVM of the suite, with the paper's
grid, are trained on each. Encoders that are complete in the file are not made again.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import numpy as np

STARTED = time.monotonic()
HEADS = ("svm, own encoder", "floral, own encoder", "ls-svm, own encoder")


@dataclass(frozen=True)
class Encoder:
    """One way to make embeddings; its epochs are looked at one by one."""

    name: str
    labels: str = "poisoned"  # or "clean", or "none": the pre-trained network
    learning_rate: float = 5e-5
    epochs: int = 3
    frozen: int = 0  # layers from below that keep their weights, the token embeddings with them
    pooling: str = "first"


ENCODERS = (
    Encoder("learning rate 5e-5 (the suite's)"),
    Encoder("learning rate 2e-5 (the paper's, for RoBERTa)", learning_rate=2e-5),
    Encoder("one epoch alone", epochs=1),
    Encoder("not fine-tuned, first token", "none", pooling="first"),
    Encoder("not fine-tuned, mean over tokens", "none", pooling="mean"),
    Encoder("lower four layers frozen", frozen=4),
    Encoder("learning rate 1e-5", learning_rate=1e-5),
    Encoder("clean labels", "clean"),
    Encoder("lower four layers frozen, learning rate 2e-5", frozen=4, learning_rate=2e-5),
    Encoder("learning rate 5e-5, mean over tokens", pooling="mean"),
)


class Bench:
    """A draw, its poisoned labels, and lines written as they come."""

    def __init__(self, given: argparse.Namespace, number: int, level: float) -> None:
        from imdb_answers import data_of, from_store

        from floral_bench.families.text_data import draw_of
        from floral_bench.families.text_heads import gradient_labels
        from floral_bench.spec import Attack

        self.given, self.data, self.seed, self.level = given, data_of(number, given), number, level
        self.draw = draw_of(self.data)
        attack = Attack("gradient")
        if given.store is not None:
            self.poisoned = from_store(given.store, self.data, self.draw.y_train, number, level, attack)[0]
        else:
            with open(given.out / f"clean-{number}.lock", "w") as lock:  # one process makes the clean encoder
                fcntl.flock(lock, fcntl.LOCK_EX)
                found = gradient_labels(self.data, attack, [level], number, given.device, lambda share: None)
            self.poisoned = found[0]
        self.path = given.out / "encoders.jsonl"

    def known(self) -> set[str]:
        if not self.path.is_file():
            return set()
        lines = [json.loads(line) for line in self.path.read_text().splitlines()]
        mine = (self.seed, self.level, self.given.looks)
        return {e["encoder"] for e in lines if e["head"] == "done" and (e["draw"], e["level"], e.get("looks")) == mine}

    def note(self, encoder: Encoder, **values) -> None:
        line = {"commit": self.given.commit, "draw": self.seed, "level": self.level, "encoder": encoder.name, **values}
        line |= {k: round(v, 5) for k, v in line.items() if isinstance(v, float)}
        with open(self.path, "a") as stream:
            stream.write(json.dumps(line) + "\n")
        print(f"{time.monotonic() - STARTED:6.0f} s {line}", flush=True)

    def in_time(self) -> bool:
        return not self.given.limit or time.monotonic() - STARTED < self.given.limit - 25

    def make(self, encoder: Encoder) -> None:
        """Fine-tune, and train the heads after each epoch."""
        from floral_bench.families.text_data import max_length_of, source_of
        from floral_learn.neural.text_network import load_network
        from floral_learn.neural.text_training import TrainingSettings, fine_tune, forward

        seed = self.seed
        network = load_network(
            source_of(self.data), self.given.device, max_length_of(self.data), n_classes=2, seed=seed
        )

        def look(epoch: int) -> bool:
            pooling, wanted = encoder.pooling, self.given.looks
            if wanted and epoch and epoch not in wanted:
                return not self.in_time()
            train = forward(network.model, self.draw.train, network.device, True, pooling)[1]
            scores, test = forward(network.model, self.draw.test, network.device, True, pooling)
            own = float(((scores[:, 1] > scores[:, 0]) == (self.draw.y_test > 0)).mean())
            self.heads(encoder, epoch, own, train, test)
            return (bool(wanted) and epoch >= max(wanted)) or not self.in_time()

        if encoder.labels == "none":
            network.model.eval()
            look(0)
        else:
            if encoder.frozen:
                freeze(network.model, encoder.frozen)
            labels = self.poisoned if encoder.labels == "poisoned" else self.draw.y_train
            epochs = encoder.epochs if self.given.epochs is None else min(self.given.epochs, encoder.epochs)
            settings = TrainingSettings(epochs, encoder.learning_rate, 0.01, 32, seed)
            codes = (labels > 0).astype(np.int64)
            fine_tune(network.model, self.draw.train, codes, settings, network.device, lambda epoch, loss: look(epoch))
        if self.in_time():
            self.note(encoder, head="done", looks=self.given.looks)

    def heads(self, encoder: Encoder, epoch: int, own: float, train: np.ndarray, test: np.ndarray) -> None:
        from floral_bench.families.games import run_games
        from floral_bench.suites import SUITES
        from floral_learn.datasets import Dataset
        from floral_learn.labels.neighbours import neighbours_on

        suite, draw = SUITES["imdb"], self.draw
        grid = replace(suite.grid, more_etas=(), rounds=self.given.rounds)
        cells = [
            replace(c, grid=grid)
            for c in suite.cells()
            if c.level == self.level and c.seed == suite.seeds[0] and c.method.title in HEADS
        ]
        empty = np.empty((0, train.shape[1]), np.float32)
        rows = Dataset("imdb", train, draw.y_train, empty, draw.y_train[:0], test, draw.y_test, draw.y_train)
        with neighbours_on("cuda" if self.given.device == "cuda" else None):
            results = run_games(cells, [self.poisoned] * len(cells), rows, device=self.given.device, traced=())
        self.note(encoder, epoch=epoch, head="network", last=own)
        for result in results:
            found = {}
            for config, statistic, metric, value in result.rows:
                if metric == "accuracy" and statistic in ("best", "last"):
                    found[statistic] = max(found.get(statistic, (0.0, "")), (float(value), config))
            self.note(
                encoder,
                epoch=epoch,
                head=result.cell.method.name,
                error=result.error,
                **{s: value for s, (value, _) in found.items()},
                **{f"{s}_config": config for s, (_, config) in found.items()},
            )


def freeze(model, layers: int) -> None:
    """Token embeddings and the lower layers keep their weights."""
    base = model.base_model
    for part in (base.embeddings, *base.encoder.layer[:layers]):
        for parameter in part.parameters():
            parameter.requires_grad_(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, nargs="+", default=[1])
    parser.add_argument("--levels", type=int, nargs="+", default=[40])
    parser.add_argument("--only", nargs="+", default=None, help="words; encoders whose name has one of them")
    parser.add_argument(
        "--looks", type=int, nargs="+", default=None, help="epochs of the schedule to look at; else all"
    )
    parser.add_argument("--store", type=Path, default=None, help="store.sqlite of the IMDB suite, for poisoned labels")
    parser.add_argument("--device", default=None)
    parser.add_argument("--model", default=None, help="folder of the encoder; without it the installed MiniLM")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--limit", type=float, default=0.0, help="seconds after which nothing new is begun")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=None, help="training and test rows, for a trial")
    parser.add_argument("--epochs", type=int, default=None, help="for a trial")
    parser.add_argument("--max-length", type=int, default=None, help="for a trial")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.model is not None:
        os.environ["FLORAL_TEXT_MODEL"] = str(Path(given.model).resolve())
    os.environ.setdefault("FLORAL_WORK", str((given.out / "work").resolve()))
    warnings.filterwarnings("ignore", message="eta = ")
    from floral_bench.reporting.making import begin

    trial = any(v is not None for v in (given.rows, given.epochs, given.max_length))
    making = begin(trial=trial, device=given.device)
    given.commit = making.environment.get("commit", "")
    making = making.beside(given.out / "encoders.jsonl")
    wanted = [e for e in ENCODERS if given.only is None or any(word in e.name for word in given.only)]
    if not wanted:
        raise SystemExit(f"--only {' '.join(given.only)} names none of: {'; '.join(e.name for e in ENCODERS)}")
    for level in given.levels:
        for number in given.draws:
            bench = Bench(given, number, level)
            for encoder in wanted:
                if encoder.name not in bench.known() and bench.in_time():
                    began = time.monotonic()
                    bench.make(encoder)
                    making.add(time.monotonic() - began)


if __name__ == "__main__":
    main()
