"""Encoder and FLORAL head in one estimator, and which training texts each of them leans on."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

pytest.importorskip("torch", reason="text models need torch: pip install 'floral-learn[text]'")
pytest.importorskip("transformers", reason="text models need transformers")
pytest.importorskip("accelerate", reason="fine-tuning needs accelerate")
sys.path.insert(0, str(Path(__file__).parent))

from tiny_text import make_reviews, make_roberta

from floral_learn.defenses.floral import FloralClassifier
from floral_learn.neural.influence import (
    dual_influence,
    gradient_influence,
    overlap,
    top_points,
    top_rows,
)
from floral_learn.neural.text import TextClassifier
from floral_learn.neural.text_floral import TextFloralClassifier

TEXTS, SIGNS = make_reviews(80)
LABELS = np.where(SIGNS > 0, "good", "bad")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = make_roberta(tmp_path_factory.mktemp("roberta"))
    return TextClassifier(
        folder, epochs=6, learning_rate=5e-3, batch_size=8, max_length=16, device="cpu", random_state=0
    )


@pytest.fixture(scope="module")
def model(encoder):
    wrong = LABELS.copy()
    wrong[:6] = np.where(wrong[:6] == "good", "bad", "good")
    head = FloralClassifier(n_rounds=100, budget=0.15)
    return TextFloralClassifier(encoder, head, random_state=0).fit(TEXTS, wrong)


def test_texts_in_labels_out_in_a_pipeline(model):
    texts, signs = make_reviews(60, seed=2)
    truth = np.where(signs > 0, "good", "bad")
    assert model.score(texts, truth) > 0.85
    pipeline = Pipeline([("all", clone(model))])
    assert pipeline.fit(TEXTS, LABELS).score(texts, truth) > 0.85
    assert set(pipeline.predict(texts)) == {"good", "bad"}


def test_the_head_is_floral_on_the_embeddings(model):
    texts, _ = make_reviews(20, seed=3)
    rows = model.embed(texts)
    assert rows.shape == (20, 16)
    np.testing.assert_array_equal(model.predict(texts), model.head_.predict(rows))
    np.testing.assert_array_equal(model.decision_function(texts), model.head_.decision_function(rows))


def test_parameters_of_the_parts_are_reached_by_name(encoder):
    both = TextFloralClassifier(encoder, FloralClassifier()).set_params(encoder__epochs=1, head__budget=0.2)
    assert both.head.budget == 0.2
    assert both.get_params()["head__n_rounds"] == 500
    assert both.get_params()["encoder__epochs"] == 1
    encoder.set_params(epochs=6)
    assert encoder.random_state == 0


def test_a_seed_of_zero_is_a_seed(encoder):
    made = TextFloralClassifier(encoder, FloralClassifier(n_rounds=5, random_state=0), False, random_state=7)
    made.fit(TEXTS, LABELS)
    assert made.encoder_.random_state == 0
    assert made.head_.random_state == 0


def test_a_frozen_encoder_is_not_trained(encoder):
    frozen = TextFloralClassifier(encoder, FloralClassifier(n_rounds=20), fine_tune=False, random_state=0)
    frozen.fit(TEXTS, LABELS)
    assert frozen.encoder_.n_iter_ == 0
    pretrained = clone(encoder).freeze(["bad", "good"]).embed(TEXTS[:5])
    np.testing.assert_array_equal(frozen.embed(TEXTS[:5]), pretrained)


def test_an_encoder_tuned_on_trusted_labels_is_used_as_it_is(encoder):
    tuned = clone(encoder).fit(TEXTS, LABELS)
    made = TextFloralClassifier(tuned, fine_tune=False, random_state=0).fit(TEXTS, LABELS)
    assert made.encoder_ is tuned
    again = TextFloralClassifier(tuned, FloralClassifier(n_rounds=5), fine_tune=True, random_state=0).fit(TEXTS, LABELS)
    assert again.encoder_ is not tuned


def test_label_issues_rank_the_planted_flips_first(model):
    table = model.label_issues(TEXTS)
    assert len(table) == 80
    assert table["text"].iloc[0] == TEXTS[table["row"].iloc[0]]
    assert len(set(table["row"].iloc[:12]) & set(range(6))) >= 4
    assert "text" not in model.label_issues()
    with pytest.raises(ValueError, match="3 texts, the model was trained on 80"):
        model.label_issues(TEXTS[:3])


def test_files(model, tmp_path):
    model.save(tmp_path / "model")
    again = TextFloralClassifier.load(tmp_path / "model", device="cpu")
    np.testing.assert_allclose(again.decision_function(TEXTS), model.decision_function(TEXTS), atol=1e-5)
    assert again.predict(TEXTS).tolist() == model.predict(TEXTS).tolist()
    with pytest.raises(ValueError, match=r"not a folder that TextFloralClassifier\.save wrote"):
        TextFloralClassifier.load(tmp_path)


def test_trusted_labels_go_to_the_head(encoder):
    trusted = np.zeros(80, bool)
    trusted[:40] = True
    made = TextFloralClassifier(encoder, FloralClassifier(n_rounds=30, budget=0.3), fine_tune=False, random_state=0)
    made.fit(TEXTS, LABELS, trusted=trusted)
    assert made.head_.flip_rate_[:40].max() == 0
    assert made.head_.flip_rate_[40:].max() > 0


def test_wrong_input_stops_before_the_encoder(encoder, monkeypatch):
    monkeypatch.setattr(TextClassifier, "_load", lambda *_: pytest.fail("the encoder was read"))
    made = TextFloralClassifier(encoder)
    for rows, message in (
        (([], []), "X is empty"),
        ((["a", None], [0, 1]), "missing"),
        ((["a", ""], [0, 1]), "empty text"),
        ((["a", "b"], [1]), "2 texts but y has 1"),
        ((["a", "b"], [1, 1]), "at least two classes"),
    ):
        with pytest.raises(ValueError, match=message):
            made.fit(*rows)
    with pytest.raises(ValueError, match="encoder"):
        TextFloralClassifier(encoder=SVC()).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="fine_tune=False has none"):
        TextFloralClassifier(encoder, fine_tune=False).fit(TEXTS, LABELS, (TEXTS, LABELS))
    with pytest.raises(NotFittedError):
        made.predict(TEXTS)


def test_a_head_without_label_issues_says_so(encoder):
    made = TextFloralClassifier(encoder, SVC(), fine_tune=False).fit(TEXTS, LABELS)
    assert made.predict(TEXTS[:2]).shape == (2,)
    with pytest.raises(ValueError, match="SVC has no label_issues"):
        made.label_issues()


def test_influence_of_both_models_and_its_overlap(model):
    duals = dual_influence(model.head_)
    assert duals.shape == (80,)
    np.testing.assert_array_equal(np.flatnonzero(duals), model.head_.support_)
    norms = gradient_influence(model.encoder_, TEXTS, LABELS)
    assert norms.shape == (80,)
    assert 0 <= overlap(duals, norms) <= 1
    points = top_points(norms, LABELS, TEXTS, count=3)
    assert [p.row for p in points] == np.argsort(-norms)[:3].tolist()
    assert points[0].text == TEXTS[points[0].row]
    assert points[0].label == LABELS[points[0].row]


@given(st.lists(st.floats(0, 10), min_size=4, max_size=40), st.integers(0, 2**32 - 1))
def test_overlap_is_symmetric_and_whole_with_itself(values, seed):
    first = np.array(values) + 1e-3
    second = np.random.default_rng(seed).permutation(first)
    assert overlap(first, first) == 1
    assert overlap(first, second) == overlap(second, first)
    assert len(top_rows(first)) == max(1, len(first) // 4)
    kept = np.zeros(len(first), bool)
    kept[top_rows(first)] = True
    assert first[kept].min() >= first[~kept].max()


def test_overlap_of_a_hand_made_case():
    assert overlap([4, 3, 0, 0, 0, 0, 0, 0], [0, 3, 4, 0, 0, 0, 0, 0]) == 0.5
    assert top_rows([0.0, 2.0, 0.0, 1.0], 0.75).tolist() == [1, 3]  # rows without influence are not influential


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: top_rows([1.0, 2.0], 0.0), "share=0.0"),
        (lambda: top_rows([1.0, 2.0], 3), "count from 1 to 2"),
        (lambda: top_rows([1.0, np.nan]), "finite"),
        (lambda: overlap([1.0], [1.0, 2.0]), "same rows"),
        (lambda: top_points([1.0, 2.0], [0]), "one entry a training row"),
        (lambda: gradient_influence(SVC(), [], []), "no input_gradient_norms"),
    ],
)
def test_wrong_influences_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_labels_that_the_network_does_not_know_are_refused(model):
    with pytest.raises(ValueError, match="does not know"):
        gradient_influence(model.encoder_, TEXTS, np.zeros(80, int))
