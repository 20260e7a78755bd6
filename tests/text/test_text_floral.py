"""Encoder and FLORAL head in one estimator, and which training texts each of them leans on."""

import copy
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

pytest.importorskip("torch", reason="text models need torch: pip install '.[text]'")
pytest.importorskip("transformers", reason="text models need transformers")

from tiny_text import make_reviews, make_roberta

from floral_learn import TextClassifier
from floral_learn.floral import FloralClassifier
from floral_learn.paper import PaperFloralClassifier, TextFloralClassifier
from floral_learn.paper.diagnosis import dual_influence, gradient_influence, overlap, top_rows

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
    made = TextFloralClassifier(encoder, FloralClassifier(n_rounds=5, random_state=0), fine_tune=False, random_state=7)
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


class KeepsEmbeddings(FloralClassifier):
    """A head that remembers every matrix that a head of its kind was fitted on."""

    seen: list = []  # noqa: RUF012 (shared on purpose: searches make clones)

    def fit(self, X, y, sample_weight=None, trusted=None):
        KeepsEmbeddings.seen.append(X)
        return super().fit(X, y, sample_weight, trusted)


@pytest.mark.parametrize("nested", [False, True], ids=["alone", "in a pipeline"])
def test_a_fitted_encoder_goes_into_searches_and_cross_validation(encoder, nested):
    tuned = clone(encoder).set_params(epochs=2).fit(TEXTS, LABELS)
    known = {tuple(row) for row in tuned.embed(TEXTS).round(4).tolist()}
    made = TextFloralClassifier(tuned, KeepsEmbeddings(n_rounds=5), fine_tune=False, random_state=0)
    KeepsEmbeddings.seen.clear()
    model = Pipeline([("clf", made)]) if nested else made
    texts = np.array(TEXTS, dtype=object)
    cross_val_score(model, texts, LABELS, cv=2, error_score="raise")
    prefix = "clf__" if nested else ""
    search = GridSearchCV(model, {f"{prefix}head__budget": [0.05, 0.2]}, cv=2, error_score="raise").fit(texts, LABELS)
    assert len(KeepsEmbeddings.seen) == 2 + 2 * 2 + 1
    for rows in KeepsEmbeddings.seen:
        assert {tuple(row) for row in rows.round(4).tolist()} <= known
    best = search.best_estimator_["clf"] if nested else search.best_estimator_
    assert best.encoder_.model_ is tuned.model_  # shared, not copied
    assert best.encoder_.n_iter_ == 2


def test_a_clone_shares_weights_and_has_parameters_of_its_own(encoder):
    tuned = clone(encoder).freeze(["bad", "good"])
    for fine_tune in (False, True):  # True, too: a search may set it to False later
        made = TextFloralClassifier(tuned, FloralClassifier(budget=0.02), fine_tune=fine_tune)
        other = clone(made).set_params(encoder__batch_size=3, head__budget=0.3)
        assert other.encoder.model_ is tuned.model_
        assert (tuned.batch_size, made.head.budget) == (8, 0.02)
        assert not hasattr(other, "head_")
    assert not hasattr(clone(TextFloralClassifier(encoder)).encoder, "model_")


def test_label_issues_rank_the_planted_flips_first(model):
    table = model.label_issues(TEXTS)
    assert len(table) == 80
    assert table["text"].iloc[0] == TEXTS[table["row"].iloc[0]]
    assert len(set(table["row"].iloc[:12]) & set(range(6))) >= 4
    assert "text" not in model.label_issues()
    refuses("3 texts, the model was trained on 80", model.label_issues, TEXTS[:3])


def test_files(model, tmp_path):
    model.save(tmp_path / "model")
    again = TextFloralClassifier.load(tmp_path / "model", device="cpu")
    np.testing.assert_allclose(again.decision_function(TEXTS), model.decision_function(TEXTS), atol=1e-5)
    assert again.predict(TEXTS).tolist() == model.predict(TEXTS).tolist()
    (tmp_path / "model" / "head.skops").rename(tmp_path / "head.skops")
    for folder in (tmp_path, tmp_path / "model", tmp_path / "model" / "encoder"):
        refuses(r"not a folder that TextFloralClassifier\.save wrote", TextFloralClassifier.load, folder)


