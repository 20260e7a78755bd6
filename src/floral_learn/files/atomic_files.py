"""Write whole files or nothing: into temporary files beside their targets, then renames.

A crash, a kill or a full disk leaves the old files. Several files of one command appear together: all are written
before the first is renamed, and a rename that fails (a folder in the place of a file, say) puts back what was renamed
before it. Files of a folder that does not exist yet come with the folder, by one rename.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """`content` under `path`: a reader, a crash or a full disk sees the old file or the new one, never half of it."""
    write_all({Path(path): content})
    return Path(path)


def write_all(files: Mapping[Path, str | bytes], first: Path | None = None) -> None:
    """Several files, all or none; an error names the file that could not be written.

    A folder that holds all of them and does not exist is made, whole. In one that does, they take their places in their
    order, `first` before all others.
    """
    folders = {path.parent for path in files}
    if len(folders) == 1 and not (folder := folders.pop()).exists() and folder.parent.is_dir():
        _write_folder(folder, files)
        return
    written: dict[Path, Path] = {}
    try:
        for path, content in files.items():
            written[path] = _write_beside(path, content.encode("utf-8") if isinstance(content, str) else content)
        _rename_all(written if first is None else {first: written[first], **written})
    finally:
        for temporary in written.values():
            temporary.unlink(missing_ok=True)


def _write_folder(folder: Path, files: Mapping[Path, str | bytes]) -> None:
    """Fill a folder under another name, then rename it."""
    made = folder.with_name(f".{folder.name[:20]}.{secrets.token_hex(8)}.part")
    try:
        try:
            made.mkdir()
            for path, content in files.items():
                raw = content.encode("utf-8") if isinstance(content, str) else content
                os.replace(_write_beside(made / path.name, raw), made / path.name)
            os.rename(made, folder)
        except OSError as error:
            raise _named(error, folder) from None
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _write_beside(path: Path, content: bytes) -> Path:
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
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _named(error, path) from None
    return temporary


def _rename_all(written: Mapping[Path, Path]) -> None:
    """Rename all; on an error put the old files back."""
    kept: dict[Path, Path | None] = {}
    try:
        if len(written) > 1:
            for path in written:
                kept[path] = _keep(path)
        done: list[Path] = []
        try:
            for path, temporary in written.items():
                os.replace(temporary, path)
                done.append(path)
        except BaseException:
            for renamed in done:
                old = kept.get(renamed)
                if old is not None:
                    os.replace(old, renamed)
                elif len(written) > 1:
                    renamed.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _named(error, path) from None
    finally:
        for old in kept.values():
            if old is not None:
                old.unlink(missing_ok=True)


def _keep(path: Path) -> Path | None:
    """A second name for the old file, so that it can be put back; None where there is none."""
    if not path.exists():
        return None
    second = path.with_name(f".{path.name[:20]}.{secrets.token_hex(8)}.old")
    try:
        os.link(path, second)
    except OSError:  # a file system without links
        second.write_bytes(path.read_bytes())
    return second


def _named(error: OSError, path: Path) -> OSError:
    """The same error with the name of the target in its message."""
    return type(error)(error.errno, f"cannot write {path}: {error.strerror or error}")
