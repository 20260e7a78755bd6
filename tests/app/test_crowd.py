"""floral crowd from files."""

import re

import numpy as np
import pandas as pd
import pytest
from commands import floral, refused
from sklearn.datasets import load_iris


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "<b>virginica</b>"])
    rows = []
    for i in range(150):
        for person in rng.choice(9, 3, replace=False):
            truth = y[i] if rng.random() < 0.8 else rng.integers(3)
            rows.append((f"i{i}", f"<i>p{person}</i>", names[(truth + 1) % 3 if person < 2 else truth]))
    pd.DataFrame(rows, columns=["id", "who", "vote"]).to_csv(tmp_path / "votes.csv", index=False)
    features = pd.DataFrame(X, columns=["sl", "sw", "pl", "pw"])
    features.insert(0, "id", [f"i{i}" for i in range(150)])
    features.to_csv(tmp_path / "items.csv", index=False)
    pd.DataFrame({"id": features["id"], "vote": names[y]}).to_csv(tmp_path / "truth.csv", index=False)
    return tmp_path


COLUMNS = ("--task", "id", "--worker", "who", "--label", "vote")


def test_labels_people_and_page_are_written(files):
    floral("crowd", files / "votes.csv", *COLUMNS, "-f", files / "items.csv", "-o", files / "out")
    labels = pd.read_csv(files / "out" / "consensus.csv").set_index("task")["label"]
    truth = pd.read_csv(files / "truth.csv").set_index("id")["vote"]
    assert (labels == truth.loc[labels.index]).mean() > 0.93
    people = pd.read_csv(files / "out" / "annotators.csv")
    assert set(people.nsmallest(2, "reliability")["annotator"]) == {"<i>p0</i>", "<i>p1</i>"}
    assert len(pd.read_csv(files / "out" / "next.csv")) > 0
    page = (files / "out" / "page.html").read_text()
    assert "&lt;i&gt;p0&lt;/i&gt;" in page
    assert "<i>p0</i>" not in page
    assert "<b>virginica</b>" not in page
    for word in ("liar", "malicious", "cheat", "fraud", "guilty", "suspicio"):
        assert word not in page.lower()


def test_known_answers_are_kept(files):
    floral("crowd", files / "votes.csv", *COLUMNS, "--gold", files / "truth.csv", "-o", files / "out")
    labels = pd.read_csv(files / "out" / "consensus.csv").set_index("task")
    assert (labels["label"] == pd.read_csv(files / "truth.csv").set_index("id")["vote"].loc[labels.index]).all()


def test_known_answers_on_tasks_without_votes_are_left_out_and_counted(files):
    more = pd.concat([pd.read_csv(files / "truth.csv"), pd.DataFrame({"id": ["new"], "vote": ["setosa"]})])
    more.to_csv(files / "more.csv", index=False)
    done = floral("crowd", files / "votes.csv", *COLUMNS, "--gold", files / "more.csv", "-o", files / "out")
    said = " ".join(done.output.split())
    assert "left out of more.csv, since nothing is known of it but the answer: task new" in said
    assert "150 known answers (more.csv)" in said
    more[-1:].to_csv(files / "more.csv", index=False)
    assert "gold names tasks that are not there: 'new'" in refused(
        "crowd", files / "votes.csv", *COLUMNS, "--gold", files / "more.csv", "-o", files / "none"
    )


def test_unlikely_answers_keep_their_p_value(files):
    floral("crowd", files / "votes.csv", *COLUMNS, "-o", files / "out")
    people = pd.read_csv(files / "out" / "annotators.csv")
    assert 0 < people["p_value"].min() < 1e-4


def test_each_person_may_have_a_column(files):
    long = pd.read_csv(files / "votes.csv")
    wide = long.drop_duplicates(["id", "who"]).pivot(index="id", columns="who", values="vote").add_prefix("by ")
    wide.assign(remark="x").reset_index().to_csv(files / "wide.csv", index=False)
    done = floral("crowd", files / "wide.csv", "--task", "id", "--votes", "by *", "-o", files / "out")
    assert "left out: remark" in done.output
    assert "cells are blank: no vote" in done.output
    floral("crowd", files / "votes.csv", *COLUMNS, "-o", files / "same")
    labels = [pd.read_csv(files / name / "consensus.csv").set_index("task")["label"] for name in ("out", "same")]
    assert (labels[0] == labels[1].loc[labels[0].index]).mean() > 0.99
    assert "matches none of its columns" in refused(
        "crowd", files / "wide.csv", "--task", "id", "--votes", "ann*", "-o", files / "out"
    )
    assert "no column 'nope' (--task); its columns are id, by " in refused(
        "crowd", files / "wide.csv", "--task", "nope", "--votes", "by *", "-o", files / "out"
    )
    assert "--votes, a column per person" in refused("crowd", files / "wide.csv", "-o", files / "out")


def test_a_row_without_a_vote_and_classes_in_capitals_are_said(files):
    rows = [("a", "x", "X", ""), ("b", "", " ", ""), ("c", "y", "y", ""), ("d", "x", "x", ""), ("e", "y", "x", "")]
    pd.DataFrame(rows, columns=["task", "ann", "bea", "cleo"]).to_csv(files / "wide.csv", index=False)
    done = floral("crowd", files / "wide.csv", "--votes", "*", "-o", files / "out")
    said = " ".join(done.output.split())
    assert "left out, since every vote is blank: task b" in said
    assert "left out, since every vote is blank: person cleo" in said
    assert "differ in capitals or spaces only count as different ones: 'X' and 'x'" in said


