"""Everything a run leaves for people: a page of tables, pictures, all rows as one CSV, and how it was made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from floral_bench.figures import CAPTIONS, write_figures
from floral_bench.reporting import details
from floral_bench.reporting.results import Results
from floral_bench.reporting.tables import METRICS, by_level, comparison, level_markdown, markdown, with_spread
from floral_bench.spec import Attack, Data, Grid, Method, Suite
from floral_learn.base.files import write_atomically

NOTE, ROWS, PAGE = "run.json", "rows.csv", "accuracy.md"
KEPT = tuple(metric for metric in METRICS if metric != "balanced_accuracy")  # of the rows
DEFAULT = "FloralClassifier()"


def write_outputs(results: Results, folder: Path, note: dict[str, Any]) -> list[Path]:
    """Write `PAGE`, `ROWS`, the pictures and `NOTE` into `folder`; returns what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    pictures = write_figures(results, folder)
    if len(results.frame):
        rows = as_kept(rows_of(results))
        page = page_of(results.suite, rows, [path.stem for path in pictures], further(results))
        written.append(write_atomically(folder / ROWS, rows.to_csv(index=False, float_format="%.6g")))
        written.append(write_atomically(folder / PAGE, page))
    content = {**note, "suite": asdict(results.suite)}
    return [*written, *pictures, write_atomically(folder / NOTE, json.dumps(content, indent=1) + "\n")]


