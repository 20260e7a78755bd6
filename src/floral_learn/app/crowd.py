"""``floral crowd``: labels from a file of votes, and a cautious page about the people behind them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from floral_learn.app.options import KINDS, check_out_folder, with_table_options
from floral_learn.app.terminal import one_line, say, say_notes
from floral_learn.base import TableError


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(name="crowd")(one_line("floral crowd")(crowd))


@with_table_options("text_encoder", "drop", "sep", "encoding")
def crowd(
    source: Path = typer.Argument(..., metavar="VOTES", help=f"votes, one per row (or see --votes): {KINDS}"),
    task: str = typer.Option("task", "--task", "-t", help="column that names the task"),
    worker: str = typer.Option("worker", "--worker", "-w", help="column that names the person"),
    label: str = typer.Option("label", "--label", "-l", help="column of the votes"),
    wide: list[str] = typer.Option(
        [], "--votes", help="where each person has a column: its name, or a pattern such as 'ann*'; repeat for more"
    ),
    features: Path | None = typer.Option(None, "--features", "-f", help="table of the tasks, with the --task column"),
    gold: Path | None = typer.Option(None, help="known answers: a table with the columns of --task and --label"),
    out: Path = typer.Option(..., "--out", "-o", help="folder for consensus.csv, annotators.csv, next.csv, page.html"),
    missing: str | None = typer.Option(None, help="a value that means no vote (an abstention), such as -1"),
    withhold: bool = typer.Option(False, help="leave labels blank in consensus.csv where they are not decided"),
    seed: int = typer.Option(0, "--seed", "-s", min=0, help="random seed"),
    columns: Any = None,
) -> None:
    """Find the true labels from votes of several people, some of whom may lie.

    OUT gets consensus.csv (label and probability per task), annotators.csv (per person: votes, fit with the other
    evidence, with a range), next.csv (what to ask whom next) and page.html. VOTES itself is never changed.
    """
    started = time.perf_counter()
    check_out_folder(out)

    from floral_learn.app.pages import votes_page
    from floral_learn.app.tables.delimited import decode
    from floral_learn.app.tables.label_studio import read_export
    from floral_learn.app.tables.source import read_content, table_suffix
    from floral_learn.base.cells import frame_bytes
    from floral_learn.base.files import write_set
    from floral_learn.crowd import aggregate_votes, next_tasks

    columns = replace(columns, label=label)
    exported, notes = None, list[str]()
    if table_suffix(source) in (".json", ".json.gz"):
        text, _ = decode(read_content(source), None, str(source))
        exported = read_export(str(source), text, label)
        votes = exported.votes
    elif wide:
        votes, notes = read_wide_file(source, task, wide, columns)
    else:
        votes, notes = read_vote_file(source, task, worker, columns)
    if missing is not None:
        votes = votes[votes["label"].astype(str).str.strip() != missing]
    people, tasks = votes["worker"].nunique(), votes["task"].nunique()
    say(f"{source.name}: {len(votes):,} votes by {people:,} people on {tasks:,} tasks")
    X, known = None, None
    if features is not None:
        voters = set(votes["worker"]) if wide else set()
        X, more = read_features(features, task, seed, columns, voters)
        notes += more
    elif exported is not None:
        X, more = read_export_items(exported, seed, columns)
        notes += more
    if gold is not None:
        there = votes["task"] if X is None else X.index
        known, more = read_gold_file(gold, task, columns, set(there))
        notes += more
    elif exported is not None:
        answers = votes.loc[votes["gold"], ["task", "label"]].itertuples(index=False, name=None)
        if known := known_answers(answers, source) or None:
            notes.append(f"{len(known):,} known answers (ground_truth)")
    say_notes(notes)
    found = aggregate_votes(votes[["task", "worker", "label"]], X, gold=known, random_state=seed)
    files = {
        out / "consensus.csv": frame_bytes(consensus(found, withhold)),
        out / "annotators.csv": frame_bytes(judged(found)),
        out / "next.csv": frame_bytes(next_tasks(found, min(1000, len(found.items))).round(4)),
        out / "page.html": votes_page(found, title=source.name).encode(),
    }
    write_set(files, "floral crowd")
    say_notes(found.notes)
    sure = float(found.probability.max(axis=1).mean())
    if undecided := len(found.undecided):
        say(f"not decided: {undecided:,} of {len(found.items):,} labels; next.csv has tasks to answer (--gold)")
    seconds = time.perf_counter() - started
    say(f"expected share of right labels: {100 * sure:.0f} % ({seconds:.1f} s)")
    say(f"wrote {', '.join(map(str, files))}")


def read_vote_file(path: Path, task: str, worker: str, columns: Any) -> tuple[Any, list[str]]:
    """Return the votes as a long frame (task, worker, label), and notes on rows that were left out or merged."""
    import pandas as pd

    from floral_learn.base.cells import MissingColumn

    try:
        table = columns.read(path, ids=task, groups=worker, text=(), drop=(), skip_blank_labels=True)
    except MissingColumn as error:
        raise TableError(f"{error}. Name them by --task, --worker, --label; or --votes, a column per person") from None
    blank = table.rows[table.ids == ""]
    if len(blank):
        raise TableError(f"{path}: column {task!r} names no task in {len(blank)} rows (first: row {blank[0]})")
    notes = list(table.notes)
    if nameless := int((table.groups == "(missing)").sum()):
        notes.append(f"votes that name nobody: {nameless:,}; they count as those of one person, '(missing)'")
    notes += not_read_as_written(table, task, "task", table.ids)
    notes += not_read_as_written(table, worker, "person", table.groups)
    return pd.DataFrame({"task": table.ids, "worker": table.groups, "label": table.labels}), notes


def not_read_as_written(table: Any, column: str, word: str, voted: Any) -> list[str]:
    """Notes on names in a column that are in no vote, and on several spellings that are read as one name."""
    from floral_learn.base.cells import as_texts

    cells = table.source.cells(table.source.position(column))
    spelled: dict[str, set[str]] = {}
    for name, cell in zip(as_texts(cells), cells, strict=True):
        if name is not None:
            spelled.setdefault(name, set()).add(str(cell).strip())
    notes = []
    if lost := sorted(spelled.keys() - set(voted)):
        notes.append(f"left out, since every vote is blank: {word} {_some(lost)}")
    several = [sorted(map(repr, ways)) for ways in spelled.values() if len(ways) > 1]
    if merged := [" and ".join(ways) for ways in several]:
        notes.append(f"read as one {word}, though written differently: {_some(merged)}")
    return notes


def _some(names: list[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if names[most:] else "")


def read_wide_file(path: Path, task: str, patterns: list[str], columns: Any) -> tuple[Any, list[str]]:
    """Return the votes of a file in which each person has a column as a long frame, and notes on what was left out."""
    from fnmatch import fnmatchcase

    table = columns.read(path, label=None, text=(), drop=())
    frame, notes = table.features, list(table.notes)
    frame.columns = frame.columns.map(str)
    names = [name for name in frame.columns if name != task]
    chosen: dict[str, None] = {}
    for pattern in patterns:
        fits = [name for name in names if name == pattern or fnmatchcase(name, pattern)]
        if not fits:
            raise TableError(f"{path}: --votes {pattern!r} matches none of its columns: {', '.join(names[:12])}")
        chosen |= dict.fromkeys(fits)
    tasks = table.rows
    if task in frame.columns:
        tasks = columns.read(path, label=None, ids=task, text=(), drop=()).ids
        twice = [name for name, times in Counter(tasks).items() if times > 1]
        if twice:
            raise TableError(f"{path}: column {task!r} names task {twice[0]!r} twice; a wide file has a row per task")
    elif task != "task":
        raise TableError(f"{path}: no column {task!r} (--task); its columns are {', '.join(names[:12])}")
    else:
        notes.append(f"no column {task!r}: tasks are called by the number of their row")
    if rest := [name for name in names if name not in chosen]:
        notes.append(f"{len(rest)} columns hold no votes and are left out: {_some(rest)}")
    votes = frame[list(chosen)].set_axis(tasks)
    blank = votes.isna()
    if blank.any(axis=None):
        notes.append(f"{int(blank.sum().sum()):,} of {votes.size:,} cells are blank: no vote")
    for word, lost in (("task", blank.all(axis=1)), ("person", blank.all())):
        if lost.any():
            gone = lost.index[lost].map(str).tolist()
            notes.append(f"left out, since every vote is blank: {word} {_some(gone)}")
    given = votes.astype(object).stack().rename_axis(["task", "worker"])
    long = given.rename("label").reset_index()
    return long[~long["label"].isna()], notes


def known_answers(answers: Iterable[tuple[Any, Any]], where: Path) -> dict[Any, Any]:
    """Task -> known answer; two different ones are refused."""
    known: dict[Any, Any] = {}
    for name, answer in answers:
        if known.setdefault(name, answer) != answer:
            raise TableError(f"{where}: task {name!r} has two known answers, {known[name]!r} and {answer!r}")
    return known


def read_export_items(exported: Any, seed: int, columns: Any) -> tuple[Any, list[str]]:
    """The data of an export's tasks as numbers; None where they hold nothing to compare tasks by."""
    import pandas as pd

    from floral_learn.app.tables import read_table

    voted = set(exported.votes["task"])
    keep = [name for name in exported.tasks if name in voted]
    frame = pd.DataFrame([exported.tasks[name] for name in keep], dtype=object)
    if not len(frame.columns):
        return None, []
    dropped = [name for name in columns.drop if name in frame.columns]
    table = read_table(frame, drop=dropped)
    try:
        values, notes = columns.numbers(table, seed)
    except TableError as error:
        return None, [f"no features: {error}"]
    return pd.DataFrame(values, index=pd.Index(keep)), notes


