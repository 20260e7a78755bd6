"""Texts and pictures as numbers by frozen networks whose weights come in packages: nothing is downloaded.

>>> from floral_learn.encoders import TextEncoder
>>> texts = ["a fine film", "a fine cast", "a dull plot", "a dull film"]
>>> TextEncoder("tfidf").fit_transform(texts).shape
(4, 2)
"""

from typing import TYPE_CHECKING

from floral_learn.base import on_first_use

if TYPE_CHECKING:  # type checkers and editors do not follow names that load on first use
    from .image import ImageEncoder as ImageEncoder
    from .pictures import thumbnail as thumbnail
    from .rows import encoder_for as encoder_for
    from .text import TextEncoder as TextEncoder

# public name -> module of this room that holds it
_PUBLIC = {
    "ImageEncoder": "image",
    "TextEncoder": "text",
    "encoder_for": "rows",
    "thumbnail": "pictures",
}

__all__ = list(_PUBLIC)
__getattr__ = on_first_use(__name__, _PUBLIC)
