"""Short cells stay on one line ("0.969 ± 0.006"), so that wide tables scroll on a phone instead of folding up."""

from docutils import nodes

LONGEST = 30


def mark(app, doctree):
    """Mark the short cells; the style sheet does the rest."""
    for entry in doctree.findall(nodes.entry):
        if len(entry.astext()) <= LONGEST:
            entry["classes"].append("one-line")


def setup(app):
    """Connect to the reader."""
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
