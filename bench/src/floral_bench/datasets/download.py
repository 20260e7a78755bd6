"""Data files of the suites that may be fetched: looked for as the library does, then downloaded once."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from floral_learn.base.files import user_cache
from floral_learn.datasets.files import DataNotFoundError, find_file


def find_or_download(
    name: str, download: Callable[[Path], None], *, data_home: str | os.PathLike[str] | None = None, hint: str = ""
) -> Path:
    """The path of data file ``name``; where it is in no searched folder, ``download(path)`` writes it.

    It goes into ``data_home`` or the cache, through a temporary name, so an interrupted download leaves nothing.
    """
    try:
        return find_file(name, data_home=data_home, hint=hint)
    except DataNotFoundError as missing:
        searched = str(missing).removesuffix(hint).rstrip(". ")
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
        raise DataNotFoundError(f"{searched}, and the download failed ({error}). {hint}".rstrip()) from error
    return target
