"""What is known so far: parts of the data in words, what more answers would bring, and sentences."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from floral_learn import LabelReview
from floral_learn.app.review_page import words
from floral_learn.app.review_page.known import describe, regions, where
from floral_learn.app.review_page.shown_rows import ShownRows
from floral_learn.review import Expected, Guarantee


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=300), "colour": rng.choice(["red", "blue"], 300)})
    story = "a long story about a refund that never came, told at some length to many people"
    frame["text"] = np.where(rng.random(300) < 0.3, story, "a short story about something else")
    return ShownRows(frame, rng.choice(["no", "yes"], 300), frame[["size"]].to_numpy(), folder=tmp_path)


def parts(rows, wrong, groups=None, answers=60):
    """What is named where the first `answers` rows were answered: wrong where `wrong` is above a half."""
    classes = np.array(["no", "yes", "other"])
    said = np.where(np.asarray(wrong) > 0.5, 2, rows.labels == "yes")
    told = {r: classes[int(said[r])] for r in range(answers)}
    review = SimpleNamespace(wrong_probability=wrong.astype(float), given=rows.labels, classes=classes, answers=told)
    found = where(review, rows, groups)
    return {part["name"]: (part["rows"], round(part["share"], 2)) for part in found}


def test_a_region_is_named_by_its_columns(rows):
    wrong = (rows.frame["size"] > 0.5) & (rows.frame["colour"] == "red")
    (name, (count, share)), *_ = parts(rows, wrong).items()
    assert name.startswith("rows with ")
    assert "size above" in name
    assert "colour red" in name or "colour not blue" in name
    assert (count, share) == (wrong.sum(), 1.0)


def test_a_word_of_a_text_can_be_the_place(rows):
    wrong = rows.frame["text"].str.contains("refund")
    assert regions(rows, wrong.to_numpy(float))[0][0].share == 1.0
    assert any("in text" in name for name in parts(rows, wrong))


def test_classes_and_sources_are_named_where_they_stand_out(rows):
    sources = np.where(np.arange(300) % 3 == 0, "bob", "ann")
    wrong = (rows.labels == "no") & (sources == "bob")
    found = parts(rows, wrong, sources)
    assert "labelled “no”" in found
    assert "from “bob”" in found
    assert not {"labelled “yes”", "from “ann”"} & set(found)


def test_nothing_is_named_where_wrong_labels_are_everywhere(rows):
    assert parts(rows, np.full(300, 0.2)) == {}


def test_a_class_that_only_the_model_doubts_is_not_named(rows):
    wrong = np.where(rows.labels == "no", 0.45, 0.05)  # and no answer says so
    assert parts(rows, wrong) == {}
    assert parts(rows, (rows.labels == "no").astype(float), answers=1) == {}


def test_all_parts_are_told_for_two_and_for_many_classes(rows):
    for classes in (2, 5):
        rng = np.random.default_rng(classes)
        labels = rng.integers(0, classes, 300)
        shown = ShownRows(rows.frame, labels, rows.X, folder=rows.folder)
        review = LabelReview(rows.X, labels, random_state=0)
        for _ in range(2):
            assert set(describe(review, shown)) == {"estimate", "guarantee", "changed", "where", "ten", "stop"}
            asked = review.ask(24)
            review.answer(asked, labels[asked])
        assert describe(review, shown)["estimate"]["known"]


def test_before_twenty_answers_it_says_that_the_estimate_is_the_audits(rows):
    labels = np.random.default_rng(0).integers(0, 2, 300)
    review = LabelReview(rows.X, labels, random_state=0)
    for answers in (0, 19):
        asked = review.ask(answers or 1)[:answers]
        review.answer(asked, labels[asked])
        told = describe(review, ShownRows(rows.frame, labels, rows.X, folder=rows.folder))
        assert (told["where"], told["ten"]) == ([], None)
        assert not told["estimate"]["known"]
        assert "so far is mostly the audit’s" in told["estimate"]["words"]


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
    assert not words.too_early()["now"], "nobody is told to stop after five answers"
    assert words.stop(True)["now"]
    assert not words.stop(False)["now"]
    assert words.progress(12, False, 500) == {"answered": 12, "about": 30}
    assert words.progress(34, False, 500) == {"answered": 34, "about": 40}
    assert words.progress(34, True, 500) == {"answered": 34, "about": 34}
    assert words.progress(5, False, 12)["about"] == 12
    assert words.reason("drawn", 0) == "Drawn at random, for the guarantee."
    assert words.reason("question", 140) == "Its answer tells most about 140 other rows."
    assert "in doubt" in words.reason("question", 0)
    assert "less than one further label" in words.ten_more(3.0, Expected(0.2, 0.0, 1.0), 500)
    assert "about 4 of them right (2 to 7)" in words.ten_more(30.0, Expected(4.2, 2.0, 7.1), 500)
    options = {"ids": "part", "drop": ["a", "b"], "text": ()}
    assert words.option_words(options) == ["--id", "part", "--drop", "a", "--drop", "b"]
