"""Input gradients of any torch module; torch is imported only where a module is given."""

import sys
from typing import Any

import numpy as np

from floral_learn.base.extras import install_line


def is_module(candidate: Any) -> bool:
    """Whether ``candidate`` is a torch module, without importing torch for those who have none."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(candidate, torch.nn.Module)


def require_torch() -> Any:
    """Return torch, or say how to install it."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"gradients of a network need torch: {install_line('torch')}") from error
    return torch


def module_gradients(
    module: Any, X: np.ndarray, codes: np.ndarray, n_classes: int, batch_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return |d loss_i / d x_i| (n,) and logits (n, M) of ``module`` at rows ``X`` (n, ...) with labels ``codes``.

    The loss is cross entropy; one logit means the log-odds of class 1. Parameters, their gradients and the
    training mode of the module are left as they were.
    """
    torch = require_torch()
    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size!r} must be at least 1")
    reference = next(module.parameters(), None)
    device = reference.device if reference is not None else torch.device("cpu")
    dtype = reference.dtype if reference is not None else torch.get_default_dtype()
    training = module.training
    norms, logits = [], []
    module.eval()
    try:
        for start in range(0, len(X), batch_size):
            rows = torch.tensor(X[start : start + batch_size], dtype=dtype, device=device).requires_grad_()
            labels = torch.as_tensor(codes[start : start + batch_size], device=device)
            with torch.enable_grad():
                scores = _two_columns(module(rows), n_classes, len(rows))
                # rows do not see each other in eval mode: the gradient of the sum is every row's own
                loss = torch.nn.functional.cross_entropy(scores, labels, reduction="sum")
                (gradient,) = torch.autograd.grad(loss, rows)
            norms.append(gradient.flatten(1).norm(dim=1).detach().double().cpu().numpy())
            logits.append(scores.detach().double().cpu().numpy())
    finally:
        module.train(training)
    return np.concatenate(norms), np.concatenate(logits)


def _two_columns(output: Any, n_classes: int, n: int) -> Any:
    """Return (n, M) logits; a single log-odds column becomes (0, f)."""
    if output.ndim == 1 or (output.ndim == 2 and output.shape[1] == 1):
        odds = output.reshape(-1)
        output = odds.new_zeros(len(odds), 2).index_copy(1, odds.new_ones(1).long(), odds[:, None])
    if tuple(output.shape) != (n, n_classes):
        raise ValueError(f"the module gives logits of shape {tuple(output.shape)}, expected ({n}, {n_classes})")
    return output
