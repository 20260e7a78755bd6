"""Label Studio's exports (tasks JSON and JSON-MIN) as tables and votes, and tasks with predictions for it.

Of its formats only single choices are read: one `Choices` tag, one choice per annotation. Whoever completed an
annotation is its person, `ground_truth` marks an answer that is known to be right, skipped annotations are no votes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from floral_learn import __version__

from . import TableError
from .source import Source, pairs, reason

# What JSON-MIN puts beside the data and the answers of a task.
_ABOUT = ("annotator", "annotation_id", "created_at", "updated_at", "lead_time", "ground_truth", "id")
_SHAPES = {"labels": "spans", "hypertextlabels": "spans", "paragraphlabels": "spans", "timeserieslabels": "spans"}


@dataclass(frozen=True)
class Annotation:
    """One answer of one person to one task; `result` is the entry of the file that holds it, where there is one."""

    label: str
    person: str
    gold: bool = False
    result: Any = None


@dataclass
class Task:
    """What is shown to people (`data`), and their answers."""

    name: str
    data: dict[str, Any]
    annotations: list[Annotation] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)  # of JSON-MIN: one per annotation

    def label(self) -> str | None:
        """The known answer, else the most frequent one (the first of equals); None where nobody answered."""
        known = [a.label for a in self.annotations if a.gold]
        given = known or [a.label for a in self.annotations]
        return Counter(given).most_common(1)[0][0] if given else None


class LabelStudioSource(Source):
    """Tasks as rows: their data, the label, who gave it and whether it is known to be right."""

    choice: str

    def __init__(self, name: str, content: Any, tasks: list[Task], choice: str, item: str) -> None:
        self.name, self.content, self.tasks, self.choice, self.item = name, content, tasks, choice, item
        self.data = list(dict.fromkeys(key for task in tasks for key in task.data if key not in ("id", choice)))
        self.columns = ["id", *self.data, choice, "annotator", "ground_truth"]
        self.n_rows, self.notes = len(tasks), []
        self.no_features = {0, len(self.columns) - 2, len(self.columns) - 1}
        differ = sum(len({a.label for a in task.annotations}) > 1 for task in tasks)
        if differ:
            self.notes.append(
                f"{differ:,} tasks have annotations that differ: the most frequent choice counts; floral crowd weighs "
                "who gave them"
            )

    def cells(self, position: int) -> list[Any]:
        """Python values, None where missing."""
        column = self.columns[position]
        if column == "id" and position == 0:
            return [task.name for task in self.tasks]
        if position == len(self.columns) - 3:
            return [task.label() for task in self.tasks]
        if position == len(self.columns) - 2:
            return [" + ".join(dict.fromkeys(a.person for a in task.annotations)) or None for task in self.tasks]
        if position == len(self.columns) - 1:
            return [any(a.gold for a in task.annotations) for task in self.tasks]
        return [task.data.get(column) for task in self.tasks]

    def relabelled(self, position: int, rows: np.ndarray, new: np.ndarray) -> bytes:
        """The export with other choices in every annotation of these tasks; all else stays."""
        if position != len(self.columns) - 3:
            raise TableError(f"{self.name}: only {self.choice!r} can be replaced")
        content = json.loads(json.dumps(self.content))
        again = _tasks(content, self.choice, self.name)
        for row, label in pairs(rows, new):
            for annotation in again[row].annotations:
                annotation.result["value"]["choices"] = [str(label)]
            for record in again[row].records:
                record[self.choice] = str(label)
        return json_bytes(content)


@dataclass(frozen=True)
class Votes:
    """Every annotation of an export: task, person and choice, the gold answers, and the tasks' data."""

    task: list[str]
    worker: list[str]
    label: list[str]
    gold: dict[str, str]
    items: list[str]
    data: dict[str, list[Any]]


def read_label_studio(name: str, text: str, label: str | None = None) -> LabelStudioSource:
    """The tasks of an export as a table; `label` is the name of the choice (found where there is one only)."""
    content = _parsed(name, text)
    choice, item = _choice(content, label, name)
    tasks = _tasks(content, choice, name)
    if label is not None and not any(task.annotations for task in tasks):
        raise TableError(f"{name}: no task has an annotation of {choice!r}")
    return LabelStudioSource(name, content, tasks, choice, item)


def read_label_studio_votes(name: str, text: str, label: str | None = None) -> Votes:
    """Every annotation of an export as a vote; two gold answers to one task that differ are an error."""
    source = read_label_studio(name, text, label)
    gold: dict[str, str] = {}
    for task in source.tasks:
        for answer in (a.label for a in task.annotations if a.gold):
            if gold.setdefault(task.name, answer) != answer:
                raise TableError(f"{name}: task {task.name} has two ground truths, {gold[task.name]!r} and {answer!r}")
    votes = [(task.name, a.person, a.label) for task in source.tasks for a in task.annotations]
    task_of, worker, answers = (list(part) for part in zip(*votes, strict=True))
    data = {key: [task.data.get(key) for task in source.tasks] for key in source.data}
    return Votes(task_of, worker, answers, gold, [task.name for task in source.tasks], data)


