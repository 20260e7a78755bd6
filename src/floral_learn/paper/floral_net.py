"""A network and its FLORAL head in one fit, and the two taught by each other in turns."""

from __future__ import annotations

import copy
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_sample_weight, validate_data

from floral_learn.base.alignment import align
from floral_learn.base.estimator import Estimator, whole_fit
from floral_learn.base.validation import check_trusted, encode_labels, generator, refuse_several_labels
from floral_learn.floral.classifier import GameClassifier
from floral_learn.paper.head import (
    HeadMixin,
    build_head,
    check_head_takes,
    check_rows,
    find_layers,
    fit_head,
    float_types,
    layer_features,
)
from floral_learn.paper.network import (
    TRAINING_CONSTRAINTS,
    MLPSettings,
    Rows,
    build_mlp,
    hidden_sizes,
    packed,
    torch_device,
    train,
    unpacked,
)


def sanitised(one_hot: np.ndarray, flip_rate: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Soft labels (n, M): (1 - r_i) of the given label plus r_i of the head's label, r_i how often it was flipped."""
    rate = flip_rate[:, None]
    return ((1 - rate) * one_hot + rate * np.eye(one_hot.shape[1])[judged]).astype(one_hot.dtype)


class NeuralFloralClassifier(HeadMixin, ClassifierMixin, Estimator):
    """Network with a FLORAL head for labels you do not trust, both trained in one fit.

    The network is trained on the given labels, then :class:`FloralClassifier` plays its game on the last-layer
    features. With ``alternations=m`` this is followed by m turns in which the network starts again on soft labels,
    (1 - r) of the given label and r of the head's, where r is the share of rounds in which the attacker flipped the
    label, and the head is trained again on the new features.

    Parameters
    ----------
    module : torch.nn.Module or None, default=None
        The network: rows (n, ...) to logits (n, n_classes), or (n,) or (n, 1) log-odds for two classes. A copy of it is
        trained, from the weights that it has. None is a multi-layer perceptron of `hidden_layer_sizes`.
    hidden_layer_sizes : tuple of int, default=(32, 32)
        Used where `module` is None.
    layer : str or None, default=None
        The layer whose output is the features; None is what goes into the last linear layer.
    head : FloralClassifier, dict or None, default=None
        A dict holds parameters of ``FloralClassifier``. Without alternations any classifier will do.
    alternations : int, default=0
        Turns after the first, as described above.
    epochs : int, default=100
        Of each network.
    learning_rate, momentum, batch_size, device, random_state
        Of the network's training, by SGD; the head draws from `random_state` unless it has its own.

    Attributes
    ----------
    module_ : torch.nn.Module
        The last network.
    head_ : FloralClassifier
        The last head.
    soft_labels_ : ndarray of shape (n_samples, n_classes)
        What the last network was trained on; one-hot given labels without alternations.
    history_ : dict of ndarray of shape (alternations + 1, epochs)
        ``loss`` and ``accuracy`` of every network, on what it was trained on.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
        Width of the rows, where they are vectors.

    Notes
    -----
    Whether turns help is measured in docs/results/nn-integration.md.

    ``floral_learn.save`` works where `module` is None; a module of your own is code, which a model file does not hold.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.paper import NeuralFloralClassifier
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> clf = NeuralFloralClassifier(epochs=30, random_state=0).fit(X, y)
    >>> bool(clf.score(X, y) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TRAINING_CONSTRAINTS,
        "module": [torch.nn.Module, None],
        "layer": [str, None],
        "head": [dict, BaseEstimator, None],
        "alternations": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        module: Any = None,
        *,
        hidden_layer_sizes: Any = (32, 32),
        layer: Any = None,
        head: Any = None,
        alternations: int = 0,
        epochs: int = 100,
        learning_rate: Any = 0.01,
        momentum: float = 0.9,
        batch_size: Any = 32,
        device: Any = None,
        random_state: Any = None,
    ) -> None:
        self.module = module
        self.hidden_layer_sizes = hidden_layer_sizes
        self.layer = layer
        self.head = head
        self.alternations = alternations
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.batch_size = batch_size
        self.device = device
        self.random_state = random_state

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, trusted: Any = None) -> Self:
        """Train network and head on rows X with untrusted labels y.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Images are (n_samples, channels, height, width).
        y : array-like of shape (n_samples,)
            Untrusted labels.
        sample_weight : array-like of shape (n_samples,), optional
            Factor of each row's loss in the network, and of C in the head.
        trusted : bool array of shape (n_samples,), optional
            Labels known to be right: the attacker never flips them, so that they stay hard labels.
        """
        self._validate_params()
        settings, device = self._settings(), torch_device(self.device)
        seeds = generator(self.random_state).integers(2**31 - 1, size=2)
        head = build_head(self.head, int(seeds[1]))
        if self.alternations and not isinstance(head, GameClassifier):
            raise ValueError(f"alternations={self.alternations} needs a FloralClassifier as head, got {head!r}")
        check_head_takes(head, sample_weight, trusted)
        sample_weight = align(X, sample_weight, ("X", "sample_weight"))
        trusted = align(X, trusted, ("X", "trusted"))
        y = align(X, y)
        refuse_several_labels(y)
        X, y = validate_data(self, X, y, allow_nd=self.module is not None, dtype=float_types(X), ensure_min_samples=2)
        classes, codes = encode_labels(y, type(self).__name__)
        check_trusted(trusted, len(X))
        rows, weight = np.arange(len(X)), None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            rows = np.flatnonzero(weight)
            if len(np.unique(codes[rows])) < len(classes):
                raise ValueError("every row of at least one class has sample_weight 0; each class needs a positive one")
        stream = torch.Generator().manual_seed(int(seeds[0]))
        start = self._start(X, len(classes), stream).to(device)
        one_hot = np.eye(len(classes), dtype=np.float32)[codes]
        scaled = None if weight is None else weight[rows] / weight[rows].mean()
        soft, histories = one_hot, []
        batches = stream.get_state()
        while True:
            # Only the labels change from one turn to the next: the same first weights, the same batches.
            self.module_ = copy.deepcopy(start)
            stream.set_state(batches)
            given = Rows(X[rows], soft[rows], scaled)
            histories.append(train(self.module_, given, settings, stream))
            features = layer_features(self.module_, X, self.layer)
            self.head_ = fit_head(clone(head), features, y, weight, trusted)
            if len(histories) > self.alternations:
                break
            judged = np.searchsorted(classes, self.head_.predict(features))
            soft = sanitised(one_hot, self.head_.flip_rate_, np.asarray(judged))
        self.soft_labels_ = soft
        self.history_ = {name: np.array([history[name] for history in histories]) for name in histories[0]}
        return self

    def _settings(self) -> MLPSettings:
        return MLPSettings(
            hidden=hidden_sizes(self.hidden_layer_sizes),
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            batch_size=self.batch_size,
        )

    def _start(self, X: np.ndarray, n_classes: int, stream: torch.Generator) -> torch.nn.Module:
        """The untrained network, checked against rows and classes."""
        if self.module is None:
            return build_mlp((X.shape[1], *self._settings().hidden, 1 if n_classes == 2 else n_classes), stream)
        find_layers(self.module, self.layer)
        shape = tuple(check_rows(self.module, X).shape)
        allowed = [(1, n_classes), *([(1,), (1, 1)] if n_classes == 2 else [])]
        if shape not in allowed:
            raise ValueError(f"the module gives logits of shape {shape} for one row, and there are {n_classes} classes")
        if not any(parameter.requires_grad for parameter in self.module.parameters()):
            raise ValueError("the module has no parameter to train; FloralHead takes a network as it is")
        return copy.deepcopy(self.module)

    def _rows_at_once(self) -> int:
        return 256

    def __getstate__(self) -> Any:
        """Keep a network of our own as plain arrays, so that a model file needs no pickle."""
        return packed(super().__getstate__())

    def __setstate__(self, state: Any) -> Any:
        """Build the network again, on the CPU."""
        super().__setstate__(unpacked(state))
