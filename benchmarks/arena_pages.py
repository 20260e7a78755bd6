"""Write every table of docs/results/arena.md and docs/blind.md from the recorded fits, between their markers.

    python benchmarks/arena_pages.py docs/results/arena/records.csv.gz docs

A page marks a table with ``<!-- table: NAME -->`` and ``<!-- end -->``. The score card, the cells and the picture
under docs/results/arena come from the same rows, and run.json from what the recorders noted of their making, which
lies beside the rows (records.making.json, unseen.making.json). "safe" is the judged outcome: each fold of data sets by
the rule that the other folds chose.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))
from arena_unseen import score_card
from contradicted_rule import CELL, NEVER, SHIPPED, SHIPPED_RULES, Records, best, judge, read_rows

from floral_bench.arena_card import PREVALENCE
from floral_bench.arena_data import WITH_FILES
from floral_bench.arena_methods import MODELS
from floral_bench.arena_outputs import write_arena
from floral_bench.data_kinds import arena_kind
from floral_bench.metrics import sample_deviation
from floral_bench.reporting.making import beside_merged, kept_parts
from floral_bench.reporting.origin import note_of
from floral_learn.files.atomic_files import write_atomically
from floral_learn.sanitizers.rule import MEMORISES, RULE, RULE_MEMORISING

TITLES = {name: title for name, (title, _) in MODELS.items()}
COLUMNS = {
    "cells": "cells", "clean": "clean", "poisoned": "poisoned", "worst": "worst cell", "below": "cells > 0.02 below",
    "balanced_clean": "balanced, clean", "balanced": "balanced, poisoned",
}  # fmt: skip
#: The attacks and the real data sets that the table of defaults has.
PLAIN_ATTACKS = ("clean", "random", "farthest", "near-boundary", "class-biased", "votes", "gradient")
REAL = (*(n for n in WITH_FILES if n not in ("spambase-rare", "phoneme-rare", "magic04-overlap")),
        "breast-cancer", "wine", "iris", "digits", "digits-3-8")  # fmt: skip
UNSEEN = Path(__file__).parents[1] / "docs" / "results" / "arena" / "unseen.csv"  # what arena_unseen.py recorded
UNSEEN_COLUMNS = ("cells", "clean", "poisoned", "worst", "below", "balanced")
TRIED = {
    "both 0": "leave out what models and neighbours contradict",
    "both 0.5": "the same, with weight one half",
    "confident 0.5": "confident learning's suspects, weight one half",
    "restored 0": "confident learning's suspects left out, classes weighed up for lost labels",
    "cleanlab": "CleanLearning",
}


def show(value: float, name: str) -> str:
    """A number as people read it."""
    if value != value:
        return ""
    return {"cells": f"{value:.0f}", "below": f"{value:.1%}", "worst": f"{value:+.3f}"}.get(name, f"{value:+.4f}")


def table(rows: Iterable[tuple[list[str], dict[str, float]]], heads: list[str]) -> str:
    """A table of cards in Markdown."""
    names = [*heads, *COLUMNS.values()]
    lines = ["| " + " | ".join(names) + " |", "|---" * len(heads) + "|" + "---:|" * len(COLUMNS)]
    for words, card in rows:
        lines.append("| " + " | ".join([*words, *(show(card[name], name) for name in COLUMNS)]) + " |")
    return "\n".join(lines)


class Arena:
    """The recorded fits with the judged outcome, and the tables made of them."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame, self.records = frame, Records(frame)
        self.judged, self.rules = judge(self.records)
        self.chosen = best(self.records, self.records.fold >= 0)
        self.shipped = self.records.outcome(SHIPPED_RULES)
        self.rival, self.floral = self.records.alone("cleanlab"), self.records.alone("floral")
        self.models = [name for name in TITLES if (self.records.model == name).any()]
        self.sides = {"judged": self.judged, "shipped": self.shipped, "CleanLearning": self.rival}

    def column(self, name: str) -> np.ndarray:
        """A part of the cell of each fit."""
        return self.records.cell.get_level_values(name).to_numpy()

    def card(self, change: np.ndarray, rows: np.ndarray) -> dict[str, float]:
        """Numbers of some fits; NaN where there are none."""
        rows = rows & ~np.isnan(change[:, 0])
        return self.records.card(change, rows) if rows.any() else dict.fromkeys([*COLUMNS, "acted"], np.nan)

    def of(self, model: str) -> np.ndarray:
        """The fits of a model."""
        return self.records.model == model

    def models_table(self) -> str:
        rows = [
            ([TITLES[m], side], self.card(change, self.of(m)))
            for m in self.models
            for side, change in self.sides.items()
        ]
        rows.append((["SVC", "FloralClassifier()"], self.card(self.floral, self.of("svc"))))
        return table(rows, ["model behind", "told nothing"])

    def coverage(self) -> str:
        """What was run: splits per model and attack."""
        frame = self.frame[self.frame.kind == "plain"]
        lines = [
            "| model behind | splits: cheap attacks | alfa, alfa-tilt | lfa | data sets | fits of a cell |",
            "|---|---|---|---|---:|---:|",
        ]
        for m in self.models:
            part = frame[frame.model == m]
            slow = part.attack.isin(["alfa", "alfa-tilt"])
            spans = [_span(part[~slow & (part.attack != "lfa")]), _span(part[slow]), _span(part[part.attack == "lfa"])]
            lines.append(f"| {TITLES[m]} | {' | '.join(spans)} | {part.data.nunique()} | {len(part)} |")
        floral = self.frame[self.frame.kind == "floral"]
        lines.append(
            f"| FloralClassifier() | {_span(floral[~floral.attack.isin(['alfa', 'alfa-tilt', 'lfa'])])} | "
            f"{_span(floral[floral.attack.isin(['alfa', 'alfa-tilt'])])} | | {floral.data.nunique()} | {len(floral)} |"
        )
        return "\n".join(lines)

    def grouped(self, name: str, groups: dict[str, np.ndarray]) -> str:
        """Mean difference of each model on poisoned cells, judged and CleanLearning, by group."""
        lines = [f"| {name} | " + " | ".join(f"{TITLES[m]}, judged | CleanLearning" for m in self.models) + " |"]
        lines.append("|---|" + "---:|" * (2 * len(self.models)))
        for title, rows in groups.items():
            numbers = []
            for m in self.models:
                for change in (self.judged, self.rival):
                    here = rows & self.of(m) & ~np.isnan(change[:, 0])
                    card = self.card(change, here)
                    numbers.append(show(card["clean" if title == "clean" else "poisoned"], "gain"))
            lines.append(f"| {title} | " + " | ".join(numbers) + " |")
        return "\n".join(lines)

    def attacks_table(self) -> str:
        attack = self.column("attack")
        return self.grouped(
            "attack", {str(a): attack == a for a in sorted(set(attack), key=lambda a: (a != "clean", a))}
        )

    def levels_table(self) -> str:
        level = self.column("level_")
        return self.grouped("level", {f"{n} %": level == n for n in (10, 20, 26, 30)})

    def prevalence_table(self) -> str:
        even = np.array([arena_kind(name).evenness for name in self.column("data")])
        rows = []
        for title, (low, high) in PREVALENCE.items():
            here = (even >= low) & (even < high)
            rows += [([title, side], self.card(change, here)) for side, change in self.sides.items()]
        return table(rows, ["classes", "told nothing"])

    def worst_table(self, count: int = 8) -> str:
        """The lowest cells, judged, with the deviation over the splits."""
        values = pd.DataFrame(self.judged, index=self.records.cell, columns=["accuracy", "balanced"])
        groups = values.groupby(level=CELL)
        found = (
            groups.mean()
            .assign(deviation=groups.accuracy.agg(sample_deviation), splits=groups.size())
            .sort_values("accuracy")
        )
        lines = [
            "| model behind | data | attack | level | splits | accuracy | ± splits | balanced accuracy |",
            "|---|---|---|---:|---:|---:|---:|---:|",
        ]
        for (model, _, data, attack, level), row in found.head(count).iterrows():
            lines.append(
                f"| {TITLES[model]} | {data} | {attack} | {level} % | {row.splits:.0f} | {row.accuracy:+.3f} | "
                f"{show(row.deviation, '').lstrip('+')} | {row.balanced:+.3f} |"
            )
        return "\n".join(lines)

    def tried_table(self) -> str:
        """Each idea always done, and only where the check says two standard errors; first split, SVC and logistic."""
        split = self.records.plain.index.get_level_values("split").to_numpy()
        rows = []
        for m in ("svc", "logistic"):
            here = self.of(m) & (split == 1)
            for kind, words in TRIED.items():
                rows.append(([TITLES[m], words], self.card(self.records.alone(kind), here)))
            for kind in (*list(TRIED)[:4], SHIPPED):
                rule = replace(RULE, least_share=NEVER, scattered_errors=2.0, recall_errors=0.0, scattered_share=0.0)
                words = TRIED.get(kind, "what models and neighbours contradict and lies at random, left out")
                card = self.card(self.records.by(rule, kind), here)
                rows.append(([TITLES[m], f"{words}; only if held-out accuracy rises by two errors"], card))
            loose = replace(RULE, scattered_errors=NEVER, most_clumped=NEVER, least_share=0.0)
            for words, rule in (
                ("a class that lost labels, as it was before: no look at mixing, rare classes too", loose),
                ("the same, not for a rare class", replace(loose, least_share=RULE.least_share)),
                ("the same, labels mixed at random", replace(loose, most_clumped=RULE.most_clumped)),
                ("both: what is shipped, without scattered suspects", replace(RULE, scattered_errors=NEVER)),
            ):
                rows.append(([TITLES[m], words], self.card(self.records.by(rule), here)))
        return table(rows, ["model behind", "idea"])

    def default_table(self) -> str:
        """Accuracies of what SVC users can call, on real tables under the plain attacks, where FLORAL ran too."""
        plain = self.records.plain.accuracy.to_numpy()
        here = self.of("svc") & np.isin(self.column("data"), REAL) & np.isin(self.column("attack"), PLAIN_ATTACKS)
        here &= ~np.isnan(self.floral[:, 0])
        lines = [
            "| told nothing | clean | poisoned | worst cell against SVC | cells > 0.02 below |",
            "|---|---:|---:|---:|---:|",
        ]
        rows = {
            "SVC()": np.zeros_like(self.judged),
            "FloralClassifier()": self.floral,
            "SanitizedClassifier(ContradictedLabels(), SVC()), judged": self.judged,
            "CleanLearning, SVC": self.rival,
        }
        for title, change in rows.items():
            values = pd.Series((plain + change[:, 0])[here], index=self.records.cell[here]).groupby(level=CELL).mean()
            level, card = values.index.get_level_values("level_"), self.card(change, here)
            lines.append(
                f"| {title} | {values[level == 0].mean():.4f} | {values[level > 0].mean():.4f} | "
                f"{card['worst']:+.3f} | {card['below']:.1%} |"
            )
        names = sorted(set(self.column("data")[here]))
        return "\n".join(lines) + f"\n\n{len(names)} data sets ({', '.join(names)}), {int(card['cells'])} cells."

    def rules_table(self) -> str:
        names = list(asdict(RULE))
        lines = ["| judged on | " + " | ".join(f"`{n}`" for n in names) + " |", "|---|" + "---:|" * len(names)]
        chosen = [
            *((f"fold {number}", rules) for number, rules in self.rules.items()),
            ("all folds choose", self.chosen),
            ("shipped", SHIPPED_RULES),
        ]
        for branch, words in enumerate(("", ", by heart")):
            for title, rules in chosen:
                values = [
                    "off" if v == NEVER else "any" if v == -NEVER else f"{v:g}" for v in asdict(rules[branch]).values()
                ]
                lines.append(f"| {title}{words} | " + " | ".join(values) + " |")
        return "\n".join(lines)

    def memory_table(self) -> str:
        """How much of contradicted labels each model learns by heart, over all fits."""
        lines = [
            f"| model behind | median | lowest and highest tenth | fits of {MEMORISES:g} or more |",
            "|---|---:|---:|---:|",
        ]
        for m in self.models:
            known = self.records.share_memorised[self.of(m)]
            known = known[~np.isnan(known)]
            if not len(known):
                continue
            low, middle, high = np.quantile(known, (0.1, 0.5, 0.9))
            lines.append(f"| {TITLES[m]} | {middle:.2f} | {low:.2f}, {high:.2f} | {(known >= MEMORISES).mean():.0%} |")
        return "\n".join(lines)

    def heart_table(self) -> str:
        """The two shipped rules, each for every model, and by what the model learns by heart."""
        sides = {
            "the rule for models that smooth": self.records.by(RULE),
            "the rule for models that learn by heart": self.records.by(RULE_MEMORISING),
            "by what the model learns by heart: shipped": self.shipped,
        }
        rows = [([TITLES[m], w], self.card(change, self.of(m))) for m in self.models for w, change in sides.items()]
        return table(rows, ["model behind", "rule"])

    def unseen_table(self) -> str:
        """The shipped rule on problems that no rule was chosen or judged on."""
        card = score_card(pd.read_csv(UNSEEN))
        lines = ["| " + " | ".join(card.columns) + " |", "|---|---|" + "---:|" * (len(card.columns) - 2)]
        for row in card.itertuples(index=False):
            numbers = [show(value, name) for value, name in zip(row[2:], UNSEEN_COLUMNS, strict=True)]
            lines.append(f"| {row[0]} | {row[1]} | " + " | ".join(numbers) + " |")
        return "\n".join(lines)

    def goals_table(self) -> str:
        """Each goal with what was measured on the judged side."""
        cards = {m: self.card(self.judged, self.of(m)) for m in self.models}
        rivals = {m: self.card(self.rival, self.of(m)) for m in self.models}

        def each(name: str, form: str) -> str:
            return ", ".join(f"{TITLES[m]} {card[name]:{form}}" for m, card in cards.items())

        gains = ", ".join(
            f"{TITLES[m]} {cards[m]['poisoned']:+.4f} ({rivals[m]['poisoned']:+.4f})" for m in self.models
        )
        low = [min(card["balanced"], card["balanced_clean"]) for card in cards.values()]
        rows = [
            (
                "clean labels: mean loss at most 0.002",
                each("clean", "+.4f"),
                min(c["clean"] for c in cards.values()) >= -0.002,
            ),
            ("poisoned: SVC + 0.005", f"{cards['svc']['poisoned']:+.4f}", cards["svc"]["poisoned"] >= 0.005),
            (
                "poisoned: above CleanLearning (in brackets) behind every model",
                gains,
                all(cards[m]["poisoned"] > rivals[m]["poisoned"] for m in self.models),
            ),
            ("worst cell -0.03", each("worst", "+.3f"), min(c["worst"] for c in cards.values()) >= -0.03),
            (
                "worst cell of three splits or more",
                each("worst_sure", "+.3f"),
                min(c["worst_sure"] for c in cards.values()) >= -0.03,
            ),
            (
                "at most 2 % of cells more than 0.02 below",
                each("below", ".1%"),
                max(c["below"] for c in cards.values()) <= 0.02,
            ),
            (
                "balanced accuracy not below the plain model, to three digits",
                f"poisoned: {each('balanced', '+.4f')}; clean: {each('balanced_clean', '+.4f')}",
                min(low) >= -0.0005,
            ),
        ]
        lines = ["| goal | measured (judged) | met |", "|---|---|---|"]
        return "\n".join([*lines, *(f"| {goal} | {told} | {'yes' if met else '**no**'} |" for goal, told, met in rows)])

    def peek_table(self) -> str:
        """What choosing the best treatment of each fit on its test labels would gain; first split."""
        split = self.records.plain.index.get_level_values("split").to_numpy()
        kinds = [kind for kind in TRIED if kind in self.records.others]
        changes = np.stack([np.zeros_like(self.judged), self.judged, *(self.records.alone(kind) for kind in kinds)])
        changes[np.isnan(changes)] = 0.0
        top = np.take_along_axis(changes, changes[:, :, :1].argmax(axis=0)[None], axis=0)[0]
        rows = [([TITLES[m]], self.card(top, self.of(m) & (split == 1))) for m in ("svc", "logistic")]
        return table(rows, ["model behind"])

    def tables(self) -> dict[str, str]:
        """Everything that a page can ask for."""
        names = [name.removesuffix("_table") for name in dir(self) if name.endswith("_table")]
        return {name: getattr(self, f"{name}_table")() for name in names} | {"coverage": self.coverage()}

    def long(self) -> pd.DataFrame:
        """One row per fit and method, as the arena's score card wants them."""
        parts = []
        for words, change in (("", 0.0), ("safe ", self.judged), ("cleanlab, ", self.rival), ("FLORAL", self.floral)):
            part = (self.records.plain + change).dropna().reset_index()
            part["method"] = (
                "FloralClassifier()" if words == "FLORAL" else [words + TITLES[name] for name in part["model"]]
            )
            parts.append(part)
        frame = pd.concat(parts).rename(columns={"level_": "level", "balanced": "balanced_accuracy"})
        return frame.assign(seconds=np.nan)


def _span(part: pd.DataFrame) -> str:
    """The number of splits of the cells: one number, or from lowest to highest."""
    if part.empty:
        return ""
    counts = part.groupby(["data", "attack", "level_"]).size()
    return f"{counts.min()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"


def fill(text: str, tables: dict[str, str]) -> str:
    """A page with every marked table written anew; an unknown name is an error."""
    pattern = re.compile(r"(<!-- table: ([a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)
    return pattern.sub(lambda m: f"{m[1]}\n{tables[m[2]]}\n\n{m[3]}", text)


def main() -> None:
    """Read the rows, write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("docs", type=Path)
    given = parser.parse_args()
    note = note_of([part for rows in (given.rows, UNSEEN) for part in kept_parts(beside_merged(rows))])
    arena = Arena(read_rows(given.rows))
    tables = arena.tables()
    for page in (given.docs / "results" / "arena.md", given.docs / "blind.md"):
        print(write_atomically(page, fill(page.read_text(), tables)))
    for written in write_arena(arena.long(), given.docs / "results" / "arena", note):
        print(written)


if __name__ == "__main__":
    main()
