"""Two Triton kernels for CUDA: the product that reads K once, and the whole projection in one launch.

A round of a dense game is a product of K with two columns, then a few dozen small operations. cuBLAS reads K at a
fraction of the card's bandwidth for so few columns, and a projection that asks "converged?" after each pass makes the
host wait for the device every time. Neither happens here.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

MOST_COLUMNS = 8  # above, the matrix product of the library is as fast
MOST_ROWS = 300_000  # above, one block for each column is slower than many small launches


@triton.jit
def _skinny_product(
    matrix, columns, out, n, stride, C: tl.constexpr, ROWS: tl.constexpr, DEPTH: tl.constexpr
):  # pragma: no cover (compiled)
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    lanes = tl.arange(0, DEPTH)
    which = tl.arange(0, C)
    total = tl.zeros((ROWS, DEPTH, C), dtype=tl.float32)
    inside = rows < n
    for start in range(0, n, DEPTH):
        at = start + lanes
        tile = tl.load(
            matrix + rows[:, None] * stride + at[None, :],
            mask=inside[:, None] & (at < n)[None, :],
            other=0.0,
            eviction_policy="evict_first",
        ).to(tl.float32)
        vector = tl.load(columns + at[:, None] * C + which[None, :], mask=(at < n)[:, None], other=0.0)
        total += tile[:, :, None] * vector[None, :, :]
    sums = tl.sum(total, axis=1)
    tl.store(out + rows[:, None] * C + which[None, :], sums, mask=inside[:, None])


def skinny_product(matrix: Any, columns: Any) -> Any:
    """``matrix @ columns`` for a square row-major matrix (float32 or bfloat16) and up to eight columns, float32."""
    n, c = columns.shape
    width = triton.next_power_of_2(c)
    vector = torch.zeros((n, width), dtype=torch.float32, device=matrix.device)
    vector[:, :c] = columns
    out = torch.empty((n, width), dtype=torch.float32, device=matrix.device)
    rows, depth = (16, 512) if width <= 2 else (8, 256)
    grid = (triton.cdiv(n, rows),)
    _skinny_product[grid](matrix, vector, out, n, matrix.stride(0), C=width, ROWS=rows, DEPTH=depth, num_warps=8)
    return out[:, :c]


@triton.jit
def _project(
    z, signs, cap, mu_in, dual, mu_out, residual, passes, n, cap_stride, MAX: tl.constexpr, BLOCK: tl.constexpr
):  # pragma: no cover (compiled)
    column = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    z += column * n
    signs += column * n
    dual += column * n
    cap += column * cap_stride
    left = tl.full((), float("inf"), tl.float64)
    right = tl.full((), float("-inf"), tl.float64)
    for start in range(0, n, BLOCK):
        at = start + lanes
        live = at < n
        s = tl.load(signs + at, mask=live, other=1.0)
        u = s * tl.load(z + at, mask=live, other=0.0)
        reach = s * tl.load(cap + at, mask=live, other=0.0)
        left = tl.minimum(left, tl.min(tl.where(live, u - tl.maximum(reach, 0.0), float("inf"))))
        right = tl.maximum(right, tl.max(tl.where(live, u - tl.minimum(reach, 0.0), float("-inf"))))
    mu = tl.minimum(tl.maximum(tl.load(mu_in + column), left), right)
    done = 0
    count = 0
    phi = tl.full((), 0.0, tl.float64)
    while (done == 0) & (count < MAX):
        count += 1
        phi = tl.full((), 0.0, tl.float64)
        size = tl.full((), 0.0, tl.float64)
        slope = tl.full((), 0.0, tl.float64)
        for start in range(0, n, BLOCK):
            at = start + lanes
            live = at < n
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
        tolerance = 32 * 2.220446049250313e-16
        close = tl.abs(phi) <= tolerance * (size + slope * tl.abs(mu) + 1e-300)
        narrow = right - left <= 4.440892098500626e-16 * (tl.abs(left) + tl.abs(right))
        done = tl.where(close | narrow, 1, 0)
        left = tl.where(phi > 0, mu, left)
        right = tl.where(phi < 0, mu, right)
        newton = mu + phi / tl.maximum(slope, 1.0)
        # The same safeguards as in core/projections.py, pass for pass.
        trusted = (slope > 0) & (newton >= left) & (newton <= right) & ((count <= 20) | (count % 2 == 0))
        mu = tl.where(done == 1, mu, tl.where(trusted, newton, (left + right) / 2))
    for start in range(0, n, BLOCK):
        at = start + lanes
        live = at < n
        s = tl.load(signs + at, mask=live, other=1.0)
        u = s * tl.load(z + at, mask=live, other=0.0)
        reach = s * tl.load(cap + at, mask=live, other=0.0)
        clipped = tl.minimum(tl.maximum(u - mu, tl.minimum(reach, 0.0)), tl.maximum(reach, 0.0))
        tl.store(dual + at, s * clipped, mask=live)
    tl.store(mu_out + column, mu)
    tl.store(residual + column, tl.abs(phi))
    tl.store(passes + column, count)


def project(z: Any, signs: Any, cap: Any, mu: Any, max_iter: int = 200) -> tuple[Any, Any, Any, Any]:
    """The exact projection of every column of `z` (n, c): dual, mu, residual and passes, without waiting for the host.

    Arrays are float64, column by column in memory; `cap` is (n, 1) or (n, c).
    """
    n, c = z.shape
    dual = torch.empty((c, n), dtype=torch.float64, device=z.device).T
    mu_out, residual = torch.empty_like(mu), torch.empty_like(mu)
    passes = torch.empty(c, dtype=torch.int32, device=z.device)
    block = min(triton.next_power_of_2(n), 4096)
    cap_stride = n if cap.shape[1] == c and c > 1 else 0
    _project[(c,)](
        z, signs, cap, mu, dual, mu_out, residual, passes, n, cap_stride, MAX=max_iter, BLOCK=block, num_warps=16
    )
    return dual, mu_out, residual, passes
