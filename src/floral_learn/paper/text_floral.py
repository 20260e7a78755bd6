"""FLORAL as the head of a language model: texts and untrusted labels in, labels out.

e_i = embedding of text i                     the game of FloralClassifier is played on the rows e_i
"""

from __future__ import annotations

import copy
import inspect
import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context, clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state, compute_class_weight

from floral_learn.base.alignment import align
from floral_learn.base.estimator import Estimator, checked_weight, whole_fit
from floral_learn.base.validation import check_decay, check_trusted, encode_labels
from floral_learn.encoders.embedding import ItemRows
from floral_learn.floral.classifier import FloralClassifier, GameClassifier
from floral_learn.floral.fitting import resolve_budget
from floral_learn.game.arrays import backend_for
from floral_learn.game.pairs import Pairs
from floral_learn.paper.head import build_head
from floral_learn.text.classifier import TextClassifier
from floral_learn.text.folder import NOTE, note_text, read_note, replaced_folder
from floral_learn.text.tokens import check_labels, check_texts, some_rows


class TextFloralClassifier(ItemRows, ClassifierMixin, Estimator):
    """Classify texts whose labels you do not trust: a transformer's embeddings, with FLORAL in place of its last layer.

    Parameters
    ----------
    encoder : TextClassifier or None, default=None
        What turns texts into embeddings; None is ``TextClassifier()``, MiniLM. With ``fine_tune=False`` it may be
        fitted already, on labels that you trust, say; it is then used as it is, in clones too (searches,
        cross-validation), which share its weights.
    head : FloralClassifier, another classifier, dict or None, default=None
        Trained on the embeddings; a dict holds parameters of ``FloralClassifier``, None is its defaults.
    fine_tune : bool, default=True
        Whether the encoder is fine-tuned on the given labels first, the poisoned ones included, as in the paper.
        False keeps it as it is.
    random_state : int, RandomState or None, default=None
        Draws the seeds of encoder and head where these have none of their own.
    verbose : int, default=0
        Handed to the encoder and the head where these are quiet.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    encoder_ : TextClassifier
    head_ : classifier
        Fitted on the embeddings.

    Notes
    -----
    Parameters of the parts are reached as in a pipeline:
    ``TextFloralClassifier().set_params(encoder__epochs=1, head__budget=0.1)``. A part that is None, or a head that is a
    dict, becomes the estimator that it stands for when one of its parameters is set.

    How much the head can repair depends on the encoder: one that was fine-tuned on poisoned labels has learned them.

    Examples
    --------
    >>> from floral_learn.paper.text_floral import TextFloralClassifier
    >>> clf = TextFloralClassifier(fine_tune=False, random_state=0)
    >>> clf.fit(["a fine film", "a dull film"] * 8, ["good", "bad"] * 8).predict(["a fine film"])  # doctest: +SKIP
    array(['good'], dtype='<U4')
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn's own convention)
        "encoder": [TextClassifier, None],
        "head": [BaseEstimator, dict, None],
        "fine_tune": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        encoder: Any = None,
        head: Any = None,
        *,
        fine_tune: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.encoder = encoder
        self.head = head
        self.fine_tune = fine_tune
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_clone__(self) -> Any:
        """Keep a fitted encoder: it is part of what was asked for, and a clone without it would embed differently."""
        made = super().__sklearn_clone__()
        if hasattr(self.encoder, "model_"):
            made.encoder = copy.copy(self.encoder)  # parameters of its own, the same weights
        return made

    def set_params(self, **params: Any) -> Any:
        """Set parameters, those of the parts as ``encoder__epochs`` or ``head__budget``."""
        for name, kind in (("encoder", TextClassifier), ("head", FloralClassifier)):
            part = params.get(name, getattr(self, name))
            if any(key.startswith(f"{name}__") for key in params) and (part is None or isinstance(part, dict)):
                params = {**params, name: kind(**(part or {}))}
        return super().set_params(**params)

    @whole_fit
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, validation: Any = None, **head_params: Any) -> Self:
        """Fine-tune the encoder (or not) on texts `X` with untrusted labels `y`, then train the head on its embeddings.

        Parameters
        ----------
        X : list, array or Series of str
        y : array-like of shape (n_samples,)
        validation : (texts, labels), optional
            Scored after each epoch of the encoder, for ``encoder_.history_``; needs ``fine_tune=True``.
        **head_params
            Handed to the head's ``fit``, such as ``trusted`` or ``sample_weight`` of FloralClassifier. Rows of weight 0
            are left out of the fine-tune, too; all other weights are alike to it.

        Returns
        -------
        self
        """
        if validation is not None and not self.fine_tune:
            raise ValueError("validation scores the epochs of a fine-tune, and fine_tune=False has none")
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=2)
        head = _ready(checked_head(self.head), seeds[1], self.verbose)
        given = TextClassifier() if self.encoder is None else self.encoder
        used_as_it_is = not self.fine_tune and hasattr(given, "model_")
        encoder = given if used_as_it_is else _ready(clone(given), seeds[0], self.verbose)
        texts = check_texts(X)
        head_params = {name: align(X, value, ("X", name)) for name, value in head_params.items()}
        y = check_labels(align(X, y), len(texts))
        classes, codes = encode_labels(y, type(self).__name__)
        weight = check_fit(head, classes, codes, head_params)
        if self.fine_tune:
            rows = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
            encoder.fit(some_rows(texts, rows), y[rows], validation)
        elif not used_as_it_is:
            encoder.freeze(classes)
        head.fit(encoder.embed(texts), y, **head_params)
        self.encoder_, self.head_, self.classes_ = encoder, head, head.classes_
        return self

    def embed(self, X: Any) -> Any:
        """What the head sees of texts `X`: embeddings, float32 of shape (n_samples, width)."""
        self._check_fitted()
        return self.encoder_.embed(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """The head's scores of texts `X`."""
        rows = self.embed(X)
        return self.head_.decision_function(rows)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each text."""
        rows = self.embed(X)
        return self.head_.predict(rows)

    def _check_fitted(self) -> None:
        if not hasattr(self, "head_"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call fit first.")

    def label_issues(self, X: Any = None) -> Any:
        """Rank the training labels by how likely they are to be wrong; see ``FloralClassifier.label_issues``.

        With the training texts `X` (they are not kept) the table has a column ``text``.

        Returns
        -------
        pandas.DataFrame
        """
        self._check_fitted()
        if not hasattr(self.head_, "label_issues"):
            raise ValueError(f"the head {type(self.head_).__name__} has no label_issues; FloralClassifier has")
        table = self.head_.label_issues()
        if X is None:
            return table
        texts = check_texts(X)
        if len(texts) != len(table):
            raise ValueError(f"X has {len(texts)} texts, the model was trained on {len(table)}")
        return table.assign(text=[texts[row] for row in table["row"]])

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the encoder (safetensors) and the head (skops) into `folder`; no pickle.

        Files of an earlier save are replaced; other files are left alone, and all of them if this fails.
        """
        from floral_learn.base.models import save

        self._check_fitted()
        model = None if self.encoder is None else self.encoder.model
        if model is not None:  # a folder is found again from any other
            model = os.path.abspath(model) if Path(model).is_dir() else os.fspath(model)
        kept = {"fine_tune": self.fine_tune, "random_state": self.random_state, "verbose": self.verbose}
        note = note_text({"model": model, **kept})
        with replaced_folder(folder) as made:
            (made / NOTE).write_text(note, encoding="utf-8")
            save(self.head_, made / "head.skops")
            self.encoder_.save(made / "encoder")

    @classmethod
    def load(cls, folder: str | os.PathLike[str], device: str | None = None) -> TextFloralClassifier:
        """Read what `save` wrote.

        Fitted again, it does what it did: with ``fine_tune=True`` it starts from the encoder's first `model`, which
        must still be there, with ``fine_tune=False`` the saved encoder is used as it is. Seeds that were drawn for the
        parts are theirs now.
        """
        from floral_learn.base.model_files import ModelFileError
        from floral_learn.base.models import load

        folder = Path(folder)
        note = read_note(folder, cls.__name__)
        if not (folder / "head.skops").is_file() or "fine_tune" not in note:
            raise ModelFileError(f"{folder} is not a folder that {cls.__name__}.save wrote")
        fitted, head = TextClassifier.load(folder / "encoder", device), load(folder / "head.skops")
        encoder = clone(fitted).set_params(model=note["model"]) if note["fine_tune"] else fitted
        kept = {name: note[name] for name in ("fine_tune", "random_state", "verbose")}
        made = cls(encoder, clone(head), **kept)
        made.encoder_, made.head_, made.classes_ = fitted, head, head.classes_
        return made


