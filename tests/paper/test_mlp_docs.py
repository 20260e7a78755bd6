"""The examples of docs/neural.md run as printed, each by itself."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "neural.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S) if PAGE.is_file() else []


@pytest.mark.skipif(not PAGE.is_file(), reason="docs are not part of the source archive")
def test_the_page_has_its_examples():
    assert len(EXAMPLES) >= 7


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples_run(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(EXAMPLES[number], f"docs/neural.md example {number}", "exec"), {"__name__": "example"})
