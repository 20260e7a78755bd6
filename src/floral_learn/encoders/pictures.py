"""Pictures as users have them, files, bytes, pillow images or arrays, as upright RGB pixels."""

from __future__ import annotations

import hashlib
import os
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from floral_learn.base.extras import install_line
from floral_learn.encoders.embedding import Unreadable

#: Names of files that are read as pictures.
PICTURE_NAMES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")


def require_pillow() -> Any:
    """Pillow's module Image, or how to install it."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(f"pictures need pillow: {install_line('image')}") from None
    return Image


def picture_content(picture: Any, folder: Path | None = None) -> Any:
    """The bytes of a file (its path taken from `folder`), or the picture itself where it is in memory."""
    if isinstance(picture, str | os.PathLike):
        path = Path(picture) if folder is None else folder / picture
        try:
            content = path.read_bytes()
        except (OSError, ValueError) as error:  # ValueError: a NUL inside the path
            raise Unreadable(f"cannot be opened ({getattr(error, 'strerror', None) or error})") from None
        if not content:
            raise Unreadable("is empty")
        return content
    return picture


def picture_digest(content: Any) -> str:
    """What names a picture's content: the digest of its file, or of its pixels."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    pixels = np.asarray(content)
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3):
        raise Unreadable(f"is no picture: {type(content).__name__} of {pixels.dtype}, shape {pixels.shape}")
    mode = getattr(content, "mode", "")
    return hashlib.sha256(f"{mode}{pixels.shape}".encode() + pixels.tobytes()).hexdigest()


def upright(content: Any, about: int | None = None) -> tuple[Any, tuple[int, int]]:
    """A picture in RGB, turned as its EXIF data say, over white where it is transparent; and its size as stored.

    Of a moving picture the first frame. With `about`, a JPEG may come smaller, but not below that many pixels a side.
    """
    Image = require_pillow()
    from PIL import ImageOps

    try:
        image = Image.open(BytesIO(content)) if isinstance(content, bytes) else content
        if not hasattr(image, "convert"):
            image = Image.fromarray(np.squeeze(image))
        size = image.size  # as stored: `draft` and EXIF change it
        if about is not None:
            image.draft("RGB", (about, about))
        image = ImageOps.exif_transpose(image)
        return _in_rgb(image), size
    except Image.DecompressionBombError:
        most = 2 * Image.MAX_IMAGE_PIXELS
        raise Unreadable(f"has more than {most:,} pixels, pillow's limit (twice PIL.Image.MAX_IMAGE_PIXELS)") from None
    except Exception as error:  # pillow's readers raise whatever a damaged file leads them to
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        if isinstance(error, Image.UnidentifiedImageError):
            first = "no kind of picture that pillow knows"
        raise Unreadable(f"cannot be read as a picture ({first})") from None


def _in_rgb(image: Any) -> Any:
    """RGB of any mode: 16 bits become 8, and what is transparent shows white."""
    from PIL import Image

    if image.mode.startswith("I") or image.mode == "F":
        values = np.asarray(image, dtype=np.float64)
        # a 16-bit file that holds 8-bit values is not black
        peak = 255.0 if values.max(initial=0) < 256 else 65535.0
        image = Image.fromarray((np.clip(values / peak, 0, 1) * 255).astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        ground = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(ground, image)
    return image.convert("RGB")


def thumbnail(picture: Any, side: int = 160, folder: Path | None = None) -> bytes:
    """A picture as the bytes of a small JPEG, at most `side` pixels wide and high; `Unreadable` where it is damaged."""
    image, _ = upright(picture_content(picture, folder), side)
    image.thumbnail((side, side))
    stream = BytesIO()
    image.save(stream, "JPEG", quality=80)
    return stream.getvalue()
