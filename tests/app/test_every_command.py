"""What holds for all commands that read a table: the same options, and the same words about a class spelled twice."""

import pytest
from commands import floral
from typer.main import get_command
from typer.testing import CliRunner

from floral_learn.app import make_app
from floral_learn.app.options import OPTIONS


def leaves(command, path=()):
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from leaves(inner, (*path, name))
    yield " ".join(path), command


def test_an_option_of_a_table_is_the_same_in_every_command():
    seen = {}
    for name, command in leaves(get_command(make_app())):
        if name.startswith(("bench", "report")):  # a package of its own
            continue
        for option in command.params:
            if option.name in OPTIONS and option.name != "label":  # a label may have a default of its own
                said = (tuple(option.opts), option.help, option.multiple)
                seen.setdefault(option.name, {})[name] = said
    assert set(seen) >= {"text", "text_encoder", "row_id", "drop", "skip_blank", "sep", "encoding", "trusted", "weight"}
    for option, by_command in seen.items():
        assert len(set(by_command.values())) == 1, (option, by_command)


@pytest.mark.parametrize(
    "words",
    [
        ("train", "-m", "svm", "-o", "model.skops"),
        ("poison", "-a", "random", "-b", "0.1", "-o", "poisoned.csv"),
        ("certify", "-o", "report"),
        ("audit", "-o", "audited"),
        ("review", "--to", "label-studio", "-o", "tasks"),
    ],
    ids=lambda words: words[0],
)
def test_a_class_spelled_in_two_ways_is_named(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    names = ["Graduate", "graduate ", "Dropout"]
    rows = "".join(f"{i % 3 + i / 100:.2f},{i % 7},{names[i % 3]}\n" for i in range(60))
    (tmp_path / "t.csv").write_text("a,b,y\n" + rows)
    command, *rest = words
    said = floral(command, "t.csv", "-l", "y", *rest).output
    assert "'graduate' (20 rows) and 'Graduate' (20 rows) differ only in case" in " ".join(said.split())


@pytest.mark.parametrize("command", ["review", "train", "audit", "poison", "certify", "crowd", "predict"])
def test_help_cuts_no_name_at_80_columns(command):
    done = CliRunner().invoke(make_app(), [command, "--help"], env={"COLUMNS": "80"})
    assert "…" not in done.output