def _ready(estimator: Any, seed: int, verbose: int) -> Any:
    """Fill in random_state and verbose where they are not set."""
    known = estimator.get_params(deep=False)
    if known.get("random_state", seed) is None:
        estimator.set_params(random_state=int(seed))
    if verbose and known.get("verbose", 1) == 0:
        # a pipeline wants a boolean
        estimator.set_params(verbose=True if known["verbose"] is False else verbose)
    return estimator


def checked_head(head: Any) -> Any:
    """The unfitted estimator behind a `head` parameter, its parameters checked."""
    if head is None or isinstance(head, dict):
        return build_head(head, None)
    made = clone(head)
    if not hasattr(made, "fit") or is_regressor(made):
        raise ValueError(f"head={head!r} must be a classifier")
    for part in (made, *dict(getattr(made, "steps", ())).values()):
        if hasattr(part, "_parameter_constraints"):
            part._validate_params()
    return made


def check_fit(head: Any, classes: np.ndarray, codes: np.ndarray, given: dict[str, Any]) -> np.ndarray | None:
    """Refuse now what the head's fit would refuse; returns the weights (n,) of the rows, or None.

    `given` are keywords of ``head.fit``; those of a pipeline's step have its name in front, ``step__sample_weight``.
    """
    known = inspect.signature(head.fit).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        allowed = [name for name in known if name not in ("X", "y")]
        if strange := [name for name in given if name not in allowed]:
            raise TypeError(f"{type(head).__name__}.fit has no parameter {strange[0]!r}; it has {allowed}")
    weights = None
    for name, value in given.items():
        meant = name.rpartition("__")[2]
        if meant == "trusted":
            check_trusted(value, len(codes))
        elif meant == "sample_weight" and value is not None:
            weights = checked_weight(value, codes[:, None], codes, classes)
    if isinstance(head, GameClassifier):
        _check_floral(head, classes, codes, weights)
    return weights


def _check_floral(head: GameClassifier, classes: np.ndarray, codes: np.ndarray, weights: np.ndarray | None) -> None:
    """What FloralClassifier checks before its first round, as far as it does not need the embeddings."""
    if head.kernel == "precomputed":
        raise ValueError("head kernel='precomputed' wants a kernel matrix, and the head is given embeddings")
    labels = codes if weights is None else codes[weights > 0]
    settings = head._settings()
    pairs = Pairs.of(labels, len(classes)) if len(classes) > 2 and settings.multi_class == "pairs" else None
    resolve_budget(settings, labels, classes, pairs)
    check_decay(settings.decay)
    backend_for(settings.device)
    if settings.class_weight is not None:
        compute_class_weight(settings.class_weight, classes=classes, y=classes[codes])
