"""An expression at chosen pairs of rows, in float64: the flat program on a few entries a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from mercer.array_types import Array, Points
from mercer.backends.lowering.diagonal import row_values
from mercer.backends.lowering.inputs import operand
from mercer.backends.lowering.program import Code, Op, Program
from mercer.expression import SqDist, Statistic
from mercer.points import to_dense

_ENTRIES = 1 << 17  # numbers of rows copied at a time, which stay in the cache


@dataclass(frozen=True, eq=False)
class PairedRows:
    """A program with leaves `Dot` and `SqDist` of dense rows, and the rows.

    Squared distances are sums of squared differences, so equal rows give equal entries, and close
    ones keep their digits.

    Attributes
    ----------
    program : Program
        What is evaluated.
    rows, columns : lists of arrays
        For each leaf, what it compares.
    row_terms : list of pairs of arrays
        For each row term, its values for rows and for columns.
    """

    program: Program
    rows: list[Array]
    columns: list[Array]
    row_terms: list[tuple[Array, Array]]

    @classmethod
    def of(cls, program: Program, X: Points, Y: Points) -> Self:
        """Bind a program to points."""
        rows = [to_dense(operand(leaf, X)) for leaf in program.leaves]
        columns = [to_dense(operand(leaf, Y)) for leaf in program.leaves]
        terms = [(row_values(term, X), row_values(term, Y)) for term in program.row_terms]
        return cls(program, rows, columns, terms)

    def at(self, index: Array, rows: Array) -> Array:
        """Evaluate row rows[i] with the columns index[i]: (m, count) numbers."""
        out = np.empty(index.shape)
        widest = max((part.shape[1] for part in self.columns), default=1)
        height = max(1, _ENTRIES // max(1, index.shape[1] * widest))
        for start in range(0, len(index), height):
            part = slice(start, start + height)
            out[part] = self._block(rows[part], index[part])
        return out

    def _block(self, rows: Array, index: Array) -> Array:
        leaves = zip(self.program.leaves, self.rows, self.columns, strict=True)
        registers = [_compared(leaf, x[rows], y, index) for leaf, x, y in leaves]
        registers += [np.zeros(index.shape)] * (self.program.registers - len(registers))
        for op in self.program.ops:
            if op.code in (Code.ROW_PRODUCT, Code.ROW_SUM):
                u, w = self.row_terms[op.item]
                join = np.add if op.code == Code.ROW_SUM else np.multiply
                registers[op.out] = join(u[rows, None], w[index])
            else:
                registers[op.out] = _VERBS[Code(op.code)](op, registers)
        return registers[0]


def _compared(leaf: Statistic, x: Array, y: Array, index: Array) -> Array:
    near = y[index]
    if not isinstance(leaf, SqDist):
        return np.asarray(np.einsum("id,icd->ic", x, near))
    near -= x[:, None, :]
    return np.asarray(np.einsum("icd,icd->ic", near, near))


_VERBS: dict[Code, Callable[[Op, list[Array]], Array]] = {
    Code.FILL: lambda op, r: np.full_like(r[0], op.c0),
    Code.AFFINE: lambda op, r: op.c0 * r[op.a] + op.c1,
    Code.SUM: lambda op, r: op.c0 * r[op.a] + (op.c1 * r[op.b] + op.c2),
    Code.PRODUCT: lambda op, r: op.c0 * r[op.a] * r[op.b],
    Code.EXP: lambda op, r: np.exp(op.c0 * r[op.a] + op.c1),
    Code.TANH: lambda op, r: np.tanh(op.c0 * r[op.a] + op.c1),
    Code.WHOLE_POWER: lambda op, r: (op.c0 * r[op.a] + op.c1) ** float(op.item),
}
