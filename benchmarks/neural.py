"""FLORAL as the head of a language model: how long, and do the fast ways give the same predictions?

    python benchmarks/neural.py                                # synthetic embeddings
    python benchmarks/neural.py --encoder clean                # the IMDB suite's own, from its work folder
    python benchmarks/neural.py --encoder clean --heads        # and every head of the IMDB suite on the CPU

Prints one line per item: the dense game of 20,000 rows and 1,000 rounds on the GPU, the same game by low rank on the
CPU, the share of test rows on which the two agree, and a sweep of ten games on the GPU. Without CUDA those parts are
skipped with a line; ``--dense-cpu`` then plays the dense game on the CPU, to compare with (minutes).
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import numpy as np

from floral_learn.datasets import Dataset
from floral_learn.floral.classifier import FloralClassifier
from floral_learn.floral.engine import Engine
from floral_learn.game.arrays import backend_for
from floral_learn.game.attackers import RandomizedTopK
from floral_learn.game.game import Game, solve, step_schedule
from floral_learn.game.gram import DenseGram
from floral_learn.game.kernels import Kernel

C, GAMMA, ROUNDS, LEVEL = 10.0, 0.005, 1000, 0.25
SWEEP = ((250, 0), (1250, 0), (2500, 0), (6250, 0), (250, 1), (1250, 1), (2500, 1), (6250, 1), (500, 0), (5000, 0))


def synthetic(n: int, m: int, width: int = 384) -> Dataset:
    """Rows like a fine-tuned encoder's: two clusters along one direction, a falling spectrum around them.

    A quarter of the training labels is flipped, the rows nearest to the other cluster first.
    """
    rng = np.random.default_rng(0)
    y = rng.choice([-1, 1], size=n + m)
    basis = np.linalg.qr(rng.normal(size=(width, width)))[0]
    spread = 1.5 / np.arange(1, width + 1) ** 0.6
    along = rng.normal(y * 4.0, 3.0)
    X = (rng.normal(size=(n + m, width)) * spread) @ basis.T + along[:, None] * basis[:, 0]
    given = y[:n].copy()
    given[np.argsort(y[:n] * along[:n])[: int(LEVEL * n)]] *= -1
    X = X.astype(np.float32)
    none = X[:0], y[:0]
    return Dataset("imdb", X[:n], given, *none, X[n:], y[n:], y[:n])


def embedded(encoder: str) -> Dataset:
    """The first draw's embeddings at 25 % poison, by the encoder tuned on clean labels or on those."""
    from floral_bench.families.text_data import draw_of
    from floral_bench.families.text_encode import encode
    from floral_bench.families.text_heads import gradient_labels
    from floral_bench.suites import SUITES

    suite = SUITES["imdb"]
    data, seed = suite.data[0], suite.seeds[0]
    draw = draw_of(data)
    given = gradient_labels(data, suite.attacks[0], [100 * LEVEL], seed, None, lambda share: None)[0]
    made = encode(data, draw.y_train if encoder == "clean" else given, seed, None).dataset(draw)
    return replace(made, y_train=given, X_test=made.X_test[:20_000], y_test=made.y_test[:20_000])


def timed(action):
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def classifier(**how) -> FloralClassifier:
    budget = 0.25  # B; k is half of it, 2,500 of 20,000 rows
    engine = Engine(dtype="float32", max_memory="8GB", **how)
    return FloralClassifier(C=C, gamma=GAMMA, budget=budget, n_rounds=ROUNDS, engine=engine, random_state=0)


def say(item: str, seconds: float | None, limit: float | None, more: str = "") -> None:
    took = "-" if seconds is None else f"{seconds:.2f} s"
    against = "" if limit is None else f"(limit {limit:g} s)"
    print(f"| {item} | {took} {against} | {more} |", flush=True)


