"""One page a suite of `floral bench`: the table as the command wrote it, its pictures, and the other tables folded.

The files under docs/results stay as the command leaves them; the title and the rest are added while they are read.
"""

import re
from pathlib import Path

OTHERS = {
    "hinge_loss": "Hinge loss",
    "balanced_accuracy": "Balanced accuracy",
    "recovery_rate": "Recovery rate: poisoned labels that the attacker in the game flips back",
    "bounds": "Bounds, checked along games",
    "costs": "Costs",
}
PICTURES = ("security", "rounds", "boundaries", "sensitivity", "recovery", "stability", "datasets")


def read(app, docname, source):
    """Turn a bare table into a page."""
    match = re.fullmatch(r"results/([^/]+)/(accuracy|stability)", docname)
    if not match or source[0].lstrip().startswith("# "):
        return
    folder = Path(app.srcdir) / "results" / match[1]
    suite = match[1].removesuffix("-reference")
    command = f"floral bench {suite}" + (" --labels reference" if match[1].endswith("-reference") else "")
    parts = [f"# {match[1]}", f"`{command}`, as it writes its tables and figures. "
             "[How to read the columns](../../benchmarks.md); [what it says](../paper-suites.md)."]  # fmt: skip
    parts += [f"![{name}]({name}.png)" for name in PICTURES if (folder / f"{name}.png").is_file()]
    parts += ["## Accuracy" if match[2] == "accuracy" else "## Constants", source[0]]
    for name, title in OTHERS.items():
        if (folder / f"{name}.md").is_file():
            parts.append(f":::{{dropdown}} {title}\n```{{include}} {name}.md\n```\n:::")
    source[0] = "\n\n".join(parts) + "\n"


def setup(app):
    """Connect to the reader."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
