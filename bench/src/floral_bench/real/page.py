"""The pages of the suite, rendered from its small tables.

usage: python -m floral_bench.real.page RUN_FOLDER RESULTS_FOLDER    (copies the tables and writes the pages)
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from floral_bench.real.asking import CHOOSERS, MARKS
from floral_bench.real.card import FILES, averaged, by_source, gains, interval, planted_only, read_tables
from floral_bench.real.cells import ALONE, AUDIT, LEVELS, REVIEW
from floral_bench.real.judging import GIVEN, JUDGES, ON_PROBABILITIES, OURS
from floral_bench.real.planted import KINDS
from floral_bench.real.sets import CHOOSE, NEW_CLASS, REPORT, TRUE
from floral_bench.real.telling_nothing import CLEAN_LEARNING, FLORAL, MODELS, PLAIN, SANITIZED
from floral_bench.reporting.tables import grid
from floral_learn.files.atomic_files import write_atomically

PAGES = ("real-errors.md", "planted-errors.md")
TITLES = {CHOOSE: "sets to choose on", REPORT: "sets to report on"}
USES = (CHOOSE, REPORT)
CLEANLAB = ("cleanlab, LR", "cleanlab, SVC", "cleanlab, forest")
CONTRADICTED = "contradicted by our probabilities"
Tables = dict[str, pd.DataFrame]


def pages(folder: Path) -> dict[str, str]:
    """The texts of the two pages, from what a run left in a folder."""
    tables, note = read_tables(folder), json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return dict(zip(PAGES, (_real_page(tables, note), _planted_page(tables, note)), strict=True))


def card_text(frame: pd.DataFrame) -> str:
    """The tables as they stand on the pages, for a terminal."""
    tables = averaged(frame)
    return "\n\n".join([_audit(tables[AUDIT]), _review(tables[REVIEW]), _alone(tables[ALONE], USES)])


def _made(note: dict[str, Any]) -> str:
    where = note["environment"]
    commit = where.get("commit", "unknown")
    return f"Made on {note['started'][:10]} at commit {commit} ({where['system']}): `{note['command']}`."


def _real_page(tables: Tables, note: dict[str, Any]) -> str:
    head = "# Labels that people, crowds and labelling functions got wrong\n\n" + "\n".join(_sentences(tables))
    read = (
        "Sources: pictures (CIFAR-10N and catdog, people: majority, one, worst), youtube and semeval (texts, the "
        "majority of labelling functions), music and labelme (one drawn vote a row; labelme also the worst), roman "
        "(probabilities only). A number is the mean over a source's columns and splits, then over sources; brackets "
        "are 95 % intervals of a bootstrap that draws sources, and there are only a few. Embeddings and words of "
        "texts are reduced to 100 principal components. LR is a logistic regression (C = 0.1), forest has 60 trees "
        "with leaves of three. Columns of roman, and labels of a class that does not exist (catdog), are apart."
    )
    audit = "## Which labels are wrong\n\n" + _audit(tables[AUDIT]) + "\n\n" + _apart(tables[AUDIT])
    review = "## What answers bring\n\n" + _review(tables[REVIEW])
    alone = "## With nobody to ask\n\n" + _alone(tables[ALONE], USES)
    return "\n\n".join([head, read, audit, review, alone, _made(note)]) + "\n"


def _planted_page(tables: Tables, note: dict[str, Any]) -> str:
    head = (
        "# Planted errors beside real ones\n\nErrors that a program plants into five public tables (800 rows): random, "
        "near a boundary, far from it, a blob, one class. Real errors are on [their own page](real-errors.md)."
    )
    parts = [head, _planted_audit(tables[AUDIT]), _planted_review(tables[REVIEW])]
    return "\n\n".join([*parts, _alone(tables[ALONE], ("planted",)), _made(note)]) + "\n"


# One sentence for each question of a reader, with the numbers of the sets to report on.


def _sentences(tables: Tables) -> list[str]:
    audit, review, alone = tables[AUDIT], tables[REVIEW], tables[ALONE]
    return [
        f"- **Finding wrong labels**: {_audit_sentence(audit)}",
        f"- **Given another model's probabilities**: {_given_sentence(audit)}",
        f"- **How many are wrong**: {_share_sentence(audit)}",
        f"- **After a person's answers**: {_review_sentence(review)}",
        f"- **With nobody to ask**: {_alone_sentence(alone)}",
    ]


def _measured(table: pd.DataFrame, *who: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """The groups of sets on which all of these were measured, and their rows."""
    for use in USES:
        rows = _real(table, use)
        if len(rows) and set(who) <= set(rows["who"]):
            yield use, rows


def _together(parts: Iterable[str]) -> str:
    return "; ".join(parts) + "." if (parts := list(parts)) else "not measured."


def _audit_sentence(audit: pd.DataFrame) -> str:
    def said(use: str, rows: pd.DataFrame) -> str:
        ap, f1 = (by_source(rows, metric, ["who"]).mean() for metric in ("average precision", "F1"))
        best, other = ap[[*CLEANLAB]].idxmax(), f1[[*CLEANLAB]].idxmax()
        return (
            f"average precision {ap[OURS]:.3f} and F1 {f1[OURS]:.3f} ({TITLES[use]}); cleanlab's best models have "
            f"{ap[best]:.3f} ({best.removeprefix('cleanlab, ')}) and {f1[other]:.3f} "
            f"({other.removeprefix('cleanlab, ')}), all that our probabilities contradict F1 {f1[CONTRADICTED]:.3f}"
        )

    return _together(said(*found) for found in _measured(audit, OURS, CONTRADICTED, *CLEANLAB))


def _given_sentence(audit: pd.DataFrame) -> str:
    def said(use: str, rows: pd.DataFrame) -> str:
        ap, f1 = (by_source(rows, metric, ["who"]).mean() for metric in ("average precision", "F1"))
        return (
            f"on a logistic regression's, average precision {ap[GIVEN]:.3f} and F1 {f1[GIVEN]:.3f}, cleanlab "
            f"{ap['cleanlab, LR']:.3f} and {f1['cleanlab, LR']:.3f} ({TITLES[use]})"
        )

    return _together(said(*found) for found in _measured(audit, GIVEN, "cleanlab, LR"))


def _share_sentence(audit: pd.DataFrame) -> str:
    mine = audit[audit["who"] == OURS] if len(audit) else audit
    if not len(mine) or "cifar10n" not in set(mine["set"]):
        return "not measured."
    rows = mine[(mine["set"] == "cifar10n") & (mine["kind"] != TRUE)]
    said = ", ".join(f"{row['estimated']:.3f} for {row['wrong']:.3f}" for _, row in rows.iterrows())
    most = mine[mine["kind"] == TRUE]["estimated"].max()
    return f"on CIFAR-10N the audit estimates {said}; on true labels at most {most:.3f}."


def _review_sentence(review: pd.DataFrame) -> str:
    def said(use: str, rows: pd.DataFrame) -> str:
        found = gains(rows[rows["wrong_answers"] == 0])
        left = {n: by_source(found[found["answers"] == n], "left", ["who"]).mean() for n in (20, 100)}
        foil = left[100].drop(OURS).idxmin()
        return (
            f"after 20 and 100 right ones {left[20][OURS]:.3f} and {left[100][OURS]:.3f} of the wrong labels are "
            f"left, by the best foil ({foil}) {left[20][foil]:.3f} and {left[100][foil]:.3f} ({TITLES[use]})"
        )

    return _together(said(*found) for found in _measured(review, *CHOOSERS))


def _alone_sentence(alone: pd.DataFrame) -> str:
    def said(use: str, rows: pd.DataFrame) -> str:
        mean = by_source(_over_plain(rows), "over", ["way"]).mean()
        ways = " and ".join(f"{way} {mean[way]:+.3f}" for way in (SANITIZED, CLEAN_LEARNING))
        return f"over the plain models, {ways} of accuracy ({TITLES[use]})"

    return _together(said(*found) for found in _measured(alone, *MODELS))


# Tables.


def _real(table: pd.DataFrame, use: str) -> pd.DataFrame:
    """The rows that enter means: real errors of sets with rows."""
    if not len(table):
        return table
    apart = table["kind"].isin([TRUE, NEW_CLASS]) | (table["set"] == "roman")
    return table[(table["use"] == use) & ~apart]


AUDIT_HEAD = [
    "who", "average precision", "F1", "precision", "recall", "flagged per wrong label", "read per error, first half",
    "true labels flagged", "ours ahead: average precision", "ours ahead: F1",
]  # fmt: skip


def _audit(audit: pd.DataFrame) -> str:
    lines: list[list[str]] = []
    for use in USES:
        rows = _real(audit, use)
        if not len(rows):
            continue
        rows = rows.assign(per=rows["flagged"] / rows["wrong"])
        right = audit[(audit["use"] == use) & (audit["kind"] == TRUE)]
        lines.append([f"**{TITLES[use]}**", *[""] * (len(AUDIT_HEAD) - 1)])
        names = ("average precision", "F1", "precision", "recall", "per", "read per error")
        found = {name: by_source(rows, name, ["who"]) for name in names}
        flagged = by_source(right, "flagged", ["who"]) if len(right) else pd.DataFrame()
        for who in (name for name in JUDGES if name in found["F1"]):
            line = [who, *(_plain(found[name][who].mean()) for name in names)]
            line.append(_plain(flagged[who].mean()) if who in flagged else "")
            lines.append([*line, *(_ahead(found[name], OURS, who) for name in names[:2])])
    return grid(AUDIT_HEAD, lines)


def _apart(audit: pd.DataFrame) -> str:
    """Sets that are in no mean."""
    lines = []
    for name, kind, judges in (("roman", None, ON_PROBABILITIES), ("catdog", NEW_CLASS, tuple(JUDGES))):
        rows = audit[(audit["set"] == name) & (audit["kind"] == kind if kind else True)] if len(audit) else audit
        for who in judges if len(rows) else ():
            mean = rows[rows["who"] == who].mean(numeric_only=True)
            measured = ("average precision", "F1", "precision", "recall", "flagged", "wrong")
            lines.append([f"{name}{f', {kind}' if kind else ''}", who, *(_plain(mean.get(m)) for m in measured)])
    return grid(["set", "who", "average precision", "F1", "precision", "recall", "flagged", "wrong"], lines, 2)


def _review(review: pd.DataFrame) -> str:
    marks = [n for n in MARKS if len(review) and n in set(review["answers"])]
    head = ["who chooses, how answers are read", "wrong answers", *(f"left, {n}" for n in marks)]
    head += [f"won, {n}" for n in marks] + ["ours ahead: left, 50"]
    lines: list[list[str]] = []
    for use in USES:
        rows = _real(review, use)
        if not len(rows):
            continue
        lines.append([f"**{TITLES[use]}**", *[""] * (len(head) - 1)])
        found = gains(rows)
        for wrong in dict.fromkeys(rows["wrong_answers"]):
            some = found[found["wrong_answers"] == wrong]
            at = {n: some[some["answers"] == n] for n in marks}
            left, won = ({n: by_source(at[n], m, ["who"]) for n in marks} for m in ("left", "won"))
            for who in (name for name in CHOOSERS if name in left[marks[0]]):
                line = [who, f"{wrong} %", *(_plain(left[n][who].mean()) for n in marks)]
                line += [f"{won[n][who].mean():+.3f}" for n in marks]
                lines.append([*line, _ahead(-left[50], OURS, who)])
    note = (
        "*left*: wrong labels left, of 1; *won*: accuracy, mean of SVC, forest and LR; each after so many answers.\n\n"
    )
    return note + grid(head, lines, 2)


def _over_plain(alone: pd.DataFrame) -> pd.DataFrame:
    keys = ["set", "kind", "level", "who"]
    plain = alone[alone["way"] == PLAIN].set_index(keys)["accuracy"]
    rows = alone[alone["way"] != PLAIN].set_index(keys)
    return rows.assign(over=rows["accuracy"] - plain.reindex(rows.index), plain=plain.reindex(rows.index)).reset_index()


def _alone(alone: pd.DataFrame, uses: tuple[str, ...]) -> str:
    if not len(alone):
        return ""
    blocks = {TITLES.get(use, "planted, 20 %"): alone[(alone["use"] == use) & (alone["kind"] != TRUE)] for use in uses}
    right = alone[alone["use"].isin(uses) & (alone["kind"] == TRUE)]
    blocks["true labels"] = right
    head, lines = ["model", "who", *(f"over plain, {name}" for name in blocks), "worst", "seconds, times plain"], []
    times = alone[alone["use"].isin(uses)].groupby(["who", "way"])["seconds"].mean()
    for model in MODELS:
        for way in (SANITIZED, CLEAN_LEARNING, *((FLORAL,) if model == "SVC" else ())):
            line, worst = [model, way], []
            for rows in blocks.values():
                over = _over_plain(rows[rows["who"] == model])
                over = over[over["way"] == way]
                worst += over["over"].dropna().tolist()
                line.append(_interval(by_source(over, "over", ["way"])[way]) if len(over) else "")
            slow = times.get((model, way), np.nan) / times.get((model, PLAIN), np.nan)
            lines.append([*line, f"{min(worst):+.3f}" if worst else "", f"{slow:.1f}"])
    return grid(head, lines, 2)


def _planted_audit(audit: pd.DataFrame) -> str:
    rows = planted_only(audit) if len(audit) else audit
    if not len(rows):
        return ""
    levels = [level for level in LEVELS if level in set(rows["level"])]
    head = [
        "average precision / F1 / flagged per wrong label",
        *(f"{level:g} %" for level in levels),
        "true labels flagged",
    ]
    lines = []
    for who in JUDGES:
        mine = rows[rows["who"] == who]
        at = [mine[(mine["level"] == level) & (mine["kind"] != TRUE)] for level in levels]
        shown = [
            f"{some['average precision'].mean():.3f} / {some['F1'].mean():.3f} / "
            f"{(some['flagged'] / some['wrong']).mean():.2f}"
            for some in at
        ]
        lines.append([who, *shown, _plain(mine[mine["kind"] == TRUE]["flagged"].mean())])
    return grid(head, lines)


def _planted_review(review: pd.DataFrame) -> str:
    rows = planted_only(review) if len(review) else review
    if not len(rows):
        return ""
    found, marks = gains(rows), MARKS[:4]
    kinds = [kind for kind in KINDS if kind in set(rows["kind"])]
    level = rows["level"].max()
    head = [f"lost accuracy of an SVC that is back, % ({level:g} % planted)", *kinds, "all", "wrong labels left, all"]
    lines = []
    for who in CHOOSERS:
        mine = found[found["who"] == who]
        groups = [mine[mine["kind"] == kind] for kind in kinds] + [mine]
        line = ["/".join(f"{_back(some[some['answers'] == n]):.0f}" for n in marks) for some in groups]
        left = "/".join(f"{mine[mine['answers'] == n]['left'].mean():.2f}" for n in marks)
        lines.append([who, *line, left])
    return f"After {', '.join(map(str, marks))} answers:\n\n" + grid(head, lines)


def _back(rows: pd.DataFrame) -> float:
    return float(100 * rows["back"].sum() / rows["lost"].sum()) if rows["lost"].sum() > 0 else float("nan")


def _plain(value: Any) -> str:
    return "" if value is None or value != value else f"{value:.3f}"


def _interval(values: pd.Series) -> str:
    mean, low, high = interval(values.to_numpy())
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"


def _ahead(found: pd.DataFrame, ours: str, who: str) -> str:
    if who == ours or ours not in found:
        return ""
    return _interval(found[ours] - found[who])


def publish(run: Path, results: Path) -> list[Path]:
    """Copy a run's small tables to where results are published, and write its pages from them."""
    there = results / "real"
    there.mkdir(parents=True, exist_ok=True)
    for name in (*FILES.values(), "run.json"):
        shutil.copyfile(run / name, there / name)
    return [write_atomically(results / name, text) for name, text in pages(there).items()]


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Path(sys.argv[2]))
