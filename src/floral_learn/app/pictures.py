"""Pictures as a table: a folder with one folder per class, a .zip of one, or a table with a column of pictures.

A folder becomes a list of its pictures, a CSV file in the user's cache folder with the columns `file` and `label`; from
there on it is a table like any other, whose rows are learned from by their pictures. Pictures inside a table become
files in that cache. Pictures are also looked at whatever their label says: unreadable, blank, dark, odd, there twice.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import TransformerMixin

from floral_learn.app.tables.source import as_labels, open_source, picture_names, table_suffix
from floral_learn.base import TableError
from floral_learn.base.cells import short
from floral_learn.base.estimator import Estimator
from floral_learn.base.files import sha256, user_cache, write_atomically
from floral_learn.encoders.embedding import EmbeddingCache, Progress, embed
from floral_learn.encoders.pictures import PICTURE_NAMES, picture_content, picture_digest, upright

from .terminal import progress_bar, say

FILE, LABEL = "file", "label"  # the columns of a list of pictures
_ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet", ".xlsx")
# Names that only a server or a store can open: addresses, and what Label Studio writes for files that it keeps.
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|/data/(upload|local-files)/")


class GivenEmbeddings(TransformerMixin, Estimator):
    """Vectors that the caller made, in the order of the rows; a model file holds none of them."""

    vectors: Any = None

    def fit(self, X: Any, y: Any = None) -> GivenEmbeddings:
        """Nothing to learn."""
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The vectors, one per row of X."""
        if self.vectors is None or len(self.vectors) != len(X):
            raise TableError("this model was trained on embeddings: give those of the new rows with --embeddings")
        return self.vectors

    @property
    def notes_(self) -> list[str]:
        """What is learned from, for people."""
        return ["rows: embeddings as given, in place of the columns"]

    @property
    def as_text(self) -> list[str]:
        """Columns that a table must keep as text: none."""
        return []

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __sklearn_is_fitted__(self) -> bool:
        return True


def find_pictures(source: Path, columns: Any, labelled: bool = True) -> tuple[Path, Any]:
    """The table behind `source`, and the options with which to read it; both as they are where it is a table.

    A folder need not have one folder per class where it is not `labelled`.
    """
    if source.suffix.lower() == ".zip":
        source = _unpacked(source)
        tables = [path for path in _files(source) if path.suffix.lower() in _ENDINGS]
        if len(tables) > 1:
            some = ", ".join(path.name for path in tables[:5])
            raise TableError(f"{source.name} holds {len(tables)} tables ({some}); unpack it and name one")
        if tables:
            source = tables[0]
    if source.is_dir():
        listed, problems = list_folder(source, labelled)
        digest = hashlib.sha256(os.fsencode(source.resolve())).hexdigest()
        place = user_cache() / "pictures" / digest[:12]
        place.mkdir(parents=True, exist_ok=True)
        stream = io.StringIO()
        # names as they are, not guarded
        csv.writer(stream, lineterminator="\n").writerows([[FILE, LABEL], *listed])
        table = write_atomically(place / f"{source.resolve().name}.csv", stream.getvalue())
        read = {"label": LABEL if labelled else None, "image": FILE, "image_folder": source}
        return table, replace(columns, **read, strays=tuple(problems))
    if columns.label is None and labelled:
        raise TableError("--label is missing: the label column; only a folder of pictures needs none")
    if columns.image is not None and table_suffix(source) in (".parquet", ".pq"):
        opened = open_source(source, None, None)
        cells = opened.cells(opened.position(columns.image))
        names = picture_names(cells) or []
        inside = {name: cell["bytes"] for name, cell in zip(names, cells) if cell and cell["bytes"] is not None}
        if inside:
            columns = replace(columns, image_folder=_kept_inside(inside))
    if columns.image is not None and columns.image_folder is None:
        columns = replace(columns, image_folder=source.parent)
    return source, columns


def list_folder(folder: Path, labelled: bool = True) -> tuple[list[list[str]], list[tuple[str, str]]]:
    """The pictures of a folder with one folder per class, as [file, label], and the files that are none of them.

    A folder with nothing but one folder in it stands for that one.
    """
    inside = _seen(folder)
    alone = len(inside) == 1 and inside[0].is_dir()
    if alone and any(path.is_dir() for path in _seen(inside[0])):
        rows, problems = list_folder(inside[0], labelled)
        name = inside[0].name
        rows = [[f"{name}/{file}", label] for file, label in rows]
        return rows, [(f"{name}/{file}", why) for file, why in problems]
    top, rows, problems = folder.resolve(), [], []
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        if not name.isprintable():
            problems.append((repr(name), "has a name with characters that are no text"))
        elif path.is_dir():
            problems.append((name, "is a link to a folder, which is not followed"))
        elif not path.name.lower().endswith(PICTURE_NAMES):
            problems.append((name, "is no picture, by its name"))
        elif not path.resolve().is_relative_to(top):
            problems.append((name, "is a link out of the folder"))
        elif path.parent == folder and labelled:
            problems.append((name, "lies in no class's folder"))
        else:
            rows.append([name, path.relative_to(folder).parts[0]])
    if not rows:
        found = f"; {problems[0][0]} {problems[0][1]}" if problems else ""
        where = " in folders, one folder per class" if labelled else ""
        raise TableError(f"{folder} has no pictures{where}{found}")
    names = sorted({label for _, label in rows})
    _, blank = as_labels(names, f"{folder}: the names of its folders")
    if labelled and blank.any():
        raise TableError(f"{folder}: the folder {names[int(blank.argmax())]!r} reads as a missing label; rename it")
    return rows, problems


