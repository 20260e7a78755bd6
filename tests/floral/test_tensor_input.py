"""Torch tensors in: the same model as from numpy, and tensors out."""

import numpy as np
import pytest
from refusals import refuses
from sklearn.datasets import load_digits, make_moons

from floral_learn import FloralClassifier

torch = pytest.importorskip("torch")

DEVICES = [None, "cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(params=DEVICES, ids=str)
def device(request):
    return request.param


def moons(n=300):
    X, y = make_moons(n, noise=0.2, random_state=0)
    return X, y


def place(X, device):
    return torch.as_tensor(X, device="cuda" if device == "cuda" else "cpu")


@pytest.mark.parametrize("gram", ["dense", 40])
@pytest.mark.parametrize("n", [300, 1100])
def test_a_tensor_gives_the_model_of_the_array(device, gram, n):
    X, y = moons(n)
    params = {"n_rounds": 40, "random_state": 0, "gram": gram, "device": device}
    weight = np.linspace(0.5, 1.5, len(y))
    for more in ({}, {"sample_weight": weight}):
        expected = FloralClassifier(**params).fit(X, y, **more)
        tensors = {name: torch.as_tensor(value) for name, value in more.items()}
        found = FloralClassifier(**params).fit(place(X, device), torch.as_tensor(y), **tensors)
        assert found.gamma_ == pytest.approx(expected.gamma_, rel=1e-6)
        scores = found.decision_function(place(X, device))
        assert isinstance(scores, torch.Tensor)
        np.testing.assert_allclose(
            scores.cpu().numpy(), expected.decision_function(X), atol=1e-8 if n <= 1000 else 1e-3
        )
        assert isinstance(found.support_vectors_, np.ndarray)
        assert isinstance(found.decision_function(X), np.ndarray)


def test_classes_come_back_as_a_tensor_where_they_are_numbers(device):
    X, y = load_digits(return_X_y=True)
    clf = FloralClassifier(n_rounds=30, random_state=0, device=device).fit(place(X, device), torch.as_tensor(y))
    found = clf.predict(place(X, device))
    assert isinstance(found, torch.Tensor)
    assert found.shape == (len(y),)
    assert clf.score(place(X, device), torch.as_tensor(y)) == clf.score(X, y) > 0.9
    names = np.array(list("abcdefghij"))[y]
    assert clf.fit(place(X, device), names).predict(place(X[:3], device)).dtype.kind == "U"


def test_a_row_of_weight_zero_is_left_out(device):
    X, y = moons()
    weight = np.ones(len(y))
    weight[::3] = 0
    clf = FloralClassifier(n_rounds=30, random_state=0, device=device).fit(place(X, device), y, sample_weight=weight)
    assert not np.isin(clf.support_, np.arange(0, len(y), 3)).any()


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (torch.full((4, 2), torch.nan), [0, 1, 0, 1], "NaN"),
        (torch.zeros(4), [0, 1, 0, 1], "shape"),
        (torch.zeros((4, 2)), [0, 1, 0], "one label per row"),
        (torch.zeros((4, 2)), [0.0, 1.0, float("nan"), 1.0], "NaN"),
        (torch.zeros((1, 2)), [0], "minimum of 2"),
        (torch.zeros((4, 0)), [0, 1, 0, 1], "one feature"),
        (torch.zeros((0, 2)), [], "one row"),
        (torch.zeros((4, 2), dtype=torch.complex64), [0, 1, 0, 1], "real numbers"),
    ],
)
def test_bad_tensors_are_refused_before_any_work(X, y, message):
    refuses(message, FloralClassifier(device="cpu").fit, X, y)


def test_rows_of_another_width_are_refused_at_prediction():
    X, y = moons()
    clf = FloralClassifier(n_rounds=20, device="cpu").fit(torch.as_tensor(X), y)
    refuses("expects 2 features", clf.predict, torch.zeros((3, 5)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int64, torch.bool])
def test_other_types_of_numbers_are_read_as_numpy_would_read_them(dtype, device):
    X, y = moons()
    X = torch.as_tensor(np.round(4 * X)).to(dtype)
    expected = FloralClassifier(n_rounds=20, random_state=0).fit(X.double().numpy(), y)
    found = FloralClassifier(n_rounds=20, random_state=0, device=device).fit(place(X, device), y)
    np.testing.assert_allclose(
        found.decision_function(place(X, device)).cpu().numpy(),
        expected.decision_function(X.double().numpy()),
        atol=1e-6,
    )
