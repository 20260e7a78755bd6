"""The command line as the tests call it."""

import pytest

from floral_learn.app import make_app

testing = pytest.importorskip("typer.testing", reason="the command line needs the extra [cli]")


def floral(*words, code=0):
    """Run `floral WORDS`, which must end with this exit code; the result has `output`, `stdout` and `stderr`."""
    done = testing.CliRunner().invoke(make_app(), [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


def refused(*words):
    """Why `floral WORDS` is refused: one line on stderr, exit code 2."""
    said = floral(*words, code=2).stderr
    assert said.count("\n") == 1, said
    assert "Traceback" not in said
    return said