def read_pictures(table: Any, columns: Any) -> Any:
    """`table` with an encoder of its pictures, or of the embeddings that were given, in place of its columns.

    What is wrong with the pictures goes into ``columns.problems``. Those that cannot be read are left out with
    --skip-unreadable, and stop the command without.
    """
    if columns.embeddings is not None:
        table = replace(table, encoder=GivenEmbeddings())
        table.encoder.vectors = read_embeddings(columns.embeddings, table.source.n_rows)[table.rows]
    if columns.image is None:
        return table
    from floral_learn.encoders import ImageEncoder

    if not 32 <= columns.image_size <= 1024:
        raise TableError(f"--image-size {columns.image_size} must be from 32 to 1024 pixels")
    if columns.image not in table.features.columns:
        raise TableError(f"--image {columns.image!r} is no column with the names of pictures")
    files = ["" if name is None else str(name) for name in table.features[columns.image]]
    table, files = _local(table, files, columns)
    with progress_bar("look at the pictures") as update:
        found = look_at_pictures(files, folder=columns.image_folder, progress=lambda done, of, _: update(done, of))
    bad = {row for row, problem, _, _ in found if problem == "unreadable"}
    for name, why in columns.strays:
        problem = "no picture" if why == "is no picture, by its name" else "left out"
        columns.problems.append((name, problem, why))
    for row, problem, detail, other in found:
        twin = "" if other < 0 else f" as {files[other]}"
        columns.problems.append((files[row], problem, detail + twin))
    _tell(columns.problems, columns.skip_unreadable)
    if bad:
        keep = np.array([row for row in range(len(files)) if row not in bad], dtype=int)
        table, files = _some_rows(table, keep), [files[row] for row in keep]
    if table.ids is None:
        table = replace(table, ids=np.array(files, dtype=object))
    if table.encoder is not None:
        return table
    encoder = ImageEncoder(size=columns.image_size, column=columns.image, folder=str(columns.image_folder))
    with progress_bar("pictures into numbers") as update:
        encoder.encode(files, progress=lambda done, of, _: update(done, of))
    return replace(table, encoder=encoder)


def _local(table: Any, files: list[str], columns: Any) -> tuple[Any, list[str]]:
    """The rows whose pictures are files of this machine, and their names; others are one line."""
    away = np.array([bool(_REMOTE.match(name)) for name in files])
    if not away.any():
        return table, files
    first = short(files[away.argmax()])
    said = f"{away.sum():,} of {len(files):,} pictures are not on this machine, such as {first}"
    if not columns.skip_unreadable:
        raise TableError(f"{said}: nothing is fetched; download them, or leave them out with --skip-unreadable")
    say(f"  left out: {said}")
    remote = [name for name in files if _REMOTE.match(name)]
    columns.problems.extend((name, "left out", "is not on this machine") for name in remote)
    if away.all():
        raise TableError("no row with a picture is left")
    rows = np.flatnonzero(~away)
    return _some_rows(table, rows), [files[row] for row in rows]


def read_embeddings(path: Path, n: int) -> np.ndarray:
    """The array (n, d) of finite numbers in a .npy file."""
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise TableError(f"--embeddings {path} is no readable .npy file ({error})") from None
    if not isinstance(found, np.ndarray) or found.ndim != 2 or found.dtype.kind not in "fiu":
        raise TableError(f"--embeddings {path} must hold an array of numbers, one row of them per row of DATA")
    if len(found) != n:
        raise TableError(f"--embeddings {path} has {len(found):,} rows and DATA has {n:,}")
    if not np.isfinite(found).all():
        raise TableError(f"--embeddings {path} holds NaN or infinity")
    return found.astype(np.float32)


def _tell(problems: list[tuple[str, str, str]], skip: bool, most: int = 20) -> None:
    """Say what cannot be used, a line for each of the first, and stop unless it is to be left out; count the rest."""
    useless = [line for line in problems if line[1] in ("left out", "unreadable")]
    for name, _, why in useless[:most]:
        say(f"  {name} {why}", err=not skip)
    if len(useless) > most:
        say(f"  and {len(useless) - most:,} more", err=not skip)
    files = "file" if len(useless) == 1 else "files"
    if useless and not skip:
        raise TableError(f"{len(useless):,} {files} cannot be used; --skip-unreadable goes on without them")
    counts = Counter(kind for _, kind, _ in problems if kind not in ("left out", "unreadable"))
    if counts:
        kinds = ", ".join(f"{kind} {n:,}" for kind, n in sorted(counts.items()))
        say(f"  files to look at: {kinds}")


