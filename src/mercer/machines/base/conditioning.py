"""Has float64 digits to spare for this fit? If not, the certificate is made before the fit ends.

Certificates that need kernels anew are made when they are read. That is safe while rounding is far
below every tolerance, so this asks, at the price of one row of K: of what size K, rows, weights and
coefficients are, and whether differences are left of them. The bounds are cautious: beyond them an
answer is still right as a rule, and all that is lost is the time to judge it at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.gram import Gram
from mercer.points import is_sparse

_LARGE = 1e8  # k(x, x) above this, or below its inverse
_ALIKE = 1e-6  # of k(x, x): squared distances between rows below this cancel
_FAR = 1e3  # of the spread of the rows: their distance from the origin
_SLIGHT = 1e-6  # of k(x, x): a penalty below it leaves K nearly singular
_UNEVEN = 1e4  # largest over smallest weight
_CANCELLING = 1e8  # what coefficients sum up to before they cancel; f itself is about one


def is_well_conditioned(
    gram: Gram, value: Any, weights: Array | None, penalty: float | None
) -> bool:
    """Return whether rounding is far from deciding anything about an answer.

    Parameters
    ----------
    gram : Gram
        Of a kernel and rows, or of a matrix that is given.
    value : object
        The answer; its coefficients, if it has any, are looked at.
    weights : (n,) array or None
        What rows count, all positive.
    penalty : float or None
        What is added to K, if anything is.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        diagonal = np.abs(gram.diag())
        size = float(diagonal.max(initial=0.0))
        return bool(
            1 / _LARGE < size < _LARGE
            and (penalty is None or penalty > _SLIGHT * size)
            and _even(weights, size)
            and (gram.source is None or _near(gram.source.X))
            and _apart(gram, diagonal, size)
            and _sums(value, np.sqrt(diagonal)) * np.sqrt(size) < _CANCELLING
        )


def _even(weights: Array | None, size: float) -> bool:
    """Return whether no row counts far more than another, or than K leaves digits for."""
    if weights is None or len(weights) == 0:
        return True
    most, least = float(weights.max()), float(weights.min())
    return most * size < _LARGE and most <= _UNEVEN * least


def _near(X: Points) -> bool:
    """Return whether rows are not farther from the origin than their spread leaves digits for."""
    if is_sparse(X) or not isinstance(X, np.ndarray) or X.dtype.kind != "f" or X.size == 0:
        return True  # zeros in most places, or no numbers
    spread = float(np.ptp(X, axis=0).max())
    return bool(np.abs(X).max() <= _FAR * spread)


def _apart(gram: Gram, diagonal: Array, size: float) -> bool:
    """Return whether some row differs from the first one by more than rounding of K."""
    first = gram.rows(np.zeros(1, int))[0]
    return bool((diagonal[0] + diagonal - 2 * first).max() > _ALIKE * size)


def _sums(value: Any, lengths: Array) -> float:
    """Return the largest sum of |coefficient| |phi(x)| that the answer has."""
    if hasattr(value, "parts"):
        return max((_sums(part, lengths) for part in value.parts), default=0.0)
    coef = getattr(value, "coef", None)
    if coef is None or len(coef) != len(lengths):
        return 0.0 if coef is None else float(np.abs(coef).sum() * lengths.max(initial=0.0))
    return float((lengths @ np.abs(coef)).max())
