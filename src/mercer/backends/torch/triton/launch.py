"""Compilation and launch of Triton kernels, each compiled once."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, TypeVar

import torch
import triton
import triton.language as tl
from triton.runtime.errors import OutOfResources

from mercer import deadline
from mercer.backends.lowering import FlatProgram
from mercer.backends.torch.triton.leaves import Buckets
from mercer.backends.torch.triton.source import (
    HELD,
    STEP,
    LeafLayout,
    TileReduction,
    TritonKernel,
    write_kernel,
)

Tensor: TypeAlias = torch.Tensor
Ways = Sequence[tuple[LeafLayout, int]]
T = TypeVar("T")

_KEPT = 256  # kernels, each of some kilobytes
_SPAN = 1 << 14  # columns whose float32 products are added up before float64 takes over
_ENOUGH = 1024  # programs that fill any card
# Columns of V that one launch multiplies by: fewer where a formula of many leaves leaves no room.
_WIDTHS = (64, 16, 1)


class Tile(NamedTuple):
    """The tile of one program, and what runs it; registers of a thread, at most."""

    height: int
    width: int
    warps: int
    stages: int
    registers: int | None = None


# What is fastest on an H200, fastest first (benchmarks/card/tiles.py); the first that a card has
# room for is taken. Tiles are parts of a band of rows.
_TILES = {
    LeafLayout.PRODUCTS: (
        Tile(256, 64, 8, 2),
        Tile(128, 64, 8, 2),
        Tile(128, 32, 4, 2),
        Tile(64, 32, 4, 2),
        Tile(32, 32, 4, 1),
    ),
    LeafLayout.COLUMNS: (Tile(16, 512, 4, 2, 128), Tile(16, 256, 4, 2), Tile(16, 128, 4, 1)),
}
_MIXED = (Tile(32, 128, 2, 2), Tile(16, 256, 4, 2), Tile(16, 64, 2, 1))  # of both ways
SMALLEST_TILE = Tile(16, 128, 4, 2)  # features one by one, and three tiles of scores
# Two programs on a processor, one that multiplies while the other evaluates: of rows that leave
# room for both.
_SHALLOW, _SHALLOW_TILE = 224, Tile(128, 64, 4, 2)
_ZEROS_TILE = Tile(128, 64, 8, 2)  # of these where entries are compared with zero, and added up
_SHARED = 232448  # bytes of shared memory of an H200, where a card does not say


@lru_cache(maxsize=_KEPT)
def compiled(text: str) -> Any:
    """Return the function of a kernel's text."""
    name = f"<mercer kernel {abs(hash(text)):x}>"
    # Triton reads the text of a function from where Python says that it lies
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"triton": triton, "tl": tl, "__name__": __name__}
    exec(compile(text, name, "exec"), scope)
    return scope["kernel"]


def multiply(
    program: FlatProgram,
    arguments: list[Any],
    ways: Ways,
    shape: tuple[int, int],
    right: Tensor,
    zeros: bool = True,
) -> Tensor:
    """Return K right in float64: parts of the columns in float32, added up in float64.

    `zeros` says whether small distances are made zero; see `write_kernel`.
    """
    out = torch.empty((shape[0], right.shape[1]), dtype=torch.float64, device=right.device)
    for width in _WIDTHS:
        try:
            for begin in range(0, right.shape[1], width):
                deadline.check()
                some = right[:, begin : begin + width]
                out[:, begin : begin + width] = _product(
                    program, arguments, ways, shape, some, zeros
                )
        except OutOfResources:
            if width == _WIDTHS[-1]:
                raise
        else:
            break
    return out


def _product(
    program: FlatProgram,
    arguments: list[Any],
    ways: Ways,
    shape: tuple[int, int],
    right: Tensor,
    zeros: bool,
) -> Tensor:
    n, m = shape
    reduction = TileReduction.VECTOR if right.shape[1] == 1 else TileReduction.MATRIX
    wide = 1 if right.shape[1] == 1 else max(16, triton.next_power_of_2(right.shape[1]))

    def by(tile: Tile) -> Tensor:
        columns = triton.cdiv(m, tile.width) * tile.width
        V = torch.zeros((columns, wide), dtype=torch.float32, device=right.device)
        V[:m, : right.shape[1]] = right
        span = _span(n, columns, tile)
        parts = triton.cdiv(columns, span)
        out = torch.empty((parts, n, wide), dtype=torch.float32, device=right.device)
        outputs = (V, out, out, wide)
        sizes = (n, columns, 0, span, *outputs)
        _launch(program, arguments, ways, reduction, sizes, tile, wide, zeros=zeros)
        return out[:, :, : right.shape[1]].sum(dim=0, dtype=torch.float64)

    return _with_room(ways, wide, right.device, by, _ZEROS_TILE if zeros else _SHALLOW_TILE)


def write_rows(
    program: FlatProgram, arguments: list[Any], ways: Ways, shape: tuple[int, int], part: slice
) -> Tensor:
    """Return rows of K."""
    height, m = part.stop - part.start, shape[1]
    out = torch.empty((height, m), dtype=torch.float32, device=arguments[0].device)

    def by(tile: Tile) -> Tensor:
        columns = triton.cdiv(m, tile.width) * tile.width
        sizes = (height, columns, part.start, _span(height, columns, tile), out, out, out, m)
        _launch(program, arguments, ways, TileReduction.ROWS, sizes, tile, 1)
        return out

    return _with_room(ways, 1, out.device, by)


