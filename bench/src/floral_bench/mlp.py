"""Networks as scikit-learn classifiers: plain (NN) and trained on perturbed inputs (NN-PGD); no defense of labels."""

from __future__ import annotations

import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import train_test_split
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, check_X_y

from floral_learn.base.callbacks import CallbackSupportMixin, with_callbacks
from floral_learn.base.classifier_input import query_input, training_input
from floral_learn.base.validation import generator
from floral_learn.base.whole_fit import whole_fit
from floral_learn.neural.batched_mlp import MLPSettings
from floral_learn.neural.mlp_network import (
    build_mlp,
    input_gradient_norms,
    logits,
    packed,
    torch_device,
    unpacked,
)
from floral_learn.neural.mlp_training import History, Rows, train
from floral_learn.neural.own_training import TRAINING_CONSTRAINTS, hidden_sizes, log_epoch
from floral_learn.neural.torch_data import rows_and_labels, rows_only

_POSITIVE = Interval(Real, 0.0, None, closed="neither")
_COUNT = Interval(Integral, 1, None, closed="left")


class NeuralNetClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Multi-layer perceptron on the given labels: min_theta mean_i CE(y_i, f_theta(x_i)), the paper's NN.

    ReLU layers trained by SGD with momentum; binary cross-entropy on one logit for two classes, cross-entropy on one
    logit per class for more. It believes every label: a baseline, the network below a FLORAL head, and a surrogate for
    the gradient attack.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int, default=(32, 32)
        The paper's network for Moon; it uses (32, 10) on MNIST.
    epochs : int, default=100
        Passes over the rows.
    learning_rate : float, default=0.01
        Of SGD.
    momentum : float, default=0.9
        Of SGD.
    batch_size : int, default=32
        Rows of a step.
    early_stopping : bool, default=False
        Stop where the validation loss has not fallen for `patience` epochs, and keep the best epoch's weights. Without
        a `validation` set in ``fit``, a share of the training rows is held out. Their labels are as untrusted as all
        others.
    validation_fraction : float, default=0.1
        Share of the rows that early stopping holds out.
    patience : int, default=10
        Epochs without a lower validation loss before it stops.
    optimizer : callable or None, default=None
        A class of torch.optim, which gets `learning_rate`, or a function that makes an optimizer of the parameters,
        such as ``functools.partial(torch.optim.Adam, lr=1e-3)``. None is SGD with `momentum`.
    scheduler : callable or None, default=None
        ``scheduler(optimizer, steps)`` makes a schedule of the learning rate; ``step()`` is called after each batch.
    loss : callable or None, default=None
        ``loss(logits, target)`` of logits (n, n_classes) and class numbers (n,): one loss per row, or their mean where
        rows have no weights. None is cross entropy.
    device : str or None, default=None
        "cpu", "cuda", "cuda:0"; None is the CPU.
    random_state : int, RandomState, Generator or None, default=None
        Draws the first weights, the batches and the rows held out.
    verbose : int, default=0
        1 writes about ten lines per fit to stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    module_ : torch.nn.Sequential
        The trained network: rows (n, d) to logits (n, 1) for two classes, (n, n_classes) for more.
    history_ : dict of ndarray
        ``loss`` and ``accuracy`` on the given training labels, means over the batches of each epoch, and
        ``validation_loss`` and ``validation_accuracy`` where there is a validation set.
    n_iter_ : int
        Epochs done.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    Notes
    -----
    Features should be scaled, as for any network. Training computes in 32-bit floats, predictions in 64. A row of
    weight 2 pulls twice as hard in its batch, which is not the same as two rows.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_bench.mlp import NeuralNetClassifier
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> clf = NeuralNetClassifier(epochs=50, random_state=0).fit(X, y)
    >>> bool(clf.score(X, y) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TRAINING_CONSTRAINTS,
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0.0, 1.0, closed="neither")],
        "patience": [_COUNT],
    }

    def __init__(
        self,
        hidden_layer_sizes: Any = (32, 32),
        *,
        epochs: int = 100,
        learning_rate: Any = 0.01,
        momentum: float = 0.9,
        batch_size: Any = 32,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 10,
        optimizer: Any = None,
        scheduler: Any = None,
        loss: Any = None,
        device: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.loss = loss
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @whole_fit
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, validation: Any = None) -> Self:
        """Train on rows X (n, d) and labels y (n,).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Or a torch Dataset or DataLoader of rows, or of pairs (row, label).
        y : array-like of shape (n_samples,)
            May be left out where X is a Dataset with labels.
        sample_weight : array-like of shape (n_samples,), optional
            Factor of each row's loss; weight 0 leaves a row out.
        validation : (X_val, y_val), optional
            Rows whose loss and accuracy go into ``history_``, and which early stopping looks at.
        """
        self._validate_params()
        settings, device = self._settings(), torch_device(self.device)
        X, y = rows_and_labels(X, y)
        X, codes, weight = training_input(self, X, y, sample_weight)
        held_out = None if validation is None else self._held_out(validation)
        seed = int(generator(self.random_state).integers(2**31 - 1))
        rows = np.arange(len(X)) if weight is None else np.flatnonzero(weight)
        if self.early_stopping and held_out is None:
            rows, kept = train_test_split(
                rows, test_size=self.validation_fraction, stratify=codes[rows], random_state=seed
            )
            held_out = Rows(X[kept], self._one_hot(codes[kept]))
        if weight is not None:
            weight = weight[rows] / weight[rows].mean()
        stream = torch.Generator().manual_seed(seed)
        widths = (X.shape[1], *settings.hidden, 1 if len(self.classes_) == 2 else len(self.classes_))
        module = build_mlp(widths, stream).to(device)
        history = train(
            module,
            Rows(X[rows], self._one_hot(codes[rows]), weight),
            settings,
            stream,
            validation=held_out,
            patience=self.patience if self.early_stopping else None,
            after_epoch=self._after_epoch(module, X, y),
        )
        for name, value in self._fitted(module, history).items():
            setattr(self, name, value)
        return self

    def _settings(self) -> MLPSettings:
        return MLPSettings(
            hidden=hidden_sizes(self.hidden_layer_sizes),
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            batch_size=self.batch_size,
            optimizer=self.optimizer,
            scheduler=self.scheduler,
            loss=self.loss,
        )

    def _one_hot(self, codes: np.ndarray) -> np.ndarray:
        return np.eye(len(self.classes_), dtype=np.float32)[codes]

    def _held_out(self, validation: Any) -> Rows:
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise ValueError("validation must be a pair (X_val, y_val)")
        X, y = check_X_y(*validation, dtype=np.float64)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"validation has {X.shape[1]} features, X has {self.n_features_in_}")
        if unknown := sorted(set(y.tolist()) - set(self.classes_.tolist())):
            raise ValueError(f"validation has the label {unknown[0]!r}, which y does not have")
        return Rows(X, self._one_hot(np.searchsorted(self.classes_, y)))

    def _fitted(self, module: torch.nn.Module, history: History) -> dict[str, Any]:
        kept = {name: np.array(values) for name, values in history.items()}
        return {"module_": module, "history_": kept, "n_iter_": len(kept["loss"])}

    def _after_epoch(self, module: torch.nn.Module, X: Any, y: Any) -> Any:
        """What happens after each epoch: callbacks, if any are set, and lines on stderr if verbose."""
        root = None
        if getattr(self, "_skl_callbacks", None):
            root = self._init_callback_context(max_subtasks=self.epochs)
            root.call_on_fit_task_begin(estimator=self, X=X, y=y)

        def after(history: History) -> bool:
            done = len(history["loss"])
            if self.verbose:
                log_epoch(done, self.epochs, history)
            if root is None:
                return False
            task = root.subcontext(task_name=f"epoch {done}")
            task.call_on_fit_task_begin(estimator=self, X=X, y=y)
            stop = task.call_on_fit_task_end(
                estimator=self,
                X=X,
                y=y,
                reconstruction_attributes=lambda: self._fitted(copy.deepcopy(module).eval(), history),
            )
            if stop or done >= self.epochs:
                root.call_on_fit_task_end(estimator=self, X=X, y=y)
            return stop

        return after

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds (m,) of ``classes_[1]`` for two classes, logits (m, M) for more."""
        check_is_fitted(self)
        values = logits(self.module_, query_input(self, rows_only(X)))
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities (m, M), as the network sees them."""
        values = self.decision_function(X)
        return np.column_stack([expit(-values), expit(values)]) if values.ndim == 1 else softmax(values, axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """Class of each row of X (m, d)."""
        values = self.decision_function(X)
        return self.classes_[(values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)]

    def input_gradient_norms(self, X: Any, codes: Any) -> Any:
        """How strongly the loss of each row reacts to its input: |d CE(y_i, f(x_i)) / d x_i|.

        What the gradient attack and the influence of a network are made of.

        Parameters
        ----------
        X : array-like of shape (n, d)
        codes : int ndarray of shape (n,)
            Labels as places in ``classes_``.

        Returns
        -------
        norms : ndarray of shape (n,)
        scores : ndarray of shape (n, n_classes)
            Logits; (0, log-odds) for two classes.
        """
        check_is_fitted(self)
        X, codes = query_input(self, rows_only(X)), np.asarray(codes)
        if codes.shape != (len(X),):
            raise ValueError(f"codes has shape {codes.shape}, and X has {len(X)} rows")
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(self.classes_):
            raise ValueError(f"codes must be places in classes_, 0 to {len(self.classes_) - 1}")
        return input_gradient_norms(self.module_, X, codes, len(self.classes_))

    def __getstate__(self) -> Any:
        """Keep the network as plain arrays, so that a model file needs no pickle."""
        return packed(super().__getstate__())

    def __setstate__(self, state: Any) -> Any:
        """Build the network again, on the CPU."""
        super().__setstate__(unpacked(state))


class PGDNeuralNetClassifier(NeuralNetClassifier):
    """Network trained on perturbed inputs: min_theta mean_i max_{|d|_inf <= epsilon} CE(y_i, f(x_i + d)), NN-PGD.

    Adversarial training against feature perturbations (projected sign steps inside an L-infinity ball). It defends
    inputs, not labels; the paper compares with it.

    Parameters
    ----------
    epsilon : float, default=8/255
        Radius of the ball, in units of the features.
    step : float, default=2/255
        Size of one sign step, in units of the features.
    inner_steps : int, default=7
        Steps of the perturbation, from a random start in the ball; the paper does not give their number.
    clip : (low, high) or None, default=None
        Range of valid inputs, such as (0, 1) for pixels.
    hidden_layer_sizes, epochs, learning_rate, momentum, batch_size, early_stopping, validation_fraction, patience, \
optimizer, scheduler, loss, device, random_state, verbose
        As in :class:`NeuralNetClassifier`, with its attributes. ``history_`` has the loss on perturbed inputs.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from floral_bench.mlp import PGDNeuralNetClassifier
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> clf = PGDNeuralNetClassifier(epochs=20, inner_steps=2, random_state=0).fit(X, y)
    >>> bool(clf.score(X, y) > 0.8)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NeuralNetClassifier._parameter_constraints,
        "epsilon": [_POSITIVE],
        "step": [_POSITIVE],
        "inner_steps": [_COUNT],
        "clip": [tuple, list, None],
    }

    def __init__(
        self,
        hidden_layer_sizes: Any = (32, 32),
        *,
        epsilon: Any = 8 / 255,
        step: Any = 2 / 255,
        inner_steps: int = 7,
        clip: Any = None,
        epochs: int = 100,
        learning_rate: Any = 0.01,
        momentum: float = 0.9,
        batch_size: Any = 32,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 10,
        optimizer: Any = None,
        scheduler: Any = None,
        loss: Any = None,
        device: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            hidden_layer_sizes,
            epochs=epochs,
            learning_rate=learning_rate,
            momentum=momentum,
            batch_size=batch_size,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            patience=patience,
            optimizer=optimizer,
            scheduler=scheduler,
            loss=loss,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )
        self.epsilon = epsilon
        self.step = step
        self.inner_steps = inner_steps
        self.clip = clip

    def _settings(self) -> MLPSettings:
        clip = None if self.clip is None else tuple(self.clip)
        if clip is not None and (len(clip) != 2 or not clip[0] < clip[1]):
            raise ValueError(f"clip={self.clip!r} must be a pair (low, high) with low < high")
        return replace(
            super()._settings(), epsilon=self.epsilon, step=self.step, inner_steps=self.inner_steps, clip=clip
        )
