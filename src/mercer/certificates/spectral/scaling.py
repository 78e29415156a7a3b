"""Do the rows of the scaled matrix sum to one? One product in float64 tells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.certificates.base import Certificate, certify
from mercer.gram import exact
from mercer.problems import Scales, Scaling

_TOL = 1e-8


@dataclass(frozen=True)
class ScalingQuantities:
    """Measures of a doubly stochastic scaling.

    Attributes
    ----------
    row_sum_error : float
        Largest distance of a row sum from one.
    empty_rows : int
        Rows of zeros, which have no sum to scale.
    smallest, largest : float
        The extreme factors, among positive ones.
    """

    row_sum_error: float
    empty_rows: int
    smallest: float
    largest: float


@certify.register
def _(problem: Scaling, value: Scales, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    gram, x = exact(problem.gram), np.asarray(value.scale, dtype=np.float64)
    empty = np.asarray(gram @ np.ones(len(x))) == 0
    sums = (x * np.asarray(gram @ x))[~empty]
    used = x[~empty]
    error = float(np.abs(sums - 1.0).max(initial=0.0))
    quantities = ScalingQuantities(
        error,
        int(empty.sum()),
        float(used.min(initial=np.inf)),
        float(used.max(initial=0.0)),
    )
    ok = error <= tol and bool((used > 0).all())
    statement = f"every row of the scaled matrix sums to one within {error:.1e}"
    return Certificate(ok, quantities, tol, statement)
