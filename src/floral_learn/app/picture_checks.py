"""Pictures to look at whatever their label says: unreadable, blank, dark, of an odd size or shape, or there twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from floral_learn.encoders.embedding import EmbeddingCache, Progress, embed
from floral_learn.encoders.pictures import picture_content, picture_digest, upright

_GRID = 16  # pixels a side of the grey sketch by which pictures are compared


class PictureProblem(NamedTuple):
    """One finding: the row, what it is, in words why, and the other row of a pair (-1 for none)."""

    row: int
    problem: str
    detail: str
    other: int = -1


def look_at_pictures(
    pictures: Any,
    *,
    folder: Any = None,
    blank: float = 0.01,
    dark: float = 0.15,
    times: float = 5.0,
    alike: float = 0.99,
    cache: Any = True,
    progress: Progress | None = None,
) -> list[PictureProblem]:
    """List pictures that cannot be read, or are blank, dark, of an odd size or shape, or duplicates.

    Parameters
    ----------
    pictures : list, Series or array
        As for `ImageEncoder`.
    folder : path, optional
        Where relative paths begin.
    blank : float, default=0.01
        Standard deviation of the grey values, of 0 to 1, up to which a picture shows nothing.
    dark : float, default=0.15
        Grey value below which 95 % of a dark picture's pixels lie.
    times : float, default=5.0
        How many times larger, smaller or more oblong than the median an odd picture is.
    alike : float, default=0.99
        Correlation of two sketches of 16 x 16 grey values from which pictures count as near duplicates. Of 300 small
        photographs 95 % of the copies lie above it that are twice as large or JPEG of quality 50, and no two of 1,500
        different ones.
    cache : bool or path, default=True
        Whether what was measured is kept, as in `ImageEncoder`.
    progress : callable(done, total, seconds_left), optional
        Told how much is done.

    Returns
    -------
    list of PictureProblem
        By row; ``problem`` is "unreadable", "blank", "dark", "size", "shape", "duplicate" or "near duplicate".

    Examples
    --------
    >>> import numpy as np
    >>> from floral_learn.app.picture_checks import look_at_pictures
    >>> rng = np.random.default_rng(0)
    >>> pictures = rng.integers(0, 256, (4, 16, 16, 3)).astype(np.uint8)
    >>> pictures[1], pictures[3] = 0, pictures[2]
    >>> [(found.row, found.problem) for found in look_at_pictures(pictures, cache=False)]
    [(1, 'blank'), (3, 'duplicate')]
    """
    top = None if folder is None else Path(folder)
    items = pictures if isinstance(pictures, np.ndarray) else list(pictures)
    names: dict[int, str] = {}

    def digest(row: int) -> str:
        names[row] = picture_digest(picture_content(items[row], top))
        return names[row]

    place = None if isinstance(cache, bool) else Path(cache)
    facts, unreadable = embed(
        range(len(items)),
        digest=digest,
        read=lambda row: _measured(picture_content(items[row], top)),
        compute=np.stack,
        cache=None if cache is False else EmbeddingCache("facts", place),
        batch_size=64,
        progress=progress,
    )
    found = [PictureProblem(row, "unreadable", why) for row, why in unreadable.items()]
    rows = np.array([row for row in range(len(items)) if row not in unreadable], dtype=int)
    if len(rows):
        found += _odd(rows, *facts[rows, :4].T, blank=blank, dark=dark, times=times)
        found += _twice(rows, facts[rows, 4:], [names[row] for row in rows], alike, blank)
    return sorted(found)


def _measured(content: Any) -> np.ndarray:
    """Width, height, spread, a high quantile, and a grey sketch of a picture, (4 + 256,)."""
    image, size = upright(content, 8 * _GRID)
    grey = np.asarray(image.convert("L"), dtype=np.float32) / 255
    sketch = np.asarray(image.convert("L").resize((_GRID, _GRID), resample=4), dtype=np.float32) / 255  # box
    return np.array([*size, grey.std(), np.quantile(grey, 0.95), *sketch.ravel()], dtype=np.float32)


def _odd(
    rows: np.ndarray,
    width: np.ndarray,
    height: np.ndarray,
    spread: np.ndarray,
    light: np.ndarray,
    *,
    blank: float,
    dark: float,
    times: float,
) -> list[PictureProblem]:
    side = np.log(width * height) / 2
    shape = np.log(np.maximum(width, height) / np.minimum(width, height))
    kinds = {
        "blank": spread <= blank,
        "dark": (light < dark) & (spread > blank),
        "size": np.abs(side - np.median(side)) > np.log(times),
        "shape": shape - np.median(shape) > np.log(times),
    }
    words = {"blank": "one colour all over", "dark": "nearly black"}
    return [
        PictureProblem(int(rows[i]), kind, words.get(kind, f"{int(width[i])} x {int(height[i])} pixels"))
        for kind, holds in kinds.items()
        for i in np.flatnonzero(holds)
    ]


def _twice(
    rows: np.ndarray, sketches: np.ndarray, names: list[str], alike: float, blank: float
) -> list[PictureProblem]:
    """Each picture that an earlier one repeats, once; blank ones are all alike and left out."""
    first: dict[str, int] = {}
    centred = sketches - sketches.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    centred /= np.where(length > 0, length, 1)
    telling = length[:, 0] > blank * _GRID
    found = []
    for i, (row, name) in enumerate(zip(rows.tolist(), names, strict=True)):
        if name in first:
            found.append(PictureProblem(row, "duplicate", "the same file content", int(rows[first[name]])))
            continue
        first[name] = i
        near = np.flatnonzero((centred[:i] @ centred[i] >= alike) & telling[:i])
        if telling[i] and len(near):
            found.append(PictureProblem(row, "near duplicate", "looks the same", int(rows[near[0]])))
    return found
