"""Ideas that were tried and are not in the library: what else to suspect, and weights that make up for lost labels."""

from __future__ import annotations

import numpy as np


def scattered_suspects(shares: np.ndarray, near: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Labels (n,) for which both judges name the same other class, wherever they lie."""
    said = shares.argmax(axis=1)
    return (said != codes) & (near.argmax(axis=1) == said)


def confident_suspects(shares: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Labels (n,) that look more like another class than that class's own labels do on average.

    The rule of confident learning (Northcutt, Jiang and Chuang, 2021): a threshold per class, so that a class that
    has lost labels is not always outvoted.
    """
    sure, named = _confident(shares, codes)
    return sure & (named != codes)


def restoring_weights(shares: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """One over the share of its class's labels that seem to have been kept, (n,); at most ten."""
    sure, named = _confident(shares, codes)
    n_classes = shares.shape[1]
    joint = np.zeros((n_classes, n_classes))  # given, named
    np.add.at(joint, (codes[sure], named[sure]), 1.0)
    rows = joint.sum(axis=1, keepdims=True)
    joint *= np.bincount(codes, minlength=n_classes)[:, None] / np.where(rows > 0, rows, 1.0)
    named_mass = joint.sum(axis=0)
    kept = np.where(named_mass > 0, np.diag(joint) / np.where(named_mass > 0, named_mass, 1.0), 1.0)
    return (1.0 / np.maximum(kept, 0.1))[codes]


def _confident(shares: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    present = np.unique(codes)
    typical = np.array([shares[codes == code, code].mean() for code in present])
    sure = np.where(shares[:, present] >= typical, shares[:, present], -1.0)
    return sure.max(axis=1) >= 0, present[sure.argmax(axis=1)]
