"""Write whole files or nothing, and tell a set of files that belong together from a mixed one.

`write_all` writes temporary files beside their targets, then renames. A crash, a kill or a full disk leaves the old
files. Several files appear together: all are written before the first is renamed, and a rename that fails (a folder in
the place of a file, say) puts back what was renamed before it. Files of a folder that does not exist yet come with the
folder, by one rename.

What no file system offers is to rename several files at once: a process killed between two renames into a folder that
existed before leaves some new files beside old ones. So `write_set`, for the files of one command, puts a list of names
and digests (``floral-files.json``) in its place first: one that came last would not be there to tell of a first run
that was killed. It holds the digests of the new files and of those that they replace. A set is mixed if its files are
neither all the new ones nor all as they were: whoever reads one of them can tell, and the same command, run again,
makes the set whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

LIST = "floral-files.json"
_MOST_BYTES = 2**20  # of the list


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


def write_set(files: Mapping[Path, str | bytes], command: str, gone: Iterable[Path] = ()) -> None:
    """Write the files of one command into one folder, all or none, with the list of their digests.

    Parameters
    ----------
    files : mapping of path to content
        What is written, all in one folder.
    command : str
        Whose files they are, for the one who reads of a mixed set.
    gone : iterable of path
        Files of an earlier run that would pass for this one's: they are removed.
    """
    folders = {path.parent for path in files}
    if len(folders) != 1:
        raise ValueError(f"files of one set lie in one folder, not in {len(folders)}")
    folder = folders.pop()
    old = [path.name for path in gone if path not in files]
    content = {path.name: raw.encode() if isinstance(raw, str) else raw for path, raw in files.items()}
    entry: dict[str, Any] = {
        "command": command,
        "files": {name: hashlib.sha256(raw).hexdigest() for name, raw in content.items()},
        "gone": old,
    }
    # A folder may hold several sets, as poisoned copies lie side by side; what this one replaces is no longer theirs.
    replaced = [known for known in _sets(folder) if set(known["files"]) & set(content)]
    others = [known for known in _sets(folder) if known not in replaced]
    if all(_whole(folder, known) for known in replaced):  # else there is no whole state to fall back on
        names = dict.fromkeys(name for part in (entry, *replaced) for name in (*part["files"], *part["gone"]))
        entry["before"] = {name: _digest(folder / name) for name in names}
    listed = json.dumps({"format": 1, "sets": [*others, entry]}, indent=1) + "\n"
    write_all({**{folder / name: raw for name, raw in content.items()}, folder / LIST: listed}, first=folder / LIST)
    for name in old:
        (folder / name).unlink(missing_ok=True)


def mixed_set(path: str | os.PathLike[str]) -> str | None:
    """One line where `path` belongs to a set that is not whole; None where it is whole, or belongs to none."""
    path = Path(path)
    for known in _sets(path.parent):
        if path.name in known["files"] and not _whole(path.parent, known):
            names = ", ".join(known["files"])
            return (
                f"{path.parent}: {names} are not all of one run of `{known['command']}` (it was stopped between two "
                "files, or one was changed since); run the command again to make them whole"
            )
    return None


def _whole(folder: Path, known: Mapping[str, Any]) -> bool:
    """Whether all files are those of this run, or all as they were before it."""
    now = {**known["files"], **dict.fromkeys(known["gone"])}
    states = [state for state in (now, known.get("before")) if state is not None]
    return any(all(_digest(folder / name) == digest for name, digest in state.items()) for state in states)


def sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file, read in blocks."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest(path: Path) -> str | None:
    """SHA-256 of a file; None where there is none."""
    try:
        return sha256(path)
    except FileNotFoundError:
        return None
    except OSError:  # a folder, or a file that may not be read: like no digest of ours
        return ""


def _sets(folder: Path) -> list[dict[str, Any]]:
    """The sets that the list of a folder names; none where there is no list, or one that is not ours."""
    try:
        if (folder / LIST).stat().st_size > _MOST_BYTES:
            return []
        found = json.loads((folder / LIST).read_text(encoding="utf-8"))["sets"]
        return [entry for entry in found if _is_set(entry)] if isinstance(found, list) else []
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def _is_set(entry: Any) -> bool:
    if not isinstance(entry, dict) or set(entry) - {"before"} != {"command", "files", "gone"}:
        return False
    files, gone, command, before = entry["files"], entry["gone"], entry["command"], entry.get("before", {})
    if not (isinstance(files, dict) and isinstance(gone, list) and isinstance(command, str)):
        return False
    if not isinstance(before, dict) or not all(digest is None or isinstance(digest, str) for digest in before.values()):
        return False
    names = [*files, *gone, *before]
    plain = all(isinstance(name, str) and name not in ("", ".", "..") and Path(name).name == name for name in names)
    return plain and len(command) < 100 and all(isinstance(digest, str) for digest in files.values())
