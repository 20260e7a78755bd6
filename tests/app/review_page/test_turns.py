"""Whose turn it is: disagreements once more, second opinions now and then, skipped rows later."""

from floral_learn.app.review_page import StoredAnswer, Turn
from floral_learn.app.review_page.asking import ROUND, disagreements, own_turn


def said(*entries):
    """Answers from (row, label or None or "skip", reviewer)."""
    return [
        StoredAnswer(k + 1, row, "skip" if label == "skip" else "label" if label else "unsure",
               None if label in (None, "skip") else label, who, "")
        for k, (row, label, who) in enumerate(entries)
    ]  # fmt: skip


def test_a_disagreement_is_asked_again_of_each_until_both_have_looked_twice():
    answers = [(7, "yes", "ann"), (7, "no", "bob")]
    assert own_turn(said(*answers), "ann") == Turn(7, "disagreement")
    assert own_turn(said(*answers), "bob") is None
    answers.append((7, "yes", "ann"))
    assert own_turn(said(*answers), "ann") is None
    assert own_turn(said(*answers), "bob") == Turn(7, "disagreement")
    answers.append((7, "no", "bob"))
    assert own_turn(said(*answers), "ann") is None
    assert list(disagreements(said(*answers))) == [7]


def test_giving_in_ends_the_disagreement():
    answers = said((7, "yes", "ann"), (7, "no", "bob"), (7, "no", "ann"))
    assert disagreements(answers) == {}
    assert own_turn(answers, "bob") is None


def test_not_sure_and_skip_contradict_nobody():
    assert disagreements(said((7, "yes", "ann"), (7, None, "bob"), (7, "skip", "cleo"))) == {}


def test_second_opinions_come_once_in_ten_and_never_to_a_single_reviewer():
    mine = [(row, "yes", "ann") for row in range(9)]
    assert own_turn(said(*mine), "ann") is None
    both = [(50, "no", "bob"), (51, None, "bob"), *mine]
    assert own_turn(said(*both), "ann") == Turn(50, "second opinion")
    assert own_turn(said(*both), "ann", taken=[50]) is None, "nobody has an opinion on 51"
    assert own_turn(said(*both, (50, "no", "ann")), "ann") is None
    assert own_turn(said(*both[:-1]), "ann") is None


def test_a_skipped_row_comes_back_after_ten_questions():
    answers = [(3, "skip", "ann"), *((10 + k, "yes", "ann") for k in range(ROUND))]
    assert own_turn(said(*answers[:-1]), "ann") is None
    assert own_turn(said(*answers), "ann") == Turn(3, "skipped")
    assert own_turn(said(*answers, (3, "yes", "ann")), "ann") is None
    assert own_turn(said(*answers, (3, "yes", "bob")), "ann", taken=[3]) is None


def test_a_skipped_second_opinion_keeps_away_for_ten_questions_too():
    answers = [(50, "no", "bob"), (51, "no", "bob"), *((row, "yes", "ann") for row in range(9))]
    assert own_turn(said(*answers), "ann") == Turn(50, "second opinion")
    answers.append((50, "skip", "ann"))
    for k in range(ROUND):
        turn = own_turn(said(*answers), "ann")
        assert turn is None or turn.row != 50, f"{k} questions later"
        answers.append((turn.row if turn else 100 + k, "yes", "ann"))
    assert own_turn(said(*answers), "ann") == Turn(50, "second opinion")


def test_a_skipped_disagreement_keeps_away_too():
    answers = [(7, "yes", "ann"), (7, "no", "bob"), (7, "skip", "ann")]
    assert own_turn(said(*answers), "ann") is None
    answers += [(20 + k, "yes", "ann") for k in range(ROUND)]
    assert own_turn(said(*answers), "ann") == Turn(7, "disagreement")
