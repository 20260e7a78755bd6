"""Tables, pictures and the page docs/results/imdb.md from what the scripts on the GPU left.

    python benchmarks/imdb_results.py EXPORT [--docs docs/results]

EXPORT holds store.sqlite.gz and times.json. Every number and every sentence with numbers comes from these files.
Remarks of people stand between the two markers, and are kept. imdb_answers_page.py makes the page on answers.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import tempfile
from pathlib import Path

import numpy as np
from imdb_overlap import FELT, overlap_table

from floral_bench.adapt_suite import adapt
from floral_bench.metrics import sample_deviation
from floral_bench.reporting.origin import note_of, parts_of
from floral_bench.reporting.paper import paper_value
from floral_bench.reporting.results import WIDER, Results
from floral_bench.reporting.write import write_outputs
from floral_bench.store import Store
from floral_bench.suites import SUITES
from floral_learn.datasets import load_imdb
from floral_learn.files.atomic_files import write_atomically

START, END = "<!-- remarks -->", "<!-- /remarks -->"
HEADS = ("floral", "svm", "ln-svm", "curie", "ls-svm", "k-lid")
TOLD = ("ln-svm told the level", "curie told the level", "ls-svm told the level")
FIXED = ("floral (budget 2 %)", "floral (budget = level)", "SVC()", "FloralClassifier()")
SINGLE = ("floral (", "SVC()", "FloralClassifier()")
KEPT = (
    "accuracy.md",
    "accuracy.csv",
    "accuracy.tex",
    "hinge_loss.md",
    "hinge_loss.csv",
    "recovery_rate.md",
    "costs.md",
)


def number(values: np.ndarray) -> str:
    if not len(values):
        return "-"
    spread = f" ± {sample_deviation(values):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"


def table(names: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (names, ["---"] * len(names), *rows)) + "\n"


def compact(results: Results, statistic: str, metric: str = "accuracy") -> str:
    """Levels down, methods across: the paper's numbers in a row of their own."""
    levels, wider = list(results.suite.levels), statistic.endswith(WIDER)
    titles = ["minilm, fine-tuned", *(f"{h}, {e} encoder" for e in ("own", "clean") for h in (*HEADS, *TOLD, *FIXED))]
    rows, shown = [counted(results)], {}
    for title in titles:
        places = {p.level: p for p in results.cells if p.method.title == title}
        if not places or (wider and not next(iter(places.values())).method.needs_grid):
            continue
        kind = "final" if title.startswith(SINGLE) else statistic
        ours = [results.values(places[level], kind, metric) for level in levels]
        if not any(len(values) for values in ours):
            continue
        rows += paper_row(results, title, metric, statistic.removesuffix(WIDER))
        rows.append([title, *(number(values) for values in ours)])
        shown[len(rows) - 1] = (title, [np.mean(values) if len(values) else np.nan for values in ours])
    embolden(rows, shown, lowest=metric == "hinge_loss")
    return table(["", *level_names(results)], rows)


def counted(results: Results) -> list[str]:
    """How many draws a level has."""
    places = {p.level: p for p in results.cells if p.method.title == "minilm, fine-tuned"}
    return ["*draws*", *(str(len(results.values(places[level], "last"))) for level in results.suite.levels)]


def embolden(rows: list[list[str]], shown: dict[int, tuple[str, list[float]]], lowest: bool) -> None:
    """The best of the six heads that share a grid and an encoder, in bold, in place; ties to three digits together."""
    for encoder in ("own", "clean"):
        heads = {f"{head}, {encoder} encoder" for head in HEADS}
        mine = {place: means for place, (title, means) in shown.items() if title in heads}
        for column in range(len(next(iter(mine.values()), []))):
            means = {place: round(float(values[column]), 3) for place, values in mine.items()}
            known = [value for value in means.values() if not np.isnan(value)]
            best = (min if lowest else max)(known, default=None)
            for place, value in means.items():
                if value == best:
                    rows[place][column + 1] = f"**{rows[place][column + 1]}**"


def level_names(results: Results) -> list[str]:
    return ["clean" if level == 0 else f"{level:g} %" for level in results.suite.levels]


