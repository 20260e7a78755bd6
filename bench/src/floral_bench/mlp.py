"""The paper's network as a scikit-learn classifier."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from floral_bench.batched_mlp import NetworkSettings
from floral_learn.attacks.gradient import module_gradients, place_of
from floral_learn.base.estimator import query_input, training_input, whole_fit
from floral_learn.base.validation import generator
from floral_learn.paper.network import (
    TRAINING_CONSTRAINTS,
    Rows,
    batches_of,
    build_mlp,
    hidden_sizes,
    torch_device,
    train,
)  # fmt: skip


class NeuralNetClassifier(ClassifierMixin, BaseEstimator):
    """Perceptron on the given labels: min_theta mean_i CE(y_i, f_theta(x_i)), the paper's NN.

    It believes every label: the network below a FLORAL head, and a surrogate for the gradient attack. Scale the
    features.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int, default=(32, 32)
        The paper's network for Moon; it uses (32, 10) on MNIST.
    epochs, batch_size
        Of SGD.
    device : str or None, default=None
        "cpu", "cuda", "cuda:0"; None is the CPU.
    random_state : int, RandomState, Generator or None, default=None
        Draws the first weights and the batches.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_bench.mlp import NeuralNetClassifier
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> bool(NeuralNetClassifier(epochs=50, random_state=0).fit(X, y).score(X, y) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = TRAINING_CONSTRAINTS

    def __init__(
        self, hidden_layer_sizes: Any = (32, 32), *, epochs: int = 100, batch_size: Any = 32, device: Any = None,
        random_state: Any = None,
    ) -> None:  # fmt: skip
        self.hidden_layer_sizes = hidden_layer_sizes
        self.epochs, self.batch_size = epochs, batch_size
        self.device, self.random_state = device, random_state

    @whole_fit
    def fit(self, X: Any, y: Any) -> Self:
        """Train on rows X (n, d) and labels y (n,)."""
        self._validate_params()
        given = self.get_params()
        hidden, device = hidden_sizes(given.pop("hidden_layer_sizes")), torch_device(given.pop("device"))
        seed = int(generator(given.pop("random_state")).integers(2**31 - 1))
        settings = NetworkSettings(hidden, **given)
        X, codes, _ = training_input(self, X, y)
        stream = torch.Generator().manual_seed(seed)
        module = build_mlp((X.shape[1], *hidden, 1 if len(self.classes_) == 2 else len(self.classes_)), stream)
        target = np.eye(len(self.classes_), dtype=np.float32)[codes]
        history = train(module.to(device), Rows(X, target), settings, stream)
        self.module_, self.n_iter_ = module, self.epochs
        self.history_ = {name: np.array(values) for name, values in history.items()}
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds (m,) of ``classes_[1]`` for two classes, logits (m, M) for more."""
        check_is_fitted(self)
        exact = copy.deepcopy(self.module_).double().eval()  # a row scores the same alone and in any batch
        with torch.no_grad():
            found = [exact(rows) for rows in batches_of(query_input(self, X), 4096, *place_of(exact))]
        values = torch.cat(found).cpu().numpy()
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """Class of each row of X (m, d)."""
        values = self.decision_function(X)
        return self.classes_[(values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)]

    def input_gradient_norms(self, X: Any, codes: Any) -> Any:
        """|d CE(y_i, f(x_i)) / d x_i| of rows whose labels are places in ``classes_``, and the logits."""
        check_is_fitted(self)
        X, codes = query_input(self, X), np.asarray(codes)
        if codes.shape != (len(X),) or (len(codes) and not 0 <= codes.min() <= codes.max() < len(self.classes_)):
            raise ValueError(f"codes must be {len(X)} places in classes_, 0 to {len(self.classes_) - 1}")
        return module_gradients(self.module_, X, codes, len(self.classes_), batch_size=256)
