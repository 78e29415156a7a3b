"""Views of a canonical correlation, H = U diag(shrink(s)) U', and the correlations of two.

The correlations of two views are the singular values of H_x H_y. How H is held is all that sets the
algorithms apart: by a basis (`BasisView`), as a stored inverse, or by inner iterations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends.lapack import interruptible
from mercer.gram import FactoredGram, Gram
from mercer.problems import CanonicalPairs, Correlation
from mercer.problems.correlation import Shrinkage, column_sizes
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.spectral.krylov import block_width, largest_pairs
from mercer.solvers.spectral.signs import signs_of

_CUT = 1e-10  # singular values of features, of the largest: below, rounding of the centring


class View(ABC):
    """H of one view.

    Attributes
    ----------
    left : float
        Trace of what an approximation left out of the Gram.
    """

    left: float

    @property
    @abstractmethod
    def n(self) -> int:
        """Count the rows."""

    @property
    @abstractmethod
    def rank(self) -> int | None:
        """Count the directions, where that is known."""

    @abstractmethod
    def shrink(self, V: Array) -> Array:
        """Multiply by H."""

    @abstractmethod
    def coef(self, P: Array) -> Array:
        """Turn unit vectors into coefficients: M^-1/2 P."""

    def weights(self, P: Array) -> Array | None:
        """Turn unit vectors into weights of features, where those are at hand."""
        return None


@dataclass(frozen=True, eq=False)
class BasisView(View):
    """H by an orthonormal basis of the variates that the view can reach.

    Attributes
    ----------
    vectors : (n, r) array
        The basis U.
    factors : (r,) array
        By how much the penalty shrinks along each.
    """

    vectors: Array
    factors: Array

    @property
    def n(self) -> int:
        """Count the rows."""
        return len(self.vectors)

    @property
    def rank(self) -> int:
        """Count the directions."""
        return len(self.factors)

    def shrink(self, V: Array) -> Array:
        """Multiply in the basis."""
        return np.asarray(self.vectors @ (self.factors[:, None] * (self.vectors.T @ V)))


@dataclass(frozen=True, eq=False)
class SpectralView(BasisView):
    """H by the eigenvectors of the Gram.

    Attributes
    ----------
    roots : (r,) array
        The eigenvalues of M^-1/2.
    left : float
        Trace of what was left out.
    """

    roots: Array
    left: float = 0.0

    def coef(self, P: Array) -> Array:
        """Divide in the eigenbasis."""
        return np.asarray(self.vectors @ (self.roots[:, None] * (self.vectors.T @ P)))


@dataclass(frozen=True, eq=False)
class FeatureView(BasisView):
    """H by features, whose own weights are kept: coefficients would cost the condition twice.

    Attributes
    ----------
    directions : (D, r) array
        The weights of the features whose variates are the basis, penalty included.
    roots : (r, r) array
        M^-1/2 in the basis.
    """

    directions: Array
    roots: Array
    left: float = 0.0

    def coef(self, P: Array) -> Array:
        """Multiply in the basis."""
        return np.asarray(self.vectors @ (self.roots @ (self.vectors.T @ P)))

    def weights(self, P: Array) -> Array:
        """Combine the directions."""
        return np.asarray(self.directions @ (self.vectors.T @ P))


def spectral(
    vectors: Array, s: Array, form: Shrinkage, penalty: float, left: float = 0.0
) -> SpectralView:
    """Return the view of known eigenpairs, all of them positive."""
    return SpectralView(vectors, form.shrink(s, penalty), form.inverse_root(s, penalty), left)


def has_features(gram: Gram) -> bool:
    """Return whether a Gram has fewer dense features than rows."""
    return isinstance(gram, FactoredGram) and isinstance(gram.factor, np.ndarray)


def view_of_features(gram: FactoredGram, form: Shrinkage, penalty: float) -> FeatureView:
    """Return the view of a Gram with dense features: QR, then the singular values of R.

    The features themselves are orthonormalised, not F'F: directions whose variances differ by up
    to 10^20 keep their place. Without a penalty the scale of a column means nothing, and is taken
    off first.
    """
    sizes = column_sizes(gram)
    if penalty == 0:
        view = _independent(gram.factor, sizes)
        if view is not None:
            return view
    Q, R = interruptible(np.linalg.qr, np.where(sizes > 0, gram.factor, 0.0))
    W, sigma, Vt = interruptible(np.linalg.svd, R, full_matrices=False)
    kept = sigma > _CUT * sigma.max(initial=0.0)
    sigma, s = sigma[kept], np.square(sigma[kept])
    roots = form.inverse_root(s, penalty)
    directions = Vt[kept].T * (sigma * roots)
    return FeatureView(Q @ W[:, kept], form.shrink(s, penalty), directions, np.diag(roots))


def _independent(F: Array, sizes: Array) -> FeatureView | None:
    """Return the view of independent columns without a penalty; None where they depend."""
    live = np.flatnonzero(sizes)
    Q, R = interruptible(np.linalg.qr, F[:, live] / sizes[live])
    sigma = np.linalg.svd(R, compute_uv=False)
    if len(sigma) < len(live) or (sigma <= _CUT * sigma.max(initial=0.0)).any():
        return None
    inverse = linalg.solve_triangular(R, np.eye(len(live))) if len(live) else R
    directions = np.zeros((len(sizes), len(live)))
    directions[live] = inverse / sizes[live, None]
    return FeatureView(Q, np.ones(len(live)), directions, directions.T @ directions)


# --- singular pairs of H_x H_y: directly where a view has few directions, else by block Lanczos --

_FEW = 400  # directions: up to here all singular pairs cost less than an iteration


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Unit vectors of both views, their correlations, and how they were found."""

    left: Array
    values: Array
    right: Array
    status: Status = Status.SOLVED
    iterations: int = 1

    def swapped(self) -> _Pairs:
        return _Pairs(self.right, self.values, self.left, self.status, self.iterations)


