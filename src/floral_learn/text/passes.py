"""Texts through a network: scores and embeddings in one pass, and the gradients in the input embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from floral_learn.text.tokens import Tokens, length_batches

EMBED_TOKENS = {"cuda": 131_072, "cpu": 8_192}  # tokens of a forward pass without gradients


def batch_of(tokens: Tokens, rows: np.ndarray, device: Any) -> dict[str, torch.Tensor]:
    """Token numbers and mask of some rows, cut to the longest of them."""
    lengths = tokens.lengths[rows]
    ids = torch.as_tensor(tokens.ids[rows, : int(lengths.max())], device=device).long()
    places, ends = torch.arange(ids.shape[1], device=device), torch.as_tensor(lengths, device=device)
    return {"input_ids": ids, "attention_mask": (places < ends[:, None]).long()}


def forward(
    model: Any, tokens: Tokens, device: str, embeddings: bool, pooling: str = "first"
) -> tuple[np.ndarray, np.ndarray | None]:
    """Logits (n, M) and, where asked for, last-layer embeddings (n, width); float32.

    `pooling` is "first" (the vector at the first token) or "mean" (the mean over a text's tokens, padding left out).
    """
    logits, vectors = [], []
    model.eval()
    with torch.no_grad(), _precision(device):
        batches = list(_batches(tokens, device, share=1))
        for rows in batches:
            batch = batch_of(tokens, rows, device)
            output = model(**batch, output_hidden_states=embeddings)
            logits.append(output.logits.float())
            if embeddings:
                last = output.hidden_states[-1].float()
                vectors.append(last[:, 0] if pooling == "first" else _mean(last, batch["attention_mask"]))
    back = np.argsort(np.concatenate(batches))
    scores = torch.cat(logits).cpu().numpy()[back]
    return scores, torch.cat(vectors).cpu().numpy()[back] if embeddings else None


def input_gradients(model: Any, tokens: Tokens, codes: np.ndarray, device: str) -> tuple[np.ndarray, np.ndarray]:
    """|d loss_i / d e_i| (n,) with e_i the input embeddings of row i's tokens, and logits (n, M); float64.

    Rows do not see each other in evaluation mode, so the gradient of the summed loss is every row's own.
    """
    leaves: list[torch.Tensor] = []

    def as_leaf(table: Any, inputs: Any, vectors: torch.Tensor) -> torch.Tensor:
        leaves[:] = [vectors.detach().requires_grad_()]
        return leaves[0]

    trained = [(p, p.requires_grad) for p in model.parameters()]
    norms, logits, batches = [], [], list(_batches(tokens, device, share=4))
    model.eval()
    for parameter, _ in trained:
        parameter.requires_grad_(False)
    # The network reads token numbers, not vectors: models that write text find the last token by them.
    hook = model.get_input_embeddings().register_forward_hook(as_leaf)
    try:
        with torch.enable_grad(), _precision(device):
            for rows in batches:
                batch = batch_of(tokens, rows, device)
                scores, labels = model(**batch).logits.float(), torch.as_tensor(codes[rows], device=device)
                loss = torch.nn.functional.cross_entropy(scores, labels, reduction="sum")
                (gradient,) = torch.autograd.grad(loss, leaves)
                norms.append((gradient.float() * batch["attention_mask"][:, :, None]).flatten(1).norm(dim=1).double())
                logits.append(scores.detach().double())
    finally:
        hook.remove()
        for parameter, needed in trained:
            parameter.requires_grad_(needed)
    back = np.argsort(np.concatenate(batches))
    return torch.cat(norms).cpu().numpy()[back], torch.cat(logits).cpu().numpy()[back]


def _batches(tokens: Tokens, device: str, share: int) -> Iterator[np.ndarray]:
    """Batches that hold one `share`-th of the tokens of a pass without gradients."""
    most = EMBED_TOKENS[torch.device(device).type] // share
    return length_batches(tokens, max(1, most // max(int(tokens.lengths.max()), 1)))


def _precision(device: str) -> Any:
    kind = torch.device(device).type
    return torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda")


def _mean(vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    kept = mask[:, :, None].to(vectors.dtype)
    return (vectors * kept).sum(1) / kept.sum(1).clamp(min=1)


@contextmanager
def own_randomness(seed: int, device: str) -> Iterator[None]:
    """Seeds of a training inside, the caller's random states again afterwards."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if device != "cpu" else []):
        torch.manual_seed(seed)
        yield
