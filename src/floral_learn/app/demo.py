"""``floral demo``: labels of a region are wrong; what a plain model, FLORAL and a few answers make of it."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from floral_learn.app.terminal import one_line, say

LEVEL = 0.2  # share of the training labels that the attack flips
ANSWERS = (10, 50)
SPLITS = (1, 2, 3)
GIVEN, DOUBTED = "SVC on the given labels", f"  {ANSWERS[-1]} most doubtful labels fixed by a person"
DEFAULT, TOLD = "FLORAL, default", f"FLORAL, given the true share (budget={LEVEL})"
ASKED = tuple(f"  {n} answers to what LabelReview asks" for n in ANSWERS)
CLEAN = "SVC on the true labels"
ROWS = (GIVEN, DEFAULT, TOLD, DOUBTED, *ASKED, CLEAN)
DATA = ("moon", "breast cancer", "digits")


def register(app: Any) -> None:
    """Add the command to the `floral` app."""
    import typer

    @app.command()
    @one_line("floral demo")
    def demo(out: Path = typer.Option(Path("demo.png"), help="picture to write")) -> None:
        """Train on poisoned labels, with and without answers: a table and a picture, in about half a minute."""
        if not out.parent.is_dir():
            raise ValueError(f"the folder {out.parent} does not exist")
        began = time.perf_counter()
        say(f"{len(DATA)} data sets, {len(SPLITS)} splits each: half a minute to two minutes", err=True)
        rows: dict[str, dict[str, list[float]]] = {name: {data: [] for data in DATA} for name in ROWS}
        shown: dict[str, Any] = {}
        for data in DATA:
            for split in SPLITS:
                problem = _problem(data, split)
                for name, model, asked in _models(*problem[:3]):
                    score = float((model.predict(problem[3]) == problem[4]).mean())
                    rows[name][data].append(score)
                    if data == DATA[0] and split == SPLITS[0]:
                        shown.setdefault("problem", problem)
                        shown[name] = (model, score, asked)
                say(f"  {data}, split {split}: {time.perf_counter() - began:.0f} s", err=True)
        _table(rows)
        _picture(shown, out)
        say(f"Picture: {out}   ({time.perf_counter() - began:.0f} s)")


def _problem(data: str, split: int) -> tuple[Any, Any, Any, Any, Any]:
    """Training rows, given labels, true labels, test rows, their labels; columns standardised on the training rows."""
    from sklearn import datasets
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    from floral_learn import load_moon, poison

    if data == "moon":
        moon = load_moon(random_state=split)
        X, true, X_test, y_test = moon.X_train, moon.y_train, moon.X_test, moon.y_test
    else:
        load = {"breast cancer": datasets.load_breast_cancer, "digits": datasets.load_digits}[data]
        rows, labels = load(return_X_y=True)
        size = min(600, len(rows) // 2)
        X, X_test, true, y_test = train_test_split(rows, labels, train_size=size, random_state=split, stratify=labels)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    given = poison(X, true, attack="farthest", budget=LEVEL, random_state=0).y
    return X, given, true, X_test, y_test


def _models(X: Any, given: Any, true: Any) -> Iterator[tuple[str, Any, Any]]:
    """Every row's name, fitted model and rows that were asked about."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.svm import SVC

    from floral_learn import FloralClassifier, LabelReview

    yield GIVEN, SVC().fit(X, given), []
    yield DEFAULT, FloralClassifier(random_state=0).fit(X, given), []
    yield TOLD, FloralClassifier(budget=LEVEL, random_state=0).fit(X, given), []
    held_out = cross_val_predict(LogisticRegression(max_iter=1000), X, given, cv=5, method="predict_proba")
    own = held_out[np.arange(len(given)), np.searchsorted(np.unique(given), given)]
    doubtful = np.argsort(own)[: ANSWERS[-1]]
    fixed = given.copy()
    fixed[doubtful] = true[doubtful]
    yield DOUBTED, SVC().fit(X, fixed), doubtful
    review, asked = LabelReview(X, given, random_state=0), list[int]()
    for name, wanted in zip(ASKED, ANSWERS, strict=True):
        while len(asked) < wanted:
            row = review.ask(1)
            review.answer(row, true[row])  # here a person would look at the row
            asked.extend(row)
        yield name, review.train(SVC()), list(asked)
    yield CLEAN, SVC().fit(X, true), []


def _table(rows: dict[str, dict[str, list[float]]]) -> None:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=f"Test accuracy, {100 * LEVEL:.0f} % of the training labels flipped far from a linear boundary\n"
        f"mean of {len(SPLITS)} splits; C=1, gamma='scale' in every row",
        title_justify="left",
    )
    table.add_column("")
    for data in DATA:
        table.add_column(data, justify="right")
    for name, scores in rows.items():
        table.add_row(name, *(f"{np.mean(scores[data]):.3f}" for data in DATA), end_section=name in (TOLD, ASKED[-1]))
    Console().print(table)
    Console().print(
        "A region of labels is wrong, and from the labels alone no rule can know which.\n"
        "A person who looks at a few rows can say.\n"
        "These data sets are small, and their classes well separated; docs/results has\nothers, and losses."
    )


def _picture(shown: dict[str, Any], out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import numpy as np
    from matplotlib.lines import Line2D

    from floral_learn.base.files import write_atomically

    X, given, true = shown["problem"][:3]
    flipped, upper = given != true, given == np.unique(given)[1]
    colours = np.array(["#0072B2", "#E69F00"])
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    grid = np.stack(np.meshgrid(np.linspace(low[0], high[0], 250), np.linspace(low[1], high[1], 250)), axis=-1)
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.6), sharex=True, sharey=True, layout="constrained")
    for ax, name in zip(axes, (GIVEN, ASKED[0]), strict=True):
        model, score, asked = shown[name]
        side = (model.predict(grid.reshape(-1, 2)) == np.unique(given)[1]).reshape(grid.shape[:2])
        ax.contourf(grid[..., 0], grid[..., 1], side, levels=[-0.5, 0.5, 1.5], colors=colours, alpha=0.16)
        ax.contour(grid[..., 0], grid[..., 1], side, levels=[0.5], colors="black", linewidths=1.8)
        ax.scatter(*X[~flipped].T, c=colours[upper[~flipped].astype(int)], s=11, linewidths=0)
        ax.scatter(
            *X[flipped].T, c=colours[upper[flipped].astype(int)], s=34, marker="X", edgecolors="black", linewidths=0.6
        )
        if len(asked):
            ax.scatter(*X[asked].T, s=130, facecolors="none", edgecolors="#D7263D", linewidths=1.8)
        words = "SVC on the given labels" if name == GIVEN else f"SVC after {ANSWERS[0]} answers to LabelReview"
        ax.set_title(f"{words}: test accuracy {score:.3f}")
        ax.set(xticks=[], yticks=[])
    handles = [
        Line2D([], [], marker="o", ls="", color=colours[1], label="given label: one class"),
        Line2D([], [], marker="o", ls="", color=colours[0], label="given label: the other"),
        Line2D([], [], marker="X", ls="", color="white", markeredgecolor="black", ms=8, label="flipped label"),
        Line2D([], [], marker="o", ls="", color="white", markeredgecolor="#D7263D", ms=10, label="asked about"),
        Line2D([], [], color="black", lw=1.8, label="decision boundary"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False)
    figure.suptitle(f"Moon, {100 * LEVEL:.0f} % of the training labels flipped")
    stream = io.BytesIO()
    figure.savefig(stream, dpi=130, format="png")
    write_atomically(out, stream.getvalue())
    plt.close(figure)
