"""A poisoned table on disk, its truth, a running page, and a client that speaks to it as a browser would."""

import http.client
import json
import threading
import time
from pathlib import Path
from urllib.parse import urlparse

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("starlette", reason="the review page needs the extra [cli]")

from floral_learn.app.review_page import ReviewServer, ReviewSession
from floral_learn.app.tables import read_table
from floral_learn.base import TableEncoder

HOSTILE = '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'


def write_table(folder, n=240):
    """Two classes; most labels of one corner are flipped. Returns the path and the true labels."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, n)
    width = (3 * truth + rng.normal(size=n)).round(2)
    height = rng.normal(size=n).round(2)
    wrong = (truth == 1) & (height > 0.2)
    frame = pd.DataFrame({"width": width, "height": height, "colour": rng.choice(["red", "blue"], n)})
    frame["remark"] = [f"remark number {i} about a part that somebody looked at, at length" for i in range(n)]
    frame.loc[3, "remark"] = HOSTILE
    frame["source"] = np.where(rng.random(n) < 0.5, "ann's", "bob's")
    names = np.array(["good", "bad"])
    frame["quality"] = names[np.where(wrong, 1 - truth, truth)]
    path = Path(folder) / "parts.csv"
    path.write_text(frame.to_csv(index=False), encoding="utf-8", newline="")
    return path, names[truth]


def open_work(path, out, **options):
    table = read_table(path, label="quality", groups="source", drop=["remark"])
    return ReviewSession(table, TableEncoder(), path=path, out=out, options={}, **options)


class Client:
    """Requests to a page, with the headers that a browser sends unless told otherwise."""

    def __init__(self, address):
        found = urlparse(address)
        self.host, self.port, self.root = found.hostname, found.port, found.path
        self.origin = f"http://{found.netloc}"

    def send(self, method, path, body=None, headers=None, root=None):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        given = {"Origin": self.origin, "Content-Type": "application/json"} if method == "POST" else {}
        given = {name: value for name, value in {**given, **(headers or {})}.items() if value is not None}
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, (self.root if root is None else root) + path, body=data, headers=given)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response, content

    def get(self, path, reviewer="ann"):
        response, content = self.send("GET", f"api/{path}?reviewer={reviewer}")
        assert response.status == 200, content
        return json.loads(content)

    def post(self, path, body, status=200):
        response, content = self.send("POST", f"api/{path}", body)
        assert response.status == status, content
        return json.loads(content)

    def answer(self, row, label, request, reviewer="ann", kind="label"):
        sent = {"reviewer": reviewer, "request": request, "row": row, "kind": kind, "label": label, "seen": False}
        return self.post("answer", sent)

    def settled(self, reviewer="ann"):
        """What is known."""
        return self.get("state", reviewer)


class Running:
    """A page that runs in a thread."""

    def __init__(self, work):
        self.session = work
        self.server = ReviewServer(self.session, title=work.path.name, reviewer="ann", folder=work.out)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.server.started:
            time.sleep(0.01)
        self.client = Client(self.server.address)

    def close(self):
        self.server.stop()
        self.thread.join(10)
        self.session.close()


@pytest.fixture(scope="session")
def parts(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("parts"))


@pytest.fixture
def client_of():
    """A client of the page at an address."""
    return Client


@pytest.fixture
def opened():
    """Open a table's review without a page; closed at the end of the test."""
    made = []

    def opening(path, out, **options):
        made.append(open_work(path, out, **options))
        return made[-1]

    yield opening
    for work in made:
        work.store.close()


@pytest.fixture
def start(opened):
    """Start pages; those that still run are stopped at the end of the test."""
    made = []

    def starting(path, out, **options):
        made.append(Running(opened(path, out, **options)))
        return made[-1]

    yield starting
    for page in made:
        page.close()


@pytest.fixture
def running(parts, tmp_path, start):
    return start(parts[0], tmp_path / "review")