def correlate(
    solver: Solver, problem: Correlation, x: View, y: View, watch: Watch, tol: float = 1e-10
) -> Solution:
    """Return the answer from both views: pairs, coefficients, ranks and the bound."""
    found = _pairs(x, y, min(problem.count, problem.gram_x.shape[0]), watch, tol)
    turn = signs_of(x.shrink(found.left))
    left, right = found.left * turn, found.right * turn
    value = CanonicalPairs(
        _padded(np.clip(found.values, 0.0, 1.0), problem.count),
        _padded(x.coef(left), problem.count),
        _padded(y.coef(right), problem.count),
        x.rank,
        y.rank,
        _bound(problem, x, y),
        _maybe_padded(x.weights(left), problem.count),
        _maybe_padded(y.weights(right), problem.count),
    )
    return report(solver, value, found.status, found.iterations, watch)


def _pairs(x: View, y: View, count: int, watch: Watch, tol: float) -> _Pairs:
    if isinstance(x, BasisView) and isinstance(y, BasisView):
        few = min(x.rank, y.rank)
        if few <= _FEW or 3 * (count + block_width(count)) > few:
            return _small(x, y, count)
    if isinstance(y, BasisView) and y.rank <= _FEW:
        return _direct(x, y, count)
    if isinstance(x, BasisView) and x.rank <= _FEW:
        return _direct(y, x, count).swapped()
    return _iterated(x, y, count, watch, tol)


def _small(x: BasisView, y: BasisView, count: int) -> _Pairs:
    """Take the singular pairs of the matrix between two bases."""
    M = x.factors[:, None] * (x.vectors.T @ y.vectors) * y.factors
    P, rho, Qt = interruptible(np.linalg.svd, M, full_matrices=False)
    return _Pairs(x.vectors @ P[:, :count], rho[:count], y.vectors @ Qt[:count].T)


def _direct(x: View, y: BasisView, count: int) -> _Pairs:
    """Take all singular pairs of H_x U_y diag(factors), a matrix of few columns."""
    P, rho, Qt = np.linalg.svd(x.shrink(y.vectors * y.factors), full_matrices=False)
    return _Pairs(P[:, :count], rho[:count], y.vectors @ Qt[:count].T)


def _iterated(x: View, y: View, count: int, watch: Watch, tol: float) -> _Pairs:
    """Find the largest eigenpairs of H_y H_x H_x H_y; one half of it splits them into pairs."""

    def apply(V: Array) -> Array:
        return y.shrink(x.shrink(x.shrink(y.shrink(V))))

    found = largest_pairs(apply, x.n, count, tol=tol, watch=watch)
    half = x.shrink(y.shrink(found.vectors))
    P, rho, Vt = np.linalg.svd(half, full_matrices=False)
    return _Pairs(P, rho, found.vectors @ Vt.T, found.status, found.iterations)


def _padded(values: Array, count: int) -> Array:
    """Put zeros where the views have no more directions."""
    missing = count - values.shape[-1]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])


def _maybe_padded(values: Array | None, count: int) -> Array | None:
    return None if values is None else _padded(values, count)


def _bound(problem: Correlation, x: View, y: View) -> float:
    """Bound the change of H by the trace left over the penalty, in both views together."""
    total = 0.0
    for view, penalty in zip((x, y), problem.penalties, strict=True):
        if view.left > 0:
            with np.errstate(over="ignore"):  # more than any number: no bound is known
                total += float(np.divide(view.left, max(penalty, np.finfo(float).tiny)))
    return float(min(total, np.finfo(float).max))
