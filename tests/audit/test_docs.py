"""The examples of the guide pages run, and their pictures exist."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [DOCS / "audit.md"]
EXAMPLES = [
    (page.name, code)
    for page in PAGES
    if page.is_file()
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
]


@pytest.mark.skipif(not DOCS.is_dir(), reason="docs are not part of the source archive")
def test_pages_and_their_pictures_exist():
    assert len(EXAMPLES) >= 2
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).is_file(), f"{page.name}: {target}"


@pytest.mark.parametrize(("name", "code"), EXAMPLES)
def test_examples_run(name, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, name, "exec"), {"__name__": "example"})
