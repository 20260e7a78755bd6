"""``floral judge``: how often judges (language models, rules, people) are wrong, from blind questions on a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from floral_learn.app.options import KINDS, check_out_folder, with_table_options
from floral_learn.app.review import BROWSER, FINISH, GUIDELINES, HOST, KEYS, PORT, REVIEWER, opened_page, page_options
from floral_learn.app.terminal import one_line, say
from floral_learn.base import TableError


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    stopped = "stopped; answers that the page called saved are stored"
    app.command(name="judge")(one_line("floral judge", stopped)(judge))


@with_table_options("text", "row_id", "drop", "sep", "encoding", "image", "image_folder")
def judge(
    source: Path = typer.Argument(..., metavar="DATA", help=f"a column for each judge: {KINDS}"),
    out: Path = typer.Option(..., "--out", "-o", help="folder for your answers, judge.html and judge.json"),
    judges: list[str] = typer.Option(..., "--judge", "-j", help="column of a judge's labels (repeatable)"),
    also: list[str] = typer.Option([], "--also", metavar="LABEL", help="a label that no judge gives (repeatable)"),
    missing: str | None = typer.Option(None, help="what judges write for no answer (default: an empty cell)"),
    prompt: Path | None = typer.Option(None, help="what the judges were asked: answers are bound to this file"),
    reviewer: str | None = REVIEWER,
    port: int = PORT,
    host: str = HOST,
    browser: bool = BROWSER,
    finish: bool = FINISH,
    key: list[str] = KEYS,
    guidelines: Path | None = GUIDELINES,
    seed: int = typer.Option(0, "--seed", "-s", min=0, help="which rows are drawn"),
    columns: Any = None,
) -> None:
    """Say how often judges (language models, rules, people) are wrong, from a few blind questions to you.

    Their labels are columns of DATA and are not shown. Rows are drawn at random, twice as often where judges disagree.
    Give 20 to 50 answers; look at the intervals as often as you like, they hold all the time. OUT keeps the answers,
    the same command continues, and Finish writes judge.html, judge.json and gold.csv (for `floral crowd --gold`).
    """
    from floral_learn.app.review_page.judging import FILES, JudgeSession
    from floral_learn.review.judge import JudgeReview

    check_out_folder(out, source, *FILES)
    with opened_page(port, host, browser, finish, reviewer, source.name) as serve:
        table = columns.read(source, text=[])
        if unknown := [name for name in (*judges, *columns.text) if name not in table.features]:
            known = ", ".join(map(str, table.features.columns[:12]))
            raise TableError(f"{source} has no column {unknown[0]!r}; its columns are: {known}")
        said = table.features[judges].astype(object)
        said = said.map(lambda cell: None if cell != cell or cell is None else _text(cell))
        said = said.map(lambda cell: None if cell == missing else cell).reset_index(drop=True)
        given = {cell for cell in said.to_numpy().ravel() if isinstance(cell, str)}
        classes = sorted(given | set(also))
        if len(classes) < 2:
            some = classes[0] if classes else "no label"
            raise TableError(f"{source}: judges give {some} only; name others by --also")
        asked = None if prompt is None else prompt.read_bytes()
        review = JudgeReview(said, classes=classes, prompt=asked, random_state=seed)
        shown = table.features[list(columns.text)] if columns.text else table.features.drop(columns=judges)
        if not shown.shape[1]:
            raise TableError(f"{source} has nothing to show beside the judges: add what they were asked about")
        say(f"{len(said):,} rows, {len(judges)} judges, {len(classes)} labels")
        page = page_options(key, guidelines, classes)
        options = {"judge": judges, "also": also, "missing": missing, "prompt": prompt, "seed": seed or None}
        options |= {name: columns.roles()[name] for name in ("ids", "drop", "sep", "encoding")}
        options |= {"text": columns.text, **columns.picture_options()}
        table, folder = replace(table, features=shown), columns.image_folder
        serve(JudgeSession(review, table, path=source, out=out, pictures=folder, options=options, page=page))


def _text(cell: Any) -> str:
    """A label as text: 1 for 1.0, which is what a column with empty cells makes of it."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
