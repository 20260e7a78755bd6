"""Frozen MiniLM on film reviews: the vector at the first token, or the mean over tokens that it was made for?

    python benchmarks/text_pooling.py [--device cuda]      # the table of docs/results/text.md

Both heads have C = 1 and gamma = "scale", the defaults of SVC; told means a budget of the share of wrong labels.
"""

import argparse

import numpy as np
import pandas as pd
from sklearn.svm import SVC

from floral_bench.datasets import load_imdb
from floral_bench.reporting.making import begin
from floral_bench.reporting.tables import markdown, spread
from floral_learn import FloralClassifier, TextClassifier, poison

DRAWS, ROWS, TOKENS = (1, 2, 3), 1000, 128
POOLINGS = {"first": "first token", "mean": "mean of tokens"}
CELLS = ((None, 0.0), ("random", 0.25), ("farthest", 0.1), ("farthest", 0.25))
HEADS = ("SVC()", "FloralClassifier()", "FloralClassifier, told")


def scores(device):
    """One row per draw, pooling, attack and head."""
    for seed in DRAWS:
        data = load_imdb(n_train=ROWS, n_val=0, n_test=ROWS, random_state=seed)
        for pooling, title in POOLINGS.items():
            encoder = TextClassifier(max_length=TOKENS, pooling=pooling, device=device, random_state=0)
            encoder.freeze(np.unique(data.y_train))
            X, X_test = encoder.embed(data.X_train), encoder.embed(data.X_test)
            for attack, level in CELLS:
                y = data.y_train
                if attack is not None:
                    y = poison(X, y, attack=attack, budget=level, random_state=seed).y
                for name in HEADS if level else HEADS[:2]:
                    budget = {"budget": level} if name == HEADS[2] else {}
                    head = SVC() if name == HEADS[0] else FloralClassifier(random_state=seed, **budget)
                    label = "none" if attack is None else f"{attack}, {100 * level:g} %"
                    yield label, f"`{name}`", title, head.fit(X, y).score(X_test, data.y_test)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default=None)
    given = parser.parse_args()
    print(f"{begin(trial=True).heading()}\n")
    where = ["labels flipped", "head"]
    frame = pd.DataFrame(scores(given.device), columns=[*where, "pooling", "accuracy"])
    shown = frame.groupby([*where, "pooling"], sort=False).accuracy.agg(spread)
    print(markdown(shown.unstack("pooling")[list(POOLINGS.values())].reset_index(), left=2))
