"""Pre-trained transformers: where their files lie, loaded with a new last layer, a padding token and a length to read.

transformers is imported only when it is needed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from floral_learn.base.cells import reason
from floral_learn.base.extras import install_line
from floral_learn.encoders.text import minilm_folder
from floral_learn.game.arrays import backend_for
from floral_learn.text.tokens import Tokens, tokenize


def require_transformers() -> Any:
    """Return transformers, or say how to install it; torch and accelerate, for its Trainer, must be there too."""
    missing = [name for name in ("torch", "transformers", "accelerate") if find_spec(name) is None]
    if missing:
        raise ImportError(f"text models need {', '.join(missing)}: {install_line('text')}")
    import transformers

    return transformers


def resolve_encoder(model: str | os.PathLike[str] | None) -> str:
    """The folder or name behind the parameter `model`."""
    return os.fspath(minilm_folder() if model is None else model)


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
    """``loader.from_pretrained(source)`` from this disk; a ValueError that names `model` where that fails."""
    try:
        with quiet():
            return loader.from_pretrained(source, trust_remote_code=False, local_files_only=True, **options)
    except (ImportError, MemoryError):  # they say what to install, or what is short
        raise
    except Exception as error:  # broken files raise whatever the part of transformers that met them raises
        raise ValueError(
            f"model={source!r} cannot be loaded ({reason(error).strip()}): give a folder with a transformers model, or "
            "the name of one that was downloaded before (hf download NAME); nothing is downloaded here"
        ) from error


def chosen_device(device: str | None) -> str:
    """`device` as torch names it, if it is there; None takes CUDA where torch sees it."""
    import torch

    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    return str(backend_for(device).device)


@dataclass(frozen=True)
class TextNetwork:
    """A network on its device, its tokenizer and how many tokens of a text are read."""

    model: Any
    tokenizer: Any
    device: str
    max_length: Any

    def tokens(self, X: Any) -> Tokens:
        """Token numbers of texts; what is tokens already stays as it is."""
        return X if isinstance(X, Tokens) else tokenize(self.tokenizer, X, self.max_length)


def load_network(
    model: str | os.PathLike[str] | None, device: str | None, max_length: int, n_classes: int | None = None
) -> TextNetwork:
    """The network behind the parameter `model`; everything that can be wrong with it shows here.

    With `n_classes` the last layer is new, drawn by torch's generator, whatever the files hold. Without, it is the
    files' own, and they must be safetensors.
    """
    transformers = require_transformers()
    place = chosen_device(device)
    source = resolve_encoder(model)
    # first: what it says of a folder that holds no model is clear
    load_part(transformers.AutoConfig, source)
    tokenizer = load_part(transformers.AutoTokenizer, source)
    loader = transformers.AutoModelForSequenceClassification
    if n_classes is None:
        network = load_part(loader, source, use_safetensors=True)
    else:
        wanted = {"num_labels": n_classes, "problem_type": "single_label_classification"}
        network = load_part(loader, source, ignore_mismatched_sizes=True, **wanted)
        _renew_last_layer(network)
    _ensure_padding(network, tokenizer, source)
    most_tokens = min(max_length, readable_length(network))
    # Files may hold half precision; the optimiser needs float32 weights, and mixed precision rounds by itself.
    return TextNetwork(network.float().to(place), tokenizer, place, most_tokens)


def _renew_last_layer(network: Any) -> None:
    """Draw the layers above the encoder anew, whatever the files held: they are for other labels."""
    for part in network.children():
        for module in part.modules() if part is not network.base_model else ():
            for marked in (module, *module.parameters(recurse=False)):
                if hasattr(marked, "_is_hf_initialized"):  # transformers 5 leaves such weights alone
                    del marked._is_hf_initialized
            network._init_weights(module)


def _ensure_padding(network: Any, tokenizer: Any, source: str) -> None:
    """Models that write text often have no padding token, but classify batches only with one: their last token does."""
    if tokenizer.pad_token_id is None:
        if tokenizer.eos_token_id is None:
            raise ValueError(f"model={source!r} has neither a padding token nor an end-of-text token: set pad_token")
        tokenizer.pad_token = tokenizer.eos_token
    for config in (network.config, network.config.get_text_config()):
        if getattr(config, "pad_token_id", None) is None:
            config.pad_token_id = tokenizer.pad_token_id


def readable_length(network: Any) -> float:
    """Tokens of a text that a network can read; infinity where there is no limit."""
    for module in network.modules():
        table: Any = getattr(module, "position_embeddings", None)
        first = getattr(table, "padding_idx", None)
        # RoBERTa and models like it count places from after the padding token's number
        if first is not None:
            return int(table.num_embeddings) - first - 1
    return getattr(network.config, "max_position_embeddings", math.inf)
