"""Embed IMDB reviews once with the frozen MiniLM encoder, mean over tokens, for the arena's data set "imdb".

    python benchmarks/imdb_embeddings.py FOLDER [--reviews 3000]

Writes FOLDER/imdb-minilm.npz: X (n, 384) half precision, y in -1/+1; reviews drawn at random
from the official training split.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import numpy as np

from floral_bench.datasets.imdb import read
from floral_learn import TextClassifier
from floral_learn.base.files import write_atomically
from floral_learn.datasets.files import find_file


def main() -> None:
    """Read, draw, embed, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reviews", type=int, default=3000)
    given = parser.parse_args()
    rows = [r for r in read(find_file("imdb.jsonl.xz")) if r["split"] == "train"]
    chosen = np.random.default_rng(0).permutation(len(rows))[: given.reviews]
    y = np.array([1 if rows[i]["label"] == 1 else -1 for i in chosen], dtype=np.int8)
    encoder = TextClassifier(max_length=128, pooling="mean").freeze(np.unique(y))
    X = encoder.embed([rows[i]["text"] for i in chosen])
    stream = io.BytesIO()
    np.savez_compressed(stream, X=X.astype(np.float16), y=y)
    print(write_atomically(given.folder / "imdb-minilm.npz", stream.getvalue()))


if __name__ == "__main__":
    main()
