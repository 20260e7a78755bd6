"""Trusted labels, weights and groups reach whoever asked for them, through pipelines, searches and calibration."""

import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_moons
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from floral_learn import FloralClassifier
from floral_learn.paper import PaperFloralClassifier

X, Y = make_moons(120, noise=0.2, random_state=0)
TRUSTED = np.arange(120) % 4 == 0
WEIGHT = np.where(np.arange(120) < 30, 0.0, 1.0)
GROUPS = np.arange(120) % 6


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(params=[FloralClassifier, PaperFloralClassifier])
def clf(request):
    made = request.param(budget=0.3, n_rounds=60, learning_rate="auto", random_state=0)
    return made.set_fit_request(trusted=True, sample_weight=True).set_score_request(sample_weight=True)


def test_a_pipeline_hands_trust_and_weights_on(clf):
    pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), clf)
    rates = pipe.fit(X, Y, trusted=TRUSTED, sample_weight=WEIGHT)[-1].flip_rate_
    assert rates[TRUSTED].max() == 0  # trusted labels are never flipped
    assert rates[:30].max() == 0  # rows of weight 0 do not play
    assert rates[~TRUSTED].max() > 0


def test_a_search_splits_by_groups_and_hands_the_rest_on(clf):
    pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), clf)
    name = type(clf).__name__.lower()
    scorer = get_scorer("accuracy").set_score_request(sample_weight=True)  # 1.6 asks the pipeline otherwise
    search = GridSearchCV(pipe, {f"{name}__budget": [0.1, 0.3]}, scoring=scorer, cv=GroupKFold(3))
    search.fit(X, Y, trusted=TRUSTED, sample_weight=WEIGHT, groups=GROUPS)
    assert search.best_estimator_[-1].flip_rate_[TRUSTED].max() == 0
    given = {"trusted": TRUSTED, "sample_weight": WEIGHT, "groups": GROUPS}
    found = cross_validate(pipe, X, Y, scoring=scorer, cv=GroupKFold(3), params=given)
    assert np.isfinite(found["test_score"]).all()


def test_calibration_hands_trust_on(clf):
    folds = list(StratifiedKFold(2).split(X, Y))
    found = CalibratedClassifierCV(clf, cv=folds).fit(X, Y, trusted=TRUSTED)
    for (seen, _), part in zip(folds, found.calibrated_classifiers_, strict=True):
        rates = part.estimator.flip_rate_
        assert rates[TRUSTED[seen]].max() == 0 < rates[~TRUSTED[seen]].max()


def test_what_nobody_asked_for_is_refused():
    with pytest.raises(UnsetMetadataPassedError, match="trusted"):
        make_pipeline(StandardScaler(), FloralClassifier(n_rounds=5)).fit(X, Y, trusted=TRUSTED)
