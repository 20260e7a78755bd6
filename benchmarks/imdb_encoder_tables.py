"""Tables of encoders for docs/results/imdb-answers.md: which one gives the paper's pattern of equal best and last?

Rows come from imdb_encoders.py; imdb_answers_page.py puts the tables on the page.
"""

from __future__ import annotations

import numpy as np

from floral_bench.metrics import sample_deviation
from floral_bench.reporting.paper import paper_value

_SETTING = (10.0, 0.005)
_TABLE = "comp-imdb-additional"
Rows = list[dict]


def table(names: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (names, ["---"] * len(names), *rows)) + "\n"


def spread(values: list[float] | np.ndarray, digits: int = 3) -> str:
    """Mean and sample deviation."""
    if not len(values):
        return "-"
    deviation = f" ± {sample_deviation(np.array(values)):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{deviation}"


def paper_number(level: float, method: str, statistic: str = "last") -> float | None:
    return paper_value(_TABLE, level, _SETTING, method, "accuracy", statistic)


class Encoders:
    """Rows of `imdb_encoders.py`: heads on embeddings of encoders that were made in several ways."""

    heads = ("svm", "floral", "ls-svm")
    columns = tuple((head, statistic) for head in heads for statistic in ("best", "last"))

    def __init__(self, rows: Rows) -> None:
        self.rows = [row for row in rows if "epoch" in row]
        self.levels = sorted({row["level"] for row in self.rows})

    def looks(self, level: float) -> list[tuple[str, int]]:
        """Encoders and epochs that were looked at, those tried on most draws first, the epochs of one together."""
        mine = [r for r in self.rows if r["level"] == level]
        tried = {name: len({r["draw"] for r in mine if r["encoder"] == name}) for name in [r["encoder"] for r in mine]}
        return sorted({(r["encoder"], r["epoch"]) for r in mine}, key=lambda look: (-tried[look[0]], *look))

    def values(self, level: float, look: tuple[str, int], head: str, statistic: str) -> list[float]:
        """One value per draw."""
        found = {
            r["draw"]: r[statistic]
            for r in self.rows
            if (r["level"], r["encoder"], r["epoch"], r["head"]) == (level, *look, head) and r.get(statistic)
        }
        return [found[draw] for draw in sorted(found)]

    def line(self, level: float, look: tuple[str, int]) -> list[str]:
        """The network itself and the heads, mean and deviation over draws."""
        shown = [("network", "last"), *self.columns]
        return [spread(self.values(level, look, head, statistic)) for head, statistic in shown]

    def far(self, level: float, look: tuple[str, int]) -> float:
        """The largest difference to the paper's four numbers of SVM and FLORAL, of means over draws."""
        pairs = [(head, s) for head in ("svm", "floral") for s in ("best", "last")]
        found = [(self.values(level, look, head, s), paper_number(level, head, s)) for head, s in pairs]
        return max(abs(np.mean(v) - p) if len(v) and p is not None else np.inf for v, p in found)

    def nearest(self, level: float, draws: int = 1) -> tuple[str, int]:
        """Of those that were tried on so many draws."""
        return min(
            (each for each in self.looks(level) if self.draws(level, each) >= draws),
            key=lambda look: self.far(level, look),
        )

    def widest(self) -> tuple[str, int]:
        """The encoder and epoch that was tried on most draws and levels."""
        known = dict.fromkeys((r["encoder"], r["epoch"]) for r in self.rows)
        return max(known, key=lambda look: sum(self.draws(level, look) for level in self.levels))

    def draws(self, level: float, look: tuple[str, int]) -> int:
        return len(self.values(level, look, "network", "last"))


def paper_line(level: float) -> list[str]:
    known = [paper_number(level, "roberta", "last"), *(paper_number(level, h, s) for h, s in Encoders.columns)]
    return ["-" if value is None else f"{value:.3f}" for value in known]


def encoder_table(found: Encoders, level: float) -> str:
    """Encoders down, heads across: best and last round."""
    names = ["encoder", "epoch", "network itself", *(f"{h}, {s}" for h, s in found.columns), "draws"]
    rows = [["*paper (RoBERTa)*", "3", *paper_line(level), "-"]]
    for look in found.looks(level):
        rows.append([look[0], str(look[1] or "-"), *found.line(level, look), str(found.draws(level, look))])
    return table(names, rows)


def level_table(found: Encoders, look: tuple[str, int]) -> str:
    """One encoder at every level, the paper's numbers above."""
    names = ["poisoned", "", "network itself", *(f"{h}, {s}" for h, s in found.columns), "draws"]
    rows = []
    for level in found.levels:
        if look in found.looks(level):
            rows.append([f"{level:g} %", "*paper*", *paper_line(level), "-"])
            rows.append([f"{level:g} %", "MiniLM", *found.line(level, look), str(found.draws(level, look))])
    return table(names, rows)


def nearest_encoder(found: Encoders, level: float) -> str:
    """Which encoder is nearest to the paper's SVM and FLORAL, and what else differs, in sentences from the rows."""
    most = max(found.draws(level, look) for look in found.looks(level))
    sure, any_draws = found.nearest(level, most), found.nearest(level)
    theirs = paper_number(level, "svm", "last") or 0.0
    alike = [
        each for each in found.looks(level) if abs(np.mean(found.values(level, each, "svm", "last")) - theirs) < 0.02
    ]
    relabelled = [np.mean(found.values(level, each, "ls-svm", "last")) for each in alike]
    network = np.mean(found.values(level, sure, "network", "last"))
    other = "" if any_draws == sure else f" On fewer draws, {_near(found, level, any_draws)}."
    return (
        f"Nearest to the paper's four numbers of SVM and FLORAL at {level:g} %, of those on {most} draws, is "
        f"{_near(found, level, sure)}. The network itself then has {network:.3f}, the paper's "
        f"{paper_number(level, 'roberta', 'last'):.3f}.{other} Of the {len(alike)} whose SVM ends within 0.02 of the "
        f"paper's none has its LS-SVM, {paper_number(level, 'ls-svm', 'last'):.3f}: the lowest is "
        f"{min(relabelled):.3f}."
    )


def _near(found: Encoders, level: float, look: tuple[str, int]) -> str:
    """An encoder, its distance to the paper, and how far best and last are apart."""
    name, epoch = look
    svm, floral = (
        np.mean(found.values(level, look, head, "best")) - np.mean(found.values(level, look, head, "last"))
        for head in ("svm", "floral")
    )
    place = f'"{name}" after epoch {epoch}' if epoch else f'"{name}"'
    return (
        f"{place}: at most {found.far(level, look):.3f} away, best and last {svm:.3f} (SVM) and {floral:.3f} (FLORAL) "
        "apart"
    )
