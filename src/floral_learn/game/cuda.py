"""What CUDA does better than torch's own operations, written in Triton: products and the exact projection.

A round of a game is a product of K with two columns, then a few dozen small operations. A library product reads all
of K, at a fraction of the card's bandwidth for so few columns; K is symmetric, so that a tile below the diagonal
serves two tiles. Sums are added in a fixed order: the same game gives the same bits.

A projection that asks "converged?" after each pass makes the host wait for the device every time. Here the blocks that
share a column agree on that among themselves: each writes its part of the sums, waits for the others and adds all
parts in the same order, so that all of them decide alike. Blocks that wait for one another must run at the same time:
there are never more than the card has processors, and the launch is a cooperative one, which the driver runs as a whole
or refuses, also beside other programs.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl

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


@triton.jit
def _together(counter, goal):  # pragma: no cover (compiled)
    """Wait until every block of this column has come as far as this one."""
    tl.debug_barrier()
    seen = tl.atomic_add(counter, 1, sem="acq_rel", scope="gpu") + 1
    while seen < goal:
        seen = tl.atomic_add(counter, 0, sem="acquire", scope="gpu")
    tl.debug_barrier()


@triton.jit
def _project(
    z, signs, cap, mu_in, dual, mu_out, residual, passes, sums, counters, n, share, cap_stride,
    MAX: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # pragma: no cover (compiled)  # fmt: skip
    column = tl.program_id(1).to(tl.int64)
    me = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    peers = tl.arange(0, BLOCKS)
    begin = me * share
    end = tl.minimum(begin + share, n)
    z += column * n
    signs += column * n
    dual += column * n
    cap += column * cap_stride
    counters += column
    sums += column * 6 * BLOCKS  # two sets of three numbers a block, used in turn
    left = tl.full((), float("inf"), tl.float64)
    right = tl.full((), float("-inf"), tl.float64)
    for start in range(begin, end, BLOCK):
        at = start + lanes
        live = at < end
        s = tl.load(signs + at, mask=live, other=1.0)
        u = s * tl.load(z + at, mask=live, other=0.0)
        reach = s * tl.load(cap + at, mask=live, other=0.0)
        left = tl.minimum(left, tl.min(tl.where(live, u - tl.maximum(reach, 0.0), float("inf"))))
        right = tl.maximum(right, tl.max(tl.where(live, u - tl.minimum(reach, 0.0), float("-inf"))))
    meetings = 0
    if BLOCKS > 1:
        tl.store(sums + me, left)
        tl.store(sums + BLOCKS + me, right)
        meetings += 1
        _together(counters, meetings * BLOCKS)
        left = tl.min(tl.load(sums + peers, cache_modifier=".cg"))
        right = tl.max(tl.load(sums + BLOCKS + peers, cache_modifier=".cg"))
    mu = tl.minimum(tl.maximum(tl.load(mu_in + column), left), right)
    done = 0
    count = 0
    phi = tl.full((), 0.0, tl.float64)
    while (done == 0) & (count < MAX):
        count += 1
        phi = tl.full((), 0.0, tl.float64)
        size = tl.full((), 0.0, tl.float64)
        slope = tl.full((), 0.0, tl.float64)
        for start in range(begin, end, BLOCK):
            at = start + lanes
            live = at < end
            s = tl.load(signs + at, mask=live, other=1.0)
            u = s * tl.load(z + at, mask=live, other=0.0)
            reach = s * tl.load(cap + at, mask=live, other=0.0)
            low = tl.minimum(reach, 0.0)
            high = tl.maximum(reach, 0.0)
            moved = u - mu
            clipped = tl.where(live, tl.minimum(tl.maximum(moved, low), high), 0.0)
            phi += tl.sum(clipped)
            size += tl.sum(tl.abs(clipped))
            slope += tl.sum(tl.where(live & (moved > low) & (moved < high), 1.0, 0.0))
        if BLOCKS > 1:
            # The other set of places: a block that is late may still be reading the last one.
            here = sums + (count % 2) * 3 * BLOCKS
            tl.store(here + me, phi)
            tl.store(here + BLOCKS + me, size)
            tl.store(here + 2 * BLOCKS + me, slope)
            meetings += 1
            _together(counters, meetings * BLOCKS)
            phi = tl.sum(tl.load(here + peers, cache_modifier=".cg"))
            size = tl.sum(tl.load(here + BLOCKS + peers, cache_modifier=".cg"))
            slope = tl.sum(tl.load(here + 2 * BLOCKS + peers, cache_modifier=".cg"))
        tolerance = 32 * 2.220446049250313e-16
        close = tl.abs(phi) <= tolerance * (size + slope * tl.abs(mu) + 1e-300)
        narrow = right - left <= 4.440892098500626e-16 * (tl.abs(left) + tl.abs(right))
        done = tl.where(close | narrow, 1, 0)
        left = tl.where(phi > 0, mu, left)
        right = tl.where(phi < 0, mu, right)
        newton = mu + phi / tl.maximum(slope, 1.0)
        # The same safeguards as in game/projections.py, pass for pass.
        trusted = (slope > 0) & (newton >= left) & (newton <= right) & ((count <= 20) | (count % 2 == 0))
        mu = tl.where(done == 1, mu, tl.where(trusted, newton, (left + right) / 2))
    for start in range(begin, end, BLOCK):
        at = start + lanes
        live = at < end
        s = tl.load(signs + at, mask=live, other=1.0)
        u = s * tl.load(z + at, mask=live, other=0.0)
        reach = s * tl.load(cap + at, mask=live, other=0.0)
        clipped = tl.minimum(tl.maximum(u - mu, tl.minimum(reach, 0.0)), tl.maximum(reach, 0.0))
        tl.store(dual + at, s * clipped, mask=live)
    if me == 0:
        tl.store(mu_out + column, mu)
        tl.store(residual + column, tl.abs(phi))
        tl.store(passes + column, count)


@cache
def _multiprocessors(device: Any) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


@cache
def _cooperative() -> dict[str, bool]:
    """The launch option, where this version of triton has it."""
    from triton.backends.nvidia.compiler import CUDAOptions

    known = {field.name for field in fields(CUDAOptions)}
    return {"launch_cooperative_grid": True} if "launch_cooperative_grid" in known else {}


def blocks_for(n: int, columns: int, device: Any) -> int:
    """How many blocks share a column: one for each 4,096 rows, and never more than run at the same time."""
    wanted = triton.next_power_of_2(triton.cdiv(n, 4096))
    room = max(_multiprocessors(device) // columns, 1)
    return min(wanted, 2 ** (room.bit_length() - 1), 128)


def project(
    z: Any, signs: Any, cap: Any, mu: Any, max_iter: int = 200, blocks: int | None = None
) -> tuple[Any, Any, Any, Any]:
    """The exact projection of every column of `z` (n, c): dual, mu, residual and passes, without waiting for the host.

    Arrays are float64, column by column in memory; `cap` is (n, 1) or (n, c).
    """
    n, c = z.shape
    dual = torch.empty((c, n), dtype=torch.float64, device=z.device).T
    mu_out, residual = torch.empty_like(mu), torch.empty_like(mu)
    passes = torch.empty(c, dtype=torch.int32, device=z.device)
    blocks = blocks_for(n, c, z.device) if blocks is None else blocks
    share = triton.cdiv(n, blocks)
    block = min(triton.next_power_of_2(share), 2048)
    sums = torch.empty((c, 6 * blocks), dtype=torch.float64, device=z.device)
    counters = torch.zeros(c, dtype=torch.int32, device=z.device)
    cap_stride = n if cap.shape[1] == c and c > 1 else 0
    with torch.cuda.device(z.device):
        _project[(blocks, c)](
            z, signs, cap, mu, dual, mu_out, residual, passes, sums, counters, n, share, cap_stride,
            MAX=max_iter, BLOCK=block, BLOCKS=blocks, num_warps=8, **(_cooperative() if blocks > 1 else {}),
        )  # fmt: skip
    return dual, mu_out, residual, passes
