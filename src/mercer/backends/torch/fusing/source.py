"""From a flat program to the text of one Triton kernel: tiles are compared, evaluated and reduced.

The text depends on the shape of the formula alone; its constants are arguments, so that a kernel is
compiled once for all scales of a search. One program of the grid holds a tile of rows and walks
over the columns of its part; nothing of the matrix is written to memory unless rows are asked for.

Rows and columns are padded by copies of the last ones, and features by zeros, so that loads need no
masks. Leaves are compared in one of four ways (`Way`):

products
    one matrix product of 16-bit operands on the tensor cores, float32 sums (`Dot`, `SqDist`);
split
    three such products of operands h + l, the small ones first: tensor cores cut off what does not
    fit beside the sum so far;
shared
    a `Dot` of rows whose distances are compared, too: their product about the centre c serves both,
    x.y = (x - c).(y - c) + u + w with a number u of each row and w of each column;
columns
    feature by feature in float32 (all statistics).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mercer.backends.lowering.program import Code, Op, Program
from mercer.backends.torch.fusing.feature_steps import FEATURE_STEPS
from mercer.backends.torch.fusing.operations import LOG2E, VERBS, exponents
from mercer.backends.torch.fusing.reductions import Reduction, lines_of, walk_of
from mercer.backends.torch.fusing.tiling import BAND, HELD, STEP, UNROLLED, Way, pieces
from mercer.expression import (
    SqDist,
    Statistic,
    SymmetricSum,
)

_MOST_POWER = 64  # by repeated multiplication
_MOST_DEGREE = 4  # of symmetric sums: each degree takes a tile of registers
_NUMBERS = "tl.arange(0, BN)"
_ARGUMENTS = {
    Way.PRODUCTS: ("X", "Y", "HX", "HY", "f", "t"),
    Way.SPLIT: ("X", "Y", "HX", "HY", "f", "t"),
    Way.SHARED: ("HX", "HY", "f"),
    Way.COLUMNS: ("X", "Y"),
}


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
    program: Program,
    ways: Sequence[Way],
    depths: Sequence[int],
    reduction: Reduction,
    zeros: bool = True,
) -> Kernel:
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
    text = _Text(program, ways, depths, zeros)
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
    return Kernel("\n".join(lines) + "\n", tuple(text.constants))


def _across(ways: Sequence[Way]) -> str:
    """Return the numbers of the columns of a tile.

    Where features are compared one by one, four neighbours that one thread loads at a time would
    have to be dealt out to others for every feature: Triton is not to know that they are such.
    """
    return f"tl.max_contiguous({_NUMBERS}, 1)" if Way.COLUMNS in ways else _NUMBERS


class _Text:
    """Lines of a kernel, and the constants that they speak of."""

    def __init__(
        self, program: Program, ways: Sequence[Way], depths: Sequence[int], zeros: bool
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
            if way is Way.COLUMNS:
                yield f"px{i} = X{i} + (rows // {BAND}) * {depth * BAND} + rows % {BAND}"
            if way is Way.SHARED or (way.is_product and isinstance(leaf, SqDist)):
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
            if way is Way.SHARED:
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
            if way is Way.COLUMNS:
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

    def _parts(self) -> Iterator[tuple[Statistic, Way, int]]:
        yield from zip(self.program.leaves, self.ways, self.depths, strict=True)


def _held(way: Way, depth: int) -> tuple[int, list[tuple[int, int]]]:
    """Return how far rows are from one another, and the pieces of each that are loaded."""
    high = pieces(depth)
    if way is not Way.SPLIT:
        return depth, high
    return 2 * depth, [*high, *((depth + begin, width) for begin, width in high)]


def _held_product(i: int, way: Way, depth: int) -> Iterator[str]:
    across, places = _held(way, depth)
    for begin, width in places:
        where = f"columns[None, :] * {across} + ({begin} + tl.arange(0, {width}))[:, None]"
        yield f"y{i}_{begin} = tl.load(Y{i} + {where})"
    terms = [(depth, 0), (0, depth), (0, 0)] if way is Way.SPLIT else [(0, 0)]
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