def paper_row(results: Results, title: str, metric: str, statistic: str) -> list[list[str]]:
    """The paper's numbers for a method on its own encoder, or no row."""
    setting = results.suite.settings[0]
    table_name = results.suite.paper_table
    known = [paper_value(table_name, level, setting, title, metric, statistic) for level in results.suite.levels]
    if ", clean" in title or all(value is None for value in known):
        return []
    name = "roberta" if title.startswith("minilm") else title.removesuffix(", own encoder")
    return [[f"*{name}, paper*", *("-" if v is None else f"{v:.3f}" for v in known)]]


def lowest(results: Results) -> str:
    """The smallest hinge loss over rounds or epochs, of the configuration where its mean over draws is smallest."""
    rows, shown = [], {}
    more = {f"eta={eta:g} " for eta in results._more_etas}
    for title in ("minilm, fine-tuned", *(f"{h}, {e} encoder" for e in ("own", "clean") for h in HEADS)):
        cells, means = [], []
        for level in results.suite.levels:
            place = next((p for p in results.cells if p.method.title == title and p.level == level), None)
            frame = results.frame
            own = frame[(frame.method == title) & (frame.level == level) & (frame.metric == "hinge_loss")]
            found = []
            for config in sorted(set(own.config)):
                if place is None or any(step in f"{config} " for step in more):
                    continue
                traces = results.traces(place, "hinge_loss", config=config)
                if traces:
                    found.append(np.array([trace.min() for trace in traces]))
            cells.append(number(min(found, key=np.mean)) if found else "-")
            means.append(min((float(np.mean(one)) for one in found), default=np.nan))
        if any(cell != "-" for cell in cells):
            rows += paper_row(results, title, "hinge_loss", "best")
            rows.append([title, *cells])
            shown[len(rows) - 1] = (title, means)
    embolden(rows, shown, lowest=True)
    return table(["", *level_names(results)], rows)


def heads_in_short(results: Results) -> list[str]:
    """What the tables say about heads, in sentences made from their rows."""

    def last(title: str, level: float, kind: str = "last") -> float:
        place = next((p for p in results.cells if p.method.title == title and p.level == level), None)
        values = [] if place is None else results.values(place, kind)
        return float(np.mean(values)) if len(values) else float("nan")

    levels = [level for level in results.suite.levels if level >= 25 and last("minilm, fine-tuned", level) > 0]
    shown = " / ".join(f"{level:g}" for level in levels)
    others = [f"{name}, clean encoder" for name in (*HEADS[1:], *TOLD)]

    def line(pick) -> str:
        return ", ".join(f"{pick(level):.3f}" for level in levels)

    def spread_at(level: float) -> tuple[float, float]:
        values = [last(f"{h}, own encoder", level) for h in HEADS]
        return min(values), max(values)

    own = "; ".join("{:g} %: {:.3f} to {:.3f}".format(level, *spread_at(level)) for level in levels)
    network = [
        (level, last("minilm, fine-tuned", level) - paper)
        for level in results.suite.levels
        if (paper := paper_value(results.suite.paper_table, level, results.suite.settings[0], "minilm, fine-tuned",
                                 "accuracy", "last")) is not None and last("minilm, fine-tuned", level) > 0
    ]  # fmt: skip
    beside = ", ".join(f"{gap:+.3f} at {level:g} %" for level, gap in network)
    return [
        f"**Clean encoder**, last round, {shown} % poisoned: "
        f"FLORAL {line(lambda x: last('floral, clean encoder', x))}; "
        f"SVM {line(lambda x: last('svm, clean encoder', x))}; the best of the other heads, those told the level "
        f"included, {line(lambda x: max(last(title, x) for title in others))}. FLORAL with one fixed configuration "
        f"whose budget is the level: {line(lambda x: last('floral (budget = level), clean encoder', x, 'final'))}.",
        f"**Own encoder**, last round, the six heads of the paper's grid: {own}.",
        f"MiniLM's last epoch beside the paper's RoBERTa: {beside}.",
    ]


