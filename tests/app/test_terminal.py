"""Lines of a command fit the terminal that shows them, and stay whole for a program that reads them."""

import io

from floral_learn.app import terminal

LINE = (
    "  3 category columns as 11 indicators: faculty, remarks, " + "a" * 60 + "/page.html, scholarship of the first year"
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def printed(monkeypatch, stream, columns="40"):
    monkeypatch.setattr(terminal.sys, "stdout", stream)
    monkeypatch.setenv("COLUMNS", columns)
    terminal.say(LINE)
    return stream.getvalue()


def test_a_terminal_gets_lines_broken_between_words_and_indented(monkeypatch):
    lines = printed(monkeypatch, Terminal()).splitlines()
    assert " ".join(line.strip() for line in lines) == LINE.strip()
    assert lines[0].startswith("  3 category")
    assert all(line.startswith("    ") for line in lines[1:])
    assert all(len(line) <= 40 for line in lines if "/page.html" not in line)


def test_a_file_gets_the_line_whole(monkeypatch):
    assert printed(monkeypatch, io.StringIO()) == LINE + "\n"
