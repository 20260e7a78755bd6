"""The reference page of the command line names every command and every option."""

import importlib.util
from pathlib import Path

import pytest

typer = pytest.importorskip("typer")
EXTENSION = Path(__file__).resolve().parents[2] / "docs" / "_ext" / "cli_reference.py"
pytestmark = pytest.mark.skipif(not EXTENSION.is_file(), reason="docs are not part of the source archive")


@pytest.fixture(scope="module")
def extension():
    spec = importlib.util.spec_from_file_location("cli_reference", EXTENSION)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_and_option_is_on_the_page(extension):
    from floral_learn.app import make_app

    source = ["# The command line"]
    extension.read(None, "cli", source)
    sections = {part.split("\n")[0]: part for part in source[0].split("\n## ")}
    root = typer.main.get_command(make_app())
    commands = {f"floral {name}": command for name, command in root.commands.items()}
    for name, command in list(commands.items()):
        commands |= {f"{name} {inner}".removesuffix(" run"): c for inner, c in getattr(command, "commands", {}).items()}
    assert len(commands) > len(root.commands)  # `floral audit apply` and its like
    for name, command in commands.items():
        for param in command.params:
            for flag in param.opts if param.param_type_name == "option" and not param.hidden else []:
                assert flag == "--help" or f"`{flag}`" in sections[name], f"{name} {flag}"


def test_other_pages_stay_as_they_are(extension):
    source = ["# Audit"]
    extension.read(None, "audit", source)
    assert source == ["# Audit"]


def test_text_that_markdown_would_read_as_markup_is_escaped_but_code_is_not(extension):
    assert extension.cell("a|b  <c> `x|y_z`") == r"a\|b \<c\> `x|y_z`"