@pytest.mark.parametrize("fine_tune", [True, False])
def test_a_loaded_model_fitted_again_does_what_it_did(encoder, tmp_path, fine_tune):
    quick = clone(encoder).set_params(epochs=1, random_state=None)
    if not fine_tune:  # tuned on labels that were right
        quick.set_params(random_state=1).fit(TEXTS, LABELS)
    made = TextFloralClassifier(quick, {"n_rounds": 20}, fine_tune=fine_tune, random_state=3).fit(TEXTS, LABELS)
    scores = made.decision_function(TEXTS)
    made.save(tmp_path / "first")
    TextFloralClassifier.load(tmp_path / "first", "cpu").save(tmp_path / "second")  # nothing is lost on the way
    shutil.rmtree(tmp_path / "first")
    again = TextFloralClassifier.load(tmp_path / "second", "cpu")
    np.testing.assert_array_equal(again.decision_function(TEXTS), scores)
    assert (again.fine_tune, again.random_state) == (fine_tune, 3)
    np.testing.assert_array_equal(again.fit(TEXTS, LABELS).decision_function(TEXTS), scores)
    assert again.encoder_.n_iter_ == 1


def test_a_save_that_fails_leaves_the_folder_as_it_was(model, tmp_path):
    model.save(tmp_path / "model")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    broken = copy.copy(model)
    broken.head_ = copy.copy(model.head_)
    broken.head_.kernel = lambda a, b: a @ b.T
    broken.verbose = 1
    refuses("kernel is a function", broken.save, tmp_path / "model")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_rows_of_weight_zero_do_not_train_the_encoder(encoder):
    quick = clone(encoder).set_params(epochs=1)
    weight = np.ones(80)
    weight[60:] = 0
    wrong = LABELS.copy()
    wrong[60:] = np.where(wrong[60:] == "good", "bad", "good")
    made = TextFloralClassifier(quick, FloralClassifier(n_rounds=10), random_state=0)
    made.fit(TEXTS, wrong, sample_weight=weight)
    alone = clone(quick).fit(TEXTS[:60], LABELS[:60])
    np.testing.assert_array_equal(made.embed(TEXTS), alone.embed(TEXTS))
    assert len(made.label_issues(TEXTS)) == 80
    head = make_pipeline(StandardScaler(), FloralClassifier(n_rounds=10))
    piped = TextFloralClassifier(quick, head, random_state=0, verbose=1)
    piped.fit(TEXTS, wrong, floralclassifier__sample_weight=weight)
    np.testing.assert_array_equal(piped.embed(TEXTS), alone.embed(TEXTS))


def test_a_head_may_be_a_dict_and_parts_not_given_have_parameters(encoder):
    made = TextFloralClassifier(encoder, {"n_rounds": 7, "budget": 0.1}, fine_tune=False, random_state=0)
    made.fit(TEXTS, LABELS)
    assert (made.head_.n_rounds, made.head_.budget) == (7, 0.1)
    assert made.head == {"n_rounds": 7, "budget": 0.1}
    clone(made).set_params(head__n_rounds=3)
    made.set_params(head__n_rounds=3)
    assert (made.head.n_rounds, made.head.budget) == (3, 0.1)
    empty = TextFloralClassifier().set_params(head__budget=0.3, encoder__epochs=2)
    assert (empty.head.budget, empty.encoder.epochs) == (0.3, 2)
    assert TextFloralClassifier().set_params(head=None).head is None
    search = GridSearchCV(TextFloralClassifier(encoder, fine_tune=False), {"head__n_rounds": [2, 4]}, cv=2)
    assert search.fit(np.array(TEXTS, dtype=object), LABELS).best_params_["head__n_rounds"] in (2, 4)
    refuses("Invalid parameter 'budgets'", TextFloralClassifier().set_params, head__budgets=0.3)


WRONG_HEADS = [
    (FloralClassifier(n_rounds=-1), {}, "n_rounds"),
    ({"n_rounds": -1}, {}, "n_rounds"),
    ({"rounds": 3}, {}, "'rounds' is not a parameter of FloralClassifier"),
    (make_pipeline(StandardScaler(), FloralClassifier(n_rounds=-1)), {}, "n_rounds"),
    (FloralClassifier(budget=1.5), {}, "budget=1.5"),
    (FloralClassifier(budget=100), {}, "the number of rows, 80"),
    (PaperFloralClassifier(decay=(2, 1)), {}, "decay"),
    (PaperFloralClassifier(flip_distribution=[[1.0]]), {}, "flip_distribution"),
    (FloralClassifier(device="tpu9"), {}, "device='tpu9'"),
    (FloralClassifier(class_weight={"ugly": 2}), {}, "class_weight"),
    (FloralClassifier(kernel="precomputed"), {}, "kernel='precomputed'"),
    (LinearRegression(), {}, "must be a classifier"),
    (StandardScaler(), {"trusted": np.ones(80, bool)}, "has no parameter 'trusted'"),
    (None, {"trusted": np.ones(3, bool)}, "trusted="),
    (None, {"trusted": np.ones(80)}, "trusted="),
    (None, {"sample_weight": np.ones(3)}, "sample_weight"),
    (None, {"sample_weight": -np.ones(80)}, "sample_weight"),
    (None, {"sample_weight": (LABELS == "good").astype(float)}, "every row of class 'bad'"),
    (None, {"weights": np.ones(80)}, "FloralClassifier.fit has no parameter 'weights'"),
    (SVC(), {"trusted": np.ones(80, bool)}, "SVC.fit has no parameter 'trusted'"),
]


