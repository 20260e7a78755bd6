"""The ``floral`` command: one file a subcommand, each with a ``register(app)``."""

import sys
from importlib import import_module

# subcommand modules, in the order of `floral --help`
COMMANDS = ("demo", "train", "predict", "audit", "review", "poison", "bench", "report")


def main() -> None:
    """Run the command line; a missing extra is one line and exit code 2, not a traceback."""
    try:
        import typer
    except ImportError:
        print("floral: the command line needs typer: pip install 'floral-learn[cli]'", file=sys.stderr)
        sys.exit(2)

    app = typer.Typer(
        name="floral",
        help="Train on, audit, poison and benchmark data whose labels you do not trust.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
    )

    @app.callback()
    def root() -> None:
        """Train on, audit, poison and benchmark data whose labels you do not trust."""

    for name in COMMANDS:
        import_module(f"{__name__}.{name}").register(app)
    app()
