"""Votes of liars: the labels behind them, the people behind them, and a classifier."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.svm import SVC

from floral_learn import CrowdClassifier, aggregate_votes, poison_votes


def make_crowd(y, n_annotators=12, per_item=4, accuracy=0.8, seed=0):
    """Table of votes, -1 where there is none; mistakes are uniform."""
    rng = np.random.default_rng(seed)
    classes = np.unique(y)
    votes = np.full((len(y), n_annotators), -1)
    for i in range(len(y)):
        for a in rng.choice(n_annotators, per_item, replace=False):
            votes[i, a] = y[i] if rng.random() < accuracy else rng.choice(classes[classes != y[i]])
    return votes


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(400, 8, n_informative=6, n_classes=3, class_sep=1.5, random_state=0)
    return X, y, make_crowd(y)


def majority(votes):
    counts = np.stack([(votes == c).sum(axis=1) for c in range(votes.max() + 1)], axis=1)
    return counts.argmax(axis=1)


def test_features_and_names_beat_counting_votes(problem):
    X, y, votes = problem
    crowd = CrowdClassifier(random_state=0).fit(X, votes, missing=-1)
    assert (crowd.labels_ == y).mean() > (majority(votes) == y).mean() + 0.01
    assert crowd.aggregation_.probability.shape == (400, 3)
    np.testing.assert_allclose(crowd.aggregation_.probability.sum(axis=1), 1)
    assert CrowdClassifier(estimator=SVC(), random_state=0).fit(X, votes, missing=-1).score(X, y) > 0.85


@pytest.mark.parametrize("attack", ["spam", "pair", "far", "sleeper", "collusion", "targeted"])
def test_liars_with_a_third_of_the_votes_do_not_win(problem, attack):
    X, y, votes = problem
    result = poison_votes(votes, X, y, attack=attack, budget=0.33, missing=-1, random_state=1)
    crowd = CrowdClassifier(random_state=0).fit(X, result.votes, missing=-1)
    assert (crowd.labels_ == y).mean() > (majority(result.votes) == y).mean() + 0.02
    assert (crowd.labels_ == y).mean() > 0.88


def test_the_same_seed_gives_the_same_answer(problem):
    X, _, votes = problem
    first, second = (aggregate_votes(votes, X, missing=-1, random_state=3).probability for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_one_label_per_row_with_names_is_a_crowd_too():
    X, y = load_iris(return_X_y=True)
    who = np.arange(150) % 6
    given = y.copy()
    given[who == 2] = (y[who == 2] + 1) % 3
    found = aggregate_votes(given, X, groups=who, random_state=0)
    assert found.annotators["annotator"][0] == 2
    assert (found.labels == y).mean() > (given == y).mean()
