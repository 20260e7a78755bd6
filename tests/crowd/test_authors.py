"""One label per row and a column of authors: what their other labels say."""

import numpy as np
import pytest

from floral_learn.crowd.authors import judge_authors


def some_labels(n=400, k=3, people=8, seed=0):
    rng = np.random.default_rng(seed)
    y, who = rng.integers(k, size=n), rng.integers(people, size=n)
    belief = np.where(y[:, None] == np.arange(k), 0.7, 0.3 / (k - 1))
    return y, who, belief


def test_who_avoids_the_truth_makes_own_labels_suspect_and_nobody_elses():
    y, who, belief = some_labels()
    given = np.where(who == 3, (y + 1) % 3, y)
    shift = judge_authors(given, who, belief).shift(belief)
    assert shift[who == 3].min() > 1
    assert shift[who != 3].max() < 0


def test_people_who_are_all_alike_change_nothing():
    y, who, belief = some_labels()
    wrong = np.random.default_rng(1).random(len(y)) < 0.1
    given = np.where(wrong, (y + 1) % 3, y)
    shift = judge_authors(given, who, belief).shift(belief)
    assert np.abs(shift).mean() < 0.4
    assert np.abs(shift).max() < 1


def test_a_person_with_one_label_is_not_judged_by_that_label():
    y, who, belief = some_labels()
    who = who.copy()
    who[0] = 99
    given = y.copy()
    given[0] = (y[0] + 1) % 3
    found = judge_authors(given, who, belief)
    assert abs(found.shift(belief)[0]) < 0.5
    row = found.frame.set_index("annotator").loc[99]
    assert row["high"] - row["low"] > 0.35


@pytest.mark.parametrize("answers", [0, 8])
def test_answers_catch_whom_the_rows_cannot(answers):
    y, who, _ = some_labels(k=2)
    blank = np.full((len(y), 2), 0.5)
    given = np.where(who == 3, 1 - y, y)
    known = np.full(len(y), -1)
    for person in (3, 4):
        mine = np.flatnonzero(who == person)[:answers]
        known[mine] = y[mine]
    shift = judge_authors(given, who, blank, known=known).shift(blank)
    liar, honest = shift[(who == 3) & (known < 0)].mean(), shift[(who == 4) & (known < 0)].mean()
    assert (liar > honest + 0.1) == bool(answers)


def test_weighing_keeps_probabilities():
    y, who, belief = some_labels()
    weighed = judge_authors(np.where(who < 2, (y + 1) % 3, y), who, belief).weigh(belief)
    np.testing.assert_allclose(weighed.sum(axis=1), 1)
    assert (weighed.argmax(axis=1) == y).all()
