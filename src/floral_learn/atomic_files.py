"""Write whole files or nothing: into temporary files beside their targets, then renames."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """`content` under `path`: a reader, a crash or a full disk sees the old file or the new one, never half of it."""
    write_all({Path(path): content})
    return Path(path)


def write_all(files: Mapping[Path, str | bytes]) -> None:
    """Several files; an error before the first rename leaves everything as it was."""
    temporary: dict[Path, Path] = {}
    try:
        for path, content in files.items():
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            temporary[path] = Path(name)
            with os.fdopen(handle, "wb") as stream:
                stream.write(content.encode("utf-8") if isinstance(content, str) else content)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(name, 0o666 & ~_umask())  # mkstemp makes files that only their owner reads
        for path, written in temporary.items():
            os.replace(written, path)
    finally:
        for written in temporary.values():
            written.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
