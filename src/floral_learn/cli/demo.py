"""``floral demo``: train an SVC and FLORAL on poisoned Moon labels, print a table, draw both boundaries."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

LEVELS = (0.0, 0.1, 0.2)
SHOWN = 0.1  # the level that the picture shows
SPLITS = (1, 2, 3, 4, 5)
# Every row has this C and this kernel, so that a difference between rows is the game's and not the regularisation's.
C, GAMMA = 1.0, 1.0
BUDGETS = (0.05, 0.1, 0.2)  # without a guess; the level that the picture shows, and twice that
PLAIN = "SVC"
ROWS = (PLAIN, *(f"FLORAL, budget={budget}" for budget in BUDGETS))


def register(app: Any) -> None:
    """Add the command to the `floral` app."""
    import typer

    from .failures import one_line

    @app.command()
    @one_line("floral demo")
    def demo(out: Path = typer.Option(Path("demo.png"), help="picture to write")) -> None:
        """Train on poisoned labels with and without FLORAL: a table and a picture, in a few seconds."""
        if not out.parent.is_dir():
            raise ValueError(f"the folder {out.parent} does not exist")
        began = time.perf_counter()
        rows, shown = _train()
        _table(rows)
        _picture(shown, out)
        typer.echo(f"Picture: {out}   ({time.perf_counter() - began:.1f} s)")


def _models() -> dict[str, Any]:
    from sklearn.svm import SVC

    from floral_learn.floral.classifier import FloralClassifier

    played = (FloralClassifier(C=C, gamma=GAMMA, budget=budget, random_state=0) for budget in BUDGETS)
    return dict(zip(ROWS, (SVC(C=C, gamma=GAMMA), *played)))


def _train() -> tuple[dict[str, dict[float, list[float]]], dict[str, Any]]:
    """Test accuracies by method and level over the splits, and the first split's models at the level shown."""
    from floral_learn.attacks import poison
    from floral_learn.datasets import load_moon

    rows: dict[str, dict[float, list[float]]] = {name: {level: [] for level in LEVELS} for name in _models()}
    shown: dict[str, Any] = {}
    for split in SPLITS:
        data = load_moon(random_state=split)
        for level in LEVELS:
            y = data.y_train
            if level:
                y = poison(data.X_train, y, attack="farthest", budget=level, random_state=0).y
            for name, model in _models().items():
                model.fit(data.X_train, y)
                score = model.score(data.X_test, data.y_test)
                rows[name][level].append(score)
                if split == SPLITS[0] and level == SHOWN:
                    shown["data"], shown["y"] = data, y
                    shown[name] = (model, score)
    return rows, shown


def _table(rows: dict[str, dict[float, list[float]]]) -> None:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from floral_learn.attacks.deviation import sample_deviation

    table = Table(
        title="Test accuracy on Moon, 500 training rows\n"
        f"mean ± sample deviation of {len(SPLITS)} splits; C={C:g}, gamma={GAMMA:g} in every row"
    )
    table.add_column("method")
    for level in LEVELS:
        table.add_column("clean labels" if not level else f"{level:.0%} flipped", justify="right")
    for name, scores in rows.items():
        table.add_row(
            name, *(f"{np.mean(scores[level]):.3f} ± {sample_deviation(scores[level]):.3f}" for level in LEVELS)
        )
    Console().print(table)
    Console().print(_words(rows))


def _words(rows: dict[str, dict[float, list[float]]]) -> str:
    """What the table says, in the numbers of the table."""
    import numpy as np

    def gain(row: str, level: float) -> str:
        return f"{np.mean(rows[row][level]) - np.mean(rows[PLAIN][level]):+.3f}"

    low, told, high = ROWS[1:]
    widest = max(abs(np.mean(rows[low][level]) - np.mean(rows[PLAIN][level])) for level in LEVELS)
    return (
        "The attack flips the labels farthest from a linear boundary. `budget` is the share of rows among which "
        "FLORAL's own attacker chooses.\n"
        f"Without a guess (budget={BUDGETS[0]}) FLORAL is within {widest:.3f} of the SVC and gains little or nothing: "
        f"{gain(low, 0.0)} on clean labels, {gain(low, SHOWN)} at {SHOWN:.0%}, {gain(low, LEVELS[-1])} at "
        f"{LEVELS[-1]:.0%}.\n"
        f"At {SHOWN:.0%} a budget of that level brings {gain(told, SHOWN)} and twice that {gain(high, SHOWN)}; on "
        f"clean labels they cost accuracy ({gain(told, 0.0)}, {gain(high, 0.0)}).\n"
        f"The picture shows budget={BUDGETS[-1]} at {SHOWN:.0%}."
    )


def _picture(shown: dict[str, Any], out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import numpy as np
    from matplotlib.lines import Line2D

    from floral_learn.files.atomic_files import write_atomically

    data, y = shown["data"], shown["y"]
    X, flipped = data.X_train, y != data.y_train
    colours = np.array(["#0072B2", "#E69F00"])
    low, high = X.min(axis=0) - 0.4, X.max(axis=0) + 0.4
    grid = np.stack(np.meshgrid(np.linspace(low[0], high[0], 250), np.linspace(low[1], high[1], 250)), axis=-1)
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.4), sharex=True, sharey=True, layout="constrained")
    for ax, name in zip(axes, (PLAIN, ROWS[-1])):
        model, score = shown[name]
        values = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
        ax.contourf(grid[..., 0], grid[..., 1], values > 0, levels=[-0.5, 0.5, 1.5], colors=colours, alpha=0.16)
        ax.contour(grid[..., 0], grid[..., 1], values, levels=[0], colors="black", linewidths=1.8)
        ax.scatter(*X[~flipped].T, c=colours[(y[~flipped] > 0).astype(int)], s=11, linewidths=0)
        ax.scatter(
            *X[flipped].T, c=colours[(y[flipped] > 0).astype(int)], s=34, marker="X", edgecolors="black", linewidths=0.6
        )
        ax.set_title(f"{name}: test accuracy {score:.3f}")
        ax.set(xticks=[], yticks=[])
    handles = [
        Line2D([], [], marker="o", ls="", color=colours[1], label="given label: one class"),
        Line2D([], [], marker="o", ls="", color=colours[0], label="given label: the other"),
        Line2D(
            [], [], marker="X", ls="", color="white", markeredgecolor="black", ms=8, label="flipped by the attacker"
        ),
        Line2D([], [], color="black", lw=1.8, label="decision boundary"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(f"Moon, {SHOWN:.0%} of the training labels flipped; both with C={C:g}, gamma={GAMMA:g}")
    stream = io.BytesIO()
    figure.savefig(stream, dpi=130, format="png")
    write_atomically(out, stream.getvalue())
    plt.close(figure)
