"""Sections of result pages that begin with ``<!-- fold -->`` become dropdowns on the site; in the repository they are
plain."""

import re

SECTION = re.compile(r"^## ([^\n]+)\n+<!-- fold -->\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)


def read(app, docname, source):
    """Fold the sections of a page of results."""
    if docname.startswith("results/"):
        source[0] = folded(source[0])


def folded(text):
    """The text with its folded sections as dropdowns."""
    return SECTION.sub(lambda found: f"::::{{dropdown}} {found[1]}\n{found[2].strip()}\n::::\n\n", text)


def setup(app):
    """Connect to the reader."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