@pytest.mark.parametrize(("head", "given", "message"), WRONG_HEADS, ids=[message for _, _, message in WRONG_HEADS])
def test_what_the_head_refuses_is_refused_before_the_encoder_is_read(encoder, monkeypatch, head, given, message):
    monkeypatch.setattr(TextClassifier, "_load", lambda *_: pytest.fail("the encoder was read"))
    refuses(message, TextFloralClassifier(encoder, head).fit, TEXTS, LABELS, **given, error=(ValueError, TypeError))


def test_a_refit_that_fails_leaves_the_model_before(encoder):
    made = TextFloralClassifier(encoder, {"n_rounds": 5}, fine_tune=False, random_state=0).fit(TEXTS, LABELS)
    scores, fitted = made.decision_function(TEXTS), made.encoder_
    made.set_params(head=SVC(kernel=lambda a, b: 1 / 0))  # a head that fails only once it has embeddings
    with pytest.raises(ZeroDivisionError):
        made.fit(TEXTS, np.arange(80) % 3)
    assert made.encoder_ is fitted
    assert made.classes_.tolist() == ["bad", "good"]
    np.testing.assert_array_equal(made.decision_function(TEXTS), scores)


def test_trusted_labels_go_to_the_head(encoder):
    trusted = np.zeros(80, bool)
    trusted[:40] = True
    made = TextFloralClassifier(encoder, FloralClassifier(n_rounds=30, budget=0.3), fine_tune=False, random_state=0)
    made.fit(TEXTS, LABELS, trusted=trusted)
    assert made.head_.flip_rate_[:40].max() == 0
    assert made.head_.flip_rate_[40:].max() > 0


def test_wrong_input_stops_before_the_encoder(encoder, monkeypatch):
    fitted = clone(encoder).freeze(["bad", "good"])
    monkeypatch.setattr(TextClassifier, "_load", lambda *_: pytest.fail("the encoder was read"))
    made = TextFloralClassifier(encoder)
    refuses("empty text", made.fit, ["a", ""], [0, 1])
    refuses("encoder", TextFloralClassifier(encoder=SVC()).fit, TEXTS, LABELS)
    for one in (encoder, fitted):
        with pytest.raises(ValueError, match="fine_tune=False has none"):
            TextFloralClassifier(one, fine_tune=False).fit(TEXTS, LABELS, (TEXTS, LABELS))
    with pytest.raises(NotFittedError):
        made.predict(TEXTS)


def test_a_head_without_label_issues_says_so(encoder):
    made = TextFloralClassifier(encoder, SVC(), fine_tune=False).fit(TEXTS, LABELS)
    assert made.predict(TEXTS[:2]).shape == (2,)
    refuses("SVC has no label_issues", made.label_issues)


def test_influence_of_both_models_and_its_overlap(model):
    duals = dual_influence(model.head_)
    assert duals.shape == (80,)
    np.testing.assert_array_equal(np.flatnonzero(duals), model.head_.support_)
    norms = gradient_influence(model.encoder_, TEXTS, LABELS)
    assert norms.shape == (80,)
    assert 0 <= overlap(duals, norms) <= 1


@settings(deadline=None)  # a busy machine is no failure
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
        (lambda: gradient_influence(SVC(), [], []), "no input_gradient_norms"),
        (lambda: gradient_influence(TextClassifier(), ["a"], [0]), "not fitted"),
        (lambda: dual_influence(FloralClassifier()), "not fitted"),
        (lambda: dual_influence(SVC().fit([[0.0], [1.0]], [0, 1])), "SVC has no flip_rate_"),
    ],
)
def test_wrong_influences_are_refused(call, message):
    refuses(message, call)


def test_labels_that_the_network_does_not_know_are_refused(model):
    refuses("does not know", gradient_influence, model.encoder_, TEXTS, np.zeros(80, int))
