"""Canonical correlations by one Cholesky factor a view, for the penalty (G + penalty)^2.

H = G (G + penalty)^-1 = I - penalty (G + penalty)^-1, so neither eigenvectors nor the square of G
are needed. The inverse is stored: an iteration multiplies by it a few dozen times, and products
of a matrix run several times faster than triangular solves with few columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.stored import Factor
from mercer.gram import FactoredGram, Gram
from mercer.problems import Correlation
from mercer.problems.correlation import Squared
from mercer.resources import require_memory
from mercer.solvers.base import Solution, Solver, Watch
from mercer.solvers.correlation.sparse_view import SparseView, sparse_features
from mercer.solvers.correlation.views import View, correlate, has_features, view_of_features

SMALLEST = 1e-8  # penalty over trace: below, a Cholesky factor holds noise
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
        x, y = (_view(gram, penalty) for gram, penalty in problem.views)
        return correlate(self, problem, x, y, watch, self.tol)


def tiny(gram: Gram, penalty: float) -> bool:
    """Return whether a penalty is too small for a Cholesky factor; features never need one."""
    trace = max(0.0, float(gram.diag().sum()))  # of a constant view it is rounding, of any sign
    return not has_features(gram) and penalty <= SMALLEST * trace


def _size(gram: Gram) -> int:
    """Count the rows of the matrix to be inverted."""
    features = sparse_features(gram)
    return gram.shape[0] if features is None else min(features.factor.shape)


def _view(gram: Gram, penalty: float) -> View:
    if has_features(gram):
        return view_of_features(cast(FactoredGram, gram), Squared(), penalty)
    features = sparse_features(gram)
    if features is not None and features.factor.shape[1] < gram.shape[0]:
        A = np.ascontiguousarray(features.squared())
        A.flat[:: len(A) + 1] += penalty
        return SparseView(features, _inverted(choose_backend().cholesky_factor(A)), penalty)
    return InverseView(_inverted(gram.cholesky(np.full(gram.shape[0], penalty))), penalty)


def _inverted(factor: Factor | None) -> Array:
    """Invert a positive definite matrix."""
    if factor is None:
        raise ValueError(
            "CCA: a centred kernel matrix plus its penalty is not positive definite, so the kernel "
            "is not positive semidefinite. Use a valid kernel (mercer.kernels.is_valid tells), or "
            "a larger penalty"
        )
    return factor.inverse()