def read_features(
    path: Path, task: str, seed: int, columns: Any, voters: set[str] | frozenset[str] = frozenset()
) -> tuple[Any, list[str]]:
    """Return the tasks as a frame of numbers whose index names them, and notes on how the numbers were made.

    `voters` are the columns of a wide file of votes, which may stand in the table of the tasks, too.
    """
    import pandas as pd

    table = columns.read(path, label=None, ids=task)
    values, notes = columns.numbers(table, seed)
    of_votes = {columns.label, *voters}
    for name in [name for name in map(str, table.features.columns) if name in of_votes]:
        notes.append(
            f"warning: column {name!r} of {path.name} is called like the votes and is read as a feature; "
            f"if it holds {'votes' if name in voters else 'the truth'}, leave it out: --drop {name}"
        )
    return pd.DataFrame(values, index=pd.Index(table.ids)), notes


def read_gold_file(path: Path, task: str, columns: Any, there: set[Any]) -> tuple[dict[Any, Any], list[str]]:
    """Return task -> known class of the tasks that are there, and notes on rows that were left out."""
    table = columns.read(path, ids=task, text=(), drop=(), skip_blank_labels=True)
    known = known_answers(zip(table.ids.tolist(), table.labels.tolist(), strict=True), path)
    notes = list(table.notes)
    odd = [name for name in known if name not in there]
    if odd and len(odd) < len(known):
        notes.append(f"left out of {path.name}, since nothing is known of it but the answer: task {_some(odd)}")
        known = {name: answer for name, answer in known.items() if name in there}
    return known, [*notes, f"{len(known):,} known answers ({path.name})"]


def judged(found: Any) -> Any:
    """The judgement of the people, its numbers as short as they are sure."""
    frame = found.people.round(4)
    frame["p_value"] = [float(f"{p:.3g}") for p in found.people["p_value"]]
    return frame


def consensus(found: Any, withhold: bool = False) -> Any:
    """Return one row per task: label, probability, votes, whether it is decided or contested, and all probabilities."""
    import numpy as np
    import pandas as pd

    frame = pd.DataFrame(
        {
            "task": found.items,
            "label": np.where(found.decided, found.labels.astype(object), "") if withhold else found.labels,
            "probability": found.probability.max(axis=1).round(4),
            "votes": found.votes.per_item.astype(int),
            "decided": found.decided,
            "contested": found.contested,
        }
    )
    for number, name in enumerate(found.classes.tolist()):
        frame[f"p({name})"] = found.probability[:, number].round(4)
    return frame
