"""Real votes: LabelMe, 1,000 images, 59 people."""

import pytest

from floral_bench.crowds.problems import load_problem
from floral_bench.crowds.real import attacked, load
from floral_bench.crowds.score import calibration_error
from floral_learn import CrowdClassifier, aggregate_votes


@pytest.mark.data("tables/labelme_crowd.npz")
def test_labels_of_real_votes_are_right_and_know_how_sure_they_are():
    problem = load_problem("labelme", "real", 0)
    crowd = CrowdClassifier(random_state=0).fit(problem.X, problem.votes, missing=-1)
    assert (crowd.labels_ == problem.y).mean() >= 0.85
    assert calibration_error(crowd.aggregation_.probability, problem.y) <= 0.05
    assert crowd.score(problem.X_test, problem.y_test) >= 0.84


@pytest.mark.data("tables/labelme_crowd.npz")
@pytest.mark.parametrize(("attack", "level"), [("spam", 0.2), ("collusion", 0.3), ("far", 0.3), ("spam", 0.4)])
def test_decided_labels_of_an_attacked_crowd_are_right_as_often_as_promised(attack, level):
    X, y, votes, classes = load("labelme")
    new, _ = attacked(X, y, votes, classes, attack, level, 3)
    found = aggregate_votes(new, missing=-1, classes=classes, random_state=3)
    right = (found.labels == y)[found.decided].mean()
    assert right >= max(0.85, found.probability.max(axis=1)[found.decided].mean() - 0.03)
    assert found.decided.mean() > 0.2
