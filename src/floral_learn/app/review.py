"""``floral review``: a page in the browser that asks about a few rows and corrects the other labels."""

from __future__ import annotations

import contextlib
import getpass
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from floral_learn.app.options import KINDS, OPTIONS, check_out_folder, check_target, with_table_options
from floral_learn.app.terminal import STOPPED, one_line, say, say_notes
from floral_learn.base.extras import install_line

if TYPE_CHECKING:
    from floral_learn.app.review_page.asking import Asking


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    stopped = "stopped; answers that the page called saved are stored"
    app.command(name="review")(one_line("floral review", stopped)(review))


# what `floral review` and `floral judge` say alike about their page
REVIEWER = typer.Option(None, help="name to store answers under (default: the user's name)")
PORT = typer.Option(0, metavar="PORT", help="port of the page (default: a free one, the same when resumed)")
HOST = typer.Option("127.0.0.1", help="address to listen on; any other address opens the page to a network")
BROWSER = typer.Option(True, "--browser/--no-browser", help="open the page in a browser")
FINISH = typer.Option(False, "--finish", help="no page: write the files from the answers so far")
KEYS = typer.Option([], "--key", metavar="LABEL=KEY", help="own key for a label: spam=s (repeatable)")
GUIDELINES = typer.Option(None, help="text file to show beside the question (# titles, - lists)")


@with_table_options(*(name for name in OPTIONS if name != "weight"))
def review(
    source: Path = typer.Argument(..., metavar="DATA", help=f"data file: {KINDS}"),
    out: Path = typer.Option(..., "--out", "-o", help="folder for the answers and the final files"),
    reviewer: str | None = REVIEWER,
    port: int = PORT,
    host: str = HOST,
    browser: bool = BROWSER,
    finish: bool = FINISH,
    key: list[str] = KEYS,
    guidelines: Path | None = GUIDELINES,
    seed: int | None = typer.Option(None, "--seed", "-s", help="repeatable questions; voids the guarantee"),
    to: str | None = typer.Option(None, "--to", help="no page: write tasks for another tool (label-studio) into OUT"),
    columns: Any = None,
) -> None:
    """Ask a person about a few rows of DATA and correct the other labels from the answers.

    Answers are stored in OUT as they are given; the same command continues where you stopped. OUT gets the cleaned
    table, decisions.csv, changes.csv, training.csv, model.skops and report.html when you press Finish on it. DATA
    never changes.
    """
    check_target(to)
    given, (source, columns) = source, columns.find(source)
    if to is not None:
        write_tasks(source, out, columns, seed)
        return
    from floral_learn.app.review_page.outputs import file_names
    from floral_learn.app.review_page.session import ReviewSession
    from floral_learn.app.tables.source import table_suffix

    check_out_folder(out, source, *file_names(table_suffix(source)))
    with opened_page(port, host, browser, finish, reviewer, given.name) as serve:
        say(f"reading {given}")
        table = columns.read(source).check_classes()
        say(f"{len(table):,} rows, {len(table.classes)} classes")
        encoder = table.encoder or columns.encoder()
        roles = columns.roles()
        read = {name: roles[name] for name in ("text", "ids", "groups", "trusted", "drop")}
        options = {**read, "text_encoder": columns.text_encoder, "skip_blank_labels": columns.skip_blank}
        options |= columns.picture_options()
        page = page_options(key, guidelines, table.classes.tolist())
        session = ReviewSession(
            table, encoder, path=source, out=out, options=options, seed=seed, pictures=columns.image_folder, page=page
        )
        say_notes([*table.notes, *encoder.notes_])
        serve(session)


def page_options(keys: list[str], guidelines: Path | None, classes: list[Any]) -> dict[str, Any]:
    """Own keys by label, and the guidelines' text."""
    known = {str(label) for label in classes}
    found: dict[str, str] = {}
    for text in keys:
        label, _, key = text.rpartition("=")
        if label not in known or len(key) != 1 or not key.isalnum():
            labels = ", ".join(sorted(known)[:12])
            raise ValueError(f"--key {text!r} must be LABEL=KEY with one letter or digit; the labels are {labels}")
        if label in found or key in found.values():
            raise ValueError(f"--key {text!r}: this label or key was given before")
        found[label] = key
    words = "" if guidelines is None else guidelines.read_text(encoding="utf-8")
    return {"keys": found, "guidelines": words}


