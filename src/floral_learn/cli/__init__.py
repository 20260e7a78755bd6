"""The ``floral`` command: one file per subcommand, each with a ``register(app)``."""

import sys
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

from floral_learn.base.extras import bench_install_line, install_line

# subcommand modules, in the order of `floral --help`
COMMANDS = ("demo", "train", "predict", "audit", "review", "crowd", "certify", "evidence", "poison")
# Commands of the laboratory, a package of its own in the folder `bench` of this repository. It names its modules under
# this entry-point group; where it is not installed, the commands say how to get it.
BENCH_COMMANDS = ("bench", "report")
ENTRY_POINTS = "floral_learn.commands"


def main() -> None:
    """Run the command line; a missing extra is one line and exit code 2, not a traceback."""
    if find_spec("typer") is None:
        print(f"floral: the command line needs typer: {install_line('cli')}", file=sys.stderr)
        sys.exit(2)
    try:
        make_app()()
    except KeyboardInterrupt:
        print("floral: stopped", file=sys.stderr)
        sys.exit(130)


def make_app() -> Any:
    """The typer app with every subcommand."""
    import typer
    from typer.core import TyperGroup

    class Ordered(TyperGroup):
        """Commands in the order of COMMANDS; `audit`, a group of its own, would be last."""

        def list_commands(self, ctx: Any) -> list[str]:
            return [*COMMANDS, *BENCH_COMMANDS]

    app = typer.Typer(
        name="floral",
        cls=Ordered,
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

    for name in COMMANDS:
        import_module(f"{__name__}.{name}").register(app)
    installed = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    for name in BENCH_COMMANDS:
        try:
            command = installed[name].load()
        except (KeyError, ImportError):  # not installed, or its files are gone
            _say_how_to_install(app, name)
        else:
            command.register(app)
    return app


def _say_how_to_install(app: Any, name: str) -> None:
    """Add a command in the place of one that is not installed: one line and exit code 2."""
    import typer

    line = bench_install_line()
    context = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}

    @app.command(name=name, context_settings=context, help=f"Not installed: {line}")
    def missing(_: typer.Context) -> None:
        print(f"floral {name}: the benchmarks are a package of their own: {line}", file=sys.stderr)
        raise typer.Exit(2)
