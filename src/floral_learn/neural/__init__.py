"""FLORAL as the head of a network or a transformer (needs torch).

The public names load on first use: text models need transformers, networks only torch.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from floral_learn.base.extras import install_line

if find_spec("torch") is None:  # once for the whole room: every file of it imports torch
    raise ImportError(f"networks need torch: {install_line('torch')}")

# public name -> module of this room that holds it
_PUBLIC = {
    "FloralHead": "head",
    "NeuralFloralClassifier": "floral_net",
    "TextClassifier": "text",
    "TextFloralClassifier": "text_floral",
    "layer_features": "head_features",
}

__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module 'floral_learn.neural' has no attribute {name!r}")
