"""Label Studio's exports (JSON) as tables and votes, and tasks with predictions for it.

Of its formats only single choices are read: one `Choices` tag, one choice per annotation. Whoever completed an
annotation is its person, `ground_truth` marks an answer that is known to be right, skipped annotations are no votes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import pandas as pd

from floral_learn import __version__
from floral_learn.base.cells import TableError, reason, short, some

from .source import Source


@dataclass(frozen=True)
class Export:
    """Tasks by name with their data, and every answer to one choice (task, worker, label, gold) about one item."""

    tasks: dict[str, dict[str, Any]]
    votes: pd.DataFrame
    choice: str
    item: str


def read_export(name: str, text: str, label: str | None = None) -> Export:
    """The tasks and answers of an export; `label` is the name of the choice (found where there is one only)."""
    try:
        content = json.loads(text.lstrip("\ufeff"), parse_constant=lambda word: None)
    except (ValueError, RecursionError) as error:
        raise TableError(f"{name}: not a readable JSON file ({reason(error)})") from None
    of_tasks = isinstance(content, list) and all(isinstance(task, dict) for task in content)
    if not content or not of_tasks:
        raise TableError(f"{name} is not an export of Label Studio: a list of tasks [{{...}}, ...] is needed")
    tasks: dict[str, dict[str, Any]] = {}
    for number, raw in enumerate(content):
        if not isinstance(raw.get("data"), dict):
            raise TableError(f"{name}: task {number} (from 0) has no 'data'; of Label Studio's exports, JSON is read")
        tasks[str(raw.get("id", number))] = raw["data"]
    if len(tasks) < len(content):
        raise TableError(f"{name}: two tasks have the same id")
    results = list(_results(content, name))
    entries = [entry for *_, entry in results if entry.get("type") == "choices"]
    choices = {str(entry.get("from_name")): str(entry.get("to_name")) for entry in entries}
    choice = label or "label"
    if len(choices) == 1 and label in (None, "label"):
        choice = next(iter(choices))
    if choice not in choices and (label is not None or choices):
        known = some(choices) or "none"
        raise TableError(f"{name}: no annotation with a choice {short(choice)}; its choices are: {known}")
    names, votes, last = list(tasks), [], None
    for number, annotation, result in results:
        if result.get("from_name") == choice:
            value = result.get("value")
            given = value.get("choices", []) if isinstance(value, dict) else []
            nested = not isinstance(given, list) or any(isinstance(one, dict | list) for one in given)
            if annotation is last or nested or len(given) > 1:
                raise TableError(f"{name}: task {number} (from 0): several choices at once are not supported, only one")
            last = annotation
            if given and (said := str(given[0]).strip()):
                gold = bool(annotation.get("ground_truth"))
                votes.append((names[number], _person(annotation.get("completed_by")), said, gold))
    table = pd.DataFrame(votes, columns=["task", "worker", "label", "gold"])
    return Export(tasks, table, choice, choices.get(choice, "item"))


def read_label_studio(name: str, text: str, label: str | None = None) -> Source:
    """The tasks of an export as rows: their data, the label, who gave it and whether it is known to be right."""
    export = read_export(name, text, label)
    votes, choice = export.votes, export.choice
    if label is not None and votes.empty:
        raise TableError(f"{name}: no task has an annotation of {short(choice)}")
    rows = pd.DataFrame(list(export.tasks.values()), index=list(export.tasks), dtype=object)
    rows = rows.drop(columns=["id", choice], errors="ignore").where(lambda cells: cells.notna(), None)
    # The known answer, else the most frequent one; the first of equals.
    alike = votes.groupby(["task", "label"], sort=False)["label"]
    votes = votes.assign(times=alike.transform("size"))
    settled = votes.sort_values(["gold", "times"], ascending=False, kind="stable").drop_duplicates("task")
    workers = votes.groupby("task", sort=False)["worker"]
    people = workers.agg(lambda names: " + ".join(dict.fromkeys(names)))
    columns = {choice: settled.set_index("task")["label"], "annotator": people}
    rows.insert(0, "id", list(export.tasks), allow_duplicates=True)
    for column, values in columns.items():
        rows[column] = values.reindex(rows.index).astype(object).where(pd.notna, None)
    known = set(votes["task"][votes["gold"]])
    rows["ground_truth"] = [task in known for task in export.tasks]
    last = rows.shape[1] - 1

    def write(place: int, new: list[Any]) -> bytes:
        """The export with other choices in every annotation of a task whose label is another; all else stays."""
        if place != last - 2:
            raise TableError(f"{name}: only {short(choice)} can be replaced")
        content = json.loads(text.lstrip("\ufeff"))
        given = rows[choice].tolist()
        for number, _, result in _results(content, name):
            if result.get("from_name") == choice and new[number] != given[number]:
                result["value"]["choices"] = [new[number]]
        return _json_bytes(content)

    source = Source(name, rows.reset_index(drop=True), write, choice=choice, export=export)
    source.no_features = frozenset({0, last - 1, last})
    if differ := int((votes.groupby("task")["label"].nunique() > 1).sum()):
        many = f"{differ:,} tasks have annotations that differ"
        source.notes.append(f"{many}: the most frequent choice counts; floral crowd weighs who gave them")
    return source


def label_studio_tasks(table: Any, numbers: Any, suggested: Sequence[Any], score: Sequence[float]) -> dict[str, bytes]:
    """tasks.json and label-config.xml for rows of a `Table` (their numbers in its file), in this order.

    Each task has one prediction: the suggested choice, and its score from 0 to 1.
    """
    at = np.searchsorted(table.rows, np.asarray(numbers, dtype=int))
    export = table.source.export
    choice, item = (str(table.label), "item") if export is None else (export.choice, export.item)
    data = None if export is None else list(export.tasks.values())
    if data is None:
        rows = table.features.iloc[at].to_dict("records")
    else:
        rows = [data[row] for row in table.rows[at]]
    shown = dict.fromkeys(key for row in rows for key in row)
    names = (table.rows if table.ids is None else table.ids)[at]
    tasks, version = [], f"floral-learn {__version__}"
    for name, row, label, sure in zip(names, rows, suggested, score, strict=True):
        value = {"choices": [str(label)]}
        result = {"from_name": choice, "to_name": item, "type": "choices", "value": value}
        prediction = {"model_version": version, "score": round(float(sure), 6), "result": [result]}
        cells, meta = {key: _shown(row.get(key)) for key in shown}, {"floral_row": str(name)}
        tasks.append({"data": cells, "predictions": [prediction], "meta": meta})
    config = label_studio_config(shown, table.classes.tolist(), choice=choice, item=item)
    return {"tasks.json": _json_bytes(tasks), "label-config.xml": config}


def label_studio_config(columns: Iterable[str], classes: Iterable[Any], *, choice: str, item: str) -> bytes:
    """A labeling configuration that shows the columns as text and asks for one of the classes."""
    lines = ["<View>"]
    for number, column in enumerate(columns):
        name = f"shown-{number}" if number else item
        lines.append(f"  <Text name={quoteattr(name)} value={quoteattr('$' + column)}/>")
    lines.append(f'  <Choices name={quoteattr(choice)} toName={quoteattr(item)} choice="single" showInline="true">')
    lines += [f"    <Choice value={quoteattr(str(value))}/>" for value in classes]
    return "\n".join([*lines, "  </Choices>", "</View>", ""]).encode()


def _json_bytes(content: Any) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "surrogatepass")


def _results(content: list[dict[str, Any]], name: str) -> Iterator[tuple[int, dict[str, Any], dict[str, Any]]]:
    """Task, annotation and entry of its result, of all annotations that were not skipped."""
    for number, task in enumerate(content):
        annotations = task.get("annotations", task.get("completions", []))
        for annotation in annotations if isinstance(annotations, list) else [None]:
            known: Any = annotation if isinstance(annotation, dict) else {"result": None}
            results = known.get("result", [])
            listed = isinstance(results, list) and all(isinstance(result, dict) for result in results)
            if not listed:
                where = f"{name}: task {number} (from 0)"
                raise TableError(f"{where}: 'annotations' must be a list of objects with lists 'result'")
            if not known.get("was_cancelled"):
                yield from ((number, known, result) for result in results)


def _person(completed_by: Any) -> str:
    """The address or number of whoever completed an annotation."""
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("email") or completed_by.get("id")
    return "(missing)" if completed_by in (None, "") else str(completed_by)


def _shown(value: Any) -> Any:
    """A cell as a task holds it: Label Studio refuses tasks that lack something which its configuration shows."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or value is pd.NaT or (isinstance(value, float) and not np.isfinite(value)):
        return ""
    return value if isinstance(value, str | bool | int | float | list | dict) else str(value)
