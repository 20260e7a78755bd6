"""Everything a run leaves for people: tables in three forms, figures, and a note of how it was made."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from floral_bench.families.contraction import stability_rows
from floral_bench.figures import write_figures
from floral_bench.reporting import heads_tables, last_round, per_budget
from floral_bench.reporting.results import Results
from floral_bench.reporting.tables import METRICS, Table, comparison, costs, to_csv, to_latex, to_markdown
from floral_bench.spec import Attack, Data, Grid, Method, Suite
from floral_learn.files.atomic_files import write_atomically

NOTE = "run.json"


def write_outputs(results: Results, folder: Path, note: dict[str, Any]) -> list[Path]:
    """Write tables, figures and the note; returns what was written."""
    written = []
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    for table in tables_of(results):
        for kind, text in (("md", to_markdown(table)), ("csv", to_csv(table)), ("tex", to_latex(table))):
            written.append(write_atomically(folder / "tables" / f"{table.metric}.{kind}", text))
    if len(results.frame):
        written += [write_atomically(folder / "tables" / name, text) for name, text in _cost_tables(results).items()]
    if any(method.name == "stability" for method in results.suite.methods) and len(results.frame):
        names, rows = stability_rows(results)
        texts = [[text if isinstance(text, str) else f"{text:.4g}" for text in row] for row in rows]
        markdown = "\n".join("| " + " | ".join(row) + " |" for row in (names, ["---"] * len(names), *texts))
        written.append(write_atomically(folder / "tables" / "stability.md", markdown + "\n"))
        plain = "\n".join(",".join(map(str, row)) for row in (names, *rows))
        written.append(write_atomically(folder / "tables" / "stability.csv", plain + "\n"))
        written.append(write_atomically(folder / "tables" / "bounds.md", _bounds()))
    if {"sensitivity", "recovery"} & set(results.suite.figures) and len(results.frame):
        for kind, text in (("md", per_budget.to_markdown(results)), ("csv", per_budget.to_csv(results))):
            written.append(write_atomically(folder / "tables" / f"per_budget.{kind}", text))
    if len(results.frame) and any(method.name == "floral" for method in results.suite.methods):
        written += [write_atomically(folder / "tables" / name, text) for name, text in _last_rounds(results).items()]
    if "heads" in results.suite.figures and len(results.frame):
        for name, text in (("by_method", heads_tables.by_method(results)), ("turns", heads_tables.turns(results))):
            written.append(write_atomically(folder / "tables" / f"{name}.md", text))
    written += write_figures(results, folder / "figures")
    content = {**note, "suite": asdict(results.suite)}
    written.append(write_atomically(folder / NOTE, json.dumps(content, indent=1) + "\n"))
    return written


def _cost_tables(results: Results) -> dict[str, str]:
    rows = [(method, f"{seconds:.3f}", f"{memory:.0f}") for method, seconds, memory in costs(results)]
    names = ("method", "seconds per cell", "peak memory (MB)")
    markdown = "\n".join("| " + " | ".join(row) + " |" for row in (names, ("---", "---:", "---:"), *rows))
    plain = "\n".join(f'"{method}",{seconds},{memory}' for method, seconds, memory in rows)
    return {"costs.md": markdown + "\n", "costs.csv": "method,seconds,peak_memory_mb\n" + plain + "\n"}


def _last_rounds(results: Results) -> dict[str, str]:
    texts = {"last_round.md": last_round.to_markdown(results), "last_round.csv": last_round.to_csv(results)}
    plain = last_round.plain_svm(results)
    if len(plain):
        texts["last_round_svm.md"] = last_round.plain_svm_markdown(plain)
        texts["last_round_svm.csv"] = plain.to_csv(index=False, float_format="%.7f")
    return texts


def tables_of(results: Results) -> list[Table]:
    """One table per metric that the results have."""
    if not len(results.frame):
        return []
    made = [comparison(results, metric) for metric in METRICS if metric not in ("seconds", "peak_memory_mb")]
    return [table for table in made if table.rows]


class NoReportError(ValueError):
    """A folder of results that has no page."""


def read_note(folder: Path) -> dict[str, Any]:
    """The note that `write_outputs` left; a ValueError where there is none."""
    path = folder / NOTE
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(note, dict) and "suite" not in note and "command" in note:
            card = next(iter(sorted(folder.rglob("scorecard.md"))), folder)
            raise NoReportError(f"{folder} has a score card in place of a page: read {card}")
        suite_from(note["suite"])
    except OSError:
        raise ValueError(f"{folder} is not the folder of a run: it has no {NOTE}") from None
    except NoReportError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{path} is not a note of a run, or damaged") from None
    return note


def suite_from(plain: dict[str, Any]) -> Suite:
    """The suite behind its JSON form."""

    def pairs(value: Any) -> Any:
        return tuple((name, tuple(v) if isinstance(v, list) else v) for name, v in value)

    def grid(value: Any) -> Grid:
        values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in value.items()}
        return Grid(**values)

    fields = dict(plain)
    fields["data"] = tuple(Data(d["name"], pairs(d["params"])) for d in plain["data"])
    fields["attacks"] = tuple(Attack(a["name"], pairs(a["params"])) for a in plain["attacks"])
    fields["methods"] = tuple(Method(**{**m, "params": pairs(m["params"])}) for m in plain["methods"])
    fields["grid"] = None if plain["grid"] is None else grid(plain["grid"])
    fields["settings"] = tuple(tuple(setting) for setting in plain["settings"])
    for name in ("levels", "seeds", "figures", "notes"):
        fields[name] = tuple(plain[name])
    fields["details"] = tuple(plain.get("details", ()))  # notes of 0.1 have none
    return Suite(**fields)


def _bounds(n_games: int = 100, rounds: int = 100) -> str:
    """The bounds of both lemmas held against every round of random games, as a Markdown table."""
    from floral_bench.stability import stability, summarise

    lines = [
        "| bound | says | rounds checked | rounds violated | games violated | worst |",
        "|---|---|---|---|---|---|",
    ]
    for row in summarise(stability(n_games, rounds, random_state=0)):
        says = row["says"].replace("|", "\\|")
        counts = f"{row['rounds']:,} | {row['violated']:,} | {row['games']} | {row['worst']:.3f}"
        lines.append(f"| {row['bound']} | {says} | {counts} |")
    return "\n".join(lines) + "\n"
