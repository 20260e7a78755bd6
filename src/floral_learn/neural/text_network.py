"""A pre-trained transformer made ready for labels: a new last layer, a padding token, the length that it can read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from floral_learn.neural.encoders import (
    Tokens,
    chosen_device,
    load_part,
    require_transformers,
    resolve_encoder,
    tokenize,
)
from floral_learn.neural.token_ids import TokenIds

DEFAULT_LENGTH = 256  # tokens that max_length="auto" reads where the model can


@dataclass(frozen=True)
class TextNetwork:
    """A network on its device, its tokenizer and how many tokens of a text are read."""

    model: Any
    tokenizer: Any
    device: str
    max_length: int

    def tokens(self, X: Any) -> Tokens:
        """Token numbers of texts; what is tokens already stays as it is, token numbers of the user's are checked."""
        if isinstance(X, TokenIds):
            pad = self.tokenizer.pad_token_id
            return X.tokens(
                0 if pad is None else pad, int(self.model.get_input_embeddings().num_embeddings), self.max_length
            )
        return X if isinstance(X, Tokens) else tokenize(self.tokenizer, X, self.max_length)


def load_network(
    model: str | os.PathLike[str] | None,
    device: str | None,
    max_length: int | str,
    *,
    n_classes: int | None = None,
    seed: int = 0,
) -> TextNetwork:
    """The network behind the parameter `model`; everything that can be wrong with it shows here.

    With `n_classes` the last layer is new, drawn from `seed`, whatever the files hold. Without, it is the files' own,
    and they must be safetensors.
    """
    transformers = require_transformers()
    place = chosen_device(device)
    source = resolve_encoder(model)
    load_part(transformers.AutoConfig, source)  # first: what it says of a folder that holds no model is clear
    tokenizer = load_part(transformers.AutoTokenizer, source)
    loader = transformers.AutoModelForSequenceClassification
    if n_classes is None:
        network = load_part(loader, source, use_safetensors=True)
    else:
        from floral_learn.neural.text_rows import own_randomness

        with own_randomness(seed, place):
            network, found = load_part(
                loader,
                source,
                num_labels=n_classes,
                problem_type="single_label_classification",
                ignore_mismatched_sizes=True,
                output_loading_info=True,
            )
            _renew_last_layer(network, found)
    _ensure_padding(network, tokenizer, source)
    # Files may hold half precision; the optimiser needs float32 weights, and mixed precision rounds by itself.
    return TextNetwork(network.float().to(place), tokenizer, place, _length_to_read(network, max_length))


def _renew_last_layer(network: Any, found: dict[str, Any]) -> None:
    """Draw the layers above the encoder again where any of them came from the files: a classifier for other labels."""
    mismatched = {entry if isinstance(entry, str) else entry[0] for entry in found["mismatched_keys"]}
    drawn = mismatched | set(found["missing_keys"])
    above = [(name, part) for name, part in network.named_children() if part is not network.base_model]
    if all(f"{name}.{key}" in drawn for name, part in above for key in part.state_dict()):
        return
    for _, part in above:
        for module in part.modules():
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


def readable_length(network: Any) -> int | None:
    """Tokens of a text that a network can read; None where there is no limit."""
    for module in network.modules():
        table: Any = getattr(module, "position_embeddings", None)
        first = getattr(table, "padding_idx", None)
        if first is not None:  # RoBERTa and models like it count places from after the padding token's number
            return int(table.num_embeddings) - first - 1
    return getattr(network.config, "max_position_embeddings", None)


def _length_to_read(network: Any, max_length: int | str) -> int:
    limit = readable_length(network)
    if isinstance(max_length, str):
        return DEFAULT_LENGTH if limit is None else min(DEFAULT_LENGTH, limit)
    if limit is not None and max_length > limit:
        raise ValueError(f"max_length={max_length} is over the {limit} tokens that this model can read")
    return int(max_length)
