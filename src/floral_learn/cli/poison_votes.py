"""``floral poison --votes``: a copy of a file of votes in which some of the people lie."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from floral_learn.tables.table_error import TableError

from .options import parse_budget
from .say import say


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

    from floral_learn.attacks.votes import poison_votes
    from floral_learn.files.file_sets import write_set

    from .crowd import read_features, read_gold_file, vote_frame
    from .poison import target_is_safe

    started = time.perf_counter()
    target_is_safe(source, out)
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
        X = _of(items, described, features)
    if truth is not None:
        known = read_gold_file(truth, task, columns)
        if lost := [name for name in items.tolist() if name not in known]:
            raise TableError(f"--truth {truth} has no label of {len(lost)} items, such as {lost[0]!r}")
        y = np.array([known[name] for name in items.tolist()])
    order = np.argsort(np.argsort(first))  # items in the order in which the file first names them
    result = poison_votes(
        frame, X, y, attack=attack, budget=float(share), informed=y is not None, order=order, random_state=seed,
        **parse_params(params),
    )  # fmt: skip
    new = result.votes["label"].to_numpy()
    changed = np.flatnonzero(new != frame["label"].to_numpy())
    liars = out.with_name(out.name + ".liars.csv")
    listed = "worker\n" + "".join(f"{json.dumps(str(name), ensure_ascii=False)}\n" for name in result.annotators)
    write_set({liars: listed.encode(), out: table.relabelled(changed, new[changed])}, "floral poison")
    seconds = time.perf_counter() - started
    people = "1 person" if len(result.annotators) == 1 else f"{len(result.annotators)} people"
    say(
        f"{attack}: {people} with {result.share:.0%} of the {len(frame):,} votes; "
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


def _of(items: Any, described: Any, path: Path) -> Any:
    """Rows of the features in the order of `items`."""
    missing = [name for name in items.tolist() if name not in described.index]
    if missing:
        raise TableError(f"{path} does not describe {len(missing)} items that have votes, such as {missing[0]!r}")
    return described.loc[items].to_numpy()
