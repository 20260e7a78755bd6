"""Readings of votes, their average, the mirror image, who is named and what is decided."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floral_learn import aggregate_votes
from floral_learn.app.crowd_page import render
from floral_learn.crowd.agreement import benjamini_hochberg
from floral_learn.crowd.annotators import weaker_than_weak
from floral_learn.crowd.mirror import other_camp, settle
from floral_learn.crowd.readings import STEPS, foretell, hide_votes, majority, read
from floral_learn.crowd.solve import allow_for_shared_mistakes
from floral_learn.labels.votes import read_votes


def crowd(n=200, people=20, per_item=5, knows=0.7, k=3, liars=0.0, seed=0):
    """Truth and votes; a person knows the answer or guesses, and a share of the people sends each class to the next."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    votes = np.where(rng.random((n, people)) < knows, y[:, None], rng.integers(k, size=(n, people)))
    lying = np.arange(people) < round(liars * people)
    votes[:, lying] = (y[:, None] + 1) % k
    return y, np.where(np.argsort(rng.random((n, people)), axis=1) < per_item, votes, -1)


@pytest.mark.parametrize("name", STEPS)
@settings(max_examples=20, deadline=None)
@given(st.integers(1, 5), st.integers(2, 4), st.integers(0, 10**6))
def test_every_step_gives_distributions(name, people, k, seed):
    rng = np.random.default_rng(seed)
    counts = rng.gamma(0.5, 4.0, size=(people, k, k)) * (rng.random((people, k, k)) < 0.7)
    matrix = STEPS[name](counts, None)
    for _ in range(2):
        matrix = STEPS[name](counts, matrix)
        np.testing.assert_allclose(matrix.sum(axis=2), 1)
        assert (matrix >= 0).all()


def test_knowing_or_guessing_is_found_again():
    counts = np.array([[[850.0, 150.0], [150.0, 850.0]]])  # knows 0.7 of the answers, guesses evenly
    matrix = None
    for _ in range(200):
        matrix = STEPS["knows or guesses"](counts, matrix)
    np.testing.assert_allclose(matrix[0], [[0.85, 0.15], [0.15, 0.85]], atol=0.01)


@pytest.mark.parametrize("name", STEPS)
def test_every_reading_finds_the_truth_of_an_easy_crowd(name):
    y, votes = crowd(knows=0.8)
    read_ = read_votes(votes, missing=-1)
    assert (read(read_, STEPS[name], majority(read_)).argmax(axis=1) == y).mean() > 0.97


def test_a_better_reading_foretells_hidden_votes_better():
    y, votes = crowd(liars=0.3)
    given_ = read_votes(votes, missing=-1)
    rest, hidden = hide_votes(given_, np.random.default_rng(0))[0]
    assert len(rest) + len(hidden) == len(given_)
    right, guess = 0.98 * np.eye(3)[y] + 0.01, majority(rest)
    assert foretell(given_, hidden, rest, right).mean() > foretell(given_, hidden, rest, guess).mean()


