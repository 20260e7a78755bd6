"""Every example in a docstring runs, and every public name has one, in numpydoc's form."""

import doctest
import importlib
import os
import pkgutil
from pathlib import Path

import pytest

import floral_bench
import floral_learn

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def modules():
    for package in (floral_learn, floral_bench):
        yield from (info.name for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))


def examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    for name in modules():
        try:
            module = importlib.import_module(name)
        except ImportError:  # an extra that is not installed; what it exports is asked for below
            continue
        yield from (test for test in finder.find(module) if test.examples)


EXAMPLES = list(examples())


@pytest.mark.parametrize("test", EXAMPLES, ids=lambda test: test.name.removeprefix("floral_learn."))
def test_example(test, tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(os.environ, "TMPDIR", str(tmp_path))
    said = []
    failed, _ = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=said.append, clear_globs=False)
    plt.close("all")
    assert not failed, "".join(said)


REFERENCE = sorted((Path(__file__).resolve().parents[1] / "docs" / "api").glob("*.rst"))


@pytest.mark.parametrize("page", REFERENCE, ids=lambda page: page.stem)
def test_examples_on_a_page_of_the_reference(page):
    assert doctest.testfile(str(page), module_relative=False, optionflags=FLAGS, encoding="utf-8").failed == 0


ROOMS = [
    floral_learn,
    *(importlib.import_module(f"floral_learn.{r}") for r in ("attacks", "audit", "datasets", "paper")),
]
VALUES = [value for room in ROOMS for name in room.__all__ if callable(value := getattr(room, name))]
PUBLIC = sorted({f"{value.__module__}.{value.__qualname__}" for value in VALUES})


@pytest.mark.parametrize("name", PUBLIC, ids=lambda name: name.removeprefix("floral_learn."))
def test_public_names_are_documented_in_numpydoc_form(name):
    validate = pytest.importorskip("numpydoc.validate").validate
    wrong = {
        "EX01": "no Examples section",
        "GL06": "unknown section",
        "GL07": "sections in the wrong order",
        "PR02": "documents a parameter that does not exist",
        "PR07": "a parameter without description",
        "SS01": "no summary",
    }
    found = [f"{code}: {text}" for code, text in validate(name)["errors"] if code in wrong]
    assert not found, found
