"""Dense rows of a linear kernel moved to the origin before they are compared.

Where K has fewer rows than there are columns, products of rows far from the origin carry none of
the digits in which the rows differ, and no centring of K brings them back. Machines that do not
care where the origin is compare rows less their mean, and new rows less the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mercer.array_types import Array, Points
from mercer.gram import Expansion
from mercer.kernels import Kernel, Linear
from mercer.machines.projection.components import shifted
from mercer.points import is_objects, is_sparse
from mercer.resources import require_memory


@dataclass(frozen=True, eq=False)
class MovedExpansion(Expansion):
    """Functions of rows less a mean.

    Attributes
    ----------
    base : Expansion
        The functions.
    mean : (d,) array
        What is taken off every row first.
    """

    base: Expansion
    mean: Array

    def __call__(self, Z: Points) -> Array:
        """Evaluate at new points."""
        return self.base(Z - self.mean)

    def plus(self, offset: Array) -> MovedExpansion:
        """Add to the constant."""
        return replace(self, base=self.base.plus(offset))


def near_origin(kernel: Kernel, X: Points, rows: Array, weights: Array) -> tuple[Points, Any]:
    """Return rows less the mean of those that count, and that mean; None where nothing is gained.

    Parameters
    ----------
    kernel : Kernel
        What compares the rows.
    X : Points
        All rows.
    rows : (m,) int array
        Those that count.
    weights : (n,) array
        How often each row counts.
    """
    if not isinstance(kernel, Linear) or is_objects(X) or is_sparse(X):
        return X, None
    if X.shape[1] < len(rows):  # compared by features, which are centred themselves
        return X, None
    require_memory(16 * X.size, "a copy of the rows", "Use fewer rows.")
    mean = shifted(X[rows], weights[rows])[1]
    return X - mean, mean


def moved(expansion: Expansion, mean: Any) -> Expansion:
    """Take the mean off new rows, too."""
    return expansion if mean is None else MovedExpansion(expansion, mean)
