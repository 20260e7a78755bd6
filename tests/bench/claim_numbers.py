"""Numbers behind sentences of the pages, by formulas over the published rows; see test_suite_claims.py."""

import json
from functools import cache
from pathlib import Path
from statistics import mean  # noqa: F401 (formulas use it)

import pandas as pd

from floral_bench.reporting import summary
from floral_bench.reporting.paper import paper_value
from floral_bench.suites import SUITES

DOCS = Path(__file__).resolve().parents[2] / "docs"
RESULTS = DOCS / "results"


@cache
def table(path: str) -> pd.DataFrame:
    """The rows of a CSV file or of a file with one JSON object per line, under docs/results."""
    file = RESULTS / path
    return pd.read_json(file, lines=True) if file.suffix == ".jsonl" else pd.read_csv(file)


def rows(path: str, **where: object) -> pd.DataFrame:
    """Those rows of a table that have these values; the attack by the beginning of its name."""
    found = table(path)
    for name, value in where.items():
        same = found[name].str.startswith(value) if name == "attack" else found[name] == value
        found = found[same]
    assert len(found), f"{path} has no row with {where}"
    return found


def value(path: str, column: str, **where: object) -> float:
    """The one number of a table at a place."""
    found = rows(path, **where)[column]
    assert found.nunique() == 1, f"{column} of {path} with {where} is {found.nunique()} numbers"
    return float(found.iloc[0])


def average(path: str, column: str, **where: object) -> float:
    """The mean of a column over the rows that are named: draws of IMDB."""
    return float(rows(path, **where)[column].mean())


def accuracy(suite: str, method: str, statistic: str, level: float, column: str = "mean", **where: object) -> float:
    """A mean accuracy of a suite, or the paper's."""
    found = {"method": method, "statistic": statistic, "level": level, **where}
    return value(f"{suite}/accuracy.csv", column, **found)


def gains(suite: str, method: str, statistic: str, other: str, levels: tuple = (), **where: object) -> list[float]:
    """`method` minus `other` in every poisoned cell of a suite, or at these levels."""
    found = rows(f"{suite}/accuracy.csv", statistic=statistic, **where)
    found = found[found.level.isin(levels) if levels else found.level > 0].set_index(["attack", "C", "gamma", "level"])
    both = (found[found.method == method]["mean"] - found[found.method == other]["mean"]).dropna().tolist()
    assert both, f"{suite} does not have {method} and {other}"
    return both


def first(suite: str, statistic: str, method: str = "floral", among: tuple = summary.PAPERS_METHODS) -> list[float]:
    """The poisoned levels at which a method is first among some, or among all of the table; ties included."""
    found = rows(f"{suite}/accuracy.csv", statistic=statistic)
    found = found[(found.level > 0) & (found.method.isin(among) if among else True)].pivot_table(
        index="level", columns="method", values="mean"
    )
    found = found.round(3)
    return found.index[found[method] >= found.max(axis=1)].tolist()


@cache
def counted() -> pd.DataFrame:
    """Every cell of the paper's suites once, as summary.md counts them."""
    suites, _ = summary.against_the_paper(summary.read_suites(RESULTS))
    return summary.once([suite.table for suite in suites])


def leads(statistic: str, column: str = "mean", suite: str = "") -> summary.Leads:
    """How often FLORAL leads in these cells, or in those of one suite."""
    shown = [found.table for found in summary.read_suites(RESULTS) if found.name == suite]
    return summary.leads(shown[0] if suite else counted(), statistic, column)


def defaults(data: str = "") -> list[float]:
    """`FloralClassifier()` less `SVC()` in these cells, on one data set or on all."""
    found = counted()
    found = found[found.data_name == data] if data else found
    return summary.differences(found, "FloralClassifier()", "final", "SVC()")


def over_the_svm(method: str) -> list[float]:
    """A single fit less an SVM of the same C and kernel in these cells."""
    return summary.differences(counted(), method, "final", "svm (libsvm)")


