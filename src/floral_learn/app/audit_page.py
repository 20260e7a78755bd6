"""One self-contained HTML file that shows an audit to people: no network, no build step, data inside."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.app.pages import render_page
from floral_learn.app.thumbnails import PagePictures
from floral_learn.audit.result import LabelIssues, sentences
from floral_learn.base.files import write_atomically
from floral_learn.base.frames import as_pandas

MOST_COLUMNS = 30
MOST_ROWS = 20_000  # in the page; a browser opens that in a second
REASON_TEXTS = ("model disagrees", "neighbours disagree", "equal row, other label", "class too small", "source")
_DETAIL_CHARACTERS = 25_000_000  # of cells in the page: longer texts are cut where there are many rows
_CUTS = (2000, 1000, 500, 250, 120, 60, 30)


def write_audit_page(result: LabelIssues, path: str | Path, **details: Any) -> None:
    """Write the page for `result` to `path`; `details` go to `render`."""
    write_atomically(path, render(result, **details))


def render(
    result: LabelIssues,
    *,
    title: str = "Label audit",
    frame: Any = None,
    ids: list[str] | None = None,
    notes: list[str] | None = None,
    most_rows: int = MOST_ROWS,
    lead: list[str] | None = None,
    pictures: PagePictures | None = None,
) -> str:
    """Return the page for `result`.

    Parameters
    ----------
    title : str
        Heading, such as the file's name.
    frame : pandas.DataFrame, optional
        The original columns, shown in the list and when a row is opened; by default those of the audited table.
    ids : list of n texts, optional
        Names of the rows; by default those of the audit, or their numbers.
    notes : list of str, optional
        How the features were made, shown to the reader, in place of the audit's own notes.
    most_rows : int
        Rows in the page, the most doubtful ones and their neighbours; issues.csv has all of them.
    lead : list of str, optional
        What the page says first, in place of the audit's own sentences, where scores come from elsewhere.
    pictures : PagePictures, optional
        The picture of each row.
    """
    data = page_data(result, frame=frame, ids=ids, most_rows=most_rows)
    if pictures is not None:
        first = [*result.near_duplicate_pairs.ravel().tolist(), *result.ranking.tolist()]
        data["pictures"] = pictures.of(_kept(result, most_rows).tolist(), list(dict.fromkeys(first)))
    return render_page(
        "audit",
        title=title,
        data=data,
        names=result.class_notes,
        sentences=sentences(result) if lead is None else lead,
        stopped=lead is None and not result.informative,
        notes=result.notes if notes is None else notes,
        shown=len(data["given"]),
        total=len(result),
        has_groups=result.groups is not None,
        has_content=bool(data["columns"]),
        has_pictures=pictures is not None,
    )


def page_data(result: LabelIssues, *, frame: Any, ids: list[str] | None, most_rows: int = MOST_ROWS) -> dict[str, Any]:
    """Return everything that the page's script reads, one list per column; rows are those that the page holds."""
    kept = _kept(result, most_rows)
    place_of = np.full(len(result), -1)
    place_of[kept] = np.arange(len(kept))
    frame = result.columns if frame is None else frame
    shown = None if frame is None else as_pandas(frame).iloc[kept]
    columns, cells = _cells(shown)
    ids = result.ids if ids is None else ids
    names, codes = (None, None)
    if result.groups is not None:
        names, codes = np.unique(result.groups, return_inverse=True)
    groups = result.group_ranking()
    bits = (result.reasons[kept] @ (1 << np.arange(result.reasons.shape[1]))).tolist()
    key = hashlib.sha256(result.given.tobytes() + result.score.tobytes()).hexdigest()[:16]
    spread = np.ptp(result.map_position, axis=0)
    place = (result.map_position - result.map_position.min(axis=0)) / np.where(spread > 0, spread, 1)
    return {
        "key": key,
        "flagged": result.flagged[kept].tolist(),
        "total": len(result),
        "classes": [str(c) for c in result.classes.tolist()],
        "reasons": list(REASON_TEXTS),
        "rows": result.row_numbers[kept].tolist(),
        "ids": None if ids is None else [ids[row] for row in kept],
        "given": result.given[kept].tolist(),
        "suggested": result.suggested[kept].tolist(),
        "score": result.score[kept].tolist(),  # all digits: the page sorts by it as `ranking` does
        "model": np.round(1 - result.probability[kept, result.given[kept]].astype(float), 3).tolist(),
        "near": np.round(result.neighbour_disagreement[kept], 3).tolist(),
        "why": bits,
        "neighbours": [[int(j) for j in place_of[row] if j >= 0] for row in result.neighbours[kept]],
        "twins": _twins(result, place_of),
        "x": np.round(place[kept, 0], 4).tolist(),
        "y": np.round(place[kept, 1], 4).tolist(),
        "map": result.map_method,
        "columns": columns,
        "first": [] if shown is None else _most_informative(shown, result.given[kept]),
        "cells": cells,
        "groupNames": None if names is None else names.tolist(),
        "group": None if codes is None else codes[kept].tolist(),
        "groups": None if groups is None else _ranking(groups),
        "confusion": result.confusion().tolist(),
        "decisions": [
            [int(place_of[d.position]), d.kind, str(d.label), d.reviewer, d.note, d.given]
            for d in result.decisions
            if place_of[d.position] >= 0
        ],
    }


