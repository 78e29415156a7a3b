"""What becomes of tiles, as lines of a Triton kernel: products, rows, nearest and near columns."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from mercer.backends.torch.fusing.feature_steps import Steps
from mercer.backends.torch.fusing.tiling import Way


class Reduction(Enum):
    """What becomes of a tile."""

    VECTOR = "vector"  # times one column, summed
    MATRIX = "matrix"  # times several columns, by tensor cores
    ROWS = "rows"  # written out
    NEAREST = "nearest"  # the smallest entry of each row, and its number
    SMALLEST = "smallest"  # the two smallest entries of each bucket of columns


FAR = 3e38  # the score of no column: finite, since its last bits are replaced
# Of each lane the two smallest scores are kept, the number of the step in their last bits, and of
# the others the smallest of all lanes. What is undefined or infinite is dropped.
TWO_OF_EACH: Steps = (
    [
        *(f"{name} = tl.full((BM, BN), {FAR}, tl.float32)" for name in ("best", "second", "third")),
        "step = tl.program_id(1) * 0",
    ],
    [
        "score = (score.to(tl.int32, bitcast=True) & kept | step).to(tl.float32, bitcast=True)",
        "step += 1",
        "after = tl.maximum(best, score)",
        "best = tl.minimum(best, score)",
        "third = tl.minimum(third, tl.maximum(second, after))",
        "second = tl.minimum(second, after)",
    ],
    [
        "tl.store(out, best, mask=here[:, None])",
        "tl.store(out + BN, second, mask=here[:, None])",
        "tl.store(dropped, tl.min(third, axis=1), mask=here)",
    ],
)

# Lines before the walk over columns, in it, and after. Tensor cores leave every eighth column, and
# the next one, of a row to one thread, which adds these up alone: sums take two registers a row.
_OUTPUT = "(tl.program_id(1).to(tl.int64) * n + rows - first)"
_REDUCTIONS: dict[Reduction, Steps] = {
    Reduction.VECTOR: (
        ["total = tl.zeros((BM, 8), tl.float32)"],
        [
            "parts = tl.reshape(r0 * tl.load(V + columns)[None, :], (BM, BN // 8, 8))",
            "total += tl.sum(parts, axis=1)",
        ],
        [f"tl.store(OUT + {_OUTPUT}, tl.sum(total, axis=1), mask=rows - first < n)"],
    ),
    Reduction.MATRIX: (
        ["total = tl.zeros((BM, KV), tl.float32)", "wide = tl.arange(0, KV)"],
        [
            "v = tl.load(V + columns[:, None] * KV + wide[None, :])",
            'total = tl.dot(r0, v, total, input_precision="tf32x3")',
        ],
        [
            f"where = {_OUTPUT}[:, None] * KV + wide[None, :]",
            "tl.store(OUT + where, total, mask=(rows - first < n)[:, None])",
        ],
    ),
    Reduction.ROWS: (
        [],
        [
            "where = (rows - first)[:, None] * width + columns[None, :]",
            "known = (rows - first < n)[:, None] & (columns < width)[None, :]",
            "tl.store(OUT + where, r0, mask=known)",
        ],
        [],
    ),
    Reduction.NEAREST: (
        ['best = tl.full((BM,), float("inf"), tl.float32)', "number = tl.zeros((BM,), tl.int64)"],
        [
            "least, place = tl.min(r0, axis=1, return_indices=True)",
            "number = tl.where(least < best, start + place, number)",
            "best = tl.minimum(least, best)",
        ],
        [
            f"tl.store(OUT + {_OUTPUT}, best, mask=rows - first < n)",
            f"tl.store(NUMBERS + {_OUTPUT}, number, mask=rows - first < n)",
        ],
    ),
    Reduction.SMALLEST: (
        ["kept = V", *TWO_OF_EACH[0]],
        ["score = r0", *TWO_OF_EACH[1]],
        [
            "here = rows - first < n",
            "lane = 2 * tl.program_id(1) * BN + across",
            "out = OUT + (rows - first)[:, None] * width + lane[None, :]",
            "dropped = NUMBERS + (rows - first) * tl.num_programs(1) + tl.program_id(1)",
            *TWO_OF_EACH[2],
        ],
    ),
}
# How a program walks over columns: those of its part one after the other, or tiles dealt out.
_WALK, _DEALT = "range(begin, end, BN)", "range(tl.program_id(1) * BN, m, span)"

# Where features are compared one by one there are no registers for a second tile of sums, and work
# enough between two tiles for what threads add up together.
_BY_TILE: Steps = (
    ["total = tl.zeros((BM,), tl.float32)"],
    ["total += tl.sum(r0 * tl.load(V + columns)[None, :], axis=1)"],
    [f"tl.store(OUT + {_OUTPUT}, total, mask=rows - first < n)"],
)


def lines_of(reduction: Reduction, ways: Sequence[Way]) -> Steps:
    """Return the lines of a reduction for leaves that are compared in such ways."""
    if reduction is Reduction.VECTOR and Way.COLUMNS in ways:
        return _BY_TILE
    return _REDUCTIONS[reduction]


def walk_of(reduction: Reduction) -> str:
    """Return where the tiles of a program start."""
    return _DEALT if reduction is Reduction.SMALLEST else _WALK
