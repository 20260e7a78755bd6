"""The examples of docs/crowd.md run, and the page names every attack."""

import re
from pathlib import Path

import pytest

from floral_learn import poison_votes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "crowd.md"
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="docs are not part of the source archive")


def test_examples_run_one_after_the_other(capsys):
    names = {"__name__": "example"}
    blocks = re.findall(r"(?<!-->\n)```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert len(blocks) >= 4
    for number, block in enumerate(blocks):
        exec(compile(block, f"docs/crowd.md example {number}", "exec"), names)
    assert float(capsys.readouterr().out.splitlines()[0]) > 0.97


def test_the_page_names_every_attack():
    text = PAGE.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="choose one of spam, ") as caught:
        poison_votes([[0, 1], [1, 0]], attack="every")
    for name in str(caught.value).partition("choose one of ")[2].split(", "):
        assert f"| `{name}` |" in text
