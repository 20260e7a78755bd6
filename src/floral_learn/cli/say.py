"""One line of output of a command, as wide as the terminal that reads it."""

from __future__ import annotations

import shutil
import sys
import textwrap


def say(line: str = "", *, err: bool = False) -> None:
    """Print a line: broken between words at the width of a terminal, whole where a file or a program reads it.

    Further lines are indented by two spaces more than the first; a path or a word longer than a line stays whole.
    """
    import typer

    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        width = max(shutil.get_terminal_size().columns, 20)
        line = textwrap.fill(
            line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, tabsize=2
        )
    typer.echo(line, err=err)
