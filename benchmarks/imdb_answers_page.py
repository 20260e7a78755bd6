"""The page docs/results/imdb-answers.md: tables, sentences and a picture from what the scripts on the GPU left.

    python benchmarks/imdb_answers_page.py EXPORT [--docs docs/results]

EXPORT holds answers.jsonl (imdb_answers.py), encoders.jsonl (imdb_encoders.py) and making/, the notes of both. Every
number on the page, and every sentence with one, comes from these files; remarks of people stand between the two
markers, and are kept.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import numpy as np
from imdb_encoder_tables import Encoders, encoder_table, level_table, nearest_encoder, paper_number, spread, table

from floral_bench.metrics import sample_deviation
from floral_bench.reporting.making import makings
from floral_bench.reporting.origin import note_of
from floral_learn.files.atomic_files import write_atomically

GOALS = {25: 0.5, 30: 0.7, 35: 0.7, 40: 0.7}  # share of the gap to clean labels, with 100 answers
COMMANDS = (
    "python benchmarks/imdb_answers.py --device cuda --jobs 3 --model minilm --store runs/store.sqlite --out runs",
    "python benchmarks/imdb_encoders.py --store runs/store.sqlite --device cuda --model minilm --out runs",
    'python benchmarks/imdb_encoders.py ... --draws 2 3 4 5 --only "rate 1e-5" --looks 3   # other options as above',
    'python benchmarks/imdb_encoders.py ... --draws 2 3 4 5 --only "2e-5 (the" --looks 1',
    "python benchmarks/imdb_answers_page.py runs",
)
START, END = "<!-- remarks -->", "<!-- /remarks -->"
EXPLORED = 9  # a draw that was looked at while the method was made
Rows = list[dict]


def read_lines(path: Path) -> Rows:
    """Measurements, one JSON object a line; none where there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


class Answers:
    """Rows of `imdb_answers.py` on the draws that count."""

    def __init__(self, rows: Rows) -> None:
        self.rows = [row for row in rows if row["draw"] != EXPLORED]
        mine = [row for row in self.rows if row["kind"] == "answers"]
        self.levels = sorted({row["level"] for row in mine})
        self.numbers = sorted({row["answers"] for row in mine})

    def by_draw(self, level: float, kind: str, what: str = "accuracy", answers: int | None = None) -> dict[int, float]:
        """The measurement of each draw that has it, the last one where there are several."""
        return {
            row["draw"]: row[what]
            for row in self.rows
            if row["level"] == level and row["kind"] == kind and (answers is None or row.get("answers") == answers)
        }

    def accuracy(self, level: float, answers: int) -> dict[int, float]:
        return self.by_draw(level, "answers", "accuracy", answers)

    def wrong(self, level: float, answers: int) -> dict[int, float]:
        """Share of labels that are read wrong, by draw."""
        return self.by_draw(level, "read", "wrong", answers)

    def measured(self, level: float) -> list[int]:
        """Draws that went through all answers at `level`, or what there is where none did."""
        full = self.accuracy(level, self.numbers[-1])
        return sorted(full or self.accuracy(level, self.numbers[0]))

    def start(self, level: float, kind: str, what: str = "accuracy") -> list[float]:
        """A measurement before any answer, of the draws that are measured."""
        values = self.by_draw(level, kind, what)
        return [values[draw] for draw in self.measured(level) if draw in values]

    def closed(self, level: float, now: list[float]) -> float | None:
        """Share of the gap between given and clean labels that `now` closes, ratio of means over the same draws."""
        given, clean = self.start(level, "given labels"), self.start(level, "clean labels")
        if not now or not len(now) == len(given) == len(clean):
            return None
        return float((np.mean(now) - np.mean(given)) / (np.mean(clean) - np.mean(given)))

    def finally_closed(self, level: float) -> float | None:
        return self.closed(level, [*self.accuracy(level, self.numbers[-1]).values()])


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def accuracy_table(found: Answers) -> str:
    """Levels down: the paper, the network on given labels, with answers, on clean labels."""
    numbers = found.numbers
    names = ["poisoned", "*roberta, paper*", "*floral, paper*", "given labels", "given labels, one epoch"]
    names += [*(f"{m} answers" for m in numbers), "clean labels", "gap closed", "goal", "draws"]
    rows = []
    for level in found.levels:
        paper = [paper_number(level, who) for who in ("roberta", "floral")]
        rows.append(
            [
                f"{level:g} %",
                *("-" if value is None else f"{value:.3f}" for value in paper),
                spread(found.start(level, "given labels")),
                spread(found.start(level, "set up", "asked_encoder")),
                *(spread([*found.accuracy(level, m).values()]) for m in numbers),
                spread(found.start(level, "clean labels")),
                percent(found.finally_closed(level)),
                percent(GOALS.get(int(level))),
                str(len(found.measured(level))),
            ]
        )
    return table(names, rows)


