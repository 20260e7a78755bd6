"""What is known so far: parts of the data in words, what more answers would bring, and sentences."""

from types import SimpleNamespace

import numpy as np
import pytest

from floral_learn import LabelReview
from floral_learn.app.review_page import known, outputs
from floral_learn.review import Expected, Guarantee


@pytest.mark.parametrize("classes", [2, 5])
def test_before_twenty_answers_the_estimate_is_the_audits_and_then_its_own(classes):
    rng = np.random.default_rng(classes)
    X, labels = rng.normal(size=(300, 2)), rng.integers(0, classes, 300)
    review = LabelReview(X, labels, random_state=0)
    for answers in (0, 19, 25):
        asked = review.ask(answers - len(review.answers)) if answers else []
        review.answer(asked, labels[asked])
        told = known.describe(review)
        assert set(told) == {"estimate", "guarantee", "changed", "ten", "stop"}
        assert told["estimate"]["known"] == (answers >= 20)
        assert ("so far is mostly the audit’s" in told["estimate"]["under"]) == (answers < 20)
        assert (told["ten"] is None) == (answers < 20)
        assert answers >= 20 or not told["stop"]["now"], "nobody is told to stop after five answers"


def test_sentences():
    space = "\u00a0"
    assert known.percent(0.153) == f"15{space}%"
    assert known.percent(0.0) == f"0{space}%"
    assert known.percent(0.012) == f"1.2{space}%"
    assert known.percent(0.085) == f"9{space}%", "as the browser rounds it"
    assert known.percent(0.0125) == f"1.3{space}%"
    assert known.percent(0.0001) == f"under 0.1{space}%"
    share = SimpleNamespace(estimate=0.15, low=0.09, high=0.22, known=True)
    assert known.estimate(share).replace(space, " ") == (
        "9 % to 22 % of the labels are wrong, about 15 % by the model’s estimate."
    )
    sure = Guarantee(0.02, 0.41, 8, 1, 1, 500, 0.95, True)
    assert known.guarantee(sure).replace(space, " ") == (
        "Whatever an attacker did, you would change between 2 % and 41 % of the labels: 95 % confidence, from 8 rows "
        "drawn at random, 1 unclear one counted both ways."
    )
    assert "A seed was given" in known.guarantee(Guarantee(0, 1, 8, 1, 0, 500, 0.95, False))
    assert known.stop(True)["now"]
    assert not known.stop(False)["now"]
    assert known.reason("drawn", 0) == "Drawn at random, for the guarantee."
    assert known.reason("question", 140) == "Its answer tells most about 140 other rows."
    assert "in doubt" in known.reason("question", 0)
    assert "less than one further label" in known.ten_more(3.0, Expected(0.2, 0.0, 1.0), 500)
    assert "about 4 of them right (2 to 7)" in known.ten_more(30.0, Expected(4.2, 2.0, 7.1), 500)
    options = {"ids": "part", "drop": ["a", "b"], "text": ()}
    assert outputs.option_words(options) == ["--id", "part", "--drop", "a", "--drop", "b"]
