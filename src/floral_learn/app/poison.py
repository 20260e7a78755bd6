"""``floral poison``: a copy of a data file with poisoned labels or votes, and the list of flipped rows or of liars."""

from __future__ import annotations

import json
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from floral_learn.app.options import KINDS, check_out_file, check_same_kind, parse_budget, with_table_options
from floral_learn.app.terminal import one_line, progress_bar, say
from floral_learn.base import TableError

# The names of floral_learn.attacks.ATTACKS, which takes a second to import; a test compares them.
NAMES = (
    "random",
    "class-biased",
    "farthest",
    "near-boundary",
    "top-k",
    "randomized-top-k",
    "alfa",
    "alfa-tilt",
    "lfa",
    "gradient",
    "evasive",
    "adaptive",
    "pointwise",
)
# Those of floral_learn.attacks.votes.VOTE_ATTACKS, on votes.
ON_VOTES = ("spam", "pair", "far", "sleeper", "collusion", "targeted")
SURROGATES = ("svc", "logistic", "forest", "mlp", "knn")
_NO_TEXT = {"surrogate", "X_val", "y_val", "victim", "starts", "target"}  # parameters that --param cannot give


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(name="poison")(one_line("floral poison")(poison))


@with_table_options("label", "text", "text_encoder", "row_id", "drop", "skip_blank", "sep", "encoding")
def poison(
    source: Path = typer.Argument(..., metavar="IN", help=f"data file: {KINDS}"),
    out: Path = typer.Option(..., "--out", "-o", help="file to write, of the same kind as IN"),
    attack: str | None = typer.Option(
        None, "--attack", "-a", help=f"one of: {', '.join(NAMES)} (default: farthest; with --votes: pair)"
    ),
    budget: str = typer.Option(
        "0.1", "--budget", "-b", help="labels to flip: a share of the rows (0.1), a percentage (10%) or a count (25)"
    ),
    seed: int = typer.Option(0, "--seed", "-s", min=0, help="random seed"),
    surrogate: str | None = typer.Option(None, help=f"the model that the attacker trains: {', '.join(SURROGATES)}"),
    only: str | None = typer.Option(None, help="flip only rows where COLUMN=VALUE, e.g. annotator=ann3"),
    target: str | None = typer.Option(None, help="the class to attack: flip only rows of this label"),
    limit: list[str] = typer.Option([], help="most flips of one label, e.g. spam=10 (repeatable)"),
    param: list[str] = typer.Option([], "--param", "-p", help="parameter of the attack, e.g. C=10 (repeatable)"),
    votes: bool = typer.Option(False, "--votes", help=f"IN holds votes, one per row; attacks: {', '.join(ON_VOTES)}"),
    task: str = typer.Option("task", "--task", help="--votes: column that names the task"),
    worker: str = typer.Option("worker", "--worker", help="--votes: column that names the person"),
    features: Path | None = typer.Option(None, "--features", help="--votes: table of the tasks, with --task"),
    truth: Path | None = typer.Option(
        None, "--truth", help="--votes: the true labels (columns of --task and --label), which make the liars informed"
    ),
    columns: Any = None,
) -> None:
    """Write a copy of a data file with poisoned labels; nothing else in it changes.

    The flipped rows are listed in OUT.flips.csv (row number from 0, old and new label, score). With --votes, the budget
    is what the attacker has of the votes, and OUT.liars.csv lists whose votes these are.
    """
    started = time.perf_counter()
    if votes:
        poison_vote_file(source, out, columns, (task, worker), attack or "pair", budget, param, features, truth, seed)
        return
    attack = "farthest" if attack is None else attack
    from floral_learn.attacks import ATTACKS
    from floral_learn.base.files import write_set

    check_same_kind(out, source)
    check_out_file(out, source)
    table = columns.read(source)
    labels: Any = table.labels
    settings = attack_settings(attack, param) | {
        "budget": parse_budget(budget, n_rows=len(labels)),
        "random_state": seed,
        "mask": parse_target(target, labels, parse_only(only, table)),
        "class_limits": parse_limits(limit, labels),
    }
    if surrogate is not None:
        settings |= {"surrogate": make_surrogate(surrogate, attack)}
    if len(table.classes) > 2 and not ATTACKS[attack].multiclass:
        able = ", ".join(name for name, kind in ATTACKS.items() if kind.multiclass)
        raise TableError(
            f"--attack {attack} is defined for two classes, {table.label!r} has {len(table.classes)}; for more: {able}"
        )
    X, notes = None, list(table.notes)
    if ATTACKS[attack].needs_features:
        encoder = columns.encoder(seed)
        X = encoder.fit_transform(table.features)
        notes += encoder.notes_
    with progress_bar(attack) as progress:
        result = ATTACKS[attack](**settings, progress=progress).poison(X, labels)
    flips = out.with_name(out.name + ".flips.csv")
    # The list first: where the poisoned copy is, its list is too.
    poisoned = table.relabelled(result.indices, result.y[result.indices])
    write_set({flips: flip_list(table.rows, labels, result), out: poisoned}, "floral poison")
    for note in notes:
        say(f"  {note}")
    seconds = time.perf_counter() - started
    note = f" ({result.stopped_early})" if result.stopped_early else ""
    say(f"{attack}: flipped {len(result.indices)} of {len(labels)} labels{note} in {seconds:.1f} s")
    say(f"wrote {out} and {flips}")


