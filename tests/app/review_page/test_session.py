"""A review through the server: questions, answers, undo, two reviewers, resuming, files."""

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import floral, refused

from floral_learn import LabelReview, load
from floral_learn.app.review_page import ReviewSession, Turn, outputs
from floral_learn.app.tables import read_table
from floral_learn.base import TableEncoder
from floral_learn.datasets import sample_table


def answer_some(client, truth, count, reviewer="ann"):
    rows = []
    for _ in range(count):
        row = client.get("question", reviewer)["row"]
        client.answer(row, str(truth[row]), f"{reviewer} {len(rows)} {row} request", reviewer)
        rows.append(row)
    return rows


def test_a_question_stays_until_it_is_answered_and_undo_brings_it_back(running, parts):
    client, truth = running.client, parts[1]
    first = client.get("question")
    assert client.get("question")["row"] == first["row"]
    assert first["given"] in ("good", "bad")
    assert {field["name"] for field in first["fields"]} == {"width", "height", "colour"}
    assert len(first["nearest"]) == 5
    assert {near["given"] for near in first["nearest"]} <= {"good", "bad"}
    client.answer(first["row"], str(truth[first["row"]]), "request 1")
    second = client.get("question")["row"]
    assert second != first["row"]
    undone = client.post("undo", {"reviewer": "ann", "request": "request 2"})
    assert undone["row"] == client.get("question")["row"] == first["row"]
    assert client.settled()["answers"] == 0
    error = client.post("undo", {"reviewer": "ann", "request": "request 3"}, status=409)["error"]
    assert "no answer of yours" in error


def test_a_late_copy_of_an_undo_changes_nothing(running):
    client, undo = running.client, {"reviewer": "ann", "request": "undo request"}
    first = client.get("question")["row"]
    client.answer(first, "good", "request 1")
    undone = client.post("undo", undo)
    assert client.post("undo", undo) == undone
    assert client.get("question")["row"] == first
    client.answer(first, "bad", "request 2")
    assert client.post("undo", undo) == undone, "before the next question is there"
    second = client.get("question")["row"]
    assert second != first
    assert client.post("undo", undo) == undone
    assert client.get("question")["row"] == second
    client.answer(second, "good", "request 3")
    assert client.settled()["answers"] == 2


def test_a_repeated_answer_counts_once_and_a_second_window_is_told(running, parts):
    client = running.client
    row = client.get("question")["row"]
    assert client.answer(row, "good", "request 1") == client.answer(row, "good", "request 1")
    said = {"reviewer": "ann", "request": "request 2", "row": row, "kind": "label", "label": "bad", "seen": False}
    assert "another window" in client.post("answer", said, status=409)["error"]
    taken = said | {"request": "request 1", "reviewer": "bob", "row": 5}
    assert "number was used" in client.post("answer", taken, status=409)["error"], "nobody is told saved who is not"
    assert client.settled()["answers"] == 1


def test_two_reviewers_have_their_own_questions_and_disagreements_come_back(running, parts):
    client, truth = running.client, parts[1]
    ann, bob = client.get("question", "ann")["row"], client.get("question", "bob")["row"]
    assert ann != bob
    mine = answer_some(client, truth, 9, "ann")
    theirs = answer_some(client, truth, 9, "bob")
    assert not set(mine) & set(theirs)
    again = client.get("question", "ann")
    assert again["reason"] == "second opinion"
    assert again["row"] in theirs
    assert again["others"] == [], "a second opinion is formed without the first"
    other = "bad" if truth[again["row"]] == "good" else "good"
    client.answer(again["row"], other, "ann contradicts", "ann")
    assert client.get("state")["disagreements"][0]["row"] == again["row"]
    asked = [client.get("question", "bob")]
    while asked[-1]["reason"] != "disagreement" and len(asked) < 4:  # one may have been laid out before
        client.answer(asked[-1]["row"], str(truth[asked[-1]["row"]]), f"bob goes on {len(asked)}", "bob")
        asked.append(client.get("question", "bob"))
    assert (asked[-1]["row"], asked[-1]["reason"]) == (again["row"], "disagreement")
    assert {vote["reviewer"]: vote["label"] for vote in asked[-1]["others"]} == {
        "ann": other, "bob": str(truth[again["row"]])
    }  # fmt: skip
    client.answer(asked[-1]["row"], other, "bob gives in", "bob")
    assert client.get("state")["disagreements"] == []