def _some_rows(table: Any, keep: np.ndarray) -> Any:
    """Some rows of a table; a copy with new labels still has all rows of its file."""
    some = {}
    for name in ("labels", "ids", "groups", "weights", "trusted", "rows"):
        values = getattr(table, name)
        some[name] = None if values is None else values[keep]
    if table.encoder is not None:
        table.encoder.vectors = table.encoder.vectors[keep]
    return replace(table, features=table.features.iloc[keep].reset_index(drop=True), **some)


def _seen(folder: Path) -> list[Path]:
    """What lies in a folder, without what systems put there."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith((".", "__MACOSX", "Thumbs.db")))


def _files(folder: Path) -> Iterator[Path]:
    """All files below a folder, and links to folders, which are not followed."""
    for path in _seen(folder):
        if path.is_dir() and not path.is_symlink():
            yield from _files(path)
        else:
            yield path


def _unpacked(path: Path) -> Path:
    """The files of a .zip in the user's cache folder, where they stay: pages and later commands show them."""

    def unpack(part: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
            free = shutil.disk_usage(path.parent).free
            if size > free / 2:
                raise TableError(f"{path} unpacks to {size:,} bytes, and {free:,} are free; unpack it yourself")
            archive.extractall(part)  # zipfile keeps names inside and writes no links

    try:
        return _kept(sha256(path), path.stem, unpack)
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise TableError(f"{path} is no readable .zip file ({error})") from None


def _kept_inside(pictures: dict[str, bytes]) -> Path:
    """Pictures that lie inside a table as files of these names in the user's cache folder."""
    digest = hashlib.sha256()
    for name, content in pictures.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)

    def write(part: Path) -> None:
        part.mkdir()
        for name, content in pictures.items():
            (part / name).write_bytes(content)

    return _kept(digest.hexdigest(), "pictures", write)


def _kept(digest: str, name: str, make: Callable[[Path], None]) -> Path:
    """A folder of the user's cache that `make` fills once; whoever stops on the way leaves none."""
    place = user_cache() / "pictures" / digest[:16] / name
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f"{name}.{os.getpid()}.part")
        make(part)
        part.rename(place)
    return place


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
    >>> from floral_learn.app.pictures import look_at_pictures
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
    rows = [row for row in range(len(items)) if row not in unreadable]
    if not rows:
        return sorted(found)
    width, height, spread, light = facts[rows, :4].T
    side, shape = np.log(width * height) / 2, np.abs(np.log(width / height))
    sizes = [f"{w:.0f} x {h:.0f} pixels" for w, h in zip(width, height, strict=True)]
    kinds = {
        "blank": (spread <= blank, ["one colour all over"] * len(rows)),
        "dark": ((light < dark) & (spread > blank), ["nearly black"] * len(rows)),
        "size": (np.abs(side - np.median(side)) > np.log(times), sizes),
        "shape": (shape - np.median(shape) > np.log(times), sizes),
    }
    for kind, (holds, words) in kinds.items():
        found += [PictureProblem(rows[i], kind, words[i]) for i in np.flatnonzero(holds)]
    twins = _twins(facts[rows, 4:], [names[row] for row in rows], alike, blank)
    found += [PictureProblem(rows[i], problem, why, rows[other]) for i, other, problem, why in twins]
    return sorted(found)


def _measured(content: Any, grid: int = 16) -> np.ndarray:
    """Width, height, spread, a high quantile, and a grey sketch of a picture, (4 + grid^2,)."""
    image, size = upright(content, 8 * grid)
    image = image.convert("L")
    grey = np.asarray(image, dtype=np.float32) / 255
    sketch = np.asarray(image.resize((grid, grid), resample=4), dtype=np.float32) / 255  # box
    return np.array([*size, grey.std(), np.quantile(grey, 0.95), *sketch.ravel()], dtype=np.float32)


def _twins(sketches: np.ndarray, names: list[str], alike: float, blank: float) -> Iterator[tuple[int, int, str, str]]:
    """Each picture that an earlier one repeats, once; blank ones are all alike and left out."""
    first: dict[str, int] = {}
    centred = sketches - sketches.mean(axis=1, keepdims=True)
    telling = centred.std(axis=1) > blank
    centred /= np.where(telling, np.linalg.norm(centred, axis=1), 1)[:, None]
    for i, name in enumerate(names):
        if name in first:
            yield i, first[name], "duplicate", "the same file content"
            continue
        first[name] = i
        near = np.flatnonzero((centred[:i] @ centred[i] >= alike) & telling[:i])
        if telling[i] and len(near):
            yield i, int(near[0]), "near duplicate", "looks the same"
