"""Which curves of a suite's games stand on its pages: a few of the thousands that a store keeps."""

from __future__ import annotations

from floral_bench.figures.recovery import matching
from floral_bench.reporting.per_budget import floral_places
from floral_bench.reporting.results import Results


def shown_arrays(results: Results) -> set[tuple[str, str, str]]:
    """(key, config, name): accuracy over rounds behind each "last" column, and what was flipped back, where drawn."""
    shown: set[tuple[str, str, str]] = set()
    for place, cells in results.cells.items():
        if (config := results.chosen.get((place, "last"))) is not None:
            shown.update((cell.key, config, "accuracy") for cell in cells)
    if "recovery" in results.suite.figures:
        for place in floral_places(results):
            if place.level > 0:
                config = matching(results, place)
                names = ("recovery", "flip_rate")
                shown.update((cell.key, config, name) for cell in results.cells[place] for name in names)
    return shown