def test_texts_are_there_again_after_a_restart(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=80)
    words = np.array([["dull", "cold", "grim", "long"], ["fine", "warm", "kind", "wise"]])
    texts = [f"A {' '.join(rng.choice(words[t], 3))} film, seen on a rainy evening in a half empty hall" for t in truth]
    path = tmp_path / "films.csv"
    pd.DataFrame({"text": texts, "liked": np.where(truth, "yes", "no")}).to_csv(path, index=False)
    said = []
    for _ in range(2):
        table = read_table(path, label="liked", text=["text"])
        work = ReviewSession(table, TableEncoder(text=["text"]), path=path, out=tmp_path / "review", options={})
        said.append(work.question("ann"))
        assert said[-1]["fields"][0]["value"] == texts[said[-1]["row"]]
        if len(said) == 1:
            row = said[-1]["row"]
            work.answer(reviewer="ann", request="request 1", row=row, kind="label", label="no", seen=False)
            said[0] = work.question("ann")
        work.close()
    assert said[0] == said[1]


def test_each_start_draws_another_secret_order(parts, tmp_path, opened):
    orders = []
    for name in ("one", "two"):
        orders.append(opened(parts[0], tmp_path / name).review.secret["order"])
    assert orders[0] != orders[1]


def test_files_at_the_end(parts, start, tmp_path):
    path, truth = parts
    running = start(path, tmp_path / "review", seed=0)
    client = running.client
    answer_some(client, truth, 30)
    client.post("answer", {"reviewer": "ann", "request": "not sure", "row": client.get("question")["row"],
                           "kind": "unsure", "label": None, "seen": True})  # fmt: skip
    client.post("finish", {"reviewer": "ann"})
    state = client.settled()
    assert state["files"]["state"] == "written", state["files"]
    names = [file["name"] for file in state["files"]["files"]]
    assert names == ["cleaned.csv", "decisions.csv", "changes.csv", "training.csv", "model.skops", "report.html"]
    out = running.session.out
    cleaned = pd.read_csv(out / "cleaned.csv")
    given = pd.read_csv(path)
    assert (cleaned["quality"] == truth).mean() > (given["quality"] == truth).mean() + 0.05
    assert cleaned.drop(columns="quality").equals(given.drop(columns="quality"))
    same = [a == b for a, b in zip(path.read_bytes().split(b"\n"), (out / "cleaned.csv").read_bytes().split(b"\n"))]
    changed = pd.read_csv(out / "changes.csv")
    assert same.count(False) == len(changed) == (cleaned["quality"] != given["quality"]).sum()
    assert set(changed["by"]) == {"answer", "model"}
    decisions = pd.read_csv(out / "decisions.csv")
    assert len(decisions[~decisions["note"].astype(str).str.startswith("with ")]) == 31
    assert decisions["decision"].tolist()[-1] == "unsure"
    right = decisions[decisions["decision"] != "unsure"]
    assert (right["label"] == truth[right["row"]]).all()
    assert (right["decision"].eq("wrong") == (right["label"] != right["given"])).all()
    assert set(decisions["reviewer"]) == {"ann"}
    assert decisions["time"].str.match(r"\d{4}-\d\d-\d\dT.*Z$").all()
    model = load(out / "model.skops")
    features = read_table(path, label="quality", groups="source", drop=["remark"]).features
    assert (model.predict(features) == truth).mean() > 0.85
    report = (out / "report.html").read_text(encoding="utf-8")
    assert f"After {decisions['row'].nunique()} answered rows" in report
    assert "Whatever an attacker did" in report
    reply, content = client.send("GET", "file/decisions.csv")
    assert "attachment" in reply.getheader("content-disposition")
    assert list(csv.reader(io.StringIO(content.decode())))[1:] != []
    for name in ("answers.sqlite", "../parts.csv", "..%2fparts.csv", "%2e%2e/parts.csv"):
        assert client.send("GET", f"file/{name}")[0].status == 404


def test_the_page_asks_what_python_would_ask_and_the_same_after_a_restart(parts, tmp_path, start):
    path, truth = parts
    made = start(path, tmp_path / "review", seed=0)
    plain = LabelReview(made.session.X, made.session.table.labels, groups=made.session.table.groups, random_state=0)
    for number in range(5):
        row = made.client.get("question")["row"]
        assert [row] == plain.ask(1).tolist(), number
        if number == 3:
            made.close()
            made = start(path, tmp_path / "review", seed=0)
            assert made.client.get("question")["row"] == row
            assert made.session.review.secret == plain.secret, "a new order would void the guarantee"
        made.client.answer(row, str(truth[row]), f"answer number {number}")
        plain.answer([row], [truth[row]], reviewer="ann")