def _ranking(groups: Any) -> list[dict[str, Any]]:
    """The ranking as records; what is not known (a source none of whose rows could be judged) is None."""
    return groups.round(4).astype(object).where(groups.notna(), None).to_dict(orient="records")


def _kept(result: LabelIssues, most: int) -> np.ndarray:
    """Positions of the rows that the page holds, in their order: decided ones, the most doubtful, neighbours."""
    if len(result) <= most:
        return np.arange(len(result))
    first = np.unique(np.concatenate([[d.position for d in result.decisions], result.ranking[: most // 2]]).astype(int))
    near = result.neighbours[result.ranking[: most // 2]].ravel()
    wanted = np.concatenate([first, result.near_duplicate_pairs.ravel(), near, result.ranking[most // 2 :]])
    _, place = np.unique(wanted, return_index=True)
    return np.sort(wanted[np.sort(place)[:most]])


def _twins(result: LabelIssues, place_of: np.ndarray) -> dict[str, list[int]]:
    """For each row of the page with nearly equal rows of other labels, where these are."""
    out: dict[str, list[int]] = {}
    for a, b in place_of[result.near_duplicate_pairs.reshape(-1, 2)].tolist():
        if a >= 0 and b >= 0:
            out.setdefault(str(a), []).append(b)
            out.setdefault(str(b), []).append(a)
    return out


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


def _most_informative(frame: Any, given: np.ndarray) -> list[int]:
    """The shown columns, first those that say most about the given label: the list has room for a few of them.

    Numbers by the share of their variance between the classes (the correlation ratio), other columns of few values by
    the square of Cramer's V; what is different in nearly every row says nothing this way.
    """
    shares = [_variance_between_classes(frame[name], given) for name in list(frame.columns)[:MOST_COLUMNS]]
    return np.argsort([-value for value in shares], kind="stable").tolist()


def _variance_between_classes(column: Any, given: np.ndarray) -> float:
    """How much of a column's variance, in [0, 1], is between the classes."""
    known = column.notna().to_numpy()
    labels = given[known]
    if column.dtype.kind in "iuf":
        values = column[known].to_numpy(dtype=float)
        spread = np.var(values[np.isfinite(values)]) if np.isfinite(values).all() and len(values) else 0.0
        if not spread > 0:
            return 0.0
        means = np.bincount(labels, values) / np.maximum(np.bincount(labels), 1)
        return float(np.mean((means[labels] - values.mean()) ** 2) / spread)
    names, codes = np.unique(column[known].astype(str).to_numpy(dtype=str), return_inverse=True)
    if not 2 <= len(names) <= max(2, len(labels) // 10):
        return 0.0
    table = np.zeros((len(names), int(given.max()) + 1))
    np.add.at(table, (codes, labels), 1)
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(((table - expected) ** 2 / expected).sum() / (table.sum() * (min(table.shape) - 1)))


def _texts(column: Any) -> list[str]:
    values = column.astype(object).where(column.notna(), "").tolist()
    return [f"{value:.6g}" if isinstance(value, float) else str(value) for value in values]
