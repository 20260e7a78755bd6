"""One self-contained HTML file about certificates: what survives how many wrong labels, and what does not."""

from __future__ import annotations

from typing import Any

import numpy as np

from floral_learn.app.pages import render_page
from floral_learn.certify.certificate import Certificate

WEAKEST = 10  # predictions in the list of those that survive least
NAMED = 5  # labels that are named for each of them
WIDTH, HEIGHT = 640, 250  # of the picture


def survival(flips: np.ndarray, n_labels: int) -> list[tuple[int, float]]:
    """Numbers of flips worth telling, and the share of predictions that survive so many."""
    counts = sorted({0, 1, *(int(share * n_labels) for share in (0.01, 0.02, 0.05, 0.1, 0.2))})
    return [(count, float((flips >= count).mean())) for count in counts]


def headline(flips: np.ndarray, n_labels: int) -> str:
    """One sentence: the largest told number of flips that most predictions survive, or that few survive any."""
    told = [(count, share) for count, share in survival(flips, n_labels) if count > 0]
    good = [pair for pair in told if pair[1] >= 0.5]
    count, share = good[-1] if good else told[0]
    few = "" if good else "Only "
    labels = "label" if count == 1 else "labels"
    return (
        f"{few}{100 * share:.0f} % of the predictions on rows like yours survive {count:,} wrong {labels} "
        f"of {n_labels:,}, whichever they are."
    )


def render(
    found: Certificate,
    *,
    title: str = "Certificates",
    names: list[str] | None = None,
    training_names: list[str] | None = None,
    given: np.ndarray | None = None,
    training_labels: np.ndarray | None = None,
    notes: list[str] | None = None,
) -> str:
    """Return the page for `found`.

    Parameters
    ----------
    title : str
        Heading, such as the file's name.
    names, training_names : lists of str, optional
        Names of the certified rows and of the training rows; by default their numbers.
    given, training_labels : arrays, optional
        Labels of the certified rows and of the training rows.
    notes : list of str, optional
        How the features were made.
    """
    name = (lambda row: str(row)) if training_names is None else (lambda row: training_names[row])
    weakest = np.argsort(found.flips, kind="stable")[:WEAKEST]
    return render_page(
        "certify",
        title=title,
        headline=headline(found.flips, found.n_labels),
        table=[
            {"count": f"{count:,}", "share": f"{100 * share:.0f} %", "bar": round(100 * share)}
            for count, share in survival(found.flips, found.n_labels)
        ],
        curve=_curve(found.flips, found.n_labels),
        n_rows=f"{len(found.flips):,}",
        n_labels=f"{found.n_labels:,}",
        fixed=f"{found.n_labels - found.n_reachable:,}" if found.n_reachable < found.n_labels else "",
        median=f"{int(np.percentile(found.flips, 50, method='lower')):,}",
        exact=found.exact,
        none=f"{int((found.flips < 0).sum()):,}" if (found.flips < 0).any() else "",
        weakest=[_weak(found, int(j), names, name, given, training_labels) for j in weakest],
        assumed=found.settings(),
        notes=notes or [],
    )


def _weak(
    found: Certificate, j: int, names: list[str] | None, name: Any, given: Any, training_labels: Any
) -> dict[str, Any]:
    rows, labels = found.rows[j], found.labels[j]
    flips = [] if rows is None or labels is None else list(zip(rows[:NAMED].tolist(), labels[:NAMED], strict=True))
    survives = int(found.flips[j])
    return {
        "name": str(j) if names is None else names[j],
        "prediction": str(found.prediction[j]),
        "given": "" if given is None else str(given[j]),
        "survives": "nothing is promised" if survives < 0 else f"{survives:,}",
        "flips": [
            {
                "row": name(row),
                "before": "" if training_labels is None else str(training_labels[row]),
                "after": str(label),
            }
            for row, label in flips
        ],
        "more": max(0, (0 if rows is None else len(rows)) - NAMED),
    }


def _curve(flips: np.ndarray, n_labels: int) -> dict[str, Any]:
    """The share of predictions (from 0 to 1) that survive each number of flips, as points of an SVG picture."""
    most = int(max(min(flips.max(), n_labels), 1))
    counts = np.unique(np.linspace(0, most, 200).round().astype(int))
    shares = [(flips >= count).mean() for count in counts]
    left, top, wide, high = 44, 10, WIDTH - 60, HEIGHT - 56
    x = lambda count: round(left + wide * count / most, 1)  # noqa: E731
    y = lambda share: round(top + high * (1 - share), 1)  # noqa: E731
    points = " ".join(f"{x(count)},{y(share)}" for count, share in zip(counts, shares, strict=True))
    ticks = np.unique(np.linspace(0, most, 6).round().astype(int))
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "line": points,
        "area": f"{x(0)},{y(0)} {points} {x(most)},{y(0)}",
        "x": [{"at": x(tick), "text": f"{tick:,}"} for tick in ticks],
        "y": [{"at": y(share), "text": f"{100 * share:.0f} %"} for share in (0.0, 0.5, 1.0)],
        "left": left,
        "right": left + wide,
        "bottom": top + high,
    }
