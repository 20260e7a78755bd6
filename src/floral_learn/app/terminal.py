"""What a command says: lines as wide as the terminal, how far it is, and one line where something goes wrong.

Exit codes: 0 done; 1 done, but parts of a benchmark failed; 2 wrong input, or a file that cannot be read or written;
130 stopped with Ctrl-C. ``FLORAL_DEBUG=1`` shows the traceback.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

FAILED, WRONG, STOPPED = 1, 2, 130


def say(line: str = "", *, err: bool = False) -> None:
    """Print a line: broken between words at the width of a terminal, whole where a file or a program reads it.

    Further lines are indented by two spaces more than the first; a path or a word longer than a line stays whole.
    """
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        width = max(shutil.get_terminal_size().columns, 20)
        whole = textwrap.TextWrapper(width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        line = whole.fill(line)
    typer.echo(line, err=err)


def say_notes(notes: Iterable[str]) -> None:
    """Print what was found on the way, a line each."""
    for note in notes:
        say(f"  {note}")


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[..., None]]:
    """Yield ``update(done, total, what)``: from its first call on a bar with the time left, on a terminal's stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description:12}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None, visible=False)

        def update(done: float, total: float | None = 1.0, what: str | None = None) -> None:
            bar.update(task, completed=done, total=total, description=what, visible=True)

        yield update


def one_line(command: str, stopped: str = "stopped; nothing was written") -> Callable[[Callable[..., None]], Any]:
    """Decorate the function of a subcommand: every error is one line, Ctrl-C says what it left behind."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> None:
            with reported(command, stopped):
                _say_what_is_unfinished(command, kwargs)
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


def _say_what_is_unfinished(command: str, arguments: dict[str, Any]) -> None:
    """One line for each input that belongs to files of another command of which not all are there."""
    from floral_learn.base.files import unfinished

    given = [value for name, value in arguments.items() if name != "out"]
    files = [value for value in given if isinstance(value, Path) and value.is_file()]
    for line in dict.fromkeys(map(unfinished, files)):
        if line:
            say(f"{command}: note: {line}", err=True)


def fail(command: str, message: str, code: int = WRONG, most: int = 600) -> None:
    """One line of at most so many characters on stderr (some libraries print whole arrays), and the exit code."""
    text = "".join(c if c.isprintable() else " " for c in " ".join(message.split()))
    say(f"{command}: {text[:most]}{'...' if len(text) > most else ''}", err=True)
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
    words = f": {text}" if text else ""
    return f"unexpected {type(error).__name__}{words} (FLORAL_DEBUG=1 shows where)"


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
    while frame is not None and frame.f_globals.get("__name__") in ("warnings", "_py_warnings"):
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__")).startswith("floral_learn.")
