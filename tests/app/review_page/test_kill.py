"""``floral review`` killed at random moments while answers come in, and started again by the same command."""

import contextlib
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from http.client import HTTPException

import pytest
from commands import floral

# Where the tests themselves run in the background, children are born with Ctrl-C ignored.
HEARD = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
CODE = f"{HEARD}; from floral_learn.app import main; main()"


def hears_ctrl_c():
    """In the child: a suite that runs in the background ignores SIGINT, and its children would too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Command:
    """The command as a process of its own."""

    def __init__(self, path, out, *more):
        words = [sys.executable, "-c", CODE, "review", str(path), "--label", "quality", "--out", str(out)]
        words += ["--drop", "remark", "--no-browser", "--reviewer", "ann", *more]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
            preexec_fn=hears_ctrl_c,
        )  # fmt: skip
        self.said, self.address = "", None
        for line in self.process.stdout:
            self.said += line
            if match := re.match(r"page: (http://127\.0\.0\.1:\d+/\S+/)$", line):
                self.address = match[1]
                break
        assert self.address, self.said

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def answer_until_it_dies(client, truth, told):
    """Answer without a pause; `told` gets the rows whose answers were acknowledged."""
    try:
        while True:
            row = client.get("question")["row"]
            if row < 0:
                return
            client.answer(row, str(truth[row]), uuid.uuid4().hex)
            told.append(row)
    except (OSError, HTTPException, ValueError, AssertionError):
        return


def check_kills(path, truth, out, times, client_of):
    told, before = [], 0
    for number in range(times):
        command = Command(path, out)
        if number:
            assert f"continuing: {before:,} answers are stored" in command.said
        answering = threading.Thread(target=answer_until_it_dies, args=(client_of(command.address), truth, told))
        count = len(told)
        answering.start()
        while len(told) == count and answering.is_alive():
            time.sleep(0.01)
        time.sleep(random.Random(number).uniform(0, 0.3))
        command.kill()
        answering.join(60)
        with contextlib.closing(sqlite3.connect(out / "answers.sqlite")) as base:
            answers = base.execute("SELECT row, label FROM answers").fetchall()
        rows = [row for row, _ in answers]
        assert set(told) <= set(rows), "an acknowledged answer is lost"
        assert len(rows) == len(set(rows))
        assert all(label == truth[row] for row, label in answers)
        before = len(rows)
    assert len(told) >= min(times, len(truth))


@pytest.mark.parametrize("times", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_kills_lose_no_acknowledged_answer(parts, tmp_path, client_of, times):
    check_kills(*parts, tmp_path / "killed", times, client_of)


def test_ctrl_c_says_what_is_stored_and_finish_writes_the_files(parts, tmp_path, client_of):
    path, truth = parts
    command = Command(path, tmp_path / "review")
    client = client_of(command.address)
    for number in range(12):
        row = client.get("question")["row"]
        client.answer(row, str(truth[row]), f"answer number {number}")
    command.process.send_signal(signal.SIGINT)
    said = command.process.communicate(timeout=60)[0]
    assert "stopped: 12 answers are stored in" in said
    assert "Traceback" not in said
    assert command.process.returncode == 130
    options = ("--label", "quality", "--out", tmp_path / "review", "--drop", "remark")
    done = floral("review", path, *options, "--finish")
    for name in ("cleaned.csv", "decisions.csv", "changes.csv", "training.csv", "model.skops", "report.html"):
        assert (tmp_path / "review" / name).stat().st_size > 0
    assert "Traceback" not in done.stderr
