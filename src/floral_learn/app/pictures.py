"""Pictures as a table: a folder with one folder per class, a .zip of one, or a table with a column of file names.

A folder becomes a list of its pictures, a CSV file in the user's cache folder with the columns `file` and `label`; from
there on it is a table like any other, whose rows are learned from by their pictures.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin

from floral_learn.app.picture_checks import PictureProblem, look_at_pictures
from floral_learn.app.tables.labels import as_labels
from floral_learn.app.tables.source import table_suffix
from floral_learn.base import TableError
from floral_learn.base.cells import csv_bytes
from floral_learn.base.estimator import Estimator
from floral_learn.base.files import sha256, user_cache, write_atomically
from floral_learn.encoders.pictures import PICTURE_NAMES

from .terminal import progress_bar, say

FILE, LABEL = "file", "label"  # the columns of a list of pictures
_SHOWN = 20  # problems that a command prints one by one; problems.csv has all
_OTHER_FILE = "is no picture, by its name"
_ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet", ".xlsx")


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
        if tables := [path for path in _files(source) if path.suffix.lower() in _ENDINGS]:
            if len(tables) > 1:
                names = ", ".join(path.name for path in tables[:5])
                raise TableError(f"{source.name} holds {len(tables)} tables ({names}); unpack it and name one")
            source = tables[0]
    if source.is_dir() and not table_suffix(source):
        listed, problems = list_folder(source, labelled)
        place = user_cache() / "pictures" / hashlib.sha256(os.fsencode(source.resolve())).hexdigest()[:12]
        place.mkdir(parents=True, exist_ok=True)
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerows([[FILE, LABEL], *listed])  # names as they are, not guarded
        table = write_atomically(place / f"{source.resolve().name}.csv", stream.getvalue())
        read = {"label": LABEL if labelled else None, "image": FILE, "image_folder": source}
        return table, replace(columns, **read, strays=tuple(problems))
    if columns.label is None and labelled:
        raise TableError("--label is missing: the label column; only a folder of pictures needs none")
    if columns.image is not None and columns.image_folder is None:
        columns = replace(columns, image_folder=source.parent)
    return source, columns


def list_folder(folder: Path, labelled: bool = True) -> tuple[list[list[str]], list[tuple[str, str]]]:
    """The pictures of a folder with one folder per class, as [file, label], and the files that are none of them.

    A folder with nothing but one folder in it stands for that one.
    """
    inside = _seen(folder)
    if len(inside) == 1 and inside[0].is_dir() and any(path.is_dir() for path in _seen(inside[0])):
        rows, problems = list_folder(inside[0], labelled)
        name = inside[0].name
        return [[f"{name}/{file}", label] for file, label in rows], [(f"{name}/{f}", why) for f, why in problems]
    top, rows, problems = folder.resolve(), [], []
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        if not name.isprintable():
            problems.append((repr(name), "has a name with characters that are no text"))
        elif path.is_dir():
            problems.append((name, "is a link to a folder, which is not followed"))
        elif not path.name.lower().endswith(PICTURE_NAMES):
            problems.append((name, _OTHER_FILE))
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
    with progress_bar("look at the pictures") as update:
        found = look_at_pictures(files, folder=columns.image_folder, progress=lambda done, of, _: update(done, of))
    bad = {problem.row: problem.detail for problem in found if problem.problem == "unreadable"}
    columns.problems.extend(_problem_lines(files, columns.strays, found))
    _tell(columns.problems, columns.skip_unreadable)
    keep = np.array([row for row in range(len(files)) if row not in bad], dtype=int)
    if bad:
        table = _some_rows(table, keep)
        files = [files[row] for row in keep]
    if table.ids is None:
        table = replace(table, ids=np.array(files, dtype=object))
    if table.encoder is not None:
        table.encoder.vectors = table.encoder.vectors[keep]
        return table
    encoder = ImageEncoder(size=columns.image_size, column=columns.image, folder=str(columns.image_folder))
    with progress_bar("pictures into numbers") as update:
        encoder.encode(files, progress=lambda done, of, _: update(done, of))
    return replace(table, encoder=encoder)


def problems_file(columns: Any) -> bytes:
    """What was found about pictures as problems.csv: file, problem, detail."""
    return csv_bytes(["file", "problem", "detail"], [list(line) for line in columns.problems])


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


def _problem_lines(
    files: list[str], strays: tuple[tuple[str, str], ...], found: list[PictureProblem]
) -> list[tuple[str, str, str]]:
    lines = [(name, "no picture" if why == _OTHER_FILE else "left out", why) for name, why in strays]
    for problem in found:
        other = "" if problem.other < 0 else f" as {files[problem.other]}"
        lines.append((files[problem.row], problem.problem, problem.detail + other))
    return lines


def _tell(problems: list[tuple[str, str, str]], skip: bool) -> None:
    """Say what cannot be used, a line each, and stop unless it is to be left out; count the rest."""
    useless = [line for line in problems if line[1] in ("left out", "unreadable")]
    for name, _, why in useless[:_SHOWN]:
        say(f"  {name} {why}", err=not skip)
    if len(useless) > _SHOWN:
        say(f"  and {len(useless) - _SHOWN:,} more", err=not skip)
    if useless and not skip:
        raise TableError(f"{len(useless):,} files cannot be used; --skip-unreadable goes on without them")
    kinds = [kind for _, kind, _ in problems if kind not in ("left out", "unreadable")]
    counts = [f"{kind} {kinds.count(kind):,}" for kind in sorted(set(kinds))]
    if counts:
        say(f"  files to look at: {', '.join(counts)}")


def _some_rows(table: Any, keep: np.ndarray) -> Any:
    """Some rows of a table; a copy with new labels still has all rows of its file."""
    columns = {name: getattr(table, name) for name in ("labels", "ids", "groups", "weights", "trusted", "rows")}
    some = {name: None if values is None else values[keep] for name, values in columns.items()}
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
    try:
        place = user_cache() / "pictures" / sha256(path)[:16] / path.stem
        if place.is_dir():
            return place
        with zipfile.ZipFile(path) as archive:
            size, free = sum(member.file_size for member in archive.infolist()), shutil.disk_usage(path.parent).free
            if size > free / 2:
                raise TableError(f"{path} unpacks to {size:,} bytes, and {free:,} are free; unpack it yourself")
            place.parent.mkdir(parents=True, exist_ok=True)
            part = place.with_name(f"{place.name}.{os.getpid()}.part")
            archive.extractall(part)  # zipfile keeps names inside and writes no links
            part.rename(place)
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise TableError(f"{path} is no readable .zip file ({error})") from None
    return place