@pytest.mark.data("tables/music_crowd.npz", "tables/dogs_crowd.npz", "tables/rte_crowd.npz")
@pytest.mark.parametrize(("name", "least"), [("music", 0.78), ("dogs", 0.83), ("rte", 0.92)])
def test_votes_of_real_crowds_alone_are_read_as_well_as_by_the_best_peer(name, least):
    data = np.load(Path(os.environ["FLORAL_DATA"]) / "tables" / f"{name}_crowd.npz")
    votes, y = data["answers"].astype(int), data["y"].astype(int)
    if set(np.unique(y)) == {-1, 1}:
        votes, y = np.where(votes == 0, -1, (votes + 1) // 2), (y + 1) // 2
    found = aggregate_votes(votes, missing=-1, random_state=0)
    assert (found.labels == y).mean() >= least
    chance = 1 / len(found.classes)
    for person in found.annotators.itertuples():  # whoever is named knows less than one answer in five
        mine = votes[:, person.annotator] >= 0
        assert not person.named or (votes[mine, person.annotator] == y[mine]).mean() < chance + 0.2 * (1 - chance)


def test_five_of_eight_who_lie_together_are_not_believed_for_sure():
    y, votes = crowd(people=8, per_item=8, knows=0.9, k=2, liars=5 / 8)
    found = aggregate_votes(votes, missing=-1, random_state=0)
    assert (found.labels == y).mean() < 0.5  # nothing in the votes tells
    assert found.probability.max(axis=1).mean() < 0.6
    assert not found.decided.any()
    assert not found.annotators["named"].any()
    told = aggregate_votes(votes, missing=-1, gold={row: int(y[row]) for row in range(10)}, random_state=0)
    assert (told.labels == y).mean() > 0.95
    assert told.decided.mean() > 0.95
    assert set(told.annotators["annotator"][told.annotators["named"]]) == set(range(5))


def test_honest_crowds_with_weak_people_name_nobody():
    rng = np.random.default_rng(0)
    for seed in range(12):
        _, votes = crowd(k=int(rng.integers(2, 5)), knows=rng.uniform(0.2, 0.95, 20), seed=seed)
        assert not aggregate_votes(votes, missing=-1, random_state=0).annotators["named"].any()


def test_where_half_know_no_more_than_one_answer_in_five_one_honest_crowd_in_twenty_names_somebody_at_most():
    crowds = 40
    some = 0
    for seed in range(crowds):
        rng = np.random.default_rng(seed)
        knows = np.where(rng.random(20) < 0.5, 0.2, rng.uniform(0.5, 0.95, 20))
        _, votes = crowd(k=int(rng.integers(2, 6)), per_item=int(rng.integers(3, 7)), knows=knows, seed=seed)
        some += aggregate_votes(votes, missing=-1, random_state=0).annotators["named"].any()
    assert some <= crowds / 20


def test_p_values_of_weak_but_honest_people_are_as_often_small_as_they_say():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=30)
    for knows, least in ((0.2, 0.03), (0.3, 0.0)):
        said = np.where(rng.random((30, 2000)) < knows, y[:, None], rng.integers(4, size=(30, 2000)))
        given_ = read_votes(said)
        parts = [np.ones(len(given_), dtype=bool), given_.item >= 15]
        p, _ = weaker_than_weak(given_, np.eye(4)[y[given_.item]], parts)
        assert least <= (p <= 0.05).mean() <= 0.06
        assert (p <= 0.01).mean() <= 0.015


def test_who_answers_eighty_questions_at_random_is_named_in_a_third_of_the_cases():
    liars = honest = 0
    for seed in range(5):
        _, votes = crowd(n=320, k=4, seed=seed)
        guesses = np.random.default_rng(seed).integers(4, size=(320, 6))
        votes[:, :6] = np.where(votes[:, :6] >= 0, guesses, -1)
        people = aggregate_votes(votes, missing=-1, random_state=0).annotators.set_index("annotator")
        liars += people.loc[range(6), "named"].sum()
        honest += people.drop(range(6))["named"].sum()
    assert liars >= 10  # of 30
    assert honest == 0


def test_liars_with_many_votes_are_named_with_the_evidence():
    _, votes = crowd(liars=0.2)
    people = aggregate_votes(votes, missing=-1, random_state=0).annotators
    assert set(people["annotator"][people["named"]]) == set(range(4))
    assert people["evidence"][people["named"]].str.contains("a weak but honest person would on").all()
    assert (people["evidence"][~people["named"]] == "").all()


def test_intervals_hold_the_share_of_right_answers():
    held = []
    for seed in range(6):
        y, votes = crowd(knows=np.random.default_rng(seed).uniform(0.2, 0.95, 20), seed=seed, per_item=4)
        for person in aggregate_votes(votes, missing=-1, random_state=0).annotators.itertuples():
            mine = votes[:, person.annotator] >= 0
            held.append(person.low <= (votes[mine, person.annotator] == y[mine]).mean() <= person.high)
    assert np.mean(held) > 0.9


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_benjamini_hochberg_is_the_definition(values):
    p = np.array(values)
    rank = [r for r in range(1, len(p) + 1) if np.sort(p)[r - 1] <= 0.05 * r / len(p)]
    assert benjamini_hochberg(p).sum() == max(rank, default=0)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 6), st.integers(0, 10**6))
