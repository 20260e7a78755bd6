"""Products for CUDA, written in Triton: with half of a symmetric K, and with a wide low-rank factor.

A round of a game is a product of K with two columns, then a few dozen small operations. A library product reads all
of K, at a fraction of the card's bandwidth for so few columns; K is symmetric, so that a tile below the diagonal
serves two tiles. Sums are added in a fixed order: the same game gives the same bits.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from floral_learn.game.cuda_projection import project

MOST_COLUMNS = 4  # of one launch; for more, the matrix product of the library is as fast
LEAST_ROWS = 2048  # below, a product is a matter of microseconds
LARGE = 32_768  # rows from which larger tiles are faster (fewer partial sums)

__all__ = ["MOST_COLUMNS", "fits", "half_product", "project", "wide_product"]


@triton.jit
def _half_product(
    matrix, columns, partial, n, stride, tiles, C: tl.constexpr, EDGE: tl.constexpr, ROWS: tl.constexpr
):  # pragma: no cover (compiled)
    # Row r of tiles below the diagonal has r + 1 of them, and row `tiles - 1 - r` the rest of `tiles + 1`: one program
    # line for both.
    line = tl.program_id(1)
    place = tl.program_id(0)
    mirror = tiles - 1 - line
    if (mirror == line) & (place > line):
        return
    I = tl.where(place <= line, line, mirror).to(tl.int64)  # noqa: E741
    J = tl.where(place <= line, place, place - line - 1).to(tl.int64)
    cols = J * EDGE + tl.arange(0, EDGE)
    live = cols < n
    x0 = tl.load(columns + cols, mask=live, other=0.0)
    down0 = tl.zeros((ROWS, EDGE), dtype=tl.float32)
    if C > 1:
        x1 = tl.load(columns + n + cols, mask=live, other=0.0)
        down1 = tl.zeros((ROWS, EDGE), dtype=tl.float32)
    if C > 2:
        x2 = tl.load(columns + 2 * n + cols, mask=live, other=0.0)
        down2 = tl.zeros((ROWS, EDGE), dtype=tl.float32)
    if C > 3:
        x3 = tl.load(columns + 3 * n + cols, mask=live, other=0.0)
        down3 = tl.zeros((ROWS, EDGE), dtype=tl.float32)
    across = partial + J * C * n
    for start in range(0, EDGE, ROWS):
        rows = I * EDGE + start + tl.arange(0, ROWS)
        inside = rows < n
        tile = tl.load(
            matrix + rows[:, None] * stride + cols[None, :],
            mask=inside[:, None] & live[None, :],
            other=0.0,
            eviction_policy="evict_first",
        )
        down0 += tile * tl.load(columns + rows, mask=inside, other=0.0)[:, None]
        tl.store(across + rows, tl.sum(tile * x0[None, :], axis=1), mask=inside)
        if C > 1:
            down1 += tile * tl.load(columns + n + rows, mask=inside, other=0.0)[:, None]
            tl.store(across + n + rows, tl.sum(tile * x1[None, :], axis=1), mask=inside)
        if C > 2:
            down2 += tile * tl.load(columns + 2 * n + rows, mask=inside, other=0.0)[:, None]
            tl.store(across + 2 * n + rows, tl.sum(tile * x2[None, :], axis=1), mask=inside)
        if C > 3:
            down3 += tile * tl.load(columns + 3 * n + rows, mask=inside, other=0.0)[:, None]
            tl.store(across + 3 * n + rows, tl.sum(tile * x3[None, :], axis=1), mask=inside)
    if I != J:
        below = partial + I * C * n + cols
        tl.store(below, tl.sum(down0, axis=0), mask=live)
        if C > 1:
            tl.store(below + n, tl.sum(down1, axis=0), mask=live)
        if C > 2:
            tl.store(below + 2 * n, tl.sum(down2, axis=0), mask=live)
        if C > 3:
            tl.store(below + 3 * n, tl.sum(down3, axis=0), mask=live)


def fits(matrix: Any, columns: int) -> bool:
    """Whether `half_product` is the better way."""
    stored = matrix.dtype == torch.float32 and matrix.stride(1) == 1
    return stored and columns <= MOST_COLUMNS and len(matrix) >= LEAST_ROWS


def half_product(matrix: Any, columns: Any) -> Any:
    """``matrix @ columns`` for a symmetric row-major float32 matrix and up to four columns, float64.

    Entry (b, c, i) of `partial` is what tile column b adds to row i of column c; each is written once.
    """
    n, c = columns.shape
    edge = 256 if n < LARGE else 512
    tiles = triton.cdiv(n, edge)
    vectors = columns.T.to(torch.float32, memory_format=torch.contiguous_format).contiguous()
    partial = torch.empty((tiles, c, n), dtype=torch.float32, device=matrix.device)
    with torch.cuda.device(matrix.device):
        _half_product[(tiles + 1, (tiles + 1) // 2)](
            matrix, vectors, partial, n, matrix.stride(0), tiles, C=c, EDGE=edge, ROWS=16, num_warps=4
        )
    return partial.sum(0, dtype=torch.float64).T


@triton.jit
def _wide_product(
    matrix, columns, partial, n, stride, share, height, C: tl.constexpr, DEPTH: tl.constexpr, ROWS: tl.constexpr
):  # pragma: no cover (compiled)
    chunk = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = rows < height
    lanes = tl.arange(0, DEPTH)
    sum0 = tl.zeros((ROWS, DEPTH), dtype=tl.float32)
    sum1 = tl.zeros((ROWS, DEPTH), dtype=tl.float32)
    end = tl.minimum((chunk + 1) * share, n)
    for start in range(chunk * share, end, DEPTH):
        at = start + lanes
        live = at < end
        tile = tl.load(
            matrix + rows.to(tl.int64)[:, None] * stride + at[None, :],
            mask=inside[:, None] & live[None, :],
            other=0.0,
            eviction_policy="evict_first",
        )
        sum0 += tile * tl.load(columns + at, mask=live, other=0.0)[None, :]
        if C > 1:
            sum1 += tile * tl.load(columns + n + at, mask=live, other=0.0)[None, :]
    out = partial + chunk * C * height + rows
    tl.store(out, tl.sum(sum0, axis=1), mask=inside)
    if C > 1:
        tl.store(out + height, tl.sum(sum1, axis=1), mask=inside)


def wide_product(matrix: Any, columns: Any) -> Any:
    """``matrix @ columns`` for a wide float32 matrix (rank, n) and up to two columns, float32: one pass over it."""
    height, n = matrix.shape
    c = columns.shape[1]
    share = triton.cdiv(triton.cdiv(n, 128), 4096) * 4096  # columns a block reads
    chunks = triton.cdiv(n, share)
    vectors = columns.T.to(torch.float32).contiguous()
    partial = torch.empty((chunks, c, height), dtype=torch.float32, device=matrix.device)
    with torch.cuda.device(matrix.device):
        _wide_product[(triton.cdiv(height, 16), chunks)](
            matrix, vectors, partial, n, matrix.stride(0), share, height, C=c, DEPTH=256, ROWS=16, num_warps=4
        )
    return partial.sum(0).T
