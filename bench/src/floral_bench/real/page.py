"""The pages of the suite, rendered from its small tables.

usage: python -m floral_bench.real.page RUN_FOLDER RESULTS_FOLDER    (copies the tables and writes the pages)
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from floral_bench.real.asking import CHOOSERS, MARKS
from floral_bench.real.card import FILES, averaged, by_source, gains, interval, over_plain, read_tables
from floral_bench.real.cells import ALONE, AUDIT, LEVELS, PLANTED_USE, REVIEW
from floral_bench.real.judging import CONTRADICTED, JUDGES, OURS
from floral_bench.real.planted import KINDS
from floral_bench.real.sets import CHOOSE, REPORT, TRUE
from floral_bench.real.telling_nothing import CLEAN_LEARNING, MODELS, PLAIN, SANITIZED
from floral_bench.reporting.tables import grid
from floral_learn.base.files import write_atomically

PAGES = ("real-errors.md", "planted-errors.md")
TITLES = {CHOOSE: "sets to choose on", REPORT: "sets to report on", PLANTED_USE: "planted, 20 %"}
USES = (CHOOSE, REPORT)
LATE = 50  # answers after which choosers are compared
SHOWN = (20, 50, 100, 200)
HOW = """\
Sources: pictures (CIFAR-10N and catdog: the majority of three people, one of them, a wrong one if there is any), texts
with the majority of their labelling functions (youtube, semeval), crowds (music and labelme: one drawn vote a row;
labelme also the worst vote). Rules were chosen on CIFAR-10N, catdog, youtube and music. A number is the mean over
columns and splits of a set, then over the sets of a source, then over sources. Brackets are 95 % intervals of a
bootstrap over sources, of which there are few. LR is a logistic regression with C = 0.1, the forest has 60 trees with
leaves of three rows. Roman has probabilities only: it stands apart and enters no mean."""
Tables = dict[str, pd.DataFrame]


def pages(folder: Path) -> dict[str, str]:
    """The texts of the two pages, from what a run left in a folder."""
    tables, note = read_tables(folder), json.loads((folder / "run.json").read_text(encoding="utf-8"))
    where = note["environment"]
    made = f"Made on {note['started'][:10]}, commit {where.get('commit', 'unknown')}, {where['system']}: "
    real = [
        "# Labels that people, crowds and labelling functions got wrong",
        "\n".join(_sentences(tables, REPORT)),
        HOW,
        "## Which labels are wrong",
        _audit(tables[AUDIT]),
        _apart(tables[AUDIT]),
        "## What answers bring",
        f"Wrong labels left, of 1, and accuracy won (mean of SVC, forest and LR) after {_marks(SHOWN)} answers.",
        _review(tables[REVIEW]),
        "## With nobody to ask",
        _alone(tables[ALONE], USES),
        f"{made}`{note['command']}`, {_splits(tables, USES)}.",
    ]
    planted = (
        []
        if not (len(tables[AUDIT]) and (tables[AUDIT]["use"] == PLANTED_USE).any())
        else [  # a run of the real sets alone
            "# Planted errors beside real ones",
            "\n".join(_sentences(tables, PLANTED_USE)),
            "Errors that a program plants into five public tables (800 rows): random, near a boundary, far from it, "
            "a blob, one class. Real errors are on [their own page](real-errors.md).",
            _planted_audit(tables[AUDIT]),
            f"Lost accuracy of an SVC that is back, in per cent, after {', '.join(map(str, MARKS[:3]))} answers:",
            _planted_review(tables[REVIEW]),
            _alone(tables[ALONE], (PLANTED_USE,)),
            f"{made}`{note['command']}`, {_splits(tables, (PLANTED_USE,))}.",
        ]
    )
    found = {name: "\n\n".join(parts) + "\n" for name, parts in zip(PAGES, (real, planted), strict=True)}
    return found if planted else {PAGES[0]: found[PAGES[0]]}


def card_text(frame: pd.DataFrame) -> str:
    """The tables as they stand on the pages, for a terminal."""
    tables = averaged(frame)
    shown = (_audit(tables[AUDIT]), _review(tables[REVIEW]), _alone(tables[ALONE], USES))
    return "\n\n".join(table for part, table in zip(FILES, shown, strict=True) if len(tables[part]))


def _sentences(tables: Tables, use: str) -> list[str]:
    """One for each question of a reader, on the sets of one use."""
    audit, answered, over = (
        _blocks(table, (use,)).get(use, table[:0])
        for table in (tables[AUDIT], gains(tables[REVIEW]), over_plain(tables[ALONE]))
    )
    late = answered.query("answers == @LATE and wrong_answers == 0") if len(answered) else answered
    right = _blocks(tables[AUDIT], (use,), right=True).get(use, tables[AUDIT][:0])
    every, mine = tables[AUDIT], tables[AUDIT]
    if len(every) and use == PLANTED_USE:
        mine = audit.query("who == @OURS").groupby("level", as_index=False)[["estimated", "wrong"]].mean()
    elif len(every):
        mine = every.query("set == 'cifar10n' and who == @OURS and kind != @TRUE")
    where = "With planted errors" if use == PLANTED_USE else "On the three columns of CIFAR-10N"
    shares = ", ".join(f"{row['estimated']:.3f} (true: {row['wrong']:.3f})" for _, row in mine.iterrows())
    foils = ("cleanlab, SVC", "cleanlab, LR", "cleanlab, forest", CONTRADICTED, "kNN vote")
    said = [
        f"The audit ranks wrong labels with an average precision of {_means(audit, 'average precision', OURS, foils)}.",
        f"Its flags have an F1 of {_means(audit, 'F1', OURS, foils)}. Of true labels {_means(right, 'flagged', OURS)} "
        "are flagged.",
        f"{where} it estimates these shares of labels to be wrong: {shares or 'not measured'}.",
        f"After {LATE} right answers the review leaves {_means(late, 'left', OURS, CHOOSERS[1:])} of the wrong labels.",
        f"With nobody to ask, {SANITIZED} gains {_means(over, 'over', SANITIZED, (CLEAN_LEARNING,))} of accuracy.",
    ]
    return [f"- {sentence}" for sentence in said]


def _means(table: pd.DataFrame, metric: str, first: str, others: tuple[str, ...] = ()) -> str:
    if not len(table):
        return "(not measured)"
    mean = by_source(table, metric, "way" if "way" in table else "who").mean()
    found = [f"{name}: {mean[name]:.3f}" for name in others if name in mean]
    return f"{mean[first]:.3f}" + (f" ({'; '.join(found)})" if found else "")


def _marks(marks: tuple[int, ...]) -> str:
    return ", ".join(map(str, marks[:-1])) + f" and {marks[-1]}"


def _splits(tables: Tables, uses: tuple[str, ...]) -> str:
    """How many splits each part has, fewest to most."""
    found = {part: table[table["use"].isin(uses)]["splits"] for part, table in tables.items() if len(table)}
    return "splits: " + ", ".join(f"{part} {some.min()} to {some.max()}" for part, some in found.items())


def _blocks(table: pd.DataFrame, uses: tuple[str, ...], right: bool = False) -> dict[str, pd.DataFrame]:
    """The rows of each group of sets that enter means, of labels with errors or (`right`) of true ones."""
    if not len(table):
        return {}
    some = table[(table["kind"] == TRUE) == right]
    some = some[some["set"] != "roman"]
    return {use: some[some["use"] == use] for use in uses if (some["use"] == use).any()}


def _audit(audit: pd.DataFrame) -> str:
    names = ["average precision", "F1", "precision", "recall", "flagged per wrong label", "read per error"]
    lines, right = [], _blocks(audit, USES, right=True)
    for use, rows in _blocks(audit, USES).items():
        found = {name: by_source(rows.assign(**{names[4]: rows["flagged"] / rows["wrong"]}), name) for name in names}
        flagged = by_source(right[use], "flagged").mean() if use in right else {}
        lines.append([f"**{TITLES[use]}**", *[""] * 7])
        for who in (name for name in JUDGES if name in found["F1"]):
            mean = {name: _shown(found[name][who].mean()) for name in names}
            line = [who, mean[names[0]], mean["F1"], f"{mean['precision']}/{mean['recall']}", mean[names[4]]]
            line += [mean[names[5]], _shown(flagged.get(who))]
            lines.append([*line, "; ".join(filter(None, (_ahead(found[name], who) for name in names[:2])))])
    head = [*names[:2], "precision/recall", names[4], f"{names[5]}, first half", "true labels flagged"]
    return grid(["who", *head, "ours ahead: average precision; F1"], lines)


def _apart(audit: pd.DataFrame) -> str:
    """Sets that enter no mean."""
    names, lines = ["average precision", "F1", "precision", "recall", "flagged", "wrong"], []
    if len(audit):
        some = audit[audit["set"] == "roman"]
        means = some.groupby(["set", "who"], sort=False)[[name for name in names if name in some]].mean()
        lines = [[*at, *map(_shown, row)] for at, row in zip(means.index, means.to_numpy(), strict=True)]
    return grid(["apart", "who", *names], lines, 2)


def _review(review: pd.DataFrame) -> str:
    found = gains(review)
    lines: list[list[str]] = []
    for use, rows in _blocks(found, USES).items():
        marks = [n for n in SHOWN if n in set(rows["answers"])]
        lines.append([f"**{TITLES[use]}**", *[""] * 4])
        for wrong, some in rows.groupby("wrong_answers", sort=False):
            left, won = ([by_source(some[some["answers"] == n], m) for n in marks] for m in ("left", "won"))
            for who in (name for name in CHOOSERS if name in left[0]):
                after = ["/".join(f"{values[who].mean():.3f}" for values in left)]
                after.append("/".join(f"{values[who].mean():+.3f}" for values in won))
                lines.append([who, f"{wrong} %", *after, _ahead(-left[marks.index(LATE)], who)])
    return grid(["who chooses, how answers are read", "wrong answers", "left", "won", "ours ahead: left, 50"], lines, 2)


def _alone(alone: pd.DataFrame, uses: tuple[str, ...]) -> str:
    over = over_plain(alone)
    blocks = {TITLES[use]: rows for use, rows in _blocks(over, uses).items()}
    right = _blocks(over, uses, right=True)
    blocks |= {"true labels": pd.concat(right.values())} if right else {}
    ways, lines = [way for way in dict.fromkeys(over["way"]) if way != PLAIN] if len(over) else [], []
    for model in MODELS:
        for way in ways:
            some = {name: rows[(rows["who"] == model) & (rows["way"] == way)] for name, rows in blocks.items()}
            if any(map(len, some.values())):
                both = pd.concat(some.values())
                line = [_interval(by_source(rows, "over", "way")[way]) if len(rows) else "" for rows in some.values()]
                lines.append([model, way, *line, f"{both['over'].min():+.3f}", f"{both['times'].mean():.1f}"])
    return grid(["model", "who", *(f"over plain, {name}" for name in blocks), "worst", "time, of plain"], lines, 2)


def _planted_audit(audit: pd.DataFrame) -> str:
    wrong, right = ({PLANTED_USE: audit[:0]} | _blocks(audit, (PLANTED_USE,), right=flag) for flag in (False, True))
    lines = []
    for who in JUDGES if len(wrong[PLANTED_USE]) else ():
        mine = wrong[PLANTED_USE].query("who == @who")
        means = mine.assign(per=mine["flagged"] / mine["wrong"]).groupby("level").mean(numeric_only=True)
        parts = means[["average precision", "F1", "per"]].map(_shown).agg(" / ".join, axis=1)
        flagged = right[PLANTED_USE].query("who == @who")["flagged"].mean()
        lines.append([who, *(parts.get(level, "") for level in LEVELS), _shown(flagged)])
    head = "average precision / F1 / flagged per wrong label"
    return grid([head, *(f"{level:g} %" for level in LEVELS), "true labels flagged"], lines)


def _planted_review(review: pd.DataFrame) -> str:
    lines = []
    for rows in _blocks(gains(review), (PLANTED_USE,)).values():
        for who, mine in rows.groupby("who", sort=False):
            groups = [mine[mine["kind"] == kind] for kind in KINDS] + [mine]
            sums = [some.groupby("answers")[["back", "lost"]].sum() for some in groups]
            line = ["/".join(f"{100 * b / max(a, 1e-9):.0f}" for b, a in found.to_numpy()) for found in sums]
            left = mine.groupby("answers")["left"].mean().map("{:.2f}".format)
            lines.append([who, *line, "/".join(left)])
    return grid(["who chooses, how answers are read", *KINDS, "all", "wrong labels left, of 1"], lines)


def _shown(value: Any) -> str:
    return "" if value is None or value != value else f"{value:.3f}"


def _interval(values: pd.Series) -> str:
    mean, low, high = interval(values.to_numpy())
    return f"{mean:+.3f}" + (f" [{low:+.3f},{high:+.3f}]" if values.notna().sum() > 1 else "")


def _ahead(found: pd.DataFrame, who: str) -> str:
    return "" if who == OURS or OURS not in found else _interval(found[OURS] - found[who])


def publish(run: Path, results: Path) -> list[Path]:
    """Copy a run's small tables to where results are published, and write its pages from them."""
    there = results / "real"
    there.mkdir(parents=True, exist_ok=True)
    for name in (*FILES.values(), "run.json"):
        shutil.copyfile(run / name, there / name)
    return [write_atomically(results / name, text) for name, text in pages(there).items()]


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Path(sys.argv[2]))
