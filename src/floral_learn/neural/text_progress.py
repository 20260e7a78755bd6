"""How a fine-tune is doing: scores on held-out texts after an epoch, and lines on stderr."""

from __future__ import annotations

import sys
import time

import numpy as np


def held_out_scores(logits: np.ndarray, codes: np.ndarray) -> dict[str, float]:
    """Accuracy and mean hinge loss, max(0, 1 - (own logit - best other logit))."""
    rows = np.arange(len(codes))
    others = logits.astype(np.float64)
    own = others[rows, codes].copy()
    others[rows, codes] = -np.inf
    margin = own - others.max(axis=1)
    return {
        "accuracy": float((logits.argmax(1) == codes).mean()),
        "hinge_loss": float(np.maximum(0, 1 - margin).mean()),
    }


class EpochReport:
    """Lines on stderr: what ``verbose=1`` shows."""

    def __init__(self, epochs: int) -> None:
        self.epochs, self.began = epochs, time.monotonic()

    def step(self, step: int, of: int) -> None:
        """A step of all."""
        every = max(1, of // (10 * self.epochs))
        if step % every == 0:
            left = (time.monotonic() - self.began) / step * (of - step)
            sys.stderr.write(f"[text] step {step}/{of}  {left:.1f} s left\n")

    def epoch(self, epoch: int, values: dict[str, float]) -> None:
        """An epoch of all."""
        numbers = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
        sys.stderr.write(f"[text] epoch {epoch}/{self.epochs}  {numbers}\n")
