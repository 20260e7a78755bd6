"""The examples of docs/attacks.md and docs/crowd.md run, and each page names every attack."""

import re
from pathlib import Path

import pytest
from refusals import refuses

from floral_learn import poison_votes
from floral_learn.attacks import ATTACKS

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXTS = {name: (DOCS / name).read_text(encoding="utf-8") for name in ("attacks.md", "crowd.md") if DOCS.is_dir()}
EXAMPLES = {name: re.findall(r"(?<!-->\n)```python\n(.*?)```", text, re.S) for name, text in TEXTS.items()}
pytestmark = pytest.mark.skipif(not TEXTS, reason="docs are not part of the source archive")


def test_the_pages_name_every_attack():
    for name, cls in ATTACKS.items():
        assert f"| `{name}` | `{cls.__name__}` |" in TEXTS["attacks.md"]
    said = refuses("choose one of spam, ", poison_votes, [[0, 1], [1, 0]], attack="every")
    for name in said.partition("choose one of ")[2].split(", "):
        assert f"| `{name}` |" in TEXTS["crowd.md"]


@pytest.mark.parametrize("number", range(len(EXAMPLES.get("attacks.md", []))))
def test_examples_of_attacks_run_each_alone(number):
    plt = pytest.importorskip("matplotlib.pyplot")
    assert len(EXAMPLES["attacks.md"]) >= 5
    exec(compile(EXAMPLES["attacks.md"][number], f"docs/attacks.md example {number}", "exec"), {"__name__": "example"})
    plt.close("all")


def test_examples_of_crowds_run_one_after_the_other(capsys):
    names = {"__name__": "example"}
    assert len(EXAMPLES["crowd.md"]) >= 4
    for number, block in enumerate(EXAMPLES["crowd.md"]):
        exec(compile(block, f"docs/crowd.md example {number}", "exec"), names)
    assert float(capsys.readouterr().out.splitlines()[0]) > 0.97
