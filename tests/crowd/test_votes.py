"""Votes in every shape, and what happens to bad ones."""

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

from floral_learn import CrowdClassifier, aggregate_votes
from floral_learn.crowd import read_votes


def long_of(table):
    item, person = np.nonzero(table >= 0)
    return pd.DataFrame({"task": item, "worker": person, "label": table[item, person]})


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=60)
    said = np.where(rng.random((60, 6)) < 0.8, truth[:, None], rng.integers(3, size=(60, 6)))
    return np.where(rng.random((60, 6)) < 0.6, said, -1)


def same(first, second):
    assert first.shape == second.shape
    for name in ("item", "annotator", "label", "weight"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_every_shape_reads_the_same(table):
    plain = read_votes(table, missing=-1)
    same(plain, read_votes(np.where(table < 0, np.nan, table.astype(float))))
    same(plain, read_votes(pd.DataFrame(np.where(table < 0, np.nan, table.astype(float)))))
    same(plain, read_votes(np.ma.masked_equal(table, -1)))
    named = np.array(["a", "b", "c", ""], dtype=object)[table]
    same(plain, read_votes(named))
    assert read_votes(named).classes.tolist() == ["a", "b", "c"]
    with_items = table[(table >= 0).any(axis=1)]
    same(read_votes(with_items, missing=-1), read_votes(long_of(with_items)))


def test_a_long_frame_is_matched_to_the_index_of_X(table):
    names = [f"item {i}" for i in range(60)]
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), index=names)
    votes = long_of(table)
    votes["task"] = [names[i] for i in votes["task"]]
    read = read_votes(votes.sample(frac=1, random_state=0), X=X)
    same(read, read_votes(table, missing=-1))
    assert read.items.tolist() == names


def test_a_task_that_X_does_not_hold_is_named(table):
    X = pd.DataFrame(np.zeros((60, 2)), index=[f"x{i}" for i in range(60)])
    refuses("tasks that X's index does not hold, such as 0", read_votes, long_of(table), X=X)


def test_what_cannot_be_votes_is_named(table):
    refuses("votes are on 60 tasks and X has 59 rows", aggregate_votes, table, np.zeros((59, 2)), missing=-1)
    refuses("pass missing=-1", aggregate_votes, table)  # -1 is not guessed
    refuses("no vote at all", aggregate_votes, np.full((5, 3), np.nan))
    refuses(r"votes hold \[2\], which classes=\[0, 1\] does not", aggregate_votes, table, classes=[0, 1], missing=-1)
    refuses("infinity", aggregate_votes, np.array([[1.0, np.inf], [0.0, 1.0]]))
    refuses("not classes", aggregate_votes, np.random.default_rng(0).normal(size=(200, 3)))
    refuses("mix numbers and text", aggregate_votes, np.array([["a", 1], [2, "b"]], dtype=object))


def test_a_class_nobody_voted_for_has_a_small_probability(table):
    found = aggregate_votes(table, classes=[0, 1, 2, 7], missing=-1, random_state=0)
    assert found.probability.shape == (60, 4)
    assert found.probability[:, 3].max() < 0.2
    assert not (found.labels == 7).any()
    assert any("Nobody voted for 7" in note for note in found.notes)


def test_an_item_without_votes_gets_the_class_of_its_features():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 2)) + 4 * y[:, None]
    votes = np.where(rng.random((120, 5)) < 0.5, y[:, None], -1)
    votes[[3, 70]] = -1
    found = aggregate_votes(votes, X, missing=-1, random_state=0)
    assert found.labels[[3, 70]].tolist() == [0, 1]
    assert any("Tasks without a vote: " in note for note in found.notes)


def test_an_annotator_with_one_vote_has_a_wide_interval_and_no_verdict(table):
    table = np.column_stack([table, np.full(60, -1)])
    table[0, 6] = (table[0][table[0] >= 0][0] + 1) % 3
    people = aggregate_votes(table, missing=-1, random_state=0).annotators.set_index("annotator")
    assert people.loc[6, "votes"] == 1
    assert people.loc[6, "high"] - people.loc[6, "low"] > 0.2
    assert not people.loc[6, "named"]


def test_duplicates_count_once(table):
    votes = long_of(table)
    with pytest.warns(UserWarning, match="voted again"):
        twice = aggregate_votes(pd.concat([votes, votes, votes]), random_state=0)
    np.testing.assert_allclose(twice.probability, aggregate_votes(votes, random_state=0).probability)


