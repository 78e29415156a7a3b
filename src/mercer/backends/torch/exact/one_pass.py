"""Rows of exp(c |x - y|^2) in float64 and their product with a column, without tensor cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from mercer import deadline
from mercer.array_types import Index
from mercer.backends.lowering.program import Code, Program
from mercer.backends.torch.operands import Rows
from mercer.backends.torch.statistics import may_be_near, squared_distances
from mercer.expression import SqDist

Tensor: TypeAlias = torch.Tensor


@dataclass(frozen=True, eq=False)
class OnePass:
    """Exponentials, their sums and the search for rows that are near, in one pass over a block.

    Parameters
    ----------
    rows, columns : Rows
        The points, which a card has.
    op : Any
        The exponential: its two constants.
    """

    rows: Rows
    columns: Rows
    op: Any

    @classmethod
    def of(cls, program: Program, leaves: Sequence[Any]) -> OnePass | None:
        """Return the way for a formula; None unless it is exp of one squared distance."""
        if [op.code for op in program.ops] != [Code.EXP] or len(leaves) != 1:
            return None
        leaf, rows, columns = leaves[0]
        if not isinstance(leaf, SqDist) or not (rows.is_resident and columns.is_resident):
            return None
        return cls(rows, columns, program.ops[0])

    def multiply(
        self, part: slice, right: Tensor, block: Callable[[Index, slice], Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Return some rows, and their product with one column.

        Parameters
        ----------
        part : slice
            The rows.
        right : (m, 1) tensor
            The column, in float64.
        block : callable
            Evaluates rows whose distances are to be looked at one by one.
        """
        from mercer.backends.torch.fusing.exponentials import exponential_times  # noqa: PLC0415  imports Triton

        deadline.check()
        whole = slice(0, len(right))
        K, x, y = squared_distances(self.rows.block(part), self.columns.block(whole))
        values, smallest = exponential_times(K, self.op.c0, self.op.c1, right[:, 0])
        again = (may_be_near(smallest, x, y) | ~values.isfinite()).nonzero()[:, 0]
        if len(again):  # few, as a rule
            K[again] = block(again + part.start, whole)
            values[again] = (K[again] @ right)[:, 0]
        return K, values[:, None]
