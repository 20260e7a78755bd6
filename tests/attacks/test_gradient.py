"""Closed-form input gradients equal finite differences and torch; modules stay as they were."""

import numpy as np
import pytest
from refusals import refuses
from sklearn.datasets import make_blobs, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from floral_learn.attacks import Gradient, poison


def finite_differences(loss, X, step=1e-6):
    gradients = np.empty_like(X)
    for column in range(X.shape[1]):
        shift = np.zeros(X.shape[1])
        shift[column] = step
        gradients[:, column] = (loss(X + shift) - loss(X - shift)) / (2 * step)
    return gradients


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(80, noise=0.2, random_state=0)
    return X, y


@pytest.mark.parametrize(
    "model", [SVC(C=2.0, gamma=1.5), SVC(C=2.0), SVC(kernel="linear"), LogisticRegression(C=3.0)], ids=str
)
def test_scores_are_the_norms_of_finite_difference_gradients(moons, model):
    X, y = moons
    signs = 2 * y - 1
    fitted = model.fit(X, y)
    numeric = finite_differences(lambda rows: np.logaddexp(0, -signs * fitted.decision_function(rows)), X)
    result = poison(X, y, attack="gradient", budget=8, surrogate=model)
    np.testing.assert_allclose(result.scores, np.linalg.norm(numeric, axis=1), rtol=1e-4, atol=1e-7)
    np.testing.assert_array_equal(result.indices, np.argsort(-result.scores, kind="stable")[:8])


def test_softmax_gradients_are_those_of_the_cross_entropy():
    X, y = make_blobs(60, centers=3, cluster_std=2.5, random_state=0)
    model = LogisticRegression().fit(X, y)
    numeric = finite_differences(lambda rows: -model.predict_log_proba(rows)[np.arange(60), y], X)
    result = poison(X, y, attack="gradient", budget=9, surrogate=LogisticRegression())
    np.testing.assert_allclose(result.scores, np.linalg.norm(numeric, axis=1), rtol=1e-4, atol=1e-8)
    for row in result.indices:
        likely = np.argsort(model.decision_function(X)[row])
        assert result.y[row] == next(c for c in likely if c != y[row])


def test_unsuitable_surrogates_are_refused(moons):
    X, y = moons
    with pytest.raises(ValueError, match="has no input gradient here"):
        poison(X, y, attack="gradient", budget=3, surrogate=RandomForestClassifier())
    refuses("has no input gradient here", poison, X, np.arange(80) % 3, attack="gradient", budget=3, surrogate=SVC())
    with pytest.raises(ValueError, match="has no input gradient here"):
        poison(X, y, attack="gradient", budget=3, surrogate=SVC(kernel=lambda a, b: a @ b.T))


class TestTorch:
    @pytest.fixture(autouse=True)
    def torch(self):
        self.torch = pytest.importorskip("torch")

    def linear(self, weights, bias):
        module = self.torch.nn.Linear(weights.shape[1], weights.shape[0]).double()
        with self.torch.no_grad():
            module.weight.copy_(self.torch.tensor(weights))
            module.bias.copy_(self.torch.tensor(bias))
        return module

    @pytest.mark.parametrize("n_classes", [2, 3], ids=["linear", "softmax"])
    def test_a_module_equals_the_closed_form(self, moons, n_classes):
        X, y = moons if n_classes == 2 else make_blobs(60, centers=3, cluster_std=2.5, random_state=0)
        model = LogisticRegression().fit(X, y)
        module = self.linear(model.coef_, model.intercept_)
        by_torch = poison(X, y, attack="gradient", budget=8, surrogate=module, batch_size=7)
        closed = poison(X, y, attack="gradient", budget=8, surrogate=LogisticRegression())
        np.testing.assert_allclose(by_torch.scores, closed.scores, rtol=1e-8)
        np.testing.assert_array_equal(by_torch.y, closed.y)

    def test_the_module_is_left_as_it_was(self, moons):
        X, y = moons
        nn = self.torch.nn
        module = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 1)).train()
        before = {name: value.clone() for name, value in module.state_dict().items()}
        first = poison(X, y, attack="gradient", budget=8, surrogate=module)
        assert module.training
        assert all(parameter.grad is None for parameter in module.parameters())
        assert all(self.torch.equal(before[name], value) for name, value in module.state_dict().items())
        # dropout is off, so a second call agrees
        np.testing.assert_array_equal(first.scores, poison(X, y, attack="gradient", budget=8, surrogate=module).scores)

    def test_rows_may_have_any_shape(self):
        nn = self.torch.nn
        module = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
        X = np.random.default_rng(0).normal(size=(20, 3, 4))
        result = poison(X, np.arange(20) % 2, attack="gradient", budget=5, surrogate=module)
        assert len(result.indices) == 5
        assert (result.scores > 0).all()

    def test_an_estimator_that_holds_a_module_is_taken(self, moons):
        X, y = moons

        class Wrapped:
            module_ = self.linear(np.array([[1.0, -2.0]]), np.array([0.1]))

        direct = poison(X, y, attack="gradient", budget=5, surrogate=Wrapped.module_)
        np.testing.assert_array_equal(poison(X, y, attack="gradient", budget=5, surrogate=Wrapped()).y, direct.y)

    def test_a_model_on_texts_may_bring_its_own_gradients(self):
        class Reader:
            def input_gradient_norms(self, texts, codes):
                lengths = np.array([len(text) for text in texts], dtype=float)
                return lengths, np.column_stack([lengths, codes, -lengths])

        texts, y = ["a", "bbbb", "cc", "ddddd"], np.array(["x", "y", "z", "x"])
        result = poison(texts, y, attack="gradient", budget=2, surrogate=Reader())
        assert result.indices.tolist() == [3, 1]
        assert result.y.tolist() == ["x", "z", "z", "z"]

    def test_wrong_shapes_and_options_are_named(self, moons):
        X, y = moons
        with pytest.raises(ValueError, match=r"logits of shape \(80, 5\), expected \(80, 2\)"):
            poison(X, y, attack="gradient", budget=5, surrogate=self.torch.nn.Linear(2, 5))
        refuses("batch_size=0", Gradient(budget=2, surrogate=self.torch.nn.Linear(2, 1), batch_size=0).poison, X, y)
