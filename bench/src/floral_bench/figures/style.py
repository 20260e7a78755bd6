"""One look for all figures: colours that stay apart for colour-blind readers, line styles that stay apart in grey."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from floral_learn.base.files import write_atomically

# The Okabe-Ito palette, black last.
BLUE, ORANGE, GREEN, PURPLE, YELLOW, SKY, RED, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#B8A800", "#56B4E9", "#D55E00", "#000000",
)  # fmt: skip
GREY = "#777777"

# method: colour, line, marker, width, layer. FLORAL's variants share the warm colours and nothing else.
_KNOWN: dict[str, tuple[Any, ...]] = {
    "floral": (RED, "-", "o", 2.0, 5),
    "floral (budget 2 %)": ("#8C2D04", "--", "^", 1.3, 5),
    "floral (budget = level)": ("#F768A1", ":", "d", 2.0, 5),
    "FloralClassifier()": ("#A50F15", (0, (5, 1)), "*", 1.8, 5),
    "floral (largest-loss attacker)": (GREY, "-", ".", 1.3, 2),
    "svm": (BLACK, "--", "s", 1.3, 2),
    "nn": (BLUE, "-.", "^", 1.3, 2),
    "nn-pgd": (SKY, "-.", "v", 1.3, 2),
    "ln-svm": (GREEN, ":", "D", 1.3, 2),
    "curie": (ORANGE, "--", "P", 1.3, 2),
    "ls-svm": (PURPLE, ":", "X", 1.3, 2),
    "k-lid": (YELLOW, "--", "<", 1.3, 2),
    "SVC()": (BLACK, "-", "x", 1.8, 4),
    "CleanLearning(SVC())": (BLUE, "-.", "^", 1.3, 2),
    "ContradictedLabels, SVC()": (GREEN, "-", "D", 1.8, 4),
    "boosted trees": (PURPLE, "--", "x", 1.3, 2),
    "ContradictedLabels, boosted trees": (PURPLE, "-", "X", 1.3, 2),
    "rs": (SKY, "-", "v", 1.3, 2),
    "dpa": (GREY, ":", "*", 1.3, 2),
    # heads on a network, and on a text encoder
    "nn+svm": (BLACK, "--", "s", 1.3, 2),
    "nn+floral": (ORANGE, ":", "o", 1.3, 2),
    "nn+floral (B = level)": (RED, "-", "o", 1.8, 2),
    "nn+floral (B on test labels)": (RED, ":", "d", 1.3, 2),
    "nn+floral (B = level), 3 turns": (GREEN, "--", "v", 1.3, 2),
    "nn of 3 turns": (GREY, "-.", "x", 1.3, 2),
    "minilm, fine-tuned": (BLUE, "-", "^", 1.8, 2),
}
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, YELLOW, BLACK, GREY)
DASHES = ("-", "--", "-.", ":")
SETTINGS: Any = {
    "font.size": 8, "axes.titlesize": 8.5, "axes.labelsize": 8, "legend.fontsize": 7.5, "xtick.labelsize": 7,
    "ytick.labelsize": 7, "axes.grid": True, "grid.alpha": 0.3, "grid.linewidth": 0.5, "axes.spines.top": False,
    "axes.spines.right": False, "lines.markersize": 3.5, "legend.frameon": False,
}  # fmt: skip


def line_style(method: str, number: int = 0) -> dict[str, Any]:
    """Keywords for a method's line, the same in every figure."""
    known = _KNOWN.get(method) or _KNOWN.get(method.removesuffix(" (libsvm)"))
    if known is None:
        known = (CYCLE[number % len(CYCLE)], DASHES[number % len(DASHES)], ".", 1.3, 2)
    return dict(zip(("color", "linestyle", "marker", "linewidth", "zorder"), known, strict=True))


def png(make: Callable[[], Any], dpi: int = 120) -> bytes | None:
    """The figure that `make` returns in this style, or None where it has no axes; matplotlib is left as it was."""
    import matplotlib as mpl

    stream = io.BytesIO()
    with mpl.rc_context(SETTINGS):
        figure = make()
        if not figure.axes:
            return None
        figure.savefig(stream, format="png", dpi=dpi, bbox_inches="tight")
    return stream.getvalue()


def write_png(make: Callable[[], Any], path: Path, dpi: int = 120) -> list[Path]:
    """Write a figure; nothing where it is empty."""
    content = png(make, dpi)
    return [] if content is None else [write_atomically(path, content)]


def title_of(level: float) -> str:
    """The heading of a panel."""
    return "clean labels" if level == 0 else f"{level:g} % poisoned"
