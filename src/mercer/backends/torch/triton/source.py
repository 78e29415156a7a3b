"""Generate the source of a Triton kernel from a flat program: tiling, operations, reductions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from mercer.backends.lowering import Code, FlatProgram, Op
from mercer.expression import (
    AbsDist,
    ChiSq,
    Dot,
    MinSum,
    SqDist,
    Statistic,
    SubsetProduct,
    SymmetricSum,
)

# --- tiling --------------------------------------------------------------------------------------
#
# How features are laid out for a tile of rows: padded, and cut into pieces of tensor cores.

BAND = 512  # rows whose features lie together, one feature of all of them after the other
UNROLLED = 8  # features of a leaf by columns are padded to a multiple of this
STEP = 64  # features of a product at a time, where all of a row do not fit registers
HELD = 512  # features of a product that a tile of rows holds from beginning to end
_LEAST_PIECE = 16  # depth of the smallest product of tensor cores
_MOST_PIECE = 256


class LeafLayout(Enum):
    """How a leaf is compared."""

    PRODUCTS = "products"  # of 16-bit numbers as they lie
    SPLIT = "split"  # of 16-bit numbers h, and l beside them: three products
    SHARED = "shared"  # the product of another leaf, moved to its own origin
    COLUMNS = "columns"

    @property
    def is_product(self) -> bool:
        """Whether tensor cores multiply operands of this leaf."""
        return self in (LeafLayout.PRODUCTS, LeafLayout.SPLIT)


def padded_depth(way: LeafLayout, features: int) -> int:
    """Return how many features rows are padded to.

    Examples
    --------
    >>> padded_depth(LeafLayout.SPLIT, 90), padded_depth(LeafLayout.PRODUCTS, 700)
    (96, 704)
    """
    unit = UNROLLED
    if way.is_product:
        unit = _LEAST_PIECE if features <= HELD else STEP
    return max(unit, -(-features // unit) * unit)


def pieces(depth: int) -> list[tuple[int, int]]:
    """Cut a depth into powers of two, each with where it begins.

    Examples
    --------
    >>> pieces(272)
    [(0, 256), (256, 16)]
    """
    found, begin = [], 0
    while begin < depth:
        width = min(_MOST_PIECE, 1 << (depth - begin).bit_length() - 1)
        found.append((begin, width))
        begin += width
    return found


# --- operations ----------------------------------------------------------------------------------
#
# What operations on tiles are, as lines of a Triton kernel.

LOG2E = 1.4426950408889634


class KernelLines(Protocol):
    """The kernel that lines are written for.

    Attributes
    ----------
    program : Program
        What is evaluated.
    lines : list of str
        That an operation wants before its own.
    """

    program: FlatProgram
    lines: list[str]

    def constant(self, value: float) -> str:
        """Return the name of a constant."""

    def affine(self, op: Op, factor: float = 1.0) -> str:
        """Return c0 * a + c1, all times a factor."""

    def exponent(self, op: Op) -> str:
        """Return c0 * a + c1 in base 2."""


Verb = Callable[[Op, KernelLines], str]


def _sum(op: Op, text: KernelLines) -> str:
    total = f"{text.constant(op.c0)} * r{op.a} + {text.constant(op.c1)} * r{op.b}"
    return f"{total} + {text.constant(op.c2)}" if op.c2 else total


def _ratio(op: Op, text: KernelLines) -> str:
    a, b = f"r{op.a}", f"r{op.b}"
    both = f"({a} == 0.0) & ({b} == 0.0)"
    return f"tl.where({both}, 1.0, {a} / tl.where({both}, 1.0, {b}))"


def _whole_power(op: Op, text: KernelLines) -> str:
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


def _tanh(op: Op, text: KernelLines) -> str:
    """Divide exponentials; near zero, where these lose digits, take the series."""
    text.lines += [
        f"z = {text.affine(op)}",
        "zz = z * z",
        f"ze = tl.exp2({-2.0 * LOG2E} * tl.abs(z))",
        "far = tl.where(z < 0, -1.0, 1.0) * (1.0 - ze) / (1.0 + ze)",
        "near = z * (1.0 + zz * (-0.33333333 + zz * (0.13333333 - zz * 0.053968254)))",
    ]
    return "tl.where(zz < 0.04, near, far)"


def _polynomial(op: Op, text: KernelLines) -> str:
    x = text.affine(op)
    *lower, highest = text.program.coefficients[op.item : op.item + op.items]
    total = text.constant(highest)
    for coefficient in reversed(lower):
        total = f"({total} * {x} + {text.constant(coefficient)})"
    return total


VERBS: dict[Code, Verb] = {
    Code.FILL: lambda op, t: f"tl.zeros((BM, BN), tl.float32) + {t.constant(op.c0)}",
    Code.AFFINE: lambda op, t: t.affine(op),
    Code.SUM: _sum,
    Code.PRODUCT: lambda op, t: f"{t.constant(op.c0)} * r{op.a} * r{op.b}",
    Code.RATIO: _ratio,
    Code.EXP: lambda op, t: f"tl.exp2({t.exponent(op)})",
    Code.SQRT: lambda op, t: f"tl.sqrt({t.affine(op)})",
    Code.TANH: _tanh,
    Code.POWER: lambda op, t: f"tl.exp2({t.constant(op.c2)} * tl.log2({t.affine(op)}))",
    Code.WHOLE_POWER: _whole_power,
    Code.POLYNOMIAL: _polynomial,
    Code.ROW_PRODUCT: lambda op, t: f"u{op.item}[:, None] * w{op.item}[None, :]",
    Code.ROW_SUM: lambda op, t: f"u{op.item}[:, None] + w{op.item}[None, :]",
}


def exponents(program: FlatProgram) -> dict[int, Op]:
    """Return the exponential of each squared distance that nothing else reads."""
    found = {}
    for i, leaf in enumerate(program.leaves):
        readers = []
        for op in program.ops:
            if i in op.reads():
                readers.append(op)
            if op.out == i:  # from here on the register holds something else
                break
        if isinstance(leaf, SqDist) and [op.code for op in readers] == [Code.EXP]:
            found[i] = readers[0]
    return found


# --- feature steps -------------------------------------------------------------------------------
#
# What each statistic does with one feature of two rows, as lines of a Triton kernel.

# --- what a leaf does with one feature: lines before, for each feature, and after ---------------

Steps = tuple[list[str], list[str], list[str]]


def _added(term: str) -> Callable[[str, Statistic], Steps]:
    zeros = "tl.zeros((BM, BN), tl.float32)"
    return lambda r, leaf: ([f"{r} = {zeros}"], [f"{r} += {term}"], [])


def _squared_differences(r: str, leaf: Statistic) -> Steps:
    begin = [f"{r} = tl.zeros((BM, BN), tl.float32)"]
    return begin, ["c = a - b", f"{r} += c * c"], []


def _chi_square(r: str, leaf: Statistic) -> Steps:
    begin = [f"{r} = tl.zeros((BM, BN), tl.float32)"]
    return begin, ["c = a + b", f"{r} += (a - b) * (a - b) / tl.where(c > 0, c, 1.0)"], []


def _subsets(r: str, leaf: Statistic) -> Steps:
    return [f"{r} = tl.full((BM, BN), 1.0, tl.float32)"], [f"{r} *= 1.0 + a * b"], []


def _symmetric(r: str, leaf: Statistic) -> Steps:
    assert isinstance(leaf, SymmetricSum)
    begin = [f"{r}s{k} = tl.zeros((BM, BN), tl.float32)" for k in range(1, leaf.degree + 1)]
    step = [f"{r}s{k} += a * b * {r}s{k - 1}" for k in range(leaf.degree, 1, -1)]
    return begin, [*step, f"{r}s1 += a * b"], [f"{r} = {r}s{leaf.degree}"]


FEATURE_STEPS: dict[type[Statistic], Callable[[str, Statistic], Steps]] = {
    Dot: _added("a * b"),
    SqDist: _squared_differences,
    AbsDist: _added("tl.abs(a - b)"),
    MinSum: _added("tl.minimum(a, b)"),
    ChiSq: _chi_square,
    SubsetProduct: _subsets,
    SymmetricSum: _symmetric,
}


# --- reductions ----------------------------------------------------------------------------------
#
# What becomes of tiles, as lines of a Triton kernel: products, rows, nearest and near columns.


class TileReduction(Enum):
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
_REDUCTIONS: dict[TileReduction, Steps] = {
    TileReduction.VECTOR: (
        ["total = tl.zeros((BM, 8), tl.float32)"],
        [
            "parts = tl.reshape(r0 * tl.load(V + columns)[None, :], (BM, BN // 8, 8))",
            "total += tl.sum(parts, axis=1)",
        ],
        [f"tl.store(OUT + {_OUTPUT}, tl.sum(total, axis=1), mask=rows - first < n)"],
    ),
    TileReduction.MATRIX: (
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
    TileReduction.ROWS: (
        [],
        [
            "where = (rows - first)[:, None] * width + columns[None, :]",
            "known = (rows - first < n)[:, None] & (columns < width)[None, :]",
            "tl.store(OUT + where, r0, mask=known)",
        ],
        [],
    ),
    TileReduction.NEAREST: (
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
    TileReduction.SMALLEST: (
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


def lines_of(reduction: TileReduction, ways: Sequence[LeafLayout]) -> Steps:
    """Return the lines of a reduction for leaves that are compared in such ways."""
    if reduction is TileReduction.VECTOR and LeafLayout.COLUMNS in ways:
        return _BY_TILE
    return _REDUCTIONS[reduction]


def walk_of(reduction: TileReduction) -> str:
    """Return where the tiles of a program start."""
    return _DEALT if reduction is TileReduction.SMALLEST else _WALK


# --- source --------------------------------------------------------------------------------------
#
# From a flat program to the text of one Triton kernel: tiles are compared, evaluated and reduced.
#
# The text depends on the shape of the formula alone; its constants are arguments, so that a
# kernel is compiled once for all scales of a search. One program of the grid holds a tile of rows
# and walks over the columns of its part; nothing of the matrix is written to memory unless rows
# are asked for.
#
# Rows and columns are padded by copies of the last ones, and features by zeros, so that loads
# need no masks. Leaves are compared in one of four ways (`Way`):
#
# products
#     one matrix product of 16-bit operands on the tensor cores, float32 sums (`Dot`, `SqDist`);
# split
#     three such products of operands h + l, the small ones first: tensor cores cut off what does not  # noqa: E501
#     fit beside the sum so far;
# shared
#     a `Dot` of rows whose distances are compared, too: their product about the centre c serves both,  # noqa: E501
#     x.y = (x - c).(y - c) + u + w with a number u of each row and w of each column;
# columns
#     feature by feature in float32 (all statistics).

_MOST_POWER = 64  # by repeated multiplication
_MOST_DEGREE = 4  # of symmetric sums: each degree takes a tile of registers
_NUMBERS = "tl.arange(0, BN)"
_ARGUMENTS = {
    LeafLayout.PRODUCTS: ("X", "Y", "HX", "HY", "f", "t"),
    LeafLayout.SPLIT: ("X", "Y", "HX", "HY", "f", "t"),
    LeafLayout.SHARED: ("HX", "HY", "f"),
    LeafLayout.COLUMNS: ("X", "Y"),
}


@dataclass(frozen=True)
class TritonKernel:
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


def is_expressible(program: FlatProgram) -> bool:
    """Return whether all of a program can be evaluated by a kernel."""
    small = all(abs(op.item) <= _MOST_POWER for op in program.ops if op.code == Code.WHOLE_POWER)
    sums = [leaf.degree for leaf in program.leaves if isinstance(leaf, SymmetricSum)]
    return small and not program.externals and max(sums, default=0) <= _MOST_DEGREE


def write_kernel(
    program: FlatProgram,
    ways: Sequence[LeafLayout],
    depths: Sequence[int],
    reduction: TileReduction,
    zeros: bool = True,
) -> TritonKernel:
    """Write the kernel of a program.

    Parameters
    ----------
    program : Program
        What is evaluated.
    ways : sequence of Way
        How each leaf is compared.
    depths : sequence of int
        Padded numbers of features of each leaf, as `padded_depth` gives them; for one that shares a
        product, the number of the other leaf.
    reduction : Reduction
        What becomes of tiles.
    zeros : bool
        Whether distances that products cannot tell from zero are zero, also where nothing but an
        exponential reads them.
    """
    text = _TritonText(program, ways, depths, zeros)
    before, inside, after = lines_of(reduction, ways)
    arguments = ["n", "m", "first", "span", "V", "OUT", "NUMBERS", "width", *text.pointers()]
    head = list(text.before())
    tiles = [*text.leaves(), *text.operations(), *inside]
    constants = [f"k{i}" for i in range(len(text.constants))]
    sizes = [f"{name}: tl.constexpr" for name in ("BM", "BN", "KV")]
    lines = [
        "@triton.jit",
        f"def kernel({', '.join([*arguments, *constants, *sizes])}):",
        "    rows = (first + tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)",
        "    begin = tl.program_id(1) * span",
        "    end = tl.minimum(begin + span, m)",
        f"    across = {_across(ways)}",
        *(f"    {line}" for line in [*head, *before]),
        f"    for start in {walk_of(reduction)}:",
        "        columns = (start + across).to(tl.int64)",
        *(f"        {line}" for line in tiles),
        *(f"    {line}" for line in after),
    ]
    return TritonKernel("\n".join(lines) + "\n", tuple(text.constants))


def _across(ways: Sequence[LeafLayout]) -> str:
    """Return the numbers of the columns of a tile.

    Where features are compared one by one, four neighbours that one thread loads at a time would
    have to be dealt out to others for every feature: Triton is not to know that they are such.
    """
    return f"tl.max_contiguous({_NUMBERS}, 1)" if LeafLayout.COLUMNS in ways else _NUMBERS


class _TritonText:
    """Lines of a kernel, and the constants that they speak of."""

    def __init__(
        self, program: FlatProgram, ways: Sequence[LeafLayout], depths: Sequence[int], zeros: bool
    ) -> None:
        self.program, self.ways, self.depths, self.zeros = program, ways, depths, zeros
        self.exponents = exponents(program)
        self.constants: list[float] = []
        self.lines: list[str] = []  # that an operation wants before its own

    def constant(self, value: float) -> str:
        self.constants.append(float(value))
        return f"k{len(self.constants) - 1}"

    def pointers(self) -> Iterator[str]:
        for i, way in enumerate(self.ways):
            yield from (f"{name}{i}" for name in _ARGUMENTS[way])
        for i in range(len(self.program.row_terms)):
            yield from (f"U{i}", f"W{i}")

    # --- what a tile of rows loads once ----------------------------------------------------------

    def before(self) -> Iterator[str]:
        for i, (leaf, way, depth) in enumerate(self._parts()):
            if way is LeafLayout.COLUMNS:
                yield f"px{i} = X{i} + (rows // {BAND}) * {depth * BAND} + rows % {BAND}"
            if way is LeafLayout.SHARED or (way.is_product and isinstance(leaf, SqDist)):
                yield f"hx{i} = tl.load(HX{i} + rows)"
            if way.is_product and depth <= HELD:
                across, places = _held(way, depth)
                for begin, width in places:
                    where = f"rows[:, None] * {across} + ({begin} + tl.arange(0, {width}))[None, :]"
                    yield f"x{i}_{begin} = tl.load(X{i} + {where})"
        for i in range(len(self.program.row_terms)):
            yield f"u{i} = tl.load(U{i} + rows)"

    # --- leaves ----------------------------------------------------------------------------------

    def leaves(self) -> Iterator[str]:
        yield from self._compared()
        for i, (leaf, way, other) in enumerate(self._parts()):
            if way is LeafLayout.SHARED:
                yield f"hy{i} = tl.load(HY{i} + columns)"
                yield f"r{i} = f{i} * p{other} + (hx{i}[:, None] + hy{i}[None, :])"
            elif way.is_product and isinstance(leaf, SqDist):
                yield from self._squared_distance(i)
            elif way.is_product:
                yield f"r{i} = f{i} * p{i}"
        for i in range(len(self.program.row_terms)):
            yield f"w{i} = tl.load(W{i} + columns)"

    def _compared(self) -> Iterator[str]:
        # features first: products would take registers all the while
        for i, (leaf, way, depth) in enumerate(self._parts()):
            if way is LeafLayout.COLUMNS:
                yield from self._by_columns(i, leaf, depth)
        for i, (_, way, depth) in enumerate(self._parts()):
            if way.is_product and depth <= HELD:
                yield from _held_product(i, way, depth)
            elif way.is_product:
                yield from _stepped_product(i, depth)

    def _squared_distance(self, i: int) -> Iterator[str]:
        """Take a product from squared lengths; all times a factor where an exponential follows."""
        op = self.exponents.get(i)
        k = "" if op is None else f"{self.constant(op.c0 * LOG2E)} * "
        more = "<" if op is not None and op.c0 < 0 else ">"
        yield f"hy{i} = {k}tl.load(HY{i} + columns)"
        yield f"h{i} = ({k}hx{i})[:, None] + hy{i}[None, :]"
        yield f"r{i} = h{i} - ({k}f{i}) * p{i}"
        if op is None or self.zeros:
            yield f"r{i} = tl.where(r{i} {more} t{i} * h{i}, r{i}, 0.0)"

    def _by_columns(self, i: int, leaf: Statistic, depth: int) -> Iterator[str]:
        begin, step, end = FEATURE_STEPS[type(leaf)](f"r{i}", leaf)
        yield from begin
        # a tile of columns lies in one band
        yield f"band = tl.zeros((), tl.int64) + start // {BAND}"
        yield f"py{i} = Y{i} + band * {depth * BAND} + start % {BAND}"
        yield f"for k in range(0, {depth}, {UNROLLED}):"
        yield f"    for j in tl.static_range({UNROLLED}):"
        # names of their own: Triton wants a name to keep its type through a loop
        yield f"        a = tl.load(px{i} + (k + j) * {BAND})[:, None]"
        yield f"        b = tl.load(py{i} + (k + j) * {BAND} + across)[None, :]"
        yield from (f"        {line}" for line in step)
        yield from end

    # --- operations ------------------------------------------------------------------------------

    def operations(self) -> Iterator[str]:
        for op in self.program.ops:
            self.lines.clear()
            result = VERBS[Code(op.code)](op, self)
            yield from self.lines
            yield f"r{op.out} = {result}"

    def exponent(self, op: Op) -> str:
        """Return c0 * a + c1 in base 2; squared distances come with c0."""
        known = any(op is other for other in self.exponents.values())
        if known and self.ways[op.a].is_product:
            op = op._replace(c0=1.0 / LOG2E)
        return self.affine(op, LOG2E)

    def affine(self, op: Op, factor: float = 1.0) -> str:
        """Return c0 * a + c1, all times a factor."""
        text = f"r{op.a}"
        if op.c0 * factor != 1.0:
            text = f"{self.constant(op.c0 * factor)} * {text}"
        return f"({text} + {self.constant(op.c1 * factor)})" if op.c1 else f"({text})"

    def _parts(self) -> Iterator[tuple[Statistic, LeafLayout, int]]:
        yield from zip(self.program.leaves, self.ways, self.depths, strict=True)


def _held(way: LeafLayout, depth: int) -> tuple[int, list[tuple[int, int]]]:
    """Return how far rows are from one another, and the pieces of each that are loaded."""
    high = pieces(depth)
    if way is not LeafLayout.SPLIT:
        return depth, high
    return 2 * depth, [*high, *((depth + begin, width) for begin, width in high)]


def _held_product(i: int, way: LeafLayout, depth: int) -> Iterator[str]:
    across, places = _held(way, depth)
    for begin, width in places:
        where = f"columns[None, :] * {across} + ({begin} + tl.arange(0, {width}))[:, None]"
        yield f"y{i}_{begin} = tl.load(Y{i} + {where})"
    terms = [(depth, 0), (0, depth), (0, 0)] if way is LeafLayout.SPLIT else [(0, 0)]
    total = ""
    for left, right in terms:
        for begin, _ in pieces(depth):
            yield f"p{i} = tl.dot(x{i}_{left + begin}, y{i}_{right + begin}{total})"
            total = f", p{i}"


def _stepped_product(i: int, depth: int) -> Iterator[str]:
    yield f"p{i} = tl.zeros((BM, BN), tl.float32)"
    yield f"for k in range(0, {depth}, {STEP}):"
    yield f"    inner = k + tl.arange(0, {STEP})"
    yield f"    left = tl.load(X{i} + rows[:, None] * {depth} + inner[None, :])"
    yield f"    right = tl.load(Y{i} + columns[None, :] * {depth} + inner[:, None])"
    yield f"    p{i} = tl.dot(left, right, p{i})"