def sweep(data: Dataset, device: str) -> None:
    """Ten games on one dense Gram, Gram included."""
    backend = backend_for(device)
    gram = DenseGram.from_rows(data.X_train, Kernel("rbf", GAMMA), "float32", backend)
    step = 1.0 / gram.lambda_max(30, 1e-3, centred=True)
    flips = np.minimum([k for k, _ in SWEEP], gram.n // 3)
    game = Game(
        gram,
        np.repeat((data.y_train > 0).astype(int)[:, None], len(SWEEP), axis=1),
        np.full((gram.n, 1), C),
        step_schedule(step, ROUNDS),
        RandomizedTopK(2 * flips[:, None], flips),
        seeds=np.array([seed for _, seed in SWEEP]),
    )
    backend.numpy(solve(game).state.dual)


def has_cuda() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def speed(data: Dataset, dense_cpu: bool) -> None:
    low, seconds = timed(lambda: classifier(gram="low_rank").fit(data.X_train, data.y_train))
    guess, asking = timed(lambda: low.predict(data.X_test))
    hit = (guess == data.y_test).mean()
    more = f"{low.gram_}; accuracy {hit:.4f}; {len(guess):,} predictions in {asking:.2f} s"
    say(f"CPU, low rank, n = {len(data.y_train):,}, T = {ROUNDS:,}", seconds, 60, more)
    if has_cuda():
        classifier(gram="dense", device="cuda").set_params(n_rounds=30).fit(data.X_train, data.y_train)  # compiles
        dense, seconds = timed(lambda: classifier(gram="dense", device="cuda").fit(data.X_train, data.y_train))
        same = (dense.predict(data.X_test) == guess).mean()
        hit = dense.score(data.X_test, data.y_test)
        say("GPU, dense, the same game", seconds, 3, f"{dense.gram_}; accuracy {hit:.4f}; agree on {100 * same:.2f} %")
        sweep(data, "cuda")
        _, seconds = timed(lambda: sweep(data, "cuda"))
        say("GPU, dense, sweep of ten games", seconds, 6, "Gram included")
    else:
        say("GPU, dense, the same game", None, 3, "skipped: torch sees no CUDA device")
        say("GPU, dense, sweep of ten games", None, 6, "skipped: torch sees no CUDA device")
    if dense_cpu:
        dense, seconds = timed(lambda: classifier(gram="dense").fit(data.X_train, data.y_train))
        same = (dense.predict(data.X_test) == guess).mean()
        hit = dense.score(data.X_test, data.y_test)
        say("CPU, dense, the same game", seconds, None, f"accuracy {hit:.4f}; agree on {100 * same:.2f} %")


def heads(data: Dataset, encoder: str) -> None:
    """All cells of the IMDB suite at 25 % on this encoder: the paper's grids and the fixed configurations."""
    from floral_bench.families.games import configurations, run_games
    from floral_bench.families.sanitise import prepare
    from floral_bench.families.single_fits import run_fits
    from floral_bench.suites import SUITES

    suite = SUITES["imdb"]
    suite = replace(suite, data=suite.data[:1], seeds=suite.seeds[:1], levels=(25,))
    mine = [c for c in suite.cells() if dict(c.method.params).get("encoder") == encoder]
    mine = [c for c in mine if not dict(c.method.params).get("matched")]  # equal to the listed setting at 25 %
    games = [c for c in mine if c.grid is not None]
    for cell in games:
        if cell.method.name in ("curie", "ls-svm", "k-lid"):
            _, seconds = timed(lambda cell=cell: prepare(cell, data, data.y_train))
            say(f"sanitiser of {cell.method.title}", seconds, None, "included in the next line")
    columns = sum(len(configurations(c, len(data.y_train))) for c in games)
    done, seconds = timed(lambda: run_games(games, [data.y_train] * len(games), data))
    say(
        f"{columns} games of {ROUNDS:,} rounds, {encoder} encoder",
        seconds,
        None,
        f"{len(games)} methods, scored a round",
    )
    for result in done:
        if result.error is not None:
            say(result.cell.method.title, None, None, result.error)
            continue
        last = max(value for _, statistic, metric, value in result.rows if (statistic, metric) == ("last", "accuracy"))
        say(result.cell.method.title, None, None, f"last, best of its grid: {last:.4f}")
    for cell in (c for c in mine if c.grid is None):
        (result,) = run_fits([cell], [data.y_train], data)
        found = {metric: value for _, _, metric, value in result.rows}
        say(cell.method.title, result.seconds, None, result.error or f"accuracy {found['accuracy']:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", choices=("clean", "own"), default=None, help="IMDB's embeddings by this encoder")
    parser.add_argument("--heads", action="store_true", help="also every head of the suite, on the CPU")
    parser.add_argument("--dense-cpu", action="store_true", help="also the dense game on the CPU")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of the synthetic embeddings")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", message="eta = ")
    if given.encoder is None:
        data, what = synthetic(given.rows, given.rows), "synthetic embeddings"
    else:
        data, what = embedded(given.encoder), f"IMDB, {given.encoder} encoder, 25 % poisoned"
    print(f"{what}: {data.X_train.shape[0]:,} x {data.X_train.shape[1]}, {len(data.y_test):,} test rows\n")
    print("| item | seconds | |\n|---|---|---|")
    speed(data, given.dense_cpu)
    if given.heads and given.encoder:
        heads(data, given.encoder)


if __name__ == "__main__":
    main()
