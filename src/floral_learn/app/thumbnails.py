"""Pictures for the audit's page: small ones inside it or in a folder beside it, and the way to the originals."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from floral_learn.encoders.pictures import Unreadable, thumbnail

SIDE = 112  # pixels
MOST_PICTURES = 2000  # small pictures; of other rows the page shows the original once they are opened
MOST_BYTES = 5_000_000  # of small pictures inside the page
FOLDER = "thumbnails"


@dataclass
class PagePictures:
    """The pictures of all rows, for a page in the folder `out`.

    Parameters
    ----------
    paths : sequence of paths
        The picture of each row.
    out : path
        The page's folder.
    """

    paths: Sequence[Path]
    out: Path
    files: dict[Path, bytes] = field(default_factory=dict)  # what must be written beside the page

    def of(self, rows: list[int], first: list[int]) -> dict[str, list[str | None]]:
        """Where the page finds the small picture and the original of `rows`; those of `first` get small ones."""
        wanted = [row for row in first if row in set(rows)][:MOST_PICTURES]
        with ThreadPoolExecutor() as pool:
            made = dict(zip(wanted, pool.map(self._small, wanted), strict=True))
        small = {row: content for row, content in made.items() if content}
        if sum(map(len, small.values())) * 4 / 3 <= MOST_BYTES:
            where = {row: f"data:image/jpeg;base64,{base64.b64encode(raw).decode()}" for row, raw in small.items()}
        else:
            where = {row: f"{FOLDER}/{row}.jpg" for row in small}
            self.files = {self.out / where[row]: raw for row, raw in small.items()}
        large = [quote(Path(os.path.relpath(self.paths[row], self.out)).as_posix()) for row in rows]
        return {"small": [where.get(row) for row in rows], "large": [*large]}

    def _small(self, row: int) -> bytes:
        try:
            return thumbnail(self.paths[row], SIDE)
        except Unreadable:
            return b""
