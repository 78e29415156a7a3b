"""K'S (K v - level) of a stored float32 K that is read once: there and back row by row.

Two products read K twice, and reading is all that they take time for. A program holds v and its
part of the sums in registers, and each row between the two; rows to come are loaded meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import torch
import triton
from triton.runtime.errors import OutOfResources

from mercer.backends.torch.fusing.launch import compiled

Tensor: TypeAlias = torch.Tensor

MOST = 1 << 14  # columns: with more, v and the sums leave no registers for a row
PADDED = 16  # columns that rows are padded to, with zeros: loads of four numbers need no masks
_LEAST = 256  # columns of a piece
_EIGHTHS = 8  # of the next power of two: what columns are padded to, for a few pieces
_THREAD, _LANES = 4, 32  # numbers of a row that a thread loads at a time; threads of a warp
_WARPS = 16  # of a program, at most: with 32, rows wait longer for one another
_ENTRIES = 16  # of a tile, that a thread holds
# Tiles of rows on their way: 120 kB of 10,000 columns, four times what keeps an H200 busy; fewer
# where a card has less shared memory.
_STAGES = (4, 2)
# Rows that float32 adds up one after the other before float64 takes over: sums of 100,000 are 30
# times as far off as the rounding of K is (ridge on 1000 landmarks), sums of 1000 twice.
_HEIGHT = 512
_PROCESSORS = 4  # of a device that does not say


class Shape(NamedTuple):
    """How columns are cut into pieces of powers of two, and what works on them."""

    pieces: tuple[tuple[int, int], ...]
    rows: int
    warps: int


def shape_of(m: int) -> Shape:
    """Return the pieces of so many columns, each with where it begins.

    Examples
    --------
    >>> shape_of(10000)
    Shape(pieces=((0, 8192), (8192, 2048)), rows=1, warps=16)
    >>> shape_of(1000)
    Shape(pieces=((0, 1024),), rows=4, warps=8)
    """
    least = max(_LEAST, triton.next_power_of_2(m) // _EIGHTHS)
    left, begin, pieces = -(-m // least), 0, []
    while left:
        width = 1 << (left.bit_length() - 1)
        pieces.append((begin, width * least))
        begin, left = begin + width * least, left - width
    # a thread has all rows of its columns, so that sums over rows are its own
    warps = min(_WARPS, pieces[-1][1] // (_THREAD * _LANES))
    rows = max(1, _ENTRIES * _LANES * warps // begin)
    return Shape(tuple(pieces), 1 << (rows.bit_length() - 1), warps)


def round_trip(K: Tensor, v: Tensor, s: Tensor, level: float) -> tuple[Tensor, Tensor] | None:
    """Return K'S (K v - level) and the sum of S (K v - level), in float64.

    Parameters
    ----------
    K : (n, m) float32 tensor
        Rows, at most `MOST` long; each is followed by zeros up to a multiple of `PADDED`.
    v : (m,) float32 tensor
        What it is multiplied by.
    s : (n,) float32 tensor
        The diagonal of S.
    level : float
        Subtracted from all of K v.

    Returns
    -------
    tensors (m,) and () or None
        None where the card has no room for rows of this length.
    """
    (n, m), wide = K.shape, K.stride(0)  # all rows are padded alike: masks are of whole loads
    shape = shape_of(m)
    padded = torch.nn.functional.pad(v, (0, wide - m))
    height = _height(n, shape.warps, K.device)
    count = triton.cdiv(n, height)
    high = float(torch.tensor(level, dtype=torch.float64).to(torch.float32))
    levels = torch.tensor([high, level - high], dtype=torch.float32).to(K.device)
    parts = torch.empty((count, wide), dtype=torch.float32, device=K.device)
    sums = torch.empty(count, dtype=torch.float32, device=K.device)
    arguments = (n, height, wide, K, padded, s, levels, parts, sums)
    for stages in _STAGES:
        try:
            with torch.cuda.device_of(K):  # Triton launches on the current one
                compiled(text(shape))[(count,)](
                    *arguments, R=shape.rows, STAGES=stages, num_warps=shape.warps
                )
        except OutOfResources:
            continue
        return parts[:, :m].sum(dim=0, dtype=torch.float64), sums.sum(dtype=torch.float64)
    return None


def _height(n: int, warps: int, device: torch.device) -> int:
    """Return the rows of a program: few enough for float32, and all processors end together."""
    processors = _PROCESSORS
    if device.type == "cuda":
        processors = torch.cuda.get_device_properties(device).multi_processor_count
    together = processors * (_WARPS // warps)
    return int(triton.cdiv(n, together * triton.cdiv(n, together * _HEIGHT)))


def text(shape: Shape) -> str:
    """Write the kernel for such pieces."""
    numbers = range(len(shape.pieces))
    lines = [
        "@triton.jit",
        "def kernel(n, height, wide, K, V, S, LEVEL, OUT, SUMS, R: tl.constexpr,",
        "           STAGES: tl.constexpr):",
        "    first = tl.program_id(0).to(tl.int64) * height",
        "    last = tl.minimum(first + height, n)",
        "    high = tl.load(LEVEL)",
        "    low = tl.load(LEVEL + 1)",
        "    each = tl.arange(0, R)",
        "    total = tl.zeros((R,), tl.float32)",
    ]
    for i, (begin, width) in enumerate(shape.pieces):
        lines += [
            f"    at{i} = {begin} + tl.arange(0, {width})",
            f"    v{i} = tl.load(V + at{i}, mask=at{i} < wide, other=0.0)",
            f"    sum{i} = tl.zeros(({width},), tl.float32)",
        ]
    lines += [
        "    for start in tl.range(first, last, R, num_stages=STAGES):",
        "        rows = start + each",
        "        inside = rows < last",
    ]
    for i in numbers:
        known = f"inside[:, None] & (at{i} < wide)[None, :]"
        where = f"K + rows[:, None] * wide + at{i}[None, :]"
        lines += [f"        k{i} = tl.load({where}, mask={known}, other=0.0)"]
    values = " + ".join(f"tl.sum(k{i} * v{i}[None, :], axis=1)" for i in numbers)
    lines += [
        f"        t = {values}",
        "        u = tl.load(S + rows, mask=inside, other=0.0) * ((t - high) - low)",
        "        total += u",
        *(f"        sum{i} += tl.sum(u[:, None] * k{i}, axis=0)" for i in numbers),
    ]
    out = "OUT + tl.program_id(0).to(tl.int64) * wide"
    lines += [f"    tl.store({out} + at{i}, sum{i}, mask=at{i} < wide)" for i in numbers]
    lines += ["    tl.store(SUMS + tl.program_id(0), tl.sum(total, axis=0))"]
    return "\n".join(lines) + "\n"