def steps(results: Results) -> str:
    """eta times lambda_max of the games above 2, by encoder and level: the largest over draws."""
    frame = results.frame[results.frame.metric == "eta_lambda_max"]
    rows = []
    for method in ("floral, own encoder", "floral, clean encoder"):
        for level in results.suite.levels:
            own = frame[(frame.method == method) & (frame.level == level)]
            shown = {}
            for config, value in zip(own.config, own.value, strict=True):
                eta = re.search(r"eta=(\S+)", config)[1]
                shown[eta] = max(shown.get(eta, 0.0), value)
            text = ", ".join(f"{eta}: {value:.1f}" for eta, value in sorted(shown.items(), key=lambda p: float(p[0])))
            rows.append([method.removeprefix("floral, "), f"{level:g} %", text or "none above 2"])
    return table(["encoder", "poisoned", "eta: eta x lambda_max"], rows)


def influence(results: Results) -> str:
    rows = []
    for level in results.suite.levels:
        row = ["clean" if level == 0 else f"{level:g} %"]
        for method in results.suite.methods:
            place = next(p for p in results.cells if p.level == level and p.method == method)
            row.append(number(results.values(place, "final", "overlap")))
        place = next(p for p in results.cells if p.level == level and p.method == results.suite.methods[0])
        row += [number(results.values(place, "final", f"poisoned_share_{who}")) for who in ("floral", "network")]
        rows.append(row)
    names = [method.title for method in results.suite.methods]
    return table(["poisoned", *names, "poisoned among floral's quarter", "among minilm's (same labels)"], rows)


def shared_by_those_that_matter(export: Path) -> str:
    """Why the overlap of a quarter is small where few rows matter; empty where imdb_overlap.py was not run."""
    rows = overlap_table(export)
    if not rows:
        return ""
    names = ["poisoned", "labels that MiniLM fits", "wrong ones that it fits", "rows that matter",
             "shared of as many", "shared of a quarter", "dual at its edge", "gradient at its edge"]  # fmt: skip
    return f"""How much of a quarter matters at all, on the first draw. A row matters if its dual is above {FELT:g} of
the largest; duals and gradients at the quarter's edge are shares of the largest, too:

{table(names, rows)}
"""


def top_texts(results: Results, level: float = 40) -> str:
    """The most influential review of the first draw, as in the paper's last figure."""
    known = {p.level for p, cells in results.cells.items() if cells}
    level = level if level in known else max(known)
    lines = []
    reviews = None
    for method, who in zip(results.suite.methods, ("minilm, same labels", "minilm, clean labels"), strict=True):
        place = next(p for p in results.cells if p.level == level and p.method == method)
        if not results.cells[place]:
            continue
        cell = results.cells[place][0]
        if reviews is None:
            sizes = {k: v for k, v in cell.data.params if k in ("n_train", "n_val", "n_test", "seed")}
            reviews = load_imdb(**sizes)
        names = {"floral": "FLORAL", "network": who} if method == results.suite.methods[0] else {"network": who}
        for name, shown in names.items():
            row = int(results.store.trace(cell, f"top_{name}")[0])
            text = " ".join(str(reviews.X_train[row]).replace("<br />", " ").split())
            clean = "positive" if reviews.y_train_clean[row] > 0 else "negative"
            lines.append(f"- **{shown}** (row {row}, true label {clean}): {text[:240].replace('|', ' ')} ...")
    return "\n".join(lines) + "\n"


OVERLAP = """$ python benchmarks/imdb_overlap.py --device cuda --model imdb_weights --levels 10 25 0 30 --out imdb
"""
ON_OVERLAP = """\
The second command made the table of how much of a quarter matters: one `overlap-LEVEL.npz` per level, which lie in
`export` for the third. It was run in two goes (levels 10, 25, 0, then 30; draw 1) at the same commit on the same
machine, with the encoders of the first; its log kept levels and times only.
"""


