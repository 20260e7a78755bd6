"""Readings of votes, their average, the mirror image, who is named and what is decided."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floral_learn import aggregate_votes
from floral_learn.crowd import read_votes
from floral_learn.crowd.annotators import benjamini_hochberg, weaker_than_weak
from floral_learn.crowd.readings import (
    PLAIN,
    RICH,
    STRENGTHS,
    Answers,
    Reading,
    fix_known,
    hide_votes,
    majority,
    read,
    stack,
)
from floral_learn.crowd.solve import allow_for_shared_mistakes, other_camp


def crowd(n=200, people=20, per_item=5, knows=0.7, k=3, liars=0.0, seed=0):
    """Truth and votes; a person knows the answer or guesses, and a share of the people sends each class to the next."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    votes = np.where(rng.random((n, people)) < knows, y[:, None], rng.integers(k, size=(n, people)))
    lying = np.arange(people) < round(liars * people)
    votes[:, lying] = (y[:, None] + 1) % k
    return y, np.where(np.argsort(rng.random((n, people)), axis=1) < per_item, votes, -1)


def posteriors(votes, reading, **known):
    answers = Answers.of(votes)
    return read(answers, reading, majority(votes), **known)


@pytest.mark.parametrize("reading", [*PLAIN, *RICH])
def test_every_reading_finds_the_truth_of_an_easy_crowd(reading):
    y, votes = crowd(knows=0.8)
    fit = posteriors(read_votes(votes, missing=-1), reading)
    assert (fit.posterior.argmax(axis=1) == y).mean() > 0.97
    np.testing.assert_allclose(fit.joint.sum(axis=(1, 2)), 1)
    if reading.kinds == 1:
        np.testing.assert_allclose(fit.confusions().sum(axis=2), 1)


def test_the_weakest_strength_is_nearly_dawid_and_skene_and_the_strongest_one_coin():
    y, votes = crowd(n=2000, people=6, per_item=6, k=2)
    votes[:, 0] = np.where((y == 1) & (np.random.default_rng(0).random(2000) < 0.6), 0, y)  # errs on one class only
    given_ = read_votes(votes)
    own = posteriors(given_, Reading(1.0)).confusions()[0]
    coin = posteriors(given_, Reading(1e9)).confusions()[0]
    np.testing.assert_allclose(own, [[1, 0], [0.6, 0.4]], atol=0.05)
    assert coin[0, 0] == pytest.approx(coin[1, 1], abs=1e-3)


def test_known_answers_stay_and_teach():
    y, votes = crowd(people=4, per_item=4, k=2, liars=0.5, knows=0.9)
    gold = np.where(np.arange(len(y)) < 10, y, -1)
    fit = posteriors(read_votes(votes, missing=-1), PLAIN[0], gold=gold)
    assert (fit.posterior[:10].argmax(axis=1) == y[:10]).all()
    assert fit.posterior[:10].max(axis=1) == pytest.approx(1)


def test_hidden_votes_choose_own_matrices_where_people_err_on_one_class_only():
    y, votes = crowd(n=400, people=12, per_item=6, k=2)
    lenient = np.where((y[:, None] == 1) & (np.random.default_rng(0).random(votes.shape) < 0.7), 0, y[:, None])
    votes = np.where((votes >= 0) & (np.arange(12) < 6), lenient, votes)
    given_ = read_votes(votes, missing=-1)
    answers = Answers.of(given_)
    found = stack(answers, hide_votes(answers, np.random.default_rng(0)), majority(given_), None)
    assert found.fits[found.best].reading.strength < max(STRENGTHS)
    assert len(np.unique(found.hidden)) == len(found.hidden)
    assert found.weights.sum() == pytest.approx(1)


