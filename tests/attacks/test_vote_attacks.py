"""Attacks on votes: who is owned, what changes, and what stays."""

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from sklearn.datasets import load_iris

from floral_learn import poison_votes

X, Y = load_iris(return_X_y=True)
ATTACKS = ["spam", "pair", "far", "sleeper", "collusion", "targeted"]


@pytest.fixture(scope="module")
def votes():
    rng = np.random.default_rng(0)
    said = np.where(rng.random((150, 12)) < 0.8, Y[:, None], rng.integers(3, size=(150, 12)))
    return np.where(rng.random((150, 12)) < 0.5, said, -1)


def attacked(votes, attack, **options):
    return poison_votes(votes, X, Y, attack=attack, missing=-1, random_state=0, **options)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("informed", [False, True])
def test_only_owned_people_change_and_nobody_votes_more(votes, attack, informed):
    before = votes.copy()
    result = attacked(votes, attack, budget=0.3, informed=informed)
    np.testing.assert_array_equal(votes, before)
    differs = result.votes != votes
    assert 0.2 < result.share <= 0.3
    assert result.changed == differs.sum() > 0
    assert set(np.flatnonzero(differs.any(axis=0))) <= set(result.annotators)
    np.testing.assert_array_equal(result.votes == -1, votes == -1)


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_same_seed_gives_the_same_lies(votes, attack):
    np.testing.assert_array_equal(attacked(votes, attack, budget=0.3).votes, attacked(votes, attack, budget=0.3).votes)


def test_pair_sends_each_class_to_the_next(votes):
    informed = attacked(votes, "pair", budget=0.3, informed=True)
    mine = informed.votes[:, informed.annotators]
    assert (mine == (Y[:, None] + 1) % 3)[mine >= 0].all()
    blind = attacked(votes, "pair", budget=0.3)
    own = votes[:, blind.annotators]
    assert (blind.votes[:, blind.annotators] == (own + 1) % 3)[own >= 0].all()


def test_far_lies_where_the_classes_are_clear(votes):
    result = attacked(votes, "far", budget=0.3)
    lied = (result.votes != votes).any(axis=1)
    assert lied[Y == 0].mean() > lied[Y == 1].mean() + 0.3  # setosa is far from the others
    refuses("'far' needs X", poison_votes, votes, attack="far", missing=-1)


def test_sleepers_are_honest_at_first_and_on_gold(votes):
    gold = np.arange(100, 150)
    result = attacked(votes, "sleeper", budget=0.3, gold=gold, order=np.arange(150))
    differs = result.votes != votes
    assert not differs[100:].any()
    assert not differs[:60].any()
    assert differs[80:100].any()
    backwards = attacked(votes, "sleeper", budget=0.3, order=-np.arange(150))
    assert (backwards.votes != votes)[:50].any()


def test_colluders_say_the_same(votes):
    for options in ({}, {"informed": True}):
        result = attacked(votes, "collusion", budget=0.3, **options)
        mine = result.votes[:, result.annotators]
        for row in mine:
            assert len(set(row[row >= 0])) <= 1


def test_targeted_lies_about_one_class_or_region(votes):
    result = attacked(votes, "targeted", budget=0.3, informed=True, source=2)
    assert set(Y[(result.votes != votes).any(axis=1)]) == {2}
    region = attacked(votes, "targeted", budget=0.3, region=0.1)
    assert (region.votes != votes).any(axis=1).sum() <= 16
    refuses("source=5", attacked, votes, "targeted", source=5)


def test_frames_come_back_as_they_were(votes):
    frame = pd.DataFrame(np.where(votes < 0, np.nan, votes), columns=[f"p{i}" for i in range(12)])
    result = poison_votes(frame, X, Y, attack="pair", budget=0.3, random_state=0)
    assert list(result.votes.columns) == list(frame.columns)
    item, person = np.nonzero(votes >= 0)
    long = pd.DataFrame({"task": item, "worker": person, "label": votes[item, person]})
    poisoned = poison_votes(long, X, Y, attack="pair", budget=0.3, random_state=0)
    assert (poisoned.votes["label"] != long["label"]).sum() == poisoned.changed
    assert set(poisoned.votes["worker"][poisoned.votes["label"] != long["label"]]) <= set(poisoned.annotators)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attack": "nope"}, f"choose one of {', '.join(ATTACKS)}$"),
        ({"budget": 1.5}, "budget=1.5 must be a share"),
        ({"informed": True}, "informed=True needs y"),
        ({"annotators": ["x"]}, "nobody called 'x' voted"),
        ({"y": [0, 1]}, "true class of each of the 150 items"),
        ({"X": np.zeros((3, 2))}, "one row for each of the 150 items"),
    ],
)
def test_bad_values_are_named(votes, options, message):
    refuses(message, poison_votes, votes, missing=-1, **options, error=(ValueError, TypeError))


def test_a_parameter_that_an_attack_lacks_is_named(votes):
    with pytest.raises(TypeError, match="'spam' has no parameter share; it has none"):
        poison_votes(votes, missing=-1, attack="spam", share=0.5)


def test_named_people_can_be_owned(votes):
    assert attacked(votes, "pair", annotators=[3, 4]).annotators.tolist() == [3, 4]
