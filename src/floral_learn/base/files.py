"""Write whole files or nothing, and tell who reads them where a process was stopped between two that belong together.

Files are written beside their targets first, then renamed: a crash, a kill or a full disk leaves the old files. What no
file system offers is to rename several files at once: a process killed between two renames leaves some new files beside
old ones. So `write_set`, for the files of one command, names them in a small file (``NAME.unfinished``) while it puts
them in place. Where that file is left, the command was stopped: whoever reads one of its files can tell, and the same
command, run again, makes the set whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from floral_learn.base.cells import short, some

MOST_BYTES = 2**30  # that a file which others may have written may unpack to


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """`content` under `path`: a reader, a crash or a full disk sees the old file or the new one, never half of it."""
    write_all({Path(path): content})
    return Path(path)


def write_all(files: Mapping[Path, str | bytes], before_renames: Callable[[], None] | None = None) -> None:
    """Several files, in their order: all are on disk before the first takes its place; an error names the file.

    A folder that does not exist is made, in one that does.
    """
    made = {path.parent for path in files if not path.parent.exists() and path.parent.parent.is_dir()}
    written: dict[Path, Path] = {}
    try:
        for folder in made:
            folder.mkdir()
        for path, content in files.items():
            written[path] = _write_beside(path, content)
        if before_renames is not None:
            before_renames()
        for path, temporary in written.items():
            try:
                os.replace(temporary, path)
            except OSError as error:
                raise _named(error, path) from None
    finally:
        for temporary in written.values():
            temporary.unlink(missing_ok=True)
        for folder in made:
            if folder.exists() and not any(folder.iterdir()):
                folder.rmdir()


def write_set(files: Mapping[Path, str | bytes], command: str, gone: Iterable[Path] = ()) -> None:
    """Write the files of one command into one folder; one that is stopped midway leaves word of it.

    Parameters
    ----------
    files : mapping of path to content
        What is written, all in one folder.
    command : str
        Whose files they are, for the one who reads of a set that is not whole.
    gone : iterable of path
        Files of an earlier run that would pass for this one's: they are removed.
    """
    first = next(iter(files))
    if any(path.parent != first.parent for path in files):
        raise ValueError("files of one set lie in one folder")
    old = [path for path in gone if path not in files]
    marker = first.with_name(f"{first.name[:80]}.unfinished")
    names = {"command": command, "files": [path.name for path in (*files, *old)]}
    write_all(files, lambda: write_all({marker: json.dumps(names)}))
    for path in old:
        path.unlink(missing_ok=True)
    marker.unlink()


def unfinished(path: str | os.PathLike[str]) -> str | None:
    """One line where `path` belongs to files that a command was stopped at putting in place; else None."""
    path = Path(path)
    for marker in sorted(path.parent.glob("*.unfinished")):
        try:
            with open(marker, encoding="utf-8") as stream:
                found = json.loads(stream.read(2**16))
            command, names = found["command"], found["files"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue  # not ours
        if isinstance(names, list) and path.name in names:
            return (
                f"{path.parent}: {short(command)} was stopped while it put {some(names)} in place, which may be of two "
                "runs; run it again to make them whole"
            )
    return None


def sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file, read in blocks."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def user_cache() -> Path:
    """Return the folder of downloads and embeddings (it may not exist yet); ``XDG_CACHE_HOME`` moves it anywhere."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        base = Path(given)
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    else:
        base = Path.home() / ".cache"
    return base / "floral-learn"


def _write_beside(path: Path, content: str | bytes) -> Path:
    """A new temporary file in the folder of `path`, on disk when this returns."""
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")
    # The kernel takes the umask off 0666 itself: nobody has to read it, which would mean to change it for a moment.
    # The name does not grow with the target's, which may be as long as the file system allows.
    temporary = path.with_name(f".{path.name[:20]}.{secrets.token_hex(8)}.part")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content.encode("utf-8") if isinstance(content, str) else content)
                stream.flush()
                os.fsync(stream.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _named(error, path) from None
    return temporary


def _named(error: OSError, path: Path) -> OSError:
    """The same error with the name of the target in its message."""
    return type(error)(error.errno, f"cannot write {path}: {error.strerror or error}")
