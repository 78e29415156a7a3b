"""Is no nonnegative sum of these kernels aligned better? Optimality conditions, in float64.

With d scaled to s = (a'd / d'Md) d, the slope a - M s must be zero where d > 0 and not positive
elsewhere. In cosines: with K the sum, k its alignment with the target and c_m that of kernel m with
K, the alignment of kernel m with the target is at most k c_m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.certificates.base import Certificate, certify
from mercer.problems.kernel_learning.kernel_alignment import KernelAlignment, KernelWeights

_TOL = 1e-6
_FEASIBLE = 1e-9


@dataclass(frozen=True)
class KernelAlignmentQuantities:
    """Measures of weights of kernels.

    Attributes
    ----------
    alignment : float
        Of the weighted sum with the target.
    best_single : float
        The largest among the kernels on their own.
    violation : float
        Largest violation of the optimality conditions, in cosines.
    infeasibility : float
        Distance of the weights from the simplex.
    kernels, used : int
        How many kernels there are, and how many of them have a weight above zero.
    """

    alignment: float
    best_single: float
    violation: float
    infeasibility: float
    kernels: int
    used: int


@certify.register
def _(problem: KernelAlignment, value: KernelWeights, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    d, moments = np.asarray(value.weights, dtype=np.float64), problem.measured_anew()
    if len(d) != len(problem.grams):
        raise ValueError(f"{len(problem.grams)} kernels, but {len(d)} weights")
    reached = moments.alignment(d)
    tiny = float(np.finfo(float).tiny)
    lengths = np.sqrt(np.maximum(moments.kernels.diagonal(), tiny))
    length = np.sqrt(max(float(d @ moments.kernels @ d), tiny))
    alone = moments.target / lengths / np.sqrt(max(moments.size, tiny))
    slope = alone - reached * (moments.kernels @ d) / lengths / length
    used = d > 0
    violation = max(float(slope.max()), float(np.abs(slope[used]).max(initial=0.0)))
    outside = max(abs(float(d.sum()) - 1.0), float(-d.min()))
    quantities = KernelAlignmentQuantities(
        reached, float(alone.max()), violation, outside, len(d), int(np.count_nonzero(used))
    )
    ok = violation <= tol and outside <= _FEASIBLE
    statement = (
        f"the alignment is {reached:.4f} (best single kernel: {quantities.best_single:.4f}); no "
        f"weight violates the optimality conditions by more than {violation:.1e}"
    )
    return Certificate(bool(ok), quantities, tol, statement)
