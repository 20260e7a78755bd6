"""Parts of docs/results/imdb.md that come from imdb_answers.py and imdb_encoders.py: tables, sentences, a picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from floral_learn.evaluation.metrics import sample_deviation
from floral_learn.evaluation.reporting.paper import paper_value

GOALS = {25: 0.5, 30: 0.7, 35: 0.7, 40: 0.7}  # share of the gap to clean labels, with 100 answers
EXPLORED = 9
_SETTING = (10.0, 0.005)
_TABLE = "comp-imdb-additional"
Rows = list[dict]


def read_lines(path: Path) -> Rows:
    """Measurements, one JSON object a line; none where there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def table(names: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (names, ["---"] * len(names), *rows)) + "\n"


def spread(values: list[float] | np.ndarray, digits: int = 3) -> str:
    if not len(values):
        return "-"
    deviation = f" ± {sample_deviation(np.array(values)):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{deviation}"


class Answers:
    """Cells of `imdb_answers.py` that are complete, by level."""

    def __init__(self, rows: Rows, explored: bool = False) -> None:
        mine = [row for row in rows if (row["draw"] == EXPLORED) == explored]
        self.rows = mine
        self.levels = sorted({row["level"] for row in mine})
        self.numbers = sorted({row["answers"] for row in mine if row["kind"] == "answers"})

    def values(self, level: float, kind: str, what: str = "accuracy", answers: int | None = None) -> list[float]:
        """The numbers of all draws that have this measurement, the last one of each draw."""
        found = {
            row["draw"]: row[what]
            for row in self.rows
            if row["level"] == level and row["kind"] == kind and (answers is None or row.get("answers") == answers)
        }
        return [found[draw] for draw in sorted(found)]

    def draws(self, level: float, answers: int) -> list[int]:
        return sorted({r["draw"] for r in self.rows if r["level"] == level and r.get("answers") == answers})

    def closed(self, level: float, answers: int) -> float | None:
        """Share of the gap between given and clean labels that is closed, ratio of means over the same draws."""
        keep = self.draws(level, answers)
        if not keep:
            return None
        part = Answers([row for row in self.rows if row["draw"] in keep])
        given, clean, now = (
            np.mean(part.values(level, kind, "accuracy", count))
            for kind, count in (("given labels", 0), ("clean labels", None), ("answers", answers))
        )
        return float((now - given) / (clean - given))


def accuracy_table(found: Answers) -> str:
    """Levels down: the paper, the network on given labels, with answers, on clean labels."""
    numbers = found.numbers
    names = ["poisoned", "*roberta, paper*", "*floral, paper*", "given labels", *(f"{m} answers" for m in numbers)]
    names += ["clean labels", f"gap closed with {numbers[-1]}", "goal"]
    rows = []
    for level in found.levels:
        paper = [paper_value(_TABLE, level, _SETTING, who, "accuracy", "last") for who in ("roberta", "floral")]
        closed, goal = found.closed(level, numbers[-1]), GOALS.get(int(level))
        rows.append(
            [
                f"{level:g} %",
                *("-" if value is None else f"{value:.3f}" for value in paper),
                spread(found.values(level, "given labels")),
                *(spread(found.values(level, "answers", "accuracy", m)) for m in numbers),
                spread(found.values(level, "clean labels")),
                "-" if closed is None else f"{closed:.0%}",
                "-" if goal is None else f"{goal:.0%}",
            ]
        )
    return table(names, rows)


def wrong_table(found: Answers) -> str:
    """Share of wrong labels as they are read."""
    rows = [
        [
            f"{level:g} %",
            *(spread([100 * v for v in found.values(level, "answers", "wrong", m)], 1) for m in found.numbers),
        ]
        for level in found.levels
    ]
    return table(["poisoned", *(f"wrong with {m} answers, %" for m in found.numbers)], rows)


def verdicts(found: Answers) -> list[str]:
    """Sentences about the goals, from the rows."""
    most = found.numbers[-1]
    out = []
    for level in found.levels:
        closed, goal = found.closed(level, most), GOALS.get(int(level))
        if closed is None or goal is None:
            continue
        draws = len(found.draws(level, most))
        word = "reached" if closed >= goal else "missed"
        out.append(f"{level:g} %: {closed:.0%} of the gap closed (goal {goal:.0%}: {word}; {draws} draws)")
    return out


