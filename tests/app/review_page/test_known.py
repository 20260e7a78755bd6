"""What is known so far: parts of the data in words, what more answers would bring, and sentences."""

from types import SimpleNamespace

import numpy as np
import pytest

from floral_learn import LabelReview
from floral_learn.app.review_page import known as words
from floral_learn.app.review_page.known import describe, where
from floral_learn.app.review_page.outputs import option_words
from floral_learn.review import Expected, Guarantee


@pytest.fixture
def labels():
    return np.random.default_rng(0).choice(["no", "yes"], 300)


def parts(labels, wrong, groups=None, answers=60):
    """What is named where the first `answers` rows were answered: wrong where `wrong` is above a half."""
    classes = np.array(["no", "yes", "other"])
    said = np.where(np.asarray(wrong) > 0.5, 2, labels == "yes")
    told = {r: classes[int(said[r])] for r in range(answers)}
    review = SimpleNamespace(wrong_probability=wrong.astype(float), given=labels, classes=classes, answers=told)
    return {part["name"]: part["answers"] for part in where(review, groups, 0.05)}


def test_classes_and_sources_are_named_where_they_stand_out(labels):
    sources = np.where(np.arange(300) % 3 == 0, "bob", "ann")
    wrong = (labels == "no") & (sources == "bob")
    found = parts(labels, wrong, sources)
    assert "labelled “no”" in found
    assert "from “bob”" in found
    assert not {"labelled “yes”", "from “ann”"} & set(found)


def test_nothing_is_named_where_wrong_labels_are_everywhere(labels):
    assert parts(labels, np.full(300, 0.2)) == {}


def test_a_class_that_only_the_model_doubts_is_not_named(labels):
    wrong = np.where(labels == "no", 0.45, 0.05)  # and no answer says so
    assert parts(labels, wrong) == {}
    assert parts(labels, (labels == "no").astype(float), answers=1) == {}


@pytest.mark.parametrize("classes", [2, 5])
def test_before_twenty_answers_the_estimate_is_the_audits_and_then_its_own(classes):
    rng = np.random.default_rng(classes)
    X, labels = rng.normal(size=(300, 2)), rng.integers(0, classes, 300)
    review = LabelReview(X, labels, random_state=0)
    for answers in (0, 19, 25):
        asked = review.ask(answers - len(review.answers)) if answers else []
        review.answer(asked, labels[asked])
        told = describe(review)
        assert set(told) == {"estimate", "guarantee", "changed", "where", "ten", "stop"}
        assert told["estimate"]["known"] == (answers >= 20)
        assert ("so far is mostly the audit’s" in told["estimate"]["under"]) == (answers < 20)
        assert (told["ten"] is None) == (answers < 20)
        assert answers >= 20 or not told["stop"]["now"], "nobody is told to stop after five answers"


def test_sentences():
    space = "\u00a0"
    assert words.percent(0.153) == f"15{space}%"
    assert words.percent(0.0) == f"0{space}%"
    assert words.percent(0.012) == f"1.2{space}%"
    assert words.percent(0.085) == f"9{space}%", "as the browser rounds it"
    assert words.percent(0.0125) == f"1.3{space}%"
    assert words.percent(0.0001) == f"under 0.1{space}%"
    share = SimpleNamespace(estimate=0.15, low=0.09, high=0.22, known=True)
    assert words.estimate(share).replace(space, " ") == (
        "9 % to 22 % of the labels are wrong, about 15 % by the model’s estimate."
    )
    sure = Guarantee(0.02, 0.41, 8, 1, 1, 500, 0.95, True)
    assert words.guarantee(sure).replace(space, " ") == (
        "Whatever an attacker did, you would change between 2 % and 41 % of the labels: 95 % confidence, from 8 rows "
        "drawn at random, 1 unclear one counted both ways."
    )
    assert "A seed was given" in words.guarantee(Guarantee(0, 1, 8, 1, 0, 500, 0.95, False))
    assert words.stop(True)["now"]
    assert not words.stop(False)["now"]
    assert words.reason("drawn", 0) == "Drawn at random, for the guarantee."
    assert words.reason("question", 140) == "Its answer tells most about 140 other rows."
    assert "in doubt" in words.reason("question", 0)
    assert "less than one further label" in words.ten_more(3.0, Expected(0.2, 0.0, 1.0), 500)
    assert "about 4 of them right (2 to 7)" in words.ten_more(30.0, Expected(4.2, 2.0, 7.1), 500)
    options = {"ids": "part", "drop": ["a", "b"], "text": ()}
    assert option_words(options) == ["--id", "part", "--drop", "a", "--drop", "b"]
