"""Exports of annotation tools: Label Studio both ways, doccano, Prodigy and Hugging Face data sets."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from floral_learn.tables import TableError, read_table
from floral_learn.tables.label_studio import (
    label_studio_config,
    label_studio_tasks,
    read_label_studio,
    read_label_studio_votes,
)

# What Label Studio's documentation of its task format asks of predictions and annotations with choices.
RESULT = {"from_name": str, "to_name": str, "type": str, "value": dict}


def check_import(tasks):
    """The schema of an import: data, and predictions with one choice."""
    assert isinstance(tasks, list)
    for task in tasks:
        assert isinstance(task["data"], dict)
        for prediction in task["predictions"]:
            assert isinstance(prediction["model_version"], str)
            assert 0 <= prediction["score"] <= 1
            for result in prediction["result"]:
                assert {key: type(value) for key, value in result.items()} == RESULT
                assert result["type"] == "choices"
                assert [type(choice) for choice in result["value"]["choices"]] == [str]


def annotation(label, person=1, gold=False, **more):
    value = {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": [label]}}
    return {"completed_by": person, "ground_truth": gold, "result": [value], "lead_time": 3.2, **more}


ANN = {"id": 3, "email": "a@b.c"}
SKIPPED = annotation("up", was_cancelled=True)
TASKS = [
    {"id": 7, "data": {"text": "good", "n": 1.5}, "annotations": [annotation("up", 1), annotation("down", 2)]},
    {"id": 8, "data": {"text": "bad", "n": None}, "annotations": [annotation("down", ANN, True)]},
    {"id": 9, "data": {"text": "odd", "n": 2}, "annotations": [SKIPPED], "predictions": []},
    {"id": 10, "data": {"text": "fine", "n": 4}, "annotations": [annotation("up", 1)]},
]  # fmt: skip
MINIMAL = [
    {"id": 7, "text": "good", "mood": "up", "annotator": 1, "annotation_id": 1, "created_at": "x", "lead_time": 1},
    {"id": 7, "text": "good", "mood": "down", "annotator": 2, "annotation_id": 2},
    {"id": 8, "text": "bad", "mood": "down", "annotator": 3, "annotation_id": 3},
]


def put(folder, content, name="export.json"):
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder / name


def test_tasks_become_rows_with_one_label_who_gave_it_and_gold(tmp_path):
    table = read_table(
        put(tmp_path, TASKS), label="mood", ids="id", groups="annotator", trusted="ground_truth", skip_blank_labels=True
    )
    assert table.labels.tolist() == ["up", "down", "up"]
    assert table.ids.tolist() == ["7", "8", "10"]
    assert table.groups.tolist() == ["1 + 2", "a@b.c", "1"]
    assert table.trusted.tolist() == [False, True, False]
    assert list(table.features) == ["text", "n"]
    assert any("1 tasks have annotations that differ" in note for note in table.notes)
    changed = json.loads(table.relabelled([1], ["up"]))
    assert changed[1]["annotations"][0]["result"][0]["value"]["choices"] == ["up"]
    assert [task for i, task in enumerate(changed) if i != 1] == [task for i, task in enumerate(TASKS) if i != 1]


def test_annotations_are_votes_in_both_formats():
    votes = read_label_studio_votes("e.json", json.dumps(TASKS))
    assert list(zip(votes.task, votes.worker, votes.label)) == [
        ("7", "1", "up"), ("7", "2", "down"), ("8", "a@b.c", "down"), ("10", "1", "up"),
    ]  # fmt: skip
    assert votes.gold == {"8": "down"}
    assert votes.data == {"text": ["good", "bad", "odd", "fine"], "n": [1.5, None, 2, 4]}
    minimal = read_label_studio_votes("e.json", json.dumps(MINIMAL), "mood")
    assert list(zip(minimal.task, minimal.worker, minimal.label)) == [
        ("7", "1", "up"), ("7", "2", "down"), ("8", "3", "down"),
    ]  # fmt: skip
    assert minimal.items == ["7", "8"]
    table = read_label_studio("e.json", json.dumps(MINIMAL), "mood")
    changed = json.loads(table.relabelled(table.columns.index("mood"), np.array([1]), np.array(["up"])))
    assert changed == [*MINIMAL[:2], {**MINIMAL[2], "mood": "up"}]


def shape(kind):
    entry = {"from_name": "box", "to_name": "image", "type": kind, "value": {kind: ["cat"], "start": 0, "end": 3}}
    return [{"id": 1, "data": {}, "annotations": [{"completed_by": 1, "result": [entry]}]}]


def two_choices():
    tasks = json.loads(json.dumps(TASKS))
    tasks[0]["annotations"][0]["result"][0]["value"]["choices"] = ["up", "down"]
    return tasks


BAD = [
    (shape("rectanglelabels"), "task 0 .*boxes and shapes are not supported, only one choice"),
    (shape("labels"), "task 0 .*spans are not supported"),
    (two_choices(), "task 0 .*2 choices at once are not supported"),
    ([{**MINIMAL[0], "mood": [{"start": 0, "end": 3, "labels": ["x"]}]}], "task 0 .*spans, boxes and nested choices"),
    ([{**MINIMAL[0], "mood": {"choices": ["a", "b"]}}], "task 0 .*2 choices at once"),
    ("{", "line 1: not a readable JSON file"),
    ("[" * 100_000, "not a readable JSON file"),
    ({"a": 1}, "not an export of Label Studio"),
    ([{"data": {}, "annotations": 3}], "task 0 .*'annotations' must be a list"),
    ([{"data": {}, "annotations": [{"result": 3}]}], "task 0 .*must hold a list 'result'"),
    ([{"data": {}}], "no annotation with a choice"),
    ([TASKS[0], TASKS[0]], "task 1 .*the id 7 stands twice"),
    ([{"id": 1, "a": 1}], "no answers named 'mood'; name one of: 'a'"),
]


@pytest.mark.parametrize(("content", "message"), BAD, ids=range(len(BAD)))
def test_what_is_not_supported_is_one_line(tmp_path, content, message):
    with pytest.raises(TableError, match=message) as caught:
        read_table(put(tmp_path, content), label="mood")
    assert "export.json" in str(caught.value)
    assert "\n" not in str(caught.value)


WORDS = st.text(min_size=1, max_size=12).filter(lambda text: text.strip() == text and text.isprintable())
VALUES = st.one_of(st.text(max_size=20), st.integers(-(10**9), 10**9), st.booleans(), st.none(), st.floats(-1e9, 1e9))
PEOPLE = st.one_of(st.integers(1, 50), st.emails(), st.builds(lambda i: {"id": i}, st.integers(1, 9)))


@pytest.mark.parametrize("trips", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_round_trips_change_no_label(trips):
    settings(max_examples=trips, deadline=None, suppress_health_check=list(HealthCheck))(given(st.data())(round_trip))()


def round_trip(data):
    labels = data.draw(st.lists(WORDS, min_size=2, max_size=4, unique=True))
    answers = st.lists(st.tuples(st.sampled_from(labels), PEOPLE, st.booleans()), min_size=1, max_size=3)
    given_tasks = data.draw(
        st.lists(st.tuples(st.dictionaries(WORDS, VALUES, max_size=3), answers), min_size=1, max_size=5)
    )
    tasks = [
        {"id": number, "data": {f"c {k}": v for k, v in shown.items()}, "annotations": [annotation(*a) for a in answer]}
        for number, (shown, answer) in enumerate(given_tasks)
    ]
    source = read_label_studio("e.json", json.dumps(tasks), "mood")
    position = source.columns.index("mood")
    assert json.loads(source.relabelled(position, np.array([], int), np.array([]))) == tasks
    chosen = [data.draw(st.sampled_from(labels)) for _ in tasks]
    back = read_label_studio("e.json", source.relabelled(position, np.arange(len(tasks)), np.array(chosen)).decode())
    assert back.cells(position) == chosen
    assert [task.data for task in back.tasks] == [task["data"] for task in tasks]
    # Out with predictions, accepted by a person, and back: the choice is the one that was suggested.
    made = json.loads(
        label_studio_tasks([t["data"] for t in tasks], chosen, [0.5] * len(tasks), choice="mood", item="text")
    )
    check_import(made)
    for number, task in enumerate(made):
        task |= {"id": number, "annotations": [{"completed_by": 1, "result": task["predictions"][0]["result"]}]}
    assert read_label_studio_votes("e.json", json.dumps(made)).label == chosen


def test_a_missing_cell_is_an_empty_one_in_a_task():
    made = json.loads(label_studio_tasks([{"a": None, "b": 1}, {"b": float("nan"), "c": "x"}], ["u", "v"], [0.5, 0.5]))
    assert [task["data"] for task in made] == [{"a": "", "b": 1, "c": ""}, {"a": "", "b": "", "c": "x"}]


def test_the_configuration_names_what_the_tasks_name():
    from xml.etree import ElementTree

    root = ElementTree.fromstring(label_studio_config(["a<b", "c"], ["x&y", 1], choice="mood", item="text"))
    assert [tag.get("value") for tag in root.findall("Text")] == ["$a<b", "$c"]
    choices = root.find("Choices")
    assert (choices.get("name"), choices.get("toName"), choices.get("choice")) == ("mood", "text", "single")
    assert [choice.get("value") for choice in choices] == ["x&y", "1"]


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_doccano_and_prodigy_are_json_lines(tmp_path):
    doccano = put(tmp_path, lines({"id": 1, "text": "a", "label": ["up"]}, {"id": 2, "text": "b", "label": []},
                                  {"id": 3, "text": "c", "label": ["down"]}), "d.jsonl")  # fmt: skip
    table = read_table(doccano, label="label", ids="id", skip_blank_labels=True)
    assert table.labels.tolist() == ["up", "down"]
    assert json.loads(table.relabelled([0], ["down"]).decode().splitlines()[0])["label"] == ["down"]
    prodigy = put(tmp_path, lines(
        {"text": "a", "accept": ["up"], "answer": "accept", "_annotator_id": "p-ann"},
        {"text": "b", "accept": ["up"], "answer": "reject", "_annotator_id": "p-bob"},
        {"text": "c", "accept": ["down"], "answer": "accept", "_annotator_id": "p-bob"}), "p.jsonl")  # fmt: skip
    table = read_table(prodigy, label="accept", groups="_annotator_id", skip_blank_labels=True)
    assert table.labels.tolist() == ["up", "down"]
    assert table.groups.tolist() == ["p-ann", "p-bob"]
    with pytest.raises(TableError, match="2 labels at once"):
        read_table(
            put(tmp_path, lines({"t": "a", "label": ["x", "y"]}, {"t": "b", "label": ["x"]}), "m.jsonl"), label="label"
        )
    with pytest.raises(TableError, match="spans or boxes"):
        read_table(put(tmp_path, lines({"t": "a", "label": [[0, 3, "ORG"]]}), "s.jsonl"), label="label")


def test_hugging_face_data_sets_go_in_and_out(tmp_path):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "emb": datasets.Sequence(datasets.Value("float32")),
            "label": datasets.ClassLabel(names=["neg", "pos"]),
        }
    )
    content = {"text": ["a b c", "d", "e"], "emb": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], "label": [0, 1, 1]}
    made = datasets.Dataset.from_dict(content, features=features)
    table = read_table(made, label="label")
    assert table.labels.tolist() == ["neg", "pos", "pos"]
    assert list(table.features) == ["text", "emb[0]", "emb[1]"]
    changed = table.relabelled([0], ["pos"])
    assert changed["label"] == [1, 1, 1] if isinstance(changed["label"], list) else list(changed["label"]) == [1, 1, 1]
    assert changed.features == made.features
    made.save_to_disk(tmp_path / "saved")
    again = read_table(tmp_path / "saved", label="label")
    assert again.labels.tolist() == table.labels.tolist()
    (tmp_path / "copy.parquet").write_bytes(again.relabelled([2], ["neg"]))
    assert read_table(tmp_path / "copy.parquet", label="label").labels.tolist() == [0, 1, 0]
    with pytest.raises(TableError, match="has the splits train; give one of them"):
        read_table(datasets.DatasetDict({"train": made}), label="label")


def test_label_studio_itself_takes_what_we_write():
    interface = pytest.importorskip("label_studio_sdk.label_interface", reason="label-studio-sdk is not installed")
    config = label_studio_config(["text", "n"], ["up", "down"], choice="mood", item="text").decode()
    made = json.loads(label_studio_tasks([t["data"] for t in TASKS], ["up"] * 4, [0.5] * 4, choice="mood", item="text"))
    label_studio = interface.LabelInterface(config)
    for task in made:
        assert label_studio.validate_task({"data": task["data"]})
        assert label_studio.validate_prediction(task["predictions"][0])


@pytest.mark.parametrize("kind", ["JSON", "JSON_MIN"])
def test_what_label_studios_own_converter_exports_is_read(tmp_path, kind):
    converter = pytest.importorskip("label_studio_sdk.converter", reason="label-studio-sdk is not installed")
    people = [{"id": number, "email": f"p{number}@x.y"} for number in range(3)]
    dates = {"created_at": "2024-01-01T00:00:00Z", "updated_at": "2024-01-01T00:00:00Z"}
    answers = [[("up", 0), ("down", 1)], [("down", 2)]]
    tasks = [
        {
            "id": 7 + row,
            "data": {"text": f"t{row}", "n": row},
            "annotations": [annotation(label, people[who], id=10 * row + who, **dates) for label, who in given_answers],
        }
        for row, given_answers in enumerate(answers)
    ]
    config = label_studio_config(["text", "n"], ["up", "down"], choice="mood", item="text").decode()
    source = put(tmp_path, tasks)
    converter.Converter(config, project_dir=None).convert(str(source), str(tmp_path / "out"), kind, is_dir=False)
    (made,) = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    votes = read_label_studio_votes("e.json", made.read_text(encoding="utf-8"), "mood")
    assert list(zip(votes.task, votes.worker, votes.label)) == [
        ("7", "p0@x.y", "up"), ("7", "p1@x.y", "down"), ("8", "p2@x.y", "down"),
    ]  # fmt: skip
    assert votes.data == {"text": ["t0", "t1"], "n": [0, 1]}
