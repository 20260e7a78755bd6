"""What a command does when something goes wrong: one line, an exit code, and no traceback.

Exit codes: 0 done; 1 done, but parts of a benchmark failed; 2 wrong input, or a file that cannot be read or written;
130 stopped with Ctrl-C. ``FLORAL_DEBUG=1`` shows the traceback.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from .say import say

FAILED, WRONG, STOPPED = 1, 2, 130
MOST_CHARACTERS = 600  # of a message: some libraries print whole arrays
_WARNINGS_MODULE = ("warnings", "_py_warnings")  # where Python's own frames of a warning are


def one_line(command: str, stopped: str = "stopped; nothing was written") -> Callable[[Callable[..., None]], Any]:
    """Decorate the function of a subcommand: every error is one line, Ctrl-C says what it left behind."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> None:
            with reported(command, stopped):
                _say_what_is_mixed(command, kwargs)
                function(*args, **kwargs)

        return run

    return decorate


@contextmanager
def reported(command: str, stopped: str = "stopped") -> Iterator[None]:
    """Errors inside become one line on stderr and an exit code; warnings of libraries stay silent."""
    try:
        with own_warnings_only(command):
            yield
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt:
        fail(command, stopped, STOPPED)
    except BrokenPipeError:  # the reader of our output has gone
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - Python flushes it at exit
        raise typer.Exit(FAILED) from None
    except Exception as error:
        if os.environ.get("FLORAL_DEBUG"):
            raise
        fail(command, message_of(error), WRONG)


def _say_what_is_mixed(command: str, arguments: dict[str, Any]) -> None:
    """One line for each input that belongs to files of another command of which not all are there."""
    from floral_learn.files.file_sets import mixed_set

    given = [value for name, value in arguments.items() if name != "out"]
    paths = [path for value in given for path in (value if isinstance(value, list | tuple) else [value])]
    lines = [mixed_set(path) for path in paths if isinstance(path, Path) and path.is_file()]
    for line in dict.fromkeys(line for line in lines if line):
        say(f"{command}: note: {line}", err=True)


def fail(command: str, message: str, code: int = WRONG) -> None:
    """One line on stderr, and the exit code."""
    text = "".join(c if c.isprintable() else " " for c in " ".join(message.split()))
    say(f"{command}: {text[:MOST_CHARACTERS]}{'...' if len(text) > MOST_CHARACTERS else ''}", err=True)
    raise typer.Exit(code) from None


def message_of(error: BaseException) -> str:
    """What to tell of an error: its own words where they were written for users, else also what kind it is."""
    if isinstance(error, OSError) and error.strerror:
        names = [str(name) for name in (error.filename, error.filename2) if name is not None]
        return f"{error.strerror}: {names[-1]}" if names else error.strerror
    if isinstance(error, MemoryError):
        return str(error) or "not enough memory for this table"
    if isinstance(error, RecursionError):
        return "a file is nested too deeply"
    text = str(error).strip()
    if isinstance(error, OSError | ValueError | TypeError | ImportError | RuntimeError) and text:
        return text
    return f"unexpected {type(error).__name__}" + (f": {text}" if text else "") + " (FLORAL_DEBUG=1 shows where)"


@contextmanager
def own_warnings_only(command: str) -> Iterator[None]:
    """Warnings that floral-learn itself gives are one line each; those of libraries are not for the terminal."""

    def show(message: Any, category: Any, *_: Any, **__: Any) -> None:
        if _warned_by_us() and issubclass(category, UserWarning):
            say(f"{command}: note: {' '.join(str(message).split())}", err=True)

    # Worker processes of a benchmark read their filters from here.
    before = os.environ.get("PYTHONWARNINGS")
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = show
            yield
    finally:
        if before is None:
            os.environ.pop("PYTHONWARNINGS", None)


def _warned_by_us() -> bool:
    """Whether the code that called ``warnings.warn`` is of this package, wherever its stacklevel points."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in _WARNINGS_MODULE:
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__")).startswith("floral_learn.")
