"""Is it the deformed kernel? By what is left of (I + M K) T = J, from rows and graph.

With R = (I + M K) T - J the matrix K T is off by K~ R, and K~ is not larger than K: the entry
(i, j) is off by at most sqrt(k(x_i, x_i)) sqrt(R_j' K R_j).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from mercer.certificates.base import Certificate, certify
from mercer.gram import definiteness, exact
from mercer.problems import Deformation, DeformedKernel

_TOL = 1e-8


@dataclass(frozen=True)
class DeformationQuantities:
    """Measures of a deformed kernel.

    Attributes
    ----------
    residual : float
        Largest entry of (I + M K) T - J.
    error : float
        A bound of how far an entry of the matrix is from the deformed kernel's, over the largest
        k(x, x).
    indefiniteness : float
        What is added to the diagonal of K to make it positive semidefinite: zero by the
        construction of the kernel, rounding where K was factored, infinite where that is not shown.
    """

    residual: float
    error: float
    indefiniteness: float


@certify.register
def _(problem: DeformedKernel, value: Deformation, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    n, count = problem.gram.shape[0], len(problem.labelled)
    if value.transfer.shape != (n, count) or value.matrix.shape != (count, count):
        nothing = DeformationQuantities(inf, inf, inf)
        return Certificate(False, nothing, tol, "no matrix of the shape asked for")
    gram, convex = exact(problem.gram), definiteness(problem.gram)
    with np.errstate(over="ignore", invalid="ignore"):
        moved = np.asarray(gram @ value.transfer)
        left = value.transfer + problem.bend(moved) - problem.units
        size = float(gram.diag().max(initial=0.0)) or 1.0
        squares = np.einsum("ij,ij->j", left, np.asarray(gram @ left))
        error = np.sqrt(size) * np.sqrt(np.maximum(squares, 0.0)).max(initial=0.0)
        error += np.abs(moved[problem.labelled] - value.matrix).max(initial=0.0)
        residual = float(np.abs(left).max(initial=0.0))
    error = float(error / size) if np.isfinite(error) and np.isfinite(residual) else inf
    found = DeformationQuantities(residual, error, convex.shift)
    text = f"the kernel that the graph deforms is right within {error:.1e} of k(x, x)"
    if not convex.shown:
        text += f"; but {convex.obstacle}"
    return Certificate(bool(error <= tol and not convex.seen), found, tol, text)
