"""The questions suite: cells, one cell run, the card's arithmetic, and resuming."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.svm import SVC
from typer.testing import CliRunner

from floral_bench.experiments import experiment
from floral_bench.figures.cards import draw_by_attack
from floral_bench.questions import ask_and_score
from floral_bench.questions.ask_and_score import run_cell
from floral_bench.questions.card import by_attack, card_text, complete, paired, score_card
from floral_bench.questions.cells import question_cells
from floral_bench.questions.orders import ORDERS, available
from floral_bench.questions.problems import SharedKernelSVC, problem
from floral_learn import find_label_issues
from floral_learn.app import make_app


def test_every_cell_has_a_key_of_its_own_and_quick_is_small():
    cells = question_cells()
    assert len({cell.key for cell in cells}) == len(cells)
    assert len(question_cells(quick=True)) < 60
    assert not [c for c in cells if c.data.name == "satimage" and c.attack.name == "alfa"]


def test_unknown_methods_and_data_are_refused():
    with pytest.raises(ValueError, match="--methods 'guess' is unknown"):
        question_cells(methods=["guess"])
    with pytest.raises(ValueError, match="unknown data set 'sun'"):
        question_cells(data=["sun"])


def test_what_an_audit_lists_first_is_what_the_audit_lists_first():
    X, y = make_blobs(120, centers=2, cluster_std=2.5, random_state=0)
    listed = find_label_issues(X, y, random_state=np.random.default_rng(3)).ranking
    np.testing.assert_array_equal(ORDERS["suspicious"](X, y, np.random.default_rng(3)), listed)


@pytest.mark.parametrize("order", ["review", "suspicious"])
def test_a_cell_scores_every_reading_after_each_number_of_answers(order, monkeypatch):
    monkeypatch.setattr(ask_and_score, "MARKS", (0, 5, 10))
    cells = question_cells(quick=True, methods=[order], data=["iris"])
    cell = next(c for c in cells if c.attack.name == "farthest")
    result = run_cell(cell)
    assert result.error is None
    marks = {(config, int(answers)) for config, answers, metric, _ in result.rows if metric == "accuracy"}
    readings = ["fixed only", "posterior"] + ["answers alone"] * (order == "review")
    assert marks >= {(reading, n) for reading in readings for n in (5, 10)}
    assert ("SVC", 0) in marks
    assert run_cell(cell).rows == result.rows  # repeatable


def test_the_shared_kernel_gives_what_svc_gives():
    data = problem("breast-cancer", 1)
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(len(data.y_train_clean)) < 0.2, -data.y_train_clean, data.y_train_clean)
    weight = rng.uniform(0.1, 2.0, len(labels))
    shared = SharedKernelSVC("breast-cancer", 1).fit(data.X_train, labels, weight)
    plain = SVC().fit(data.X_train, labels, weight)
    np.testing.assert_array_equal(shared.predict(data.X_test), plain.predict(data.X_test))
    with pytest.raises(ValueError, match="all of them must be given"):
        shared.fit(data.X_train[:5], labels[:5])


def test_cells_that_run_together_are_as_those_that_run_alone(monkeypatch):
    monkeypatch.setattr(ask_and_score, "MARKS", (0, 5, 10))
    monkeypatch.setitem(ORDERS, "duals", ORDERS["random"])  # a second order that asks about the same rows
    cells = question_cells(methods=["review", "random", "duals"], data=["iris"], reps=1, levels=[30.0])
    cells = [cell for cell in cells if cell.attack.name == "farthest"]
    runs = []
    monkeypatch.setattr(ask_and_score.LabelReview, "train", _counted(ask_and_score.LabelReview.train, runs))
    together = ask_and_score.run_cells(cells)
    assert len(runs) == 2 * (len(cells) - 1)
    assert [result.rows for result in together] == [run_cell(cell).rows for cell in cells]


def _counted(method, calls):
    def count(*given):
        calls.append(1)
        return method(*given)

    return count


def test_a_cell_that_fails_says_why(monkeypatch):
    cell = question_cells(quick=True, methods=["random"], data=["wine"])[0]
    monkeypatch.setitem(ORDERS, "random", lambda *_: 1 / 0)
    assert run_cell(cell).error.startswith("ZeroDivisionError")


def test_orders_rank_all_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    for name in available():
        ranked = ORDERS[name](X, y, np.random.default_rng(0))
        assert sorted(ranked.tolist()) == list(range(60)), name


def frame():
    rows = []
    for data, attack, level, svc, clean, ours in (
        ("pima", "farthest", 30.0, 0.5, 0.9, 0.8),
        ("pima", "random", 10.0, 0.8, 0.9, 0.9),
        ("phoneme", "clean", 0.0, 0.9, 0.9, 0.88),
    ):
        for split in (1, 2):
            for order, gain in (("review", 0.0), ("random", -0.1)):
                for answers in (10, 20, 50, 100):
                    rows.append(
                        {
                            "group": "tables", "data": data, "attack": attack, "level": level, "split": split,
                            "order": order, "wrong_answers": 0, "reading": "posterior", "answers": answers,
                            "accuracy": ours + gain, "svc": svc, "clean": clean,
                        }
                    )  # fmt: skip
    return pd.DataFrame(rows)


def test_the_card_is_a_ratio_of_means_and_counts_harm_where_little_was_taken():
    card = score_card(frame()).set_index(["order", "answers"])
    ours = card.loc[("review", 10)]
    assert ours["recovered"] == pytest.approx((0.3 + 0.1) / (0.4 + 0.1))
    assert ours["harm_cells"] == 1
    assert ours["worst_harm"] == pytest.approx(-0.02)
    assert ours["worst"] == pytest.approx(-0.02)
    table = by_attack(frame(), "tables")
    assert table.loc[("farthest", 30.0), 10] == pytest.approx(0.75)
    apart = paired(frame(), "tables", 20).set_index("order")
    assert apart.loc["random", "ahead_by"] == pytest.approx(0.1)


def test_outputs_are_written(tmp_path):
    rows = pd.concat([frame().assign(reading=name) for name in ("posterior", "fixed only")])
    found = experiment("questions", {"quick": True})
    written = found.write(rows, tmp_path / "questions", {"command": "floral bench questions"})
    assert all(path.stat().st_size > 0 for path in written)
    assert "| review, posterior | 2 | 80% (88%, 100%) |" in card_text(frame())
    assert pd.read_csv(tmp_path / "questions" / "cells.csv")["splits"].eq(2).all()


def test_rivals_have_as_many_splits_as_ours():
    assert len(complete(frame())) == len(frame())
    lost = frame()[lambda rows: (rows["order"] == "review") | (rows["split"] == 1)]
    assert set(complete(lost)["split"]) == {1}


def test_the_command_resumes(tmp_path, monkeypatch):
    import floral_bench.questions.cells as cells

    monkeypatch.setattr(cells, "QUICK", ("iris",))
    monkeypatch.setattr(ask_and_score, "MARKS", (0, 5, 10))
    arguments = ["bench", "questions", "--quick", "--methods", "random", "--out", str(tmp_path)]
    first = CliRunner().invoke(make_app(), arguments)
    assert first.exit_code == 0, first.output
    assert "3 cells, 0 known" in first.output
    (note,) = (json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.rglob("run.json"))
    assert (note["cells"], note["started"] > "2026") == (3, True)
    assert "3 cells, 3 known" in CliRunner().invoke(make_app(), arguments).output
    (again,) = (json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.rglob("run.json"))
    assert again["seconds"] == note["seconds"] > 0, "the time of the cells, not of a run that had nothing to do"


def test_curves_by_attack_have_one_panel_per_attack_and_level():
    rows = pd.concat([frame().assign(reading=name) for name in ("posterior", "fixed only")])
    panels = [axis.get_title() for axis in draw_by_attack(rows).axes]
    assert panels == ["farthest, 30 %", "random, 10 %"]
