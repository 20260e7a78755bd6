"""The sentence about who is ahead: right winner, honest interval, and nobody who was told the answer."""

from types import SimpleNamespace

import numpy as np
import pandas as pd

from floral_bench.reporting.verdict import verdict
from floral_bench.spec import Data, Method, params

SVC, OTHER = Method("svc-default", label="SVC()"), Method("rs")
TOLD = Method("floral-told", label="told", told="level")


def results(values, methods=(SVC, OTHER, TOLD), data="csv"):
    """One row per method, seed and level; `values` maps a title to its accuracy per seed."""
    rows = [
        ("random", level, 1.0, 1.0, title, seed, "final", "accuracy", value)
        for title, numbers in values.items()
        for seed, value in enumerate(numbers)
        for level in (0, 10, 20)
    ]
    names = ["attack", "level", "C", "gamma", "method", "seed", "statistic", "metric", "value"]
    suite = SimpleNamespace(methods=methods, data=(Data(data),))
    return SimpleNamespace(suite=suite, frame=pd.DataFrame(rows, columns=names))


def test_a_small_difference_is_called_noise():
    found = verdict(results({"SVC()": [0.80, 0.90, 0.85], "rs": [0.86, 0.86, 0.86]}))
    assert (found.winner, found.rival) == ("rs", "SVC()")
    assert not found.clear
    assert "within the noise of 3 replications" in str(found)


def test_a_steady_difference_is_called_clear():
    found = verdict(results({"SVC()": [0.80, 0.90, 0.85], "rs": [0.85, 0.951, 0.90]}))
    assert found.clear
    assert found.low < 0.05 < found.high
    assert "is clear" in str(found)


def test_splits_of_one_table_count_for_less_than_fresh_draws():
    values = {"SVC()": [0.80, 0.90, 0.85], "rs": [0.86, 0.93, 0.91]}
    split, drawn = verdict(results(values)), verdict(results(values, data="moon"))
    assert split.high - split.low > drawn.high - drawn.low


def test_who_was_told_the_level_cannot_win_and_who_has_defaults_can():
    values = {"SVC()": [0.8, 0.8], "rs": [0.81, 0.82], "told": [0.99, 0.99]}
    assert verdict(results(values)).winner == "rs"
    own = Method("ls-svm-libsvm", params(threshold=0.95), label="told")
    assert verdict(results(values, (SVC, OTHER, own))).winner == "told"


def test_one_replication_claims_nothing():
    found = verdict(results({"SVC()": [0.8], "rs": [0.9]}))
    assert np.isnan(found.low)
    assert "--reps 5" in str(found)


def test_svc_itself_can_win_and_methods_that_failed_somewhere_are_left_out():
    found = verdict(results({"SVC()": [0.9, 0.9], "rs": [0.8, 0.8], "told": [0.95]}, (SVC, OTHER, Method("told"))))
    assert (found.winner, found.rival, found.n_methods) == ("SVC()", "rs", 2)
    assert verdict(results({"SVC()": [0.9, 0.9]})) is None
