"""Whatever goes wrong in a command is one line and an exit code; libraries' warnings stay off the terminal."""

import os
import signal
import subprocess
import sys
import time
import warnings

import pytest

from floral_learn.base import models

typer = pytest.importorskip("typer")
from commands import floral  # noqa: E402
from typer.main import get_command  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from floral_learn import app  # noqa: E402
from floral_learn.app import BENCH_COMMANDS, COMMANDS, make_app  # noqa: E402
from floral_learn.app.terminal import one_line  # noqa: E402


def outcome(body):
    app = typer.Typer()
    app.command()(one_line("floral test")(body))
    return CliRunner().invoke(app, [])


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ValueError("two\nlines"), 2, "floral test: two lines\n"),
        (OSError(28, "No space left on device", "x.csv"), 2, "floral test: No space left on device: x.csv\n"),
        (KeyboardInterrupt(), 130, "floral test: stopped; nothing was written\n"),
        (MemoryError(), 2, "floral test: not enough memory for this table\n"),
        (RecursionError("deep"), 2, "floral test: a file is nested too deeply\n"),
        (KeyError("k"), 2, "floral test: unexpected KeyError: 'k' (FLORAL_DEBUG=1 shows where)\n"),
        (ValueError("\x1b[31mred"), 2, "floral test:  [31mred\n"),
    ],
)
def test_every_error_is_one_line(error, code, message):
    def body() -> None:
        raise error

    done = outcome(body)
    assert done.exit_code == code
    assert done.stderr == message


def test_the_traceback_is_there_for_who_asks(monkeypatch):
    monkeypatch.setenv("FLORAL_DEBUG", "1")

    def body() -> None:
        raise KeyError("k")

    assert isinstance(outcome(body).exception, KeyError)


def test_only_our_own_warnings_are_shown_once_and_as_one_line(tmp_path):
    def body() -> None:
        warnings.warn("from a library", UserWarning, stacklevel=2)
        warnings.warn("old", DeprecationWarning, stacklevel=1)

        exec("import warnings\nwarnings.warn('ours,\\nin two lines', UserWarning, stacklevel=1)", vars(models))

    before = list(warnings.filters)
    done = outcome(body)
    assert done.stderr == "floral test: note: ours, in two lines\n"
    assert list(warnings.filters) == before


def test_version_and_help():
    assert floral("--version").stdout.startswith("floral-learn ")
    assert "--install-completion" in floral("--help").stdout
    assert "--skip-blank" in floral("train", "--help").stdout


def test_the_list_of_commands_says_what_each_says_of_itself():
    pytest.importorskip("floral_bench")
    lines = COMMANDS | BENCH_COMMANDS
    said = {name: command.help for name, command in get_command(make_app()).commands.items()}
    assert {name: " ".join(text.split("\n\n")[0].split()) for name, text in said.items()} == lines


def test_the_list_of_commands_loads_none_of_them():
    code = (
        "import sys; sys.argv = ['floral', '--help']\n"
        "from floral_learn.app import make_app\n"
        "try: make_app()()\n"
        "except SystemExit: print({'importlib.metadata', 'floral_learn.app.train', 'floral_bench'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_starting_loads_no_numpy():
    code = (
        "from floral_learn.app import make_app; make_app(); import sys; print({'numpy', 'sklearn'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


TRAIN = ("train", "d.csv", "-l", "y", "-o", "m.skops")


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_end_from_outside_clears_up_as_ctrl_c_does(monkeypatch):
    """A plain SIGTERM ends a process where it stands, and its temporary files stay."""
    before, cleared = signal.getsignal(signal.SIGTERM), []

    def busy():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        finally:
            cleared.append("up")

    monkeypatch.setattr(app, "make_app", lambda: busy)
    try:
        with pytest.raises(SystemExit) as ended:
            app.main()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.value.code == 143
    assert cleared == ["up"]


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_in_training_is_one_line_130_and_no_file(tmp_path):
    rows = "".join(f"{i % 83},{i % 71},{'ab'[(i * 7 // 5) % 2]}\n" for i in range(6000))
    (tmp_path / "d.csv").write_text("p,q,y\n" + rows)
    # Where the tests themselves run in the background, children are born with Ctrl-C ignored.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{heard}; from floral_learn.app import main; main()", *TRAIN],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        # A suite that runs in the background ignores SIGINT, and its children would too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while "held-out" not in process.stdout.readline():
        assert process.poll() is None
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors == "floral train: stopped; nothing was written\n"
    assert sorted(os.listdir(tmp_path)) == ["d.csv"]
