"""IMDB with a few answers: TextReview where the gradient attack poisoned labels; docs/results/imdb-answers.md.

    FLORAL_DATA=folder python benchmarks/imdb_answers.py run answers.jsonl --device cuda --jobs 3
    python benchmarks/imdb_answers.py table answers.jsonl [--picture answers.png]

One cell is a draw of 20,000 reviews at one level of poison. `TextReview` fine-tunes an encoder for one epoch on the
poisoned labels, asks on its embeddings and scores, and the true labels are the answers. After a hundred of them
`train()` makes a classifier, which is scored on 25,000 reviews. Cells that are complete in the file are not run again.
Encoders on clean and on given labels are those of the suite imdb, from its work folder where they are.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import time
import warnings
from pathlib import Path

import pandas as pd
from joblib import Parallel, delayed

from floral_bench.adapt_suite import adapt
from floral_bench.reporting.making import begin
from floral_bench.reporting.paper import paper_value
from floral_bench.reporting.tables import markdown, spread
from floral_bench.spec import Attack, Data, params
from floral_bench.suites import SUITES

ANSWERS = (10, 20, 50, 100)
LEVELS, DRAWS = (30, 40, 25, 35), (1, 2, 3)
EXPLORED = 9  # a draw that was looked at while the method was made
GOALS = {25: 0.5, 30: 0.7, 35: 0.7, 40: 0.7}  # share of the gap to clean labels, with 100 answers


def measure(draw_number: int, level: float, given: argparse.Namespace, commit: str) -> None:
    """One cell, a line per measurement."""
    from floral_bench.families.text_data import draw_of, encode, max_length_of, source_of
    from floral_bench.families.text_heads import gradient_labels
    from floral_learn import TextClassifier
    from floral_learn.review import TextReview

    warnings.filterwarnings("ignore", message="eta = ")
    began = time.monotonic()

    def note(**values) -> None:
        line = {"commit": commit, "draw": draw_number, "level": level}
        line |= {key: round(value, 5) if isinstance(value, float) else value for key, value in values.items()}
        with open(given.rows, "a") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            stream.write(json.dumps(line | {"seconds": round(time.monotonic() - began, 1)}) + "\n")

    base = dict(adapt(SUITES["imdb"], reps=1).data[0].params)
    sizes = {} if given.trial is None else {"n_train": given.trial, "n_val": 10, "n_test": given.trial, "epochs": 1}
    data = Data("imdb", params(**(base | sizes | {"seed": draw_number})))
    draw = draw_of(data)
    y = draw.y_train
    with open(f"{given.rows}.{draw_number}.lock", "w") as lock:  # one process makes the clean encoder
        fcntl.flock(lock, fcntl.LOCK_EX)
        clean = encode(data, y, draw_number, given.device)
        labels = gradient_labels(data, Attack("gradient"), [level], draw_number, given.device)[0]
    note(kind="clean labels", accuracy=float(clean.accuracy[-1]))
    note(kind="given labels", accuracy=float(encode(data, labels, draw_number, given.device).accuracy[-1]))
    encoder = TextClassifier(
        source_of(data), epochs=int(dict(data.params).get("epochs", 3)), max_length=max_length_of(data),
        pooling="first", device=given.device, random_state=draw_number,
    )  # fmt: skip

    def accuracy(model) -> float:
        return float((model.predict(draw.test) == draw.y_test).mean())

    review = TextReview(draw.train, labels, encoder=encoder, random_state=draw_number)
    note(kind="set up", asked_encoder=accuracy(review.fitted_encoder))
    for goal in ANSWERS:
        while (have := len(review.history)) < goal:
            rows = review.ask(min(1 if have < 20 else 5, goal - have))
            review.answer(rows, y[rows])
        note(kind="read", answers=goal, wrong=float((review.labels != y).mean()))
    note(kind="answers", answers=ANSWERS[-1], accuracy=accuracy(review.train()))
    note(kind="done")


def run(given: argparse.Namespace) -> None:
    """All cells that the file does not have."""
    making = begin(trial=given.trial is not None, device=given.device)
    commit, known = making.environment.get("commit", ""), set()
    if given.rows.exists():
        lines = [json.loads(line) for line in given.rows.read_text().splitlines()]
        known = {(line["draw"], line["level"]) for line in lines if line["kind"] == "done"}
    wanted = [(draw, level) for level in LEVELS for draw in given.draws if (draw, level) not in known]
    Parallel(given.jobs)(delayed(measure)(draw, level, given, commit) for draw, level in wanted)
    print(making.heading())


def table(given: argparse.Namespace) -> None:
    """Print accuracy and labels that are read wrong, by level."""
    rows = pd.read_json(given.rows, lines=True)
    rows = rows[rows.draw != EXPLORED].drop_duplicates(["draw", "level", "kind", "answers"], keep="last")
    first, second = [], []
    for level, part in rows.groupby("level"):
        by_kind = {kind: some.accuracy for kind, some in part.groupby("kind")}
        early = part[part.kind == "set up"].asked_encoder
        start, end = by_kind["given labels"].mean(), by_kind["clean labels"].mean()
        closed = [(now.mean() - start) / (end - start) for now in (early, by_kind["answers"])]
        paper = paper_value("comp-imdb-additional", level, (10.0, 0.005), "floral", "accuracy", "last")
        shown = [spread(values) for values in (by_kind["given labels"], early, by_kind["answers"])]
        shares = [f"{100 * share:.0f} %" for share in (*closed, GOALS[int(level)])]
        shown += [spread(by_kind["clean labels"]), *shares, by_kind["answers"].size]
        first.append([f"{level:g} %", f"{paper:.3f}", *shown])
        read = part[part.kind == "read"].set_index("answers").wrong * 100
        second.append([f"{level:g} %", *(spread(read.loc[[m]], 1) for m in ANSWERS)])
    names = ["poisoned", "*floral, paper*", "given labels", "one epoch", "100 answers", "clean labels"]
    names += ["gap closed by one epoch", "by 100 answers", "goal", "draws"]
    print(markdown(pd.DataFrame(first, columns=names)))
    print(markdown(pd.DataFrame(second, columns=["poisoned", *(f"{m} answers" for m in ANSWERS)])))
    if given.picture is not None:
        draw_answers(rows, given.picture)


def draw_answers(rows: pd.DataFrame, path: Path) -> None:
    """Two panels: labels that are read wrong by number of answers, and test accuracy."""
    from matplotlib.figure import Figure

    from floral_bench.figures.style import BLUE, GREEN, ORANGE, RED

    figure = Figure(figsize=(7.2, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (level, part), colour in zip(rows.groupby("level"), (GREEN, BLUE, ORANGE, RED), strict=False):
        look = {"color": colour, "marker": "o", "markersize": 4, "linewidth": 1.6, "capsize": 2}
        read = part[part.kind == "read"].groupby("answers").wrong.agg(["mean", "std"]) * 100
        label = f"{level:g} % poisoned"
        left.errorbar(range(5), [level, *read["mean"]], [0, *read["std"]], label=label, **look)
        by_kind = part.groupby("kind").accuracy.agg(["mean", "std"]).loc[["given labels", "answers", "clean labels"]]
        right.errorbar(range(3), by_kind["mean"], by_kind["std"], **look)
    left.set_xticks(range(5), ["0", *map(str, ANSWERS)])
    left.set(xlabel="answers", ylabel="labels read wrong, %", ylim=(0, None))
    right.set_xticks(range(3), ["given", "100 answers", "clean"])
    right.set(ylabel="test accuracy, MiniLM fine-tuned")
    figure.legend(loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("run", "table"))
    parser.add_argument("rows", type=Path)
    parser.add_argument("--draws", type=int, nargs="+", default=DRAWS)
    parser.add_argument("--jobs", type=int, default=1, help="processes; they share one GPU")
    parser.add_argument("--device", default=None)
    parser.add_argument("--picture", type=Path, default=None)
    parser.add_argument("--trial", type=int, default=None, help="so many training and test rows, one epoch")
    given = parser.parse_args()
    run(given) if given.action == "run" else table(given)


if __name__ == "__main__":
    main()