def as_kept(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the digits that `ROWS` has, so that a page is the same from the store and from the file."""
    numbers = rows.select_dtypes("floating").columns
    return rows.assign(**{name: [float(f"{value:.6g}") for value in rows[name]] for name in numbers})


def rows_of(results: Results) -> pd.DataFrame:
    """Every number that the page shows or a sentence quotes, one per line."""
    found = [comparison(results, metric) for metric in KEPT]
    found.append(details.last_round(results))
    if {"sensitivity", "recovery"} & set(results.suite.figures):
        found.append(_budget_rows(results))
    return pd.concat([part for part in found if len(part)], ignore_index=True)


def _budget_rows(results: Results) -> pd.DataFrame:
    """The lines of `details.per_budget` in the form of the others."""
    wide = details.per_budget(results)
    wide["configuration"] = [f"B={B} k={k}" for B, k in zip(wide.B, wide.k, strict=True)]
    long = wide.melt(
        ["level", "configuration"], [name for name in ("best", "last", "average", "recovery") if name in wide],
        "statistic", "mean",
    )  # fmt: skip
    long["metric"] = ["recovery_rate" if name == "recovery" else "accuracy" for name in long.statistic]
    long["statistic"] = ["average, at one budget" if s == "recovery" else f"{s}, at one budget" for s in long.statistic]
    return long.assign(attack=results.suite.attacks[0].name, method="floral").dropna(subset=["mean"])


def page_of(suite: Suite, rows: pd.DataFrame, pictures: list[str], more: Iterable[tuple[str, str]] = ()) -> str:
    """The tables that `rows` hold as Markdown with headings, then `more` of them, and the pictures with captions."""
    name = suite.name.removesuffix("-quick").removesuffix("-reference")
    options = {"-quick": " --quick", "-reference": " --authors-labels"}
    command = f"floral bench {name}" + "".join(o for end, o in options.items() if end in suite.name)
    parts = [f"# {suite.name}", f"{suite.title}. `{command}`; all numbers: [{ROWS}]({ROWS}).", *suite.notes]
    for picture in pictures:
        low = _lowest(rows, suite.grid) if picture == "security" else ""
        parts += [f"![{picture}]({picture}.png)", CAPTIONS[picture] + low]
    parts += [f"## {title}\n\n{text}" for title, text in (*sections(suite, rows), *more)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def sections(suite: Suite, rows: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """(heading, table) of every table that rows hold."""
    for metric, name in (("accuracy", "Test accuracy"), ("recovery_rate", "Recovery rate"), ("overlap", "Overlap")):
        if metric != "accuracy" and metric[:8] not in " ".join(suite.figures):
            continue
        for part in by_level(rows[(rows.metric == metric) & rows.replications.notna()], suite.grid):
            kind = "" if part.statistic == "final" and metric != "accuracy" else f", *{part.statistic}*"
            yield f"{name}{kind}: {part.title}", f"{part.reading}\n\n{level_markdown(part)}"
    if details.LOWEST in set(rows.statistic):
        yield "What *last* rests on", _last_markdown(rows[rows.metric == "accuracy"])


def further(results: Results) -> Iterator[tuple[str, str]]:
    """(heading, table) of what is counted from single replications, which rows do not hold."""
    if {"sensitivity", "recovery"} & set(results.suite.figures):
        table = details.per_budget(results)
        yield "By budget of the attacker in the game", markdown(_with_spread(table), left=3)
    if "heads" in results.suite.figures:
        yield "Methods side by side", markdown(details.by_method(results), left=2)


def _lowest(rows: pd.DataFrame, grid: Grid | None) -> str:
    """Where a user's default is the lowest line of its panel, in words."""
    out = []
    for part in by_level(rows[(rows.metric == "accuracy") & rows.replications.notna()], grid):
        found = dict(part.rows)
        if part.statistic != "final" or DEFAULT not in found:
            continue
        low = []
        for number, level in enumerate(part.levels):
            lines = {name: row[number] for name, row in found.items()}
            values = {name: round(float(line.mean), 3) for name, line in lines.items() if line is not None}
            if level and values.get(DEFAULT) == min(values.values()) < max(values.values()):
                low.append(f"{level:g} %")
        if low:
            out.append(
                f" Among the single fits under {part.title}, `{DEFAULT}` is the lowest line at {', '.join(low)}."
            )
    return "".join(out)


def _last_markdown(rows: pd.DataFrame) -> str:
    """FLORAL and the plain SVM: the number of the table, and the three ways to read it otherwise."""
    ways = {"last": "one setting", details.EACH: "best of each split", details.LOWEST: "lowest of the grid"}
    ways[details.SPREAD] = f"spread over {details.ROUNDS} rounds"
    rows = rows[rows.statistic.isin(ways) & rows.method.isin(("floral", "svm"))]
    several = [name for name in ("attack", "C", "gamma") if rows[name].nunique() > 1]
    rows = rows.assign(poisoned=[f"{level:g} %" for level in rows.level])
    where = [*several, "poisoned", "method"]
    table = rows.pivot_table(index=where, columns="statistic", values="mean", sort=False)
    table = table.reindex(columns=list(ways)).map(lambda value: "" if value != value else f"{value:.3f}")
    return markdown(table.rename(columns=ways).reset_index(), left=len(where))


def _with_spread(table: pd.DataFrame) -> pd.DataFrame:
    out = table[["level", "B", "k"]].rename(columns={"level": "poisoned"})
    out["poisoned"] = [f"{level:g} %" for level in table.level]
    for name in (name for name in ("best", "last", "average", "recovery") if name in table):
        out[name] = [with_spread(mean, spread) for mean, spread in zip(table[name], table[f"{name} ±"], strict=True)]
    return out


def read_note(folder: Path) -> dict[str, Any]:
    """The note that `write_outputs` left; a ValueError where there is none."""
    path = folder / NOTE
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
        without_page = isinstance(note, dict) and "suite" not in note and "command" in note
        if not without_page:
            suite_from(note["suite"])
    except OSError:
        raise ValueError(f"{folder} is not the folder of a run: it has no {NOTE}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{path} is not a note of a run, or damaged") from None
    if without_page:
        card = next(iter(sorted(folder.rglob("card.md"))), folder)
        raise ValueError(f"{folder} has a score card in place of a page: read {card}")
    return note


def suite_from(plain: dict[str, Any]) -> Suite:
    """The suite behind its JSON form."""

    def frozen(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: frozen(part) for name, part in value.items()}
        return tuple(map(frozen, value)) if isinstance(value, list) else value

    fields = frozen(plain)
    for name, kind in (("data", Data), ("attacks", Attack), ("methods", Method)):
        fields[name] = tuple(kind(**part) for part in fields[name])
    fields["grid"] = None if fields["grid"] is None else Grid(**fields["grid"])
    return Suite(**fields)
