"""What the words of a text say of its class, apart from any encoder: a second opinion for `TextReview`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import rankdata
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import ComplementNB

from floral_learn.review.line import between

SHARE = 0.25  # of the words in a place between the classes, where they tell the given labels as well as the encoder
FOLDS = 8
_COLUMNS = 2**18


def places_between(score: np.ndarray, words: np.ndarray | None, codes: np.ndarray) -> np.ndarray:
    """Places of the texts between two classes, from -2 to 2: ranks by the encoder's score, with a share of the words'.

    The share falls with what the words say of the given labels beside what the encoder says: words that say nothing
    change nothing.
    """
    place = _ranks(score)
    if words is not None:
        told = [max(0.0, 2 * float(roc_auc_score(codes, one)) - 1) for one in (words, score)]
        share = SHARE * min(1.0, told[0] / max(told[1], 1e-9))
        place = (1 - share) * place + share * _ranks(words)
    return between(place, place, 0.0)


def word_scores(texts: Any, codes: np.ndarray) -> np.ndarray | None:
    """Scores (n,) for the second of two classes by single words and pairs, each text by a model that did not see it.

    Naive Bayes on weighted counts, which a wrong label here and there does not bend. None where `texts` are neither
    strings nor token numbers, or a class has fewer rows than there are folds.
    """
    counts = _counted(texts)
    if counts is None or np.bincount(codes, minlength=2).min() < FOLDS:
        return None
    rows = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
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
