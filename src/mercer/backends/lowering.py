"""Compiler from expressions to flat register programs, which backends run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import singledispatch
from typing import Any, NamedTuple
from weakref import ref

from mercer.expression import (
    Add,
    Constant,
    Exp,
    Expression,
    MaternProfile,
    Mul,
    Opaque,
    Pow,
    Ratio,
    RowProduct,
    RowSum,
    RowTerm,
    Sqrt,
    Statistic,
    SymmetricSum,
    Tanh,
)

# --- lower ---------------------------------------------------------------------------------------
#
# From an expression to a flat program: leaves, row terms, and operations on registers.
#
# Equal sub-expressions are computed once, so `Gaussian(1) + Gaussian(2)` compares rows once.
# Constant factors and shifts travel with a value until an operation absorbs them, so exp(-x/2) is
# one pass. What the compiled core cannot evaluate (a user's function, a Bessel function) becomes
# an external: a block that Python evaluates and hands in.

MAX_DEGREE = 32  # of SymmetricSum in the compiled core
_MAX_WHOLE_POWER = 2**31 - 1  # by repeated squaring; a negative base has no logarithm
_MAX_MATERN_ORDER = 10  # half-integer nu above this have coefficients too large for float32


# Programs of expressions that are in use: a fit asks for that of one formula again and again, for
# the matrix, its diagonal and the certificate. By identity, as formulas may hold large arrays.
_PROGRAMS: dict[int, tuple[ref[Expression], FlatProgram]] = {}


def lower(expression: Expression) -> FlatProgram:
    """Compile an expression, once while it is in use.

    Examples
    --------
    >>> from mercer.expression import Exp, SqDist
    >>> program = lower(Exp(-0.5 * SqDist()) + Exp(-2.0 * SqDist()))
    >>> len(program.leaves), [Code(op.code).name for op in program.ops]
    (1, ['EXP', 'EXP', 'SUM'])
    """
    key = id(expression)
    known = _PROGRAMS.get(key)
    if known is not None and known[0]() is expression:
        return known[1]
    program = _lowered(expression)
    # one that is part of its own program would be kept for ever, and is soon compiled
    if not any(part is expression for part in (*program.leaves, *program.externals)):
        _PROGRAMS[key] = ref(expression, lambda _: _PROGRAMS.pop(key, None)), program
    return program


def _lowered(expression: Expression) -> FlatProgram:
    unit = _Unit()
    result = unit.lower(expression)
    ops, registers = assign_registers(unit.ops, len(unit.leaves), unit.plain(result))
    return FlatProgram(
        tuple(unit.leaves),
        tuple(unit.row_terms),
        tuple(unit.externals),
        ops,
        tuple(unit.coefficients),
        registers,
    )


# --- values ----------------------------------------------------------------------------------


class _Value(NamedTuple):
    """scale * of + shift; `of` numbers a leaf (from -1 downwards), an operation, or is None."""

    of: int | None
    scale: float = 1.0
    shift: float = 0.0


@dataclass
class _Unit:
    """An expression in translation: what was found and emitted so far."""

    leaves: list[Statistic] = field(default_factory=list)
    row_terms: list[RowTerm] = field(default_factory=list)
    externals: list[Expression] = field(default_factory=list)
    coefficients: list[float] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    _known: dict[Expression, _Value] = field(default_factory=dict)

    def lower(self, expression: Expression) -> _Value:
        if expression not in self._known:
            self._known[expression] = _rule(expression, self)
        return self._known[expression]

    def leaf(self, statistic: Statistic) -> _Value:
        self.leaves.append(statistic)
        return _Value(-len(self.leaves))

    def emit(self, code: Code, **fields: Any) -> _Value:
        self.ops.append(Op(code, len(self.ops), **fields))
        return _Value(len(self.ops) - 1)

    def unary(self, code: Code, x: _Value, **fields: Any) -> _Value:
        return self.emit(code, a=self._number(x), c0=x.scale, c1=x.shift, **fields)

    def plain(self, x: _Value) -> int:
        """Return the number of a register that holds the value itself, without scale and shift."""
        if x.of is None:
            return self._number(self.emit(Code.FILL, c0=x.shift))
        if (x.scale, x.shift) == (1.0, 0.0):
            return x.of
        return self._number(self.unary(Code.AFFINE, x))

    def row_term(self, code: Code, row: RowTerm) -> _Value:
        if row not in self.row_terms:
            self.row_terms.append(row)
        return self.emit(code, item=self.row_terms.index(row))

    def external(self, expression: Expression) -> _Value:
        self.externals.append(expression)
        return self.emit(Code.EXTERNAL, item=len(self.externals) - 1)

    def _number(self, x: _Value) -> int:
        return self.plain(x) if x.of is None else x.of


# --- one rule per node -----------------------------------------------------------------------


@singledispatch
def _rule(expression: Expression, unit: _Unit) -> _Value:
    raise TypeError(f"unknown expression {expression!r}")


@_rule.register
def _(e: Constant, unit: _Unit) -> _Value:
    return _Value(None, 0.0, e.value)


@_rule.register
def _(e: Statistic, unit: _Unit) -> _Value:
    return unit.leaf(e)


@_rule.register
def _(e: SymmetricSum, unit: _Unit) -> _Value:
    if e.degree > MAX_DEGREE:
        return unit.external(e)
    return unit.leaf(e) if e.degree > 0 else _Value(None, 0.0, 1.0)


@_rule.register
def _(e: Opaque, unit: _Unit) -> _Value:
    return unit.external(e)


@_rule.register
def _(e: RowProduct, unit: _Unit) -> _Value:
    return unit.row_term(Code.ROW_PRODUCT, e.row)


@_rule.register
def _(e: RowSum, unit: _Unit) -> _Value:
    return unit.row_term(Code.ROW_SUM, e.row)


@_rule.register
def _(e: Add, unit: _Unit) -> _Value:
    shift = 0.0
    scales: dict[int, float] = {}
    for term in e.terms:
        x = unit.lower(term)
        shift += x.shift
        if x.of is not None:
            scales[x.of] = scales.get(x.of, 0.0) + x.scale
    total = _Value(None)
    for of, scale in scales.items():
        if total.of is None:
            total = _Value(of, scale)
        else:
            total = unit.emit(Code.SUM, a=total.of, b=of, c0=total.scale, c1=scale)
    return total._replace(shift=shift)


@_rule.register
def _(e: Mul, unit: _Unit) -> _Value:
    scale = 1.0
    product: _Value | None = None
    for factor in e.factors:
        x = unit.lower(factor)
        if x.of is None:
            scale *= x.shift
        elif product is None:
            product = x
        else:
            product, factor_scale = _times(unit, product, x)
            scale *= factor_scale
    if product is None:
        return _Value(None, 0.0, scale)
    return _Value(product.of, scale * product.scale, scale * product.shift)


def _times(unit: _Unit, x: _Value, y: _Value) -> tuple[_Value, float]:
    """Multiply two values; return the product without its constant factor, and that factor."""
    numbers, scale = [], 1.0
    for value in (x, y):
        if value.shift == 0.0:
            scale *= value.scale
        numbers.append(value.of if value.shift == 0.0 else unit.plain(value))
    return unit.emit(Code.PRODUCT, a=numbers[0], b=numbers[1]), scale


@_rule.register
def _(e: Pow, unit: _Unit) -> _Value:
    x = unit.lower(e.base)
    if e.exponent == 1.0:
        return x
    if e.exponent == 0.5:
        return unit.unary(Code.SQRT, x)
    if e.exponent.is_integer() and abs(e.exponent) <= _MAX_WHOLE_POWER:
        return unit.unary(Code.WHOLE_POWER, x, item=int(e.exponent))
    return unit.unary(Code.POWER, x, c2=e.exponent)


@_rule.register
def _(e: Exp, unit: _Unit) -> _Value:
    return unit.unary(Code.EXP, unit.lower(e.of))


@_rule.register
def _(e: Sqrt, unit: _Unit) -> _Value:
    return unit.unary(Code.SQRT, unit.lower(e.of))


@_rule.register
def _(e: Tanh, unit: _Unit) -> _Value:
    return unit.unary(Code.TANH, unit.lower(e.of))


@_rule.register
def _(e: Ratio, unit: _Unit) -> _Value:
    above, below = unit.plain(unit.lower(e.above)), unit.plain(unit.lower(e.below))
    return unit.emit(Code.RATIO, a=above, b=below)


@_rule.register
def _(e: MaternProfile, unit: _Unit) -> _Value:
    order = e.nu - 0.5
    if not order.is_integer() or not 0 <= order <= _MAX_MATERN_ORDER:
        return unit.external(e)
    r = unit.lower(e.of)
    decay = unit.unary(Code.EXP, r._replace(scale=-r.scale, shift=-r.shift))
    if order == 0:
        return decay
    coefficients = matern_polynomial(int(order))
    start = len(unit.coefficients)
    unit.coefficients += coefficients
    growth = unit.unary(Code.POLYNOMIAL, r, item=start, items=len(coefficients))
    return _times(unit, growth, decay)[0]


def matern_polynomial(order: int) -> list[float]:
    """Return the polynomial q, lowest power first, with profile q(r) exp(-r) for nu = order + 1/2.

    Examples
    --------
    >>> matern_polynomial(1)
    [1.0, 1.0]
    """
    f = math.factorial
    return [
        f(order) * f(2 * order - k) * 2**k / (f(2 * order) * f(order - k) * f(k))
        for k in range(order + 1)
    ]


# --- program -------------------------------------------------------------------------------------
#
# Flat programs: leaves, row terms, and operations on registers.


class Code(IntEnum):
    """Operations, numbered as in native/src/tiles/tiles.hpp."""

    FILL = 0
    AFFINE = 1
    SUM = 2
    PRODUCT = 3
    RATIO = 4
    EXP = 5
    SQRT = 6
    TANH = 7
    POWER = 8
    WHOLE_POWER = 9
    POLYNOMIAL = 10
    ROW_PRODUCT = 11
    ROW_SUM = 12
    EXTERNAL = 13


_READS_ONE = {
    Code.AFFINE,
    Code.EXP,
    Code.SQRT,
    Code.TANH,
    Code.POWER,
    Code.WHOLE_POWER,
    Code.POLYNOMIAL,
}
READS_TWO = {Code.SUM, Code.PRODUCT, Code.RATIO}


class Op(NamedTuple):
    """One operation; the meaning of the constants depends on the code (see tiles.hpp)."""

    code: int
    out: int
    a: int = 0
    b: int = 0
    item: int = 0  # of the row term, external or coefficients; or a whole exponent
    items: int = 0
    c0: float = 1.0
    c1: float = 0.0
    c2: float = 0.0

    def reads(self) -> tuple[int, ...]:
        """Return the registers whose values this operation uses."""
        if self.code in READS_TWO:
            return (self.a, self.b)
        return (self.a,) if self.code in _READS_ONE else ()


@dataclass(frozen=True)
class FlatProgram:
    """A flat program: registers 0.. receive the leaves, the result is left in register 0."""

    leaves: tuple[Statistic, ...]
    row_terms: tuple[RowTerm, ...]
    externals: tuple[Expression, ...]
    ops: tuple[Op, ...]
    coefficients: tuple[float, ...]
    registers: int


# --- registers -----------------------------------------------------------------------------------
#
# Registers for the values of a program, each free again after its last use.


def assign_registers(emitted: Sequence[Op], leaves: int, result: int) -> tuple[tuple[Op, ...], int]:
    """Map leaves and operations to registers, each free again after its last use.

    Operations go entry by entry, so the result of one may overwrite what it reads.
    """
    ops = list(emitted)
    if result < -1 or (result >= 0 and result != len(ops) - 1):
        ops.append(Op(Code.AFFINE, len(ops), a=result))
        result = len(ops) - 1
    last_use = {number: i for i, op in enumerate(ops) for number in op.reads()}
    place = {-1 - i: i for i in range(leaves)}
    free: list[int] = []
    registers = max(1, leaves)
    if not leaves:
        free.append(0)
    placed: list[Op] = []
    for i, op in enumerate(ops):
        a, b = place.get(op.a, 0), place.get(op.b, 0)
        if not op.reads():
            a = b = 0
        for number in set(op.reads()):
            if last_use[number] == i:
                free.append(place[number])
        if i == result:
            out = 0
        elif free:
            out = min(free)
            free.remove(out)
        else:
            out, registers = registers, registers + 1
        place[i] = out
        placed.append(op._replace(a=a, b=b if op.code in READS_TWO else 0, out=out))
    return tuple(placed), registers
