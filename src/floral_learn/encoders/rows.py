"""Which encoder rows need: none where they are numbers or a table, else that of texts or of pictures."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from floral_learn.encoders.pictures import PICTURE_NAMES


def encoder_for(X: Any, text_encoder: str = "auto") -> Any:
    """A new `TextEncoder` or `ImageEncoder` where X is a list or Series of texts or pictures; None for other rows.

    Texts that all end as picture files do are paths. `text_encoder` is the `TextEncoder`'s method.

    Examples
    --------
    >>> from floral_learn.encoders import encoder_for
    >>> encoder_for(["cats/1.png", "dogs/2.jpg"])
    ImageEncoder()
    >>> encoder_for(["a fine film", "a dull film"])
    TextEncoder()
    >>> encoder_for([[1.0, 2.0]]) is None
    True
    """
    from floral_learn.encoders.image import ImageEncoder
    from floral_learn.encoders.text import TextEncoder

    if getattr(X, "ndim", None) == 4:
        return ImageEncoder()
    if getattr(X, "ndim", 1) != 1 or hasattr(X, "columns") or isinstance(X, str) or not hasattr(X, "__len__"):
        return None
    items = list(X)
    texts = [item for item in items if isinstance(item, str)]
    if len(texts) == len(items) > 0:
        named = all(text.lower().endswith(PICTURE_NAMES) for text in texts)
        return ImageEncoder() if named else TextEncoder(text_encoder)
    return ImageEncoder() if items and all(map(_is_picture, items)) else None


def _is_picture(item: Any) -> bool:
    """Whether this is a path, a pillow image or the pixels of one."""
    in_memory = hasattr(item, "convert") or (getattr(item, "dtype", None) == np.uint8 and item.ndim in (2, 3))
    return isinstance(item, os.PathLike) or in_memory
