"""The questions suite: problems, cells, one cell run, the card's arithmetic, and resuming."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from floral_bench.experiments import experiment
from floral_bench.questions import ask_and_score, card, fresh
from floral_bench.questions.ask_and_score import run_cell
from floral_bench.questions.cells import MARKS, WHO, question_cells
from floral_bench.questions.peers import WEIGHTS, fixed_labels
from floral_bench.questions.problems import KINDS, REPORT, ClassLostError, flipped, split
from floral_learn.app import make_app


def test_every_cell_has_a_key_of_its_own_and_quick_is_small():
    cells = question_cells()
    assert len({cell.key for cell in cells}) == len(cells)
    assert len(question_cells(quick=True)) < 150
    assert {dict(cell.method.params)["who"] for cell in cells} == set(WHO)


def test_nothing_is_reported_on_data_that_rules_were_chosen_on():
    chosen = {"pima", "phoneme", "spambase", "elec2", "mnist-1-7", "trec", "digits", "mnist", "satimage"}
    reported = {name for names in REPORT.values() for name in names}
    assert {cell.data.name for cell in question_cells()} == reported
    assert not chosen & reported


def test_unknown_methods_are_refused():
    with pytest.raises(ValueError, match="--methods 'guess' is unknown"):
        question_cells(methods=["guess"])


@pytest.mark.parametrize(("kind", "level"), KINDS)
@pytest.mark.parametrize("name", ["breast-cancer", "wine"])
def test_as_many_labels_are_flipped_as_the_level_says(name, kind, level):
    X, _, y, _ = split(name, 0)
    given = flipped(kind, level / 100, X, y, np.random.default_rng(0))
    assert (given != y).sum() == int(level / 100 * len(y))
    if kind == "one class":
        assert len(np.unique(y[given != y])) == 1 or (y == y.max()).sum() < (given != y).sum()


def test_flips_that_take_a_whole_class_are_named():
    X, _, y, _ = split("wine", 0)
    with pytest.raises(ClassLostError):
        flipped("one class", 0.5, X, y, np.random.default_rng(0))


@pytest.mark.parametrize("who", [who for who in WEIGHTS if who != "uncertainty"])
def test_peers_fix_one_more_label_at_a_time_until_all_are_right(who):
    X, _, y, _ = split("wine", 0)
    given = flipped("random", 0.3, X, y, np.random.default_rng(0))
    wrong = [int((labels != y).sum()) for labels in fixed_labels(who, X, y, given, 0)]
    assert len(wrong) == len(y)
    assert wrong[-1] == 0
    assert set(-np.diff([(given != y).sum(), *wrong])) == {0, 1}


@pytest.mark.parametrize("who", ["review", "random-weight-10"])
def test_a_cell_scores_after_each_number_of_answers_and_is_repeatable(who, monkeypatch):
    monkeypatch.setattr(ask_and_score, "MARKS", (5, 10))
    cell = next(c for c in question_cells(quick=True, methods=[who]) if c.data.name == "breast-cancer")
    result = run_cell(cell)
    assert result.error is None, result.traceback
    found = {(config, statistic) for config, statistic, metric, _ in result.rows if metric == "accuracy"}
    assert found >= {("SVC", "given"), ("SVC", "clean"), ("SVC", "5"), ("SVC", "10")}
    assert (("unweighted", "10") in found) == (who == "review")
    assert run_cell(cell).rows == result.rows


def frame():
    """Three data sets, two kinds of flips, two splits; the review brings more than random rows; one takes nothing."""
    rows = []
    for data, svc, gain in (("a9a", 0.5, 0.3), ("magic04", 0.6, 0.2), ("catdog", 0.7, 0.0)):
        for kind, level in (("far", 30.0), ("clean", 0.0)):
            for number in (0, 1):
                for who, less in (("review", 0.0), ("random", 0.1)):
                    for answers in MARKS:
                        given = svc if level else 0.9
                        rows.append(
                            {"group": "tables", "data": data, "kind": kind, "level": level, "split": number,
                             "rows": 500, "who": who, "wrong": 0, "groups": "none", "model": "SVC", "answers": answers,
                             "accuracy": given + (gain - less if level else -0.01), "given": given, "clean": 0.9,
                             "left": 0.5, "covered": 1.0, "width": 1.5}
                        )  # fmt: skip
    return pd.DataFrame(rows)


def test_a_share_is_one_of_sums_with_an_interval_over_data_sets():
    wide = card.hurt(card.wide_frame(frame()))
    assert len(wide) == 6
    assert card.recovered(wide)[0] == pytest.approx((0.3 + 0.2 + 0.0) / (0.4 + 0.3 + 0.2))
    low, high = card.intervals(wide)
    assert low[0] == 0
    assert high[0] == pytest.approx(0.75)
    assert np.isnan(card.intervals(wide[wide["data"] != "a9a"])).all(), "two data sets have no interval"
    table = card.peers_table(frame()).set_index("who chooses the rows")
    assert table.loc["review", "10 answers"] == "56 [0, 75] (67)"
    assert table.loc["random", "cases"] == 6


def test_harm_is_counted_where_little_was_lost():
    line = card.harm_table(frame()).iloc[0]
    assert line["groups that lost at most 0.02"] == "3"
    assert line["there: worst"].startswith("-0.010")
    assert "| 30 |" not in card.card_text(frame())


def test_the_command_resumes_and_leaves_a_card(tmp_path, monkeypatch):
    monkeypatch.setattr(ask_and_score, "MARKS", (5, 10))
    arguments = ["bench", "questions", "--quick", "--methods", "random", "--levels", "30", "--out", str(tmp_path)]
    first = CliRunner().invoke(make_app(), arguments)
    assert first.exit_code == 0, first.output
    assert "10 cells, 0 known" in first.output
    assert "10 cells, 10 known" in CliRunner().invoke(make_app(), arguments).output
    assert {path.name for path in (tmp_path / "questions-quick").iterdir()} == {
        "card.md", "cells.csv", "run.json", "answers.png",
    }  # fmt: skip
    assert experiment("questions", {"quick": True}).cells


def test_fresh_problems_are_of_many_kinds_and_their_intervals_are_counted(monkeypatch):
    problems = [fresh.problem(number) for number in (0, 1, 2, 3, 5)]
    for X, y, given in problems:
        assert len(X) == len(y) == len(given)
        assert (y != given).mean() <= 0.45
    assert len({X.shape for X, _, _ in problems}) == len(problems)
    monkeypatch.setattr(fresh, "MARKS", (2, 4))
    table = fresh.coverage([0, 1], jobs=1)
    assert table["problems"].tolist() == [2, 2]
    assert table["right answers"].tolist() == [2, 4]
