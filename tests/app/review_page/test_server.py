"""The page's server: who may talk to it, what it hands out, and that nothing changes by looking."""

import json
import re

import pytest

from floral_learn.app.review_page.guard import HEADERS
from floral_learn.app.review_page.server import bind

STATIC = ["", "page.css", "page.js", "question.js", "known.js", "dom.js", "icon.svg"]


def status(client, method, path, **other):
    return client.send(method, path, **other)[0].status


def valid(client):
    row = client.get("question")["row"]
    return {"reviewer": "ann", "request": "a request", "row": row, "kind": "label", "label": "good", "seen": False}


def test_without_the_secret_there_is_nothing(running):
    client = running.client
    for root in ("/", "/" + "x" * 32 + "/", client.root[:-2] + "/", client.root.upper()):
        for path in (*STATIC, "api/about", "api/question?reviewer=ann", "image/0/0"):
            assert status(client, "GET", path, root=root) == 404
    assert len(client.root) >= 32
    assert client.send("GET", "", root=client.root.rstrip("/"))[0].getheader("location") == client.root


def test_another_name_for_this_machine_is_refused(running):
    client = running.client
    for host in (
        "evil.example",
        f"evil.example:{client.port}",
        f"127.0.0.2:{client.port}",
    ):
        assert status(client, "GET", "", headers={"Host": host}) == 400, host
    for host in (f"localhost:{client.port}", f"LOCALHOST:{client.port}"):
        assert status(client, "GET", "", headers={"Host": host}) == 200


def test_another_site_can_neither_read_nor_answer(running):
    client, body = running.client, valid(running.client)
    for origin in (
        "http://evil.example",
        "null",
        client.origin + ".evil.example",
        f"https://127.0.0.1:{client.port}",
        None,
    ):
        assert status(client, "POST", "api/answer", body=body, headers={"Origin": origin}) == 403
    assert status(client, "GET", "api/state?reviewer=ann", headers={"Origin": "http://evil.example"}) == 403
    for site in ("cross-site", "same-site"):
        assert status(client, "GET", "api/state?reviewer=ann", headers={"Sec-Fetch-Site": site}) == 403
        assert status(client, "POST", "api/answer", body=body, headers={"Sec-Fetch-Site": site}) == 403
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert status(client, "GET", "", headers=followed) == 200, "a link to the page may be followed"
    for kind in ("text/plain", "application/x-www-form-urlencoded", None):
        assert status(client, "POST", "api/answer", body=body, headers={"Content-Type": kind}) == 415
    assert running.session.store.active() == []


def test_looking_changes_nothing(running):
    client, body = running.client, valid(running.client)
    for path in ("answer", "undo", "finish"):
        assert status(client, "GET", f"api/{path}") == 405
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert status(client, method, "api/answer", body=body) == 405
    assert client.get("question")["row"] == body["row"]
    assert running.session.store.active() == []
    assert not (running.session.out / "model.skops").exists()


def test_every_reply_forbids_what_the_page_does_not_need(running):
    client = running.client
    replies = [client.send("GET", path)[0] for path in (*STATIC, "api/about", "nothing")]
    replies.append(client.send("GET", "", root="/wrong/")[0])
    for reply in replies:
        for name, value in HEADERS.items():
            assert reply.getheader(name) == value
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "data:" not in policy


def test_the_page_has_no_script_style_or_address_of_others_inside(running):
    html = running.client.send("GET", "")[1].decode()
    assert not re.search(r"<style|<script(?! type=\"module\" src=\"page.js\")|\son\w+=|style=", html)
    for name in STATIC:
        text = running.client.send("GET", name)[1].decode()
        assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text), name
        assert "innerHTML" not in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"label": "ugly"}, "none of the classes"),
        ({"label": None}, "none of the classes"),
        ({"kind": "unsure"}, "none of the classes"),
        ({"kind": "drop"}, "none of label, unsure, skip, later, out"),
        ({"row": "1"}, "a number"),
        ({"row": True}, "a number"),
        ({"row": 10**9}, "another window"),
        ({"reviewer": ""}, "name has 1 to 60"),
        ({"reviewer": "a" * 61}, "name has 1 to 60"),
        ({"reviewer": "a\u202eb"}, "name has 1 to 60"),
        ({"request": "short"}, "8 to 80 characters"),
    ],
)
def test_answers_that_do_not_fit_are_refused_in_words(running, change, words):
    said = running.client.post("answer", {**valid(running.client), **change}, status=409)
    assert words in said["error"]
    assert running.session.store.active() == []


def test_bodies_that_are_no_json_or_too_long(running):
    client = running.client
    assert status(client, "POST", "api/answer", body=b"{") == 400
    assert status(client, "POST", "api/answer", body=b"[1]") == 400
    assert status(client, "POST", "api/answer", body=json.dumps({"a": "x" * 70_000}).encode()) == 413


def test_a_full_disk_is_said_and_the_same_answer_can_be_sent_again(running):
    client, body = running.client, valid(running.client)
    base = running.session.store._base
    base.execute("PRAGMA max_page_count = 1")
    body["reviewer"] = "ann"
    base.execute(
        "CREATE TEMP TRIGGER full BEFORE INSERT ON answers BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
    )
    assert "nothing was saved" in client.post("answer", body, status=507)["error"]
    assert client.get("question")["row"] == body["row"]
    base.execute("DROP TRIGGER full")
    client.post("answer", body)
    assert [answer.row for answer in running.session.store.active()] == [body["row"]]


def test_only_this_machine_is_listened_on_unless_asked(running):
    assert running.server.socket.getsockname()[0] == "127.0.0.1"


def test_a_taken_port_is_one_line(running):
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1, port {running.server.port}"):
        bind("127.0.0.1", running.server.port)
