"""The page's server: who may talk to it, what it hands out, and that nothing changes by looking."""

import contextlib
import logging
import re
import socket
import time

import pytest

from floral_learn.app.review_page import bind, guard

STATIC = ["", "page.css", "page.js", "question.js", "known.js", "dom.js", "icon.svg"]


@pytest.fixture
def lines(caplog):
    """What the server says on the terminal."""
    caplog.set_level(logging.WARNING, logger="uvicorn.error")
    logging.getLogger("uvicorn").propagate = True
    return lambda: [record.getMessage() for record in caplog.records if record.name.startswith("uvicorn")]


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
    for host in ("evil.example", f"evil.example:{client.port}", f"127.0.0.2:{client.port}"):
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
        for name, value in guard.HEADERS.items():
            assert reply.getheader(name) == value
    policy = guard.HEADERS["Content-Security-Policy"]
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
        ({"request": "\ud800" * 10}, "8 to 80 characters"),
        ({"request": "line\nline\nline"}, "8 to 80 characters"),
        ({"reviewer": "\udfff"}, "name has 1 to 60"),
        ({"label": "\ud800"}, "none of the classes"),
        ({"kind": "\ud800"}, "none of label"),
        ({"row": 10**400}, "another window"),
        ({"row": -(2**63)}, "another window"),
    ],
)
def test_answers_that_do_not_fit_are_refused_in_words(running, lines, change, words):
    said = running.client.post("answer", {**valid(running.client), **change}, status=409)
    assert words in said["error"]
    assert running.session.store.active() == []
    assert not lines()


def test_only_this_machine_is_listened_on_unless_asked(running):
    assert running.server.socket.getsockname()[0] == "127.0.0.1"


def test_a_taken_port_is_one_line(running):
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1, port {running.server.port}"):
        bind("127.0.0.1", running.server.port)


@pytest.mark.parametrize("path", ["answer", "undo", "finish"])
def test_json_without_end_is_no_json(running, lines, path):
    for body in (b"{", b"[1]", b"[" * 60_000, b'{"a":' * 10_000, b'{"row": ' + b"9" * 5000 + b"}", b"\xff\xfe", b"nan"):
        assert status(running.client, "POST", f"api/{path}", body=body) == 400
    assert status(running.client, "POST", f"api/{path}", body=b'{"a": "' + b"x" * 70_000 + b'"}') == 413
    assert not lines()


@pytest.mark.parametrize("place", ["9" * 5000 + "/0", "0/" + "9" * 5000, "-1/0", "a/0", "0/0.5", "%00/0", "٣/0"])
def test_pictures_have_small_numbers(running, lines, place):
    assert (
        running.client.send("GET", f"image/{place.encode().hex() if not place.isascii() else place}")[0].status == 404
    )
    assert not lines()


def raw(client, head, body=b""):
    """An open connection on which this much was sent."""
    connection = socket.create_connection((client.host, client.port), timeout=30)
    connection.sendall(head.encode() + body)
    return connection


def head(client, *more):
    first = [f"POST {client.root}api/answer HTTP/1.1", f"Host: {client.host}:{client.port}", f"Origin: {client.origin}"]
    return "\r\n".join([*first, "Content-Type: application/json", *more, "", ""])


def test_a_client_that_leaves_is_not_worth_a_word(running, lines):
    for _ in range(3):
        raw(running.client, head(running.client, "Content-Length: 500"), b'{"row":').close()
    time.sleep(0.3)
    assert running.client.get("about")["title"] == "parts.csv"
    assert not lines()


@pytest.mark.parametrize("length", ["Content-Length: 5", "Accept: */*"])
def test_a_body_of_two_lengths_is_refused_and_not_read(running, length):
    connection = raw(running.client, head(running.client, length, "Transfer-Encoding: chunked"))
    assert connection.recv(100).startswith(b"HTTP/1.1 400")
    assert taken(connection) < 32 * 2**20


