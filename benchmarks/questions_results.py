"""The page docs/results/questions.md from what the questions suite and the review cases left.

    floral bench questions --out RUN; python benchmarks/review_cases.py --parts ... --rows RUN/cases.jsonl
    python benchmarks/questions_results.py RUN [--docs docs/results]

RUN holds store.sqlite, and cases.jsonl where the cases were run again. Every number comes from these files. Remarks of
people stand between the two markers of the page, and are kept.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from floral_bench.experiments import experiment
from floral_bench.questions.card import card_text, goal_rows
from floral_bench.reporting.origin import note_of, parts_of
from floral_bench.reporting.paper import paper_value
from floral_bench.store import Store
from floral_bench.suites import SUITES
from floral_learn.files.atomic_files import write_atomically

ROOT = Path(__file__).resolve().parents[1]
OPEN, CLOSE = "<!-- remarks -->", "<!-- end of remarks -->"
MARKS = ("10", "20", "50", "100")
CASES = {
    "moon": "Moon, farthest (Table 1)",
    "moon-alfa": "Moon, alfa",
    "moon-alfa-tilt": "Moon, alfa-tilt",
    "moon-lfa": "Moon, LFA",
    "mnist-alfa-tilt": "MNIST 1 vs 7, alfa-tilt",
}

SETTING = """\
At most 1,000 training and 1,000 test rows, standardised; six attacks at 10 and 30 % and clean labels. The
model is `SVC()`, always the same: on the given labels, on the clean ones, and by `review.train(SVC())`. One
question in four is on the secret walk. *Tables*: six real tables that no setting was chosen on. *Uneven or
overlapping*: relatives of three of them with a rare class or few columns. *Small sets*: scikit-learn's and synthetic
data. Which of them were looked at when, and for what: [one list](looked-at.md). Every order of a group has the same
splits."""
WORDS = """\
**Recovered**: (mean accuracy - SVC) / (SVC on clean labels - SVC), a ratio of means over the poisoned cells, and in
brackets the median of the cells' own shares and how many cells have at least half of it back, where poison took two
points or more; a cell is the mean over its splits. **Harm**: difference to SVC in cells where poison took less than two
points (*mean harm* is the lowest mean at any number of answers, 5 to 100, *worst harm* the lowest cell from
20 answers on). *Worst cell*: the lowest difference to SVC in any cell from 20 answers on."""
ON_CASES = """\
[cases.jsonl](questions/cases.jsonl), by `python benchmarks/review_cases.py --parts paper strategies reviewers --rows
RUN/cases.jsonl` at commit 611b4ca, before the present rules of the review: they say what kinds of cases there are, and
how an earlier form did in them."""
ON_PAPER = """\
The paper's C and gamma. *Paper*: accuracy in the last round (its best round in brackets). *SVM* and *FLORAL*
by `review.fit`, FLORAL with its defaults otherwise; means over splits. Our attacks are stronger than the
paper's at most levels: compare the columns without answers first. *Wrong*: share of the training labels that
are wrong as read."""
ON_STRATEGIES = """\
`evasive` at 30 %, answers right, labels read by our posterior. *Knows*: the groups of flips start where that
reviewer asks least, as three tries on the clean labels tell. Difference to SVC on the given labels, in points
of accuracy; *took* is what the attack took from SVC."""
ON_REVIEWERS = """\
Difference to SVC on the same given labels, in points of accuracy: mean over the tables, one split (worst cell
in brackets). *Two, one lying*: both answer every question, one with the other class; *in turn*: they share no
row. *Liar alone* is the limit of any review: whoever answers alone is believed. *Uneven*: spambase-rare,
phoneme-rare, imbalanced and htru2."""


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "results")
    given = parser.parse_args()
    page, folder = given.docs / "questions.md", given.docs / "questions"
    found = experiment("questions", {})
    with Store(given.run / "store.sqlite", read_only=True) as store:
        frame = found.read(found.cells, store)
        note = note_of(parts_of(store, "questions", {"questions": found.cells}))
    cases = next(path for path in (given.run / "cases.jsonl", folder / "cases.jsonl") if path.exists()).read_text()
    found.write(frame, folder, note)
    (folder / "card.md").unlink()  # it is part of the page
    write_atomically(folder / "cells.csv.gz", gzip.compress((folder / "cells.csv").read_bytes(), 9, mtime=0))
    (folder / "cells.csv").unlink()
    write_atomically(folder / "cases.jsonl", cases)
    lines = [json.loads(line) for line in cases.splitlines()]
    write_atomically(page, "\n".join(_page(frame, lines, note, _kept(page))) + "\n")


def _kept(page: Path) -> str:
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    found = re.search(f"{OPEN}(.*?){CLOSE}", text, re.DOTALL)
    return found[1].strip("\n") if found else ""


def _page(frame: pd.DataFrame, cases: list[dict[str, Any]], note: dict[str, Any], kept: str) -> list[str]:
    parts = note.get("parts", [note["environment"]])
    commits, systems = (" and ".join(dict.fromkeys(part[name] for part in parts)) for name in ("commit", "system"))
    hours = note["seconds"] / 3600
    return [
        "# Questions: what a person's answers buy",
        "",
        "A person is shown m training rows and says what they are. How much of what poison took comes back?",
        "",
        f"{note['started'][:10]}, commit {commits}, {systems}, {hours:.1f} core hours "
        "([run.json](questions/run.json)): `floral bench questions --out RUN`; this page is made by `python "
        "benchmarks/questions_results.py RUN`.",
        "",
        SETTING,
        "",
        *_coverage(frame),
        "",
        WORDS,
        "",
        "## Goals, on the tables",
        "",
        "| | goal | measured | |",
        "|---|---|---|---|",
        *(
            f"| {what} | {goal} | {found} | {'reached' if ok else '**missed**'} |"
            for what, goal, found, ok in goal_rows(frame)
        ),
        "",
        OPEN,
        kept,
        CLOSE,
        "",
        "![Mean test accuracy over the poisoned cells by number of answers](questions/questions.png)",
        "",
        "![Test accuracy on the tables by attack](questions/by_attack.png)",
        "",
        "## Score card",
        "",
        card_text(frame).rstrip(),
        "",
        "All cells: [cells.csv.gz](questions/cells.csv.gz).",
        "",
        "## Cases beside the cells",
        "",
        ON_CASES,
        "",
        *_paper(cases),
        *_strategies(cases),
        *_reviewers(cases),
        "Times: [review-times.md](review-times.md). IMDB with answers: [imdb-answers.md](imdb-answers.md).",
    ]


def _coverage(frame: pd.DataFrame) -> list[str]:
    """How many splits of the cells of each group were run, by who chooses."""
    lines = ["| group | who chooses | answers | data sets | splits | cells |", "|---|---|---|---|---|---|"]
    frame = frame.assign(who=np.where(frame["order"] == "review", "review", "other orders"))
    for (group, who, wrong), part in frame.groupby(["group", "who", "wrong_answers"], sort=False):
        splits = part.groupby(["data", "attack", "level", "order"])["split"].nunique()
        count = len(part.drop_duplicates(["data", "attack", "level", "split", "order"]))
        span = f"{splits.min()}" if splits.min() == splits.max() else f"{splits.min()} to {splits.max()}"
        words = "right" if wrong == 0 else f"{wrong} % wrong"
        lines.append(f"| {group} | {who} | {words} | {', '.join(sorted(set(part['data'])))} | {span} | {count:,} |")
    return lines


def _mean(values: list[float]) -> str:
    return f"{np.mean(values):.3f}" if values else ""


def _paper(cases: list[dict[str, Any]]) -> list[str]:
    found: dict[tuple[str, float], list[dict[str, Any]]] = defaultdict(list)
    for case in cases:
        if case["part"] == "paper" and "error" not in case:
            found[case["suite"], case["level"]].append(case)
    if not found:
        return []
    lines = [
        "## The paper's data with answers",
        "",
        ON_PAPER,
        "",
        "| data, attack | level | splits | paper's SVM | its FLORAL | SVM, no answers | 10 | 20 | 50 | 100 | clean |",
        "|---" * 11 + "|",
    ]
    further = [
        "| data, attack | level | FLORAL, no answers | 10 | 20 | 50 | 100 | wrong, no answers | 10 | 20 | 50 | 100 |",
        "|---" * 12 + "|",
    ]
    for (suite, level), rows in sorted(found.items(), key=lambda item: (list(CASES).index(item[0][0]), item[0][1])):
        spec = SUITES[suite]
        paper = [
            " ".join(
                text
                for text, statistic in (("{:.3f}", "last"), ("({:.3f})", "best"))
                if (value := paper_value(spec.paper_table, level, spec.settings[0], method, "accuracy", statistic))
                is not None
                for text in [text.format(value)]
            )
            for method in ("svm", "floral")
        ]
        cells = [CASES[suite], f"{level:g} %", str(len(rows)), *paper]
        cells += [_mean([row["svm"][n] for row in rows]) for n in ("0", *MARKS)]
        cells += [_mean([row["svm, clean labels"] for row in rows])]
        lines.append("| " + " | ".join(cells) + " |")
        second = [_mean([row["floral"][n] for row in rows]) for n in ("0", *MARKS)]
        second += [f"{np.mean([row['wrong'][n] for row in rows]):.1%}" for n in ("0", *MARKS)]
        further.append("| " + " | ".join([*cells[:2], *second]) + " |")
    lines += ["", "FLORAL, and the share of training labels that are wrong as read:", "", *further]
    return [*lines, ""]


def _strategies(cases: list[dict[str, Any]]) -> list[str]:
    part = [case for case in cases if case["part"] == "strategies" and "error" not in case]
    if not part:
        return []
    lines = [
        "## An attacker who knows who asks",
        "",
        ON_STRATEGIES,
        "",
        "| attacker knows | group size | reviewer asks by | cells | took | 10 | 20 | 50 | 100 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    found: dict[tuple[str, int, str], list[Any]] = defaultdict(list)
    for case in part:
        for order in case["against"]:
            found[case["known"], case.get("group_size", 5), order].append((case["clean"], case["svc"], case[order]))
    for (known, size, order), rows in sorted(
        found.items(), key=lambda i: (i[0][0] != "nothing", i[0][2] != "review", i[0])
    ):
        took = np.mean([clean - svc for clean, svc, _ in rows])
        over = [f"{100 * np.mean([by[n] - svc for _, svc, by in rows]):+.1f}" for n in MARKS]
        lines.append(f"| {known} | {size} | {order} | {len(rows)} | {100 * took:.1f} | " + " | ".join(over) + " |")
    return [*lines, ""]


def _reviewers(cases: list[dict[str, Any]]) -> list[str]:
    part = [case for case in cases if case["part"] == "reviewers" and "error" not in case]
    if not part:
        return []
    lines = [
        "## Who answers, and what the rows are like",
        "",
        ON_REVIEWERS,
        "",
        "| labels | reviewer | rows | cells | SVC | clean | 10 | 20 | 50 | 100 |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    found: dict[tuple[str, float, str, str], list[dict[str, Any]]] = defaultdict(list)
    for case in part:
        found[case["attack"], case["level"], case["reviewer"], case["input"]].append(case)
    for (attack, level, who, how), rows in found.items():
        over = [
            f"{100 * np.mean(gaps):+.1f} ({100 * min(gaps):+.1f})"
            for n in MARKS
            for gaps in [[row["review"][n] - row["svc"] for row in rows]]
        ]
        labels = attack if level == 0 else f"{attack} {level:g} %"
        base = f"{_mean([row['svc'] for row in rows])} | {_mean([row['clean'] for row in rows])}"
        lines.append(f"| {labels} | {who} | {how} | {len(rows)} | {base} | " + " | ".join(over) + " |")
    return [*lines, ""]


if __name__ == "__main__":
    main()
