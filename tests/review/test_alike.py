"""One answer for rows that are nearly the same: it sets all of their labels and counts as one."""

import numpy as np
import pytest
from refusals import refuses

from floral_learn import LabelReview


@pytest.fixture(scope="module")
def fours():
    """40 places with four rows each, nearly the same; two classes, 15 % of the labels wrong."""
    rng = np.random.default_rng(0)
    places = rng.normal(size=(40, 3))
    truth = np.repeat((places[:, 0] > 0).astype(int), 4)
    X = np.repeat(places, 4, axis=0) + 1e-5 * rng.normal(size=(160, 3))
    return X, truth, np.where(rng.random(160) < 0.15, 1 - truth, truth)


@pytest.fixture
def review(fours):
    return LabelReview(fours[0], fours[2], random_state=0)


def others_of(row):
    return [one for one in range(4 * (row // 4), 4 * (row // 4) + 4) if one != row]


def test_nearly_the_same_is_told_from_near():
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(size=(100, 4)), np.full((2, 4), 3.0)])
    X = np.vstack([X, X[:1] + 1e-4, X[1:2] + np.array([0, 0, 0, 0.5])])
    review = LabelReview(X, rng.integers(2, size=len(X)), random_state=0)
    assert [(near[0], bool(same[0])) for near, same in map(review.nearest, (0, 1, 100))] == [
        (102, True),
        (103, False),
        (101, True),
    ]
    near, same = review.nearest(0, 3)
    assert (len(near), same.sum()) == (3, 1)


def test_all_get_the_label_and_estimates_learn_from_one(fours, review):
    X, truth, given = fours
    alone = LabelReview(X, given, random_state=0)
    rows = alone.ask(24)
    for row in rows.tolist():
        if row not in review.answers:
            review.answer(row, truth[row], along=[one for one in others_of(row) if one not in review.answers])
            alone.answer(row, truth[row])
    told = np.array(list(review.answers))
    assert len(told) > len(alone.answers)
    assert (review.labels[told] == truth[told]).all()
    rest = np.setdiff1d(np.arange(160), told)
    assert np.allclose(review.wrong_probability[rest], alone.wrong_probability[rest], atol=1e-12)
    assert review.wrong_share.known == alone.wrong_share.known
    assert review.guarantee() == alone.guarantee()
    assert review.reviewers == alone.reviewers


def test_the_guarantee_waits_until_a_row_is_looked_at_itself(fours, review):
    truth, order = fours[1], review.secret["order"]
    first, second = order[:2]
    review.answer(first, truth[first], along=[second])
    assert review.guarantee().checked == 1
    assert second not in review.ask(160)[: 160 // 20], "no question is spent on it"
    drawn = [row for row, at_random in review.questions(100) if at_random]
    assert drawn[0] == second, "but for the guarantee it is asked"
    review.answer(second, 1 - truth[first])
    assert review.guarantee().checked == 2
    assert review.labels[second] == 1 - truth[first], "what somebody saw counts"


def test_undo_takes_all_back_and_a_file_keeps_them(fours, review, tmp_path):
    truth = fours[1]
    row = int(review.ask()[0])
    review.answer(row, truth[row], along=others_of(row))
    review.save(tmp_path / "r.skops")
    again = LabelReview.load(tmp_path / "r.skops")
    assert again.history == review.history
    assert [entry["along"] for entry in again.history] == [None, row, row, row]
    assert again.ask().tolist() == review.ask().tolist()
    assert sorted(again.undo()) == sorted([row, *others_of(row)])
    assert again.answers == {}
    assert again.ask().tolist() == [row]


def test_along_is_for_one_row(review):
    refuses("along names rows that are like the one of rows, which has 2", review.answer, [0, 1], [0, 0], along=[2])
    refuses("same row twice", review.answer, 0, 0, along=[0])
    refuses("from 0 to 159", review.answer, 0, 0, along=[160])
    assert review.answers == {}
