"""Several classes as pairs: a game of two classes for each, all of them columns of one batch.

The game of a pair has the rows of its two classes only. They stand below one another, the shorter games filled up with
rows whose cap is 0 (`Pairs.rows` is -1 there); `PairedGram` multiplies each column with the kernel of its own rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from floral_learn.game.arrays import FEW_COLUMNS, NUMPY, Array, NumpyBackend
from floral_learn.game.gram import MAX_BYTES, DenseGram, Gram, format_bytes
from floral_learn.game.low_rank import LowRankGram


@dataclass(frozen=True)
class Pairs:
    """Which rows play in which game.

    Attributes
    ----------
    classes : int ndarray of shape (P, 2)
        Class numbers a < b; a is label 0 of the pair and b label 1.
    rows : int ndarray of shape (m, P)
        Row numbers, -1 where a game has fewer rows than the largest.
    n : int
        Rows of all classes.
    """

    classes: np.ndarray
    rows: np.ndarray
    n: int

    @classmethod
    def of(cls, labels: np.ndarray, n_classes: int) -> Pairs:
        """All pairs of classes."""
        classes, n = np.array(list(combinations(range(n_classes), 2))), len(labels)
        by_class = [np.flatnonzero(labels == c) for c in range(n_classes)]
        own = [np.concatenate([by_class[a], by_class[b]]) for a, b in classes]
        rows = np.full((max(map(len, own)), len(classes)), -1)
        for p, some in enumerate(own):
            rows[: len(some), p] = some
        return cls(classes, rows, n)

    @property
    def member(self) -> np.ndarray:
        """(m, P), false in the places that are filled up."""
        return self.rows >= 0

    def counts(self) -> np.ndarray:
        """Rows of each class, (M,), for compact pairs: those of class a stand above those of class b."""
        sizes = self.member.sum(axis=0)
        n_classes = int(self.classes.max()) + 1
        total = np.array([sizes[(self.classes == c).any(axis=1)].sum() for c in range(n_classes)])
        # The pairs of class c hold its own rows M - 1 times and those of all others once.
        return (total - self.n) // max(n_classes - 2, 1)

    def gather(self, values: np.ndarray, fill: Any) -> np.ndarray:
        """`values` (n,) of the rows of each game, (m, P); `fill` in the other places."""
        return np.where(self.member, values[self.rows.clip(0)], fill)

    def labels(self, labels: np.ndarray) -> np.ndarray:
        """0 for class a and 1 for class b of each pair, (m, P)."""
        return (self.gather(labels, -1) == self.classes[:, 1]).astype(np.int64)

    def spread(self, columns: np.ndarray) -> np.ndarray:
        """Columns (m, P) of the games as columns (n, P) of all rows, zero where a row does not play."""
        out = np.zeros((self.n, columns.shape[1]), dtype=columns.dtype)
        game = np.broadcast_to(np.arange(columns.shape[1]), columns.shape)
        out[self.rows[self.member], game[self.member]] = columns[self.member]
        return out


def vote(scores: np.ndarray, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """Scores of all classes (m, M) from those of their pairs (m, P): votes, equal ones ordered by how sure they are.

    Each pair votes for one of its two classes; the sum of a class's scores, squashed below a third of a vote either
    way, decides among those with equal votes. :class:`sklearn.svm.SVC` calls this decision_function_shape="ovr".
    """
    votes, sure = np.zeros((len(scores), n_classes)), np.zeros((len(scores), n_classes))
    for column, (a, b) in zip(scores.T, classes):
        votes[:, b] += column > 0
        votes[:, a] += column <= 0
        sure[:, b] += column
        sure[:, a] -= column
    return votes + sure / (3 * (np.abs(sure) + 1))


@dataclass(frozen=True)
class _ClassBlock:
    """The rows of F of one class, and where this class stands in the columns of its pairs."""

    turned: Array  # F' of these rows, (rank, n_c)
    # (n_c, rank): a view of `turned`, which a cache then holds once, or a copy where columns are many
    factor: Array
    pairs: np.ndarray  # (M - 1,), the pairs that the class is in
    places: np.ndarray  # ((M - 1) * n_c,), where their rows stand when columns lie one after the other

    @classmethod
    def of(cls, base: LowRankGram, pairs: Pairs, c: int) -> _ClassBlock:
        backend, m = base.backend, len(pairs.rows)
        own = np.flatnonzero((pairs.classes == c).any(axis=1))
        other = np.where(pairs.classes[own, 0] == c, pairs.classes[own, 1], pairs.classes[own, 0])
        counts = pairs.counts()
        first = np.where(pairs.classes[own, 0] == c, 0, counts[other])
        places = own[:, None] * m + first[:, None] + np.arange(counts[c])
        rows = pairs.rows[first[0] : first[0] + counts[c], own[0]]
        turned = backend.take_columns(base.factor.T, backend.array(rows))
        factor = turned.T
        if len(own) > FEW_COLUMNS:
            factor = np.ascontiguousarray(factor) if backend is NUMPY else factor.contiguous()
        return cls(turned, factor, own, places.reshape(-1))


class _ClassBlocks:
    """F (F' v) for the columns of all pairs, with the rows of a class at a time: each multiplies all pairs it is in.

    Numbers are moved between columns and classes all at once: many small moves take longer than the products.
    """

    def __init__(self, base: LowRankGram, pairs: Pairs) -> None:
        backend = self.backend = base.backend
        self.blocks = [_ClassBlock.of(base, pairs, c) for c in range(int(pairs.classes.max()) + 1)]
        self.m, self.count = pairs.rows.shape
        self.rank = self.blocks[0].factor.shape[1]
        places = np.concatenate([block.places for block in self.blocks])
        # Where a number of the columns stands among those of the classes; the places filled up read a zero at the end.
        back = np.full(self.m * self.count, len(places))
        back[places] = np.arange(len(places))
        named = np.concatenate([block.pairs for block in self.blocks])
        both = np.argsort(named, kind="stable").reshape(self.count, 2)  # the two classes of each pair
        self.places, self.back = backend.array(places), backend.array(back)
        self.named, self.both = backend.array(named), [backend.array(part.copy()) for part in both.T]

    def __call__(self, columns: Array, times: int) -> Array:
        """The product for columns (m, times * P)."""
        backend, xp, dtype = self.backend, self.backend.xp, self.blocks[0].factor.dtype
        flat = columns.T.reshape(times, self.count * self.m)
        own = backend.cast(backend.take_columns(flat, self.places), dtype)
        parts, at = [], 0
        for block in self.blocks:
            size = len(block.places)
            rows = own[:, at : at + size].reshape(-1, len(block.factor))
            parts.append(_times(rows, block.factor, backend).reshape(times, -1, self.rank))
            at += size
        inner = backend.cast(xp.concatenate(parts, 1), backend.float64)
        inner = inner[:, self.both[0]] + inner[:, self.both[1]]  # F' v of each pair
        own, parts, at = backend.cast(inner[:, self.named], dtype), [], 0
        for block in self.blocks:
            size = len(block.pairs)
            rows = own[:, at : at + size].reshape(-1, self.rank)
            parts.append(_times(rows, block.turned, backend).reshape(times, -1))
            at += size
        parts.append(backend.zeros((times, 1), dtype))
        product = backend.take_columns(xp.concatenate(parts, 1), self.back)
        return backend.cast(product, backend.float64).reshape(times * self.count, self.m).T


def _times(rows: Array, matrix: Array, backend: NumpyBackend) -> Array:
    """``rows @ matrix``; a few rows go one by one, which reads the matrix without repacking it."""
    if backend is NUMPY and len(rows) <= FEW_COLUMNS:
        return np.stack([row @ matrix for row in rows])
    return rows @ matrix


class PairedGram(Gram):
    """A kernel operator for each column: that of the rows of its pair.

    Parameters
    ----------
    base : Gram
        K of all rows.
    pairs : Pairs
        Which rows belong to which column.
        Their matrices are laid out next to one another up to half of `MAX_BYTES`; beyond it columns are spread over
        all rows for each product with `base`.
    """

    kind = "paired"

    def __init__(self, base: Gram, pairs: Pairs) -> None:
        self.base, self.pairs, self.backend = base, pairs, base.backend
        self.n, self.dtype = len(pairs.rows), base.dtype
        m, count = pairs.rows.shape
        self.blocks: Array = None  # (P, m, m): the matrices of all pairs
        self.by_class: _ClassBlocks | None = None  # or the rows of a low-rank factor, class by class
        size = 0
        if type(base) is LowRankGram and m < pairs.n:
            self.by_class = _ClassBlocks(base, pairs)
            size = base.nbytes
        elif (
            isinstance(base, DenseGram)
            and m < pairs.n
            and count * m * m * np.dtype(base.dtype).itemsize <= MAX_BYTES / 2
        ):
            self.blocks = self._laid_out(base)
            size = count * m * m * np.dtype(base.dtype).itemsize
        self.nbytes = base.nbytes + size

    def _laid_out(self, base: DenseGram) -> Array:
        """(P, m, m), zero where a game has no row."""
        backend, parts = self.backend, []
        for own in self.pairs.rows.T:
            some = backend.array(own[own >= 0])
            full = backend.zeros((self.n, self.n), base.matrix.dtype)
            full[: len(some), : len(some)] = base.matrix[some][:, some]
            parts.append(full)
        return backend.xp.stack(parts)

    def matmat(self, columns: Array) -> Array:
        """Each column times the kernel of its own pair; columns repeat the pairs as often as needed."""
        backend, count = self.backend, self.pairs.rows.shape[1]
        times = columns.shape[1] // count
        if self.by_class is not None:
            return self.by_class(columns, times)
        if self.blocks is None:
            return self._through_all(columns, times)
        vectors = columns.T.reshape(times, count, self.n)
        vectors = backend.cast(vectors.swapaxes(0, 1), self.blocks.dtype)
        product = backend.cast((vectors @ self.blocks).swapaxes(0, 1), backend.float64)
        return product.reshape(times * count, self.n).T

    def _through_all(self, columns: Array, times: int) -> Array:
        games = np.split(self.backend.numpy(columns), times, axis=1)
        spread = np.concatenate([self.pairs.spread(game) for game in games], axis=1)
        product = self.backend.numpy(self.base.matmat(self.backend.columns(spread)))
        rows = self.pairs.rows.clip(0)
        parts = [np.take_along_axis(game, rows, axis=0) for game in np.split(product, times, axis=1)]
        return self.backend.columns(np.concatenate(parts, axis=1))

    def steepest(self, labels: np.ndarray, weight: np.ndarray | None, steps: int = 6) -> np.ndarray:
        """lambda_max of each pair's centred (and weighted) kernel, (P,), by a few Lanczos steps from the labels.

        A little below the true one at most; with unchanged labels a step is stable up to 2 / lambda_max.
        """
        backend, member = self.backend, self.pairs.member
        root = np.where(member, 1.0 if weight is None else np.sqrt(np.maximum(weight, 0)), 0.0)
        normal = root / np.maximum(np.linalg.norm(root, axis=0), 1e-300)
        signs = 2.0 * labels - 1

        def centred(v: np.ndarray) -> np.ndarray:
            return v - normal * (normal * v).sum(axis=0)

        def image(v: np.ndarray) -> np.ndarray:
            product = self.matmat(backend.columns(root * v, backend.float64))
            return centred(root * backend.numpy(product))

        # What the kernel makes of the labels, squared, is a second direction: labels may be blind to the steepest one.
        seen = backend.numpy(self.matmat(backend.columns(root**2 * signs, backend.float64)))
        vector = centred(root * (signs + (seen / np.maximum(np.abs(seen).max(axis=0), 1e-300)) ** 2))
        # what the kernel is in the space of these vectors
        band = np.zeros((len(self.pairs.classes), steps, steps))
        before, size = np.zeros_like(vector), np.linalg.norm(vector, axis=0)
        vector = vector / np.maximum(size, 1e-300)
        for i in range(steps):
            found = image(vector) - (size * before if i else 0.0)
            band[:, i, i] = (vector * found).sum(axis=0)
            found -= band[:, i, i] * vector
            size = np.linalg.norm(found, axis=0)
            # all there is has been seen: what is left is rounding
            size[size <= 1e-6 * band[:, 0, 0]] = 0.0
            if i + 1 < steps:
                band[:, i, i + 1] = band[:, i + 1, i] = size
            before, vector = vector, found / np.where(size > 0, size, np.inf)
        if not np.isfinite(band).all():
            raise ValueError("the kernel has values that are not finite: check the kernel and the scale of X")
        return 1.05 * np.linalg.eigvalsh(band)[:, -1]

    def describe(self) -> str:
        """The operator of all rows, and how many pairs use it."""
        return f"{self.base.describe()}; {len(self.pairs.classes)} pairs of classes, {format_bytes(self.nbytes)}"