def test_what_is_left_out_or_merged_is_said(files):
    votes = pd.read_csv(files / "votes.csv")
    odd = [
        ("=1", "p8", "setosa"),
        ("'=1", "p9", "setosa"),
        ("i0", None, "setosa"),
        ("i1", "p9", None),
        ("gone", "p9", None),
    ]
    pd.concat([votes, pd.DataFrame(odd, columns=votes.columns)]).to_csv(files / "odd.csv", index=False)
    done = floral("crowd", files / "odd.csv", *COLUMNS, "-o", files / "out")
    said = " ".join(done.output.split())
    assert "2 rows without a label skipped" in said
    assert "left out, since every vote is blank: task gone" in said
    assert "votes that name nobody: 1; they count as those of one person, '(missing)'" in said
    assert "read as one task, though written differently" in said
    assert "'=1' and \"'=1\"" in said or "\"'=1\" and '=1'" in said
    assert floral("crowd", files / "votes.csv", *COLUMNS, "-o", files / "same").output.count("read as one") == 0


def test_known_answers_that_contradict_each_other_are_refused(files):
    pd.DataFrame({"id": ["i0", "i0"], "vote": ["setosa", "versicolor"]}).to_csv(files / "two.csv", index=False)
    assert "task 'i0' has two known answers, 'setosa' and 'versicolor'" in refused(
        "crowd", files / "votes.csv", *COLUMNS, "--gold", files / "two.csv", "-o", files / "out"
    )
    assert not (files / "out").exists()


def test_every_file_calls_a_task_a_task(files):
    floral("crowd", files / "votes.csv", *COLUMNS, "-o", files / "out")
    for name in ("consensus.csv", "next.csv"):
        assert pd.read_csv(files / "out" / name).columns[0] == "task"
    page = (files / "out" / "page.html").read_text()
    assert "item" not in page.lower()
    counts = pd.read_csv(files / "out" / "consensus.csv")["label"].value_counts()
    assert f'setosa</th><td class="number">{counts["setosa"]}</td>' in page


def test_a_feature_called_like_the_votes_is_warned_of(files):
    items = pd.read_csv(files / "items.csv").assign(vote=pd.read_csv(files / "truth.csv")["vote"])
    items.to_csv(files / "told.csv", index=False)
    options = ("crowd", files / "votes.csv", *COLUMNS, "-f", files / "told.csv", "-o", files / "out")
    assert "is called like the votes and is read as a feature" in floral(*options).output
    done = floral(*options, "--drop", "vote")
    assert "called like the votes" not in done.output
    assert pd.read_csv(files / "out" / "next.csv").columns[0] == "task"
    wide = pd.read_csv(files / "items.csv")[["id", "sl"]].assign(ann="setosa", bea="<b>virginica</b>")
    wide.to_csv(files / "wide.csv", index=False)
    options = ("crowd", files / "wide.csv", "--task", "id", "--votes", "ann", "--votes", "bea")
    done = floral(*options, "-f", files / "wide.csv", "-o", files / "out")
    assert "column 'ann' of wide.csv is called like the votes" in done.output
    assert "if it holds votes, leave it out: --drop bea" in done.output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--worker", "whom"), "has no column 'whom'"),
        (("--features", "votes.csv"), "index names some tasks twice"),
        (("--out", "votes.csv"), "is a file; name a folder"),
        (("--out", "nowhere/out"), "does not exist"),
    ],
)
def test_a_wrong_file_is_one_line_and_nothing_is_written(files, change, message, monkeypatch):
    monkeypatch.chdir(files)
    assert message in refused("crowd", "votes.csv", *COLUMNS, "--out", "out", *change)
    assert not (files / "out").exists()


def test_features_that_miss_an_item_are_named(files):
    pd.read_csv(files / "items.csv")[:140].to_csv(files / "few.csv", index=False)
    assert "does not hold, such as 'i140'" in refused(
        "crowd", files / "votes.csv", *COLUMNS, "-f", files / "few.csv", "-o", files / "out"
    )


def test_train_weighs_labels_by_who_gave_them(files):
    rng = np.random.default_rng(1)
    X, y = load_iris(return_X_y=True)
    who = rng.integers(5, size=150)
    given = np.where(who == 0, (y + 1) % 3, y)
    frame = pd.DataFrame(X, columns=["sl", "sw", "pl", "pw"]).assign(who=[f"p{w}" for w in who], y=given)
    frame.to_csv(files / "iris.csv", index=False)
    done = floral("train", files / "iris.csv", "--label", "y", "--group", "who", "--out", files / "m.skops")
    assert "labels read differently, by who gave them (5 people)" in done.output
    given, corrected = re.search(
        r"accuracy (\S+) on the labels as given, (\S+) on the labels as corrected", done.output
    ).groups()
    assert float(given) < 0.9 < float(corrected)
    floral("predict", files / "m.skops", files / "iris.csv", "--out", files / "p.csv")
    predicted = pd.read_csv(files / "p.csv")
    column = next(c for c in predicted.columns if "predict" in c)
    assert (predicted[column] == y).mean() > 0.93
