"""Short cells stay on one line ("0.969 ± 0.006"), so that wide tables scroll on a phone instead of folding up.

Names in headings may break after an underscore.
"""

from docutils import nodes

LONGEST = 30
BREAK = "\u200b"  # a line may end here


def mark(app, doctree):
    """Mark the short cells; the style sheet does the rest."""
    for entry in doctree.findall(nodes.entry):
        if len(entry.astext()) <= LONGEST:
            entry["classes"].append("one-line")
    for head in doctree.findall(nodes.thead):
        for name in list(head.findall(nodes.literal)):  # `most_foreign` over a column of short numbers
            name.replace_self(nodes.literal(name.rawsource, name.astext().replace("_", "_" + BREAK)))


def setup(app):
    """Connect to the reader."""
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
