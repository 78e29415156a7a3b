"""Evaluate flat programs on tensors in float64, with host functions and integer-valued rows."""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property, singledispatch
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from mercer import deadline
from mercer.array_types import Array, Index, Points
from mercer.backends.lowering import Code, FlatProgram, Op
from mercer.backends.operands import operand
from mercer.backends.reference.evaluate import evaluate, matern_profile
from mercer.backends.torch.device import Device, to_host
from mercer.expression import (
    AbsDist,
    ChiSq,
    Dot,
    Expression,
    MaternProfile,
    MinSum,
    Opaque,
    SqDist,
    Statistic,
    SubsetProduct,
    SymmetricSum,
)
from mercer.rows.device_rows import CardRows
from mercer.rows.devices import current_place
from mercer.rows.points import is_sparse, take, to_dense

# --- whole numbers -------------------------------------------------------------------------------
#
# Rows whose entries are whole multiples of one unit, as those of images: their exact distances.
#
# An image stores a pixel as one of 256 levels. Whatever it was divided by afterwards, rows are
#
#     x = low + unit * k,    k = 0 ... 255,
#
# and a squared distance is unit^2 |k - k'|^2. With 128 taken off, k fits 8 bits with a sign, and
# tensor cores add up products of these in 32-bit integers, twice as fast as those of 16-bit
# numbers: every digit of |k - k'|^2 is right, since it is at most d 255^2 < 2^31. What is lost is
# the rounding of x itself: how far it is from low + unit * k is looked at for every entry, and
# may be a unit in the last place of the largest (float32; a few of float64), or of what rows span
# where that is less. So distances have as many digits as the rows. MNIST over 255: relative
# errors of 3e-16, and of 2e-8 where rows are float32.

Tensor: TypeAlias = torch.Tensor

_LEVELS = 255  # of a pixel, beside the darkest
_MIDDLE = 128  # what is taken off, so that 8 bits with a sign hold the rest
_ROUNDINGS = 8  # of float64, in the largest entry: a division, a subtraction, another division
_LOOKED_AT = 64  # rows that tell of most tables that they are no images
DEPTH = 128  # features that a kernel multiplies at a time; libraries want multiples of 16
_ROWS = 32  # more than there are: the library takes 17 at least, and multiples of 8
_DEEPEST = 1 << 15  # features: of more, squared distances may pass 2^31
_SQUARABLE = (1e-140, 1e140)  # spans: squares of their units, and sums of these, keep all digits


