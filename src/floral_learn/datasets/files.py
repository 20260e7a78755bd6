"""Find a data file: ``data_home`` -> ``$FLORAL_DATA`` -> the user's cache -> a public download."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from floral_learn.base.files import sha256
from floral_learn.base.folders import user_cache


class DataNotFoundError(FileNotFoundError):
    """A data file is neither on disk nor downloadable; the message says where it was looked for.

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
    name: str,
    *,
    checksum: str | None = None,
    data_home: str | os.PathLike[str] | None = None,
    download: Callable[[Path], None] | None = None,
    hint: str = "",
) -> Path:
    """Return the path of data file ``name``, downloading it where it is on no searched folder.

    ``checksum`` is the SHA-256 of the file in its published form; a file that differs is refused,
    since results would silently differ too. ``download(path)`` writes the file; it goes into
    ``data_home`` or the cache, through a temporary name, so an interrupted download leaves nothing.
    """
    folders = search_path(data_home)
    for folder in folders:
        path = folder / name
        if path.is_file():
            if checksum is not None and (found := sha256(path)) != checksum:
                raise ValueError(
                    f"{path} is not the expected file (SHA-256 {found[:12]}, expected {checksum[:12]}): "
                    "remove it or point data_home elsewhere"
                )
            return path
    searched = ", ".join(str(folder) for folder in folders)
    if download is None:
        raise DataNotFoundError(f"{name} not found in {searched}. {hint}".rstrip())
    target = (Path(data_home) if data_home is not None else user_cache()) / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        os.close(handle)
        try:
            download(Path(temporary))
            os.replace(temporary, target)
        finally:
            Path(temporary).unlink(missing_ok=True)
    except OSError as error:
        raise DataNotFoundError(
            f"{name} not found in {searched}, and the download failed ({error}). {hint}".rstrip()
        ) from error
    return target
