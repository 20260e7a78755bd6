"""Texts and labels in, a fine-tuned transformer out (needs torch and transformers, the extra [text])."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from floral_learn.base import on_first_use
from floral_learn.base.extras import install_line

if find_spec("torch") is None:  # once for the whole room: every file of it imports torch
    raise ImportError(f"networks need torch: {install_line('torch')}")

if TYPE_CHECKING:  # type checkers and editors do not follow names that load on first use
    from .classifier import TextClassifier as TextClassifier

# public name -> module of this room that holds it
_PUBLIC = {"TextClassifier": "classifier"}

__all__ = list(_PUBLIC)
__getattr__ = on_first_use(__name__, _PUBLIC)
