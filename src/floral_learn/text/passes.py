"""Texts through a network: scores and embeddings in one pass, and the gradients in the input embeddings."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from floral_learn.text.tokens import Tokens

EMBED_TOKENS = {"cuda": 131_072, "cpu": 8_192}  # tokens of a forward pass without gradients


def batch_of(tokens: Tokens, rows: np.ndarray, device: Any) -> dict[str, torch.Tensor]:
    """Token numbers and mask of some rows, cut to the longest of them."""
    lengths = tokens.lengths[rows]
    ids = torch.as_tensor(tokens.ids[rows, : int(lengths.max())], device=device).long()
    places, ends = torch.arange(ids.shape[1], device=device), torch.as_tensor(lengths, device=device)
    return {"input_ids": ids, "attention_mask": (places < ends[:, None]).long()}


def forward(model: Any, tokens: Tokens, device: str, pooling: str = "first") -> tuple[np.ndarray, np.ndarray]:
    """Logits (n, M) and last-layer embeddings (n, width); float32.

    `pooling` is "first" (the vector at the first token) or "mean" (the mean over a text's tokens, padding left out).
    """
    logits, vectors = [], []
    model.eval()
    with torch.no_grad(), _precision(device):
        batches = _batches(tokens, device)
        for rows in batches:
            batch = batch_of(tokens, rows, device)
            output = model(**batch, output_hidden_states=True)
            logits.append(output.logits.float())
            last = output.hidden_states[-1].float()
            if pooling == "first":
                vectors.append(last[:, 0])
            else:
                kept = batch["attention_mask"][:, :, None].float()
                vectors.append((last * kept).sum(1) / kept.sum(1).clamp(min=1))
    back = np.argsort(np.concatenate(batches))
    return torch.cat(logits).cpu().numpy()[back], torch.cat(vectors).cpu().numpy()[back]


def input_gradients(model: Any, tokens: Tokens, codes: np.ndarray, device: str) -> tuple[np.ndarray, np.ndarray]:
    """|d loss_i / d e_i| (n,) with e_i the input embeddings of row i's tokens, and logits (n, M); float64.

    Rows do not see each other in evaluation mode, so the gradient of the summed loss is every row's own.
    """
    leaves: list[torch.Tensor] = []

    def as_leaf(table: Any, inputs: Any, vectors: torch.Tensor) -> torch.Tensor:
        leaves[:] = [vectors.detach().requires_grad_()]
        return leaves[0]

    norms, logits, batches = [], [], _batches(tokens, device, share=4)
    model.eval()
    # The network reads token numbers, not vectors: models that write text find the last token by them.
    hook = model.get_input_embeddings().register_forward_hook(as_leaf)
    try:
        with torch.enable_grad(), _precision(device):
            for rows in batches:
                batch = batch_of(tokens, rows, device)
                scores, labels = model(**batch).logits.float(), torch.as_tensor(codes[rows], device=device)
                loss = torch.nn.functional.cross_entropy(scores, labels, reduction="sum")
                (gradient,) = torch.autograd.grad(loss, leaves)
                kept = gradient.float() * batch["attention_mask"][:, :, None]
                norms.append(kept.flatten(1).norm(dim=1).double())
                logits.append(scores.detach().double())
    finally:
        hook.remove()
    back = np.argsort(np.concatenate(batches))
    return torch.cat(norms).cpu().numpy()[back], torch.cat(logits).cpu().numpy()[back]


def _batches(tokens: Tokens, device: str, share: int = 1) -> list[np.ndarray]:
    """Rows in batches of about the same length, each with one `share`-th of the tokens of a pass without gradients.

    Longest first: little padding, and the memory that the first batch takes is the most that will be needed.
    """
    most = EMBED_TOKENS["cuda" if torch.device(device).type == "cuda" else "cpu"] // share
    size = max(1, most // max(int(tokens.lengths.max()), 1))
    order = np.argsort(-tokens.lengths, kind="stable")
    return [order[start : start + size] for start in range(0, len(order), size)]


def _precision(device: str) -> Any:
    kind = torch.device(device).type
    return torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda")


@contextmanager
def own_randomness(seed: int, device: str) -> Iterator[None]:
    """Every generator seeded by `seed` inside, or by the Trainer; the caller's random states again afterwards."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if device != "cpu" else []):
            torch.manual_seed(seed)
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
