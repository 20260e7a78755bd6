"""Exports of Label Studio go into the commands, and tasks come out of them."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import floral, refused

from floral_learn.app import make_app

app = make_app()


@pytest.fixture
def export(tmp_path):
    """60 tasks with two numbers, labelled by three people, one of whom lies; two tasks are gold."""
    rng = np.random.default_rng(0)
    tasks = []
    for number in range(60):
        x = rng.normal(size=2)
        truth = "up" if x[0] > 0 else "down"
        answers = [truth, truth, {"up": "down", "down": "up"}[truth]]
        annotations = [
            {
                "completed_by": person,
                "ground_truth": number < 2 and person == 1,
                "result": [{"from_name": "mood", "to_name": "row", "type": "choices", "value": {"choices": [answer]}}],
            }
            for person, answer in enumerate(answers, 1)
        ]
        tasks.append({"id": 100 + number, "data": {"a": x[0], "b": x[1]}, "annotations": annotations})
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    return path, tasks


def test_crowd_reads_annotations_as_votes_and_ground_truth_as_gold(export, tmp_path):
    path, tasks = export
    done = floral("crowd", path, "--label", "mood", "-o", tmp_path / "out")
    assert "180 votes by 3 people on 60 tasks" in done.output
    assert "2 known answers" in done.output
    found = pd.read_csv(tmp_path / "out" / "consensus.csv").set_index("task")["label"]
    assert all(found[task["id"]] == ("up" if task["data"]["a"] > 0 else "down") for task in tasks)


def test_review_writes_tasks_with_predictions_in_the_order_of_questions(export, tmp_path):
    path, tasks = export
    floral("review", path, "--label", "mood", "-o", tmp_path / "out", "--to", "label-studio", "--seed", 0)
    made = json.loads((tmp_path / "out" / "tasks.json").read_text())
    assert sorted(task["data"]["a"] for task in made) == sorted(task["data"]["a"] for task in tasks)
    result = made[0]["predictions"][0]["result"][0]
    assert (result["from_name"], result["to_name"], result["type"]) == ("mood", "row", "choices")
    assert b'toName="row"' in (tmp_path / "out" / "label-config.xml").read_bytes()


def test_audit_writes_its_suspects_as_tasks(tmp_path):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-3, 1, 60), rng.normal(3, 1, 60)])
    y = np.repeat(["down", "up"], 60)
    y[:3] = "up"
    pd.DataFrame({"x": x, "z": rng.normal(size=120), "y": y}).to_csv(tmp_path / "t.csv", index=False)
    floral("audit", tmp_path / "t.csv", "-l", "y", "-o", tmp_path / "out", "--to", "label-studio")
    made = json.loads((tmp_path / "out" / "tasks.json").read_text())
    suspects = pd.read_csv(tmp_path / "out" / "issues.csv").query("flagged")
    assert [int(task["meta"]["floral_row"]) for task in made] == suspects["row"].tolist()
    assert "--to 'prodigy' is unknown" in refused(
        "audit", tmp_path / "t.csv", "-l", "y", "-o", tmp_path / "other", "--to", "prodigy"
    )
    assert not (tmp_path / "other").exists()
