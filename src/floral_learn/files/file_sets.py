"""Files of one command that belong together, and a small list by which a mixed set is noticed.

`write_all` stages every file before the first rename, so that an error leaves all of the old files. What no file
system offers is to rename several files at once: a process killed between two renames into a folder that existed before
leaves some new files beside old ones. So a list of names and digests (``floral-files.json``) takes its place first: one
that came last would not be there to tell of a first run that was killed. It holds the digests of the new files and of
those that they replace. A set is mixed if its files are neither all the new ones nor all as they were: whoever reads
one of them can tell, and the same command, run again, makes the set whole.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from floral_learn.files.atomic_files import write_all

LIST = "floral-files.json"
_MOST_BYTES = 2**20  # of the list
_BLOCK = 2**20


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


def _digest(path: Path) -> str | None:
    """SHA-256 of a file; None where there is none."""
    found = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while block := stream.read(_BLOCK):
                found.update(block)
    except FileNotFoundError:
        return None
    except OSError:  # a folder, or a file that may not be read: like no digest of ours
        return ""
    return found.hexdigest()


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
