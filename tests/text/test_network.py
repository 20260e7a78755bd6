"""What is loaded and written: last layers, padding, lengths, devices, the hub, folders that stay whole."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import refuses

torch = pytest.importorskip("torch", reason="text models need torch: pip install '.[text]'")
transformers = pytest.importorskip("transformers", reason="text models need transformers")

from tiny_text import make_gpt, make_reviews, make_roberta, make_tokenizer  # noqa: E402

from floral_learn import TextClassifier  # noqa: E402
from floral_learn.text import network  # noqa: E402

TEXTS, SIGNS = make_reviews(24)


def tiny(folder, **changes):
    settings = {"epochs": 1, "learning_rate": 5e-3, "batch_size": 8, "device": "cpu", "random_state": 0}
    return TextClassifier(folder, **(settings | changes))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_roberta(tmp_path_factory.mktemp("roberta"))


@pytest.fixture(scope="module")
def fitted(folder):
    return tiny(folder).fit(TEXTS, SIGNS)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    return make_roberta(tmp_path_factory.mktemp("two-labels"), labels=2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_last_layer_is_new_whatever_the_files_hold(classifier, n_classes):
    from safetensors.numpy import load_file

    held = load_file(Path(classifier) / "model.safetensors")
    classes = list("abc")[:n_classes]
    made = tiny(classifier).freeze(classes).model_
    now = {name: value.detach().numpy() for name, value in made.named_parameters()}
    assert now["classifier.out_proj.weight"].shape == (n_classes, 16)
    for name, value in now.items():
        equal = value.shape == held[name].shape and np.array_equal(value, held[name])
        assert equal == (not name.startswith("classifier.")) or not value.any(), name  # biases start at zero
    assert now["classifier.out_proj.weight"].std() == pytest.approx(0.2, rel=0.4)  # as its configuration says
    again = tiny(classifier).freeze(classes).model_.classifier.out_proj.weight
    np.testing.assert_array_equal(again.detach().numpy(), now["classifier.out_proj.weight"])
    other = tiny(classifier, random_state=1).freeze(classes).model_.classifier.out_proj.weight
    assert not np.array_equal(other.detach().numpy(), now["classifier.out_proj.weight"])


def test_a_checkpoint_of_two_labels_is_fitted_on_three_classes(classifier, fitted, tmp_path):
    y = np.arange(24) % 3
    assert tiny(classifier).fit(TEXTS, y).predict_proba(TEXTS).shape == (24, 3)
    fitted.save(tmp_path / "two")
    assert tiny(str(tmp_path / "two")).fit(TEXTS, y).predict_proba(TEXTS).shape == (24, 3)
    assert TextClassifier.load(tmp_path / "two").fit(TEXTS, y).classes_.tolist() == [0, 1, 2]


def test_a_checkpoint_for_another_kind_of_problem_is_trained_on_classes(classifier, tmp_path):
    where = tmp_path / "many"
    network = transformers.AutoModelForSequenceClassification.from_pretrained(classifier)
    network.config.problem_type = "multi_label_classification"
    network.save_pretrained(where)
    make_tokenizer(where)
    assert np.isfinite(tiny(str(where)).fit(TEXTS, SIGNS).history_["loss"]).all()


def test_roberta_reads_what_its_places_hold(folder):
    words = [" ".join(["film"] * 100)] * 4
    cut = tiny(folder).fit(words, [0, 1, 0, 1])
    assert cut.max_length_ == 38  # 40 places, the first two are padding's
    assert cut.predict(words).shape == (4,)
    assert tiny(folder, max_length=20).fit(words, [0, 1, 0, 1]).max_length_ == 20


def test_a_model_without_a_padding_token_is_trained_and_answers_alike_alone_and_in_a_batch(tmp_path):
    model = tiny(make_gpt(tmp_path / "gpt")).fit(TEXTS, SIGNS)
    assert model.model_.config.pad_token_id == model.tokenizer_.pad_token_id == model.tokenizer_.eos_token_id == 2
    texts = ["a film", "a very dull and quite boring film", "great"]
    together = model.predict_proba(texts)
    np.testing.assert_allclose(together, np.vstack([model.predict_proba([text]) for text in texts]), atol=1e-6)
    norms, logits = model.input_gradient_norms(texts, [0, 1, 0])
    np.testing.assert_allclose(logits, model.forward(texts)[0], atol=1e-6)
    alone = [model.input_gradient_norms([text], [code])[0][0] for text, code in zip(texts, [0, 1, 0], strict=True)]
    np.testing.assert_allclose(norms, alone, rtol=1e-4)


def test_without_any_token_to_pad_with_it_says_so(tmp_path):
    where = tmp_path / "gpt"
    make_gpt(where)
    path = where / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    del settings["eos_token"]
    path.write_text(json.dumps(settings))
    refuses("neither a padding token nor an end-of-text token", tiny(str(where)).fit, TEXTS, SIGNS)


@pytest.mark.parametrize("rate", [1e30, 1e20])
@pytest.mark.parametrize("epochs", [1, 3])
def test_a_loss_that_is_not_finite_is_an_error_and_leaves_the_model_before(folder, rate, epochs):
    model = tiny(folder).fit(TEXTS, SIGNS)
    before = model.decision_function(TEXTS)
    with pytest.raises(ValueError, match="lower learning_rate="):
        model.set_params(learning_rate=rate, epochs=epochs, batch_size=24).fit(TEXTS, np.arange(24) % 3)
    np.testing.assert_array_equal(model.decision_function(TEXTS), before)


def test_a_refit_that_fails_leaves_the_model_before(folder):
    model = tiny(folder).fit(TEXTS, SIGNS)
    kept = {name: value for name, value in vars(model).items() if name.endswith("_")}
    model.set_params(model="/no/such")
    for fit in (lambda: model.fit(TEXTS, np.arange(24) % 3), lambda: model.freeze(["a", "b"])):
        refuses("cannot be loaded", fit)
        assert all(value is kept[name] for name, value in vars(model).items() if name.endswith("_"))
    assert set(model.predict(TEXTS)) <= {-1, 1}


def test_devices_are_named_as_torch_names_them(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for name in ("cpu", "cuda", "cuda:1"):
        assert network.chosen_device(name) == name
    assert network.chosen_device(None) == "cuda"
    refuses("device='gpu' is not a torch device", network.chosen_device, "gpu")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_numbered_gpu_is_where_the_model_lies(folder):
    number = torch.cuda.device_count() - 1
    current = torch.cuda.current_device()
    model = tiny(folder, device=f"cuda:{number}").fit(TEXTS, SIGNS)
    assert next(model.model_.parameters()).device == torch.device("cuda", number)
    assert model.embed(TEXTS).shape == (24, 16)
    assert model.input_gradient_norms(TEXTS, (SIGNS > 0).astype(int))[0].shape == (24,)
    assert torch.cuda.current_device() == current


def test_a_name_is_looked_for_on_this_disk_only_and_silently(capfd):
    asked = []
    loader = SimpleNamespace(from_pretrained=lambda source, **options: asked.append(options) or "loaded")
    assert network.load_part(loader, "roberta-base") == "loaded"
    assert asked == [{"local_files_only": True, "trust_remote_code": False}]
    refuses(r"model='my-modle' cannot be loaded .*hf download NAME", tiny("my-modle").fit, TEXTS, SIGNS)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("config", ["{}", "not JSON", '{"model_type": "roberta"}', '{"model_type": "no-such-kind"}'])
def test_a_folder_with_a_broken_model_is_named(tmp_path, config):
    (tmp_path / "config.json").write_text(config)
    refuses("cannot be loaded", tiny(str(tmp_path)).fit, TEXTS, SIGNS)
    (tmp_path / "config.json").write_text("{}")
    refuses("model_type", tiny(str(tmp_path)).fit, TEXTS, SIGNS)


def test_a_missing_package_is_not_called_a_broken_model():
    def from_pretrained(source, **options):
        raise ImportError("pip install sentencepiece")

    with pytest.raises(ImportError, match="sentencepiece"):
        network.load_part(SimpleNamespace(from_pretrained=from_pretrained), "some-model")


def test_numbers_of_numpy_are_saved_as_numbers(folder, tmp_path):
    model = tiny(folder, epochs=np.int64(1), learning_rate=np.float32(0.25), random_state=np.random.RandomState(0))
    model.fit(TEXTS, SIGNS).save(tmp_path / "model")
    again = TextClassifier.load(tmp_path / "model", device="cpu")
    assert (again.epochs, again.learning_rate, again.max_length, again.random_state) == (1, 0.25, 256, None)
    assert again.max_length_ == 38
    np.testing.assert_array_equal(again.decision_function(TEXTS), model.decision_function(TEXTS))


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("when", ["the note", "the tokenizer"])
def test_a_save_that_fails_leaves_the_folder_as_it_was(folder, tmp_path, when):
    where = tmp_path / "model"
    tiny(folder).fit(TEXTS, SIGNS).save(where)
    (where / "mine.txt").write_text("notes of my own")
    before = contents(tmp_path)
    other = tiny(folder, random_state=1).fit(TEXTS, SIGNS)
    if when == "the note":
        other.epochs = object()
    else:
        other.tokenizer_ = None  # the weights are written by then
    with pytest.raises((TypeError, AttributeError)):
        other.save(where)
    assert contents(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_save_replaces_its_own_files_and_no_others(folder, fitted, tmp_path):
    where = tmp_path / "model"
    fitted.save(where)
    (where / "mine.txt").write_text("notes of my own")
    (where / "model-00001-of-00002.safetensors").write_text("weights in two files, from an earlier save")
    other = tiny(folder, random_state=1).fit(TEXTS, SIGNS)
    other.save(where)
    assert (where / "mine.txt").is_file()
    assert sorted(path.name for path in where.glob("model*")) == ["model.safetensors"]
    again = TextClassifier.load(where, device="cpu")
    np.testing.assert_array_equal(again.decision_function(TEXTS), other.decision_function(TEXTS))
    again.save(where)  # into the files that it was read from
    np.testing.assert_array_equal(TextClassifier.load(where, device="cpu").embed(TEXTS), other.embed(TEXTS))
    refuses("is a file", other.save, where / "mine.txt")


def test_a_folder_of_a_newer_format_is_refused(fitted, tmp_path):
    fitted.save(tmp_path)
    note = json.loads((tmp_path / "floral.json").read_text())
    (tmp_path / "floral.json").write_text(json.dumps(note | {"format": 99}))
    refuses("newer format", TextClassifier.load, tmp_path)


def test_loading_reads_the_saved_last_layer(fitted, tmp_path):
    fitted.save(tmp_path)
    again = TextClassifier.load(tmp_path, device="cpu").model_
    assert torch.equal(again.classifier.out_proj.weight, fitted.model_.classifier.out_proj.weight)