def taken(connection):
    """Bytes of a body without end that the server takes before it closes the connection."""
    with connection:
        for number in range(1000):
            try:
                connection.sendall(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
            except OSError:
                return number * 0x10000
    return 1000 * 0x10000


def test_two_lengths_in_numbers_are_refused_too(running):
    for lengths in (
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: " + "9" * 5000,),
        ("Content-Length: -1",),
    ):
        connection = raw(running.client, head(running.client, *lengths), b"hello")
        assert connection.recv(100).split()[1] in (b"400", b"413")
        connection.close()


def ended(connection, seconds):
    """Whether the server closes the connection in this time."""
    connection.settimeout(seconds)
    try:
        while connection.recv(1000):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def replies(client, text):
    """The status of every reply to what is sent on one connection."""
    connection = raw(client, text)
    connection.settimeout(2)
    found = b""
    with connection, contextlib.suppress(OSError):
        while part := connection.recv(65536):
            found += part
    return re.findall(rb"HTTP/1\.1 (\d+)", found)


@pytest.mark.parametrize(
    "request_of",
    {
        "the address of another site": "GET http://evil.example{root} HTTP/1.1\r\n{host}{end}",
        "two names": "GET {root} HTTP/1.1\r\n{host}Host: evil.example\r\n{end}",
        "no name": "GET {root} HTTP/1.0\r\n\r\n",
        "no version": "GET {root}\r\n\r\n",
        "a folded name": "GET {root} HTTP/1.1\r\nHost: evil\r\n  .example\r\n{host}{end}",
        "a head without end": "GET {root} HTTP/1.1\r\n{host}X: " + "a" * 200_000 + "\r\n{end}",
    }.values(),
    ids=lambda text: " ".join(text[:30].split()),
)
def test_requests_that_no_browser_writes_get_nothing(running, request_of):
    client = running.client
    fill = {"root": client.root, "host": f"Host: {client.host}:{client.port}\r\n", "end": "Connection: close\r\n\r\n"}
    found = replies(client, request_of.format(**fill))
    assert set(found) <= {b"400", b"403", b"404", b"431"}


def test_a_second_request_on_a_connection_needs_the_secret_too(running):
    client = running.client
    host = f"Host: {client.host}:{client.port}\r\n"
    both = (
        f"GET {client.root}api/about HTTP/1.1\r\n{host}\r\nGET /api/about HTTP/1.1\r\n{host}Connection: close\r\n\r\n"
    )
    assert replies(client, both) == [b"200", b"404"]


@pytest.mark.parametrize("part", ["", "GET / HT", "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", "a body"])
def test_half_requests_end(running, monkeypatch, lines, part):
    monkeypatch.setattr(guard, "SECONDS", 0.5)
    first, body = (head(running.client, "Content-Length: 500"), b'{"row":') if part == "a body" else (part, b"")
    assert ended(raw(running.client, first, body), 20)
    assert not lines()
    assert running.client.get("about")["title"] == "parts.csv"


def test_a_body_that_drips_ends(running, monkeypatch):
    monkeypatch.setattr(guard, "SECONDS", 1.0)
    connection = raw(running.client, head(running.client, "Content-Length: 500"))
    for _ in range(100):
        try:
            connection.sendall(b" ")
        except OSError:
            return
        time.sleep(0.1)
    raise AssertionError("the connection is still open after ten seconds")


def test_a_half_request_after_a_whole_one_ends(running, monkeypatch):
    monkeypatch.setattr(guard, "SECONDS", 0.5)
    client = running.client
    connection = raw(client, f"GET {client.root}api/about HTTP/1.1\r\nHost: {client.host}:{client.port}\r\n\r\n")
    assert connection.recv(1000).startswith(b"HTTP/1.1 200")
    connection.sendall(b"GET / HT")
    assert ended(connection, 20)


def test_whatever_goes_wrong_is_one_line_and_the_page_goes_on(running, lines, monkeypatch):
    monkeypatch.delenv("FLORAL_DEBUG", raising=False)

    def fails(reviewer):
        raise KeyError("something that nobody thought of")

    with monkeypatch.context() as patched:
        patched.setattr(running.session, "question", fails)
        assert running.client.send("GET", "api/question?reviewer=ann")[0].status == 500
    end = time.monotonic() + 10
    while not lines() and time.monotonic() < end:  # the server's thread says it after it has answered
        time.sleep(0.05)
    assert lines() == ["a request could not be answered: KeyError: 'something that nobody thought of'"]
    assert running.client.get("question")["row"] >= 0
