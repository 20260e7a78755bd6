"""Every entry of DEFENSES passes scikit-learn's own estimator checks, without anyone naming it here.

Few rounds and epochs: the checks ask about behaviour, not accuracy. One configuration of each class takes all checks in
`make test`; further ones, which train by another solver or compare by another rule, do so in `make test-all`.
"""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from floral_learn.certify import PartitionAggregationClassifier
from floral_learn.floral import FloralClassifier
from floral_learn.paper import DEFENSES, KNNRelabel, RandomizedSmoothingClassifier
from floral_learn.sanitizers import ContradictedLabels, SanitizedClassifier

# Entries that the checks cannot ask: their rows are no arrays of numbers.
TEXTS = {"transformer"}
QUICK = {"n_rounds": 10}
# A row of weight two is one row with a stronger say; a row given twice is two. Each of these methods
# counts rows somewhere, so the two differ by definition and the equivalence check cannot hold.
_COUNTS_ROWS = {
    "LabelNoiseSVC": "the correction spares the diagonal, and two copies of a row have an off-diagonal entry",
    "SanitizedClassifier": "the sanitiser counts every row once, and SVC's gamma='scale' and tolerance see rows",
    "PartitionAggregationClassifier": "rows are dealt to parts one by one",
}


def _expected_failures(estimator):
    reason = _COUNTS_ROWS.get(type(estimator).__name__)
    if isinstance(estimator, RandomizedSmoothingClassifier) and estimator.kernel != "linear":
        reason = "landmarks are drawn among rows"
    if isinstance(getattr(estimator, "sanitizer", None), ContradictedLabels) and not isinstance(
        estimator.estimator, SVC
    ):
        reason = None  # nothing is contradicted in this check, so the weights are the classifier's alone
    if not reason:
        return {}
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


def _quick(name):
    """The defense of that name, as its defaults are but with few rounds or epochs."""
    model = DEFENSES[name]()
    known = model.get_params(deep=False)
    fast = {key: value for key, value in QUICK.items() if key in known}
    return _seeded(model.set_params(**fast))


def _seeded(model):
    """The model with a seed for each of its parts; scikit-learn's checks seed the outermost alone."""
    return model.set_params(**{name: 0 for name in model.get_params() if name.endswith("__random_state")})


CHECKED = [_quick(name) for name in DEFENSES if name not in TEXTS | {"svm"}]  # SVC is scikit-learn's own


@parametrize_with_checks(CHECKED, expected_failed_checks=_expected_failures)
def test_every_defense(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        SanitizedClassifier(KNNRelabel(), SVC()),
        SanitizedClassifier(ContradictedLabels(random_state=0), LogisticRegression()),
    ],
    expected_failed_checks=_expected_failures,
)
def test_the_frame_of_sanitiser_and_classifier(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        FloralClassifier(C=1.0, budget=0.05, n_rounds=100),
        _seeded(DEFENSES["curie"](compare="all")),
        _seeded(DEFENSES["k-lid"](gamma=0.5)),
        RandomizedSmoothingClassifier(kernel="rbf", ridge=0.1),
        PartitionAggregationClassifier(LogisticRegression(), n_partitions=3),
    ],
    expected_failed_checks=_expected_failures,
)
def test_further_configurations(estimator, check):
    check(estimator)
