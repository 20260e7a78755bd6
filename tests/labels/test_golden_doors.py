"""What every door to the evidence about labels says of a few small cells does not change unnoticed.

golden_doors.json holds the numbers; after a change that was meant to change them, write the file again by

    python tests/labels/test_golden_doors.py

The doors are `find_label_issues`, `FloralClassifier.label_issues` and `ContradictedLabels`; each cell is a few numbers
that change when any row is judged differently.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from floral_learn import ContradictedLabels, FloralClassifier, find_label_issues, poison

FILE = Path(__file__).with_name("golden_doors.json")
DIGITS = 3


def cells():
    """Name -> rows, true labels and given labels, all small."""
    wine, cancer = load_wine(return_X_y=True), load_breast_cancer(return_X_y=True)
    moons = make_moons(250, noise=0.2, random_state=0)
    for name, (X, y), attack in (
        ("wine, random", wine, "random"),
        ("cancer, class-biased", cancer, "class-biased"),
        ("moons, farthest", moons, "farthest"),
    ):
        rows = scale(X)[:300]
        yield name, rows, y[:300], poison(rows, y[:300], attack=attack, budget=0.15, random_state=0).y


def summary(values):
    """Mean, and a mean weighted by the place of each row, so that two rows that change places are noticed."""
    values = np.nan_to_num(np.asarray(values, dtype=float))
    return [
        round(float(values.mean()), DIGITS),
        round(float(values @ np.linspace(0, 2, len(values)) / len(values)), DIGITS),
    ]


def of_audit(X, given, **options):
    found = find_label_issues(X, given, random_state=0, **options)
    return {
        "score": summary(found.score),
        "flagged": int(found.flagged.sum()),
        "first": found.ranking[:5].tolist(),
        "given probability": summary(found.probability[np.arange(len(given)), found.given]),
        "suggested": summary(found.suggested),
    }


def of_label_issues(X, given):
    frame = FloralClassifier(n_rounds=100, tol=None, random_state=0).fit(X, given).label_issues()
    ranked = frame.sort_values("row")
    return {
        "score": summary(ranked["score"]),
        "flagged": int(frame["flagged"].sum()),
        "first": frame["row"][:5].tolist(),
        "suggested": summary(ranked["suggested"]),
    }


def of_contradicted(X, given, model=None):
    rule = ContradictedLabels(model=model, random_state=0)
    rule.fit_resample(X, given)
    return {"wrong": summary(rule.wrong_probability_), "kept": len(rule.sample_indices_)}


def compute():
    """Every cell as it is now: "door: cell" -> numbers."""
    found = {}
    every = list(cells())
    for name, X, _, given in every:
        found[f"find_label_issues: {name}"] = of_audit(X, given)
        found[f"label_issues: {name}"] = of_label_issues(X, given)
        found[f"ContradictedLabels: {name}"] = of_contradicted(X, given)
    _, X, truth, given = every[-1]
    found["find_label_issues: a model"] = of_audit(X, given, model=LogisticRegression())
    chances = np.where(np.arange(2) == truth[:, None], 0.8, 0.2)
    found["find_label_issues: probabilities"] = of_audit(X, given, pred_probs=chances)
    groups = np.where(given != truth, "cy", np.array(["ann", "bob"])[np.arange(len(given)) % 2])
    found["find_label_issues: groups"] = of_audit(X, given, groups=groups)
    found["ContradictedLabels: linear"] = of_contradicted(X, given, LogisticRegression())
    return found


@pytest.fixture(scope="module")
def now():
    return compute()


GOLDEN = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


@pytest.mark.parametrize("cell", GOLDEN)
def test_a_door_says_what_it_said(now, cell):
    assert set(now) == set(GOLDEN), "run python tests/labels/test_golden_doors.py"
    for name, before in GOLDEN[cell].items():
        whole = isinstance(before, int) or name == "first"
        np.testing.assert_allclose(now[cell][name], before, rtol=0, atol=0 if whole else 0.0015, err_msg=name)


if __name__ == "__main__":
    lines = [f" {json.dumps(cell)}: {json.dumps(numbers)}" for cell, numbers in compute().items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
