"""CCA solvers: eigenvectors, Cholesky, products alone, QR, and sparse features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.contract import Factor
from mercer.backends.factorizations import qr, svd
from mercer.gram import (
    CachedGram,
    CenteredGram,
    FactoredGram,
    Gram,
    LazyGram,
    ScaledGram,
)
from mercer.machines.correlation.problem import (
    CanonicalPairs,
    Correlation,
    Shrinkage,
    Squared,
    column_sizes,
)
from mercer.resources import require_memory
from mercer.rows.points import is_sparse, to_dense
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.dispatch import choose
from mercer.solvers.eigen.block_lanczos import block_width, largest_pairs
from mercer.solvers.eigen.dense import DECOMPOSED, signs_of

# --- views ---------------------------------------------------------------------------------------
#
# Views of a canonical correlation, H = U diag(shrink(s)) U', and the correlations of two.
#
# The correlations of two views are the singular values of H_x H_y. How H is held is all that sets
# the algorithms apart: by a basis (`BasisView`), as a stored inverse, or by inner iterations.

_VIEWS_CUT = 1e-10  # singular values of features, of the largest: below, rounding of the centring


class View(ABC):
    """H of one view."""

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
    """

    roots: Array

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

    def coef(self, P: Array) -> Array:
        """Multiply in the basis."""
        return np.asarray(self.vectors @ (self.roots @ (self.vectors.T @ P)))

    def weights(self, P: Array) -> Array:
        """Combine the directions."""
        return np.asarray(self.directions @ (self.vectors.T @ P))


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
    Q, R = qr(np.where(sizes > 0, gram.factor, 0.0))
    W, sigma, Vt = svd(R)
    kept = sigma > _VIEWS_CUT * sigma.max(initial=0.0)
    sigma, s = sigma[kept], np.square(sigma[kept])
    roots = form.inverse_root(s, penalty)
    directions = Vt[kept].T * (sigma * roots)
    return FeatureView(Q @ W[:, kept], form.shrink(s, penalty), directions, np.diag(roots))


