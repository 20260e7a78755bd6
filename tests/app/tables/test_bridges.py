"""Exports of annotation tools: Label Studio both ways, doccano, Prodigy and Hugging Face data sets."""

import json
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from floral_learn.app.tables import read_table
from floral_learn.app.tables.label_studio import label_studio_config, label_studio_tasks, read_export, read_label_studio
from floral_learn.base import TableError

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


def votes_of(text, label=None):
    found = read_export("e.json", text, label).votes
    return list(found[["task", "worker", "label"]].itertuples(index=False, name=None))


def test_annotations_are_votes():
    export = read_export("e.json", json.dumps(TASKS))
    assert votes_of(json.dumps(TASKS)) == [
        ("7", "1", "up"), ("7", "2", "down"), ("8", "a@b.c", "down"), ("10", "1", "up"),
    ]  # fmt: skip
    assert export.votes["gold"].tolist() == [False, False, True, False]
    assert export.tasks["9"] == {"text": "odd", "n": 2}


def shape(kind):
    entry = {"from_name": "box", "to_name": "image", "type": kind, "value": {kind: ["cat"], "start": 0, "end": 3}}
    return [{"id": 1, "data": {}, "annotations": [{"completed_by": 1, "result": [entry]}]}]


def two_choices():
    tasks = json.loads(json.dumps(TASKS))
    tasks[0]["annotations"][0]["result"][0]["value"]["choices"] = ["up", "down"]
    return tasks


BAD = [
    (shape("rectanglelabels"), "no annotation with a choice 'mood'"),
    (shape("labels"), "no annotation with a choice"),
    (two_choices(), "task 0 .*several choices at once are not supported, only one"),
    ([{"id": 7, "text": "good", "mood": "up", "annotator": 1}], "task 0 .*has no 'data'; of Label Studio's exports"),
    ("{", "not a readable JSON file .*line 1"),
    ("[" * 100_000, "not a readable JSON file"),
    ({"a": 1}, "not an export of Label Studio"),
    ([{"data": {}, "annotations": 3}], "task 0 .*'annotations' must be a list"),
    ([{"data": {}, "annotations": [{"result": 3}]}], "task 0 .*lists 'result'"),
    ([{"data": {}}], "no annotation with a choice"),
    ([TASKS[0], TASKS[0]], "two tasks have the same id"),
    ([{"data": {}, "annotations": [{"result": [{"from_name": "mood", "type": "choices", "value": [1]}]}]}],
     "no task has an annotation of 'mood'"),
]  # fmt: skip


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
    labels = data.draw(st.lists(st.text("abcdé", min_size=1, max_size=6), min_size=2, max_size=4, unique=True))
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
    assert [list(back.export.tasks.values())[n] for n in range(len(tasks))] == [task["data"] for task in tasks]


def suggestions(table, labels):
    """The tasks for a table's rows, each with a suggested label."""
    made = label_studio_tasks(table, table.rows, labels, [0.5] * len(table))
    return json.loads(made["tasks.json"]), made["label-config.xml"].decode()


def test_suggestions_that_a_person_accepts_come_back_as_they_went(tmp_path):
    table = read_table(put(tmp_path, TASKS), label="mood", skip_blank_labels=True)
    made, _ = suggestions(table, ["down", "up", "down"])
    check_import(made)
    for number, task in enumerate(made):
        task |= {"id": number, "annotations": [{"completed_by": 1, "result": task["predictions"][0]["result"]}]}
    assert [label for *_, label in votes_of(json.dumps(made))] == ["down", "up", "down"]


def test_a_missing_cell_is_an_empty_one_in_a_task():
    frame = pd.DataFrame({"a": [None, "u"], "b": [1.0, float("nan")], "y": ["p", "q"]})
    made, _ = suggestions(read_table(frame, label="y"), ["p", "q"])
    assert [task["data"] for task in made] == [{"a": "", "b": 1.0}, {"a": "u", "b": ""}]


