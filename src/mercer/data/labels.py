"""Labels or a quantity: the one rule that `fit`, `choose` and `check` tell them by."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array

FEW = 10  # different whole numbers that are labels whichever they are: digits, grades, counts
MANY = 30  # that are labels if they number classes through: 26 letters
ROWS = 3  # of each of those: two to learn from and one to judge by; a quantity has a rare largest


def are_labels(y: Array) -> bool:
    """Tell labels from a quantity.

    Words and truth values are labels. So are whole numbers of at most 10 different values, and
    whole numbers of at most 30 that count on from 0 or 1 with three rows each, as numbers of
    classes do. Everything else is a quantity.

    Parameters
    ----------
    y : (n,) array
        Without missing entries.

    Returns
    -------
    bool

    Examples
    --------
    >>> are_labels(np.array(["a", "b"])), are_labels(np.array([3.0, 5.0, 8.0]))
    (True, True)
    >>> are_labels(np.repeat(np.arange(26), 5)), are_labels(np.arange(0, 130, 5))
    (True, False)
    """
    if y.ndim != 1:
        return False
    if y.dtype.kind in "OUSb":
        return True
    if y.dtype.kind not in "iuf":
        return False
    different, counts = np.unique(y, return_counts=True)
    if not np.isfinite(different).all() or (different != np.floor(different)).any():
        return False
    if len(different) <= FEW:
        return True
    through = different[0] in (0, 1) and different[-1] - different[0] == len(different) - 1
    return bool(len(different) <= MANY and through and counts.min() >= ROWS)
