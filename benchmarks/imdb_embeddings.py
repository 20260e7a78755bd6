"""Embed IMDB reviews once with the frozen MiniLM encoder, mean over tokens, for the arena's data set "imdb".

    python benchmarks/imdb_embeddings.py FOLDER [--reviews 3000]

Writes FOLDER/imdb-minilm.npz: X (n, 384) half precision, y in -1/+1; reviews drawn at random
from the official training split.
"""

from __future__ import annotations

import argparse
import io
import time
from pathlib import Path

import numpy as np

from floral_learn.datasets.files import find_file
from floral_learn.datasets.imdb import read
from floral_learn.files.atomic_files import write_atomically
from floral_learn.neural.encoders import resolve_encoder


def embed(texts: list[str], max_length: int = 128) -> np.ndarray:
    """Mean of the last layer over a text's tokens, (n, width)."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    source = resolve_encoder(None)
    tokenizer, model = AutoTokenizer.from_pretrained(source), AutoModel.from_pretrained(source).eval()
    out = np.zeros((len(texts), model.config.hidden_size), dtype=np.float32)
    started, done = time.perf_counter(), 0
    order = np.argsort([len(text) for text in texts])
    for start in range(0, len(order), 32):
        rows = order[start : start + 32]
        batch = tokenizer(
            [texts[i] for i in rows], padding=True, truncation=True, max_length=max_length, return_tensors="pt"
        )
        with torch.no_grad():
            states = model(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None]
        out[rows] = ((states * mask).sum(1) / mask.sum(1)).numpy()
        done += len(rows)
        if start % 320 == 0:
            print(f"{done} of {len(texts)} reviews, {time.perf_counter() - started:.0f} s", flush=True)
    return out


def main() -> None:
    """Read, draw, embed, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reviews", type=int, default=3000)
    given = parser.parse_args()
    rows = [r for r in read(find_file("imdb.jsonl.xz")) if r["split"] == "train"]
    chosen = np.random.default_rng(0).permutation(len(rows))[: given.reviews]
    X = embed([rows[i]["text"] for i in chosen])
    stream = io.BytesIO()
    y = np.array([1 if rows[i]["label"] == 1 else -1 for i in chosen], dtype=np.int8)
    np.savez_compressed(stream, X=X.astype(np.float16), y=y)
    print(write_atomically(given.folder / "imdb-minilm.npz", stream.getvalue()))


if __name__ == "__main__":
    main()