def test_the_configuration_names_what_the_tasks_name():
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
        {"text": "d", "accept": ["up"], "answer": "ignore", "_annotator_id": "p-ann"},
        {"text": "b", "accept": ["up"], "answer": "reject", "_annotator_id": "p-bob"},
        {"text": "c", "accept": ["down"], "answer": "accept", "_annotator_id": "p-bob"}), "p.jsonl")  # fmt: skip
    table = read_table(prodigy, label="accept", groups="_annotator_id", skip_blank_labels=True)
    assert table.labels.tolist() == ["up", "down"]
    assert table.groups.tolist() == ["p-ann", "p-bob"]
    assert any("written by Prodigy" in note for note in table.notes)
    assert read_table(prodigy, label="answer", skip_blank_labels=True).labels.tolist() == ["accept", "reject", "accept"]
    ours = put(tmp_path, lines({"accept": "yes", "answer": "ignore"}, {"accept": "no", "answer": "reject"},
                               {"accept": "yes", "answer": "accept"}), "o.jsonl")  # fmt: skip
    assert read_table(ours, label="accept").labels.tolist() == ["yes", "no", "yes"]
    assert read_table(ours, label="answer").labels.tolist() == ["ignore", "reject", "accept"]
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
    made.to_parquet(tmp_path / "made.parquet")
    assert read_table(tmp_path / "made.parquet", label="label").labels.tolist() == table.labels.tolist()
    with pytest.raises(TableError, match="has the splits train; give one of them"):
        read_table(datasets.DatasetDict({"train": made}), label="label")


def test_parquet_files_of_hugging_face_name_their_classes(tmp_path):
    features = {"x": {"_type": "Value"}, "label": {"_type": "ClassLabel", "names": ["neg", "pos"]}}
    table = pa.table({"x": [1.0, 2.0, 3.0], "label": [0, 1, -1]})

    def read(features, labels=table["label"]):
        marked = table.set_column(1, "label", labels)
        told = {"huggingface": json.dumps({"info": {"features": features}})}
        pq.write_table(marked.replace_schema_metadata(told), tmp_path / "t.parquet")
        return read_table(tmp_path / "t.parquet", label="label", skip_blank_labels=True)

    found = read(features)
    assert found.labels.tolist() == ["neg", "pos"]
    copy = pq.read_table(pa.BufferReader(found.relabelled([0], ["pos"])))
    assert copy["label"].to_pylist() == [1, 1, -1]
    for other in ({}, [], None, {"label": {"_type": "ClassLabel", "names": ["neg"]}, "x": {}}, {"label": 3, "x": 1}):
        assert read(other).labels.tolist() == [0, 1, -1]
    assert read(features, pa.array(["a", "b", None])).labels.tolist() == ["a", "b"]


def test_label_studio_itself_takes_what_we_write(tmp_path):
    interface = pytest.importorskip("label_studio_sdk.label_interface", reason="label-studio-sdk is not installed")
    made, config = suggestions(read_table(put(tmp_path, TASKS), label="mood", skip_blank_labels=True), ["up"] * 3)
    label_studio = interface.LabelInterface(config)
    for task in made:
        assert label_studio.validate_task({"data": task["data"]})
        assert label_studio.validate_prediction(task["predictions"][0])


def test_what_label_studios_own_converter_exports_is_read(tmp_path):
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
    converter.Converter(config, project_dir=None).convert(str(source), str(tmp_path / "out"), "JSON", is_dir=False)
    (made,) = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    text = made.read_text(encoding="utf-8")
    assert votes_of(text, "mood") == [("7", "p0@x.y", "up"), ("7", "p1@x.y", "down"), ("8", "p2@x.y", "down")]
    assert list(read_export("e.json", text, "mood").tasks.values()) == [{"text": "t0", "n": 0}, {"text": "t1", "n": 1}]