def _independent(F: Array, sizes: Array) -> FeatureView | None:
    """Return the view of independent columns without a penalty; None where they depend."""
    live = np.flatnonzero(sizes)
    Q, R = qr(F[:, live] / sizes[live])
    sigma = np.linalg.svd(R, compute_uv=False)
    if len(sigma) < len(live) or (sigma <= _VIEWS_CUT * sigma.max(initial=0.0)).any():
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
    """Return the answer from both views: pairs, coefficients and ranks."""
    found = _pairs(x, y, min(problem.count, problem.gram_x.shape[0]), watch, tol)
    turn = signs_of(x.shrink(found.left))
    left, right = found.left * turn, found.right * turn
    value = CanonicalPairs(
        _padded(np.clip(found.values, 0.0, 1.0), problem.count),
        _padded(x.coef(left), problem.count),
        _padded(y.coef(right), problem.count),
        x.rank,
        y.rank,
        0.0,
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
    P, rho, Qt = svd(M)
    return _Pairs(x.vectors @ P[:, :count], rho[:count], y.vectors @ Qt[:count].T)


def _direct(x: View, y: BasisView, count: int) -> _Pairs:
    """Take all singular pairs of H_x U_y diag(factors), a matrix of few columns."""
    P, rho, Qt = svd(x.shrink(y.vectors * y.factors))
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


# --- eigh ----------------------------------------------------------------------------------------
#
# Canonical correlations by the eigenvectors of both Grams, with an explicit cut.


@dataclass(frozen=True)
class EighCorrelation(Solver):
    """All eigenpairs of both Grams: any form, any penalty however small, and the ranks.

    Parameters
    ----------
    cut : float
        Eigenvalues below this share of the largest count as zero.
    """

    answers = Correlation

    cut: float = 1e-12

    def run(self, problem: Correlation, watch: Watch, start: Any = None) -> Solution:
        """Decompose both, compare."""
        x, y = (view_by_eigh(gram, problem.form, p, self.cut) for gram, p in problem.views)
        return correlate(self, problem, x, y, watch)


def view_by_eigh(gram: Gram, form: Shrinkage, penalty: float, cut: float) -> BasisView:
    """Return a view by LAPACK's eigenpairs; by QR where there are features."""
    if has_features(gram):
        return view_of_features(cast(FactoredGram, gram), form, penalty)
    n = gram.shape[0]
    require_memory(
        DECOMPOSED * 8 * n * n,
        f"the eigendecomposition of {n} points",
        "Use landmarks (approximation=Nystrom(1000)), or a form and penalty that allow a Cholesky "
        "factor.",
        held=2 * gram.nbytes,
    )
    s, U = choose_backend().eigh(np.asarray(gram.dense(), dtype=np.float64))
    # what centring leaves of a constant view is rounding of means, alike in all n^2 entries
    noise = 4 * n**1.5 * float(np.finfo(float).eps) * _eigh_size(gram)
    kept = s > max(cut * s.max(initial=0.0), noise)
    s = s[kept]
    return SpectralView(U[:, kept], form.shrink(s, penalty), form.inverse_root(s, penalty))


def _eigh_size(gram: Gram) -> float:
    """Return the largest entry of the Gram before it was scaled and centred."""
    base: Any = gram
    while hasattr(base, "base"):
        base = base.base
    return float(np.abs(base.diag()).max(initial=0.0))


# --- cholesky ------------------------------------------------------------------------------------
#
# Canonical correlations by one Cholesky factor a view, for the penalty (G + penalty)^2.
#
# H = G (G + penalty)^-1 = I - penalty (G + penalty)^-1, so neither eigenvectors nor the square of
# G are needed. The inverse is stored: an iteration multiplies by it a few dozen times, and
# products of a matrix run several times faster than triangular solves with few columns.

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
        n = max(_cholesky_size(gram) for gram, _ in problem.views)
        require_memory(
            _INVERSES * 8 * n * n,
            f"the inverses of two matrices of {n} rows",
            "Use landmarks (approximation=Nystrom(1000)).",
            held=sum(gram.nbytes for gram, _ in problem.views),
        )
        x, y = (_view(gram, penalty) for gram, penalty in problem.views)
        return correlate(self, problem, x, y, watch, self.tol)


def tiny(gram: Gram, penalty: float) -> bool:
    """Return whether a penalty is too small for a Cholesky factor; features never need one."""
    trace = max(0.0, float(gram.diag().sum()))  # of a constant view it is rounding, of any sign
    return not has_features(gram) and penalty <= SMALLEST * trace


def _cholesky_size(gram: Gram) -> int:
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


# --- iterative -----------------------------------------------------------------------------------
#
# Canonical correlations from products alone: conjugate gradients inside block Lanczos.
#
# For sparse rows of many columns, where neither the Gram nor F'F can be stored. Every product
# with H = I - penalty (G + penalty)^-1 is solved by conjugate gradients; with a penalty of a
# hundredth of the trace the system has a condition of at most a hundred, and a dozen products do.


@dataclass(frozen=True, eq=False)
class ProductView(View):
    """H by conjugate gradients.

    Attributes
    ----------
    gram : Gram
        G.
    penalty : float
        The penalty.
    tol : float
        Relative residual of each solve.
    """

    gram: Gram
    penalty: float
    tol: float

    @property
    def n(self) -> int:
        """Count the rows."""
        return self.gram.shape[0]

    @property
    def rank(self) -> None:
        """Nobody counted."""

    def shrink(self, V: Array) -> Array:
        """Multiply by I - penalty (G + penalty)^-1."""
        return np.asarray(V - self.penalty * self.coef(V))

    def coef(self, P: Array) -> Array:
        """Solve (G + penalty) C = P, all columns side by side."""
        P = np.asarray(P, dtype=np.float64)
        C, R = np.zeros_like(P), P.copy()
        D, size = R.copy(), np.einsum("ij,ij->j", R, R)
        goal = self.tol**2 * size
        for _ in range(10 * self.n):
            going = size > goal
            if not going.any():
                break
            AD = self.gram @ D + self.penalty * D
            step = np.where(going, size / np.where(going, np.einsum("ij,ij->j", D, AD), 1.0), 0.0)
            C += step * D
            R -= step * AD
            new = np.einsum("ij,ij->j", R, R)
            D = R + np.where(going, new / np.where(going, size, 1.0), 0.0) * D
            size = new
        return C


@dataclass(frozen=True)
class IterativeCorrelation(Solver):
    """Block Lanczos on products, each solved by conjugate gradients.

    Parameters
    ----------
    tol : float
        Largest residual of a squared correlation.
    """

    answers = Correlation

    tol: float = 1e-9

    def _obstacle(self, problem: Correlation) -> str | None:
        """Take the form (G + penalty)^2 with penalties that are not tiny."""
        if not isinstance(problem.form, Squared):
            return (
                "without storing the Gram, only the form (K + penalty)^2 can be answered; use "
                "form='squared', or landmarks (approximation=Nystrom(1000))"
            )
        if any(tiny(gram, penalty) for gram, penalty in problem.views):
            return (
                f"without storing the Gram, penalties above {SMALLEST:g} of its trace are needed; "
                "use a larger penalty, or landmarks (approximation=Nystrom(1000))"
            )
        return None

    def run(self, problem: Correlation, watch: Watch, start: Any = None) -> Solution:
        """Iterate on products."""
        x, y = (self._view(gram, penalty) for gram, penalty in problem.views)
        return correlate(self, problem, x, y, watch, self.tol)

    def _view(self, gram: Gram, penalty: float) -> View:
        if has_features(gram):
            return view_of_features(cast(FactoredGram, gram), Squared(), penalty)
        return ProductView(gram, penalty, 0.01 * self.tol)


# --- qr ------------------------------------------------------------------------------------------
#
# Canonical correlations of views with explicit features: QR of each, SVD of what they share.


@dataclass(frozen=True)
class QRCorrelation(Solver):
    """F = Q R for each view; correlations are the cosines of the principal angles.

    Any penalty, any rank: directions below 1e-10 of the largest singular value are not counted.
    """

    answers = Correlation

    def _obstacle(self, problem: Correlation) -> str | None:
        """Take two views with dense features."""
        if not all(has_features(gram) for gram, _ in problem.views):
            return (
                "QRCorrelation needs explicit dense features of both views; use "
                "solver=CholeskyCorrelation()"
            )
        return None

    def run(self, problem: Correlation, watch: Watch, start: Any = None) -> Solution:
        """Orthonormalise both, compare."""
        x, y = (
            view_of_features(cast(FactoredGram, gram), problem.form, penalty)
            for gram, penalty in problem.views
        )
        return correlate(self, problem, x, y, watch)


# --- sparse view ---------------------------------------------------------------------------------
#
# A view with sparse features of which there are few enough to factor F'F: H = F A^-1 F'.
#
# With A = F'F + penalty, (F F' + penalty)^-1 = (I - F A^-1 F') / penalty. Centring is never
# written out: the mean of the features and the weights of the rows are applied on the way.

MOST = 8000  # features: up to here F'F is factored in seconds


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """diag(scale) (F - 1 mean'), never written out.

    Attributes
    ----------
    factor : (n, D) sparse array
        F.
    mean : (D,) array
        What is taken off every row.
    scale : (n,) array
        What every row is multiplied by afterwards.
    """

    factor: Any
    mean: Array
    scale: Array

    def times(self, V: Array) -> Array:
        """Multiply by V (D, b)."""
        return np.asarray(self.scale[:, None] * (self.factor @ V - self.mean @ V))

    def transposed_times(self, V: Array) -> Array:
        """Multiply the transpose by V (n, b)."""
        scaled = self.scale[:, None] * V
        return np.asarray(self.factor.T @ scaled - np.outer(self.mean, scaled.sum(axis=0)))

    def squared(self) -> Array:
        """Return the product of the transpose with itself: (D, D)."""
        weights = self.scale**2
        squares = to_dense(self.factor.T @ self.factor.multiply(weights[:, None]))
        total = np.outer(self.factor.T @ weights, self.mean)
        squares -= total + total.T
        squares += weights.sum() * np.outer(self.mean, self.mean)
        return squares


def sparse_features(gram: Gram) -> SparseFeatures | None:
    """Return the sparse features under the wrappers of a Gram; None where there are none."""
    scale: Any = 1.0
    if isinstance(gram, ScaledGram):
        scale, gram = gram.scale, gram.base
    if not isinstance(gram, CenteredGram) or not isinstance(gram.base, FactoredGram):
        return None
    F = gram.base.factor
    if not is_sparse(F):
        return None
    return SparseFeatures(F, np.asarray(F.T @ gram.weights), np.broadcast_to(scale, F.shape[:1]))


@dataclass(frozen=True, eq=False)
class SparseView(View):
    """H by the inverse of F'F + penalty.

    Attributes
    ----------
    features : SparseFeatures
        F, centred.
    inverse : (D, D) array
        (F'F + penalty)^-1.
    penalty : float
        The penalty.
    """

    features: SparseFeatures
    inverse: Array
    penalty: float

    @property
    def n(self) -> int:
        """Count the rows."""
        return int(self.features.factor.shape[0])

    @property
    def rank(self) -> None:
        """Nobody counted."""

    def shrink(self, V: Array) -> Array:
        """Multiply by F A^-1 F'."""
        return self.features.times(self.inverse @ self.features.transposed_times(V))

    def coef(self, P: Array) -> Array:
        """Multiply by (I - H) / penalty."""
        return np.asarray((P - self.shrink(P)) / self.penalty)


# --- choice -------------------------------------------------------------------------------------


@choose.register
def _(problem: Correlation) -> Solver:
    grams = [gram for gram, _ in problem.views]
    if all(map(has_features, grams)):
        return QRCorrelation()
    if any(map(_unstored, grams)):
        return IterativeCorrelation()
    few = 3 * (problem.count + block_width(problem.count)) > problem.gram_x.shape[0]
    if few or CholeskyCorrelation().refuses(problem):
        return EighCorrelation()
    return CholeskyCorrelation()


def _unstored(gram: Gram) -> bool:
    """Return whether a Gram, under its wrappers, is better multiplied than written out."""
    base = gram.raw
    if not isinstance(base, FactoredGram) or has_features(base):
        return isinstance(base, LazyGram | CachedGram)
    return bool(min(base.factor.shape) > MOST)
