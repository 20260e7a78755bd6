"""One self-contained HTML file that shows an audit to people: no network, no build step, data inside."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from floral_learn.app.pages import most_telling, render_page
from floral_learn.audit.result import LabelIssues, sentences
from floral_learn.base.files import write_atomically
from floral_learn.base.frames import as_pandas
from floral_learn.encoders.pictures import Unreadable, thumbnail

MOST_COLUMNS = 30
REASON_TEXTS = ("model disagrees", "neighbours disagree", "equal row, other label", "class too small", "source")
_CHARACTERS = 25_000_000  # of cells in the page: longer texts are cut where there are many rows
MOST_BYTES = 5_000_000  # of small pictures inside the page: more lie in a folder beside it
FOLDER = "thumbnails"


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
    most_rows: int = 20_000,
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
        Rows in the page, the most doubtful ones and their neighbours; issues.csv has all of them. A browser opens
        20,000 in a second.
    lead : list of str, optional
        What the page says first, in place of the audit's own sentences, where scores come from elsewhere.
    pictures : PagePictures, optional
        The picture of each row.
    """
    data = page_data(result, frame=frame, ids=ids, most_rows=most_rows)
    if pictures is not None:
        first = [*result.near_duplicate_pairs.ravel().tolist(), *result.ranking.tolist()]
        rows = _kept(result, most_rows).tolist()
        data["pictures"] = pictures.of(rows, list(dict.fromkeys(first)))
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


def page_data(result: LabelIssues, *, frame: Any, ids: list[str] | None, most_rows: int = 20_000) -> dict[str, Any]:
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
    lowest, spread = result.map_position.min(axis=0), np.ptp(result.map_position, axis=0)
    place = (result.map_position - lowest) / np.where(spread > 0, spread, 1)
    given = result.given[kept]
    support = result.probability[kept, given].astype(float)
    return {
        "key": key,
        "flagged": result.flagged[kept].tolist(),
        "total": len(result),
        "classes": [str(c) for c in result.classes.tolist()],
        "reasons": list(REASON_TEXTS),
        "rows": result.row_numbers[kept].tolist(),
        "ids": None if ids is None else [ids[row] for row in kept],
        "given": given.tolist(),
        "suggested": result.suggested[kept].tolist(),
        "score": result.score[kept].tolist(),  # all digits: the page sorts by it as `ranking` does
        "model": np.round(1 - support, 3).tolist(),
        "near": np.round(result.neighbour_disagreement[kept], 3).tolist(),
        "why": bits,
        "neighbours": [near[near >= 0].tolist() for near in place_of[result.neighbours[kept]]],
        "twins": _twins(result, place_of),
        "x": np.round(place[kept, 0], 4).tolist(),
        "y": np.round(place[kept, 1], 4).tolist(),
        "map": result.map_method,
        "columns": columns,
        "first": [] if shown is None else most_telling(shown.iloc[:, :MOST_COLUMNS], given),
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
    decided = np.array([d.position for d in result.decisions], dtype=int)
    doubtful, others = np.split(result.ranking, [most // 2])
    first = np.unique(np.concatenate([decided, doubtful]))
    near = result.neighbours[doubtful].ravel()
    wanted = np.concatenate([first, result.near_duplicate_pairs.ravel(), near, others])
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
    # halved until all fit: no table makes a page that no browser opens
    longest = int(lengths.max(initial=1))
    while longest > 1 and np.minimum(lengths, longest).sum() > _CHARACTERS:
        longest //= 2
    cut = [[t if len(t) <= longest else t[: longest - 1] + "…" for t in column] for column in texts]
    return [str(name) for name in names], cut


def _texts(column: Any) -> list[str]:
    values = column.astype(object).where(column.notna(), "").tolist()
    return [f"{value:.6g}" if isinstance(value, float) else str(value) for value in values]


@dataclass
class PagePictures:
    """The pictures of all rows, for a page in the folder `out`.

    Parameters
    ----------
    paths : sequence of paths
        The picture of each row.
    out : path
        The page's folder.
    most : int
        Small pictures, of the most doubtful rows; of others the page shows the original once they are opened.
    """

    paths: Sequence[Path]
    out: Path
    most: int = 2000
    files: dict[Path, bytes] = field(default_factory=dict)  # what must be written beside the page

    def of(self, rows: list[int], first: list[int]) -> dict[str, list[str | None]]:
        """Where the page finds the small picture and the original of `rows`; those of `first` get small ones."""
        wanted = [row for row in first if row in set(rows)][: self.most]
        with ThreadPoolExecutor() as pool:
            made = dict(zip(wanted, pool.map(self._small, wanted), strict=True))
        small = {row: content for row, content in made.items() if content}
        if sum(map(len, small.values())) * 4 / 3 <= MOST_BYTES:
            coded = {row: base64.b64encode(raw).decode() for row, raw in small.items()}
            where = {row: f"data:image/jpeg;base64,{text}" for row, text in coded.items()}
        else:
            where = {row: f"{FOLDER}/{row}.jpg" for row in small}
            self.files = {self.out / where[row]: raw for row, raw in small.items()}
        originals = [Path(os.path.relpath(self.paths[row], self.out)) for row in rows]
        large = [quote(path.as_posix()) for path in originals]
        return {"small": [where.get(row) for row in rows], "large": [*large]}

    def _small(self, row: int) -> bytes:
        try:
            return thumbnail(self.paths[row])
        except Unreadable:
            return b""
