"""How to install what an optional feature needs: every message about a missing library ends with this line."""

from floral_learn import __version__


def install_line(extra: str, version: str = __version__) -> str:
    """The command that installs ``extra``: by name for a release, from the clone for a version in development.

    Examples
    --------
    >>> from floral_learn.extras import install_line
    >>> install_line("torch", "0.2.0")
    "pip install 'floral-learn[torch]'"
    >>> install_line("torch", "0.3.0.dev0")
    "pip install '.[torch]' in a clone of floral-learn"
    """
    if ".dev" in version:
        return f"pip install '.[{extra}]' in a clone of floral-learn"
    return f"pip install 'floral-learn[{extra}]'"
