"""Words as a second opinion on texts."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from floral_learn.review.text_review import places_between, word_scores
from floral_learn.text.tokens import Tokens

GOOD, BAD = ["fine", "warm", "bright", "kind"], ["dull", "cold", "grim", "cruel"]


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 200)
    made = [" ".join(["film", *rng.choice(GOOD if code else BAD, 3)]) for code in codes]
    return made, codes


def test_words_know_the_class_of_texts_that_their_model_did_not_see(texts):
    made, codes = texts
    wrong = codes.copy()
    wrong[:40] = 1 - wrong[:40]
    assert roc_auc_score(codes, word_scores(made, wrong)) > 0.99
    rng = np.random.default_rng(1)
    chance = word_scores([f"word{k}" for k in rng.permutation(200)], codes)  # every text has a word of its own
    assert 0.3 < roc_auc_score(codes, chance) < 0.7


def test_token_numbers_are_words(texts):
    made, codes = texts
    names = {word: k for k, word in enumerate(["", "film", *GOOD, *BAD])}
    ids = np.array([[names[word] for word in text.split()] + [0] for text in made])
    padded = word_scores(Tokens(ids, np.full(200, 4), 0), codes)
    np.testing.assert_array_equal(padded, word_scores(Tokens(ids[:, :4], np.full(200, 4), 0), codes))
    assert roc_auc_score(codes, padded) > 0.99


def test_what_has_no_words_has_no_scores(texts):
    made, codes = texts
    assert word_scores([*made[:-1], 3.0], codes) is None
    assert word_scores(np.zeros((200, 2)), codes) is None
    assert word_scores(made, np.arange(200) == 0) is None, "a class of one row cannot be held out"


def test_places_lie_between_the_classes(texts):
    codes = texts[1]
    rng = np.random.default_rng(2)
    score = codes + rng.normal(size=200)
    plain = places_between(score, None, codes)
    assert (plain.min(), plain.max() < 2) == (-2.0, True)
    np.testing.assert_array_equal(np.argsort(plain), np.argsort(score))
    np.testing.assert_array_equal(places_between(score, np.zeros(200), codes), plain)  # words that say nothing
    words = codes + rng.normal(size=200)
    both = places_between(score, words, codes)
    assert roc_auc_score(codes, both) > roc_auc_score(codes, plain), "two opinions are better than one"
