"""From a flat program to the text of one Triton kernel: tiles are compared, evaluated and reduced.

The text depends on the shape of the formula alone; its constants are arguments, so that a kernel is
compiled once for all scales of a search. One program of the grid holds a tile of rows and walks
over the columns of its part; nothing of the matrix is written to memory unless rows are asked for.

Rows and columns are padded by copies of the last ones, and features by zeros, so that loads need no
masks. Leaves are compared in one of two ways (`Way`):

products
    one matrix product of 16-bit operands on the tensor cores, float32 sums (`Dot`, `SqDist`);
columns
    feature by feature in float32 (all statistics).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from mercer.backends.lowering.program import Code, Op, Program
from mercer.backends.torch.fusing.feature_steps import FEATURE_STEPS, Steps
from mercer.backends.torch.fusing.tiling import BAND, HELD, STEP, UNROLLED, Way, pieces
from mercer.expression import (
    SqDist,
    Statistic,
    SymmetricSum,
)

_MOST_POWER = 64  # by repeated multiplication
_MOST_DEGREE = 4  # of symmetric sums: each degree takes a tile of registers
_LOG2E = 1.4426950408889634


class Reduction(Enum):
    """What becomes of a tile."""

    VECTOR = "vector"  # times one column, summed
    MATRIX = "matrix"  # times several columns, by tensor cores
    ROWS = "rows"  # written out
    NEAREST = "nearest"  # the smallest entry of each row, and its number


@dataclass(frozen=True)
class Kernel:
    """A kernel as text.

    Attributes
    ----------
    text : str
        The function `kernel`; it needs `triton` and `tl`.
    constants : tuple of float
        The last arguments.
    """

    text: str
    constants: tuple[float, ...]


def is_expressible(program: Program) -> bool:
    """Return whether all of a program can be evaluated by a kernel."""
    small = all(abs(op.item) <= _MOST_POWER for op in program.ops if op.code == Code.WHOLE_POWER)
    sums = [leaf.degree for leaf in program.leaves if isinstance(leaf, SymmetricSum)]
    return small and not program.externals and max(sums, default=0) <= _MOST_DEGREE


def write_kernel(
    program: Program, ways: Sequence[Way], depths: Sequence[int], reduction: Reduction
) -> Kernel:
    """Write the kernel of a program.

    Parameters
    ----------
    program : Program
        What is evaluated.
    ways : sequence of Way
        How each leaf is compared.
    depths : sequence of int
        Padded numbers of features of each leaf, as `padded_depth` gives them.
    reduction : Reduction
        What becomes of tiles.
    """
    text = _Text(program, ways, depths)
    before, inside, after = _REDUCTIONS[reduction]
    arguments = ["n", "m", "first", "span", "V", "OUT", "NUMBERS", "width", *text.pointers()]
    head = list(text.before())
    tiles = [*text.leaves(), *text.operations()]
    constants = [f"k{i}" for i in range(len(text.constants))]
    sizes = [f"{name}: tl.constexpr" for name in ("BM", "BN", "KV")]
    lines = [
        "@triton.jit",
        f"def kernel({', '.join([*arguments, *constants, *sizes])}):",
        "    rows = (first + tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)",
        "    begin = tl.program_id(1) * span",
        "    end = tl.minimum(begin + span, m)",
        *(f"    {line}" for line in [*head, *before]),
        "    for start in range(begin, end, BN):",
        "        columns = (start + tl.arange(0, BN)).to(tl.int64)",
        *(f"        {line}" for line in [*tiles, *inside]),
        *(f"    {line}" for line in after),
    ]
    return Kernel("\n".join(lines) + "\n", tuple(text.constants))


class _Text:
    """Lines of a kernel, and the constants that they speak of."""

    def __init__(self, program: Program, ways: Sequence[Way], depths: Sequence[int]) -> None:
        self.program, self.ways, self.depths = program, ways, depths
        self.constants: list[float] = []
        self.lines: list[str] = []  # that an operation wants before its own

    def constant(self, value: float) -> str:
        self.constants.append(float(value))
        return f"k{len(self.constants) - 1}"

    def pointers(self) -> Iterator[str]:
        for i, way in enumerate(self.ways):
            more = ("HX", "HY", "f", "t") if way is Way.PRODUCTS else ()
            yield from (f"{name}{i}" for name in ("X", "Y", *more))
        for i in range(len(self.program.row_terms)):
            yield from (f"U{i}", f"W{i}")

    # --- what a tile of rows loads once ----------------------------------------------------------

    def before(self) -> Iterator[str]:
        for i, (leaf, way, depth) in enumerate(self._parts()):
            if way is Way.COLUMNS:
                yield f"px{i} = X{i} + (rows // {BAND}) * {depth * BAND} + rows % {BAND}"
            if way is Way.PRODUCTS and isinstance(leaf, SqDist):
                yield f"hx{i} = tl.load(HX{i} + rows)"
            if way is Way.PRODUCTS and depth <= HELD:
                for begin, width in pieces(depth):
                    where = f"rows[:, None] * {depth} + ({begin} + tl.arange(0, {width}))[None, :]"
                    yield f"x{i}_{begin} = tl.load(X{i} + {where})"
        for i in range(len(self.program.row_terms)):
            yield f"u{i} = tl.load(U{i} + rows)"

    # --- leaves ----------------------------------------------------------------------------------

    def leaves(self) -> Iterator[str]:
        for i, (leaf, way, depth) in enumerate(self._parts()):
            if way is Way.COLUMNS:
                yield from self._by_columns(i, leaf, depth)
                continue
            yield from _held_product(i, depth) if depth <= HELD else _stepped_product(i, depth)
            if isinstance(leaf, SqDist):
                yield f"hy{i} = tl.load(HY{i} + columns)"
                yield f"h{i} = hx{i}[:, None] + hy{i}[None, :]"
                yield f"r{i} = h{i} - f{i} * r{i}"
                yield f"r{i} = tl.where(r{i} > t{i} * h{i}, r{i}, 0.0)"
            else:
                yield f"r{i} = f{i} * r{i}"
        for i in range(len(self.program.row_terms)):
            yield f"w{i} = tl.load(W{i} + columns)"

    def _by_columns(self, i: int, leaf: Statistic, depth: int) -> Iterator[str]:
        begin, step, end = FEATURE_STEPS[type(leaf)](f"r{i}", leaf)
        yield from begin
        yield f"py{i} = Y{i} + (columns // {BAND}) * {depth * BAND} + columns % {BAND}"
        yield f"for k in range(0, {depth}, {UNROLLED}):"
        yield f"    for j in tl.static_range({UNROLLED}):"
        # names of their own: Triton wants a name to keep its type through a loop
        yield f"        a = tl.load(px{i} + (k + j) * {BAND})[:, None]"
        yield f"        b = tl.load(py{i} + (k + j) * {BAND})[None, :]"
        yield from (f"        {line}" for line in step)
        yield from end

    # --- operations ------------------------------------------------------------------------------

    def operations(self) -> Iterator[str]:
        for op in self.program.ops:
            self.lines.clear()
            result = _VERBS[Code(op.code)](op, self)
            yield from self.lines
            yield f"r{op.out} = {result}"

    def affine(self, op: Op, factor: float = 1.0) -> str:
        """Return c0 * a + c1, all times a factor."""
        text = f"r{op.a}"
        if op.c0 * factor != 1.0:
            text = f"{self.constant(op.c0 * factor)} * {text}"
        return f"({text} + {self.constant(op.c1 * factor)})" if op.c1 else f"({text})"

    def _parts(self) -> Iterator[tuple[Statistic, Way, int]]:
        yield from zip(self.program.leaves, self.ways, self.depths, strict=True)


def _held_product(i: int, depth: int) -> Iterator[str]:
    total = ""
    for begin, width in pieces(depth):
        where = f"columns[None, :] * {depth} + ({begin} + tl.arange(0, {width}))[:, None]"
        yield f"y{i}_{begin} = tl.load(Y{i} + {where})"
        yield f"r{i} = tl.dot(x{i}_{begin}, y{i}_{begin}{total})"
        total = f", r{i}"


def _stepped_product(i: int, depth: int) -> Iterator[str]:
    yield f"r{i} = tl.zeros((BM, BN), tl.float32)"
    yield f"for k in range(0, {depth}, {STEP}):"
    yield f"    inner = k + tl.arange(0, {STEP})"
    yield f"    left = tl.load(X{i} + rows[:, None] * {depth} + inner[None, :])"
    yield f"    right = tl.load(Y{i} + columns[None, :] * {depth} + inner[:, None])"
    yield f"    r{i} = tl.dot(left, right, r{i})"


# --- operations on tiles -----------------------------------------------------------------------

_Verb = Callable[[Op, _Text], str]


def _sum(op: Op, text: _Text) -> str:
    total = f"{text.constant(op.c0)} * r{op.a} + {text.constant(op.c1)} * r{op.b}"
    return f"{total} + {text.constant(op.c2)}" if op.c2 else total


def _ratio(op: Op, text: _Text) -> str:
    a, b = f"r{op.a}", f"r{op.b}"
    both = f"({a} == 0.0) & ({b} == 0.0)"
    return f"tl.where({both}, 1.0, {a} / tl.where({both}, 1.0, {b}))"


def _whole_power(op: Op, text: _Text) -> str:
    """Square repeatedly, in lines before the one that multiplies."""
    power, square, factors = abs(op.item), "z", []
    text.lines.append(f"z = {text.affine(op)}")
    while power:
        if power & 1:
            factors.append(square)
        power >>= 1
        if power:
            text.lines.append(f"{square}z = {square} * {square}")
            square += "z"
    value = " * ".join(factors) or "(z * 0.0 + 1.0)"
    return f"1.0 / ({value})" if op.item < 0 else value


def _tanh(op: Op, text: _Text) -> str:
    """Divide exponentials; near zero, where these lose digits, take the series."""
    text.lines += [
        f"z = {text.affine(op)}",
        "zz = z * z",
        f"ze = tl.exp2({-2.0 * _LOG2E} * tl.abs(z))",
        "far = tl.where(z < 0, -1.0, 1.0) * (1.0 - ze) / (1.0 + ze)",
        "near = z * (1.0 + zz * (-0.33333333 + zz * (0.13333333 - zz * 0.053968254)))",
    ]
    return "tl.where(zz < 0.04, near, far)"


def _polynomial(op: Op, text: _Text) -> str:
    x = text.affine(op)
    *lower, highest = text.program.coefficients[op.item : op.item + op.items]
    total = text.constant(highest)
    for coefficient in reversed(lower):
        total = f"({total} * {x} + {text.constant(coefficient)})"
    return total


_VERBS: dict[Code, _Verb] = {
    Code.FILL: lambda op, t: f"tl.zeros((BM, BN), tl.float32) + {t.constant(op.c0)}",
    Code.AFFINE: lambda op, t: t.affine(op),
    Code.SUM: _sum,
    Code.PRODUCT: lambda op, t: f"{t.constant(op.c0)} * r{op.a} * r{op.b}",
    Code.RATIO: _ratio,
    Code.EXP: lambda op, t: f"tl.exp2({t.affine(op, _LOG2E)})",
    Code.SQRT: lambda op, t: f"tl.sqrt({t.affine(op)})",
    Code.TANH: _tanh,
    Code.POWER: lambda op, t: f"tl.exp2({t.constant(op.c2)} * tl.log2({t.affine(op)}))",
    Code.WHOLE_POWER: _whole_power,
    Code.POLYNOMIAL: _polynomial,
    Code.ROW_PRODUCT: lambda op, t: f"u{op.item}[:, None] * w{op.item}[None, :]",
    Code.ROW_SUM: lambda op, t: f"u{op.item}[:, None] + w{op.item}[None, :]",
}


# --- reductions: lines before the walk over columns, in it, and after ---------------------------

_OUTPUT = "(tl.program_id(1).to(tl.int64) * n + rows - first)"
_REDUCTIONS: dict[Reduction, Steps] = {
    Reduction.VECTOR: (
        ["total = tl.zeros((BM, BN), tl.float32)"],
        ["total += r0 * tl.load(V + columns)[None, :]"],
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
}
