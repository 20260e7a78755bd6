"""How long a review takes: set-up, the next question, an answer, reading all labels; by number of rows.

    python benchmarks/review.py --rows 1000 10000 100000 1000000 --out docs/results/review-times.md

Rows with 20 features in two classes, one region turned over; the answers are right. Times are CPU seconds of one
thread, so that a busy machine does not count; the next question includes taking in the last answer.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

import numpy as np

from floral_bench.reporting.making import begin
from floral_learn import LabelReview


def data(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 20)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)
    return X, y, np.where((X[:, 2] > 1) & (y == 1), 0, y)


def measured(n: int, answers: int) -> dict[str, float]:
    X, y, given = data(n, np.random.default_rng(0))
    started = time.process_time()
    review = LabelReview(X, given, random_state=0)
    times: dict[str, float] = {"rows": n, "set-up": time.process_time() - started}
    asked = []
    for _ in range(answers):
        started = time.process_time()
        rows = review.ask(1)
        asked.append(time.process_time() - started)
        review.answer(rows, y[rows])
    times["next question, median"] = float(np.median(asked))
    times["next question, slowest"] = max(asked)
    started = time.process_time()
    labels = review.labels
    times["reading all labels"] = time.process_time() - started
    times["wrong as given"] = float((given != y).mean())
    times["wrong as read"] = float((labels != y).mean())
    times["peak memory (GB)"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--answers", type=int, default=50)
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    run = begin(trial=given.out is None)
    found = []
    for n in given.rows:
        found.append(measured(n, given.answers))
        print({k: round(v, 3) for k, v in found[-1].items()}, file=sys.stderr, flush=True)
    names = list(found[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---:|" * len(names)]
    for row in found:
        words = [f"{row['rows']:,}"] + [f"{row[name]:.3f}" for name in names[1:]]
        lines.append("| " + " | ".join(words) + " |")
    note = f"{run.heading()}; CPU seconds of one thread, {given.answers} answers."
    text = "\n".join(["# A review's times", "", note, "", *lines, ""])
    print(text)
    if given.out is not None:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
