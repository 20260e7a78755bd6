"""Requests that no page would send: an answer of four hundred and something, one line, and the page goes on."""

import json
import logging
import socket
import time

import pytest

from floral_learn.app.review_page import guard


@pytest.fixture
def lines(caplog):
    """What the server says on the terminal."""
    caplog.set_level(logging.WARNING, logger="uvicorn.error")
    logging.getLogger("uvicorn").propagate = True
    return lambda: [record.getMessage() for record in caplog.records if record.name.startswith("uvicorn")]


def sent(client, body, path="api/answer"):
    response, content = client.send("POST", path, body)
    return response.status, content.decode()


def valid(client, **other):
    row = client.get("question")["row"]
    good = {"reviewer": "ann", "request": "a request", "row": row, "kind": "label", "label": "good", "seen": False}
    return json.dumps({**good, **other}).encode()


@pytest.mark.parametrize("path", ["answer", "undo", "finish"])
def test_json_without_end_is_no_json(running, lines, path):
    for body in (b"[" * 60_000, b'{"a":' * 10_000, b'{"row": ' + b"9" * 5000 + b"}", b"\xff\xfe", b"nan"):
        assert sent(running.client, body, f"api/{path}")[0] == 400
    assert not lines()


def test_half_characters_and_vast_numbers_are_refused_in_words(running, lines):
    client = running.client
    for change in (
        {"request": "\ud800" * 10},
        {"request": "line\nline\nline"},
        {"reviewer": "\udfff"},
        {"label": "\ud800"},
        {"kind": "\ud800"},
        {"row": 10**400},
        {"row": -(10**400)},
        {"row": 2**63},
    ):
        status, words = sent(client, valid(client, **change))
        assert status == 409, (change, words)
        assert "error" in json.loads(words)
    assert running.session.store.active() == []
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


@pytest.mark.parametrize("part", ["", "GET / HT", "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_half_requests_end(running, monkeypatch, part):
    monkeypatch.setattr(guard, "SECONDS", 0.5)
    assert ended(raw(running.client, part), 20)
    assert running.client.get("about")["title"] == "parts.csv"


def test_half_bodies_end(running, monkeypatch, lines):
    monkeypatch.setattr(guard, "SECONDS", 0.5)
    assert ended(raw(running.client, head(running.client, "Content-Length: 500"), b'{"row":'), 20)
    assert not lines()


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
