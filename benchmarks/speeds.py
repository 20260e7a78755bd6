"""The six speeds that matter, as ratios to what everybody knows the speed of, in one run and on any machine.

    python benchmarks/speeds.py                                  prints the table
    python benchmarks/speeds.py --page docs/results/speeds.md    also writes the page

Seconds are of the processor (time.process_time), medians, with one thread: other programs on the machine change them
little, and the ratios less. `benchmarks/game.py`, `audit.py`, `attacks.py`, `defenses.py` and `scale.py` have the
details behind them.
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from floral_bench.reporting.making import begin
from floral_learn import CertifiedKernelClassifier, FloralClassifier, LabelReview, aggregate_votes, find_label_issues
from floral_learn.app.tables import read_table


def seconds(call, repeat):
    """Median processor time of a call, after one that is not counted."""
    call()
    times = []
    for _ in range(repeat):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return float(np.median(times))


def rows_of(n):
    """A table of two classes, twenty columns, one label in twenty wrong."""
    X, y = make_classification(n, 20, n_informative=8, flip_y=0.05, random_state=0)
    return StandardScaler().fit_transform(X), y


def votes_of(n, people=20):
    """Three votes per item, four of five right."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=n)
    said = np.where(rng.random((n, people)) < 0.8, truth[:, None], 1 - truth[:, None])
    return np.where(rng.random(said.shape) < 3 / people, said, -1)


def csv_file(folder, n):
    """A CSV file with numbers, a category and a text."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 8)).round(4), columns=[f"x{i}" for i in range(8)])
    frame["colour"], frame["y"] = rng.choice(["red", "green"], n), rng.choice(["no", "yes"], n)
    frame.to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def dawid_skene(votes):
    """The name and the call of crowd-kit's Dawid-Skene where it is installed, else of counting votes."""
    item, person = np.nonzero(votes >= 0)
    try:
        from crowdkit.aggregation import DawidSkene
    except ImportError:
        return "counting them (crowd-kit is not installed)", lambda: [(votes == c).sum(axis=1) for c in (0, 1)]
    frame = pd.DataFrame({"task": item, "worker": person, "label": votes[item, person]})
    return "crowd-kit's `DawidSkene`", lambda: DawidSkene(n_iter=100).fit_predict(frame)


def speeds(folder):
    """(what, compared with, our call, their call, repetitions) of each."""
    (X, y), votes, path = rows_of(2000), votes_of(2000), csv_file(folder, 20_000)
    peer, peers_call = dawid_skene(votes)
    judged = {"cv": 5, "method": "predict_proba"}

    def question():
        review = LabelReview(X, y, random_state=0)
        review.ask(1)

    ridge = CertifiedKernelClassifier(gamma=0.05, ridge=10.0).fit(X[:1000], y[:1000])
    svc = SVC(gamma=0.05).fit(X[:1000], y[:1000])
    return [
        ("`FloralClassifier().fit`, 2,000 x 20", "`SVC().fit`",
         lambda: FloralClassifier(random_state=0).fit(X, y), lambda: SVC().fit(X, y), 5),
        ("`find_label_issues`, 2,000 x 20", "five folds of logistic regression",
         lambda: find_label_issues(X, y, random_state=0),
         lambda: cross_val_predict(LogisticRegression(), X, y, **judged), 3),
        ("`LabelReview`, to the first question, 2,000 x 20", "five folds of logistic regression",
         question, lambda: cross_val_predict(LogisticRegression(), X, y, **judged), 3),
        ("`aggregate_votes`, 6,000 votes by 20 people", peer,
         lambda: aggregate_votes(votes, missing=-1, random_state=0), peers_call, 3),
        ("`certified_flips` of 500 rows, 1,000 labels", "`SVC.predict` of them",
         lambda: ridge.certified_flips(X[1000:1500]), lambda: svc.predict(X[1000:1500]), 5),
        ("`read_table`, 20,000 x 10, CSV", "`pandas.read_csv`",
         lambda: read_table(path, label="y"), lambda: pd.read_csv(path), 3),
    ]  # fmt: skip


def table(folder):
    """The ratios as Markdown, a line as soon as it is measured."""
    lines = ["| what | ours | beside | theirs | ratio |", "|---|---:|---|---:|---:|"]
    print("\n".join(lines), flush=True)
    for what, other, ours, theirs, repeat in speeds(folder):
        one, two = seconds(ours, repeat), seconds(theirs, 3 * repeat)
        lines.append(f"| {what} | {one:.4f} s | {other} | {two:.4f} s | {one / two:.1f} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main():
    """Print the table, and write the page where one is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="page to write")
    chosen = parser.parse_args()
    heading = begin(trial=chosen.page is None).heading()
    print(f"{heading}\n", flush=True)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        warnings.simplefilter("ignore")
        found = table(Path(folder))
    if chosen.page:
        about = (
            "Seconds are of one core (processor time, medians), so that other programs on the machine change them "
            "little. What stands beside each is the nearest thing whose speed everybody knows; most of them do less: "
            "`pandas.read_csv` checks no label and keeps no bytes, five folds find no region and ask nothing."
        )
        chosen.page.write_text(f"# Speeds as ratios\n\n{about}\n\n{heading}\n\n{found}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
