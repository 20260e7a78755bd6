"""TextReview: the encoder learns along with the labels."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from floral_learn import LabelReview
from floral_learn.review import TextReview
from floral_learn.review.text_review import places_between, word_scores

WORDS = {"good": ["fine", "warm", "bright", "kind"], "bad": ["dull", "cold", "grim", "cruel"]}


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    y = np.array(["good", "bad"] * 60)
    made = [" ".join(rng.choice(WORDS[label], 3)) + f" film {rng.integers(9)}" for label in y]
    given = y.copy()
    wrong = [k for k, text in enumerate(made) if "grim" in text][:25]
    given[wrong] = "good"
    return made, y, given


class Bag(BaseEstimator):
    """An encoder that remembers which labels it was taught."""

    def fit(self, X, y):
        self.words_ = TfidfVectorizer().fit(X)
        self.taught_ = np.asarray(y).copy()
        return self

    def embed(self, X):
        return self.words_.transform(X).toarray()


class Scoring(Bag):
    """An encoder that knows the labels a little, and says so."""

    def decision_function(self, X):
        good = np.array([sum(word in WORDS["good"] for word in text.split()) for text in X])
        return good + np.linspace(0, 0.1, len(X))


def test_the_encoder_is_taught_the_labels_as_they_are_read(texts):
    made, y, given = texts
    review = TextReview(made, given, encoder=Bag(), random_state=0)
    np.testing.assert_array_equal(review.fitted_encoder.taught_, given)
    walk = review._order.copy()
    for _ in range(15):
        rows = review.ask(1)
        review.answer(rows, y[rows])
    read = review.labels.copy()
    assert review.retrain() is review
    assert review.turns == 2
    np.testing.assert_array_equal(review.fitted_encoder.taught_, read)
    np.testing.assert_array_equal(review._order, walk)
    assert len(review.history) == 15
    assert (review.labels != y).mean() < (given != y).mean()


class Weighing(Bag):
    """An encoder with epochs whose fit takes weights."""

    def __init__(self, epochs=3):
        self.epochs = epochs

    def fit(self, X, y, sample_weight=None):
        self.weight_ = sample_weight
        return super().fit(X, y)


def test_questions_are_asked_on_few_epochs_and_the_fit_has_all(texts):
    made, y, given = texts
    review = TextReview(made, given, encoder=Weighing(), random_state=0)
    assert review.fitted_encoder.epochs == 1
    assert review.fitted_encoder.weight_ is None, "nothing is known yet"
    for _ in range(12):
        rows = review.ask(1)
        review.answer(rows, y[rows])
    model = review.train()
    assert model.epochs == 3
    belief, weight = review.label_probability.max(axis=1), review._text_weights()
    np.testing.assert_array_equal(model.weight_, weight)
    for label in np.unique(review.labels):
        mine = review.labels == label
        assert weight[mine & (belief < 0.65)].max(initial=0.0) < weight[mine & (belief > 0.75)].min()
    assert review.retrain().fitted_encoder.epochs == 1
    np.testing.assert_array_equal(review.fitted_encoder.weight_, weight)
    assert TextReview(made, given, encoder=Weighing(), asking_epochs=None).fitted_encoder.epochs == 3


class Believing(Weighing):
    """An encoder that is told how probable each label is."""

    def fit(self, X, y, sample_weight=None, belief=None):
        self.belief_ = belief
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("weighted", [False, True])
def test_an_encoder_is_told_what_is_believed_of_the_labels(texts, weighted):
    made, y, given = texts
    weight = np.linspace(1, 2, 120) if weighted else None
    review = TextReview(made, given, encoder=Believing(), sample_weight=weight, random_state=0)
    assert review.fitted_encoder.belief_ is None, "nothing is known yet"
    plain = review.train()
    assert plain.belief_ is None
    np.testing.assert_array_equal(plain.weight_, weight)
    for _ in range(12):
        rows = review.ask(1)
        review.answer(rows, y[rows])
    belief = review.label_probability.copy()
    for model in (review.train(), review.retrain().fitted_encoder):
        np.testing.assert_array_equal(model.belief_, belief)
        np.testing.assert_array_equal(model.weight_, weight)
    third = TextReview(made, given, encoder=Believing(), classes=["bad", "good", "odd"], random_state=0)
    assert third.train().belief_ is None, "the labels as they are read have two classes, the belief three"


def test_the_first_questions_look_along_the_line(texts):
    made, y, given = texts
    review = TextReview(made, given, encoder=Scoring(), random_share=0.0, random_state=0)
    scores = review._data.problem.scores
    rows = []
    for _ in range(8):
        asked = review.ask(1)
        np.testing.assert_array_equal(asked, review.ask(3)[:1])
        review.answer(asked, y[asked])
        rows += asked.tolist()
    assert len(set(rows)) == 8
    order = np.argsort(scores, kind="stable").tolist()
    assert len({4 * order.index(row) // len(order) for row in rows[:3]}) == 3, "each in another quarter"
    other = TextReview(made, given, encoder=Scoring(), random_share=0.0, random_state=1)
    assert other.ask(1) != rows[0], "where it looks is drawn"


@pytest.mark.parametrize("epochs", [0, 1.5, True, "two"])
def test_a_number_of_epochs_that_is_none_is_refused(texts, epochs):
    with pytest.raises(ValueError, match=r"asking_epochs=.* must be an integer of at least 1, or None"):
        TextReview(texts[0], texts[2], encoder=Weighing(), asking_epochs=epochs)


def test_fit_gives_the_encoder_or_a_head(texts):
    made, _, given = texts
    review = TextReview(made, given, encoder=Bag(), random_state=0)
    assert isinstance(review.train(), Bag)
    assert review.train(LogisticRegression()).predict(review.fitted_encoder.embed(made)).shape == (120,)


def test_regions_may_lie_along_the_encoders_scores(texts, tmp_path):
    made, y, given = texts
    review = TextReview(made, given, encoder=Scoring(), random_state=0)
    codes = (given == "good").astype(int)
    place = review._data.problem.scores * np.where(codes == 0, -1, 1)
    assert (place.min(), place.max() < 2) == (-2.0, True)
    known = places_between(Scoring().decision_function(made), word_scores(made, codes), codes)
    np.testing.assert_array_equal(place, known)
    rows = review.ask(12)
    review.answer(rows, y[rows])
    assert any(c.on_scores for c in review._beliefs.posterior.components)
    both = review.retrain()._data.problem.scores * np.where(codes == 0, -1, 1)
    first, new = review._ranks
    np.testing.assert_array_equal(first, place)
    # what the first was unsure of stays in view
    np.testing.assert_array_equal(np.argsort(both, kind="stable"), np.argsort(0.7 * first + 0.3 * new, kind="stable"))
    codes = (review.fitted_encoder.taught_ == "good").astype(int)  # words are taught the labels as they are read, too
    known = places_between(Scoring().decision_function(made), word_scores(made, codes), codes)
    np.testing.assert_array_equal(new, known)
    review.save(tmp_path / "texts.skops")
    again = TextReview.load(tmp_path / "texts.skops", encoder=Scoring())
    np.testing.assert_array_equal(again.ask(3), review.ask(3))
    plain = TextReview(made, given, encoder=Bag(), random_state=0)  # no scores of its own: those of a held-out model
    assert len(plain._data.problem.scores) == len(made)


def test_a_stretch_of_the_line_that_was_turned_over_is_read_right():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(900) < 0.5, 1, -1)
    score = 1.3 * y + rng.normal(size=900)
    given = y.copy()
    given[np.argsort(y * score)[:225]] *= -1  # the rows that are hardest to tell
    rows = np.tanh(score / 2)[:, None] * rng.normal(size=30) + 0.7 * rng.normal(size=(900, 30))

    class Known(BaseEstimator):
        def fit(self, X, y):
            return self

        def embed(self, X):
            return rows

        def decision_function(self, X):
            return score

    wrong = {}
    for scored in (False, True):
        kind = type("Kind", (TextReview,), {"_scored": scored})
        review = kind(["text"] * 900, given, encoder=Known(), random_state=0)
        while len(review.history) < 60:
            asked = review.ask(5)
            review.answer(asked, y[asked])
        wrong[scored] = (review.labels != y).mean()
    assert wrong[True] < 0.5 * (given != y).mean()
    assert wrong[True] < wrong[False]


def test_a_saved_review_goes_on_with_an_encoder(texts, tmp_path):
    made, y, given = texts
    review = TextReview(made, given, encoder=Bag(), asking_epochs=2, random_state=0)
    rows = review.ask(4)
    review.answer(rows, y[rows])
    review.save(tmp_path / "texts.skops")
    again = TextReview.load(tmp_path / "texts.skops", encoder=Bag())
    assert again.asking_epochs == 2
    np.testing.assert_array_equal(again.ask(3), review.ask(3))
    assert again.retrain().turns == 2
    plain = LabelReview(np.eye(4), [0, 1, 0, 1])
    plain.save(tmp_path / "plain.skops")
    with pytest.raises(ValueError, match="not a TextReview"):
        TextReview.load(tmp_path / "plain.skops")


def test_appended_texts_join_the_review(texts, tmp_path):
    made, y, given = texts
    review = TextReview(made[:100], given[:100], encoder=Scoring(), random_state=0)
    rows = review.ask(4)
    review.answer(rows, y[rows])
    review.append(made[100:], given[100:])
    assert (len(review.labels), len(review.history), review.turns) == (120, 4, 1)
    assert len(review._data.problem.scores) == 120
    with pytest.raises(ValueError, match="texts has 3 entries and y has 2"):
        review.append(made[:3], given[:2])
    with pytest.raises(ValueError, match="labels that the review does not know: odd"):
        review.append(made[:1], ["odd"])
    assert len(review.texts) == 120, "what is refused changes nothing"
    review.save(tmp_path / "texts.skops")
    with pytest.raises(ValueError, match="call retrain"):
        TextReview.load(tmp_path / "texts.skops", encoder=Scoring()).append(made[:1], given[:1])


def test_what_cannot_be_reviewed_is_refused(texts):
    made, _, given = texts
    with pytest.raises(ValueError, match="texts has 120 entries and y has 3"):
        TextReview(made, given[:3], encoder=Bag())
    with pytest.raises(ValueError, match="sequence of texts"):
        TextReview("one text", ["good"], encoder=Bag())
    with pytest.raises(ValueError, match="must have fit"):
        TextReview(made, given, encoder=object())


class Freezing(Scoring):
    """An encoder that may be left as it came."""

    def freeze(self, classes):
        self.words_ = TfidfVectorizer().fit(["fine warm bright kind dull cold grim cruel film"])
        self.taught_ = None
        return self


class Telling(Freezing):
    """An encoder that tells labels when it is tuned, or tells them all alike."""

    def __init__(self, tells=True):
        self.tells = tells

    def predict(self, X):
        return np.where((self.decision_function(X) > 1) & self.tells, "good", "bad")


def test_few_texts_leave_the_encoder_as_it_came(texts, tmp_path):
    made, y, given = texts
    review = TextReview(made, given, encoder=Freezing(), random_state=0)
    assert not review.tuned
    assert "as it came, with a head on its embeddings" in repr(review)
    assert review.fitted_encoder.taught_ is None
    for _ in range(15):
        rows = review.ask(1)
        review.answer(rows, y[rows])
    assert review.retrain().turns == 1
    model = review.train()
    assert (model.predict(made) == y).mean() > (given == y).mean()
    review.save(tmp_path / "texts.skops")
    assert not TextReview.load(tmp_path / "texts.skops", encoder=Freezing()).tuned
    assert TextReview(made * 17, np.tile(given, 17), encoder=Freezing()).tuned, "many texts"
    assert TextReview(made, given, encoder=Freezing(), tune=True).tuned
    for tells in (True, False):
        review = TextReview(made * 20, np.tile(y, 20), encoder=Telling(tells))
        assert review.tuned is tells, "held-out texts decide"
        assert set(review.held_out_accuracy) == {"tuned", "as it came"}
        assert f"tuned {review.held_out_accuracy['tuned']:.3f}" in repr(review)
        review.save(tmp_path / "compared.skops")
        again = TextReview.load(tmp_path / "compared.skops")
        assert (again.tuned, again.held_out_accuracy) == (review.tuned, review.held_out_accuracy)
    with pytest.raises(ValueError, match="tune=False needs an encoder with freeze"):
        TextReview(made, given, encoder=Bag(), tune=False)
    with pytest.raises(ValueError, match="tune='often' must be True, False or None"):
        TextReview(made, given, encoder=Bag(), tune="often")
