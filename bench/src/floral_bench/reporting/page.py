"""One self-contained HTML page about a run: no network, no other file."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import partial
from typing import Any

from floral_bench.figures import CAPTIONS, draw
from floral_bench.figures.style import png
from floral_bench.figures.suites import security_panels
from floral_bench.reporting.results import Results
from floral_bench.reporting.tables import METRICS, by_level, comparison, costs
from floral_bench.reporting.verdict import verdict
from floral_learn.base.extras import install_line

_TITLES = {
    "accuracy": "Test accuracy",
    "balanced_accuracy": "Balanced accuracy",
    "hinge_loss": "Hinge loss on the test set (lower is better)",
    "overlap": "Share of the most influential quarter that both models have",
    "poisoned_share_floral": "Poisoned labels among FLORAL's most influential quarter",
    "poisoned_share_network": "Poisoned labels among the network's most influential quarter",
    "recovery_rate": "Recovery rate: poisoned labels flipped back, mean over rounds",
}


def render(results: Results, note: dict[str, Any]) -> str:
    """The page as text; everything that comes from data is escaped."""
    try:
        from jinja2 import Environment, PackageLoader
    except ImportError as error:
        raise ImportError(f"the page needs jinja2: {install_line('cli')}") from error
    loader = PackageLoader("floral_bench", "templates")
    template = Environment(loader=loader, autoescape=True, trim_blocks=True).get_template("report.html.j2")
    suite = results.suite
    return template.render(
        suite=suite,
        note=note,
        verdict=verdict(results) if len(results.frame) else None,
        metrics=list(_metrics(results)),
        costs=costs(results) if len(results.frame) else [],
        figures=_figures(results),
        errors=_errors(results),
        grid=suite.grid,
        attacks=[attack.name for attack in suite.attacks],
        data=suite.data[0].name,
    )


def _metrics(results: Results) -> Iterator[dict[str, Any]]:
    """The small tables of each metric that the results have, method x level."""
    for metric in METRICS if len(results.frame) else ():
        if len(rows := comparison(results, metric)):
            small = by_level(rows, results.suite.grid)
            yield {
                "title": _TITLES.get(metric, metric),
                "tables": small,
                "has_paper": any(found.has_paper for found in small),
                "spread": bool((rows.replications > 1).any()),
            }


def _figures(results: Results) -> list[dict[str, Any]]:
    """The suite's figures; curves over levels as one small picture per attack, so that a phone can show them."""
    out = []
    for name in results.suite.figures:
        small = name == "security"
        for title, make in security_panels(results) if small else [("", partial(draw, name, results))]:
            if (content := png(make, 150)) is not None:
                data = base64.b64encode(content).decode()
                out.append({"name": name, "title": title, "caption": CAPTIONS[name], "data": data, "small": small})
    return out


def _errors(results: Results) -> list[tuple[str, str]]:
    cells = {cell.key: cell for cell in results.suite.cells()}
    return [
        (f"{cells[key].method.title}, {cells[key].level:g} %, seed {cells[key].seed}", message)
        for key, message in results.store.errors(cells)
    ]
