"""Tables, pictures and the page docs/results/imdb.md from the store that benchmarks/imdb_gpu.py left.

    python benchmarks/imdb_results.py EXPORT [--docs docs/results]

EXPORT holds store.sqlite.gz and times.json. The page has what was measured; sentences about it are written by people
between the two markers, and are kept when the page is made again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import tempfile
from pathlib import Path

import numpy as np

from floral_learn.datasets import load_imdb
from floral_learn.evaluation.adapt_suite import adapt
from floral_learn.evaluation.metrics import sample_deviation
from floral_learn.evaluation.reporting.paper import paper_value
from floral_learn.evaluation.reporting.results import Results
from floral_learn.evaluation.reporting.write import write_outputs
from floral_learn.evaluation.store import Store
from floral_learn.evaluation.suites import SUITES

START, END = "<!-- in short -->", "<!-- /in short -->"
HEADS = ("floral", "svm", "ln-svm", "curie", "ls-svm", "k-lid")
TOLD = ("ln-svm told the level", "curie told the level", "ls-svm told the level")
FIXED = ("floral (budget 2 %)", "floral (budget = level)")
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
    levels = list(results.suite.levels)
    titles = ["minilm, fine-tuned", *(f"{h}, {e} encoder" for e in ("own", "clean") for h in (*HEADS, *TOLD, *FIXED))]
    rows = []
    for title in titles:
        places = {p.level: p for p in results.cells if p.method.title == title}
        kind = "final" if title.startswith("floral (") else statistic
        ours = [results.values(places[level], kind, metric) for level in levels]
        if not any(len(values) for values in ours):
            continue
        setting = results.suite.settings[0]
        known = [paper_value(results.suite.paper_table, level, setting, title, metric, statistic) for level in levels]
        if any(value is not None for value in known) and ", clean" not in title:
            name = "roberta" if title.startswith("minilm") else title.removesuffix(", own encoder")
            rows.append([f"*{name}, paper*", *("-" if v is None else f"{v:.3f}" for v in known)])
        rows.append([title, *(number(values) for values in ours)])
    return table(["", *("clean" if level == 0 else f"{level:g} %" for level in levels)], rows)


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


def top_texts(results: Results, level: float = 40) -> str:
    """The most influential review of the first draw, as in the paper's last figure."""
    level = level if level in results.suite.levels else results.suite.levels[-1]
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


def page(results: dict[str, Results], times: dict, kept: str) -> str:
    imdb, shared = results["imdb"], results["imdb-influence"]
    note = times.get("imdb", {})
    versions = ", ".join(f"{k} {v}" for k, v in note.get("environment", {}).items() if v != "not installed")
    seconds = ", ".join(f"{name} {entry['seconds']:.0f} s" for name, entry in times.items()) or "not recorded"
    draws = len(imdb.suite.seeds)
    return f"""# IMDB: MiniLM under the gradient attack, and heads on its embeddings

{START}
{kept}
{END}

{draws} random draws of 20,000 training reviews, 25,000 test reviews, C = 10, gamma = 0.005, T = 1,000. MiniLM (384-d,
6 layers, 256 tokens, batch 32, AdamW 5e-5, three epochs, bfloat16) stands in RoBERTa's place. *own encoder*: embeddings
of the model that was fine-tuned on the labels that the head gets; *clean encoder*: of the one fine-tuned on clean
labels. The paper does not say which it used; its numbers stand above the own-encoder rows. Mean and sample deviation
over draws. All numbers: [accuracy](imdb/accuracy.md), [hinge loss](imdb/hinge_loss.md), [costs](imdb/costs.md).

## Last round or epoch (grid chosen on test labels, as in the paper; the fixed configurations choose nothing)
{compact(imdb, "last")}
## Best round or epoch (the peak on the test set)
{compact(imdb, "best")}
## Hinge loss, last
{compact(imdb, "last", "hinge_loss")}
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

The most influential review of the first draw, 40 % poisoned:

{top_texts(shared)}
## How it was made
```console
$ {note.get("command", "python benchmarks/imdb_gpu.py")}
```
Wall time: {seconds}.
Versions: {versions or "not recorded"}.
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
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.sqlite"
        path.write_bytes(gzip.decompress((given.export / "store.sqlite.gz").read_bytes()))
        with Store(path) as store:
            results = {
                name: Results(adapt(SUITES[name], reps=given.draws, levels=given.levels), store)
                for name in ("imdb", "imdb-influence")
            }
            (given.docs / "imdb").mkdir(parents=True, exist_ok=True)
            for name, found in results.items():
                write_outputs(found, Path(folder) / name, {"command": "-"})
                for picture in (Path(folder) / name / "figures").glob("*.png"):
                    (given.docs / "imdb" / picture.name).write_bytes(picture.read_bytes())
            for name in KEPT:
                made = Path(folder) / "imdb" / "tables" / name
                if made.is_file():
                    (given.docs / "imdb" / name).write_text(made.read_text())
            (given.docs / "imdb" / "overlap.md").write_text(
                (Path(folder) / "imdb-influence" / "tables" / "overlap.md").read_text()
            )
            target.write_text(page(results, times, kept))
    print(f"wrote {target} and {given.docs / 'imdb'}")


if __name__ == "__main__":
    main()