def test_people_who_name_one_class_only_do_not_score_and_majority_decides():
    """Labelling functions: nothing of them can be checked, so labels are the majority's, and none is decided."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    fires = rng.random((400, 9)) < np.where(y[:, None] == np.arange(9) % 3, 0.5, 0.08)
    votes = np.where(fires, np.arange(9) % 3, -1)
    votes = votes[(votes >= 0).any(axis=1)]
    found = aggregate_votes(votes, missing=-1, random_state=0)
    shares = found.votes.shares
    assert (shares[np.arange(len(votes)), found.labels] == shares.max(axis=1)).all()
    assert not found.decided.any()
    assert any("majority" in note for note in found.notes)


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("known", [0, 10, 30])
@pytest.mark.parametrize("wrong", [[0], [0, 0], [1], [1, 1], [0, 1]])
def test_one_or_two_voters_decide_nothing_and_it_is_said(wrong, known, features):
    """Nobody can outvote them, liars or not, with a classifier that learned from them or without."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=150)
    X = y[:, None] * 3 + rng.standard_normal((150, 2)) if features else None
    votes = (y[:, None] + np.array(wrong)) % 3
    found = aggregate_votes(votes, X, gold={row: y[row] for row in range(known)} or None, random_state=0)
    assert np.flatnonzero(found.decided).tolist() == list(range(known))
    assert any(("one voter" if len(wrong) == 1 else "two voters") in note for note in found.notes)
    same = found.votes.shares.max(axis=1) == len(wrong)
    if not known and not features:
        assert (found.labels == votes[:, 0])[same].all()
        assert (found.labels[:, None] == votes).any(axis=1).all()


def test_a_third_voter_lets_labels_be_decided():
    y = np.random.default_rng(0).integers(3, size=150)
    votes = np.column_stack([y, y, np.where(np.arange(150) < 30, (y + 1) % 3, y)])
    found = aggregate_votes(votes, random_state=0)
    assert found.decided.any()
    assert (found.labels == y)[found.decided].all()


def test_where_all_answer_at_random_the_majority_decides_and_it_is_said():
    votes = np.random.default_rng(0).integers(2, size=(100, 9))
    found = aggregate_votes(votes, random_state=0)
    assert (found.labels == (votes.mean(axis=1) > 0.5)).all()
    assert not found.decided.any()
    assert any("majority" in note for note in found.notes)


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
    assert found.probability.max(axis=1).mean() < 0.65  # the opposing camp, 3 of 8, has its weight
    assert not found.decided.any()
    assert not found.annotators["named"].any()
    told = aggregate_votes(votes, missing=-1, gold={row: int(y[row]) for row in range(10)}, random_state=0)
    assert (told.labels == y).mean() > 0.95
    assert told.decided.mean() > 0.95
    assert set(told.annotators["annotator"][told.annotators["named"]]) == set(range(5))


@pytest.mark.parametrize("seed", range(6))
def test_liars_who_are_the_majority_decide_nothing(seed):
    """Five of eight lie, four vote on each task, and the honest know little: so looks an honest crowd, too."""
    rng = np.random.default_rng(seed)
    y, right = rng.integers(2, size=80), np.r_[np.full(5, 0.05), rng.uniform(0.6, 0.95, 3)]
    votes = np.where(rng.random((80, 8)) < right, y[:, None], 1 - y[:, None])
    votes = np.where(np.argsort(rng.random((80, 8)), axis=1) < 4, votes, -1)
    assert not aggregate_votes(votes, missing=-1, random_state=0).decided.any()


def test_known_answers_show_that_sure_labels_are_wrong_and_then_none_is_decided():
    y, votes = crowd(n=300, people=8, per_item=8, knows=0.9, k=2)
    misled = np.random.default_rng(1).random(300) < 0.4  # there everybody takes one class for the other
    truth = np.where(misled, 1 - y, y)
    found = aggregate_votes(votes, random_state=0)
    assert (found.labels == truth)[found.decided].mean() < 0.7 < 0.9 < found.decided.mean()
    gold = {row: int(truth[row]) for row in range(30)}
    told = aggregate_votes(votes, gold=gold, random_state=0)
    assert np.flatnonzero(told.decided).tolist() == list(gold)
    assert told.probability[30:].max(axis=1).mean() < 0.85
    honest = aggregate_votes(votes, gold={row: int(y[row]) for row in range(30)}, random_state=0)
    assert honest.decided.mean() > 0.9


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
    found = fix_known(allow_for_shared_mistakes(given_, 0.15, k), gold)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found[:5, 0] == 1).all()
    assert (found[5:].argmax(axis=1) == given_[5:].argmax(axis=1)).all()
    assert (found[5:].max(axis=1) <= given_[5:].max(axis=1) + 1e-12).all()
    assert found[5:].max() <= 0.85 + 0.15 / k + 1e-12


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
    assert other_camp(given_, sure, other)[0] == pytest.approx(liars, abs=0.03)


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
