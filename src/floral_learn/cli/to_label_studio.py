"""``--to label-studio``: tasks with predictions, those first whose answers tell most, and a labeling configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.tables import TableError

from .options import check_out_folder
from .say import say

TARGETS = ("label-studio",)
FIRST = 100  # tasks in the order of what their answer would settle; the others by how probably they are wrong


def check_target(to: str | None) -> None:
    """Refuse a tool that we cannot write for."""
    if to is not None and to not in TARGETS:
        raise TableError(f"--to {to!r} is unknown; choose {TARGETS[0]}")


def task_files(table: Any, numbers: Any, suggested: Any, score: Any, out: Path) -> dict[Path, bytes]:
    """OUT/tasks.json and OUT/label-config.xml for rows of the file (their numbers in it), in this order."""
    from floral_learn import __version__
    from floral_learn.tables.label_studio import LabelStudioSource, label_studio_config, label_studio_tasks

    at = np.searchsorted(table.rows, np.asarray(numbers, dtype=int))
    if isinstance(table.source, LabelStudioSource):
        rows = [table.source.tasks[row].data for row in table.rows[at]]
        choice, item = table.source.choice, table.source.item
    else:
        rows = table.features.iloc[at].to_dict(orient="records")
        choice, item = str(table.label), "item"
    names = (table.rows if table.ids is None else table.ids)[at].tolist()
    version = f"floral-learn {__version__}"
    tasks = label_studio_tasks(rows, suggested, score, choice=choice, item=item, model_version=version, ids=names)
    shown = dict.fromkeys(key for row in rows for key in row)
    config = label_studio_config(shown, table.classes.tolist(), choice=choice, item=item)
    return {out / "tasks.json": tasks, out / "label-config.xml": config}


def review_tasks(source: Path, out: Path, columns: Any, seed: int | None) -> None:
    """Write the rows of a table as tasks, those first whose answers would settle most."""
    from floral_learn import LabelReview
    from floral_learn.files.file_sets import write_set

    check_out_folder(out)
    table = columns.read(source).check_classes()
    encoder = columns.encoder()
    say(f"{len(table):,} rows, {len(table.classes)} classes")
    X = encoder.fit_transform(table.features)
    for note in [*table.notes, *encoder.notes_]:
        say(f"  {note}")
    review = LabelReview(X, table.labels, trusted=table.trusted, groups=table.groups, random_state=seed)
    wrong = review.wrong_probability
    first = review.ask(min(FIRST, len(table) if table.trusted is None else int((~table.trusted).sum())))
    free = np.ones(len(table), bool) if table.trusted is None else ~table.trusted
    free[first] = False
    rest = np.flatnonzero(free)
    order = np.concatenate([first, rest[np.argsort(-wrong[rest], kind="stable")]]).astype(int)
    probability = review.label_probability[order]
    suggested = review.classes[probability.argmax(axis=1)]
    files = task_files(table, table.rows[order], suggested, probability.max(axis=1), out)
    write_set(files, "floral review --to label-studio")
    say(f"wrote {', '.join(map(str, files))}: {len(order):,} tasks, the first {len(first)} to be asked first")