def test_two_answers_of_one_person_share_one_vote():
    votes = pd.DataFrame({"task": [0, 0, 0], "worker": ["a", "a", "b"], "label": ["x", "y", "x"]})
    with pytest.warns(UserWarning, match="share one vote"):
        read = read_votes(votes)
    assert read.weight.tolist() == [0.5, 1.0, 0.5] or sorted(read.weight.tolist()) == [0.5, 0.5, 1.0]
    assert read.per_annotator.tolist() == [1.0, 1.0]


def test_names_must_fit_the_labels():
    refuses("groups must name one annotator per label", aggregate_votes, np.array([0, 1, 1]), groups=["a", "b"])
    refuses("already have names", aggregate_votes, np.array([[0, 1], [1, 1]]), groups=["a", "b"])
    refuses("name nobody", aggregate_votes, np.array([0, 1, 1]), groups=["a", None, "b"])


def test_everybody_of_one_mind_is_no_classifier():
    refuses("everybody voted 1", CrowdClassifier().fit, np.zeros((4, 2)), np.ones((4, 3)))
    found = aggregate_votes(np.ones((4, 3)))
    assert (found.labels == 1).all()
    assert any("Everybody voted 1" in note for note in found.notes)


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ({99: 0}, "tasks that are not there"),
        ([0, 1], "mapping task -> class, a Series indexed by task, or hold one entry per task"),
        ({0: 9}, "not among the classes"),
    ],
)
def test_bad_gold_is_named(table, gold, message):
    refuses(message, aggregate_votes, table, gold=gold, missing=-1)


def test_gold_that_is_missing_in_a_mapping_is_unknown(table):
    found = aggregate_votes(table, gold={0: None, 1: np.nan, 2: int(table[2].max())}, missing=-1, random_state=0)
    assert (found.gold >= 0).tolist() == [row == 2 for row in range(60)]


def named(n=40, seed=0):
    """Truth and votes of named tasks as a long frame, and features whose rows are in another order."""
    rng = np.random.default_rng(seed)
    truth = pd.Series(rng.integers(2, size=n), index=[f"t{i:02}" for i in range(n)])
    said = np.where(rng.random((n, 3)) < 0.8, truth.to_numpy()[:, None], 1 - truth.to_numpy()[:, None])
    votes = pd.DataFrame(said, index=truth.index, columns=["ann", "bob", "cy"])
    X = pd.DataFrame({"size": 3.0 * truth + rng.normal(size=n) * 0.3}).sample(frac=1, random_state=1)
    long = votes.stack().rename_axis(["task", "worker"]).rename("label").reset_index()
    return truth, votes, long, X


def test_gold_as_a_series_is_matched_by_the_names_of_its_tasks():
    truth, wide, long, _ = named()
    for votes in (wide, long):
        for gold in (truth, truth[::-1], truth.sample(frac=1, random_state=0).to_dict()):
            found = aggregate_votes(votes, gold=gold, random_state=0)
            assert (found.labels == truth[found.items]).all()
    refuses("gold names tasks that are not there: 0, 1, 2", aggregate_votes, long, gold=truth.reset_index(drop=True))
    refuses("gold names task 't01' twice", aggregate_votes, long, gold=pd.Series([0, 0], index=["t01", "t01"]))


def test_a_wide_frame_is_matched_to_features_in_another_order():
    truth, wide, _, X = named()
    assert read_votes(wide, X=X).items.tolist() == X.index.tolist()
    found = aggregate_votes(wide, X, random_state=0)
    assert (found.labels == truth[found.items]).mean() > 0.9  # by position it would be a half
    refuses("X and votes name different rows", aggregate_votes, wide.rename(index={"t00": "other"}), X)


def test_one_and_its_text_are_two_names_and_that_is_said():
    votes = pd.DataFrame({"task": [1, "1", 2, 1, "1"], "worker": list("aabbb"), "label": [0, 1, 0, 0, 1]})
    with pytest.warns(UserWarning, match="tasks 1 and '1' are two names"):
        assert read_votes(votes).items.tolist() == [1, "1", 2]


def test_a_frame_says_what_each_task_is():
    truth, _, long, _ = named()
    frame = aggregate_votes(long, random_state=0).to_frame()
    assert frame.columns.tolist() == ["task", "label", "probability", "decided", "votes"]
    assert (frame["votes"] == 3).all()
    assert (frame.set_index("task")["label"] == truth).mean() > 0.7


def test_a_small_long_frame_with_own_names_is_not_read_as_people():
    votes = pd.DataFrame({"id": list("xxyyzz"), "who": ["ann", "bob"] * 3, "said": [0, 1, 1, 1, 0, 0]})
    refuses("task=, worker= and label= name its columns", read_votes, votes)
    assert read_votes(votes, task="id", worker="who", label="said").shape == (3, 2, 2)
    functions = pd.DataFrame({"f": ["a", None, "a"], "g": [None, "b", "b"]})  # each names a class of its own
    assert read_votes(functions).shape == (3, 2, 2)