def test_mistakes_that_all_share_make_every_label_less_sure_and_change_none(k, seed):
    given_ = np.random.default_rng(seed).dirichlet(np.ones(k), size=30)
    gold = np.where(np.arange(30) < 5, 0, -1)
    found = allow_for_shared_mistakes(given_, gold, 0.12)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found[:5, 0] == 1).all()
    assert (found[5:].argmax(axis=1) == given_[5:].argmax(axis=1)).all()
    assert (found[5:].max(axis=1) <= given_[5:].max(axis=1) + 1e-12).all()
    assert found[5:].max() <= 0.88 + 0.12 / k + 1e-12


def test_decided_labels_are_probable_ones():
    _, votes = crowd(knows=0.5, per_item=3)
    found = aggregate_votes(votes, missing=-1, random_state=0)
    assert 0 < found.decided.mean() < 1
    assert found.probability.max(axis=1)[found.decided].min() >= 0.85


@pytest.mark.parametrize("liars", [0.2, 0.3, 0.4])
def test_the_other_camp_is_as_large_as_the_liars_are_many(liars):
    y, votes = crowd(liars=liars)
    given_ = read_votes(votes, missing=-1)
    sure, other = np.eye(3)[y] * 0.97 + 0.01, np.eye(3)[(y + 1) % 3] * 0.97 + 0.01
    assert other_camp(given_, sure, other) == pytest.approx(liars, abs=0.03)
    mixed, mirror, decided = settle(given_, sure, other, None)
    assert (mirror is other) == (liars > 1 / 3)
    assert decided.all() == (liars < 1 / 3)
    assert (mixed.argmax(axis=1) == y).all()
    assert liars < 1 / 3 or mixed.max() < 0.6


def test_where_a_third_of_the_votes_is_that_of_blocs_nothing_is_decided():
    y, votes = crowd()
    given_ = read_votes(votes, missing=-1)
    sure, other = np.eye(3)[y] * 0.97 + 0.01, np.eye(3)[(y + 1) % 3] * 0.97 + 0.01
    assert settle(given_, sure, other, None, 0.2)[2].all()
    assert not settle(given_, sure, other, None, 0.4)[2].any()


def test_who_copies_is_found_and_who_is_merely_right_is_not():
    _, votes = crowd(n=300, knows=np.r_[0.3, 0.3, np.full(18, 0.8)], per_item=8)
    honest = aggregate_votes(votes, missing=-1, random_state=0).annotators
    assert (honest["agrees_with"] == "").all()
    votes[:, 1] = votes[:, 0]  # one weak person copies another
    found = aggregate_votes(votes, missing=-1, random_state=0).annotators.set_index("annotator")["agrees_with"]
    assert found[0].startswith("1: on ")
    assert found[1].startswith("0: on ")
    assert (found.drop([0, 1]) == "").all()


def test_who_is_honest_at_first_is_named_by_the_later_answers():
    y, votes = crowd(n=400, knows=0.8)
    late = np.arange(400)[:, None] >= 200
    lies = np.where(late & (np.arange(20) < 3), (y[:, None] + 1) % 3, votes)
    people = aggregate_votes(np.where(votes >= 0, lies, -1), missing=-1, random_state=0).annotators
    assert set(people["annotator"][people["named"]]) == {0, 1, 2}
    assert people["evidence"][people["named"]].str.contains("the later half").all()


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_two_judges_of_the_same_make_count_once_and_do_not_win(noise):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300)
    people = np.where(rng.random((300, 5)) < 0.75, y[:, None], 1 - y[:, None])
    lenient = np.where((y == 1) & (rng.random(300) < 0.6), 0, y)
    other = np.where(rng.random(300) < noise, 1 - lenient, lenient)
    found = aggregate_votes(np.column_stack([people, lenient, other]), random_state=0)
    alone = (aggregate_votes(people, random_state=0).labels == y).mean()
    assert (found.labels == y).mean() > alone - 0.01 > (lenient == y).mean() + 0.15
    people_ = found.annotators
    assert set(people_["annotator"][people_["agrees_with"] != ""]) == {5, 6}
    assert "agrees with 6: on " in render(found)
