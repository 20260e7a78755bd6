"""``floral poison``: a copy of a data file with poisoned labels, and the list of flipped rows."""

from __future__ import annotations

import json
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from floral_learn.app.options import KINDS, check_out_file, check_same_kind, parse_budget, with_table_options
from floral_learn.app.terminal import one_line, progress_bar, say, say_notes
from floral_learn.base import TableError

# parameters that --param cannot give
_NO_TEXT = {"surrogate", "X_val", "y_val", "victim", "starts", "target"}


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(name="poison")(one_line("floral poison")(poison))


@with_table_options("label", "text", "text_encoder", "row_id", "drop", "skip_blank", "sep", "encoding")
def poison(
    source: Path = typer.Argument(..., metavar="IN", help=f"data file: {KINDS}"),
    out: Path = typer.Option(..., "--out", "-o", help="file to write, of the same kind as IN"),
    attack: str = typer.Option(
        "farthest", "--attack", "-a", help="farthest, random, alfa, ...: a name that is unknown lists all"
    ),
    budget: str = typer.Option(
        "0.1", "--budget", "-b", help="labels to flip: a share of the rows (0.1), a percentage (10%) or a count (25)"
    ),
    seed: int = typer.Option(0, "--seed", "-s", min=0, help="random seed"),
    only: str | None = typer.Option(None, help="flip only rows where COLUMN=VALUE, e.g. annotator=ann3"),
    target: str | None = typer.Option(None, help="the class to attack: flip only rows of this label"),
    param: list[str] = typer.Option([], "--param", "-p", help="parameter of the attack, e.g. C=10 (repeatable)"),
    columns: Any = None,
) -> None:
    """Write a copy of a data file with poisoned labels; nothing else in it changes.

    The flipped rows are listed in OUT.flips.csv: row number from 0, old and new label, score.
    """
    started = time.perf_counter()
    from floral_learn.attacks import ATTACKS
    from floral_learn.base.cells import csv_bytes
    from floral_learn.base.files import write_set

    check_same_kind(out, source)
    check_out_file(out, source)
    table = columns.read(source)
    labels: Any = table.labels
    settings = attack_settings(attack, param) | {
        "budget": parse_budget(budget, n_rows=len(labels)),
        "random_state": seed,
        "mask": None if only is None and target is None else allowed_rows(only, target, table),
    }
    if len(table.classes) > 2 and not ATTACKS[attack].multiclass:
        able = ", ".join(name for name, kind in ATTACKS.items() if kind.multiclass)
        raise TableError(
            f"--attack {attack} is defined for two classes, {table.label!r} has {len(table.classes)}; for more: {able}"
        )
    X, notes = None, table.notes
    if ATTACKS[attack].needs_features:
        X, notes = columns.numbers(table, seed)
    with progress_bar(attack) as progress:
        result = ATTACKS[attack](**settings, progress=progress).poison(X, labels)
    flips = out.with_name(out.name + ".flips.csv")
    # The list first: where the poisoned copy is, its list is too.
    lines = [(table.rows[i], labels[i], result.y[i], f"{result.scores[i]:.6g}") for i in result.indices]
    listed = csv_bytes(["row", "old_label", "new_label", "score"], lines)
    poisoned = table.relabelled(result.indices, result.y[result.indices])
    write_set({flips: listed, out: poisoned}, "floral poison")
    say_notes(notes)
    seconds = time.perf_counter() - started
    note = f" ({result.stopped_early})" if result.stopped_early else ""
    say(f"{attack}: flipped {len(result.indices)} of {len(labels)} labels{note} in {seconds:.1f} s")
    say(f"wrote {out} and {flips}")


def attack_settings(attack: str, params: list[str]) -> dict[str, Any]:
    """The attack's own parameters from NAME=VALUE texts, whose values are JSON or plain text."""
    from floral_learn.attacks import ATTACKS, LabelAttack

    if attack not in ATTACKS:
        raise TableError(f"--attack {attack!r} is unknown; choose one of {', '.join(ATTACKS)}")
    # these have options of their own
    others = _NO_TEXT | {field.name for field in fields(LabelAttack)}
    allowed = [field.name for field in fields(ATTACKS[attack]) if field.name not in others]
    settings = {}
    for text in params:
        name, equals, value = text.partition("=")
        if not equals or name not in allowed:
            raise TableError(f"--param {name!r}: {attack} takes {', '.join(allowed) or 'no parameters'} as NAME=VALUE")
        try:
            settings[name] = json.loads(value)
        except json.JSONDecodeError:
            settings[name] = value
    return settings


def allowed_rows(only: str | None, target: str | None, table: Any) -> Any:
    """The mask of rows where COLUMN equals VALUE and the label is the target's; values are compared as text."""
    import numpy as np

    column, equals, value = (only or "=").partition("=")
    if not equals:
        raise TableError(f"--only {only!r} must be COLUMN=VALUE")
    chosen = np.ones(len(table), bool)
    if only is not None:
        chosen = np.array([(cell or "") == value for cell in table.column(column)])
        if not chosen.any():
            raise TableError(f"--only {only!r} matches no row")
    if target is not None:
        aimed = table.labels.astype(str) == target
        if not aimed.any():
            raise TableError(f"--target {target!r} is not a label of the file: {', '.join(map(str, table.classes))}")
        chosen &= aimed
    return chosen
