"""FLORAL as the last layer of a trained network: the game is played on its features.

Features are what one of the layers gives, read by a hook, in batches, on the network's device.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from floral_learn.attacks.gradient import evaluating, place_of
from floral_learn.base.alignment import align
from floral_learn.base.estimator import Estimator, whole_fit
from floral_learn.base.validation import generator, refuse_several_labels
from floral_learn.floral.classifier import FloralClassifier
from floral_learn.paper.network import MLP, batches_of

# Hooks see every forward pass of a module, and threads (clones in a search, say) may share one.
_ONE_READER = threading.RLock()


def layer_features(module: torch.nn.Module, X: np.ndarray, layer: str | None = None, batch_size: int = 256) -> Any:
    """Features (n, width) of rows from any network, to review, audit or classify: 64-bit floats.

    Parameters
    ----------
    module : torch.nn.Module
        Runs in evaluation mode on the device where it lies, and is left as it was. A torchvision model, say.
    X : array of shape (n, ...)
        Images are (n, channels, height, width).
    layer : str or None, default=None
        The layer whose output is the features; "output" is what the module itself gives, None what goes into its last
        linear layer. More axes than two are flattened.
    batch_size : int, default=256
        Rows of a forward pass.

    Returns
    -------
    ndarray of shape (n, width)

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from floral_learn.paper import layer_features
    >>> encoder = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    >>> layer_features(encoder, np.zeros((5, 3, 8, 8)), layer="output").shape
    (5, 4)
    """
    with _ONE_READER:
        if isinstance(module, MLP):
            # small: a row has the same features alone and in any batch
            module = copy.deepcopy(module).double()
        device, dtype = place_of(module)
        parts = find_layers(module, layer)
        caught: list[Any] = []
        if layer is None:  # the last one to be called, which need not be the last one to be defined
            hooks = [part.register_forward_pre_hook(lambda _, given: caught.append(given[0])) for part in parts]
        else:
            hooks = [part.register_forward_hook(lambda _, given, output: caught.append(output)) for part in parts]
        found = []
        try:
            with evaluating(module), torch.no_grad():
                for rows in batches_of(X, batch_size, device, dtype):
                    caught.clear()
                    _run(module, rows)
                    if not caught:
                        raise ValueError(f"layer={layer!r} takes no part in the forward pass of the module")
                    found.append(_matrix(caught[-1], layer, len(rows)))
        finally:
            for hook in hooks:
                hook.remove()
    return np.concatenate(found)


def float_types(X: Any) -> list[Any]:
    """Types that rows may have, the one that others are turned into first: pixels of images are many, and small."""
    axes = X.ndim if hasattr(X, "ndim") else _axes(X)
    return [np.float32, np.float64] if axes > 2 else [np.float64, np.float32]


def _axes(X: Any) -> int:
    """Axes of nested lists; what holds no array is for others to refuse."""
    try:
        return int(np.asarray(X).ndim)
    except ValueError:
        return 2


def find_layers(module: Any, layer: str | None) -> Sequence[torch.nn.Module]:
    """The part of `module` with a name, or all its linear layers; a ValueError says what there is."""
    if not isinstance(module, torch.nn.Module):
        raise ValueError(f"module must be a torch.nn.Module, got {type(module).__name__}")
    parts = dict(module.named_modules())
    if layer == "output" and layer not in parts:
        return [module]
    if layer is not None:
        if layer not in parts or layer == "":
            known = ", ".join(name for name, _ in module.named_children())
            raise ValueError(f"layer={layer!r} is not a layer of the module; it has: {known}, and their own parts")
        return [parts[layer]]
    linear = [part for part in parts.values() if isinstance(part, torch.nn.Linear)]
    if not linear:
        raise ValueError(
            'the module has no Linear layer, whose input would be the features: use layer="output" for what the '
            "module itself gives, or name a layer"
        )
    return linear


def check_rows(module: torch.nn.Module, X: np.ndarray) -> torch.Tensor:
    """What `module` gives for the first row; a ValueError where it does not take rows of this shape."""
    device, dtype = place_of(module)
    with evaluating(module), torch.no_grad():
        return _run(module, next(batches_of(X[:1], 1, device, dtype)))


def _run(module: torch.nn.Module, rows: torch.Tensor) -> Any:
    try:
        return module(rows)
    except torch.cuda.OutOfMemoryError:
        raise
    except (RuntimeError, ValueError, IndexError) as error:
        shape, hint = tuple(rows.shape[1:]), ""
        if len(shape) == 3 and shape[2] in (1, 3, 4) and shape[0] not in (1, 3, 4):
            hint = " (torch wants channels first: X.transpose(0, 3, 1, 2))"
        raise ValueError(
            f"the module does not take rows of shape {shape}{hint}: {str(error).splitlines()[0]}"
        ) from error


def _matrix(value: Any, layer: str | None, n: int) -> np.ndarray:
    while isinstance(value, tuple | list) and value:
        value = value[0]
    if not isinstance(value, torch.Tensor) or value.ndim < 1 or len(value) != n:
        raise ValueError(f"layer={layer!r} gives no tensor with one row a sample")
    return value.reshape(n, -1).double().cpu().numpy()


def build_head(head: Any, random_state: Any) -> Any:
    """The unfitted estimator behind a `head` parameter; it draws from `random_state` unless it has its own."""
    if head is None:
        head = {}
    if isinstance(head, dict):
        if unknown := sorted(set(head) - set(FloralClassifier().get_params())):
            raise ValueError(f"head={head!r}: {unknown[0]!r} is not a parameter of FloralClassifier")
        made = FloralClassifier(**head)
    else:
        made = clone(head)
    if random_state is not None and made.get_params().get("random_state", 0) is None:
        made.set_params(random_state=int(generator(random_state).integers(2**31 - 1)))
    made._validate_params()  # now, not after the network has been trained
    return made


def check_head_takes(head: Any, sample_weight: Any, trusted: Any) -> None:
    """A ValueError, before any training, where `head` has no place for what the user gave."""
    for name, value in (("sample_weight", sample_weight), ("trusted", trusted)):
        if value is not None and not has_fit_parameter(head, name):
            raise ValueError(f"{name}= was given, but the head {head!r} does not take it in fit")


def fit_head(head: Any, features: np.ndarray, y: Any, sample_weight: Any, trusted: Any) -> Any:
    """Train `head` on features; weights and trusted labels are handed on only where they are given."""
    given = {"sample_weight": sample_weight, "trusted": trusted}
    return head.fit(features, y, **{name: value for name, value in given.items() if value is not None})


def head_has(method: str) -> Any:
    """A check for ``available_if``: whether the head, fitted or not yet, has `method`."""

    def check(estimator: Any) -> bool:
        head = getattr(estimator, "head_", estimator.head)
        getattr(FloralClassifier if head is None or isinstance(head, dict) else head, method)
        return True

    return check


class HeadMixin(TransformerMixin):
    """What every estimator does that has a network ``module_`` below a classifier ``head_``."""

    module_: Any
    head_: Any
    layer: str | None
    _rows_at_once: Callable[[], int]  # rows of a forward pass

    def __sklearn_clone__(self) -> Any:
        """Share the given network, which no fit changes: a search over twenty settings holds it once."""
        shell = object.__new__(type(self))
        shell.__dict__.update(vars(self), module=None)
        made = super().__sklearn_clone__.__func__(shell)
        made.module = self.module
        return made

    def transform(self, X: Any) -> np.ndarray:
        """Features (m, width) that the head sees of rows X."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, allow_nd=True, dtype=float_types(X))
        return layer_features(self.module_, X, self.layer, self._rows_at_once())

    def predict(self, X: Any) -> np.ndarray:
        """Class of each row of X."""
        features = self.transform(X)
        return self.head_.predict(features)

    @available_if(head_has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """The head's scores: positive is ``classes_[1]`` for two classes, the largest wins for more."""
        features = self.transform(X)
        return self.head_.decision_function(features)

    @available_if(head_has("label_issues"))
    def label_issues(self) -> Any:
        """Training labels by how likely they are to be wrong, as ``FloralClassifier.label_issues``."""
        check_is_fitted(self)
        return self.head_.label_issues()

    @property
    def classes_(self) -> np.ndarray:
        """The labels, sorted."""
        try:
            return self.head_.classes_
        except AttributeError:
            raise AttributeError(f"this {type(self).__name__} is not fitted: it has no classes_ yet") from None


class FloralHead(HeadMixin, ClassifierMixin, Estimator):
    """FLORAL on the last-layer features of a trained network, for labels you do not trust.

    The network stays as it is. Its features are read in batches by a hook, on the device where it lies, and
    :class:`FloralClassifier` plays its game on them (the paper's integration with neural networks).

    Parameters
    ----------
    module : torch.nn.Module
        A trained network that takes rows (n, ...) of floats.
    layer : str or None, default=None
        Name of the layer whose output is the features, as in ``module.named_modules()``; "output" is what the module
        itself gives, for encoders without a last layer; None is what goes into the last linear layer.
    head : estimator, dict or None, default=None
        What is trained on the features; a dict holds parameters of ``FloralClassifier``, None is its defaults.
    batch_size : int, default=256
        Rows of a forward pass.
    random_state : int, RandomState, Generator or None, default=None
        Given to the head if that has none of its own.

    Attributes
    ----------
    head_ : FloralClassifier
        The fitted head, with ``flip_rate_``, ``history_`` and all else.
    module_ : torch.nn.Module
        `module`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
        Width of the rows, where they are vectors.

    Notes
    -----
    A module is code, so ``floral_learn.save`` refuses this estimator; save ``head_`` and the module's ``state_dict``.

    Examples
    --------
    >>> import torch
    >>> from sklearn.datasets import make_moons
    >>> from floral_learn.paper import FloralHead
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> network = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    >>> head = FloralHead(network, head={"budget": 0.1}, random_state=0).fit(X, y)
    >>> head.transform(X).shape
    (300, 32)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "module": [torch.nn.Module],
        "layer": [str, None],
        "head": [dict, BaseEstimator, None],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self, module: Any, layer: Any = None, *, head: Any = None, batch_size: Any = 256, random_state: Any = None
    ) -> None:
        self.module = module
        self.layer = layer
        self.head = head
        self.batch_size = batch_size
        self.random_state = random_state

    @whole_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, trusted: Any = None) -> Self:
        """Train the head on the features of rows X with untrusted labels y.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Images are (n_samples, channels, height, width).
        y : array-like of shape (n_samples,)
            Untrusted labels.
        sample_weight, trusted : array-like of shape (n_samples,), optional
            As in ``FloralClassifier.fit``.
        """
        self._validate_params()
        find_layers(self.module, self.layer)
        head = build_head(self.head, self.random_state)
        check_head_takes(head, sample_weight, trusted)
        sample_weight = align(X, sample_weight, ("X", "sample_weight"))
        trusted = align(X, trusted, ("X", "trusted"))
        y = align(X, y)
        refuse_several_labels(y)
        X, y = validate_data(self, X, y, allow_nd=True, dtype=float_types(X), ensure_min_samples=2)
        check_rows(self.module, X)
        features = layer_features(self.module, X, self.layer, self.batch_size)
        self.module_ = self.module
        self.head_ = fit_head(head, features, y, sample_weight, trusted)
        return self

    def _rows_at_once(self) -> int:
        return self.batch_size
