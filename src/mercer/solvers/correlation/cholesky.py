"""Canonical correlations by one Cholesky factor a view, for the penalty (G + penalty)^2.

H = G (G + penalty)^-1 = I - penalty (G + penalty)^-1, so neither eigenvectors nor the square of G
are needed. The inverse is stored: an iteration multiplies by it a few dozen times, and products
of a matrix run several times faster than triangular solves with few columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.gram import FactoredGram, Gram, ShiftedGram
from mercer.problems import Correlation
from mercer.problems.correlation import Squared
from mercer.resources import require_memory
from mercer.solvers.base import Solution, Solver, Watch
from mercer.solvers.correlation.sparse_view import SparseView, sparse_features
from mercer.solvers.correlation.views import View, correlate, has_features, view_of_features

SMALLEST = 1e-8  # penalty over trace: below, a Cholesky factor holds noise
_PANEL = 512  # columns of the inverse at a time; LAPACK's own inverse cannot be interrupted
_AT_ONCE = 5000  # rows: up to here it takes a second
_INVERSES = 3  # matrices beside those of the views: two inverses, and the factor of the second


@dataclass(frozen=True, eq=False)
class InverseView(View):
    """H by a stored inverse.

    Attributes
    ----------
    inverse : (n, n) array
        (G + penalty)^-1.
    penalty : float
        The penalty.
    """

    inverse: Array
    penalty: float
    left: float = 0.0

    @property
    def n(self) -> int:
        """Count the rows."""
        return len(self.inverse)

    @property
    def rank(self) -> None:
        """Nobody counted."""

    def shrink(self, V: Array) -> Array:
        """Multiply by I - penalty (G + penalty)^-1."""
        return np.asarray(V - self.penalty * self.coef(V))

    def coef(self, P: Array) -> Array:
        """Multiply by (G + penalty)^-1."""
        return np.asarray((P.T @ self.inverse).T)  # the faster of two orders; it is symmetric


@dataclass(frozen=True)
class CholeskyCorrelation(Solver):
    """One Cholesky factor a view and block Lanczos; features are used where a view has them.

    Parameters
    ----------
    tol : float
        Largest residual of a squared correlation.
    """

    answers = Correlation

    tol: float = 1e-12

    def _obstacle(self, problem: Correlation) -> str | None:
        """Take the form (G + penalty)^2 with penalties that are not tiny."""
        if not isinstance(problem.form, Squared):
            return "CholeskyCorrelation needs the form Squared(); use solver=EighCorrelation()"
        if any(tiny(gram, penalty) for gram, penalty in problem.views):
            return (
                f"CholeskyCorrelation needs penalties above {SMALLEST:g} of the trace of each "
                "Gram; use solver=EighCorrelation(), which cuts small eigenvalues off"
            )
        return None

    def run(self, problem: Correlation, watch: Watch, start: Any = None) -> Solution:
        """Factor and invert both, iterate."""
        n = max(_size(gram) for gram, _ in problem.views)
        require_memory(
            _INVERSES * 8 * n * n,
            f"the inverses of two matrices of {n} rows",
            "Use CCA(rank=...).",
            held=sum(gram.nbytes for gram, _ in problem.views),
        )
        x, y = (_view(gram, penalty, watch) for gram, penalty in problem.views)
        return correlate(self, problem, x, y, watch, self.tol)


def tiny(gram: Gram, penalty: float) -> bool:
    """Return whether a penalty is too small for a Cholesky factor; features never need one."""
    trace = max(0.0, float(gram.diag().sum()))  # of a constant view it is rounding, of any sign
    return not has_features(gram) and penalty <= SMALLEST * trace


def _size(gram: Gram) -> int:
    """Count the rows of the matrix to be inverted."""
    features = sparse_features(gram)
    return gram.shape[0] if features is None else min(features.factor.shape)


def _view(gram: Gram, penalty: float, watch: Watch) -> View:
    if has_features(gram):
        return view_of_features(cast(FactoredGram, gram), Squared(), penalty)
    features = sparse_features(gram)
    if features is not None and features.factor.shape[1] < gram.shape[0]:
        A = np.ascontiguousarray(features.squared())
        A.flat[:: len(A) + 1] += penalty
        return SparseView(features, _inverted(A, watch), penalty)
    A = ShiftedGram(gram, penalty).dense()
    A = A if A.dtype == np.float64 else A.astype(np.float64)
    return InverseView(_inverted(A, watch), penalty)


def _inverted(A: Array, watch: Watch) -> Array:
    """Invert a positive definite matrix, which is overwritten."""
    if choose_backend().cholesky(A) != 0:
        raise ValueError(
            "CCA: a centred kernel matrix plus its penalty is not positive definite, so the kernel "
            "is not positive semidefinite. Use a valid kernel (mercer.kernels.is_valid tells), or "
            "a larger penalty"
        )
    return _inverse(A, watch)


def _mirrored(lower: Array) -> Array:
    """Fill the upper half of a matrix with the lower one, in place."""
    n = len(lower)
    for first in range(0, n, _PANEL):
        last = min(first + _PANEL, n)
        square = lower[first:last, first:last]
        square[:] = np.tril(square) + np.tril(square, -1).T
        lower[first:last, last:] = lower[last:, first:last].T
    return lower


def _inverse(L: Array, watch: Watch) -> Array:
    """Invert L L' from its lower factor, which is overwritten."""
    n = len(L)
    if n <= _AT_ONCE:
        upper, _ = linalg.lapack.dpotri(L.T, lower=0, overwrite_c=1)
        return _mirrored(upper.T)
    inverse = np.empty_like(L)
    for first in range(0, n, _PANEL):
        right = np.zeros((n, min(_PANEL, n - first)), order="F")
        right[first : first + right.shape[1]] = np.eye(right.shape[1])
        inverse[first : first + right.shape[1]] = linalg.cho_solve(
            (L.T, False), right, overwrite_b=True, check_finite=False
        ).T
    return inverse