def test_an_earlier_answer_can_be_changed_and_rows_set_aside_or_left_out(parts, tmp_path, start):
    path, truth = parts
    made = start(path, tmp_path / "review", seed=0)
    client, session = made.client, made.session
    rows = answer_some(client, truth, 6)
    aside, out = client.get("question")["row"], None
    client.answer(aside, None, "come back to it", kind="later")
    out = client.get("question")["row"]
    client.answer(out, None, "leave it out", kind="out")
    state = client.get("state")
    assert [said["row"] for said in state["later"]] == [aside]
    assert [said["row"] for said in state["last"]] == [out, aside, *reversed(rows)]
    other = "bad" if truth[rows[0]] == "good" else "good"
    waiting = client.get("question")["row"]
    client.post("again", {"reviewer": "ann", "row": rows[0]})
    shown = client.get("question")
    assert (shown["row"], shown["before"]["label"]) == (rows[0], str(truth[rows[0]]))
    client.answer(rows[0], other, "changed my mind")
    assert client.get("question")["row"] not in (*rows, aside, out)
    assert session.review.answers[rows[0]] == other
    assert "not answered" in client.post("again", {"reviewer": "ann", "row": waiting}, status=409)["error"]
    client.post("finish", {"reviewer": "ann"})
    training = pd.read_csv(session.out / "training.csv").set_index("row")
    assert (training.loc[out, "weight"], training.loc[out, "state"]) == (0, "left out")
    decisions = pd.read_csv(session.out / "decisions.csv").set_index("row")
    assert (decisions.loc[out, "decision"], decisions.loc[out, "note"]) == ("unsure", "left out")
    assert aside not in decisions.index


def test_what_is_said_of_a_row_holds_for_those_nearly_the_same_unless_it_is_put_off(tmp_path, opened):
    rng = np.random.default_rng(0)
    places = np.repeat(rng.normal(size=(20, 2)), 3, axis=0) + 1e-6 * rng.normal(size=(60, 2))
    frame = pd.DataFrame(places, columns=["width", "height"]).assign(source="a", remark="x")
    frame["quality"] = np.where(frame["width"] > 0, "good", "bad")
    frame.to_csv(tmp_path / "thrice.csv", index=False)
    work = opened(tmp_path / "thrice.csv", tmp_path / "review", seed=0)

    def say(kind, reviewer="ann", label=None, row=None):
        row = work.question(reviewer)["row"] if row is None else row
        request = f"{kind} about {row} by {reviewer}"
        return work.answer(reviewer=reviewer, request=request, row=row, kind=kind, label=label, seen=False).rows

    assert [len(say(kind)) for kind in ("skip", "unsure", "out", "later")] == [1, 3, 3, 1]
    ann, bob = work.question("ann"), work.question("bob")
    assert not {ann["row"], *ann["along"]} & {bob["row"], *bob["along"]}, "nobody is shown what another has"
    assert all(near["given"] is None for near in ann["nearest"] if near["row"] in ann["along"])
    looked_at = ann["along"][0]
    first = say("label", label="good")
    work._shown["ann"] = Turn(looked_at)
    say("label", label="bad", row=looked_at)
    work.again(reviewer="ann", row=first[0])
    assert set(say("unsure", row=first[0])) == set(first) - {looked_at}, "what somebody saw stays"
    assert work.finish()["state"] == "written"
    left_out = pd.read_csv(work.out / "training.csv").query("state == 'left out'")
    assert (len(left_out), left_out["weight"].sum()) == (3, 0)
    decisions = pd.read_csv(work.out / "decisions.csv").set_index("row")
    assert decisions.loc[looked_at, "label"] == "bad"
    assert decisions["note"].tolist().count(f"with row {first[0]}") == 1
    assert len(decisions) == 9


