"""Cliques, calibration and next tasks, part by part."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from floral_learn import CrowdClassifier, aggregate_votes
from floral_learn.crowd import next_tasks
from floral_learn.crowd.features import softmax_regression


def test_softmax_regression_on_hard_labels_is_logistic_regression():
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(200, 3)), rng.integers(3, size=200)
    Z[np.arange(200), y] += 1.0
    ours = softmax_regression(Z, np.eye(3)[y], penalty=5.0, iterations=500)
    theirs = LogisticRegression(C=0.2, max_iter=1000, tol=1e-8).fit(Z, y)
    centred = ours - ours.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(centred[:3], theirs.coef_.T, atol=0.02)


def dense_crowd(n=150, people=12, per_item=6, accuracy=0.75, k=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    right = rng.random((n, people)) < accuracy
    votes = np.where(right, y[:, None], (y[:, None] + rng.integers(1, k, size=(n, people))) % k)
    keep = np.argsort(rng.random((n, people)), axis=1) < per_item
    return y, np.where(keep, votes, -1)


def test_next_tasks_asks_people_who_have_not_voted_about_unsure_items():
    _, votes = dense_crowd(per_item=2)
    found = aggregate_votes(votes, missing=-1, random_state=0)
    tasks = next_tasks(found, 20)
    assert len(tasks) == 20
    sure = found.probability.max(axis=1)
    assert tasks["probability"].mean() < sure.mean()
    assert all(votes[item, person] == -1 for item, person in zip(tasks["task"], tasks["annotator"]))
    assert tasks["annotator"].nunique() > 1
    with pytest.raises(ValueError, match="at least 1"):
        next_tasks(found, 0)


def test_where_everybody_has_voted_nobody_is_asked():
    _, votes = dense_crowd(n=60, people=5, per_item=5)
    tasks = next_tasks(aggregate_votes(votes, missing=-1, random_state=0), 5)
    assert tasks["annotator"].isna().all()
    assert (tasks["gain"] == 0).all()


def test_asking_where_it_helps_beats_asking_anywhere():
    y, votes = dense_crowd(n=200, per_item=2, seed=3)
    found = aggregate_votes(votes, missing=-1, random_state=0)

    def after(items):
        more = votes.copy()
        for item in items:
            person = int(np.flatnonzero(votes[item] == -1)[0])
            more[item, person] = y[item]
        return float((aggregate_votes(more, missing=-1, random_state=0).labels == y).mean())

    anywhere = np.random.default_rng(0).choice(200, 40, replace=False)
    assert after(next_tasks(found, 40)["task"]) > after(anywhere) + 0.02


def test_probabilities_are_calibrated_on_an_honest_crowd():
    y, votes = dense_crowd(n=600, per_item=3)
    probability = aggregate_votes(votes, missing=-1, random_state=0).probability
    right = (probability.argmax(axis=1) == y).mean()
    # People here share no mistakes, and those of real crowds do: what is allowed for that makes labels less sure.
    assert right - 0.1 < probability.max(axis=1).mean() < right


def test_the_classifier_takes_any_estimator_frames_and_sparse_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=120)
    X = rng.normal(size=(120, 3)) + 3 * y[:, None]
    votes = np.where(rng.random((120, 6)) < 0.5, y[:, None], -1)
    for rows in (pd.DataFrame(X, columns=list("abc")), csr_array(X)):
        crowd = CrowdClassifier(random_state=0).fit(rows, votes, missing=-1)
        assert crowd.score(rows, y) > 0.95
    neighbours = CrowdClassifier(estimator=KNeighborsClassifier(5), random_state=0).fit(X, votes, missing=-1)
    assert isinstance(neighbours.estimator_, KNeighborsClassifier)
    assert neighbours.predict_proba(X).shape == (120, 2)


def two_camps(share, n=240, people=20, per_item=5, accuracy=0.85, k=3, seed=0):
    """Truth, votes of honest people, and of liars who hold `share` of the votes and send each class to the next."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    right = rng.random((n, people)) < accuracy
    votes = np.where(right, y[:, None], (y[:, None] + rng.integers(1, k, size=(n, people))) % k)
    liars = np.arange(people) < round(share * people)
    votes[:, liars] = (y[:, None] + 1) % k
    keep = np.argsort(rng.random((n, people)), axis=1) < per_item
    return y, np.where(keep, votes, -1)


@pytest.mark.parametrize(("share", "decides"), [(0.0, True), (0.2, True), (0.4, False), (0.5, False)])
def test_labels_are_not_decided_where_a_third_or_more_contradict_together(share, decides):
    y, votes = two_camps(share)
    found = aggregate_votes(votes, missing=-1, random_state=0)
    assert found.decided.mean() >= 0.9 if decides else not found.decided.any()
    assert any("contradict the rest" in note for note in found.notes) is not decides
    assert len(found.labels) == len(y)  # nothing is left out of what was there before
    if not decides:
        assert found.probability.max(axis=1)[~found.decided].max() < 0.95
        assert not next_tasks(found, 5)["decided"].any()


def test_features_that_say_nothing_are_not_listened_to():
    y, votes = dense_crowd(n=300, k=2, per_item=3)
    X = np.random.default_rng(5).normal(size=(300, 8))
    alone = (aggregate_votes(votes, missing=-1, random_state=0).labels == y).mean()
    assert (aggregate_votes(votes, X, missing=-1, random_state=0).labels == y).mean() > alone - 0.02


def test_more_people_are_believed_though_fewer_who_never_err_have_more_votes_on_their_side():
    y, votes = two_camps(0.4, n=600, people=80, k=2, accuracy=0.75)
    for_lie = (votes == 1 - y[:, None]).sum() / (votes >= 0).sum()
    assert for_lie > 0.52  # honest mistakes fall on the lie
    assert (aggregate_votes(votes, missing=-1, random_state=0).labels == y).mean() > 0.9


def test_the_evidence_against_somebody_counts_the_answers_it_rests_on():
    """Forty answers, wrong in the later twenty: the words count the twenty tasks that were compared."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 40)
    rows = [(task, f"p{who}", str(label)) for who in range(6) for task, label in enumerate(y)]
    rows += [(task, "sleeper", str(label if task < 20 else 1 - label)) for task, label in enumerate(y)]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    person = aggregate_votes(frame, random_state=0).annotators.set_index("annotator").loc["sleeper"]
    assert person["named"]
    assert "on 0 of 20 tasks, the later half of their answers;" in person["evidence"]
