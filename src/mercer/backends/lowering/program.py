"""Flat programs: leaves, row terms, and operations on registers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from mercer.expression import Expression, RowTerm, Statistic


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
class Program:
    """A flat program: registers 0.. receive the leaves, the result is left in register 0."""

    leaves: tuple[Statistic, ...]
    row_terms: tuple[RowTerm, ...]
    externals: tuple[Expression, ...]
    ops: tuple[Op, ...]
    coefficients: tuple[float, ...]
    registers: int
