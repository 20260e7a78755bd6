"""The examples of docs/attacks.md run, and the page names every attack."""

import re
from pathlib import Path

import pytest

from floral_learn.attacks import ATTACKS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "attacks.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S) if PAGE.is_file() else []


@pytest.mark.skipif(not PAGE.is_file(), reason="docs are not part of the source archive")
def test_the_page_names_every_attack_and_its_class():
    text = PAGE.read_text(encoding="utf-8")
    for name, cls in ATTACKS.items():
        assert f"| `{name}` | `{cls.__name__}` |" in text
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples_run(number):
    plt = pytest.importorskip("matplotlib.pyplot")
    exec(compile(EXAMPLES[number], f"docs/attacks.md example {number}", "exec"), {"__name__": "example"})
    plt.close("all")
