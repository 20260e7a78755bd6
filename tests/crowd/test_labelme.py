"""Real votes: LabelMe, 1,000 images, 59 people."""

import pytest

from floral_bench.crowds.problems import load_problem
from floral_bench.crowds.score import calibration_error
from floral_learn import CrowdClassifier


@pytest.mark.data("tables/labelme_crowd.npz")
def test_labels_of_real_votes_are_right_and_know_how_sure_they_are():
    problem = load_problem("labelme", "real", 0)
    crowd = CrowdClassifier(random_state=0).fit(problem.X, problem.votes, missing=-1)
    assert (crowd.labels_ == problem.y).mean() >= 0.85
    assert calibration_error(crowd.label_probability_, problem.y) <= 0.06
    assert crowd.score(problem.X_test, problem.y_test) >= 0.84
