"""One self-contained HTML file that shows an audit to people: no network, no build step, data inside."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from typing import Any

import numpy as np

from floral_learn.audit.result import THRESHOLD, AuditResult
from floral_learn.core.suspicion import REASONS

MOST_COLUMNS = 30
_DETAIL_CHARACTERS = 25_000_000  # of cells in the page: longer texts are cut where there are many rows
_CUTS = (2000, 1000, 500, 250, 120, 60, 30)


def render(
    result: AuditResult,
    *,
    title: str = "Label audit",
    frame: Any = None,
    ids: list[str] | None = None,
    notes: list[str] | None = None,
    threshold: float = THRESHOLD,
) -> str:
    """Return the page for `result`.

    Parameters
    ----------
    title : str
        Heading, such as the file's name.
    frame : pandas.DataFrame, optional
        The original columns, shown when a row is opened.
    ids : list of n texts, optional
        Names of the rows; by default their numbers.
    notes : list of str, optional
        How the features were made, shown to the reader.
    threshold : float
        Suspicion from which a label counts as flagged.
    """
    try:
        from jinja2 import Environment
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError("the audit page needs jinja2: pip install 'floral-learn[cli]'") from error
    here = files("floral_learn.audit").joinpath("templates")
    source = {name: here.joinpath(name).read_text(encoding="utf-8") for name in ("page.html", "page.css", "page.js")}
    data = page_data(result, frame=frame, ids=ids, threshold=threshold)
    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source["page.html"])
    return template.render(
        title=title,
        css=Markup(source["page.css"]),  # ours, not the data's
        js=Markup(source["page.js"]),
        data=Markup(script_json(data)),
        summary=summary(result, threshold),
        notes=[*(notes or []), *result.notes],
        reasons=REASONS,
        threshold=threshold,
        has_groups=result.groups is not None,
    )


def script_json(value: Any) -> str:
    """JSON that is safe inside a script element: no text in it can close the element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def summary(result: AuditResult, threshold: float = THRESHOLD) -> dict[str, Any]:
    """Return the numbers of the page's first paragraph."""
    rows = result.flagged(threshold)
    both = result.holds[:, 0] & result.holds[:, 3]
    both[rows] = False
    return {
        "n": result.n,
        "classes": len(result.classes),
        "flagged": len(rows),
        "flagged_percent": 100 * len(rows) / result.n,
        "expected": float(result.suspicion.sum()),
        "hit": int(10 * float(result.suspicion[rows].mean())) if len(rows) else 0,
        "both": int(both.sum()),
    }


def page_data(result: AuditResult, *, frame: Any, ids: list[str] | None, threshold: float) -> dict[str, Any]:
    """Return everything that the page's script reads, one list a column."""
    columns, cells = _cells(frame)
    names, codes = (None, None)
    if result.groups is not None:
        names, codes = np.unique(result.groups, return_inverse=True)
    groups = result.group_ranking(threshold)
    classes = [str(c) for c in result.classes.tolist()]
    bits = (result.holds @ (1 << np.arange(result.holds.shape[1]))).tolist()
    key = hashlib.sha256(result.given.tobytes() + result.suspicion.tobytes()).hexdigest()[:16]
    spread = np.ptp(result.place, axis=0)
    place = (result.place - result.place.min(axis=0)) / np.where(spread > 0, spread, 1)
    return {
        "key": key,
        "threshold": threshold,
        "classes": classes,
        "reasons": list(REASONS),
        "ids": ids,
        "given": result.given.tolist(),
        "suggested": result.suggested.tolist(),
        "suspicion": np.round(result.suspicion, 8).tolist(),
        "model": np.round(result.disagreement, 3).tolist(),
        "near": np.round(result.neighbour_disagreement, 3).tolist(),
        "why": bits,
        "neighbours": result.neighbours.tolist(),
        "x": np.round(place[:, 0], 4).tolist(),
        "y": np.round(place[:, 1], 4).tolist(),
        "map": result.map_name,
        "columns": columns,
        "cells": cells,
        "groupNames": None if names is None else names.tolist(),
        "group": None if codes is None else codes.tolist(),
        "groups": None if groups is None else groups.round(4).to_dict(orient="records"),
        "confusion": result.confusion(threshold).tolist(),
        "path": result.path,
    }


def _cells(frame: Any) -> tuple[list[str], list[list[str]]]:
    """Names and texts of the columns to show; texts are cut so that the page stays a size that browsers open."""
    if frame is None:
        return [], []
    names = list(frame.columns)[:MOST_COLUMNS]
    texts = [_texts(frame[name]) for name in names]
    lengths = np.array([[len(text) for text in column] for column in texts])
    longest = next((most for most in _CUTS if np.minimum(lengths, most).sum() <= _DETAIL_CHARACTERS), _CUTS[-1])
    cut = [[t if len(t) <= longest else t[: longest - 1] + "…" for t in column] for column in texts]
    return [str(name) for name in names], cut


def _texts(column: Any) -> list[str]:
    values = column.astype(object).where(column.notna(), "").tolist()
    return [f"{value:.6g}" if isinstance(value, float) else str(value) for value in values]
