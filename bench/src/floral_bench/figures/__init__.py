"""Pictures from results: each function computes nothing, reads `Results` and returns a matplotlib figure."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from floral_bench.reporting.results import Results
from floral_learn.files.atomic_files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# names in a suite: functions of `lines` and of `plane`, which take results and return a figure
IN_THE_PLANE = ("recovery", "boundaries", "datasets")
FIGURES = (
    "rounds", "security", "sensitivity", *IN_THE_PLANE, "stability", "epochs", "heads", "imdb", "imdb_heads",
    "overlap",
)  # fmt: skip

CAPTIONS = {
    "rounds": "Test accuracy over the rounds; lines are means, bands one deviation over replications. The "
    "configuration is that of the last column. Epochs of networks are stretched to the same axis.",
    "security": "Test accuracy against the share of poisoned labels; deviations are in the tables.",
    "sensitivity": "FLORAL's accuracy for each budget B of the attacker inside the game; B = 0 is the plain SVM.",
    "recovery": "Poisoned labels that the attacker inside the game flips back.",
    "boundaries": "Decision boundaries; flipped training labels are ringed; the number is test accuracy.",
    "stability": "How much two runs approach each other in a round; above 1 they move apart.",
    "datasets": "Training sets; flipped labels are ringed.",
    "epochs": "Test accuracy of the network after each epoch, and of heads fitted on its features at that time.",
    "heads": "Test accuracy of the trained network, of heads on its features and of network and head in turns.",
    "imdb": "Test accuracy and hinge loss while the transformer and FLORAL's heads are trained; of the grid, the game "
    "with the highest mean accuracy over its last half.",
    "imdb_heads": "Test accuracy of every head against the share of poisoned labels, on both encoders.",
    "overlap": "Training rows that FLORAL and the network both count among their most influential quarter.",
}


def draw(name: str, results: Results) -> Figure:
    """The figure `name` of a suite's results."""
    if name not in FIGURES:
        raise ValueError(f"unknown figure {name!r}; known: {', '.join(FIGURES)}")
    module = import_module(f"{__name__}.{'plane' if name in IN_THE_PLANE else 'lines'}")
    return getattr(module, name)(results)


def write_figures(results: Results, folder: Path) -> list[Path]:
    """Every figure of the suite as PNG under `folder`; those without data are left out."""
    import io

    from floral_bench.figures.style import print_style

    written = []
    folder.mkdir(parents=True, exist_ok=True)
    for name in results.suite.figures:
        with print_style():
            figure = draw(name, results)
            if not figure.axes:
                continue
            stream = io.BytesIO()
            figure.savefig(stream, format="png", dpi=120, bbox_inches="tight")
            written.append(write_atomically(folder / f"{name}.png", stream.getvalue()))
    return written
