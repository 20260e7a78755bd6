"""What fifty answers bring back on few texts: `TextReview` on MiniLM as it comes, with a head on its embeddings.

    python benchmarks/text_review.py trec imdb --out docs/results/text-review.md

Questions of trec (800, six classes) and reviews of IMDB (1,000), 30 % of the labels flipped far from a linear boundary
of the embeddings. Accuracy of ``review.train()`` on other texts: as given, after 10, 20 and 50 right answers, and on
clean labels. Every text is embedded once.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from floral_bench.datasets import load_imdb
from floral_bench.reporting.making import begin
from floral_bench.reporting.tables import grid
from floral_learn import TextClassifier
from floral_learn.review import TextReview

MARKS = (10, 20, 50)


def texts_of(name: str) -> tuple[list[str], np.ndarray, list[str], np.ndarray]:
    """Training and test texts with true labels."""
    rng = np.random.default_rng(0)
    if name == "imdb":
        data = load_imdb()
        train, test = rng.permutation(len(data.X_train))[:1000], rng.permutation(len(data.X_test))[:500]
        return (
            [data.X_train[i] for i in train], np.asarray(data.y_train)[train],
            [data.X_test[i] for i in test], np.asarray(data.y_test)[test],
        )  # fmt: skip
    lines = pd.read_csv(Path(os.environ["FLORAL_DATA"]) / "tables/trec.csv", dtype=str, keep_default_na=False)
    train, test = lines[lines["split"] == "train"], lines[lines["split"] != "train"]
    train = train.iloc[rng.permutation(len(train))[:800]]
    (texts, y), (others, truth) = ((part["text"].tolist(), part["label"].to_numpy(str)) for part in (train, test))
    return texts, y, others, truth


class Kept(TextClassifier):
    """MiniLM that remembers the embeddings of texts: the same texts are read once, however many draws there are."""

    known: ClassVar[dict[str, np.ndarray]] = {}

    def embed(self, X: Any) -> np.ndarray:
        """Embeddings of the texts, (n, width)."""
        new = [text for text in dict.fromkeys(X) if text not in self.known]
        if new:
            self.known.update(zip(new, super().embed(new), strict=True))
        return np.array([self.known[text] for text in X])


def measured(name: str, draws: int) -> list[dict[str, float]]:
    """Accuracy by number of answers, one row per draw of the review's questions and flips."""
    texts, y, others, truth = texts_of(name)
    X = Kept().freeze(np.unique(y)).embed(texts)
    margin = LogisticRegression(max_iter=500).fit(X, y).decision_function(X)
    far = np.abs(margin) if margin.ndim == 1 else np.diff(np.sort(margin, axis=1)[:, -2:], axis=1)[:, 0]
    found = []
    for draw in range(draws):
        rng, given = np.random.default_rng(draw), y.copy()
        for row in np.argsort(-far)[: int(0.3 * len(y))]:
            given[row] = rng.choice(np.unique(y)[np.unique(y) != y[row]])
        review = TextReview(texts, given, encoder=Kept(), random_state=draw)
        scores = {"given": float(review.train().score(others, truth))}
        for count in range(1, max(MARKS) + 1):
            rows = review.ask(1)
            review.answer(rows, y[rows])
            if count in MARKS:
                scores[str(count)] = float(review.train().score(others, truth))
        test = Kept().freeze(np.unique(y)).embed(others)
        scores["clean"] = float(SVC().fit(X, y).score(test, truth))
        found.append(scores)
        print(name, scores, file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", choices=("trec", "imdb"))
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    run, start = begin(trial=given.out is None), time.process_time()
    names = ("given", *(str(m) for m in MARKS), "clean")
    lines = []
    for name in given.data:
        rows = measured(name, given.draws)
        means = {n: float(np.mean([r[n] for r in rows])) for n in names}
        back = [100 * (means[str(m)] - means["given"]) / (means["clean"] - means["given"]) for m in MARKS]
        lines.append([name, *(f"{means[n]:.3f}" for n in names), " / ".join(f"{b:.0f} %" for b in back)])
    head = ["texts", "as given", *(f"{m} answers" for m in MARKS), "clean labels", "came back, 10 / 20 / 50 answers"]
    about = f"{run.heading()}; {given.draws} draws of flips and questions, on the same texts."
    parts = ["# Few texts: a review on MiniLM as it comes", about, grid(head, lines, left=len(head))]
    text = "\n\n".join([*parts, f"{time.process_time() - start:.0f} s of CPU.\n"])
    print(text)
    if given.out is not None:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
