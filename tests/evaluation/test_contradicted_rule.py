"""The script that chooses the numbers of ContradictedLabels: what it records, how a rule decides, who judges whom."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

from floral_learn import poison
from floral_learn.datasets.arena import load_arena

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "contradicted_rule.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("contradicted_rule", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["contradicted_rule"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


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
    numbers = {"code": 1, "level": 0.9, "rim": 0.4, "own_in_core": 0.4, "own": 80, "foreign": 90, "check": 0.0}
    return where | numbers | {"check_recall": 0.5, "kind": kind, "accuracy": accuracy, "balanced": accuracy} | given


def test_a_rule_acts_on_the_pattern_with_most_labels_and_only_where_the_check_agrees(script):
    frame = pd.DataFrame(
        [
            row("plain"),
            row("one-way", accuracy=0.7, foreign=10),
            row("one-way", accuracy=0.9, foreign=90),
            row("scattered 0.5", accuracy=0.6, check=0.1),
            row("plain", data="circles"),
            row("one-way", data="circles", accuracy=0.1, check_recall=0.0),
            row("scattered 0.5", data="circles", accuracy=0.2, check=0.1),
            row("plain", data="wine"),
            row("scattered 0.5", data="wine", accuracy=0.6, check=0.1),
            row("plain", data="iris"),
            row("scattered 0.5", data="iris", accuracy=0.3, check=0.001),
            row("one-way", data="iris", accuracy=0.3, own=20),
        ]
    )
    records = script.Records(frame)
    change = pd.Series(records.outcome(script.RULE)[:, 0], index=records.cell.get_level_values("data"))
    np.testing.assert_allclose(change[["moon", "circles", "wine", "iris"]], [0.4, 0.0, 0.1, 0.0])
    never = records.outcome(replace(script.RULE, level=0.95, scattered_gain=script.NEVER))
    assert not never.any()


def test_each_fold_is_judged_by_a_rule_that_has_not_seen_it(script, capsys):
    rows = []
    for fold, (good, core) in enumerate([(0.9, 0.4), (0.9, 0.4), (0.9, 0.4), (0.1, 0.59)]):  # the last would be harmed
        for level_ in (0, 30):
            rows += [row("plain", fold, f"d{fold}", level_), row("scattered 0.5", fold, f"d{fold}", level_, check=-1.0)]
        rows.append(row("one-way", fold, f"d{fold}", 30, good, own_in_core=core))
    records = script.Records(pd.DataFrame(rows))
    fold = records.cell.get_level_values("fold").to_numpy()
    assert script.best(records, fold >= 0).own_in_core < 0.59  # it has seen the harm
    script.judge(records)
    assert capsys.readouterr().out.count("judged") == 4


def test_recorded_cells_say_what_the_estimator_does(script):
    data = load_arena("moon", 1, n_train=400)
    y = poison(data.X_train, data.y_train, attack="class-biased", budget=0.3, random_state=0).y
    rows = script.cell(SVC(), data, y, with_cleanlab=False)
    kinds = [found["kind"] for found in rows]
    assert kinds[0] == "plain"
    (way,) = (found for found in rows if found["kind"] == "one-way")
    assert way["accuracy"] > rows[0]["accuracy"] + 0.2
    assert way["check_recall"] > 0.3
