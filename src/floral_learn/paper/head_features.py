"""Features of a trained network: what one of its layers gives, read by a hook, in batches, on the network's device."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from floral_learn.paper.mlp_network import MLP, batches_of, evaluating, in_64_bits, place_of
from floral_learn.paper.torch_data import rows_only

_NAMES = 20  # names listed in an error
# Hooks see every forward pass of a module, and threads (clones in a search, say) may share one.
_ONE_READER = threading.RLock()


def layer_features(module: torch.nn.Module, X: np.ndarray, layer: str | None = None, batch_size: int = 256) -> Any:
    """Features (n, width) of rows from any network, to review, audit or classify: 64-bit floats.

    Parameters
    ----------
    module : torch.nn.Module
        Runs in evaluation mode on the device where it lies, and is left as it was. A torchvision model, say.
    X : array of shape (n, ...), torch Dataset or DataLoader
        Images are (n, channels, height, width). Labels of a data set have no say.
    layer : str or None, default=None
        The layer whose output is the features; "output" is what the module itself gives, None what goes into its last
        linear layer. More axes than two are flattened.
    batch_size : int, default=256
        Rows of a forward pass.

    Returns
    -------
    ndarray of shape (n, width)

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from floral_learn.paper import layer_features
    >>> encoder = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    >>> layer_features(encoder, np.zeros((5, 3, 8, 8)), layer="output").shape
    (5, 4)
    """
    X = rows_only(X)
    with _ONE_READER:
        if isinstance(module, MLP):
            module = in_64_bits(module)  # small: a row has the same features alone and in any batch
        device, dtype = place_of(module)
        parts = find_layers(module, layer)
        caught: list[Any] = []
        if layer is None:  # the last one to be called, which need not be the last one to be defined
            hooks = [part.register_forward_pre_hook(lambda _, given: caught.append(given[0])) for part in parts]
        else:
            hooks = [part.register_forward_hook(lambda _, given, output: caught.append(output)) for part in parts]
        found = []
        try:
            with evaluating(module), torch.no_grad():
                for rows in batches_of(X, batch_size, device, dtype):
                    caught.clear()
                    _run(module, rows)
                    if not caught:
                        raise ValueError(f"layer={layer!r} takes no part in the forward pass of the module")
                    found.append(_matrix(caught[-1], layer, len(rows)))
        finally:
            for hook in hooks:
                hook.remove()
    return np.concatenate(found)


def float_types(X: Any) -> list[Any]:
    """Types that rows may have, the one that others are turned into first: pixels of images are many, and small."""
    axes = X.ndim if hasattr(X, "ndim") else _axes(X)
    return [np.float32, np.float64] if axes > 2 else [np.float64, np.float32]


def _axes(X: Any) -> int:
    """Axes of nested lists; what holds no array is for others to refuse."""
    try:
        return int(np.asarray(X).ndim)
    except ValueError:
        return 2


def find_layers(module: Any, layer: str | None) -> Sequence[torch.nn.Module]:
    """The part of `module` with a name, or all its linear layers; a ValueError says what there is."""
    if not isinstance(module, torch.nn.Module):
        raise ValueError(f"module must be a torch.nn.Module, got {type(module).__name__}")
    parts = dict(module.named_modules())
    if layer == "output" and layer not in parts:
        return [module]
    if layer is not None:
        if layer not in parts or layer == "":
            known = [name for name in parts if name]
            more = f" and {len(known) - _NAMES} more" if len(known) > _NAMES else ""
            raise ValueError(f"layer={layer!r} is not a layer of the module; it has: {', '.join(known[:_NAMES])}{more}")
        return [parts[layer]]
    linear = [part for part in parts.values() if isinstance(part, torch.nn.Linear)]
    if not linear:
        raise ValueError(
            'the module has no Linear layer, whose input would be the features: use layer="output" for what the '
            "module itself gives, or name a layer"
        )
    return linear


def check_rows(module: torch.nn.Module, X: np.ndarray) -> torch.Tensor:
    """What `module` gives for the first row; a ValueError where it does not take rows of this shape."""
    device, dtype = place_of(module)
    with evaluating(module), torch.no_grad():
        return _run(module, next(batches_of(X[:1], 1, device, dtype)))


def _run(module: torch.nn.Module, rows: torch.Tensor) -> Any:
    try:
        return module(rows)
    except torch.cuda.OutOfMemoryError:
        raise
    except (RuntimeError, ValueError, IndexError) as error:
        shape, hint = tuple(rows.shape[1:]), ""
        if len(shape) == 3 and shape[2] in (1, 3, 4) and shape[0] not in (1, 3, 4):
            hint = " (torch wants channels first: X.transpose(0, 3, 1, 2))"
        raise ValueError(
            f"the module does not take rows of shape {shape}{hint}: {str(error).splitlines()[0]}"
        ) from error


def _matrix(value: Any, layer: str | None, n: int) -> np.ndarray:
    while isinstance(value, tuple | list) and value:
        value = value[0]
    if not isinstance(value, torch.Tensor) or value.ndim < 1 or len(value) != n:
        raise ValueError(f"layer={layer!r} gives no tensor with one row a sample")
    return value.reshape(n, -1).double().cpu().numpy()
