"""Special Triton kernels: 8-bit rows, exponentials, mirrored tiles, products there and back."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import torch
import triton
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources

from mercer.backends.torch.evaluate import DEPTH
from mercer.backends.torch.triton.launch import compiled

# --- eight bits ----------------------------------------------------------------------------------
#
# exp(c0 |x - y|^2 + c1) of rows of 8-bit numbers with themselves: the whole matrix in one pass.
#
# Tensor cores add up products of 8-bit numbers in 32-bit integers, so that a tile of the half
# above the diagonal has every digit of its distances. It is written on both sides of the
# diagonal, and nothing else: 60000 x 60000 entries are 14 GB, which take longer to go through
# once more than to find.

Tensor: TypeAlias = torch.Tensor

# 60000 rows of 784 features took an H200 9.0 ms; tiles of 128, which leave no room for a second
# program beside the first, took 11.6. To write zeros takes 3.1.
_EIGHT_BITS_SIDE = 64  # of a tile
_TOGETHER = 32  # tiles: so many by so many are found one after another, their rows read near by
_EIGHT_BITS_WARPS, _EIGHT_BITS_STAGES = 4, 3
_EIGHT_BITS_EXPONENTIAL = """
@triton.jit
def kernel(n, depth, squares, X, LENGTHS, FACTOR, SUMMAND, OUT, apart,
           SIDE: tl.constexpr, DEPTH: tl.constexpr, TOGETHER: tl.constexpr):
    # squares of tiles, the triangle of them folded: one row of it, then the one as far from below
    p = tl.program_id(1)
    q = tl.program_id(2)
    below = p >= squares - q
    high = tl.where(below, squares - 1 - q, q)
    wide = high + tl.where(below, p - (squares - q), p)
    twice = below & (squares - 1 - q <= q)
    i = high * TOGETHER + tl.program_id(0) // TOGETHER
    j = wide * TOGETHER + tl.program_id(0) % TOGETHER
    if (i <= j) & (j * SIDE < n) & (twice == 0):
        rows = i * SIDE + tl.arange(0, SIDE)
        columns = j * SIDE + tl.arange(0, SIDE)
        # past the last one the last again: loads need no masks
        x = tl.minimum(rows, n - 1).to(tl.int64)
        y = tl.minimum(columns, n - 1).to(tl.int64)
        across = tl.arange(0, DEPTH)
        left = X + x[:, None] * depth + across[None, :]
        right = X + y[None, :] * depth + across[:, None]
        products = tl.zeros((SIDE, SIDE), tl.int32)
        for k in range(0, depth, DEPTH):
            x8 = tl.load(left + k)
            y8 = tl.load(right + k)
            products = tl.dot(x8, y8, products, out_dtype=tl.int32)
        lengths = tl.load(LENGTHS + x)[:, None] + tl.load(LENGTHS + y)[None, :]
        distances = (lengths - 2 * products).to(tl.float64)
        found = tl.exp(tl.load(FACTOR) * distances + tl.load(SUMMAND)).to(tl.float32)
        inside = (rows < n)[:, None] & (columns < n)[None, :]
        tl.store(OUT + rows.to(tl.int64)[:, None] * apart + columns[None, :], found, mask=inside)
        if i < j:
            back = (columns < n)[:, None] & (rows < n)[None, :]
            there = OUT + columns.to(tl.int64)[:, None] * apart + rows[None, :]
            tl.store(there, tl.trans(found), mask=back)
