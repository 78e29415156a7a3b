"""Distances that scikit-learn would compute beyond float64, refused in words."""

from __future__ import annotations

from math import inf, log
from typing import Any

import numpy as np

from mercer.machines.base.parameters import is_real
from mercer.points import is_sparse

_LARGEST = log(np.finfo(np.float64).max)
_INTEGERS = 2**63  # NumPy has no larger ones, nor does a larger power differ from infinity
_SQUARED = ("euclidean", "l2", "sqeuclidean", "nan_euclidean", "seuclidean", "cosine")


def check_power(name: str, metric: Any, p: Any) -> None:
    """Raise where scikit-learn would compare, or hand on, a power that is no number of NumPy's.

    Parameters
    ----------
    name : str
        Of the machine.
    metric : str or callable
        The distance.
    p : object
        The power of metric="minkowski"; None passes scikit-learn's own check.
    """
    if metric != "minkowski":
        return
    if p is None:
        raise ValueError(f"{name}: p must be a number for metric='minkowski', not None")
    if is_real(p) and _INTEGERS <= p < inf:
        raise ValueError(
            f"{name}: p must be below 2**63, or infinite, but is {float(p):.3g}; p=np.inf asks for "
            "the largest difference of two entries"
        )


def refuse_overflow(name: str, X: Any, metric: Any, p: Any) -> None:
    """Raise where distances between rows of X may leave the range of float64.

    Parameters
    ----------
    name : str
        Of the machine.
    X : array-like, sparse matrix or None
        Rows; what holds no numbers is left to other checks.
    metric : str or callable
        The distance; of a function nothing is known.
    p : float
        The power of metric="minkowski".
    """
    if X is None or not isinstance(metric, str) or metric == "precomputed":
        return
    rows: Any = X if is_sparse(X) else np.asarray(X)
    entries = rows.tocsr().data if is_sparse(X) else rows
    if entries.dtype.kind not in "fiu" or not entries.size:
        return
    largest = max(float(entries.max()), -float(entries.min()))
    power = 2.0 if metric in _SQUARED else float(p) if metric == "minkowski" else 1.0
    # d differences of at most twice the largest entry, each to the power, added up
    if 0.5 < largest < inf and power * log(2 * largest) + log(max(rows.shape[-1], 1)) > _LARGEST:
        raise ValueError(
            f"{name}: distances between rows of X overflow: the largest entry is {largest:.1e} and "
            f"metric={metric!r} adds up powers of {power:g}; divide the columns by a large number, "
            "or use metric='chebyshev'"
        )