def attack_settings(attack: str, params: list[str]) -> dict[str, Any]:
    """Return the attack's own parameters from NAME=VALUE texts."""
    from floral_learn.attacks import ATTACKS, LabelAttack

    if attack not in ATTACKS:
        raise TableError(f"--attack {attack!r} is unknown; choose one of {', '.join(ATTACKS)}")
    others = _NO_TEXT | {field.name for field in fields(LabelAttack)}  # these have options of their own
    allowed = [field.name for field in fields(ATTACKS[attack]) if field.name not in others]
    settings = parse_params(params)
    if strange := [name for name in settings if name not in allowed]:
        raise TableError(
            f"--param {strange[0]!r}: {attack} takes {', '.join(allowed) or 'no parameters'} as NAME=VALUE"
        )
    return settings


def parse_only(text: str | None, table: Any) -> Any:
    """Return the mask of rows where COLUMN equals VALUE (compared as text)."""
    import numpy as np

    if text is None:
        return None
    column, equals, value = text.partition("=")
    if not equals:
        raise TableError(f"--only {text!r} must be COLUMN=VALUE")
    mask = np.array([(cell or "") == value for cell in table.column(column)])
    if not mask.any():
        raise TableError(f"--only {text!r} matches no row")
    return mask


def parse_target(target: str | None, labels: Any, mask: Any) -> Any:
    """Return the mask of rows of the target's label, within ``mask``; labels are compared as text."""
    import numpy as np

    if target is None:
        return mask
    aimed = np.array([str(label) == target for label in labels])
    if not aimed.any():
        known = ", ".join(map(str, np.unique(labels)))
        raise TableError(f"--target {target!r} is not a label of the file: {known}")
    return aimed if mask is None else aimed & mask


def parse_limits(texts: list[str], labels: Any) -> dict[Any, float | int] | None:
    """Return label -> limit from LABEL=LIMIT texts; labels are compared as text."""
    import numpy as np

    known = {str(value): value for value in np.unique(labels).tolist()}
    limits = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals or name not in known:
            raise TableError(f"--limit {text!r} must be LABEL=LIMIT with a label of the file: {', '.join(known)}")
        limits[known[name]] = parse_budget(value, "--limit")
    return limits or None