def recovered(order: str, reading: str, answers: int) -> str:
    """Share of what poison took from the tables that right answers give back, in percent."""
    where = {"group": "tables", "order": order, "wrong_answers": 0, "reading": reading, "answers": answers}
    return points(value("questions/scorecard.csv", "recovered", **where), 0)


def note(suite: str, name: str) -> float:
    """A number of a suite's run.json."""
    return json.loads((RESULTS / suite / "run.json").read_text(encoding="utf-8"))[name]


def digits(number: float, count: int) -> str:
    """With so many digits, no minus before zero."""
    text = f"{number:.{count}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def points(difference: float, count: int = 1) -> str:
    """A difference of accuracies or a share in percent, without its sign."""
    return digits(100 * abs(difference), count)


def span(differences: list[float], count: int = 0) -> str:
    """From the smallest to the largest, in points."""
    return f"{points(min(differences), count)} to {points(max(differences), count)}"


def around(differences: list[float]) -> str:
    """From the lowest to the highest, said against zero."""
    words = [
        f"{points(number)} {'above' if number > 0 else 'below'}" for number in (min(differences), max(differences))
    ]
    return f"from {words[0]} to {words[1]}"


def joined(texts: list[str]) -> str:
    """`a, b and c`."""
    return (", ".join(texts[:-1]) + " and " if texts[1:] else "") + texts[-1]


def listed(levels: list[float]) -> str:
    """`15, 20 and 25 %`."""
    return joined([f"{level:g}" for level in levels]) + " %"


def percents(path: str, levels: tuple, **where: object) -> str:
    """The largest mean of a table at each level, in percent."""
    return joined([points(max(rows(path, level=level, **where)["mean"]), 0) for level in levels]) + " %"


def rises(method: str) -> list[float]:
    """What choosing a setting per replication adds to the last round on Moon, by level."""
    return [row.best_of_each - row.one_setting for row in rows("moon/last_round.csv", method=method).itertuples()]


def above_the_paper() -> dict[float, float]:
    """FLORAL's last round on Moon, chosen per replication, less the paper's, by level."""
    found = rows("moon/last_round.csv", method="floral").itertuples()
    return {row.level: row.best_of_each - row.paper for row in found}


def closed(level: float, kind: str = "answers", column: str = "accuracy") -> float:
    """Share of the gap between given and clean labels of IMDB that 100 answers close, ratio of means over draws."""
    path = "imdb-answers/answers.jsonl"
    given, clean = (average(path, "accuracy", level=level, kind=f"{name} labels") for name in ("given", "clean"))
    return (average(path, column, level=level, kind=kind) - given) / (clean - given)


def early(level: float) -> float:
    """The same of a network that was stopped after one epoch."""
    return closed(level, "set up", "asked_encoder")


def encoder(name: str, epoch: int, head: str, statistic: str = "last") -> float:
    """A head on an encoder of IMDB at 40 %, mean over draws; encoders by the beginning of their names."""
    found = rows("imdb-answers/encoders.jsonl", level=40, epoch=epoch, head=head)
    found = found[found.encoder.str.startswith(name)]
    assert found.encoder.nunique() == 1, f"{name} names {found.encoder.unique()}"
    return float(found[statistic].mean())


def off_the_paper(name: str, epoch: int) -> float:
    """The largest difference of SVM and FLORAL, best and last, on such an encoder to the paper's numbers."""
    suite = SUITES["imdb"]
    return max(
        abs(encoder(name, epoch, head, s) - paper_value(suite.paper_table, 40, suite.settings[0], head, "accuracy", s))
        for head in ("svm", "floral")
        for s in ("best", "last")
    )


def say(words: str, holds: object) -> str:
    """`words` where they hold."""
    return words if holds else f"[no longer: {words}]"


def computed(formula: str) -> str:
    """What a formula over the functions of this file gives, as it stands in a sentence."""
    found = eval(formula, globals())
    return f"{found:.3f}" if isinstance(found, float) else str(found)
