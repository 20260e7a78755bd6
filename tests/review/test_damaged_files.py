"""Review files by an enemy or an accident: ModelFileError, or a review that works."""

import copy
import io
import json
import random
import zipfile

import numpy as np
import pytest
from archives import members, packed, places
from scipy import sparse
from sklearn.datasets import make_moons

from floral_learn import LabelReview
from floral_learn.base import ModelFileError
from floral_learn.base.models import archive_bytes

X, Y = make_moons(40, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def review():
    review = LabelReview(X, Y, random_state=0)
    review.answer([1, 2, 3], [0, 1, 0])
    return review


@pytest.fixture(scope="module")
def raw(review, tmp_path_factory):
    review.save(path := tmp_path_factory.mktemp("review") / "review.skops")
    return path.read_bytes()


def opened(path, content):
    """Whether the file was refused; one that is not refused must work."""
    path.write_bytes(content)
    try:
        back = LabelReview.load(path)
    except ModelFileError:
        return False
    back.ask(2)
    back.guarantee()
    return True


CHANGES = {
    "no review": lambda s: [],
    "nothing": lambda s: {},
    "no log": lambda s: {name: value for name, value in s.items() if name != "log"},
    "NaN": lambda s: s | {"X": np.full_like(s["X"], np.nan)},
    "a short X": lambda s: s | {"X": s["X"][:5]},
    "text for X": lambda s: s | {"X": np.full(s["X"].shape, "a")},
    "one row": lambda s: s | {"X": s["X"][:1], "y": s["y"][:1]},
    "flat X": lambda s: s | {"X": s["X"].ravel()},
    "one class": lambda s: s | {"classes": s["classes"][:1]},
    "unknown labels": lambda s: s | {"y": s["y"] + 7},
    "negative weights": lambda s: s | {"sample_weight": -s["sample_weight"]},
    "few trusted": lambda s: s | {"trusted": s["trusted"][:3]},
    "a seed below 0": lambda s: s | {"seed": -1},
    "answers about no row": lambda s: s | {"log": [[10**6, 0, "me", 1, True]]},
    "answers of no class": lambda s: s | {"log": [[1, 9, "me", 1, True]]},
    "answers that go back in time": lambda s: s | {"log": [[1, 0, "me", 2, True], [2, 0, "me", 1, True]]},
    "answers in halves": lambda s: s | {"log": [[1, 0]]},
    "answers as text": lambda s: s | {"log": "me"},
    "a sparse X of other rows": lambda s: s | {"X": sparse.csr_matrix(s["X"][:5])},
}
ORDERS = {
    "short": lambda order: order[:5],
    "twice": lambda order: np.zeros_like(order),
    "far": lambda order: order + 1,
    "below": lambda order: order - 1,
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_state_that_cannot_be_is_refused(review, tmp_path, name):
    assert not opened(tmp_path / "r.skops", archive_bytes("review", CHANGES[name](review.state())))


@pytest.mark.parametrize("name", ORDERS)
def test_the_order_that_the_guarantee_rests_on_has_every_row_once(review, tmp_path, name):
    state = review.state()
    (tmp_path / "r.skops").write_bytes(archive_bytes("review", state | {"order": ORDERS[name](state["order"])}))
    with pytest.raises(ModelFileError, match="the order of rows"):
        LabelReview.load(tmp_path / "r.skops")


def test_a_bomb_is_refused_before_it_is_unpacked(raw, tmp_path, monkeypatch):
    files = members(raw)
    np.save(stream := io.BytesIO(), np.zeros((4_000_000, 1)))
    name = next(name for name in files if name.endswith(".npy"))
    content = packed(files | {name: stream.getvalue()}, zipfile.ZIP_DEFLATED)
    (tmp_path / "r.skops").write_bytes(content)
    assert len(content) < 200_000
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("an array was unpacked"))
    with pytest.raises(ModelFileError, match="bytes when unpacked, more than the limit of 4,000,000"):
        LabelReview.load(tmp_path / "r.skops", max_bytes=4_000_000)


def test_changed_bytes_are_refused_or_change_nothing(raw, tmp_path):
    rng, refused = random.Random(0), 0
    for number in range(120):
        content = bytearray(raw)
        if number % 2:
            del content[len(raw) * number // 120 :]
        else:
            for _ in range(rng.randint(1, 6)):
                content[rng.randrange(len(content))] = rng.randrange(256)
        refused += not opened(tmp_path / "r.skops", bytes(content))
    assert refused > 115


def test_changed_schemas_raise_one_type_of_error(raw, tmp_path):
    rng, original = random.Random(1), json.loads(members(raw)["schema.json"])
    values = [None, 7, -1, "x", "", [], {}, True, 1e308, "null", "-1", "[]", "1e999", "99999999999999999999"]
    for number in range(100):
        schema = copy.deepcopy(original)
        item, key = rng.choice([p for p in places(schema) if p[1] == "content"] if number % 2 else places(schema))
        item[key] = rng.choice(values)
        opened(tmp_path / "r.skops", packed(members(raw) | {"schema.json": json.dumps(schema).encode()}))
