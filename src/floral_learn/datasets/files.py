"""Find a data file: ``data_home`` -> ``$FLORAL_DATA`` -> the user's cache."""

import os
from pathlib import Path

from floral_learn.base.files import sha256, user_cache


class DataNotFoundError(FileNotFoundError):
    """A data file is in none of the folders; the message says where it was looked for.

    Examples
    --------
    >>> import os
    >>> from unittest.mock import patch
    >>> from floral_learn import load_moon
    >>> from floral_learn.datasets import DataNotFoundError
    >>> with patch.dict(os.environ, {"FLORAL_DATA": "", "XDG_CACHE_HOME": "/nowhere"}):
    ...     try:
    ...         load_moon(labels="lfa-10", data_home="/nowhere")
    ...     except DataNotFoundError as error:
    ...         print(str(error)[:46])
    moon_reference_seed42.npz not found in /nowher
    """


def search_path(data_home: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the folders that are searched, in order; a given ``data_home`` is searched first."""
    folders = [Path(data_home)] if data_home is not None else []
    if os.environ.get("FLORAL_DATA"):
        folders.append(Path(os.environ["FLORAL_DATA"]))
    return [*folders, user_cache()]


def find_file(
    name: str, *, checksum: str | None = None, data_home: str | os.PathLike[str] | None = None, hint: str = ""
) -> Path:
    """Return the path of data file ``name``; DataNotFoundError, with the hint, where it is in no searched folder.

    ``checksum`` is the SHA-256 of the file in its published form; a file that differs is refused,
    since results would silently differ too.
    """
    folders = search_path(data_home)
    path = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if path is None:
        raise DataNotFoundError(f"{name} not found in {', '.join(map(str, folders))}. {hint}".rstrip())
    if checksum is not None and (found := sha256(path)) != checksum:
        raise ValueError(
            f"{path} is not the expected file (SHA-256 {found[:12]}, expected {checksum[:12]}): "
            "remove it or point data_home elsewhere"
        )
    return path