def make_surrogate(name: str, attack: str) -> Any:
    """Return the classifier behind a surrogate's name."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import SVC

    from floral_learn.attacks import ATTACKS

    choices = {
        "svc": SVC(),
        "logistic": LogisticRegression(max_iter=1000),
        "forest": RandomForestClassifier(),
        "mlp": MLPClassifier(hidden_layer_sizes=(32, 32), max_iter=500),
        "knn": KNeighborsClassifier(),
    }
    if name not in choices:
        raise TableError(f"--surrogate {name!r} is unknown; choose one of {', '.join(choices)}")
    if "surrogate" not in {field.name for field in fields(ATTACKS[attack])}:
        raise TableError(f"--surrogate: {attack} needs no victim")
    return choices[name]


def flip_list(rows: Any, labels: Any, result: Any) -> bytes:
    """Return the flipped rows as CSV, the attack's first choice first; row numbers are those of the file."""
    from floral_learn.base.cells import csv_bytes

    flipped = ((rows[index], labels[index], result.y[index], f"{result.scores[index]:.6g}") for index in result.indices)
    return csv_bytes(["row", "old_label", "new_label", "score"], flipped)


def poison_vote_file(
    source: Path,
    out: Path,
    columns: Any,
    names: tuple[str, str],
    attack: str,
    budget: str,
    params: list[str],
    features: Path | None,
    truth: Path | None,
    seed: int,
) -> None:
    """Write OUT (only the column of votes differs) and OUT.liars.csv (whose votes the attacker had)."""
    import numpy as np

    from floral_learn.app.crowd import read_features, read_gold_file, vote_frame
    from floral_learn.attacks.votes import poison_votes
    from floral_learn.base.cells import csv_bytes
    from floral_learn.base.files import write_set

    started = time.perf_counter()
    check_same_kind(out, source)
    check_out_file(out, source)
    task, worker = names
    parse_budget(budget)
    table = columns.read(source, ids=task, groups=worker, text=(), drop=(), skip_blank_labels=True)
    frame = vote_frame(table, source, task)
    share = parse_budget(budget, n_rows=len(frame))
    if isinstance(share, int):
        share /= len(frame)
    items, first = np.unique(frame["task"].to_numpy(dtype=str), return_index=True)
    X = y = None
    if features is not None:
        described, _ = read_features(features, task, seed, columns)
        X = _rows_of_items(items, described, features)
    if truth is not None:
        known, _ = read_gold_file(truth, task, columns)
        if lost := [name for name in items.tolist() if name not in known]:
            raise TableError(f"--truth {truth} has no label of {len(lost)} tasks, such as {lost[0]!r}")
        y = np.array([known[name] for name in items.tolist()])
    order = np.argsort(np.argsort(first))  # items in the order in which the file first names them
    result = poison_votes(
        frame, X, y, attack=attack, budget=float(share), informed=y is not None, order=order, random_state=seed,
        **parse_params(params),
    )  # fmt: skip
    new = result.votes["label"].to_numpy()
    changed = np.flatnonzero(new != frame["label"].to_numpy())
    liars = out.with_name(out.name + ".liars.csv")
    listed = csv_bytes(["worker"], ([name] for name in result.annotators))
    write_set({liars: listed, out: table.relabelled(changed, new[changed])}, "floral poison")
    seconds = time.perf_counter() - started
    people = "1 person" if len(result.annotators) == 1 else f"{len(result.annotators)} people"
    say(
        f"{attack}: {people} with {100 * result.share:.0f} % of the {len(frame):,} votes; "
        f"{result.changed:,} votes changed in {seconds:.1f} s"
    )
    say(f"wrote {out} and {liars}")


def parse_params(texts: list[str]) -> dict[str, Any]:
    """NAME=VALUE texts; values are JSON, or plain text."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise TableError(f"--param {text!r} must be NAME=VALUE")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value
    return found


def _rows_of_items(items: Any, described: Any, path: Path) -> Any:
    """Rows of the features in the order of `items`."""
    missing = [name for name in items.tolist() if name not in described.index]
    if missing:
        raise TableError(f"{path} does not describe {len(missing)} tasks that have votes, such as {missing[0]!r}")
    return described.loc[items].to_numpy()
