"""Whole reviews against stored numbers: rows asked, labels and probabilities of two, three and grouped classes.

Write the numbers again, after a change that is meant to change them: python tests/review/test_golden.py
"""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.svm import SVC

from floral_learn import LabelReview, poison

GOLDEN = Path(__file__).with_name("golden.json")


def cases():
    """Name to rows, true labels, given labels and options."""
    X, y = make_moons(150, noise=0.2, random_state=0)
    far = poison(X, y, attack="farthest", budget=0.2).y
    rng = np.random.default_rng(0)
    blobs, four = make_blobs(160, centers=4, cluster_std=1.5, random_state=1)
    turned = np.where((four == 2) & (rng.random(160) < 0.7), 0, four)
    groups = rng.integers(0, 5, 150)
    by_group = np.where((groups == 2) & (rng.random(150) < 0.7), 1 - y, y)
    flowers, kinds = load_iris(return_X_y=True)
    names = load_iris().target_names[kinds]
    noisy = names.copy()
    noisy[rng.permutation(150)[:30]] = "virginica"
    return {
        "moons, far flips": (X, y, far, {}),
        "four blobs, one turned": (blobs, four, turned, {}),
        "moons, one group lies": (X, y, by_group, {"groups": groups}),
        "sparse iris, one class grows": (sparse.csr_matrix(flowers), names, noisy, {}),
        "moons, some trusted and weighted": (
            X, y, far, {"trusted": np.arange(150) < 20, "sample_weight": np.linspace(0.5, 1.5, 150)},
        ),
    }  # fmt: skip


def told(X, y, given, options):
    """Fourteen answers, and what is known after them."""
    review = LabelReview(X, given, random_state=0, **options)
    for turn in range(14):
        rows = review.ask(1)
        review.answer(rows, [None] if turn == 5 else y[rows], reviewer="Ada" if turn % 5 else "Bea")
    wrong = review.wrong_probability
    model = review.train(SVC())
    return {
        "asked": [entry["row"] for entry in review.history],
        "next": review.ask(3).tolist(),
        "wrong_probability": wrong[:: len(wrong) // 12].round(4).tolist(),
        "mean": round(float(wrong.mean()), 4),
        "changed": np.flatnonzero(review.labels != review.given).tolist(),
        "trained": np.flatnonzero(np.asarray(review.training["label"]) != review.given).tolist(),
        "weights": np.asarray(review.training["weight"])[:: len(wrong) // 12].round(3).tolist(),
        "reviewers": {name: round(rate, 4) for name, rate in review.reviewers.items()},
        "guarantee": [round(review.guarantee().low, 4), round(review.guarantee().high, 4)],
        "score": round(float(model.score(X, y)), 3),
    }


@pytest.mark.parametrize("name", list(cases()))
def test_a_review_says_what_it_said(name):
    want, have = json.loads(GOLDEN.read_text())[name], told(*cases()[name])
    for part, value in want.items():
        if part in ("wrong_probability", "weights", "mean", "guarantee", "score"):
            np.testing.assert_allclose(have[part], value, atol=2e-3, err_msg=part)
        elif part == "reviewers":
            assert have[part] == pytest.approx(value, abs=2e-3)
        else:
            assert have[part] == value, part


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(told(*case))}" for name, case in cases().items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
