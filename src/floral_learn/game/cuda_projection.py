"""The exact projection of game/projections.py as one CUDA launch.

A projection that asks "converged?" after each pass makes the host wait for the device every time. Here the blocks that
share a column agree on that among themselves: each writes its part of the sums, waits for the others and adds all
parts in the same order, so that all of them decide alike and the same game gives the same bits.

Blocks that wait for one another must run at the same time. There are never more than the card has processors, and the
launch is a cooperative one: the driver runs all of them together or refuses, also beside other programs.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl


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