class WholeNumbers(NamedTuple):
    """Rows as whole numbers.

    Attributes
    ----------
    k : (padded rows, padded features) int8 tensor
        The levels, less 128; more rows and features are zero.
    squares : (padded rows,) int32 tensor
        Sums of squares of these.
    unit : float
        What a level stands for.
    """

    k: Tensor
    squares: Tensor
    unit: float

    def squared_distances(self, rows: slice, columns: slice) -> Tensor:
        """Return squared distances of some rows and others, in float64.

        Parameters
        ----------
        rows, columns : slice
            Which ones, from a beginning to an end.
        """
        height, width = rows.stop - rows.start, columns.stop - columns.start
        tall, wide = max(_ROWS, height), 8 * -(-width // 8)
        x, y = self.k[rows.start : rows.start + tall], self.k[columns.start : columns.start + wide]
        products = _products(x, y)[:height, :width]
        found = torch.sub(self.squares[columns], products, alpha=2)  # below 2^31
        found += self.squares[rows, None]
        return found.double().mul_(self.unit**2)


def whole_numbers(X: Tensor) -> WholeNumbers | None:
    """Return rows as whole numbers; None where they are none.

    Parameters
    ----------
    X : (n, d) float32 or float64 tensor
        The rows, as they are.

    Examples
    --------
    >>> found = whole_numbers(torch.tensor([[0.0, 1.0], [0.2, 0.4]], dtype=torch.float64))
    >>> found.squared_distances(slice(0, 1), slice(0, 2))
    tensor([[0.0000, 0.4000]], dtype=torch.float64)
    >>> whole_numbers(torch.tensor([[0.0, 1.0], [0.2, 0.3333]], dtype=torch.float64)) is None
    True
    """
    if not X.numel() or X.shape[1] > _DEEPEST or not X.is_floating_point():
        return None
    low, high = (float(end) for end in torch.stack(X.aminmax()).tolist())
    rounding = max(torch.finfo(X.dtype).eps, _ROUNDINGS * torch.finfo(torch.float64).eps)
    # entries far from zero that span little would pass as whatever they are rounded to
    allowed = rounding * min(high - low, max(abs(low), abs(high)))
    for span, steps in _scales(high - low):
        if _levels(X[:_LOOKED_AT], low, span, steps, allowed) is not None:
            k = _levels(X, low, span, steps, allowed)
            return None if k is None else _padded(k, span / steps)
    return None


def _scales(span: float) -> list[tuple[float, int]]:
    """Return what so many levels may span: all entries, or a power of two for each level."""
    if span == 0:
        return [(1.0, 1)]  # all rows are equal
    if not _SQUARABLE[0] < span < _SQUARABLE[1]:
        return []
    mantissa, exponent = math.frexp(span / _LEVELS)
    return [(span, _LEVELS), (math.ldexp(1.0, exponent - (mantissa == 0.5)), 1)]


def _levels(X: Tensor, low: float, span: float, steps: int, allowed: float) -> Tensor | None:
    """Return the level of each entry less 128, if every one is at a level but for its rounding."""
    above = X.double() - low
    k = (above * (steps / span)).round_()
    # what a division left, as it is made, so that nothing is added to it
    off = (k * span).div_(steps).sub_(above).abs_().amax()
    return (k - _MIDDLE).to(torch.int8) if bool(off <= allowed) else None


def _padded(k: Tensor, unit: float) -> WholeNumbers:
    n, d = k.shape
    held = k.new_zeros((n + _ROWS, DEPTH * -(-d // DEPTH)))
    held[:n, :d] = k
    squares = k.to(torch.int32).square_().sum(dim=1, dtype=torch.int32)
    return WholeNumbers(held, torch.nn.functional.pad(squares, (0, _ROWS)), unit)


@cache
def multiplies(device: str) -> bool:
    """Return whether a device multiplies 8-bit numbers, and right: asked once, of a small product.

    Parameters
    ----------
    device : str
        As torch names it.
    """
    x = torch.arange(_ROWS * DEPTH).remainder(256).sub(_MIDDLE).to(torch.int8).view(_ROWS, DEPTH)
    wanted = x.double() @ x.double().T
    try:
        found = _products(x.to(device), x.to(device))
    except (RuntimeError, NotImplementedError):  # a library without it
        return False
    return bool((found.cpu() == wanted).all())


def _products(x: Tensor, y: Tensor) -> Tensor:
    """Return x y' of 8-bit numbers, exact; int32."""
    if x.is_cuda:
        return torch._int_mm(x, y.T)
    return (x.double() @ y.double().T).to(torch.int32)  # below 2^53: exact, too


# --- operands ------------------------------------------------------------------------------------
#
# The rows that a leaf compares, on the device; or on the host, and sent there block by block.


class CenteredRows:
    """Rows about a centre, as float64 blocks on the device.

    Dense rows stay on the device where it has room for them. Sparse rows, and those that are too
    many, stay on the host: the blocks that are looked at are written out and sent.

    Parameters
    ----------
    rows : (n, d) array or CSR array
        The rows.
    centre : (d,) array or None
        Subtracted in float64, from dense rows.
    device : Device
        Where blocks are wanted.

    Attributes
    ----------
    centre : (d,) float64 tensor or None
        What is subtracted, on the device.
    """

    def __init__(self, rows: Points, centre: Array | None, device: Device) -> None:
        self.shape: tuple[int, int] = rows.shape
        self._device = device
        self.centre = None if centre is None else device.put(centre, np.float64)
        self._rows: Any = rows
        if isinstance(rows, CardRows):
            self._rows = rows.tensor
        elif not is_sparse(rows) and device.has_room(rows.nbytes):
            self._rows = device.put(rows)

    @property
    def is_resident(self) -> bool:
        """Whether all rows are on the device."""
        return bool(torch.is_tensor(self._rows))

    @cached_property
    def largest(self) -> float:
        """The largest magnitude of an entry, about the centre."""
        return float(self.block(slice(None)).abs().amax()) if math.prod(self.shape) else 0.0

    @cached_property
    def whole(self) -> WholeNumbers | None:
        """The rows as whole numbers, where they are on the device and are such numbers."""
        try:
            return whole_numbers(self._rows) if self.is_resident else None
        except torch.cuda.OutOfMemoryError:  # looking at all of them takes some copies
            torch.cuda.empty_cache()
            return None

    def taken(self, index: Tensor) -> CenteredRows:
        """Return some rows about the same centre, copied on the device."""
        other = copy(self)
        other.__dict__.pop("whole", None)
        other._rows, other.shape = self._rows[index], (len(index), self.shape[1])
        return other

    def block(self, index: Index, *, about: bool = True) -> Tensor:
        """Return some rows, by a slice or by numbers; about the centre, or as they are."""
        rows = self._rows[index]
        if not torch.is_tensor(rows):
            rows = self._device.put(to_dense(rows))
        rows = rows.to(torch.float64)
        return rows - self.centre if about and self.centre is not None else rows


class Operands(NamedTuple):
    """What one leaf compares."""

    leaf: Statistic
    rows: CenteredRows
    columns: CenteredRows


def bind(leaf: Statistic, X: Points, Y: Points | None, device: Device) -> Operands:
    """Send both sides of a leaf to the device; distances are taken about the mean of the columns.

    Parameters
    ----------
    leaf : Statistic
        What is compared.
    X, Y : Points
        Rows and columns; Y is None when it is X.
    device : Device
        Where to.
    """
    rows = operand(leaf, X)
    columns = rows if Y is None else operand(leaf, Y)
    if rows.shape[1] != columns.shape[1]:
        raise ValueError(f"X has {rows.shape[1]} features, Y has {columns.shape[1]}")
    centred = isinstance(leaf, SqDist) and not (is_sparse(rows) or is_sparse(columns))
    if Y is None:
        bound = CenteredRows(rows, _centre(columns) if centred else None, device)
        return Operands(leaf, bound, bound)
    centre, there = _columns(columns, centred, device)
    return Operands(leaf, CenteredRows(rows, centre, device), there)


def _centre(columns: Array) -> Array | None:
    if not columns.shape[0]:
        return None
    with np.errstate(all="ignore"):
        centre = columns.mean(axis=0, dtype=np.float64)
    return np.where(np.isfinite(centre), centre, 0.0)


def _columns(columns: Points, centred: bool, device: Device) -> tuple[Array | None, CenteredRows]:
    """Return the centre, and columns about it; those of a machine that was moved here stay."""
    place = current_place()
    stays = place is not None and isinstance(columns, np.ndarray)
    if place is not None and stays:
        found: tuple[Array | None, CenteredRows] | None = place.known(columns, (centred, device))
        if found is not None:
            return found
    centre = _centre(columns) if centred else None
    there = CenteredRows(columns, centre, device)
    if place is not None and stays and there.is_resident:
        place.keep(columns, (centred, device), (centre, there))
    return centre, there


def plain_index(index: Index, n: int) -> Index:
    """Return a slice of step 1, or row numbers counted from the front."""
    if isinstance(index, slice):
        begin, end, step = index.indices(n)
        if step == 1:
            return slice(begin, max(begin, end))
        return np.arange(begin, end, step)
    numbers = np.asarray(index)
    numbers = np.flatnonzero(numbers) if numbers.dtype == bool else numbers.astype(np.int64)
    return np.where(numbers < 0, numbers + n, numbers)


def within(index: Index, part: slice) -> Index:
    """Return some of the rows that a plain index names."""
    if isinstance(index, slice):
        return slice(index.start + part.start, index.start + part.stop)
    return index[part]


# --- externals -----------------------------------------------------------------------------------
#
# Parts of an expression that Python evaluates on the host: users' functions, Bessel functions.

Inner = Callable[[Expression], Callable[[Index, slice], Tensor]]


class External:
    """One such part, bound to points.

    Parameters
    ----------
    expression : Expression
        The part.
    X, Y : Points
        Rows and columns.
    device : Device
        Where blocks are wanted.
    inner : callable
        Binds an expression to the same points; what comes back evaluates float64 blocks.
    """

    def __init__(
        self, expression: Expression, X: Points, Y: Points, device: Device, inner: Inner
    ) -> None:
        self._expression, self._X, self._Y, self._device = expression, X, Y, device
        self._argument = inner(expression.of) if isinstance(expression, MaternProfile) else None
        if device.is_card and isinstance(expression, Opaque):
            warnings.warn(_where_it_runs(expression.function, device), RuntimeWarning, stacklevel=2)

    def block(self, index: Index, part: slice) -> Tensor:
        """Evaluate some rows with some columns, in float64."""
        if self._argument is not None and isinstance(self._expression, MaternProfile):
            r = to_host(self._argument(index, part))
            return self._device.put(matern_profile(r, self._expression.nu))
        values = evaluate(self._expression, take(self._X, index), take(self._Y, part))
        return self._device.put(values)


def _where_it_runs(function: Callable[..., object], device: Device) -> str:
    """Say that a function runs on the host, and what can be done about it: if it is the user's."""
    if type(function).__module__.partition(".")[0] == "mercer":
        return (
            f"{type(function).__name__} (strings, lists, numbers of tasks) runs on the CPU, block "
            f"by block; what it gives is sent to device={device.name!r}, where all else runs."
        )
    return (
        f"the kernel function {function!r} runs on the CPU, block by block: device={device.name!r} "
        "cannot look into it. Write it with Mercer's kernels to have all of it there."
    )


# --- statistics ----------------------------------------------------------------------------------
#
# Pairwise statistics of float64 rows on tensors: whole blocks, nothing fused.
#
# Squared distances come from products of rows about a common centre. Where that leaves few digits
# (two rows are much closer than they are long) they are sums of squared differences, so equal
# rows have distance zero, and close ones keep their digits.

# Of |x|^2 + |y|^2: below this share a squared distance made of products may have lost 6 bits.
_NEAR = 1.0 / 64.0
_MANY = 0.25  # of the entries of a block: from here on all are differences
_GATHERED = 1 << 22  # numbers of rows copied at a time to be subtracted


@singledispatch
def compare(statistic: Statistic, X: Tensor, Y: Tensor) -> Tensor:
    """Return the statistic of every row of X with every row of Y."""
    raise TypeError(f"unknown statistic {statistic!r}")


@compare.register
def _(s: Dot, X: Tensor, Y: Tensor) -> Tensor:
    return X @ Y.T


def squared_distances(X: Tensor, Y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return squared distances made of products, and the squared lengths of both sides."""
    x, y = X.square().sum(dim=1), Y.square().sum(dim=1)
    one, other = torch.ones_like(x)[:, None], torch.ones_like(y)[:, None]
    # lengths are two more features, so that D is written once
    D = torch.cat([X, x[:, None], one], 1) @ torch.cat([-2.0 * Y, other, y[:, None]], 1).T
    return D, x, y


def may_be_near(smallest: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return which rows may have lost digits in a distance, by the smallest of each; NaN does."""
    return ~(smallest >= _NEAR * (x + y.amax()))


@compare.register
def _(s: SqDist, X: Tensor, Y: Tensor) -> Tensor:
    D, x, y = squared_distances(X, Y)
    if not D.numel():
        return D
    # rows and columns with something near are mostly few, and found by a pass over D each; infinite
    # and undefined distances count as near, too
    rows = may_be_near(D.amin(dim=1), x, y).nonzero()[:, 0]
    if not len(rows):
        return D
    among = D if 2 * len(rows) > len(X) else D[rows]
    columns = (~(among.amin(dim=0) >= _NEAR * (x.amax() + y))).nonzero()[:, 0]
    if 2 * len(rows) * len(columns) > D.numel():
        put_differences(D, X, Y, ~(D >= _NEAR * (x[:, None] + y)))
    else:
        some = D[rows[:, None], columns]
        near = ~(some >= _NEAR * (x[rows, None] + y[columns]))
        put_differences(some, X[rows], Y[columns], near)
        D[rows[:, None], columns] = some
    return D


def put_differences(D: Tensor, X: Tensor, Y: Tensor, where: Tensor) -> None:
    """Write squared distances as sums of squared differences into D, where a mask says so."""
    rows, columns = where.nonzero(as_tuple=True)
    if len(rows) > _MANY * D.numel():
        height = max(1, _GATHERED // max(1, Y.numel()))
        for start in range(0, len(X), height):
            deadline.check()
            part = slice(start, start + height)
            apart = (X[part, None, :] - Y).square_().sum(dim=2)
            D[part] = torch.where(where[part], apart, D[part])
        return
    height = max(1, _GATHERED // max(1, X.shape[1]))
    for i, j in zip(rows.split(height), columns.split(height), strict=True):
        deadline.check()
        D[i, j] = (X[i] - Y[j]).square_().sum(dim=1)


@compare.register
def _(s: AbsDist, X: Tensor, Y: Tensor) -> Tensor:
    return torch.cdist(X, Y, p=1.0) if X.shape[1] else X.new_zeros((len(X), len(Y)))


@compare.register
def _(s: MinSum, X: Tensor, Y: Tensor) -> Tensor:
    return _by_column(X, Y, torch.minimum)


@compare.register
def _(s: ChiSq, X: Tensor, Y: Tensor) -> Tensor:
    def term(x: Tensor, y: Tensor) -> Tensor:
        total = x + y
        return (x - y).square() / torch.where(total > 0, total, 1.0)

    return _by_column(X, Y, term)


@compare.register
def _(s: SubsetProduct, X: Tensor, Y: Tensor) -> Tensor:
    product = X.new_ones((len(X), len(Y)))
    for x, y in zip(X.T, Y.T, strict=True):
        deadline.check()
        product *= 1.0 + torch.outer(x, y)
    return product


@compare.register
def _(s: SymmetricSum, X: Tensor, Y: Tensor) -> Tensor:
    if s.degree > X.shape[1]:
        return X.new_zeros((len(X), len(Y)))  # there are no such sets
    sums = [X.new_ones((len(X), len(Y)))]
    sums += [X.new_zeros((len(X), len(Y))) for _ in range(s.degree)]
    for x, y in zip(X.T, Y.T, strict=True):
        deadline.check()
        product = torch.outer(x, y)
        for k in range(s.degree, 0, -1):  # from above: each reads the sum of before this column
            sums[k] += product * sums[k - 1]
    return sums[-1]


def _by_column(X: Tensor, Y: Tensor, term: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    total = X.new_zeros((len(X), len(Y)))
    for x, y in zip(X.T, Y.T, strict=True):
        deadline.check()
        total += term(x[:, None], y[None, :])
    return total


# --- program -------------------------------------------------------------------------------------
#
# A flat program on blocks of tensors: leaves are compared, then operations run one by one.


@dataclass(frozen=True, eq=False)
class PairBlock:
    """What a program reads for one block of pairs.

    Attributes
    ----------
    leaves : list of (h, w) tensors
        The statistics.
    row_terms : list of pairs of tensors
        Values of each row term for the rows (h,) and for the columns (w,).
    externals : list of (h, w) tensors
        What Python evaluated.
    like : Tensor
        An (h, w) tensor of the type of the results; its values are not read.
    """

    leaves: list[Tensor]
    row_terms: list[tuple[Tensor, Tensor]]
    externals: list[Tensor]
    like: Tensor


def run(program: FlatProgram, block: PairBlock, dtype: Any = None) -> Tensor:
    """Evaluate all operations; return register 0, in a type that may be asked for."""
    registers = [*block.leaves, *[block.like] * (program.registers - len(block.leaves))]
    for op in program.ops[:-1]:
        registers[op.out] = _VERBS[Code(op.code)](op, registers, program, block)
    for op in program.ops[-1:]:
        if Code(op.code) is Code.EXP and op.out == 0 and _takes_one_pass(registers[op.a]):
            from mercer.backends.torch.triton.special import exponential  # noqa: PLC0415  imports Triton

            argument = registers[op.a]
            return exponential(argument, op.c0, op.c1, dtype or argument.dtype)
        registers[op.out] = _VERBS[Code(op.code)](op, registers, program, block)
    return registers[0] if dtype is None else registers[0].to(dtype)


def _takes_one_pass(x: Tensor) -> bool:
    return x.is_cuda and x.dtype is torch.float64 and x.is_contiguous() and _has_triton()


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


_Verb = Callable[[Op, list[Tensor], FlatProgram, PairBlock], Tensor]


def _unary(function: Callable[[Op, Tensor], Tensor]) -> _Verb:
    """Return f(c0 x + c1), written over the argument where that is its own: passes take time."""

    def verb(op: Op, r: list[Tensor], program: FlatProgram, block: PairBlock) -> Tensor:
        if (op.c0, op.c1) == (1.0, 0.0):
            return function(op, r[op.a].clone() if function is not _same else r[op.a])
        argument = op.c0 * r[op.a]
        return function(op, argument.add_(op.c1) if op.c1 else argument)

    return verb


def _same(op: Op, x: Tensor) -> Tensor:
    return x


def _ratio(op: Op, r: list[Tensor], program: FlatProgram, block: PairBlock) -> Tensor:
    both_zero = (r[op.a] == 0) & (r[op.b] == 0)
    return torch.where(both_zero, 1.0, r[op.a] / torch.where(both_zero, 1.0, r[op.b]))


def _polynomial(op: Op, r: list[Tensor], program: FlatProgram, block: PairBlock) -> Tensor:
    x = op.c0 * r[op.a] + op.c1
    *lower, value = program.coefficients[op.item : op.item + op.items]
    total = torch.full_like(x, value)
    for coefficient in reversed(lower):
        total = total * x + coefficient
    return total


def _row_product(op: Op, r: list[Tensor], program: FlatProgram, block: PairBlock) -> Tensor:
    u, w = block.row_terms[op.item]
    return u[:, None] * w


def _row_sum(op: Op, r: list[Tensor], program: FlatProgram, block: PairBlock) -> Tensor:
    u, w = block.row_terms[op.item]
    return u[:, None] + w


_VERBS: dict[Code, _Verb] = {
    Code.FILL: lambda op, r, program, block: torch.full_like(block.like, op.c0),
    Code.AFFINE: _unary(_same),
    Code.SUM: lambda op, r, program, block: op.c0 * r[op.a] + (op.c1 * r[op.b] + op.c2),
    Code.PRODUCT: lambda op, r, program, block: op.c0 * r[op.a] * r[op.b],
    Code.RATIO: _ratio,
    Code.EXP: _unary(lambda op, x: x.exp_()),
    Code.SQRT: _unary(lambda op, x: x.sqrt_()),
    Code.TANH: _unary(lambda op, x: x.tanh_()),
    Code.POWER: _unary(lambda op, x: x.pow_(op.c2)),
    Code.WHOLE_POWER: _unary(lambda op, x: x.pow_(op.item)),
    Code.POLYNOMIAL: _polynomial,
    Code.ROW_PRODUCT: _row_product,
    Code.ROW_SUM: _row_sum,
    Code.EXTERNAL: lambda op, r, program, block: block.externals[op.item],
}
