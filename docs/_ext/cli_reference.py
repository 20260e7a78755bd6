"""The reference of the command line, read from the commands themselves while the site is built.

docs/cli.md holds the introduction; what follows it (one section per command, with its arguments and options) is
appended here, so that the page and ``floral --help`` cannot disagree.
"""

import re


def read(app, docname, source):
    """Append the commands to the page ``cli``."""
    if docname == "cli":
        source[0] += "\n" + reference()


def reference():
    """All commands as MyST Markdown."""
    import typer

    from floral_learn.app import BENCH_COMMANDS, COMMANDS, make_app

    found = typer.main.get_command(make_app()).commands
    order = [*COMMANDS, *BENCH_COMMANDS]
    ordered = sorted(found, key=lambda name: order.index(name) if name in order else len(order))
    return "\n\n".join(part for name in ordered for part in sections(f"floral {name}", found[name]))


def sections(path, command):
    """The section of one command, then those of its subcommands."""
    nested = dict(getattr(command, "commands", {}))
    command = nested.pop("run", command)  # `floral audit DATA` runs it without being told
    own = [f"## {path}", paragraphs(command.help)]
    ways = [p for p in command.params if p.name not in ("help", "install_completion", "show_completion")]
    arguments = [p for p in ways if p.param_type_name == "argument"]
    options = [p for p in ways if p.param_type_name == "option" and not p.hidden]
    names = " ".join(argument_name(argument) for argument in arguments)
    given = "[OPTIONS]" if options else ""
    usage = " ".join(filter(None, [path, names, given, "COMMAND" if nested and not names else ""]))
    own.append(f"```text\n{usage}\n```")
    if arguments:
        own.append(table("argument", [(f"`{argument_name(a)}`", described(a)) for a in arguments]))
    if options:
        own.append(table("option", [(flags(o), described(o)) for o in options]))
    yield from own
    for name, inner in nested.items():
        if not inner.hidden:
            yield from sections(f"{path} {name}", inner)


def argument_name(argument):
    """The name of an argument as ``--help`` writes it."""
    return argument.metavar or argument.name.upper()


def flags(option):
    """The spellings of an option."""
    return ", ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts))


def described(param):
    """Help, whether it must be given, and the default where it says something."""
    words = [cell(getattr(param, "help", None) or "")]
    default = param.default if param.param_type_name == "option" else None
    if param.required:
        words.append("(required)")
    elif default is True:
        words.append("(on by default)")
    elif isinstance(default, str | int | float) and default is not False and default != "":
        words.append(f"(default: `{default}`)")
    return " ".join(filter(None, words))


def table(head, rows):
    """A Markdown table of two columns."""
    return "\n".join([f"| {head} | meaning |", "|---|---|", *(f"| {left} | {right} |" for left, right in rows)])


def cell(text):
    """One line of plain text that Markdown leaves as it is; what stands in backticks stays code."""
    parts = " ".join(text.split()).split("`")
    return "`".join(re.sub(r"([|<>*_\[\]\\$])", r"\\\1", part) if i % 2 == 0 else part for i, part in enumerate(parts))


def paragraphs(text):
    """The help of a command: paragraphs of plain text."""
    return "\n\n".join(cell(part) for part in (text or "").replace("\b", "").split("\n\n"))


def setup(app):
    """Connect to the reader."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
