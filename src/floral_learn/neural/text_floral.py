"""FLORAL as the robust head of a language model: texts and untrusted labels in, labels out.

e_i = first-token embedding of text i         the game of FloralClassifier is played on the rows e_i
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from floral_learn.defenses.floral import FloralClassifier
from floral_learn.neural.encoders import check_texts
from floral_learn.neural.text import TextClassifier


class TextFloralClassifier(ClassifierMixin, BaseEstimator):
    """Classify texts whose labels you do not trust: a transformer's embeddings, with FLORAL in place of its last layer.

    Parameters
    ----------
    encoder : TextClassifier or None, default=None
        What turns texts into embeddings; None is ``TextClassifier()``, MiniLM. With ``fine_tune=False`` it may be
        fitted already, on labels that you trust, say; it is then used as it is.
    head : FloralClassifier, another classifier, or None, default=None
        Trained on the embeddings; None is ``FloralClassifier()``.
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
    Parameters of the parts are reached as in a pipeline once the parts are given:
    ``TextFloralClassifier(TextClassifier(), FloralClassifier()).set_params(encoder__epochs=1, head__budget=0.1)``.

    How much the head can repair depends on the encoder: one that was fine-tuned on poisoned labels has learned them.

    Examples
    --------
    >>> from floral_learn.neural.text_floral import TextFloralClassifier
    >>> clf = TextFloralClassifier(fine_tune=False, random_state=0)
    >>> clf.fit(["a fine film", "a dull film"] * 8, ["good", "bad"] * 8).predict(["a fine film"])  # doctest: +SKIP
    array(['good'], dtype='<U4')
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 (scikit-learn's own convention)
        "encoder": [TextClassifier, None],
        "head": [BaseEstimator, None],
        "fine_tune": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(self, encoder=None, head=None, fine_tune=True, random_state=None, verbose=0):
        self.encoder = encoder
        self.head = head
        self.fine_tune = fine_tune
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        """Rows are texts."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array, tags.input_tags.one_d_array = True, False, True
        return tags

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, validation=None, **head_params):
        """Fine-tune the encoder (or not) on texts `X` with untrusted labels `y`, then train the head on its embeddings.

        Parameters
        ----------
        X : list, array or Series of str
        y : array-like of shape (n_samples,)
        validation : (texts, labels), optional
            Scored after each epoch of the encoder, for ``encoder_.history_``.
        **head_params
            Handed to the head's ``fit``, such as ``trusted`` or ``sample_weight`` of FloralClassifier.

        Returns
        -------
        self
        """
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=2)
        head = _ready(FloralClassifier() if self.head is None else clone(self.head), seeds[1], self.verbose)
        given = TextClassifier() if self.encoder is None else self.encoder
        used_as_it_is = not self.fine_tune and hasattr(given, "model_")
        encoder = given if used_as_it_is else _ready(clone(given), seeds[0], self.verbose)
        texts, (classes, _) = encoder._rows(X), encoder._labels(X, y)
        if self.fine_tune:
            encoder.fit(texts, y, validation)
        elif not used_as_it_is:
            if validation is not None:
                raise ValueError("validation scores the epochs of a fine-tune, and fine_tune=False has none")
            encoder.freeze(classes)
        self.encoder_ = encoder
        self.head_ = head.fit(encoder.embed(texts), np.asarray(y), **head_params)
        self.classes_ = self.head_.classes_
        return self

    def embed(self, X):
        """What the head sees of texts `X`: embeddings, float32 of shape (n_samples, width)."""
        self._check_fitted()
        return self.encoder_.embed(X)

    def decision_function(self, X):
        """The head's scores of texts `X`."""
        rows = self.embed(X)
        return self.head_.decision_function(rows)

    def predict(self, X):
        """The class of each text."""
        rows = self.embed(X)
        return self.head_.predict(rows)

    def _check_fitted(self) -> None:
        if not hasattr(self, "head_"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call fit first.")

    def label_issues(self, X=None):
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
        """Write the encoder (safetensors) and the head (skops) into `folder`; no pickle."""
        from floral_learn.defenses.persistence import save

        self._check_fitted()
        folder = Path(folder)
        self.encoder_.save(folder / "encoder")
        save(self.head_, folder / "head.skops")

    @classmethod
    def load(cls, folder: str | os.PathLike[str], device: str | None = None) -> TextFloralClassifier:
        """Read what `save` wrote."""
        from floral_learn.defenses.persistence import load

        folder = Path(folder)
        if not (folder / "head.skops").is_file():
            raise ValueError(f"{folder} is not a folder that TextFloralClassifier.save wrote")
        encoder, head = TextClassifier.load(folder / "encoder", device), load(folder / "head.skops")
        made = cls(encoder=encoder, head=clone(head), fine_tune=False)
        made.encoder_, made.head_, made.classes_ = encoder, head, head.classes_
        return made


def _ready(estimator: Any, seed: int, verbose: int) -> Any:
    """A part with a seed and a voice, where it has none of its own."""
    known = estimator.get_params(deep=False)
    if known.get("random_state", seed) is None:
        estimator.set_params(random_state=int(seed))
    if known.get("verbose", 1) == 0:
        estimator.set_params(verbose=verbose)
    return estimator
