"""DPA: dealing by features alone, the vote formula by brute force, certificates against every flip set."""

from itertools import combinations, product

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from floral_learn import CertifiedKernelClassifier
from floral_learn.certify import PartitionAggregationClassifier
from floral_learn.certify.partition import certified_votes, deal_by_features


def winner_of(counts):
    best = max(counts)
    return next(c for c in range(len(counts)) if counts[c] == best)


def votes_needed(ballots, n_classes):
    """Fewest ballots to rewrite so that the winner changes, by trying all rewritings."""
    start = winner_of([ballots.count(c) for c in range(n_classes)])
    for size in range(len(ballots) + 1):
        for who in combinations(range(len(ballots)), size):
            for new in product(range(n_classes), repeat=size):
                changed = list(ballots)
                for place, label in zip(who, new, strict=True):
                    changed[place] = label
                if winner_of([changed.count(c) for c in range(n_classes)]) != start:
                    return size
    return len(ballots) + 1


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_votes", [1, 2, 3, 4, 5])
def test_the_formula_is_exact_for_every_outcome_of_a_small_vote(n_votes, n_classes):
    for ballots in product(range(n_classes), repeat=n_votes):
        counts = [ballots.count(c) for c in range(n_classes)]
        winner, radius = certified_votes(np.array([ballots]), n_classes)
        assert winner[0] == winner_of(counts)
        assert radius[0] == votes_needed(ballots, n_classes) - 1


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 3), st.integers(1, 6))
def test_property_with_prices_the_cheapest_change_of_ballots_is_found(seed, n_classes, n_votes):
    rng = np.random.default_rng(seed)
    ballots, prices = rng.integers(0, n_classes, size=(1, n_votes)), rng.integers(1, 9, size=(1, n_votes))
    winner, radius = certified_votes(ballots, n_classes, prices)
    least = np.inf
    for other in product(range(n_classes), repeat=n_votes):
        changed = np.array(other) != ballots[0]
        if winner_of([other.count(c) for c in range(n_classes)]) != winner[0]:
            least = min(least, prices[0, changed].sum())
    assert radius[0] == least - 1


def test_voters_that_know_what_they_survive_certify_exactly_with_two_classes():
    rng = np.random.default_rng(0)
    y = np.arange(16) % 2
    X = rng.normal(size=(16, 2)) * 0.3 + 4 * y[:, None]
    base = CertifiedKernelClassifier(gamma=0.1, ridge=1.0)
    model = PartitionAggregationClassifier(base, n_partitions=3).fit(X, y)
    queries = np.r_[X[:6], rng.normal(size=(4, 2)) + 2]
    found, before = model.certified_flips(queries), model.predict(queries)
    assert found.max() >= 2
    black_box = PartitionAggregationClassifier(LogisticRegression(), n_partitions=3).fit(X, y)
    assert black_box.certified_flips(queries).max() == 1
    # every part's regression by an inverse, for all 2^16 label vectors at once
    vectors = np.array(list(product([0, 1], repeat=16)))
    away = (vectors != y).sum(axis=1)
    kernel = lambda A, B: rbf_kernel(A, B, gamma=0.1) + 1  # noqa: E731
    votes = np.zeros((len(vectors), len(queries)))
    for part in range(3):
        rows = np.flatnonzero(model.partition_ == part)
        a = kernel(queries, X[rows]) @ np.linalg.inv(kernel(X[rows], X[rows]) + 1.0 * np.eye(len(rows)))
        own = vectors[:, rows]
        said = (own * 2.0 - 1) @ a.T > 0
        votes += np.where((own == own[:, :1]).all(axis=1)[:, None], own[:, :1] == 1, said)
    turned = (votes > 1.5).astype(int) != before
    fewest = np.array([away[turned[:, j]].min() for j in range(len(queries))])
    assert (found <= fewest - 1).all()
    assert (found == fewest - 1).mean() > 0.7  # less only where a class of a part would be emptied


