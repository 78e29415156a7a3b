"""Large constant columns of a linear kernel: a machine with a free constant leaves them out.

The weight of a constant column is the column times the sum of the coefficients, which a free
constant makes zero. In float64 that sum is rounding, and a column of 1e8 multiplies it twice.
"""

from __future__ import annotations

from mercer.array_types import Array, Points
from mercer.kernels import Kernel, Linear
from mercer.points import is_objects, is_sparse

# Squared, over the squares of what other columns range over: below, the rounding of sums times the
# column squared is no more than 1e-7 of what those columns do.
_FAR = 1e9


def without_large_constants(kernel: Kernel, X: Points) -> Points:
    """Return rows with zero in place of constants that would drown the other columns.

    Parameters
    ----------
    kernel : Kernel
        What compares the rows.
    X : Points
        Rows.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[1.0, 1e8], [2.0, 1e8]])
    >>> without_large_constants(Linear(), rows)
    array([[1., 0.],
           [2., 0.]])
    """
    if not isinstance(kernel, Linear) or is_objects(X) or is_sparse(X):
        return X
    alike = (X[0] == X[-1]) & (X[0] != 0)  # mostly none, and the others need not be looked at
    alike[alike] = (X[:, alike] == X[0, alike]).all(axis=0)
    if not alike.any():
        return X
    others: Array = X[:, ~alike]
    spread = float(((others.max(axis=0) - others.min(axis=0)) ** 2).sum()) if others.size else 0.0
    large = alike & (X[0].astype(float) ** 2 > _FAR * spread)
    if not large.any() or spread == 0.0:
        return X
    rows = X.copy()
    rows[:, large] = 0.0
    return rows
