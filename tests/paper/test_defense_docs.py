"""The examples of docs/defenses.md run as printed, one after the other."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "defenses.md"


@pytest.mark.skipif(not PAGE.exists(), reason="docs are not part of the installed package")
def test_examples_of_the_page_run_and_print(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    assert len(blocks) >= 5
    names = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    assert "labels were replaced" in printed
    assert "'threshold' parameter of KNNRelabel" in printed