def page(results: dict[str, Results], times: dict, kept: str, note: dict, export: Path) -> str:
    imdb, shared = results["imdb"], results["imdb-influence"]
    versions = ", ".join(f"{k} {v}" for k, v in note["environment"].items() if v != "not installed")
    took = sum(entry.get("seconds", 0.0) for entry in times.values())
    seconds = f"{took:.0f} s" if took else "not recorded"
    bullets = "\n".join(f"- {sentence}" for sentence in heads_in_short(imdb))
    matter = shared_by_those_that_matter(export)
    return f"""# IMDB: MiniLM under the gradient attack, and heads on its embeddings

{bullets}

{START}
{kept}
{END}

Random draws of 20,000 training reviews (how many is in each table), 25,000 test reviews, C = 10, gamma = 0.005,
T = 1,000. MiniLM (384-d, 6 layers, 256 tokens, batch 32, AdamW 5e-5, three epochs, bfloat16) takes RoBERTa's place.
*own encoder*: embeddings of the model that was fine-tuned on the labels that the head gets; *clean encoder*: of the one
fine-tuned on clean labels. The paper does not say which it used; its numbers stand above the own-encoder rows. Mean and
sample deviation over draws; bold: the best of the six heads on one encoder. All numbers:
[accuracy](imdb/accuracy.md), [hinge loss](imdb/hinge_loss.md), [costs](imdb/costs.md).

With a few answers, and which encoder gives the paper's pattern at 40 %: [IMDB with answers](imdb-answers.md).

## Last round or epoch (the paper's grid, chosen on test labels as there; single fits choose nothing)
{compact(imdb, "last")}
## Last round, wider grid (with the step 3e-5, which the paper does not have)
{compact(imdb, "last" + WIDER)}
## Best round or epoch (the paper's grid, the peak on the test set)
{compact(imdb, "best")}
## Best round, wider grid
{compact(imdb, "best" + WIDER)}
## Hinge loss, last (the paper's grid)
{compact(imdb, "last", "hinge_loss")}
## Hinge loss, lowest (over rounds, every tenth of them, and over the paper's grid)
{lowest(imdb)}
![Training curves](imdb/imdb.png)
![Heads against poison](imdb/imdb_heads.png)

## Steps that oscillate
A step is stable below 2 / lambda_max of the centred Gram matrix. Products above 2, largest over draws:

{steps(imdb)}
## Influential reviews
Share of the most influential quarter that FLORAL (fixed configuration, own encoder) and MiniLM have in common; chance
is 0.25.

{influence(shared)}
![Shared influential reviews](imdb/overlap.png)

{matter}The most influential review of the first draw, 40 % poisoned:

{top_texts(shared)}
## How it was made
```console
$ {note.get("command", "python benchmarks/imdb_gpu.py")}
{OVERLAP if matter else ""}$ python benchmarks/imdb_results.py export
```
`--model` named a folder with MiniLM's weights rounded to float16 and without the words that IMDB does not have; they
are kept and trained in float32. Wall time: {seconds}.
{ON_OVERLAP if matter else ""}Versions: {versions or "not recorded"}.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("export", type=Path)
    parser.add_argument("--docs", type=Path, default=Path("docs/results"))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--levels", type=float, nargs="+", default=[])
    given = parser.parse_args()
    times_file = given.export / "times.json"
    times = json.loads(times_file.read_text()) if times_file.is_file() else {}
    target = given.docs / "imdb.md"
    old = target.read_text() if target.is_file() else ""
    kept = old.split(START)[1].split(END)[0].strip() if START in old else ""
    pictures = given.docs / "imdb"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.sqlite"
        path.write_bytes(gzip.decompress((given.export / "store.sqlite.gz").read_bytes()))
        with Store(path) as store:
            results = {
                name: Results(adapt(SUITES[name], reps=given.draws, levels=given.levels), store)
                for name in ("imdb", "imdb-influence")
            }
            cells = [cell for found in results.values() for cell in found.suite.cells()]
            note = note_of(parts_of(store, "imdb", {"imdb": list({cell.key: cell for cell in cells}.values())}))
            if (more := given.export / "env.json").is_file():  # versions that an earlier imdb_gpu.py did not note
                note["environment"] = json.loads(more.read_text()) | note["environment"]
            pictures.mkdir(parents=True, exist_ok=True)
            for name, found in results.items():
                write_outputs(found, Path(folder) / name, {"command": "-"})
                for picture in (Path(folder) / name / "figures").glob("*.png"):
                    (pictures / picture.name).write_bytes(picture.read_bytes())
            for name in KEPT:
                made = Path(folder) / "imdb" / "tables" / name
                if made.is_file():
                    (pictures / name).write_text(made.read_text())
            (pictures / "overlap.md").write_text(
                (Path(folder) / "imdb-influence" / "tables" / "overlap.md").read_text()
            )
            text = page(results, times, kept, note, given.export)
    write_atomically(pictures / "run.json", json.dumps(note, indent=1) + "\n")
    write_atomically(target, text)
    print(f"wrote {target} and {pictures}")


if __name__ == "__main__":
    main()