@pytest.mark.parametrize(
    ("base", "n"),
    [
        (KNeighborsClassifier(1), 10),
        (DecisionTreeClassifier(), 15),
        *(
            pytest.param(base, 18, marks=pytest.mark.slow)
            for base in (LogisticRegression(), KNeighborsClassifier(1), DecisionTreeClassifier())
        ),
    ],
)
def test_no_flip_set_within_the_radius_changes_the_prediction(noisy_blobs, base, n):
    X, y, _ = noisy_blobs(n=n, flips=0, centers=2)
    queries = X[:6]
    make = lambda: PartitionAggregationClassifier(base, n_partitions=5)  # noqa: E731
    prediction, radius = make().fit(X, y).predict(queries), make().fit(X, y).certified_flips(queries)
    assert radius.max() >= 1
    for size in (1, 2):
        for flips in combinations(range(n), size):
            attacked = y.copy()
            attacked[list(flips)] ^= 1
            sure = radius >= size
            np.testing.assert_array_equal(make().fit(X, attacked).predict(queries)[sure], prediction[sure])


def test_radius_is_tight_some_set_of_one_more_flip_turns_a_prediction(noisy_blobs):
    X, y, _ = noisy_blobs(n=10, flips=0, centers=2)
    make = lambda: PartitionAggregationClassifier(KNeighborsClassifier(1), n_partitions=5)  # noqa: E731
    prediction, radius = make().fit(X, y).predict(X), make().fit(X, y).certified_flips(X)
    row = int(np.argmax(radius))
    turned = False
    for flips in combinations(range(10), int(radius[row]) + 1):
        attacked = y.copy()
        attacked[list(flips)] ^= 1
        turned |= make().fit(X, attacked).predict(X[row : row + 1])[0] != prediction[row]
    assert turned


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 12))
def test_property_parts_are_disjoint_even_and_blind_to_row_order(seed, n, parts):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, size=(n, 3)).astype(float)
    dealt = deal_by_features(X, min(parts, n))
    assert sorted(np.concatenate(dealt)) == list(range(n))
    sizes = [len(rows) for rows in dealt]
    assert max(sizes) - min(sizes) <= 1
    shuffled = X[rng.permutation(n)]
    for rows, again in zip(dealt, deal_by_features(shuffled, min(parts, n)), strict=True):
        np.testing.assert_array_equal(X[rows], shuffled[again])


def test_rows_are_sorted_by_the_first_feature_first():
    X = np.array([[2.0, 0.0], [1.0, 9.0], [1.0, 3.0], [0.0, 5.0]])
    assert [rows.tolist() for rows in deal_by_features(X, 2)] == [[3, 1], [2, 0]]


def test_labels_cannot_move_rows_between_parts(noisy_moons):
    X, y, _ = noisy_moons()
    left = PartitionAggregationClassifier(n_partitions=7).fit(X, y)
    right = PartitionAggregationClassifier(n_partitions=7).fit(X, 1 - y)
    np.testing.assert_array_equal(left.partition_, right.partition_)