def label_studio_tasks(
    data: Sequence[dict[str, Any]],
    suggested: Sequence[Any],
    score: Sequence[float],
    *,
    choice: str = "label",
    item: str = "item",
    model_version: str = "floral-learn",
    ids: Sequence[Any] | None = None,
) -> bytes:
    """Tasks for import, in this order, each with one prediction: the suggested choice and its score from 0 to 1.

    Examples
    --------
    >>> import json
    >>> from floral_learn.tables.label_studio import label_studio_tasks
    >>> (task,) = json.loads(label_studio_tasks([{"text": "buy now"}], ["spam"], [0.9], item="text"))
    >>> task["predictions"][0]["result"][0]["value"], task["predictions"][0]["score"]
    ({'choices': ['spam']}, 0.9)
    """
    tasks = []
    names = dict.fromkeys(key for row in data for key in row)
    for number, (row, label, sure) in enumerate(zip(data, suggested, score, strict=True)):
        result = {"from_name": choice, "to_name": item, "type": "choices", "value": {"choices": [str(label)]}}
        task: dict[str, Any] = {
            "data": {key: _shown(row.get(key)) for key in names},
            "predictions": [{"model_version": model_version, "score": round(float(sure), 6), "result": [result]}],
        }
        if ids is not None:
            task["meta"] = {"floral_row": str(ids[number])}
        tasks.append(task)
    return json_bytes(tasks)


def tasks_of_table(table: Any, numbers: Any, suggested: Any, score: Any) -> dict[str, bytes]:
    """tasks.json and label-config.xml for rows of a `Table` (their numbers in its file), in this order."""
    at = np.searchsorted(table.rows, np.asarray(numbers, dtype=int))
    if isinstance(table.source, LabelStudioSource):
        rows = [table.source.tasks[row].data for row in table.rows[at]]
        choice, item = table.source.choice, table.source.item
    else:
        rows = table.features.iloc[at].to_dict(orient="records")
        choice, item = str(table.label), "item"
    names = (table.rows if table.ids is None else table.ids)[at].tolist()
    version = f"floral-learn {__version__}"
    tasks = label_studio_tasks(rows, suggested, score, choice=choice, item=item, model_version=version, ids=names)
    shown = dict.fromkeys(key for row in rows for key in row)
    config = label_studio_config(shown, table.classes.tolist(), choice=choice, item=item)
    return {"tasks.json": tasks, "label-config.xml": config}


def label_studio_config(columns: Iterable[str], classes: Iterable[Any], *, choice: str, item: str) -> bytes:
    """A labeling configuration that shows the columns as text and asks for one of the classes."""
    shown = list(columns)
    lines = ["<View>"]
    for column in shown:
        name = item if column == shown[0] else f"shown-{len(lines)}"
        lines.append(f"  <Text name={quoteattr(name)} value={quoteattr('$' + column)}/>")
    lines.append(f'  <Choices name={quoteattr(choice)} toName={quoteattr(item)} choice="single" showInline="true">')
    lines += [f"    <Choice value={quoteattr(str(value))}/>" for value in classes]
    return "\n".join([*lines, "  </Choices>", "</View>", ""]).encode()


