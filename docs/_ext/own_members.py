"""What API pages show: methods that this library wrote, and docstrings in which ``|x|`` is an absolute value."""

import inspect
import re


def skip(app, what, name, member, skip, options):
    """Leave out what other packages define, such as scikit-learn's base classes; autodoc decides on the rest."""
    member = inspect.unwrap(getattr(member, "fget", None) or getattr(member, "__func__", None) or member)
    module = getattr(member, "__module__", None)
    if what in ("class", "method", "property") and callable(member) and not str(module).startswith("floral_learn"):
        return True
    return None


def bars(app, what, name, value, options, lines):
    """Bars are bars, not reStructuredText's substitutions; code stays as it is."""
    for number, line in enumerate(lines):
        if "|" in line and not line.lstrip().startswith((">>>", "...")):
            lines[number] = re.sub(r"(``.*?``)|(?<!\\)\|", lambda match: match[1] or "\\|", line)


def setup(app):
    """Connect to autodoc, before numpydoc."""
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", bars, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
