"""Texts through a network: token numbers that lie on its device, and what it says of them.

Scores and embeddings in one pass, and the gradients in the input embeddings.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from floral_learn.neural.tokens import Tokens, length_batches

EMBED_TOKENS = {"cuda": 131_072, "cpu": 8_192}  # tokens of a forward pass without gradients


class TokenRows:
    """Token numbers and class numbers as tensors on one device; a batch is one indexing, cut to its longest row.

    `weight` (n,) are weights of the rows in the loss, with a mean of one; None is one for every row. `belief` (n, M) is
    what is believed of each row's class, where labels are in doubt.
    """

    def __init__(
        self,
        tokens: Tokens,
        codes: np.ndarray | None,
        device: str,
        weight: np.ndarray | None = None,
        belief: np.ndarray | None = None,
    ) -> None:
        self.lengths = np.asarray(tokens.lengths)
        self.ids = torch.as_tensor(np.ascontiguousarray(tokens.ids), device=device)
        self.sizes = torch.as_tensor(self.lengths, device=device)
        self.codes = None if codes is None else torch.as_tensor(np.asarray(codes, dtype=np.int64), device=device)
        self.weight = None if weight is None else torch.as_tensor(np.asarray(weight, dtype=np.float32), device=device)
        self.belief = None if belief is None else torch.as_tensor(np.asarray(belief, dtype=np.float32), device=device)
        self.places = torch.arange(self.ids.shape[1], device=device)

    def __len__(self) -> int:
        return len(self.lengths)

    def width(self, rows: np.ndarray, multiple: int = 8) -> int:
        """Tokens of the longest of `rows`, up to the next `multiple`: multiples of 8 suit matrix units."""
        return min(-(-int(self.lengths[rows].max()) // multiple) * multiple, self.ids.shape[1])

    def batch(self, picks: torch.Tensor, width: int) -> dict[str, torch.Tensor]:
        """Tokens up to `width`, mask and, where there are any, classes and weights of the rows `picks`."""
        found = {
            "input_ids": self.ids[picks, :width].long(),
            "attention_mask": (self.places[:width] < self.sizes[picks, None]).long(),
        }
        if self.codes is not None:
            found["labels"] = self.codes[picks]
        if self.weight is not None:
            found["row_weight"] = self.weight[picks]
        if self.belief is not None:
            found["belief"] = self.belief[picks]
        return found

    def __getitem__(self, rows: np.ndarray) -> dict[str, torch.Tensor]:
        """The batch of `rows`, as wide as the longest of them."""
        return self.batch(torch.as_tensor(rows, device=self.ids.device), self.width(rows))


def forward(
    model: Any, tokens: Tokens, device: str, embeddings: bool, pooling: str = "first"
) -> tuple[np.ndarray, np.ndarray | None]:
    """Logits (n, M) and, where asked for, last-layer embeddings (n, width); float32.

    `pooling` is "first" (the vector at the first token) or "mean" (the mean over a text's tokens, padding left out).
    """
    rows, kind = TokenRows(tokens, None, device), torch.device(device).type
    width = max(int(tokens.lengths.max()), 1)
    size = max(1, EMBED_TOKENS[kind] // width)
    places, logits, vectors = [], [], []
    model.eval()
    with torch.no_grad(), torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda"):
        for picks in length_batches(tokens, size):
            batch = rows[picks]
            output = model(**batch, output_hidden_states=embeddings)
            places.append(picks)
            logits.append(output.logits.float())
            if embeddings:
                last = output.hidden_states[-1].float()
                vectors.append(last[:, 0] if pooling == "first" else _mean(last, batch["attention_mask"]))
    back = np.argsort(np.concatenate(places))
    scores = torch.cat(logits).cpu().numpy()[back]
    return scores, torch.cat(vectors).cpu().numpy()[back] if embeddings else None


def _mean(vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    kept = mask[:, :, None].to(vectors.dtype)
    return (vectors * kept).sum(1) / kept.sum(1).clamp(min=1)


def input_gradients(model: Any, tokens: Tokens, codes: np.ndarray, device: str) -> tuple[np.ndarray, np.ndarray]:
    """|d loss_i / d e_i| (n,) with e_i the input embeddings of row i's tokens, and logits (n, M); float64.

    Rows do not see each other in evaluation mode, so the gradient of the summed loss is every row's own.
    """
    rows, kind = TokenRows(tokens, codes, device), torch.device(device).type
    size = max(1, EMBED_TOKENS[kind] // 4 // max(int(tokens.lengths.max()), 1))
    leaves: list[torch.Tensor] = []

    def as_leaf(table: Any, inputs: Any, vectors: torch.Tensor) -> torch.Tensor:
        leaves[:] = [vectors.detach().requires_grad_()]
        return leaves[0]

    trained = [(p, p.requires_grad) for p in model.parameters()]
    places, norms, logits = [], [], []
    model.eval()
    for parameter, _ in trained:
        parameter.requires_grad_(False)
    # The network reads token numbers, not vectors: models that write text find the last token by them.
    hook = model.get_input_embeddings().register_forward_hook(as_leaf)
    try:
        with torch.enable_grad(), torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda"):
            for picks in length_batches(tokens, size):
                batch = rows[picks]
                labels, ids, mask = batch["labels"], batch["input_ids"], batch["attention_mask"]
                scores = model(input_ids=ids, attention_mask=mask).logits.float()
                loss = torch.nn.functional.cross_entropy(scores, labels, reduction="sum")
                (gradient,) = torch.autograd.grad(loss, leaves)
                places.append(picks)
                norms.append((gradient.float() * mask[:, :, None]).flatten(1).norm(dim=1).double())
                logits.append(scores.detach().double())
    finally:
        hook.remove()
        for parameter, needed in trained:
            parameter.requires_grad_(needed)
    back = np.argsort(np.concatenate(places))
    return torch.cat(norms).cpu().numpy()[back], torch.cat(logits).cpu().numpy()[back]


@contextmanager
def own_randomness(seed: int, device: str) -> Iterator[None]:
    """Seeds of a training inside, the caller's random states again afterwards."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if device != "cpu" else []):
        torch.manual_seed(seed)
        yield