def test_parts_of_one_class_vote_for_it_and_parallel_equals_serial():
    X = np.arange(12.0)[:, None]
    y = np.array(["a", "b"] * 6)  # two parts: one holds all a, the other all b
    model = PartitionAggregationClassifier(LogisticRegression(), n_partitions=2).fit(X, y)
    assert model.estimators_ == [None, None]
    np.testing.assert_array_equal(model.vote_counts(X), np.ones((12, 2)))
    assert set(model.predict(X)) == {"a"}  # a tie goes to the lower class
    assert model.certified_flips(X).tolist() == [0] * 12
    found = model.certificate(X)
    assert found.flips.tolist() == [0] * 12
    assert found.rows == [None] * 12
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    serial = PartitionAggregationClassifier(n_partitions=4).fit(X, y)
    parallel = PartitionAggregationClassifier(n_partitions=4, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(serial.vote_counts(X), parallel.vote_counts(X))


def test_free_seeds_of_base_estimators_are_fixed_nested_ones_too(noisy_moons):
    X, y, _ = noisy_moons()
    base = DecisionTreeClassifier(max_features=1, splitter="random")
    votes = [PartitionAggregationClassifier(base, random_state=3).fit(X, y).vote_counts(X) for _ in range(2)]
    np.testing.assert_array_equal(*votes)


def test_weights_reach_the_base_and_are_refused_where_it_has_none(noisy_moons):
    X, y, _ = noisy_moons()
    weight = np.where(y == 1, 1e-3, 10.0)
    plain = PartitionAggregationClassifier(LogisticRegression()).fit(X, y)
    tilted = PartitionAggregationClassifier(LogisticRegression()).fit(X, y, sample_weight=weight)
    assert (tilted.predict(X) == 0).sum() > (plain.predict(X) == 0).sum() + 10
    with pytest.raises(ValueError, match="KNeighborsClassifier cannot train with weights"):
        PartitionAggregationClassifier(KNeighborsClassifier(1)).fit(X, y, sample_weight=weight)


def test_a_regressor_cannot_vote(noisy_blobs):
    X, y, _ = noisy_blobs()
    with pytest.raises(ValueError, match="estimator=LinearRegression must be a classifier"):
        PartitionAggregationClassifier(LinearRegression()).fit(X, y)


class KeepsSensors(ClassifierMixin, BaseEstimator):
    """Remembers the metadata that reached it."""

    def fit(self, X, y, sensors=None):
        """Remember."""
        self.classes_, self.sensors_ = np.unique(y), sensors
        return self

    def predict(self, X):
        """The first class."""
        return np.repeat(self.classes_[0], len(X))


def test_metadata_reaches_each_part_for_its_own_rows():
    X, y = np.arange(40.0)[:, None], np.tile([0, 0, 1, 1], 10)
    with sklearn.config_context(enable_metadata_routing=True):
        base = KeepsSensors().set_fit_request(sensors=True)
        voters = PartitionAggregationClassifier(base, n_partitions=3).fit(X, y, sensors=np.arange(40))
        for number, part in enumerate(voters.estimators_):
            assert set(part.sensors_) == set(np.flatnonzero(voters.partition_ == number))
        with pytest.raises(TypeError, match="colour"):
            PartitionAggregationClassifier(base).fit(X, y, colour=1)
    with pytest.raises(TypeError, match="unexpected keyword 'sensors'"):
        PartitionAggregationClassifier(KeepsSensors()).fit(X, y, sensors=np.arange(40))


def test_a_voter_whose_part_lacks_a_class_costs_one_flip_and_possible_flips_name_labels():
    X = np.repeat([[0.0], [1.0], [5.0], [6.0]], 3, axis=0) + 0.01 * np.arange(12)[:, None]
    y = np.repeat(["ham", "ham", "spam", "spam"], 3)
    two = CertifiedKernelClassifier(gamma=1.0, ridge=0.1)
    assert PartitionAggregationClassifier(two, n_partitions=1).fit(X, y).certified_flips([[0.5]])[0] >= 2
    # with a third class that one part does not hold, any row of this part may become that class
    X, y = np.vstack([X, [[20.0]]]), np.append(y, "x")
    voters = PartitionAggregationClassifier(two, n_partitions=2).fit(X, y)
    assert voters.certified_flips([[0.5]]).tolist() == [1]
    never_x = CertifiedKernelClassifier(gamma=1.0, ridge=0.1, possible_flips={"ham": "spam", "spam": ["ham"]})
    assert PartitionAggregationClassifier(never_x, n_partitions=2).fit(X, y).certified_flips([[0.5]])[0] > 1
    foreign = CertifiedKernelClassifier(possible_flips={"egg": ["ham"]})
    with pytest.raises(ValueError, match=r"possible_flips names 'egg', which is not a label; labels are \['ham'"):
        PartitionAggregationClassifier(foreign).fit(X, y)
