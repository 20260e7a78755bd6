"""No certificate is false: random tiny problems, each promise tried against every set of flips that it covers."""

from itertools import combinations, product

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from floral_learn import CertifiedKernelClassifier, PartitionAggregationClassifier
from floral_learn.paper import RandomizedSmoothingClassifier

LABELS = [(0, 1, 2), (1, 2, 3), (-7, 3, 40), ("ham", "spam", "x"), (False, True)]


def random_flips(rng, labels):
    """What an attacker can do, by label, or None for anything."""
    if rng.random() < 0.4:
        return None
    return {old: [new for new in labels if new != old and rng.random() < 0.6] for old in labels if rng.random() < 0.8}


def random_ridge(rng, possible):
    return CertifiedKernelClassifier(
        kernel=str(rng.choice(["rbf", "linear", "linear", "laplacian"])),
        ridge=float(rng.choice([1e-3, 0.1, 1.0])),
        fit_intercept=bool(rng.integers(2)),
        rank=[None, "auto", 3][rng.integers(3)],
        possible_flips=possible,
    )


def random_smoothing(rng):
    return RandomizedSmoothingClassifier(
        kernel=str(rng.choice(["rbf", "linear"])),
        ridge=float(rng.choice([1e-3, 0.1, 1.0])),
        fit_intercept=bool(rng.integers(2)),
        flip_probability=float(rng.choice([0.01, 0.05, 0.3])),
    )


def random_problem(seed):
    """A classifier, what the attacker can do, rows, labels, weights, trusted labels, and rows to ask about."""
    rng = np.random.default_rng(seed)
    labels = LABELS[rng.integers(len(LABELS))]
    labels = labels[:2] if rng.random() < 0.1 else labels
    n = int(rng.integers(6, 11))
    most = len(labels) - int(rng.random() < 0.7)  # most of the problems have a single label of the last class
    y = np.array(labels)[np.r_[: len(labels), rng.integers(0, most, n - len(labels))]]
    rng.shuffle(y)
    X = rng.normal(size=(n, rng.integers(1, 3))) + rng.integers(0, 4) * (y[:, None] == y[0])
    queries = np.r_[X[:4], 3.0 * rng.normal(size=(20, X.shape[1]))]
    fit_options = {}
    kinds = ["ridge", "smoothing", "black box", *2 * ["ridge voters", "smoothing voters"]]
    kind = rng.choice(kinds)
    if rng.random() < 0.2:
        fit_options["sample_weight"] = rng.integers(1, 4, n).astype(float)
    possible = random_flips(rng, labels) if "ridge" in kind else None
    if kind == "ridge":
        fit_options["trusted"] = rng.random(n) < 0.2
        return random_ridge(rng, possible), possible, X, y, fit_options, queries
    if kind == "smoothing":
        return random_smoothing(rng), possible, X, y, fit_options, queries
    if kind == "black box":
        voter = DecisionTreeClassifier(max_depth=2) if fit_options else KNeighborsClassifier(1)
    else:
        voter = random_ridge(rng, possible) if kind == "ridge voters" else random_smoothing(rng)
    n_partitions = int(rng.integers(2, 5) if kind == "black box" else rng.choice([1, 2, 2, 3]))
    return PartitionAggregationClassifier(voter, n_partitions=n_partitions), possible, X, y, fit_options, queries


def flipped_labels(y, count, possible, reachable):
    """Every labelling with `count` possible flips that leaves no class empty."""
    classes = sorted(set(y.tolist()))
    possible = dict.fromkeys(classes, classes) if possible is None else possible
    may = {old: [new for new in possible.get(old, []) if new != old] for old in classes}
    for rows in combinations(np.flatnonzero(reachable), count):
        for new in product(*(may[y[row].item()] for row in rows)):
            attacked = y.copy()
            attacked[list(rows)] = new
            if len(set(attacked.tolist())) == len(classes):
                yield attacked


def false_certificates(seed, most_flips=2):
    """What was promised and not kept, one line each, and how many predictions were promised something."""
    model, possible, X, y, fit_options, queries = random_problem(seed)
    model.fit(X, y, **fit_options)
    before, certified = model.predict(queries), model.certified_flips(queries)
    reachable = ~fit_options.get("trusted", np.zeros(len(y), dtype=bool))
    broken = []
    for count in range(1, min(certified.max(), most_flips) + 1):
        for attacked in flipped_labels(y, count, possible, reachable):
            after = model.fit(X, attacked, **fit_options).predict(queries)
            broken += [
                f"seed {seed}: {model} survives {certified[j]} flips of {y.tolist()}, but not {attacked.tolist()}"
                for j in np.flatnonzero((after != before) & (certified >= count))
            ]
    return broken, int((certified > 0).sum())


def test_no_certificate_of_two_hundred_problems_is_false():
    # Five of these 200 made false promises while voters did not price a class that their part lacks, and fifteen were
    # refused while `possible_flips` of voters were read as class numbers.
    found = [false_certificates(seed) for seed in range(200)]
    broken = [line for lines, _ in found for line in lines]
    assert not broken, broken[:5]
    assert sum(promised for _, promised in found) > 900


@pytest.mark.slow
def test_no_certificate_of_twenty_thousand_problems_is_false():
    broken = [line for seed in range(1_000, 21_000) for line in false_certificates(seed)[0]]
    assert not broken, broken[:5]
