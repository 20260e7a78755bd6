"""Votes that say what a task is not: "!spam"."""

import numpy as np
import pandas as pd
import pytest
from commands import floral

from floral_learn import CrowdClassifier, JudgeReview, aggregate_votes, poison_votes
from floral_learn.crowd import read_votes
from floral_learn.crowd.readings import Answers, Reading, majority, read


@pytest.fixture(scope="module")
def crowd():
    """Four classes: six people name one, six rule one out; truth and votes as texts, None where there is none."""
    rng = np.random.default_rng(0)
    y, n = rng.integers(4, size=400), 400
    named = np.where(rng.random((n, 6)) < 0.6, y[:, None], rng.integers(4, size=(n, 6)))
    wrong = (y[:, None] + rng.integers(1, 4, size=(n, 6))) % 4
    ruled_out = np.where(rng.random((n, 6)) < 0.9, wrong, y[:, None])
    names = np.array(["ant", "bee", "cow", "dog"], dtype=object)
    votes = np.column_stack([names[named], "!" + names[ruled_out]])
    return names[y], np.where(rng.random(votes.shape) < 0.5, votes, None)


def long_of(votes):
    task, worker = np.nonzero(votes != None)  # noqa: E711
    return pd.DataFrame({"task": task, "worker": worker, "label": votes[task, worker]})


def test_of_two_classes_not_one_is_the_other():
    votes = np.array([["a", "!a", "b"], ["!b", "a", "a"], ["b", "b", None]], dtype=object)
    plain = np.array([["a", "b", "b"], ["a", "a", "a"], ["b", "b", None]], dtype=object)
    one, other = read_votes(votes, negations=True), read_votes(plain)
    np.testing.assert_array_equal(one.label, other.label)
    assert one.classes.tolist() == ["a", "b"]
    assert not one.negative.any()


def test_wide_long_and_numbered_votes_read_the_same(crowd):
    _, votes = crowd
    votes = votes[(votes != None).any(axis=1)]  # noqa: E711
    read_ = read_votes(votes, negations=True)
    assert read_.answers[3:6] == ["dog", "not ant", "not bee"]
    numbers = np.array([{"a": 0, "b": 1, "c": 2, "d": 3}[v.strip("!")[0]] if v else None for v in votes.ravel()])
    mixed = [f"!{c}" if v and v[0] == "!" else c for v, c in zip(votes.ravel(), numbers, strict=True)]
    mixed = np.array([*mixed, None], dtype=object)[:-1].reshape(votes.shape)
    for other in (read_votes(long_of(votes), negations=True), read_votes(mixed, negations=True)):
        np.testing.assert_array_equal(read_.label, other.label)
        np.testing.assert_array_equal(read_.item, other.item)


def test_what_one_rules_out_is_shared_by_the_other_classes_in_the_majority():
    votes = np.array([["a", "!b"], ["!a", "!b"], ["c", None]], dtype=object)
    np.testing.assert_allclose(read_votes(votes, negations=True).shares, [[1.5, 0, 0.5], [0.5, 0.5, 1], [0, 0, 1]])


def test_a_reading_is_a_fixed_point_of_em_with_rectangular_confusion_matrices(crowd):
    """Written again with dense arrays: people x 4 truths x 8 answers, "not v" right for all other truths."""
    votes = read_votes(crowd[1], negations=True)
    fit = read(Answers.of(votes), Reading(4.0), majority(votes), max_iter=500, tol=1e-12)
    q, (n, people, k) = fit.posterior, votes.shape
    table = np.full((n, people), -1)
    table[votes.item, votes.annotator] = votes.label
    log = np.zeros((n, k))
    for person in range(people):
        counts = np.array([[q[table[:, person] == v, c].sum() for v in range(2 * k)] for c in range(k)])
        right = sum(counts[c, c] for c in range(k))
        denied = sum(counts[c, k + v] for c in range(k) for v in range(k) if v != c)
        names, all_of = counts[:, :k].sum(), counts.sum()
        r = (right + 4) / (names + 4 + (k - 1))
        d = (denied + 4) / (all_of - names + 4 + 1 / (k - 1))
        share = (names + 1) / (all_of + 2)
        coin = np.empty((k, 2 * k))
        for c in range(k):
            for v in range(k):
                coin[c, v] = share * (r if v == c else (1 - r) / (k - 1))
                coin[c, k + v] = (1 - share) * (1 - d if v == c else d / (k - 1))
        np.testing.assert_allclose(coin.sum(axis=1), 1)
        matrix = (counts + 4 * coin) / (counts.sum(axis=1, keepdims=True) + 4)
        np.testing.assert_allclose(fit.confusions()[person], matrix, atol=1e-8)
        given = table[:, person] >= 0
        log[given] += np.log(matrix[:, table[given, person]]).T
    again = np.exp(log - log.max(axis=1, keepdims=True))
    np.testing.assert_allclose(again / again.sum(axis=1, keepdims=True), q, atol=1e-6)


