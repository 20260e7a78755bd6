"""Folders of text models by an enemy or an accident: ModelFileError, before anything large is allocated."""

import json
import shutil

import numpy as np
import pytest

pytest.importorskip("torch", reason="text models need torch: pip install '.[text]'")
pytest.importorskip("transformers", reason="text models need transformers")

from tiny_text import make_reviews, make_roberta

from floral_learn import TextClassifier
from floral_learn.base import ModelFileError

TEXTS, SIGNS = make_reviews(20)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = make_roberta(tmp_path_factory.mktemp("encoder"))
    model = TextClassifier(folder, epochs=1, device="cpu", random_state=0).fit(TEXTS, SIGNS)
    model.save(where := tmp_path_factory.mktemp("model") / "saved")
    return where, model.decision_function(TEXTS)


def changed(saved, tmp_path, file, **values):
    """A copy of the folder with names of a JSON file replaced, or taken out (None)."""
    shutil.copytree(saved[0], tmp_path / "copy")
    path = tmp_path / "copy" / file
    content = {name: value for name, value in (json.loads(path.read_text()) | values).items() if value is not None}
    path.write_text(json.dumps(content))
    return tmp_path / "copy"


def test_an_unchanged_copy_says_the_same(saved, tmp_path):
    again = TextClassifier.load(changed(saved, tmp_path, "config.json"), device="cpu")
    np.testing.assert_array_equal(again.decision_function(TEXTS), saved[1])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden_size", 50_000),
        ("hidden_size", 32),
        ("num_hidden_layers", 300),
        ("num_hidden_layers", 3),
        ("vocab_size", 10**8),
        ("vocab_size", -1),
        ("max_position_embeddings", 10**8),
        ("intermediate_size", 33),
        ("model_type", "nothing"),
        ("hidden_act", 7),
    ],
)
def test_a_configuration_of_another_network_is_refused(saved, tmp_path, name, value):
    with pytest.raises(ModelFileError, match="is damaged"):
        TextClassifier.load(changed(saved, tmp_path, "config.json", **{name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [("classes", None), ("dtype", "V8"), ("dtype", 5), ("history", []), ("pooling", "x"), ("parameters", {"a": 1})],
)
def test_a_note_of_another_kind_is_refused(saved, tmp_path, name, value):
    with pytest.raises(ModelFileError, match=r"is not a folder that TextClassifier\.save wrote"):
        TextClassifier.load(changed(saved, tmp_path, "floral.json", **{name: value}))


@pytest.mark.parametrize("content", [b"", b"half", b"\xff" * 100, b"\x10" + b"\0" * 7 + b"{"])
@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "floral.json", "tokenizer.json"])
def test_half_files_are_refused(saved, tmp_path, file, content):
    folder = changed(saved, tmp_path, "config.json")
    (folder / file).write_bytes(content)
    with pytest.raises(ModelFileError):
        TextClassifier.load(folder)