def json_bytes(content: Any) -> bytes:
    """JSON as people can read it."""
    return (json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode("utf-8", "surrogatepass")


def _parsed(name: str, text: str) -> list[dict[str, Any]]:
    try:
        content = json.loads(text.lstrip("\ufeff"), parse_constant=lambda word: None)
    except (ValueError, RecursionError) as error:
        place = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        problem = getattr(error, "msg", None) or reason(error)
        raise TableError(f"{name}{place}: not a readable JSON file ({problem})") from None
    if not isinstance(content, list) or not content or not all(isinstance(task, dict) for task in content):
        raise TableError(f"{name} is not an export of Label Studio: a list of tasks [{{...}}, ...] is needed")
    return content


def _is_min(content: list[dict[str, Any]]) -> bool:
    return not any(isinstance(task.get("data"), dict) for task in content)


def _choice(content: list[dict[str, Any]], label: str | None, name: str) -> tuple[str, str]:
    """The names of the choice and of what it is about, in the labeling configuration of the export."""
    if _is_min(content):
        keys = dict.fromkeys(key for task in content for key in task if key not in _ABOUT)
        if label is None or label in keys:
            return label or "label", "item"
        raise TableError(f"{name} has no answers named {label!r}; name one of: {', '.join(map(repr, keys))[:300]}")
    found: dict[str, str] = {}
    for number, task in enumerate(content):
        for _, result in _results(task, name, number):
            if result.get("type") == "choices":
                found.setdefault(str(result.get("from_name")), str(result.get("to_name")))
            elif not found and result.get("type") in ("labels", "rectanglelabels", *_SHAPES):
                _refuse(name, number, str(result.get("type")))
    if label is not None and label in found:
        return label, found[label]
    if len(found) == 1 and (label is None or label == "label"):
        return next(iter(found.items()))
    if not found and label is None:
        return "label", "item"  # tasks that nobody has answered yet, for a model to predict
    if not found:
        raise TableError(f"{name} has no annotation with a choice")
    raise TableError(f"{name} has no choice named {label!r}; name one of: {', '.join(map(repr, found))}")


def _refuse(name: str, number: int, kind: str) -> None:
    what = _SHAPES.get(kind, "boxes and shapes" if kind.endswith("labels") else f"annotations of type {kind!r}")
    raise TableError(f"{name}, task {number} (from 0): {what} are not supported, only one choice per annotation")


def _results(task: dict[str, Any], name: str, number: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Pairs (annotation, entry of its result) of all annotations that were not skipped."""
    found = []
    annotations = task.get("annotations", task.get("completions", []))
    if not isinstance(annotations, list):
        raise TableError(f"{name}, task {number} (from 0): 'annotations' must be a list")
    for annotation in annotations:
        if not isinstance(annotation, dict) or not isinstance(annotation.get("result", []), list):
            raise TableError(f"{name}, task {number} (from 0): an annotation must hold a list 'result'")
        if annotation.get("was_cancelled"):
            continue
        for result in annotation.get("result", []):
            if not isinstance(result, dict):
                raise TableError(f"{name}, task {number} (from 0): a result must be an object")
            found.append((annotation, result))
    return found


def _tasks(content: list[dict[str, Any]], choice: str, name: str) -> list[Task]:
    if _is_min(content):
        return _min_tasks(content, choice, name)
    tasks, names = [], set()
    for number, raw in enumerate(content):
        if not isinstance(raw.get("data"), dict):
            raise TableError(f"{name}, task {number} (from 0) has no 'data'")
        task = Task(str(raw.get("id", number)), raw["data"])
        if task.name in names:
            raise TableError(f"{name}, task {number} (from 0): the id {task.name} stands twice")
        names.add(task.name)
        seen: list[Any] = []
        for annotation, result in _results(raw, name, number):
            if result.get("from_name") != choice:
                continue
            if result.get("type") != "choices":
                _refuse(name, number, str(result.get("type")))
            if any(annotation is other for other in seen):
                raise TableError(f"{name}, task {number} (from 0): one annotation answers {choice!r} twice")
            seen.append(annotation)
            value = result.get("value")
            label = _one(value.get("choices") if isinstance(value, dict) else None, name, number)
            if label is not None:
                gold = bool(annotation.get("ground_truth"))
                task.annotations.append(Annotation(label, _person(annotation.get("completed_by")), gold, result))
        tasks.append(task)
    return tasks


def _min_tasks(content: list[dict[str, Any]], choice: str, name: str) -> list[Task]:
    """JSON-MIN: one flat record per annotation; records of one id are one task."""
    tasks: dict[str, Task] = {}
    for number, record in enumerate(content):
        key = str(record.get("id", number))
        data = {column: value for column, value in record.items() if column not in (*_ABOUT, choice)}
        task = tasks.setdefault(key, Task(key, data))
        value = record.get(choice)
        if isinstance(value, dict):
            value = value.get("choices")
        label = _one(value if isinstance(value, list) or value is None else [value], name, number)
        if label is not None:
            task.annotations.append(
                Annotation(label, _person(record.get("annotator")), bool(record.get("ground_truth")), {"value": {}})
            )
            task.records.append(record)
    return list(tasks.values())


def _one(choices: Any, name: str, number: int) -> str | None:
    """The single choice of an annotation; None where nothing was chosen."""
    if choices in (None, []):
        return None
    if not isinstance(choices, list):
        raise TableError(f"{name}, task {number} (from 0): choices must be a list")
    if any(isinstance(one, dict | list) for one in choices):
        raise TableError(
            f"{name}, task {number} (from 0): spans, boxes and nested choices are not supported, only one choice"
        )
    if len(choices) > 1:
        raise TableError(f"{name}, task {number} (from 0): {len(choices)} choices at once are not supported, only one")
    return str(choices[0]).strip() or None


def _person(completed_by: Any) -> str:
    """The address or number of whoever completed an annotation."""
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("email") or completed_by.get("id")
    return "(missing)" if completed_by in (None, "") else str(completed_by)


def _shown(value: Any) -> Any:
    """A cell as a task holds it: Label Studio refuses tasks that lack something which its configuration shows."""
    found = _plain(value)
    return "" if found is None else found


def _plain(value: Any) -> Any:
    """A cell as JSON holds it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int | list | dict):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return str(value)
