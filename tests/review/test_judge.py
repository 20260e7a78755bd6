"""Judges held against blind answers: intervals that hold whenever one looks, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy.stats import beta

from floral_learn import aggregate_votes
from floral_learn.review.judge import JudgeReview, bet


def judges(n=400, wrong=(0.1, 0.3), k=2, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    flip = rng.random((n, len(wrong))) < wrong
    return truth, np.where(flip, (truth[:, None] + 1) % k, truth[:, None])


def answered(n=50, **known):
    truth, said = judges(**known)
    review = JudgeReview(said)
    rows = review.ask(n)
    review.answer(rows, truth[rows])
    return review, truth, said


def draws(rng, values, apart, most):
    """Values drawn one after the other without replacement, twice as often where judges disagree."""
    weight, seen, chance = 1.0 + apart, [], []
    for _ in range(most):
        row = rng.choice(len(values), p=weight / weight.sum())
        chance.append(weight[row] / weight.sum())
        seen.append(values[row])
        weight[row] = 0.0
    return np.array(seen), np.array(chance)


@pytest.mark.parametrize("rule", ["fixed", "narrow", "sure"])
def test_intervals_miss_in_at_most_one_review_of_twenty_however_one_stops(rule):
    missed = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n, apart = 200, rng.random(200) < 0.3
        values = (rng.random(n) < np.where(apart, 0.4, rng.uniform(0, 0.3))).astype(float)
        seen, chance = draws(rng, values, apart, 60)
        for t in range(10, 61, 10):
            found = bet(seen[:t], seen[:t], chance[:t], n, 201)
            if {"narrow": found.high - found.low < 0.3, "sure": found.low > 0.1}.get(rule):
                break
        missed += not found.low <= values.mean() <= found.high
    assert missed <= 0.05 * 150


@pytest.mark.parametrize("error", [0.02, 0.1, 0.3, 0.5])
def test_at_fifty_answers_intervals_are_little_wider_than_exact_ones_of_a_fixed_size(error):
    rng, n, widths = np.random.default_rng(0), 2000, []
    for _ in range(20):
        values = (rng.random(50) < error).astype(float)
        found, s = bet(values, values, 1 / (n - np.arange(50)), n), values.sum()
        exact = beta.ppf(0.975, s + 1, 50 - s) - (beta.ppf(0.025, s, 51 - s) if s else 0.0)
        widths.append(((found.high - found.low), exact))
    ours, theirs = np.mean(widths, axis=0)
    assert ours <= 1.3 * theirs


def test_the_report_says_how_often_each_judge_is_wrong_and_who_is_best():
    review, truth, said = answered(120)
    report = review.report()
    for row in report.errors:
        judge = said[:, row["judge"]]
        part = judge == row["class"] if row["class"] != "" else np.ones(len(truth), dtype=bool)
        assert row["low"] <= (judge != truth)[part].mean() <= row["high"]
        assert row["rows"] == part.sum()
    for row in report.totals:
        assert row["low"] <= (truth == row["class"]).sum() <= row["high"]
        assert row["given"] == (said[:, row["judge"]] == row["class"]).sum()
    assert report.best == 0
    assert report.agreement[0]["kappa"] > report.agreement[1]["kappa"]
    assert set(report.disagreements) == set(np.flatnonzero(said[:, 0] != said[:, 1]))


def test_who_cannot_tell_widens_the_interval_and_a_waiting_row_stops_the_count():
    review, truth, _ = answered(40)
    rows = review.ask(10)
    review.answer(rows, truth[rows])
    told = review.report().width
    review.answer(rows, [None] * 10)
    assert review.report().width > told
    later = review.ask(2)
    review.answer(later[1:], truth[later[1:]])
    assert sum(row["answered"] for row in review.report().errors if row["class"] == "") == 2 * 51
    assert review.ask(1)[0] == later[0]


def test_a_review_goes_on_where_it_stopped_and_refuses_another_prompt():
    truth, said = judges()
    review = JudgeReview(said, prompt="Is it spam?")
    rows = review.ask(20)
    review.answer(rows, truth[rows])
    state = json.loads(json.dumps(review.state()))
    again = JudgeReview(said, prompt="Is it spam?").resume(state)
    assert again.report() == review.report()
    assert again.ask(5).tolist() == review.ask(5).tolist()
    refuses("another prompt", JudgeReview(said, prompt="Is it ham?").resume, state)
    refuses("another answers", JudgeReview(1 - said, prompt="Is it spam?").resume, state)


def test_answers_are_gold_for_votes():
    review, truth, said = answered(60)
    found = aggregate_votes(said, gold=review.gold(), random_state=0)
    assert (found.labels == truth)[list(review.gold())].all()


def test_bad_input_is_one_line():
    review, *_ = answered(5)
    asked = review.drawn[0]
    for rows, labels, message in (
        ([asked], [7], "label 7 is given by no judge"),
        ([next(row for row in range(400) if row not in review.drawn)], [0], "was not asked about"),
    ):
        refuses(message, review.answer, rows, labels)
    refuses("one class only", JudgeReview, np.zeros((10, 2)))
    silent = pd.DataFrame({"gpt": [0, 1, 0], "rules": [np.nan] * 3})
    for answers in (silent, silent.to_numpy()):
        refuses("never answers", JudgeReview, answers)
