"""How long a review takes: set-up, the next question, an answer, reading all labels; by number of rows.

    python benchmarks/review.py --rows 1000 10000 100000 1000000 --out docs/results/review-times.md

Rows with 20 features in two classes, one region turned over; the answers are right. Times are CPU seconds of one
thread, so that a busy machine does not count; the next question includes taking in the last answer.

Below it the page, started by `floral review` on a CSV of 100,000 rows with ten numbers, a category and a text: seconds
of the clock from the command to the first question, and from an answer to the next question, to a reviewer who reads
for two seconds and to one who answers at once.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlparse

import numpy as np
import pandas as pd

from floral_bench.reporting.making import begin
from floral_bench.reporting.tables import grid
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


def page(folder: Path, n: int = 100_000, answers: int = 10) -> str:
    """Start the page on a table of `n` rows and answer; returns a sentence with the times."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, n)
    frame = pd.DataFrame({f"x{i}": (rng.normal(size=n) + truth * (i < 3)).round(4) for i in range(10)})
    words = np.array(["good", "fine", "bad", "poor", "late", "fast", "slow", "kind", "rude", "cheap", "dear"])
    frame["note"] = [" ".join(line) for line in words[rng.integers(0, len(words), (n, 6))]]
    frame["kind"], frame["y"] = rng.choice(list("abcd"), n), np.where(truth, "yes", "no")
    frame.to_csv(folder / "big.csv", index=False)
    command = ["floral", "review", "big.csv", "--label", "y", "--text", "note", "--out", "review", "--no-browser"]
    started = time.monotonic()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        address = next(urlparse(found[0]) for line in running.stdout or () if (found := re.search(r"http://\S+", line)))

        def ask(method: str, path: str, body: object = None) -> dict:
            connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=120)
            heads = {"Origin": f"http://{address.netloc}", "Content-Type": "application/json"} if body else {}
            connection.request(method, f"{address.path}api/{path}", json.dumps(body) if body else None, heads)
            return json.loads(connection.getresponse().read())

        row = ask("GET", "question?reviewer=ann")["row"]
        first, waits = time.monotonic() - started, {2.0: [], 0.0: []}
        for number in range(2 * answers):
            reading = 2.0 if number < answers else 0.0
            time.sleep(reading)
            label = "yes" if truth[row] else "no"
            answer = {"reviewer": "ann", "request": f"request {number}", "row": row, "kind": "label", "label": label}
            answered = time.monotonic()
            ask("POST", "answer", {**answer, "seen": False})
            row = ask("GET", "question?reviewer=ann")["row"]
            waits[reading].append(time.monotonic() - answered)
        running.terminate()
    slow, fast = (f"{np.median(w):.2f} s (slowest {max(w):.2f})" for w in waits.values())
    return (
        f"The page on a CSV of {n:,} rows with ten numbers, a category and a text: first question {first:.1f} s "
        f"after the command; the next one {slow} after an answer that took two seconds to read, "
        f"{fast} after one given at once."
    )


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
    table = grid(names, ([f"{row['rows']:,}", *(f"{row[name]:.3f}" for name in names[1:])] for row in found), left=0)
    note = f"{run.heading()}; CPU seconds of one thread, {given.answers} answers."
    with tempfile.TemporaryDirectory() as folder:
        seen = page(Path(folder))
    small = (
        "The region is a corner of 20 columns in which 7 % of the labels are wrong: so few answers fall into it that "
        "it is not corrected, with a thousand rows or a million. How much comes back where regions are larger: "
        "[answers](answers.md)."
    )
    text = "\n".join(["# A review's times", "", note, "", table, "", small, "", seen, ""])
    print(text)
    if given.out is not None:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
