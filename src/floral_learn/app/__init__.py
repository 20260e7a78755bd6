"""The ``floral`` command: one file per subcommand, each with a ``register(app)``."""

import signal
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from floral_learn.base import on_first_use
from floral_learn.base.extras import bench_install_line, install_line

__getattr__ = on_first_use(__name__, {"read_table": "tables"})

# subcommand -> its line in `floral --help`, in that order. A command's module is imported when it is asked for; a test
# holds these lines to the commands themselves.
COMMANDS = {
    "audit": "Find labels that look wrong: floral audit data.csv --label y --out report/",
    "review": "Ask a person about a few rows of DATA and correct the other labels from the answers.",
    "crowd": "Find the true labels from votes of several people, some of whom may lie.",
    "judge": "Say how often judges (language models, rules, people) are wrong, from a few blind questions to you.",
    "train": "Train a classifier on untrusted labels and save it as a model file for `floral predict`.",
    "predict": "Predict a label for every row of DATA; columns that the model does not know are ignored.",
    "poison": "Write a copy of a data file with poisoned labels; nothing else in it changes.",
    "certify": "Say how many wrong labels of DATA predictions survive, whichever they are.",
}
# Commands of the laboratory, a package of its own in the folder `bench` of this repository. It names its modules under
# this entry-point group; where it is not installed, the commands say how to get it.
BENCH_COMMANDS = {
    "bench": "Compare defenses under attack: experiments of the paper by name, or classifiers on your own table.",
    "report": "Write one page about a run of `floral bench`: pictures, tables, settings, versions, how to repeat it.",
}
RESEARCH = ("poison", "certify", *BENCH_COMMANDS)  # these stand under a heading of their own
ENTRY_POINTS = "floral_learn.commands"


def main() -> None:
    """Run the command line; a missing extra is one line and exit code 2, not a traceback."""
    if find_spec("typer") is None:
        print(f"floral: the command line needs typer: {install_line('cli')}", file=sys.stderr)
        sys.exit(2)
    # an end that clears temporary files, as Ctrl-C does
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        make_app()()
    except KeyboardInterrupt:
        print("floral: stopped", file=sys.stderr)
        sys.exit(130)


def make_app() -> Any:
    """The typer app with every subcommand."""
    import typer
    from typer.core import TyperCommand, TyperGroup

    class Root(TyperGroup):
        """All commands by name; a list of them loads none."""

        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self.commands: Any = _Commands()

        def list_commands(self, ctx: Any) -> list[str]:
            return list(self.commands)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name not in self.commands:
                return None
            line = (COMMANDS | BENCH_COMMANDS)[cmd_name]
            if cmd_name in BENCH_COMMANDS and find_spec("floral_bench") is None:
                line = f"Not installed: {bench_install_line()}"
            panel = "Research" if cmd_name in RESEARCH else None
            return TyperCommand(cmd_name, help=line, rich_help_panel=panel)

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            if args[0] not in self.commands:
                return super().resolve_command(ctx, args)  # an error that names what is near
            return args[0], self.commands[args[0]], args[1:]

    app = typer.Typer(
        name="floral",
        cls=Root,
        help="Train, audit, review and benchmark on labels you do not trust.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )

    def version(wanted: bool) -> None:
        if wanted:
            from floral_learn import __version__

            typer.echo(f"floral-learn {__version__}")
            raise typer.Exit

    @app.callback()
    def root(
        _: bool = typer.Option(False, "--version", callback=version, is_eager=True, help="Show the version and exit."),
    ) -> None:
        """Train, audit, review and benchmark on labels you do not trust."""

    return app


class _Commands(Mapping[str, Any]):
    """Name -> command, which is made when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        return _load(name)

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS or name in BENCH_COMMANDS

    def __iter__(self) -> Iterator[str]:
        return iter((*COMMANDS, *BENCH_COMMANDS))

    def __len__(self) -> int:
        return len(COMMANDS) + len(BENCH_COMMANDS)


def _load(name: str) -> Any:
    """The command of this name, from its module."""
    import typer

    alone = typer.Typer()
    alone.callback()(lambda: None)  # with it, one command is a group of one
    if name in COMMANDS:
        import_module(f"{__name__}.{name}").register(alone)
    else:
        from importlib.metadata import entry_points

        found = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
        try:
            found[name].load().register(alone)
        except (KeyError, ImportError):  # not installed, or its files are gone
            how = f"the benchmarks are a package of their own: {bench_install_line()}"
            print(f"floral {name}: {how}", file=sys.stderr)
            raise SystemExit(2) from None
    return typer.main.get_command(alone).commands[name]  # type: ignore[attr-defined]