def explored_table(found: Answers) -> str:
    """Ways to ask and to fit, on the draw that chose between them."""
    names = ["measured on the draw that was used to choose", *(f"{level:g} %" for level in found.levels)]
    rows = []

    def add(name: str, pick) -> None:
        cells = []
        for level in found.levels:
            mine = [row for row in found.rows if row["level"] == level and pick(row)]
            cells.append(f"{mine[-1]['accuracy']:.3f}" if mine else "-")
        if any(cell != "-" for cell in cells):
            rows.append([name, *cells])

    add("clean labels", lambda r: r["kind"] == "clean labels")
    add("given labels", lambda r: r["kind"] == "given labels")
    add("poisoned rows left out (needs to know them)", lambda r: r["kind"] == "poisoned rows left out")
    for epochs, title in ((1, "asking after one epoch"), (None, "asking after three epochs")):
        for m in found.numbers:
            add(
                f"{title}, {m} answers",
                lambda r, m=m, e=epochs: r["kind"] == "answers" and r["answers"] == m and r["asking_epochs"] == e,
            )
    kinds = dict.fromkeys(r["kind"] for r in found.rows if r["kind"].startswith("fit: "))
    for kind in [*kinds, "one more turn"]:
        title = kind.replace("fit: ", "100 answers, fitted with ")
        add(title, lambda r, kind=kind: r["kind"] == kind)
    return table(names, rows)


def encoder_table(rows: Rows) -> str:
    """Encoders down, heads across: best and last round at 40 %."""
    heads = ("svm", "floral", "ls-svm")
    names = ["encoder", "epoch", "network itself", *(f"{h}, {s}" for h in heads for s in ("best", "last"))]
    paper = ["*paper (RoBERTa)*", "3", f"{paper_value(_TABLE, 40, _SETTING, 'roberta', 'accuracy', 'last'):.3f}"]
    for head in heads:
        for statistic in ("best", "last"):
            value = paper_value(_TABLE, 40, _SETTING, head, "accuracy", statistic)
            paper.append("-" if value is None else f"{value:.3f}")
    made = [paper]
    for name, epoch in dict.fromkeys((r["encoder"], r["epoch"]) for r in rows if "epoch" in r):
        mine = {r["head"]: r for r in rows if r["encoder"] == name and r.get("epoch") == epoch}
        line = [name, str(epoch or "-"), f"{mine['network']['last']:.3f}"]
        for head in heads:
            for statistic in ("best", "last"):
                value = mine.get(head, {}).get(statistic)
                line.append("-" if value is None else f"{value:.3f}")
        made.append(line)
    return table(names, made)


def nearest_encoder(rows: Rows) -> str:
    """The encoder whose SVM and FLORAL columns are nearest to the paper's, in one sentence."""
    target = {
        (head, s): paper_value(_TABLE, 40, _SETTING, head, "accuracy", s)
        for head in ("svm", "floral", "ls-svm")
        for s in ("best", "last")
    }
    far = {}
    for name, epoch in dict.fromkeys((r["encoder"], r["epoch"]) for r in rows if "epoch" in r):
        mine = {r["head"]: r for r in rows if r["encoder"] == name and r.get("epoch") == epoch}
        gaps = [abs(mine[head][s] - value) for (head, s), value in target.items() if s in mine.get(head, {})]
        if gaps:
            far[name, epoch] = max(gaps)
    if not far:
        return ""
    (name, epoch), gap = min(far.items(), key=lambda pair: pair[1])
    place = f'"{name}" after epoch {epoch}' if epoch else f'"{name}"'
    return f"Nearest to the paper's six numbers is {place}: its largest difference is {gap:.3f}."


def draw_answers(found: Answers, path: Path) -> None:
    """Accuracy by number of answers, a line per level, the paper's FLORAL and clean labels beside it."""
    from matplotlib.figure import Figure

    from floral_learn.evaluation.figures.style import BLACK, BLUE, GREEN, ORANGE, RED

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axis = figure.subplots()
    places = [0, *range(1, len(found.numbers) + 1)]
    for level, colour in zip(found.levels, (GREEN, BLUE, ORANGE, RED), strict=False):
        start = found.values(level, "given labels")
        series = [start, *(found.values(level, "answers", "accuracy", m) for m in found.numbers)]
        kept = [(x, values) for x, values in zip(places, series, strict=True) if values]
        axis.errorbar(
            [x for x, _ in kept],
            [np.mean(v) for _, v in kept],
            yerr=[sample_deviation(np.array(v)) if len(v) > 1 else 0.0 for _, v in kept],
            color=colour, marker="o", markersize=4, linewidth=1.6, capsize=2, label=f"{level:g} % poisoned",
        )  # fmt: skip
        paper = paper_value(_TABLE, level, _SETTING, "floral", "accuracy", "last")
        if paper is not None:
            axis.plot(places[-1] + 0.45, paper, marker="<", color=colour, markersize=6)
    clean = [value for level in found.levels for value in found.values(level, "clean labels")]
    axis.axhline(np.mean(clean), color=BLACK, linewidth=1, linestyle="--", label="clean labels")
    axis.plot([], [], marker="<", linestyle="", color="grey", label="FLORAL in the paper, no answers")
    axis.set_xticks(places, ["0", *map(str, found.numbers)])
    axis.set(xlabel="answers of a person", ylabel="test accuracy")
    figure.legend(loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=150)