"""


def fill_exponential(K: Tensor, k: Tensor, lengths: Tensor, factor: float, summand: float) -> bool:
    """Write exp(factor |k_i - k_j|^2 + summand) to all of a matrix.

    Parameters
    ----------
    K : (n, n) float32 tensor
        Where to; its rows are unbroken.
    k : (n or more, depth) int8 tensor
        The rows, their depth a multiple of `DEPTH`.
    lengths : (n or more,) int32 tensor
        Sums of squares of these.
    factor, summand : float
        The constants, in float64.

    Returns
    -------
    bool
        Whether the card has room for tiles, and Triton knows such products; if not, nothing was
        written.
    """
    n = len(K)
    squares = triton.cdiv(n, _EIGHT_BITS_SIDE * _TOGETHER)
    # numbers that a kernel is called with are float32 to Triton
    constants = [
        torch.full((1,), c, dtype=torch.float64, device=K.device) for c in (factor, summand)
    ]
    sizes = {"SIDE": _EIGHT_BITS_SIDE, "DEPTH": DEPTH, "TOGETHER": _TOGETHER}
    grid = (_TOGETHER * _TOGETHER, squares + 1, triton.cdiv(squares, 2))
    try:
        with torch.cuda.device_of(K):  # Triton launches on the current one
            compiled(_EIGHT_BITS_EXPONENTIAL)[grid](
                *(n, k.shape[1], squares, k, lengths, *constants, K, K.stride(0)),
                **sizes,
                num_warps=_EIGHT_BITS_WARPS,
                num_stages=_EIGHT_BITS_STAGES,
            )
    except (OutOfResources, CompilationError):
        return False
    return True


# --- exponentials --------------------------------------------------------------------------------
#
# exp(c0 x + c1) of a float64 block in one pass over it: plain torch takes two, and one to round.
#
# Its product with a vector, and the smallest x of each row, are found in the same pass.
#
# Most kernels end so, and blocks of float64 are larger than what a card keeps near: passes over
# them take the time.

_PART = 1024  # entries of a program
_EXPONENTIALS_EXPONENTIAL = """
@triton.jit
def kernel(n, X, C, OUT, PART: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * PART + tl.arange(0, PART)
    x = tl.load(X + at, mask=at < n, other=0.0)
    found = tl.exp(tl.load(C) * x + tl.load(C + 1))
    tl.store(OUT + at, found.to(OUT.dtype.element_ty), mask=at < n)
"""
_COLUMNS = 1024  # that a program of one row looks at together
_WITH_PRODUCT = """
@triton.jit
def kernel(m, X, C, V, VALUES, SMALLEST, PART: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    factor = tl.load(C)
    summand = tl.load(C + 1)
    total = tl.zeros((PART,), tl.float64)
    least = tl.full((PART,), float("inf"), tl.float64)
    for start in range(0, m, PART):
        at = start + tl.arange(0, PART)
        inside = at < m
        x = tl.load(X + i * m + at, mask=inside, other=float("inf"))
        least = tl.minimum(least, x)
        found = tl.exp(factor * x + summand)
        tl.store(X + i * m + at, found, mask=inside)
        v = tl.load(V + at, mask=inside, other=0.0)
        total += tl.where(inside, found * v, 0.0)
    tl.store(VALUES + i, tl.sum(total, axis=0))
    tl.store(SMALLEST + i, tl.min(least, axis=0))
"""


def exponential_times(x: Tensor, factor: float, summand: float, v: Tensor) -> tuple[Tensor, Tensor]:
    """Write K = exp(factor x + summand) over x; return K v and the smallest x of each row.

    Rows with entries that are no number may be told by K v alone.
    """
    constants = _on_device([factor, summand], x)
    values, smallest = x.new_empty((2, len(x)))
    with torch.cuda.device_of(x):
        compiled(_WITH_PRODUCT)[(len(x),)](
            x.shape[1], x, constants, v.contiguous(), values, smallest, PART=_COLUMNS
        )
    return values, smallest


def exponential(x: Tensor, factor: float, summand: float, dtype: torch.dtype) -> Tensor:
    """Return exp(factor x + summand) of a contiguous float64 tensor, in some type."""
    out = torch.empty_like(x, dtype=dtype)
    # numbers that a kernel is called with are float32 to Triton
    constants = _on_device([factor, summand], x)
    grid = (triton.cdiv(x.numel(), _PART),)
    with torch.cuda.device_of(x):  # Triton launches on the current one
        compiled(_EXPONENTIALS_EXPONENTIAL)[grid](x.numel(), x, constants, out, PART=_PART)
    return out


def _on_device(constants: list[float], x: Tensor) -> Tensor:
    """Write constants where a tensor is: numbers that are sent wait for all that was begun."""
    return torch.cat([torch.full((1,), c, dtype=torch.float64, device=x.device) for c in constants])


# --- mirrors -------------------------------------------------------------------------------------
#
# A block written across the diagonal of a symmetric matrix: tiles are turned inside the card.
#
# A plain copy of a transpose reads single entries of rows that lie far apart.

_MIRRORS_SIDE = 64  # of a tile
_MIRROR = """
@triton.jit(do_not_specialize=["n", "m"])
def kernel(n, m, X, OUT, WIDE, APART, SIDE: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * SIDE + tl.arange(0, SIDE)
    j = tl.program_id(1).to(tl.int64) * SIDE + tl.arange(0, SIDE)
    there = (i[:, None] < n) & (j[None, :] < m)
    x = tl.load(X + i[:, None] * WIDE + j[None, :], mask=there)
    back = (j[:, None] < m) & (i[None, :] < n)
    tl.store(OUT + j[:, None] * APART + i[None, :], tl.trans(x), mask=back)
"""


def write_mirrored(block: Tensor, out: Tensor) -> None:
    """Write the transpose of a block (n, m) to a part (m, n) of a matrix, rows of both unbroken."""
    n, m = block.shape
    grid = (triton.cdiv(n, _MIRRORS_SIDE), triton.cdiv(m, _MIRRORS_SIDE))
    with torch.cuda.device_of(block):  # Triton launches on the current one
        compiled(_MIRROR)[grid](
            n, m, block, out, block.stride(0), out.stride(0), SIDE=_MIRRORS_SIDE
        )


# --- round trips ---------------------------------------------------------------------------------
#
# K'S (K v - level) of a stored float32 K that is read once: there and back row by row.
#
# Two products read K twice, and reading is all that they take time for. A program holds v and its
# part of the sums in registers, and each row between the two; rows to come are loaded meanwhile.

MOST = 1 << 14  # columns: with more, v and the sums leave no registers for a row
PADDED = 16  # columns that rows are padded to, with zeros: loads of four numbers need no masks
_LEAST = 256  # columns of a piece
_EIGHTHS = 8  # of the next power of two: what columns are padded to, for a few pieces
_THREAD, _LANES = 4, 32  # numbers of a row that a thread loads at a time; threads of a warp
_ROUND_TRIPS_WARPS = 16  # of a program, at most: with 32, rows wait longer for one another
_ENTRIES = 16  # of a tile, that a thread holds
# Tiles of rows on their way: 120 kB of 10,000 columns, four times what keeps an H200 busy; fewer
# where a card has less shared memory.
_ROUND_TRIPS_STAGES = (4, 2)
# Rows that float32 adds up one after the other before float64 takes over: sums of 100,000 are 30
# times as far off as the rounding of K is (ridge on 1000 landmarks), sums of 1000 twice.
_HEIGHT = 512
_PROCESSORS = 4  # of a device that does not say


class TripShape(NamedTuple):
    """How columns are cut into pieces of powers of two, and what works on them."""

    pieces: tuple[tuple[int, int], ...]
    rows: int
    warps: int


def shape_of(m: int) -> TripShape:
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
    warps = min(_ROUND_TRIPS_WARPS, pieces[-1][1] // (_THREAD * _LANES))
    rows = max(1, _ENTRIES * _LANES * warps // begin)
    return TripShape(tuple(pieces), 1 << (rows.bit_length() - 1), warps)


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
    for stages in _ROUND_TRIPS_STAGES:
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
    together = processors * (_ROUND_TRIPS_WARPS // warps)
    return int(triton.cdiv(n, together * triton.cdiv(n, together * _HEIGHT)))


def text(shape: TripShape) -> str:
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
