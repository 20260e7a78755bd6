"""Every script of benchmarks/ says how it is called, at once, and has a page of results that names it."""

import argparse
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="benchmarks are not part of the source archive")
COMMAND = re.compile(r"python benchmarks/(\w+\.py[^`\n]*)")
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py") if '__name__ == "__main__"' in path.read_text("utf-8"))


class Parsed(BaseException):
    """The words of a command line are understood: nothing further is run."""


@pytest.fixture
def call(monkeypatch):
    """Run a script up to the point where its words are understood; the exit status, or None."""
    parse = argparse.ArgumentParser.parse_args

    def only_parse(self, *args, **kwargs):
        parse(self, *args, **kwargs)
        raise Parsed

    def run(words):
        monkeypatch.setattr(sys, "argv", [str(FOLDER / words[0]), *words[1:]])
        monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
        try:
            runpy.run_path(str(FOLDER / words[0]), run_name="__main__")
        except Parsed:
            return None
        except SystemExit as stop:
            return stop.code
        raise AssertionError(f"{words[0]} reads its words without argparse, or has run")

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", only_parse)
    return run


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_says_how_it_is_called(call, capsys, script):
    pytest.importorskip("torch")
    assert call([script, "--help"]) == 0
    assert "usage:" in capsys.readouterr().out


def test_commands_on_pages_of_results_are_whole(call, capsys):
    pytest.importorskip("torch")
    pages = [*sorted((ROOT / "docs" / "results").glob("*.md")), ROOT / "docs" / "scale.md"]
    lines = {line: page.name for page in pages for line in COMMAND.findall(page.read_text("utf-8"))}
    lines = {line: page for line, page in lines.items() if " ... " not in line}  # those name the options of another
    assert {line.split()[0] for line in lines} == set(SCRIPTS), "a script without a page, or a page without its script"
    for line, page in lines.items():
        assert call(shlex.split(line, comments=True)) is None, f"{page}: {line}: {capsys.readouterr().err}"
