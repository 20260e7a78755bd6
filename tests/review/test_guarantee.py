"""The interval that no attacker can influence: its coverage computed, not tossed."""

from itertools import pairwise

import numpy as np
import pytest

from floral_learn import LabelReview
from floral_learn.review.guarantee import kept, random_order, spent_on, wrong_bounds


def ever_missed(total, wrong, alpha):
    """P(the true number leaves the interval at any time during the whole walk), by a sum over all paths.

    State: wrong labels seen after k steps; paths that have missed are taken out.
    """
    alive = np.zeros(wrong + 1)
    alive[0] = 1.0
    missed = 0.0
    for k in range(1, total + 1):
        seen = np.arange(wrong + 1)
        left = total - (k - 1)
        chance = np.clip((wrong - seen) / left, 0, 1)
        after = alive * (1 - chance)
        after[1:] += (alive * chance)[:-1]
        for w in seen:
            if after[w] > 0 and not kept(total, k, int(w), alpha, np.array([wrong]))[0]:
                missed += after[w]
                after[w] = 0.0
        alive = after
    return missed


@pytest.mark.parametrize("alpha", [0.05, 0.2])
@pytest.mark.parametrize(("total", "wrong"), [(40, 0), (40, 3), (40, 20), (40, 37), (90, 9), (90, 45)])
def test_the_truth_is_ever_lost_with_probability_at_most_alpha(total, wrong, alpha):
    assert ever_missed(total, wrong, alpha) <= alpha


def test_bounds_are_those_of_the_whole_set_of_values():
    rng = np.random.default_rng(0)
    for total, k in ((30, 8), (200, 60), (1000, 25)):
        wrong = rng.random(k) < 0.2
        inside = np.ones(total + 1, dtype=bool)
        for j in range(1, k + 1):
            inside &= kept(total, j, int(wrong[:j].sum()), 0.05, np.arange(total + 1))
        found = np.flatnonzero(inside)
        assert wrong_bounds(total, wrong, 0.05) == (found[0], found[-1])


def test_more_wrong_labels_never_lower_a_bound():
    for total, k in ((50, 12), (300, 40)):
        ends = [wrong_bounds(total, np.arange(k) < w, 0.05) for w in range(k + 1)]
        # the order of a path matters through the running intersection: compare paths that dominate each other
        for less, more in pairwise(ends):
            assert more[1] >= less[1]
            assert more[0] >= less[0]


def test_not_sure_counts_by_the_worst_case():
    wrong = np.zeros(50, dtype=bool)
    unsure = np.zeros(50, dtype=bool)
    unsure[[3, 30]] = True
    low, high = wrong_bounds(1000, wrong, 0.05, unsure)
    assert low == wrong_bounds(1000, wrong, 0.05)[0]
    assert high == wrong_bounds(1000, unsure, 0.05)[1]


def test_a_checked_set_has_an_exact_number():
    wrong = np.arange(30) % 7 == 0
    assert wrong_bounds(30, wrong, 0.05) == (5, 5)


def test_the_walk_is_secret_without_a_seed_and_void_with_one():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    walks = {tuple(LabelReview(X, y).secret["order"]) for _ in range(3)}
    assert len(walks) == 3
    assert LabelReview(X, y).guarantee().valid
    seeded = LabelReview(X, y, random_state=0).guarantee()
    assert not seeded.valid
    assert "void" in str(seeded)


def test_only_the_unbroken_start_of_the_walk_counts():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    review = LabelReview(X, y)
    walk = np.array(review.secret["order"])
    review.answer(walk[[0, 1, 3, 4]].tolist(), y[walk[[0, 1, 3, 4]]])
    assert review.guarantee().checked == 2
    review.answer([int(walk[2])], [1 - y[walk[2]]])
    assert review.guarantee().checked == 5
    assert review.guarantee().wrong == 1


def test_one_question_in_ten_comes_from_the_walk_and_none_where_it_is_not_wanted():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    for share, drawn in ((0.1, 4), (0.0, 0), (0.5, 20)):
        review = LabelReview(X, y, random_share=share)
        for _ in range(40):
            asked = review.questions(1)
            review.answer([asked[0].row], [y[asked[0].row]])
        assert sum(entry["drawn"] for entry in review.history) >= drawn
        assert review.guarantee().checked >= drawn


def test_an_interval_over_seven_appends_misses_no_more_often_than_it_says():
    assert sum(spent_on(0.05, appends) for appends in range(10_000)) <= 0.05
    rng, missed = np.random.default_rng(0), 0
    for _ in range(300):
        wrong, order, ever = np.zeros(0, bool), np.zeros(0, np.intp), False
        for appends, total in enumerate((60, 120, 240, 480, 960, 1500, 2000)):
            wrong = np.r_[wrong, rng.random(total - len(wrong)) < 0.2]
            order = random_order(total, int(rng.integers(2**31)), order)
            seen = np.cumsum(wrong[order[: total // 5]])
            at = np.arange(1, len(seen) + 1)
            ever |= not kept(total, at, seen, spent_on(0.05, appends), np.full(len(seen), wrong.sum())).all()
        missed += ever
    assert missed / 300 <= 0.05


def test_disagreeing_reviewers_count_as_not_sure():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    review = LabelReview(X, y)
    row = int(np.array(review.secret["order"])[0])
    review.answer([row], [y[row]], reviewer="a")
    review.answer([row], [1 - y[row]], reviewer="b")
    assert review.guarantee().unsure == 1
    assert review.guarantee(reviewer="b").wrong == 1


def test_trusted_rows_do_not_stop_the_order():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    review = LabelReview(X, y, trusted=np.arange(60) < 30)
    rows = [int(r) for r in np.array(review.secret["order"]) if r >= 30][:5]
    review.answer(rows, y[rows])
    assert review.guarantee().checked >= 5
    assert review.guarantee().wrong == 0


def test_rows_that_had_an_order_keep_it_among_themselves():
    before = np.random.default_rng(0).permutation(20)
    order = random_order(50, 1, before)
    np.testing.assert_array_equal(order[order < 20], before)
    assert sorted(order) == list(range(50))
