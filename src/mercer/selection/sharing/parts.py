"""Parts that several kernels of a grid have in common: evaluated once, put together by rules.

0.5 * Spectrum(3) + Gaussian(2.0), and the same with another weight or scale, need the matrix of
the spectrum kernel once. Only parts that cost more to evaluate than a matrix costs to read are
kept: functions of two blocks (strings, the user's own) and statistics of many columns, such as the
squared distances that Gaussians of all scales are made of. Of numbers in few columns the whole
formula is evaluated anew, tile by tile, in less time than parts take to add.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.expression import (
    Add,
    Constant,
    Exp,
    Expression,
    Mul,
    Opaque,
    Pow,
    Statistic,
    walk,
)
from mercer.gram import Source
from mercer.points import is_objects, is_sparse

_WIDE = 1500  # columns: at half of that, evaluating distances takes as long as an exponential


class Parts:
    """Matrices of parts that are common to several formulas on the same rows.

    Parameters
    ----------
    formulas : sequence of Expression
        The kernels of a grid, each once.
    X : Points
        All rows.
    """

    def __init__(self, formulas: Sequence[Expression], X: Points) -> None:
        uses = Counter(part for formula in formulas for part in set(costly(formula, X)))
        self._common = {part for part, count in uses.items() if count > 1}
        self._matrices: dict[tuple[Expression, Any], Array] = {}

    @property
    def count(self) -> int:
        """Count the matrices that are kept."""
        return len(self._common)

    def has_part_of(self, source: Source) -> bool:
        """Return whether K is put together from parts that are kept."""
        return any(part in self._common for part in walk(source.expression))

    def dense(self, source: Source, *, padded: bool = False) -> Array:
        """Return K, from its parts where it has common ones; else its rows may be `padded`."""
        if not self.has_part_of(source):
            return source.pairs().dense(padded=padded)
        K = self._put_together(source.expression, source)
        # a part alone is K itself, and stays as it is
        return np.array(K, dtype=source.dtype, order="C")

    def _put_together(self, formula: Expression, source: Source) -> Any:
        """Return a matrix, or a number for a constant."""
        if isinstance(formula, Constant):
            return source.dtype.type(formula.value)
        if formula in self._common:
            return self._part(formula, source)
        if isinstance(formula, Add):
            return reduce(np.add, (self._put_together(one, source) for one in formula.terms))
        if isinstance(formula, Mul):
            return reduce(np.multiply, (self._put_together(one, source) for one in formula.factors))
        if isinstance(formula, Pow):
            return self._put_together(formula.base, source) ** source.dtype.type(formula.exponent)
        if isinstance(formula, Exp):
            return np.exp(self._put_together(formula.of, source))
        return replace(source, expression=formula).pairs().dense()

    def _part(self, part: Expression, source: Source) -> Array:
        key = (part, source.dtype)
        if key not in self._matrices:
            self._matrices[key] = replace(source, expression=part).pairs().dense()
        return self._matrices[key]


def costly(formula: Expression, X: Points) -> list[Expression]:
    """Return the parts of a formula that are worth keeping; row terms are not looked into."""
    wide = not is_objects(X) and (is_sparse(X) or X.shape[1] >= _WIDE)
    return [
        part
        for part in walk(formula)
        if isinstance(part, Opaque) or (wide and isinstance(part, Statistic))
    ]