def test_the_last_row_is_for_everybody(tmp_path, start):
    frame = pd.DataFrame({"size": [1.0, 2, 11, 12], "source": list("aabb"), "remark": "x"})
    frame["quality"] = ["good"] * 2 + ["bad"] * 2
    frame.to_csv(tmp_path / "few.csv", index=False)
    made = start(tmp_path / "few.csv", tmp_path / "review")
    answer_some(made.client, frame["quality"].to_numpy(), 3)
    assert made.client.get("question", "ann")["row"] == made.client.get("question", "bob")["row"] >= 0


def test_all_rows_answered_is_an_end(tmp_path, start):
    frame = pd.DataFrame({"size": [1.0, 2, 3, 11, 12, 13], "source": list("aabbab"), "remark": "x"})
    frame["quality"] = ["good"] * 3 + ["bad"] * 3
    frame.to_csv(tmp_path / "few.csv", index=False)
    made = start(tmp_path / "few.csv", tmp_path / "review")
    rows = answer_some(made.client, frame["quality"].to_numpy(), 6)
    assert sorted(rows) == list(range(6))
    assert made.client.get("question") == {"row": -1, "reason": "nothing left"}
    made.client.post("undo", {"reviewer": "ann", "request": "undo the last"})
    assert made.client.get("question")["row"] == rows[-1]


def test_skipped_rows_are_all_that_is_left_and_come_again(tmp_path, start):
    frame = pd.DataFrame({"size": [1.0, 2, 11, 12], "source": list("aabb"), "remark": "x"})
    frame["quality"] = ["good"] * 2 + ["bad"] * 2
    frame.to_csv(tmp_path / "few.csv", index=False)
    made = start(tmp_path / "few.csv", tmp_path / "review")
    row = made.client.get("question")["row"]
    made.client.answer(row, None, "skip the first", kind="skip")
    rest = answer_some(made.client, frame["quality"].to_numpy(), 3)
    assert row not in rest
    again = made.client.get("question")
    assert (again["row"], again["reason"]) == (row, "skipped")


def test_a_review_that_breaks_says_so_and_keeps_the_answers(running, parts, monkeypatch):
    client = running.client
    row = client.get("question")["row"]
    monkeypatch.setattr(running.session.review, "answer", lambda *a, **k: 1 / 0)
    client.answer(row, "good", "request 1")
    assert "Answers are saved" in client.get("state")["broken"]
    assert len(running.session.store.active()) == 1


def test_what_cannot_be_told_does_not_stop_the_questions(running, monkeypatch):
    client = running.client
    client.settled()
    monkeypatch.setattr(type(running.session.review), "wrong_share", property(lambda review: 1 / 0))
    row = client.get("question")["row"]
    client.answer(row, "good", "request 1")
    assert client.get("question")["row"] != row
    state = client.settled()
    assert "cannot be told" in state["known"]["trouble"]
    assert state["broken"] is None
    assert state["answers"] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.csv"], "none.csv"),
        (["parts.csv", "--label", "nothing"], "nothing"),
        (["parts.csv", "--label", "width"], "this is for classes"),
        (["parts.csv", "--out", "parts.csv"], "is a file"),
        (["parts.csv", "--out", "a/b"], "does not exist"),
        (["parts.csv", "--reviewer", " "], "1 to 60 printable characters"),
        (["parts.csv", "--host", "203.0.113.7"], "cannot listen on 203.0.113.7"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(parts, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts.csv").write_bytes(parts[0].read_bytes())
    options = {"--label": "quality", "--out": "review"}
    words = [*words, "--no-browser", *(w for k, v in options.items() if k not in words for w in (k, v))]
    assert said in refused("review", *words)
    assert [path.name for path in tmp_path.iterdir()] == ["parts.csv"]


def test_commands_to_copy_carry_every_option_that_the_table_was_read_with(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, out = sample_table("parts.csv", n_rows=60), Path("review")
    options = {"text": (), "ids": "part", "groups": "worker", "drop": ["gold", "importance"], "text_encoder": "auto"}
    to_copy = {one["about"]: one["command"].split()[1:] for one in outputs.commands(out, table, "quality", options)}
    again = to_copy["Go on with this review later"]
    for _ in range(2):
        assert "no answers are stored yet" in floral(*again, "--finish").output
    floral(*to_copy["Train another model on the cleaned table"])
    other = floral("review", "parts.csv", "--label", "quality", "--out", "review", "--finish", code=2)
    kept = "--id part --group worker --drop gold --drop importance"
    assert f"begun with other options ({kept}, now none)" in " ".join(other.output.split())
