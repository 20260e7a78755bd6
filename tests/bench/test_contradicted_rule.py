"""The scripts that choose the numbers of ContradictedLabels: what they record, how a rule decides, who judges whom."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from floral_bench.arena_data import load_arena
from floral_bench.reporting.making import Making, makings
from floral_learn import poison

FOLDER = Path(__file__).parents[2] / "benchmarks"


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def script():
    return load("contradicted_rule")


@pytest.fixture(scope="module")
def recorder():
    return load("arena_record")


def row(kind, fold=0, data="moon", level_=30, accuracy=0.5, **given):
    where = {
        "model": "svc",
        "fold": fold,
        "data": data,
        "attack": "class-biased",
        "level_": level_,
        "split": 1,
        "n": 400,
    }
    numbers = {"code": 1, "level": 0.9, "rim": 0.4, "own_in_core": 0.4, "own": 80, "foreign": 90, "share": 0.5}
    check = {"clumped": 0.0, "check_errors": 0.0, "check_recall": 0.5, "recall_errors": 3.0, "memorised": np.nan}
    return where | numbers | check | {"kind": kind, "accuracy": accuracy, "balanced": accuracy} | given


def test_a_rule_acts_on_the_pattern_with_most_labels_and_only_where_the_check_agrees(script):
    rule = replace(script.RULE, scattered_errors=2.0)
    frame = pd.DataFrame(
        [
            row("plain"),
            row("one-way", accuracy=0.7, foreign=10, code=0),
            row("one-way", accuracy=0.9, foreign=90),
            row("mixed 0", accuracy=0.6, check_errors=9.0),
            row("plain", data="circles"),
            row("one-way", data="circles", accuracy=0.1, check_recall=0.0),
            row("mixed 0", data="circles", accuracy=0.2, check_errors=9.0),
            row("plain", data="wine"),
            row("mixed 0", data="wine", accuracy=0.6, check_errors=9.0),
            row("plain", data="iris"),
            row("mixed 0", data="iris", accuracy=0.3, check_errors=1.0),
            row("one-way", data="iris", accuracy=0.3, own=20),
            row("plain", data="pima"),
            row("mixed 0", data="pima", accuracy=0.3, check_errors=9.0, share=0.1),
            row("one-way", data="pima", accuracy=0.3, share=0.1),
            row("plain", data="htru2"),
            row("mixed 0", data="htru2", accuracy=0.3, check_errors=-1.0),
            row("one-way", data="htru2", accuracy=0.3, clumped=8.0),
            row("plain", data="nobody asked"),
        ]
    )
    records = script.Records(frame)
    change = pd.Series(records.by(rule)[:, 0], index=records.cell.get_level_values("data"))
    names = ["moon", "circles", "wine", "iris", "pima", "htru2"]
    np.testing.assert_allclose(change[names], [0.4, 0.0, 0.1, 0.0, 0.0, 0.0])
    never = replace(rule, level=0.95, scattered_errors=script.NEVER)
    assert not records.by(never).any()
    by_heart = script.Records(frame.assign(memorised=np.where(frame.data == "moon", 0.8, 0.1)))
    change = pd.Series(by_heart.outcome((rule, never))[:, 0], index=by_heart.cell.get_level_values("data"))
    np.testing.assert_allclose(change[names], [0.0, 0.0, 0.1, 0.0, 0.0, 0.0])  # moon's fit is the other rule's
    assert np.isnan(records.alone("cleanlab")).all()
    np.testing.assert_allclose(np.nansum(records.alone("mixed 0")[:, 0]), 0.1 - 0.3 + 0.1 - 0.2 - 0.2 - 0.2)


@pytest.mark.slow  # the whole grid of rules, four times
def test_each_fold_is_judged_by_a_rule_that_has_not_seen_it(script):
    rows = []
    for fold, (good, core) in enumerate([(0.9, 0.4), (0.9, 0.4), (0.9, 0.4), (0.1, 0.59)]):  # the last would be harmed
        for level_ in (0, 30):
            rows += [row("plain", fold, f"d{fold}", level_), row("mixed 0", fold, f"d{fold}", level_)]
        rows.append(row("one-way", fold, f"d{fold}", 30, good, own_in_core=core))
    records = script.Records(pd.DataFrame(rows))
    assert script.best(records, records.fold >= 0)[0].own_in_core < 0.59  # it has seen the harm
    judged, rules = script.judge(records)
    assert sorted(rules) == [0, 1, 2, 3]
    gained = pd.Series(judged[:, 0], index=records.fold)
    assert gained[0].max() > 0.3


def test_recorded_cells_say_what_the_estimator_does(recorder):
    pytest.importorskip("cleanlab")
    data = load_arena("moon", 1, n_train=400)
    y = poison(data.X_train, data.y_train, attack="class-biased", budget=0.3, random_state=0).y
    rows = recorder.cell(SVC(), data, y, every=False)
    assert [found["kind"] for found in rows[:2]] == ["plain", "cleanlab"]
    (way,) = (found for found in rows if found["kind"] == "one-way")
    assert way["accuracy"] > rows[0]["accuracy"] + 0.2
    assert way["check_recall"] > 0.3
    assert abs(way["clumped"]) < 3
    assert all("accuracy" in found for found in recorder.cell(LogisticRegression(), data, y, every=True))
    (first, *_) = recorder.cell(SVC(), data, y, every=False, only="memory")
    assert first == {"kind": "memory", "memorised": rows[0]["memorised"]}


def test_recording_goes_on_where_it_stopped(recorder, tmp_path):
    pytest.importorskip("cleanlab")
    task = (tmp_path, ["logistic"], "cheap", "iris", 2, 60)
    making = Making("python benchmarks/arena_record.py", {"commit": "abc1234", "system": "here"}, "2026-01-01T00:00:00")
    assert recorder.run_task(*task, end=0, making=making) == "", "nothing is begun after the end"
    assert not list(tmp_path.glob("rows/*"))
    told = recorder.run_task(*task, end=float("inf"), making=making)
    assert "19 cells" in told
    assert " 0 cells" in recorder.run_task(*task, end=float("inf"), making=making)
    (part,) = tmp_path.glob("rows/*.csv")
    frame = pd.read_csv(part)
    assert set(frame[frame.kind == "plain"].level_) == {0, 10, 20, 30}
    (made,) = makings(tmp_path / "rows")
    assert (made.cells, made.environment["commit"]) == (19, "abc1234")
    assert made.seconds > 0
    assert next(recorder.plan_tasks("svc+forest:alfa:2-3")) == (["svc", "forest"], "alfa", "spambase", 2)


def test_confident_suspects_have_a_threshold_per_class(recorder):
    shares = np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.7, 0.3], [0.55, 0.45]])
    codes = np.array([0, 0, 0, 1, 1])  # class 1 is always outvoted; its labels have 0.375 on average
    np.testing.assert_array_equal(recorder.confident_suspects(shares, codes), [False, False, True, False, False])
    assert recorder.restoring_weights(shares, codes).tolist() == [1.0, 1.0, 1.0, 1.5, 1.5]


def test_cleanlab_gets_held_out_probabilities_and_says_what_it_would_train_with(recorder):
    pytest.importorskip("cleanlab")
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 100)
    shares = np.where(np.eye(2)[codes] > 0, 0.9, 0.1) + rng.normal(size=(200, 2)) * 0.02
    shares = np.clip(shares, 0.01, None)
    shares /= shares.sum(axis=1, keepdims=True)
    wrong = rng.choice(100, 20, replace=False)
    codes[wrong] = 1
    weights = recorder.cleanlab_weights(LogisticRegression(), shares, codes)
    assert (weights[wrong] == 0).mean() > 0.3  # those that look at least as typical as the average
    assert (weights[np.setdiff1d(np.arange(200), wrong)] > 0).all()
    assert (weights[codes == 0] > 1.1).all()  # makes up for the lost ones
    np.testing.assert_allclose(recorder.calibrated(shares, codes).sum(axis=1), 1.0)


def test_the_tables_of_the_pages_are_those_of_the_rows():
    docs = FOLDER.parent / "docs"
    rows = docs / "results" / "arena" / "records.csv.gz"
    if not rows.exists():
        pytest.skip("docs are not part of the source archive")
    pages = load("arena_pages")
    tables = pages.Arena(pages.read_rows(rows)).tables()
    for page in (docs / "results" / "arena.md", docs / "blind.md"):
        text = page.read_text(encoding="utf-8")
        assert pages.fill(text, tables) == text, f"python benchmarks/arena_pages.py {rows.name} docs"
    with pytest.raises(KeyError, match="nothing"):
        pages.fill("<!-- table: nothing -->\n<!-- end -->", tables)
