"""How TextReview's last fit was chosen: losses and epochs compared after the same 100 answers, on a draw kept for that.

    FLORAL_DATA=folder python benchmarks/imdb_fits.py --levels 30 25 --plans belief:3 weights:3 belief:5 --out runs

`belief` is the loss that `TextReview.fit` has, `weights` cross entropy with texts in doubt weighing less, `read` plain
cross entropy on the labels as they are read; the number is that of epochs. Rows go to fits.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import numpy as np

STARTED = time.monotonic()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", type=int, default=9)
    parser.add_argument("--levels", type=int, nargs="+", default=[30, 25])
    parser.add_argument("--plans", nargs="+", default=["belief:3", "weights:3", "read:3", "belief:5", "weights:5"])
    parser.add_argument(
        "--labels", type=Path, default=None, help="folder with labels-DRAW-LEVEL.npy, else attacked here"
    )
    parser.add_argument("--device", default=None)
    parser.add_argument("--model", default=None, help="folder of the encoder; without it the installed MiniLM")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--limit", type=float, default=0.0, help="seconds after which nothing new is begun")
    parser.add_argument("--rows", type=int, default=None, help="training and test rows, for a trial")
    parser.add_argument("--epochs", type=int, default=None, help="for a trial")
    parser.add_argument("--max-length", type=int, default=None, help="for a trial")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.model is not None:
        os.environ["FLORAL_TEXT_MODEL"] = str(Path(given.model).resolve())
    os.environ.setdefault("FLORAL_WORK", str((given.out / "work").resolve()))
    warnings.filterwarnings("ignore", message="eta = ")
    for level in given.levels:
        compare(given, level)


def compare(given: argparse.Namespace, level: int) -> None:
    """All plans on the labels of one level."""
    from imdb_answers import data_of
    from sklearn.base import clone

    from floral_learn import TextReview
    from floral_learn.evaluation.families.text_data import draw_of, max_length_of, source_of
    from floral_learn.evaluation.families.text_heads import gradient_labels
    from floral_learn.evaluation.reporting.environment import environment
    from floral_learn.evaluation.spec import Attack
    from floral_learn.neural.text import TextClassifier

    commit, data = environment().get("commit", ""), data_of(given.draw, given)
    draw = draw_of(data)
    y = draw.y_train

    def note(**values) -> None:
        line = {"commit": commit, "draw": given.draw, "level": level, **values}
        line |= {k: round(v, 5) for k, v in line.items() if isinstance(v, float)}
        with open(given.out / "fits.jsonl", "a") as stream:
            stream.write(json.dumps(line) + "\n")
        print(f"{time.monotonic() - STARTED:6.0f} s {line}", flush=True)

    if given.labels is not None:
        labels = np.load(given.labels / f"labels-{given.draw}-{level}.npy").astype(np.intp)[: len(y)]
    else:
        labels = gradient_labels(data, Attack("gradient"), [level], given.draw, given.device, lambda share: None)[0]
    encoder = TextClassifier(
        source_of(data), max_length=max_length_of(data), pooling="first", device=given.device, random_state=given.draw
    )
    review = TextReview(draw.train, labels, encoder=encoder, random_state=given.draw)
    for goal in (10, 20, 50, 100):
        while (have := len(review.history_)) < goal:
            rows = review.ask(min(1 if have < 20 else 5, goal - have))
            review.answer(rows, y[rows])
        note(kind="read", answers=goal, wrong=float((review.labels_ != y).mean()))
    ways = {
        "belief": lambda: {"belief": review.label_probability_},
        "weights": lambda: {"sample_weight": review._text_weights()},
        "read": dict,
    }
    for plan in given.plans:
        way, epochs = plan.split(":")
        if given.limit and time.monotonic() - STARTED > given.limit - 6 * int(epochs) - 6:
            continue
        began = time.monotonic()
        model = clone(encoder).set_params(epochs=int(epochs)).fit(draw.train, review.labels_, **ways[way]())
        took = time.monotonic() - began
        accuracy = float((model.predict(draw.test) == draw.y_test).mean())
        note(kind="fit", way=way, epochs=int(epochs), accuracy=accuracy, took=took)


if __name__ == "__main__":
    main()