def test_minus_one_is_not_guessed_in_a_frame_either(table):
    for votes in (long_of(table).replace({"label": {2: -1}}), pd.DataFrame(table.astype(float))):
        refuses("pass missing=-1", read_votes, votes)
    assert -1 in read_votes(long_of(table).replace({"label": {2: -1}}), classes=[-1, 0, 1]).classes


def test_gold_settles_who_lies():
    truth = np.tile([0, 1], 40)
    votes = np.column_stack([truth, truth, 1 - truth, 1 - truth])  # two against two: nobody can know
    gold = {row: int(truth[row]) for row in range(6)}
    found = aggregate_votes(votes, gold=gold, random_state=0)
    assert (found.labels == truth).all()
    other = aggregate_votes(votes, gold={row: 1 - label for row, label in gold.items()}, random_state=0)
    assert (other.labels == 1 - truth).all()


def test_a_long_frame_may_have_other_names(table):
    votes = long_of(table).rename(columns={"task": "id", "worker": "annotator", "label": "class"})
    read = read_votes(votes, task="id", worker="annotator", label="class")
    same(read, read_votes(long_of(table)))
    with pytest.raises(ValueError, match="votes have no column 'who'; their columns are 'id', 'annotator', 'class'"):
        read_votes(votes, task="id", worker="who", label="class")
    named = votes.assign(id=[f"i{i}" for i in votes["id"]], annotator=[f"p{a}" for a in votes["annotator"]])
    refuses("task=, worker= and label= name its columns", aggregate_votes, named)
    refuses("not a frame", aggregate_votes, table, missing=-1, task="id")


def test_a_task_whose_votes_are_all_blank_does_not_vanish_in_silence(table):
    votes = long_of(table).assign(task=lambda d: d["task"].astype(object))
    votes = pd.concat([votes, pd.DataFrame({"task": ["gone"], "worker": [0], "label": [None]})], ignore_index=True)
    with pytest.warns(UserWarning, match="1 task is left out, since all of these votes are blank, such as 'gone'"):
        assert "gone" not in read_votes(votes).items


def test_a_person_whose_votes_are_all_blank_does_not_vanish_in_silence(table):
    votes = long_of(table).assign(label=lambda d: d["label"].astype(float).where(d["worker"] != 5))
    with pytest.warns(UserWarning, match="blank") as warned:
        assert 5 not in read_votes(votes).annotators
    assert "1 person is left out, since all of these votes are blank, such as 5" in str(warned[0].message)
    wide = pd.DataFrame(np.where(table < 0, np.nan, table.astype(float)), columns=list("abcdef")).assign(g=np.nan)
    with pytest.warns(UserWarning, match="1 person is left out, since all of these votes are blank, such as 'g'"):
        same(read_votes(wide), read_votes(table, missing=-1))


def test_a_wide_frame_may_name_its_tasks(table):
    """A column of tasks is nobody's votes, and features are matched to it."""
    wide = pd.DataFrame(np.where(table < 0, np.nan, table.astype(float)), columns=list("abcdef"))
    named = wide.assign(task=range(60))
    same(read_votes(named), read_votes(table, missing=-1))
    texts = named.assign(task=[f"i{row:02}" for row in range(60)]).rename(columns={"task": "id"})
    read = read_votes(texts, task="id")
    same(read, read_votes(table, missing=-1))
    assert read.items[3] == "i03"
    X = pd.DataFrame({"id": texts["id"], "size": range(60)})[::-1]
    matched = read_votes(texts[5:], X=X, task="id")
    assert matched.items.tolist() == X["id"].tolist()
    assert matched.per_item.tolist() == [*(table >= 0).sum(axis=1)[:4:-1], 0, 0, 0, 0, 0]
    with pytest.raises(ValueError, match="column 'task' names 7 twice; a wide frame has a row per task"):
        read_votes(named.assign(task=[7, *range(59)]))
    for frame in (named.rename(columns={"task": "id"}), texts):
        refuses("'id' holds other values than the rest", read_votes, frame)
    refuses("votes have no column 'worker'", read_votes, long_of(table).rename(columns={"worker": "who"}))


def test_a_feature_called_like_the_votes_is_warned_of(table):
    X = pd.DataFrame({"task": range(60), "size": np.arange(60.0), "label": np.arange(60) % 3})
    with pytest.warns(UserWarning, match="'label' is called like the votes and is read as a feature"):
        aggregate_votes(long_of(table), X, random_state=0)
