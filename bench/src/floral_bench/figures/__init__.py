"""Pictures from results: `suites` and `cards` say what is drawn, `drawing` draws it, `style` says how it looks."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from floral_bench.figures.style import write_png
from floral_bench.reporting.results import Results

CAPTIONS = {  # a name in a suite: a function of `figures.suites`, which takes results and returns a figure
    "rounds": "Test accuracy over the rounds; lines are means, bands one deviation over replications. The "
    "configuration is that of the last column. Epochs of networks are stretched to the same axis.",
    "security": "Test accuracy against the share of poisoned labels; deviations are in the tables.",
    "sensitivity": "FLORAL's accuracy for each budget B of the attacker inside the game; B = 0 is the plain SVM.",
    "recovery": "Poisoned labels that the attacker inside the game flips back.",
    "boundaries": "Decision boundaries; flipped training labels are ringed; the number is test accuracy.",
    "datasets": "Training sets; flipped labels are ringed.",
    "heads": "Test accuracy of the trained network, of heads on its features and of network and head in turns.",
    "imdb": "Test accuracy and hinge loss while the transformer and FLORAL's heads are trained; of the grid, the game "
    "with the highest mean accuracy over its last half.",
    "imdb_heads": "Test accuracy of every head against the share of poisoned labels, on both encoders.",
    "overlap": "Training rows that FLORAL and the network both count among their most influential quarter.",
}


def draw(name: str, results: Results) -> Any:
    """The figure `name` of a suite's results."""
    if name not in CAPTIONS:
        raise ValueError(f"unknown figure {name!r}; known: {', '.join(CAPTIONS)}")
    return getattr(import_module(f"{__name__}.suites"), name)(results)


def write_figures(results: Results, folder: Path) -> list[Path]:
    """Every figure of the suite as PNG under `folder`; those without data are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    make = {name: lambda name=name: draw(name, results) for name in results.suite.figures}
    return [path for name, drawn in make.items() for path in write_png(drawn, folder / f"{name}.png")]