def find_nearest(
    program: FlatProgram, arguments: list[Any], ways: Ways, shape: tuple[int, int]
) -> Tensor:
    """Return the column of the smallest entry of each row, the first of equal ones."""
    n, m = shape
    device = arguments[0].device

    def by(tile: Tile) -> Tensor:
        columns = triton.cdiv(m, tile.width) * tile.width
        span = _span(n, columns, tile)
        parts = triton.cdiv(columns, span)
        values = torch.empty((parts, n), dtype=torch.float32, device=device)
        numbers = torch.empty((parts, n), dtype=torch.int64, device=device)
        sizes = (n, columns, 0, span, values, values, numbers, m)
        _launch(program, arguments, ways, TileReduction.NEAREST, sizes, tile, 1)
        best = values.min(dim=0)
        found = numbers.gather(0, best.indices[None])[0]
        return found.clamp_(max=m - 1)  # columns past the last are copies of it

    return _with_room(ways, 1, device, by)


def keep_smallest(
    program: FlatProgram, arguments: list[Any], ways: Ways, rows: int, buckets: Buckets
) -> tuple[Tensor, Tensor]:
    """Return the two smallest entries of each bucket of columns, and the least that is dropped."""
    scores, dropped = buckets.empty(rows, arguments[0].device)
    outputs = (scores, dropped, buckets.width)
    sizes = (rows, buckets.padded, 0, buckets.stride, buckets.mask, *outputs)
    grid = (triton.cdiv(rows, SMALLEST_TILE.height), buckets.parts)
    _launch(program, arguments, ways, TileReduction.SMALLEST, sizes, SMALLEST_TILE, 1, grid)
    return scores, dropped


def _with_room(
    ways: Ways,
    wide: int,
    device: Any,
    by: Callable[[Tile], T],
    shallow: Tile = _SHALLOW_TILE,
) -> T:
    """Return what a launch makes, by the first tile that the card has room for.

    What Triton takes is known when it has compiled a kernel; estimates only save the trials.
    """
    tiles = list(_tiles(ways, wide, device, shallow))
    for tile in tiles[:-1]:
        try:
            return by(tile)
        except OutOfResources:
            continue
    return by(tiles[-1])


def _tiles(ways: Ways, wide: int, device: Any, shallow: Tile) -> Iterator[Tile]:
    """Yield the tiles whose operands should fit the shared memory of the card, and the smallest."""
    held = sum(_held(way, depth) for way, depth in ways)
    stepped = any(way.is_product and depth > HELD for way, depth in ways)
    if LeafLayout.COLUMNS in dict(ways):
        tiles = _MIXED if held or stepped else _TILES[LeafLayout.COLUMNS]
    else:
        tiles = _TILES[LeafLayout.PRODUCTS]
        if held <= _SHALLOW and wide == 1 and not stepped:
            tiles = (shallow, *tiles[1:])
    room = _SHARED
    if device.type == "cuda":
        room = torch.cuda.get_device_properties(device).shared_memory_per_block_optin
    for tile in tiles:
        numbers = held * (tile.height + tile.stages * tile.width)
        if stepped:
            numbers += STEP * (2 * tile.stages - 1) * (tile.height + tile.width)
        # what Triton takes beside for several columns of V
        factors = 4 * wide * tile.width * (tile.stages + 1) + 512 if wide > 1 else 0
        if 2 * numbers + factors <= room or tile is tiles[-1]:
            yield tile


def _held(way: LeafLayout, depth: int) -> int:
    """Return how many 16-bit numbers of a row a program holds from beginning to end."""
    if not way.is_product or depth > HELD:
        return 0
    return 2 * depth if way is LeafLayout.SPLIT else depth


def _span(rows: int, columns: int, tile: Tile) -> int:
    """Return how many columns one program walks over: few where rows are few."""
    cdiv = triton.cdiv
    wanted = max(1, cdiv(_ENOUGH, cdiv(rows, tile.height)), cdiv(columns, _SPAN))
    return int(cdiv(cdiv(columns, wanted), tile.width) * tile.width)


def _launch(
    program: FlatProgram,
    arguments: list[Any],
    ways: Ways,
    reduction: TileReduction,
    sizes: tuple[Any, ...],
    tile: Tile,
    wide: int,
    grid: tuple[int, int] | None = None,
    zeros: bool = True,
) -> None:
    each, depths = [way for way, _ in ways], [depth for _, depth in ways]
    kernel: TritonKernel = write_kernel(program, each, depths, reduction, zeros)
    n, m, _, span = sizes[:4]
    grid = grid or (triton.cdiv(n, tile.height), triton.cdiv(m, span))
    with torch.cuda.device_of(arguments[0]):  # Triton launches on the current one
        compiled(kernel.text)[grid](
            *sizes,
            *arguments,
            *kernel.constants,
            BM=tile.height,
            BN=tile.width,
            KV=wide,
            num_warps=tile.warps,
            num_stages=tile.stages,
            **({} if tile.registers is None else {"maxnreg": tile.registers}),
        )
