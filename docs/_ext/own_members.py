"""API pages show the methods that this library wrote, not the hundred that scikit-learn's base classes add."""

import inspect


def skip(app, what, name, member, skip, options):
    """Leave out what other packages define; keep autodoc's own choice for the rest."""
    member = inspect.unwrap(getattr(member, "fget", None) or getattr(member, "__func__", None) or member)
    module = getattr(member, "__module__", None)
    if what in ("class", "method", "property") and callable(member) and not str(module).startswith("floral_learn"):
        return True
    return None


def setup(app):
    """Connect to autodoc."""
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
