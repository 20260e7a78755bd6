"""What text models take besides texts: token numbers, data sets, and an optimizer, schedule and loss of one's own."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

torch = pytest.importorskip("torch", reason="text models need torch: pip install '.[text]'")
transformers = pytest.importorskip("transformers", reason="text models need transformers")
pytest.importorskip("accelerate", reason="the Trainer, which is compared with, needs accelerate")
sys.path.insert(0, str(Path(__file__).parent))

from tiny_text import by_trainer, make_reviews, make_roberta  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

from floral_learn.neural import TextClassifier  # noqa: E402
from floral_learn.neural.text_training import TrainingSettings, fine_tune  # noqa: E402
from floral_learn.neural.tokens import TokenIds, read_token_ids  # noqa: E402
from floral_learn.paper import TextFloralClassifier  # noqa: E402

TEXTS, Y = make_reviews(24)


class Reviews(Dataset):
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, number):
        return self.items[number]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_roberta(tmp_path_factory.mktemp("roberta"))


def tiny(folder, **changes):
    settings = {"epochs": 1, "learning_rate": 5e-3, "batch_size": 8, "max_length": 16, "device": "cpu"}
    return TextClassifier(folder, random_state=0, **(settings | changes))


@pytest.fixture(scope="module")
def fitted(folder):
    return tiny(folder).fit(TEXTS, Y)


@pytest.fixture(scope="module")
def encoded(fitted):
    return fitted.tokenizer_(TEXTS, padding=True, truncation=True, max_length=16, return_tensors="np")


def forms(encoded):
    ids, mask = encoded["input_ids"], encoded["attention_mask"]
    lists = [row[keep > 0].tolist() for row, keep in zip(ids, mask, strict=True)]
    left = np.stack([np.roll(row, (keep == 0).sum()) for row, keep in zip(ids, mask, strict=True)])
    left_mask = np.stack([np.roll(keep, (keep == 0).sum()) for keep in mask])
    return {
        "lists": lists,
        "arrays": [np.array(row) for row in lists],
        "tensors": [torch.tensor(row) for row in lists],
        "matrix": ids,
        "tensor": torch.tensor(ids),
        "dict": {"input_ids": ids, "attention_mask": mask},
        "padded left": {"input_ids": torch.tensor(left), "attention_mask": torch.tensor(left_mask)},
        "encoding": encoded,
        "data set": Reviews([{"input_ids": i, "attention_mask": m} for i, m in zip(ids, mask, strict=True)]),
    }


@pytest.mark.parametrize(
    "form", ["lists", "arrays", "tensors", "matrix", "tensor", "dict", "padded left", "encoding", "data set"]
)
def test_token_numbers_are_read_as_their_texts(fitted, encoded, form):
    np.testing.assert_allclose(
        fitted.decision_function(forms(encoded)[form]), fitted.decision_function(TEXTS), rtol=1e-5, atol=1e-6
    )


def test_a_series_of_lists_is_token_numbers(encoded):
    pd = pytest.importorskip("pandas")
    lists = forms(encoded)["lists"]
    found = read_token_ids(pd.Series(lists))
    assert [row.tolist() for row in found.rows] == lists
    assert read_token_ids(pd.Series(TEXTS)) is None


def test_a_fit_on_token_numbers_is_that_on_the_texts(folder, fitted, encoded):
    again = tiny(folder).fit(forms(encoded)["lists"], Y, sample_weight=np.ones(24))
    np.testing.assert_allclose(again.decision_function(TEXTS), fitted.decision_function(TEXTS), atol=1e-5)


@pytest.mark.parametrize("fine_tune", [True, False])
def test_a_data_set_of_texts_and_labels(folder, fine_tune):
    data = Reviews([{"text": text, "label": int(y)} for text, y in zip(TEXTS, Y, strict=True)])
    settings = {"fine_tune": fine_tune, "random_state": 0}
    models = [TextFloralClassifier(tiny(folder), {"n_rounds": 20}, **settings) for _ in range(2)]
    by_data = models[0].fit(DataLoader(data, batch_size=4, shuffle=True)).decision_function(data)
    by_texts = models[1].fit(TEXTS, Y).decision_function(TEXTS)
    np.testing.assert_allclose(by_data, by_texts, atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([[1, 2], []], r"X\[1\] has no tokens"),
        ([[1, 2], [3, 4000]], r"X\[1\] has the token 4000; this model has tokens 0 to"),
        ([[1, 2], [-3]], r"has the token -3"),
        ([[1, 2], "a film"], r"X\[1\] must be a list of token numbers"),
        (np.array([[0.5, 1.0]]), "must be a flat list of texts"),
        ({"input_ids": [[1, 2]], "attention_mask": [[1]]}, "differ in shape"),
        ({"input_ids": ["a"]}, "must be integers"),
        ({"ids": [[1]]}, "must be a list of texts, not dict"),
    ],
)
def test_token_numbers_that_cannot_be_read_are_refused(fitted, wrong, message):
    with pytest.raises(ValueError, match=message):
        fitted.predict(wrong)


def test_long_rows_are_cut_and_rows_can_be_picked():
    given = TokenIds([np.arange(2, 12), np.array([5])])
    cut = given.tokens(pad=1, vocabulary=20, max_length=4)
    assert cut.ids.tolist() == [[2, 3, 4, 5], [5, 1, 1, 1]]
    assert [row.tolist() for row in given[[1]].rows] == [[5]]


def test_labels_are_needed(folder):
    with pytest.raises(ValueError, match="requires y to be passed"):
        tiny(folder).fit(TEXTS)
    with pytest.raises(ValueError, match="hold no labels"):
        tiny(folder).fit(Reviews(TEXTS))


def linear(optimizer, steps):
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)


def per_text(logits, target):
    return torch.nn.functional.cross_entropy(logits, target, reduction="none")


def test_the_default_written_out_is_the_default(folder, fitted):
    own = tiny(folder, scheduler=linear, loss=per_text).fit(TEXTS, Y)
    np.testing.assert_allclose(own.decision_function(TEXTS), fitted.decision_function(TEXTS), atol=1e-4)


def test_own_parts_change_the_training_and_survive_a_clone(folder, fitted):
    own = tiny(folder, optimizer=partial(torch.optim.SGD, lr=0.05), loss=torch.nn.CrossEntropyLoss(label_smoothing=0.3))
    found = clone(own).fit(TEXTS, Y).decision_function(TEXTS)
    np.testing.assert_array_equal(found, own.fit(TEXTS, Y).decision_function(TEXTS))
    assert not np.allclose(found, fitted.decision_function(TEXTS))


@pytest.mark.parametrize(
    "own",
    [
        {"optimizer": partial(torch.optim.SGD, lr=0.05)},
        {"scheduler": linear},
        {"loss": per_text},
        {"optimizer": torch.optim.Adam, "scheduler": linear, "loss": per_text},
    ],
)
def test_own_parts_are_trained_with_as_the_trainer_does(folder, own):
    """In doubles, since Adam's first steps divide gradients by their own size and make the rounding of small ones
    visible."""
    clf = tiny(folder)
    settings = TrainingSettings(2, 5e-3, 0.01, 24, 0, **own)  # one batch per epoch: no order of rows
    weights = []
    for train in (fine_tune, by_trainer):
        network, _ = clf._load(2)
        network.model.double()
        train(network.model, network.tokens(TEXTS), (Y > 0).astype(int), settings, "cpu")
        weights.append(torch.cat([p.detach().flatten() for p in network.model.parameters()]))
    torch.testing.assert_close(weights[0], weights[1], atol=1e-9, rtol=1e-6)


def test_what_does_not_fit_is_refused(folder):
    for wrong, message in (
        ({"optimizer": "adam"}, "'optimizer' parameter"),
        ({"optimizer": lambda parameters: 3}, "made int; it must take parameters"),
        ({"loss": lambda logits, target: logits}, "one number or one per row"),
    ):
        with pytest.raises(ValueError, match=message):
            tiny(folder, **wrong).fit(TEXTS, Y)
    with pytest.raises(ValueError, match="rows have weights: return one loss per row"):
        tiny(folder, loss=torch.nn.CrossEntropyLoss()).fit(TEXTS, Y, sample_weight=np.linspace(1, 2, 24))