@contextlib.contextmanager
def opened_page(
    port: int, host: str, browser: bool, finish: bool, reviewer: str | None, title: str
) -> Iterator[Callable[[Asking], None]]:
    """Yield what serves a session until Ctrl-C, or writes its files at once; what cannot work is said first."""
    if not 0 <= port <= 65535:
        raise ValueError(f"--port {port} must be from 0 to 65535")
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing and not finish:
        raise ImportError(f"the page needs {' and '.join(missing)}: {install_line('cli')}")
    from floral_learn.app.review_page.server import ReviewServer, bind

    name = reviewer_name(reviewer)
    listening = None if finish else bind(host, port)
    sessions = []

    def serve(session: Asking) -> None:
        nonlocal listening
        sessions.append(session)
        if finish:
            if not session.answered:
                say("no answers are stored yet")
            for file in session.write_files():
                say(f"wrote {session.out / file['name']}: {file['about']}")
            return
        if not port:
            listening = _same_again(session.store, host, listening)
        server = ReviewServer(session, title=title, reviewer=name, folder=session.out, host=host, listening=listening)
        session.store.put("port", str(server.port).encode())
        _say_where(server.address, host, session.answered, session.out)
        if browser:
            open_browser(server.address)
        with contextlib.suppress(KeyboardInterrupt):
            server.run()
        # Only Ctrl-C, or another signal, ends the page; whoever started it ignoring Ctrl-C hears the same.
        say(f"stopped: {session.answered:,} answers are stored in {session.out}; the same command continues")
        raise typer.Exit(STOPPED)

    try:
        yield serve
    finally:
        for session in sessions:
            session.close()


def write_tasks(source: Path, out: Path, columns: Any, seed: int | None, most: int = 100) -> None:
    """``--to label-studio``: the rows as tasks with predictions.

    The first, at most so many, are those whose answers would settle most; then by how probably they are wrong.
    """
    import numpy as np

    from floral_learn import LabelReview
    from floral_learn.app.tables.label_studio import label_studio_tasks
    from floral_learn.base.files import write_set

    check_out_folder(out)
    table = columns.read(source).check_classes()
    say(f"{len(table):,} rows, {len(table.classes)} classes")
    X, notes = columns.numbers(table)
    say_notes(notes)
    review = LabelReview(X, table.labels, trusted=table.trusted, groups=table.groups, random_state=seed)
    wrong = review.wrong_probability
    free = np.ones(len(table), bool) if table.trusted is None else ~table.trusted
    first = review.ask(min(most, int(free.sum())))
    free[first] = False
    rest = np.flatnonzero(free)
    order = np.concatenate([first, rest[np.argsort(-wrong[rest], kind="stable")]]).astype(int)
    probability = review.label_probability[order]
    suggested = review.classes[probability.argmax(axis=1)]
    tasks = label_studio_tasks(table, table.rows[order], suggested, probability.max(axis=1))
    files = {out / name: content for name, content in tasks.items()}
    write_set(files, "floral review --to label-studio")
    say(f"wrote {', '.join(map(str, files))}: {len(order):,} tasks, the first {len(first)} to be asked first")


def _say_where(address: str, host: str, answered: int, out: Path) -> None:
    if answered:
        say(f"continuing: {answered:,} answers are stored in {out}")
    if host not in ("127.0.0.1", "localhost", "::1"):
        say("anyone who can reach this machine and has the address can read the rows and answer", err=True)
    say(f"page: {address}")
    say("Ctrl-C stops; the same command continues where you stopped")


def reviewer_name(given: str | None) -> str:
    """The name that was given, else the user's."""
    if given is not None:
        if not given.strip() or len(given) > 60 or not given.isprintable():
            raise ValueError(f"--reviewer {given!r} must have 1 to 60 printable characters")
        return " ".join(given.split())
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "reviewer"


def _same_again(store: Any, host: str, free: Any) -> Any:
    """A socket on the port of last time, so that a browser finds its settings again; `free` where that is taken."""
    from floral_learn.app.review_page.server import bind

    remembered = store.port()
    if not remembered:
        return free
    with contextlib.suppress(OSError):
        found = bind(host, remembered)
        free.close()
        return found
    return free


def open_browser(address: str) -> None:
    """Open the page by way of a file that only this user reads: a command line would show the secret to others."""
    page = Path(tempfile.mkdtemp(prefix="floral-review-")) / "open.html"
    page.touch(mode=0o600)
    page.write_text(
        '<!doctype html><meta charset="utf-8"><title>Label review</title>'
        f'<meta http-equiv="refresh" content="0; url={escape(address)}"><a href="{escape(address)}">Label review</a>',
        encoding="utf-8",
    )
    webbrowser.open(page.as_uri())