def test_without_a_prior_an_answer_is_only_a_name():
    """Whoever says "not v" in place of "v" throughout is read alike: matrices learn what an answer means."""
    y = np.random.default_rng(1).integers(3, size=300)
    said = np.where(np.random.default_rng(2).random((300, 6)) < 0.7, y[:, None], 2 - y[:, None]).astype(str)
    turned = said.astype(object)
    turned[:, :2] = "!" + turned[:, :2]
    start = np.eye(3)[y] * 0.4 + 0.2
    plain, against = (
        read(Answers.of(votes), Reading(1e-9), start).posterior
        for votes in (read_votes(said), read_votes(turned, negations=True))
    )
    np.testing.assert_allclose(plain, against, atol=1e-6)


def test_what_people_rule_out_puts_labels_right(crowd):
    truth, votes = crowd
    found = aggregate_votes(votes, random_state=0)
    named = aggregate_votes(votes[:, :6], random_state=0)
    assert (found.labels == truth).mean() > (named.labels == truth).mean() + 0.03
    decided = found.decided
    assert (found.labels == truth)[decided].mean() >= 0.9
    assert found.confusions.shape == (12, 4, 8)
    people = found.people.set_index("annotator")
    right = np.mean([(v[1:] != t) for v, t in zip(votes[:, 8], truth, strict=True) if v])
    assert people.loc[8, "low"] <= right <= people.loc[8, "high"]
    assert people.loc[8, "most_confused"].startswith("says not ")
    assert any("say what a task is not" in note for note in found.notes)


def test_functions_that_only_rule_out_are_read_too():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    fires = rng.random((600, 9)) < np.where(y[:, None] == np.arange(9) % 3, 0.04, 0.5)
    votes = np.where(fires, np.array(["!a", "!b", "!c"], dtype=object)[np.arange(9) % 3], None)
    there = fires.any(axis=1)
    found = aggregate_votes(votes[there], random_state=0)
    assert (found.labels == np.array(["a", "b", "c"])[y[there]]).mean() > 0.75
    assert not found.decided.any()


def test_a_liar_who_rules_out_the_truth_does_no_harm():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    names = np.array(["a", "b", "c"], dtype=object)
    honest = np.where(rng.random((300, 5)) < 0.7, y[:, None], rng.integers(3, size=(300, 5)))
    alone = (aggregate_votes(names[honest], random_state=0).labels == names[y]).mean()
    with_liar = aggregate_votes(np.column_stack([names[honest], "!" + names[y]]), random_state=0)
    assert (with_liar.labels == names[y]).mean() >= alone


def test_what_cannot_be_a_vote_is_refused_by_name():
    votes = np.array([["a", "!d"], ["b", "c"]], dtype=object)
    with pytest.raises(ValueError, match=r"votes hold '!d', and 'd' is not among the classes \['a', 'b', 'c'\]"):
        aggregate_votes(votes, classes=["a", "b", "c"])
    assert read_votes(votes, classes=["a", "b", "c", "!d"]).classes.tolist() == ["!d", "a", "b", "c"]
    with pytest.raises(ValueError, match="'!a' names the only class"):
        aggregate_votes(np.array([["!a"], ["!a"]], dtype=object))
    for refuses in (poison_votes, JudgeReview):
        with pytest.raises(ValueError, match="only aggregate_votes and CrowdClassifier read"):
            refuses(votes, **({"attack": "spam", "budget": 0.5} if refuses is poison_votes else {}))


def test_a_classifier_learns_from_them(crowd):
    truth, votes = crowd
    codes = np.unique(truth, return_inverse=True)[1]
    X = np.eye(4)[codes] * 2 + np.random.default_rng(0).normal(size=(400, 4))
    assert CrowdClassifier(random_state=0).fit(X, votes).score(X, truth) > 0.75


def test_the_command_reads_them(crowd, tmp_path):
    truth, votes = crowd
    long_of(votes).to_csv(tmp_path / "votes.csv", index=False)
    ran = floral("crowd", tmp_path / "votes.csv", "--out", tmp_path / "out")
    labels = pd.read_csv(tmp_path / "out" / "consensus.csv").set_index("task")["label"]
    assert (labels == truth[labels.index]).mean() > 0.8
    assert "say what a task is not" in ran.output
