"""One page per suite of `floral bench`: the table as the command wrote it, its pictures, and the other tables folded.

The files under docs/results stay as the command leaves them; the title and the rest are added while they are read.
"""

import re
from pathlib import Path

TITLES = {
    "hinge_loss": "Hinge loss",
    "balanced_accuracy": "Balanced accuracy",
    "recovery_rate": "Recovery rate: poisoned labels that the attacker in the game flips back",
    "by_method": "Methods side by side",
    "turns": "What turns of network and head change, split by split",
    "last_round": "What the column *last* rests on: one setting of the grid, the best of each replication, the lowest",
    "per_budget": "By budget of the attacker in the game",
    "bounds": "Bounds, checked along games",
    "costs": "Costs",
}
FIRST = ("security", "rounds")


def read(app, docname, source):
    """Turn a bare table into a page, and links to the folded tables into links to that page."""
    if not docname.startswith("results/"):
        return
    results = Path(app.srcdir) / "results"
    source[0] = folded(source[0])
    source[0] = re.sub(r"\]\(([\w-]+)/(\w+)\.md\)", lambda link: f"]({page_of(results / link[1], link[2])})", source[0])
    match = re.fullmatch(r"results/([^/]+)/(accuracy|stability)", docname)
    if not match or source[0].lstrip().startswith("# "):
        return
    folder = results / match[1]
    suite = match[1].removesuffix("-reference")
    command = f"floral bench {suite}" + ("" if suite == match[1] else " --authors-labels")
    pictures = sorted(folder.glob("*.png"), key=lambda p: (FIRST.index(p.stem) if p.stem in FIRST else 9, p.stem))
    tables = sorted(table for table in folder.glob("*.md") if table.stem != match[2])
    parts = [
        f"# {match[1]}",
        f"`{command}`, as it writes its tables and figures. [How to read the columns](../../benchmarks.md); "
        "[what it says](../paper-suites.md).",
        *(f"![{picture.stem}]({picture.name})" for picture in pictures),
        "## Accuracy" if match[2] == "accuracy" else "## Constants",
        source[0],
    ]
    for table in tables:
        title = TITLES.get(table.stem, table.stem.replace("_", " ").capitalize())
        parts.append(f":::{{dropdown}} {title}\n```{{include}} {table.name}\n```\n:::")
    source[0] = "\n\n".join(parts) + "\n"


def folded(text):
    """Sections that begin with ``<!-- fold -->`` become dropdowns on the site; in the repository they are plain."""
    section = re.compile(r"^## ([^\n]+)\n+<!-- fold -->\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
    return section.sub(lambda found: f"::::{{dropdown}} {found[1]}\n{found[2].strip()}\n::::\n\n", text)


def page_of(folder, table):
    """The page, relative to docs/results, that shows a table."""
    page = next((name for name in ("accuracy", "stability") if (folder / f"{name}.md").is_file()), table)
    return f"{folder.name}/{page}.md"


def setup(app):
    """Connect to the reader."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
