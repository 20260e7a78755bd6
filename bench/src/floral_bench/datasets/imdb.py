"""IMDB: 50,000 film reviews with their sentiment, the paper's text data set."""

import hashlib
import json
import lzma
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from floral_bench.datasets.download import find_or_download
from floral_learn.base.extras import install_line
from floral_learn.base.validation import generator
from floral_learn.datasets.dataset import Dataset
from floral_learn.datasets.files import DataNotFoundError

FILE = "imdb.jsonl.xz"
# SHA-256 over the sorted digests of "split, label, text" with blanks made single: the same reviews in any order
CONTENT_SHA256 = "8889cf606317479865f88f97903cd2ec8cd3b51e944ee9d3b6e03d5053d9e4a2"
_HUB = "https://huggingface.co/datasets/stanfordnlp/imdb/resolve/main/plain_text/{}-00000-of-00001.parquet"


def load_imdb(
    *,
    n_train: int = 20_000,
    n_val: int = 5_000,
    n_test: int = 25_000,
    random_state: Any = 0,
    data_home: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Return reviews as arrays of text (n,), labels -1 (negative) and +1 (positive).

    Training and validation rows are drawn by ``random_state`` from the 25,000 official training reviews, test rows from
    the official test reviews (all of them by default). 123 texts occur in both official parts.

    Parameters
    ----------
    n_train, n_val, n_test : int, default=20,000, 5,000, 25,000
        Reviews of each part.
    random_state : int, RandomState, Generator or None, default=0
        Draws the reviews.
    data_home : path, optional
        Where ``imdb.jsonl.xz`` is looked for first; then ``$FLORAL_DATA``, the user's cache, and a public download.

    Returns
    -------
    Dataset
        The three parts.

    Examples
    --------
    Reading the file takes seconds, so this example is not run:

    >>> from floral_bench.datasets import load_imdb
    >>> reviews = load_imdb(n_train=200, n_val=0, n_test=200)  # doctest: +SKIP
    >>> reviews.X_train[0][:40]  # doctest: +SKIP
    """
    path = find_or_download(
        FILE,
        download_hub,
        data_home=data_home,
        hint=f"Without a network, put {FILE} into a folder and pass it as data_home or set FLORAL_DATA.",
    )
    reviews = list(read(path))
    rng = generator(random_state)
    parts = {}
    for split, sizes in {"train": (n_val, n_train), "test": (n_test,)}.items():
        pool = rng.permutation([i for i, review in enumerate(reviews) if review["split"] == split])
        if min(sizes) < 0 or sizes[-1] < 1 or sum(sizes) > len(pool):
            raise ValueError(
                f"n_train={n_train}, n_val={n_val}, n_test={n_test} do not fit: there are 25,000 training "
                "and 25,000 test reviews"
            )
        parts[split] = np.split(pool[: sum(sizes)], np.cumsum(sizes)[:-1])

    def texts(rows: np.ndarray) -> np.ndarray:
        return np.array([reviews[i]["text"] for i in rows], dtype=object)

    def labels(rows: np.ndarray) -> np.ndarray:
        return np.array([1 if reviews[i]["label"] else -1 for i in rows], dtype=np.intp)

    (val, train), (test,) = parts["train"], parts["test"]
    return Dataset(
        name="imdb",
        X_train=texts(train),
        y_train=labels(train),
        X_val=texts(val),
        y_val=labels(val),
        X_test=texts(test),
        y_test=labels(test),
        y_train_clean=labels(train),
        info={"source": str(path), "random_state": random_state},
    )


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the reviews (text, label, split) of an ``imdb.jsonl.xz``, checked against the known data."""
    digests, reviews = [], []
    try:
        with lzma.open(path, "rt", encoding="utf-8") as stream:
            for line in stream:
                review = json.loads(line)
                reviews.append({name: review[name] for name in ("text", "label", "split")})
                digests.append(digest(**reviews[-1]))
    except (lzma.LZMAError, EOFError, ValueError, KeyError) as error:
        raise ValueError(f"{path} is not a file of IMDB reviews ({error}); remove it and load again") from None
    if hashlib.sha256(b"".join(sorted(digests))).hexdigest() != CONTENT_SHA256:
        raise ValueError(f"{path} does not hold the known IMDB reviews; remove the file and load again")
    yield from reviews


def digest(text: str, label: int, split: str) -> bytes:
    """Return the SHA-256 of one review."""
    return hashlib.sha256(f"{split}\t{label}\t{' '.join(text.split())}".encode()).digest()


def download_hub(path: Path) -> None:
    """Fetch both official parts from the Hugging Face hub."""
    import io
    from urllib.request import urlopen

    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise DataNotFoundError(f"reading the download needs pyarrow: {install_line('cli')}") from error
    with lzma.open(path, "wt", encoding="utf-8") as stream:
        for split in ("train", "test"):
            with urlopen(_HUB.format(split), timeout=60) as answer:
                table = pq.read_table(io.BytesIO(answer.read()))
            for row in table.to_pylist():
                stream.write(json.dumps({"text": row["text"], "label": row["label"], "split": split}) + "\n")
