"""One look for all figures: colours that stay apart for colour-blind readers, line styles that stay apart in grey."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# The Okabe-Ito palette, black last.
BLUE, ORANGE, GREEN, PURPLE, YELLOW, SKY, RED, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#B8A800", "#56B4E9", "#D55E00", "#000000",
)  # fmt: skip
GREY = "#777777"

_KNOWN: dict[str, dict[str, Any]] = {
    "floral": {"color": RED, "linewidth": 2.0, "zorder": 5, "marker": "o"},
    "svm": {"color": BLACK, "linestyle": "--", "marker": "s"},
    "nn": {"color": BLUE, "linestyle": "-.", "marker": "^"},
    "nn-pgd": {"color": SKY, "linestyle": "-.", "marker": "v"},
    "ln-svm": {"color": GREEN, "linestyle": ":", "marker": "D"},
    "curie": {"color": ORANGE, "linestyle": "--", "marker": "P"},
    "ls-svm": {"color": PURPLE, "linestyle": ":", "marker": "X"},
    "k-lid": {"color": YELLOW, "linestyle": "--", "marker": "<"},
    # FLORAL's variants share the warm colours and nothing else.
    "floral (budget 2 %)": {"color": "#8C2D04", "linestyle": "--", "zorder": 5, "marker": "^"},
    "floral (budget = level)": {"color": "#F768A1", "linestyle": ":", "linewidth": 2.0, "zorder": 5, "marker": "d"},
    "FloralClassifier()": {"color": "#A50F15", "linestyle": (0, (5, 1)), "linewidth": 1.8, "zorder": 5, "marker": "*"},
    "floral (largest-loss attacker)": {"color": GREY, "linestyle": "-", "marker": "."},
}
_KNOWN |= {
    "SVC()": {"color": BLACK, "linewidth": 1.8, "linestyle": "-", "zorder": 4, "marker": "x"},
    "CleanLearning(SVC())": {"color": BLUE, "linestyle": "-.", "marker": "^"},
    "ContradictedLabels, SVC()": {"color": GREEN, "linewidth": 1.8, "linestyle": "-", "zorder": 4, "marker": "D"},
    "boosted trees": {"color": PURPLE, "linestyle": "--", "marker": "x"},
    "ContradictedLabels, boosted trees": {"color": PURPLE, "linestyle": "-", "marker": "X"},
    "rs": {"color": SKY, "linestyle": "-", "marker": "v"},
    "dpa": {"color": GREY, "linestyle": ":", "marker": "*"},
}
_CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, YELLOW, BLACK, GREY)
_DASHES = ("-", "--", "-.", ":")


def line_style(method: str, number: int = 0) -> dict[str, Any]:
    """Keywords for a method's line, the same in every figure."""
    known = _KNOWN.get(method) or _KNOWN.get(method.removesuffix(" (libsvm)"))
    if known is not None:
        return {"linewidth": 1.3, **known}
    look = {"color": _CYCLE[number % len(_CYCLE)], "linestyle": _DASHES[number % len(_DASHES)], "marker": "."}
    return {"linewidth": 1.3, **look}


def without_marker(style: dict[str, Any]) -> dict[str, Any]:
    """The same line without its marker, for dense curves."""
    return {key: value for key, value in style.items() if key != "marker"}


@contextmanager
def print_style() -> Iterator[None]:
    """Sizes for a page of paper; nothing of matplotlib's global state is left changed."""
    import matplotlib as mpl

    settings: Any = {
        "font.size": 8,
        "axes.titlesize": 8.5,
        "axes.labelsize": 8,
        "legend.fontsize": 7.5,
        "xtick.labelsize": 7,
        "ytick.labelsize": 7,
        "axes.grid": True,
        "grid.alpha": 0.3,
        "grid.linewidth": 0.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "lines.markersize": 3.5,
        "svg.hashsalt": "floral-learn",
        "svg.fonttype": "path",
        "legend.frameon": False,
    }
    with mpl.rc_context(settings):
        yield


def title_of(level: float) -> str:
    """The heading of a panel."""
    return "clean labels" if level == 0 else f"{level:g} % poisoned"


def in_lines(attack: str) -> str:
    """The name of an attack in the heading of a narrow panel: what is in brackets stands below."""
    return attack.replace(" (", "\n(")
