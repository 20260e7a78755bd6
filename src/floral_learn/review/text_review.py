"""TextReview: ask on an encoder's embeddings, train the encoder again on the corrected labels, ask again."""

from __future__ import annotations

import inspect
import os
from typing import Any

import numpy as np
from sklearn.base import clone

from floral_learn.review import saving
from floral_learn.review.label_review import LabelReview
from floral_learn.review.line import between, looks
from floral_learn.review.words import places_between, word_scores

_LOOKS = 20  # questions of the review's own choice that look along the line first
_NEWER = 0.3  # share of the last encoder in a place on the line, where the encoder was trained again


class TextReview(LabelReview):
    """Find out which texts have wrong labels by asking a person: a `LabelReview` on an encoder that it trains.

    The encoder is fine-tuned on the given labels, and questions are asked on its embeddings and its scores: an attack
    on a network flips what it finds hard to tell, which is a stretch of the scores. Words alone are a second opinion on
    a text's place there, and the first twenty questions look along that line from class to class. `fit` gives the final
    classifier, for which a label in doubt is no more than a hint. `retrain` fine-tunes the encoder again, from the
    start, on the labels as read then, and questions go on with its embeddings and mostly the first encoder's scores: an
    encoder that was taught labels that are still wrong is sure of them.

    Parameters
    ----------
    texts : sequence of str, or Tokens
        The texts.
    y : array-like of shape (n,)
        Given labels, which may be wrong.
    encoder : estimator, optional
        Cloned and fitted on (texts, labels); needs ``fit`` and ``embed`` (or ``transform``). By default
        :class:`floral_learn.TextClassifier`, which is MiniLM. Where its ``fit`` takes ``belief``, it is told how
        probable each label is; else texts in doubt weigh less where it takes ``sample_weight``.
    asking_epochs : int or None, default=1
        Epochs after which the encoder is asked for embeddings, where it has a parameter ``epochs``; None leaves it as
        it is. After several epochs an encoder knows wrong labels by heart, after one hardly any. `fit` keeps the
        encoder's own number.
    trusted, groups, classes, sample_weight, walk_share, max_memory, random_state
        As in :class:`LabelReview`.

    Attributes
    ----------
    encoder_ : estimator
        As fitted last.
    turns_ : int
        How often the encoder was fitted.

    Notes
    -----
    The other attributes and methods are those of :class:`LabelReview`. `fit` without an estimator gives the encoder
    fitted on the labels as they are read now; with one, a head on the embeddings. `save` keeps the texts and the
    embeddings, not the encoder: `load` takes one to go on with.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from floral_learn import TextReview
    >>> texts = ["a fine warm film", "a dull cold film", "warm and fine", "cold and dull"] * 10
    >>> y = ["good", "bad", "good", "bad"] * 10
    >>> review = TextReview(texts, y, encoder=TfidfVectorizer(), random_state=0)
    >>> rows = review.ask(2)
    >>> review.answer(rows, [y[row] for row in rows])
    >>> review.retrain().turns_
    2
    """

    _any_scale = False  # an encoder's columns are alike, and questions about texts were tried in standardised ones
    _scored = True  # whether regions may lie along the encoder's scores
    _ranks: np.ndarray | None = None

    def __init__(
        self,
        texts: Any,
        y: Any,
        *,
        encoder: Any = None,
        asking_epochs: int | None = 1,
        trusted: Any = None,
        groups: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        walk_share: float = 0.25,
        max_memory: str | float = "4GB",
        random_state: int | None = None,
    ) -> None:
        if isinstance(texts, str) or not hasattr(texts, "__len__"):
            raise ValueError(f"texts must be a sequence of texts, and is {type(texts).__name__}")
        if len(texts) != len(y):
            raise ValueError(f"texts has {len(texts)} entries and y has {len(y)}; they must match")
        whole = isinstance(asking_epochs, int | np.integer) and not isinstance(asking_epochs, bool)
        if asking_epochs is not None and not (whole and asking_epochs >= 1):
            raise ValueError(f"asking_epochs={asking_epochs!r} must be an integer of at least 1, or None")
        self.texts, self.encoder, self.turns_ = texts, _checked(encoder), 0
        self.asking_epochs = asking_epochs
        super().__init__(
            self._encoded(np.asarray(y)),
            y,
            trusted=trusted,
            groups=groups,
            classes=classes,
            sample_weight=sample_weight,
            walk_share=walk_share,
            max_memory=max_memory,
            random_state=random_state,
        )

    def retrain(self) -> TextReview:
        """Fine-tune the encoder again on the labels as they are now, and ask on its embeddings from here on."""
        self._set_up(
            self._encoded(self.labels_, first=False),
            self.given,
            self.trusted,
            self._groups,
            self._weight,
            self.classes_,
        )
        return self

    def fit(self, estimator: Any = None) -> Any:
        """The encoder fitted on `labels_` and on their probabilities; with an `estimator`, that one on embeddings.

        `training_labels_` and `training_weights_` are those of the `estimator`.
        """
        if estimator is not None:
            return super().fit(estimator)
        return self._taught(clone(self.encoder))

    def append(self, *_: Any, **__: Any) -> None:
        """Texts cannot be appended: the encoder would have to be fitted on all of them; start a new review."""
        raise NotImplementedError("TextReview cannot append texts; start a new review with all of them")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write texts, embeddings, answers and the secret walk to a skops file; the encoder is not part of it."""
        if not isinstance(self.texts, list | tuple | np.ndarray):
            raise ValueError(f"texts are {type(self.texts).__name__}, which a review file cannot hold")
        kept = {"texts": [str(t) for t in self.texts], "turns": self.turns_, "asking_epochs": self.asking_epochs}
        kept["ranks"] = self._ranks
        saving.write(path, {**self._state(), **kept})

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], encoder: Any = None, *, max_bytes: int = saving.MAX_BYTES
    ) -> TextReview:
        """Read a review that `save` wrote; `encoder` is what `retrain` and `fit` go on with."""
        review = saving.read(path, cls._from_state, max_bytes)
        review.encoder = _checked(encoder)
        return review

    def _restore(self, state: dict[str, Any]) -> None:
        if "texts" not in state:
            raise saving.ModelFileError("it holds a LabelReview, not a TextReview")
        self.texts, self.turns_ = state["texts"], state["turns"]
        self.asking_epochs, self._ranks = state.get("asking_epochs", 1), state.get("ranks")

    def _text_weights(self) -> np.ndarray:
        """2p - 1, p the probability of the label as it is read: what a label that may be wrong says on average.

        A network learns wrong labels by heart where a kernel machine bears them, so doubt counts from the start.
        """
        belief = self.label_probability_
        chance = belief[np.arange(len(belief)), self._read()]
        return self._weight * np.clip(2 * chance - 1, 1e-3, 1.0)

    def _lines(self, n: int) -> np.ndarray | None:
        """The line (1, n) on which the texts lie between the classes: places by the first encoder, a share of the last.

        An encoder that was taught corrected labels is surer of itself, and no longer shows what the first one did.
        """
        if self._ranks is None or self._ranks.shape[1] != n:
            return None
        return between(self._ranks[0], self._ranks[-1], _NEWER)[None] if len(self._ranks) > 1 else self._ranks

    def _settling(self, n: int) -> tuple[np.ndarray, float]:
        """The first questions look along the line: a stretch that was turned over is seen before it is suspected."""
        rows, gain = super()._settling(n)
        line = self._lines(len(self.given))
        asked = len({a.row for a in self._log if not a.walk})
        if line is None or asked >= _LOOKS:
            return rows, gain
        first = looks(line[0], self._codes, self._free(), asked, min(n, _LOOKS - asked), self._seed)
        return np.concatenate([first, rows[~np.isin(rows, first)]]), gain

    def _encoded(self, labels: np.ndarray, *, first: bool = True) -> Any:
        """Embeddings of the texts by a clone of the encoder that was fitted on `labels`, as given or as read."""
        encoder = clone(self.encoder)
        if self.asking_epochs is not None and "epochs" in encoder.get_params(deep=False):
            encoder.set_params(epochs=self.asking_epochs)
        self.encoder_ = encoder.fit(self.texts, labels) if first else self._taught(encoder)
        self.turns_ += 1
        embed = getattr(self.encoder_, "embed", None) or self.encoder_.transform
        new = _placed(self.encoder_, self.texts, labels) if self._scored else None
        if new is not None:
            self._ranks = new[None] if self._ranks is None else np.stack([self._ranks[0], new])
        return embed(self.texts)

    def _taught(self, encoder: Any) -> Any:
        """`encoder` fitted on the labels as they are read now, and on what is believed of them.

        Where its fit takes ``belief``, a label in doubt may be overruled; else it weighs less where weights are taken.
        """
        takes, labels = inspect.signature(encoder.fit).parameters, self.labels_
        own = {} if np.ptp(self._weight) == 0 or "sample_weight" not in takes else {"sample_weight": self._weight}
        if not self._has_evidence():
            return encoder.fit(self.texts, labels, **own)
        if "belief" in takes and len(np.unique(labels)) == len(self.classes_):
            return encoder.fit(self.texts, labels, belief=self.label_probability_, **own)
        if "sample_weight" in takes:
            return encoder.fit(self.texts, labels, sample_weight=self._text_weights())
        return encoder.fit(self.texts, labels)


def _placed(encoder: Any, texts: Any, labels: np.ndarray) -> np.ndarray | None:
    """Places of the texts between the two classes by the encoder's scores and by words; None where it has none."""
    score = getattr(encoder, "decision_function", None)
    values = None if score is None else np.asarray(score(texts))
    if values is None or values.ndim != 1:
        return None
    codes = np.unique(labels, return_inverse=True)[1]
    return places_between(values, word_scores(texts, codes), codes)


def _checked(encoder: Any) -> Any:
    if encoder is None:
        from floral_learn.neural.text import TextClassifier

        return TextClassifier()
    if not hasattr(encoder, "fit") or not (hasattr(encoder, "embed") or hasattr(encoder, "transform")):
        raise ValueError(f"encoder={encoder!r} must have fit, and embed or transform")
    return encoder