def wrong_table(found: Answers, numbers: tuple[int, ...] = (10, 20, 50, 100)) -> str:
    """Share of wrong labels as they are read, in percent."""
    rows = []
    for level in found.levels:
        shares = [[100 * value for value in found.wrong(level, m).values()] for m in numbers]
        rows.append([f"{level:g} %", *(spread(values, 1) for values in shares)])
    return table(["poisoned", *(f"{m} answers" for m in numbers)], rows)


def verdicts(found: Answers) -> list[str]:
    """Sentences about the goals, from the rows."""
    most, out = found.numbers[-1], []
    for level in found.levels:
        closed, goal = found.finally_closed(level), GOALS.get(int(level))
        if closed is None or goal is None:
            continue
        word, draws = "reached" if closed >= goal else "missed", len(found.measured(level))
        early = found.closed(level, found.start(level, "set up", "asked_encoder"))
        out.append(
            f"{level:g} % poisoned, {most} answers: {percent(closed)} of the gap to clean labels is closed "
            f"({draws} draw{'s' if draws > 1 else ''}; the goal of {percent(goal)} is {word}). Stopping the network "
            f"after one epoch, without any answer, closes {percent(early)}."
        )
    return out


def draw_wrong(found: Answers, path: Path, numbers: tuple[int, ...] = (10, 20, 50, 100)) -> None:
    """Two panels: labels that are read wrong by number of answers, and test accuracy beside the paper's."""
    from matplotlib.figure import Figure

    from floral_bench.figures.style import BLACK, BLUE, GREEN, ORANGE, RED

    figure = Figure(figsize=(7.2, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    ends = ["given", *(f"{m} answers" for m in found.numbers), "clean"]
    for level, colour in zip(found.levels, (GREEN, BLUE, ORANGE, RED), strict=False):
        series = [[level], *([100 * v for v in found.wrong(level, m).values()] for m in numbers)]
        kept = [(place, values) for place, values in enumerate(series) if values]
        _line(left, kept, colour, f"{level:g} % poisoned")
        series = [
            found.start(level, "given labels"),
            *([*found.accuracy(level, m).values()] for m in found.numbers),
            found.start(level, "clean labels"),
        ]
        _line(right, [(place, values) for place, values in enumerate(series) if values], colour, "")
        paper = paper_number(level, "floral")
        right.plot(len(ends) - 2.3, paper, marker=">", color=colour, markersize=6, linestyle="")
    left.set_xticks(range(len(numbers) + 1), ["0", *map(str, numbers)])
    left.set(xlabel="answers", ylabel="labels read wrong, %", ylim=(0, None))
    right.set_xticks(range(len(ends)), ends)
    right.set(ylabel="test accuracy, MiniLM fine-tuned")
    right.plot([], [], marker=">", linestyle="", color=BLACK, label="FLORAL in the paper, no answers")
    handles = [*left.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    labels = [*left.get_legend_handles_labels()[1], *right.get_legend_handles_labels()[1]]
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=150)


def _line(axis, kept, colour: str, label: str) -> None:
    axis.errorbar(
        [place for place, _ in kept],
        [np.mean(values) for _, values in kept],
        yerr=[sample_deviation(np.array(values)) if len(values) > 1 else 0.0 for _, values in kept],
        color=colour, marker="o", markersize=4, linewidth=1.6, capsize=2, label=label or None,
    )  # fmt: skip


def page(rows: Rows, encoders: Rows, made: dict, kept: str) -> str:
    found = Answers(rows)
    sentences = verdicts(found)
    bullets = "\n".join(f"- {sentence}" for sentence in sentences)
    versions = ", ".join(f"{name} {value}" for name, value in made.items() if value != "not installed")
    text = f"""# IMDB with a few answers

{bullets}

{START}
{kept}
{END}

20,000 training reviews per draw, 25,000 test reviews, the gradient attack of [the IMDB suite](imdb.md). `TextReview`
fine-tunes MiniLM for one epoch on the poisoned labels; questions are asked on its embeddings, on its scores and on the
words of the reviews, and answered right. `fit()` then fine-tunes MiniLM for three epochs on the labels as they are
read, told how probable each is. Test accuracy, mean and sample deviation over draws. *given labels*: MiniLM
fine-tuned for three epochs on the poisoned labels; *one epoch*: for one, the encoder that questions are asked on. The
gap is that between three epochs on given and on clean labels; the goals were set before anything was measured. How to
ask and to fit was settled on draw 9, which is not among these, and how to ask also on how labels of draw 2 at 25 %
were read.

{accuracy_table(found)}
Labels that are read wrong, percent of all 20,000:

{wrong_table(found)}
![Labels read wrong and test accuracy](imdb-answers/answers.png)

"""
    if encoders:
        seen = Encoders(encoders)
        top = seen.levels[-1]
        text += f"""## Which encoder gives the paper's pattern

In the paper every head but LS-SVM has the same 0.85 to 0.86 in its best and last round at 40 %, far above the network
itself. MiniLM made in several ways, the paper's grid (chosen on test labels, as there), embeddings after each epoch;
{top:g} % poisoned:

{encoder_table(seen, top)}
{nearest_encoder(seen, top)}

One of those tried on most draws, "{seen.widest()[0]}" after epoch {seen.widest()[1]}:

{level_table(seen, seen.widest())}
"""
    commits = ", ".join(dict.fromkeys(row["commit"] for row in [*rows, *encoders] if row.get("commit")))
    commands = "\n".join(f"$ {line}" for line in COMMANDS)
    return (
        text
        + f"""## How it was made
```console
{commands}
```
`--model` named a folder with MiniLM's weights rounded to float16 and without the words that IMDB does not have; they
are kept and trained in float32. Rows: [answers.jsonl](imdb-answers/answers.jsonl),
[encoders.jsonl](imdb-answers/encoders.jsonl).
Commits of the rows: {commits}. Versions: {versions}.
"""
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("export", type=Path)
    parser.add_argument("--docs", type=Path, default=Path("docs/results"))
    given = parser.parse_args()
    rows, encoders = read_lines(given.export / "answers.jsonl"), read_lines(given.export / "encoders.jsonl")
    note = note_of(makings(given.export))
    target, folder = given.docs / "imdb-answers.md", given.docs / "imdb-answers"
    folder.mkdir(parents=True, exist_ok=True)
    old = target.read_text() if target.is_file() else ""
    kept = old.split(START)[1].split(END)[0].strip() if START in old else ""
    for name in ("answers.jsonl", "encoders.jsonl"):
        if (given.export / name).is_file():
            shutil.copyfile(given.export / name, folder / name)
    draw_wrong(Answers(rows), folder / "answers.png")
    write_atomically(folder / "run.json", json.dumps(note, indent=1) + "\n")
    write_atomically(target, page(rows, encoders, note["environment"], kept))
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
