"""TextReview: ask on an encoder's embeddings, train the encoder again on the corrected labels, ask again."""

from __future__ import annotations

import inspect
import os
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import ComplementNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from floral_learn.base.rows import take_rows
from floral_learn.review import saving
from floral_learn.review.label_review import LabelReview
from floral_learn.review.rows import evenly_placed, is_integer

_FEW_TEXTS = 2000  # below, an encoder stays as it came: tuned on 800 poisoned labels it knew nothing, on 20,000 it did
_HELD_OUT = 500  # texts on which tuning has to prove itself, beside a head that is fitted on _FEW_TEXTS others
_NEWER = 0.3  # share of the last encoder in a place on the line, where the encoder was trained again
_WORDS = 0.25  # share of the words in a place, where they tell the given labels as well as the encoder
_FOLDS = 8
_COLUMNS = 2**18


class TextReview(LabelReview):
    """Find out which texts have wrong labels by asking a person: a `LabelReview` on an encoder that it trains.

    The encoder is fine-tuned on the given labels, and questions are asked on its embeddings and its scores: an attack
    on a network flips what it finds hard to tell, which is a stretch of the scores. Words alone are a second opinion on
    a text's place there, and the first questions look along that line from class to class. `train` gives the
    final classifier, for which a label in doubt is no more than a hint. `retrain` fine-tunes the encoder again, from
    the start, on the labels as read then, and questions go on with its embeddings and mostly the first encoder's
    scores: an encoder that was taught labels that are still wrong is sure of them.

    Parameters
    ----------
    texts : sequence of str, or Tokens
        The texts.
    y : array-like of shape (n,)
        Given labels, which may be wrong.
    encoder : estimator, optional
        Cloned and fitted on (texts, labels); needs ``train`` and ``embed`` (or ``transform``). By default
        :class:`floral_learn.TextClassifier`, which is MiniLM. Where its ``train`` takes ``belief``, it is told how
        probable each label is; else texts in doubt weigh less where it takes ``sample_weight``.
    asking_epochs : int or None, default=1
        Epochs after which the encoder is asked for embeddings, where it has a parameter ``epochs``; None leaves it as
        it is. After several epochs an encoder knows wrong labels by heart, after one hardly any. `train` keeps the
        encoder's own number.
    tune : bool or None, default=None
        Whether the encoder is fine-tuned on the labels. None leaves it as it came (`freeze`), with a head on its
        embeddings, below 2,000 texts: tuned on so few labels, of which some are wrong, it knows less. From there on it
        is tuned on all but 500 texts, and kept so if it predicts the labels of these at least as well as the head does
        (`held_out_accuracy`). An encoder that cannot be frozen is always fitted.
    trusted, groups, classes, sample_weight, random_share, max_memory, random_state
        As in :class:`LabelReview`.

    Attributes
    ----------
    fitted_encoder : estimator
        As fitted last.
    turns : int
        How often the encoder was fitted.
    tuned : bool
        Whether the encoder is fine-tuned, or left as it came.
    held_out_accuracy : dict of str to float
        Share of the given labels of held-out texts that "tuned" and "as it came" predict; empty where `tune`
        or the number of texts decided.

    Notes
    -----
    The other attributes and methods are those of :class:`LabelReview`. `train` without an estimator gives the encoder
    fitted on the corrected labels; with one, a head on the embeddings. `save` keeps the texts and the
    embeddings, not the encoder: `load` takes one to go on with.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from floral_learn.review import TextReview
    >>> texts = ["a fine warm film", "a dull cold film", "warm and fine", "cold and dull"] * 10
    >>> y = ["good", "bad", "good", "bad"] * 10
    >>> review = TextReview(texts, y, encoder=TfidfVectorizer(), random_state=0)
    >>> rows = review.ask(2)
    >>> review.answer(rows, [y[row] for row in rows])
    >>> review.retrain().turns
    2
    """

    _scored = True  # whether regions may lie along the encoder's scores
    _ranks: np.ndarray | None = None
    fitted_encoder: Any = None
    tuned, _compare = True, False
    _looks = 3  # an attack on a network flips a stretch of its scores; measured on IMDB with these only

    def __init__(
        self,
        texts: Any,
        y: Any,
        *,
        encoder: Any = None,
        asking_epochs: int | None = 1,
        tune: bool | None = None,
        trusted: Any = None,
        groups: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        random_share: float = 0.3,
        max_memory: str | float = "4GB",
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> None:
        if isinstance(texts, str) or not hasattr(texts, "__len__"):
            raise ValueError(f"texts must be a sequence of texts, and is {type(texts).__name__}")
        if len(texts) != len(y):
            raise ValueError(f"texts has {len(texts)} entries and y has {len(y)}; they must match")
        if asking_epochs is not None and not (is_integer(asking_epochs) and asking_epochs >= 1):
            raise ValueError(f"asking_epochs={asking_epochs!r} must be an integer of at least 1, or None")
        self.texts, self.encoder, self.turns = texts, _checked(encoder), 0
        self.asking_epochs = asking_epochs
        if tune not in (None, True, False):
            raise ValueError(f"tune={tune!r} must be True, False or None")
        freezes = hasattr(self.encoder, "freeze")
        if tune is False and not freezes:
            raise ValueError(f"tune=False needs an encoder with freeze, which {self.encoder!r} has not")
        self.tuned = not freezes or (len(texts) >= _FEW_TEXTS if tune is None else tune)
        self._compare = tune is None and freezes and self.tuned and hasattr(self.encoder, "predict")
        self.held_out_accuracy: dict[str, float] = {}
        super().__init__(
            self._encoded(np.asarray(y)),
            y,
            trusted=trusted,
            groups=groups,
            classes=classes,
            sample_weight=sample_weight,
            random_share=random_share,
            max_memory=max_memory,
            random_state=random_state,
        )

    def retrain(self) -> TextReview:
        """Fine-tune the encoder again on the labels as they are now, and ask on its embeddings from here on.

        An encoder that is not `tuned` stays as it is, and so does the review.
        """
        if not self.tuned and self.fitted_encoder is not None:
            return self
        self._set_up(
            self._encoded(self.labels, first=False),
            self.given,
            self.trusted,
            self._groups,
            self._weight,
            self.classes,
        )
        return self

    def train(self, estimator: Any = None, *, weighted: bool = True) -> Any:
        """The encoder fitted on `labels` and on their probabilities; with an `estimator`, that one on embeddings.

        `training_labels` and `training_weights` are those of the `estimator`. Without one, an encoder that is not
        `tuned` gets an SVC behind its embeddings: a pipeline from texts to labels.
        """
        if estimator is not None:
            return super().train(estimator, weighted=weighted)
        if self.tuned:
            return self._taught(clone(self.encoder))
        head = super().train(SVC(), weighted=weighted)
        return Pipeline([("embed", FunctionTransformer(self._embed)), ("head", head)])

    def append(self, texts: Any, y: Any, *, trusted: Any = None, groups: Any = None, sample_weight: Any = None) -> None:
        """Add texts with their given labels, embedded by the encoder as it was fitted last; `retrain` takes them in."""
        if not isinstance(self.texts, list | tuple | np.ndarray):
            raise ValueError(f"texts are {type(self.texts).__name__}, to which none can be added; start a new review")
        if isinstance(texts, str) or len(texts) != len(y):
            raise ValueError(f"texts has {len(texts)} entries and y has {len(y)}; they must match")
        before = self.texts, self._ranks
        self.texts = [*self.texts, *texts]
        try:
            labels = np.concatenate([self.labels, np.asarray(y)])
            self._extend(self._embedded(labels), y, trusted, groups, sample_weight)
        except BaseException:
            self.texts, self._ranks = before
            raise

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write texts, embeddings, answers and the secret order to a skops file; the encoder is not part of it."""
        if not isinstance(self.texts, list | tuple | np.ndarray):
            raise ValueError(f"texts are {type(self.texts).__name__}, which a review file cannot hold")
        kept = {"texts": [str(t) for t in self.texts], "turns": self.turns, "asking_epochs": self.asking_epochs}
        kept |= {"ranks": self._ranks, "tuned": self.tuned, "held_out_accuracy": self.held_out_accuracy}
        saving.write(path, {**self._state(), **kept})

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], encoder: Any = None, *, max_bytes: int = saving.MOST_BYTES
    ) -> TextReview:
        """Read a review that `save` wrote; `encoder` is what `retrain` and `train` go on with."""
        review = saving.read(path, cls._from_state, max_bytes)
        review.encoder = _checked(encoder)
        return review

    def _facts(self) -> dict[str, str]:
        how = "fine-tuned on the labels" if self.tuned else "as it came, with a head on its embeddings"
        told = [f"{name} {share:.3f}" for name, share in self.held_out_accuracy.items()]
        return super()._facts() | {"encoder": f"{how} (held-out accuracy: {', '.join(told)})" if told else how}

    def _restore(self, state: dict[str, Any]) -> None:
        if "texts" not in state:
            raise saving.ModelFileError("it holds a LabelReview, not a TextReview")
        self.texts, self.turns = state["texts"], state["turns"]
        self.asking_epochs, self._ranks = state.get("asking_epochs", 1), state.get("ranks")
        self.tuned = bool(state.get("tuned", True))
        self.held_out_accuracy = {str(name): float(share) for name, share in state["held_out_accuracy"].items()}

    def _text_weights(self) -> np.ndarray:
        """2p - 1, p the probability of the label as it is read: what a label that may be wrong says on average.

        A network learns wrong labels by heart where a kernel machine bears them, so doubt counts from the start.
        """
        belief = self.label_probability
        chance = belief[np.arange(len(belief)), self._beliefs.labels]
        return self._weight * np.clip(2 * chance - 1, 1e-3, 1.0)

    def _scores(self, X: Any, codes: np.ndarray, n_classes: int) -> np.ndarray:
        """Where the texts lie from the other class to their own, by the first encoder with a share of the last, (n,).

        An encoder that was taught corrected labels is surer of itself, and no longer shows what the first one did.
        Without an encoder's scores, or with several classes, by a held-out model of the embeddings.
        """
        if self._ranks is None or self._ranks.shape[1] != len(codes):
            return super()._scores(X, codes, n_classes)
        place = self._ranks[0]
        if len(self._ranks) > 1:
            place = evenly_placed((1 - _NEWER) * self._ranks[0] + _NEWER * self._ranks[-1])
        return place * np.where(codes == 0, -1.0, 1.0)

    def _encoded(self, labels: np.ndarray, *, first: bool = True) -> Any:
        """Embeddings of the texts by a clone of the encoder that was fitted on `labels`, as given or as read."""
        encoder = clone(self.encoder)
        if not self.tuned:
            self.fitted_encoder, self.turns = encoder.freeze(np.unique(labels)), self.turns + 1
            return self._embed(self.texts)
        if self.asking_epochs is not None and "epochs" in encoder.get_params(deep=False):
            encoder.set_params(epochs=self.asking_epochs)
        if first and self._compare:
            return self._better_encoded(encoder, labels)
        self.fitted_encoder = encoder.fit(self.texts, labels) if first else self._taught(encoder)
        self.turns += 1
        return self._embedded(labels)

    def _better_encoded(self, encoder: Any, labels: np.ndarray) -> Any:
        """Embeddings by the `encoder` tuned on all texts but some, or as it came if a head on that tells these better.

        The tuned one is not fitted again on all texts: the comparison costs the embeddings of a few.
        """
        order = np.random.default_rng(0).permutation(len(labels))
        out, rest = order[:_HELD_OUT], np.sort(order[_HELD_OUT:])
        tuned = encoder.fit(_some(self.texts, rest), labels[rest])
        told = {"tuned": float((tuned.predict(_some(self.texts, out)) == labels[out]).mean())}
        self.fitted_encoder = clone(self.encoder).freeze(np.unique(labels))
        some = order[_HELD_OUT:][:_FEW_TEXTS]
        head = LogisticRegression(max_iter=300).fit(self._embed(_some(self.texts, some)), labels[some])
        told["as it came"] = float(head.score(self._embed(_some(self.texts, out)), labels[out]))
        self.held_out_accuracy, self.tuned, self.turns = told, told["tuned"] >= told["as it came"], self.turns + 1
        if not self.tuned:
            return self._embed(self.texts)
        self.fitted_encoder = tuned
        return self._embedded(labels)

    def _embedded(self, labels: np.ndarray) -> Any:
        """Embeddings of the texts by the encoder as it was fitted last; keeps their places between the classes."""
        if self.fitted_encoder is None:
            raise ValueError("this review was loaded without its fitted encoder; call retrain() first")
        new = _placed(self.fitted_encoder, self.texts, labels) if self._scored and self.tuned else None
        if new is not None:
            old = None if self._ranks is None or self.turns == 1 else self._ranks[0]
            self._ranks = new[None] if old is None or len(old) != len(new) else np.stack([old, new])
        return self._embed(self.texts)

    def _embed(self, texts: Any) -> Any:
        embed = getattr(self.fitted_encoder, "embed", None) or self.fitted_encoder.transform
        return embed(texts)

    def _taught(self, encoder: Any) -> Any:
        """`encoder` fitted on the corrected labels, and on what is believed of them.

        Where its fit takes ``belief``, a label in doubt may be overruled; else it weighs less where weights are taken.
        """
        takes, labels = inspect.signature(encoder.fit).parameters, self.labels
        own = {} if np.ptp(self._weight) == 0 or "sample_weight" not in takes else {"sample_weight": self._weight}
        if not self._beliefs.has_evidence:
            return encoder.fit(self.texts, labels, **own)
        if "belief" in takes and len(np.unique(labels)) == len(self.classes):
            return encoder.fit(self.texts, labels, belief=self.label_probability, **own)
        if "sample_weight" in takes:
            return encoder.fit(self.texts, labels, sample_weight=self._text_weights())
        return encoder.fit(self.texts, labels)


def _some(texts: Any, rows: np.ndarray) -> Any:
    """Some of the texts; Tokens are taken as they are."""
    return texts[rows] if hasattr(texts, "ids") else take_rows(texts, rows)


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
        from floral_learn.text import TextClassifier

        return TextClassifier()
    if not hasattr(encoder, "fit") or not (hasattr(encoder, "embed") or hasattr(encoder, "transform")):
        raise ValueError(f"encoder={encoder!r} must have fit, and embed or transform")
    return encoder


def places_between(score: np.ndarray, words: np.ndarray | None, codes: np.ndarray) -> np.ndarray:
    """Places of the texts between two classes, from -2 to 2: ranks by the encoder's score, with a share of the words'.

    The share falls with what the words say of the given labels beside what the encoder says: words that say nothing
    change nothing.
    """
    place = _ranks(score)
    if words is not None:
        told = [max(0.0, 2 * float(roc_auc_score(codes, one)) - 1) for one in (words, score)]
        share = _WORDS * min(1.0, told[0] / max(told[1], 1e-9))
        place = (1 - share) * place + share * _ranks(words)
    return evenly_placed(place)


def word_scores(texts: Any, codes: np.ndarray) -> np.ndarray | None:
    """Scores (n,) for the second of two classes by single words and pairs, each text by a model that did not see it.

    Naive Bayes on weighted counts, which a wrong label here and there does not bend. None where `texts` are neither
    strings nor token numbers, or a class has fewer rows than there are folds.
    """
    counts = _counted(texts)
    if counts is None or np.bincount(codes, minlength=2).min() < _FOLDS:
        return None
    rows = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    chance = cross_val_predict(ComplementNB(), rows, codes, cv=folds, method="predict_log_proba")
    return np.asarray(chance[:, 1] - chance[:, 0])


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0 to 1, equal ones where values are equal."""
    return np.asarray(rankdata(values) - 0.5) / len(values)


def _counted(texts: Any) -> sparse.csr_matrix | None:
    """How often each text has each word and pair of neighbouring words, (n, columns)."""
    if hasattr(texts, "ids") and hasattr(texts, "lengths"):  # Tokens, whose room is not imported where torch is not
        return _counted_tokens(np.asarray(texts.ids, dtype=np.int64), np.asarray(texts.lengths))
    known = [text for text in texts if isinstance(text, str)]
    if len(known) < len(texts) or not len(known):
        return None
    made = HashingVectorizer(ngram_range=(1, 2), n_features=_COLUMNS, alternate_sign=False, norm=None)
    return sparse.csr_matrix(made.transform(known))


def _counted_tokens(ids: np.ndarray, lengths: np.ndarray) -> sparse.csr_matrix:
    n, width = ids.shape
    here = np.arange(width) < lengths[:, None]
    rows = np.broadcast_to(np.arange(n)[:, None], ids.shape)
    both = here[:, 1:]
    pairs = (ids[:, :-1] * 1_000_003 + ids[:, 1:] * 7_919 + 1) % _COLUMNS
    places = np.concatenate([rows[here], rows[:, 1:][both]])
    columns = np.concatenate([ids[here] % _COLUMNS, pairs[both]])
    return sparse.csr_matrix((np.ones(len(places), np.float32), (places, columns)), shape=(n, _COLUMNS))
