"""Pictures from results: each function computes nothing, reads `Results` and returns a matplotlib figure."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from floral_bench.reporting.results import Results
from floral_learn.files.atomic_files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# name in a suite -> module with `draw(results) -> Figure`
FIGURES = (
    "rounds", "security", "sensitivity", "recovery", "boundaries", "datasets", "stability", "epochs", "heads",
    "imdb", "imdb_heads", "overlap",
)  # fmt: skip


def draw(name: str, results: Results) -> Figure:
    """The figure `name` of a suite's results."""
    function: Callable[[Results], Figure] = import_module(f"{__name__}.{name}").draw
    return function(results)


def write_figures(results: Results, folder: Path) -> list[Path]:
    """Every figure of the suite as PNG and SVG under `folder`; those without data are left out."""
    import io

    from floral_bench.figures.style import print_style

    written = []
    folder.mkdir(parents=True, exist_ok=True)
    for name in results.suite.figures:
        with print_style():
            figure = draw(name, results)
            if not figure.axes:
                continue
            for kind in ("png", "svg"):
                stream = io.BytesIO()
                # Without a date and with fixed ids the same results give the same bytes.
                metadata = {"Date": None} if kind == "svg" else None
                figure.savefig(stream, format=kind, dpi=160, bbox_inches="tight", metadata=metadata)
                written.append(write_atomically(folder / f"{name}.{kind}", stream.getvalue()))
    return written
