"""Held-out errors of ridge regression: systems of folds, and direct solvers for all penalties."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import Band, RowParts, choose_backend
from mercer.backends.lapack import one_blas_thread
from mercer.gram import FactoredGram
from mercer.machines.ridge.direct import solve_band
from mercer.machines.ridge.problem import FeatureMoments, FoldedPathValue, FoldedRidgePath
from mercer.solvers.base import Solution, Solver, Status, Watch, report

# --- products ------------------------------------------------------------------------------------
#
# Rows in an order in which every fold has, or leaves out, whole parts of them.
#
# Products for a fold read only the rows that it has, and mostly are wanted there only. With the
# rows of each part side by side, whole blocks of the matrix are no work for a fold: of five folds
# three use a block off the diagonal.

_LEAST = 50  # rows of a part, on average: blocks of fewer are slower than what they save


def fold_order(trains: Sequence[Array], weights: Array | None, n: int) -> Array:
    """Return rows in an order of few parts, or as they are where there is none."""
    inside = _inside(trains, n)
    if weights is not None:
        inside[weights == 0] = False
    # folds are eight to a byte, so that many of them are compared at once
    patterns, part = np.unique(np.packbits(inside, axis=1), axis=0, return_inverse=True)
    if len(patterns) * _LEAST > n:
        return np.arange(n)
    return np.argsort(-part.ravel(), kind="stable")


class FoldParts:
    """Products of several folds with one matrix.

    Parameters
    ----------
    rows : sequence of int arrays
        Those of each fold.
    n : int
        All of them.
    """

    def __init__(self, rows: Sequence[Array], n: int) -> None:
        inside = _inside(rows, n)
        change = (inside[1:] != inside[:-1]).any(axis=1)
        self._ends = np.append(np.flatnonzero(change) + 1, n)
        self._inside = inside[self._ends - 1]
        self._few = len(self._ends) * _LEAST <= n

    def product(
        self,
        K: Array,
        blocks: Sequence[Array],
        reads: bool | None = None,
        writes: bool | None = None,
    ) -> Array:
        """Return K times a block of each fold, side by side, in one pass over the matrix.

        Parameters
        ----------
        K : (n, n) array
            Symmetric, float32 or float64.
        blocks : sequence of arrays (n, k)
            One for each fold.
        reads, writes : bool or None
            Where blocks are not zero, and where products are wanted: True in the fold's rows only,
            False in others only, None at all rows. What is not wanted may be anything.

        Returns
        -------
        product : array
            As many columns as all blocks have.
        """
        V = np.hstack(blocks)
        if not self._few or not V.size:
            return choose_backend().symmetric_product(K, V)
        inside = np.repeat(self._inside, [block.shape[1] for block in blocks], axis=1)
        every = np.full_like(inside, True)
        where = [every if to is None else inside == to for to in (reads, writes)]
        return choose_backend().symmetric_product(K, V, RowParts(self._ends, *where))


def _inside(rows: Sequence[Array], n: int) -> Array:
    """Return which rows are in which fold: (n, folds)."""
    inside = np.zeros((n, len(rows)), dtype=bool)
    for k, own in enumerate(rows):
        inside[own, k] = True
    return inside


# --- system --------------------------------------------------------------------------------------
#
# The equations of ridge regression on the rows of one fold, and how well an answer meets them.
#
# With weights s, R = S^1/2 and a = R x, the fit at penalty p solves (R K R + p) x = R (y - b).
# With a bias, x is orthogonal to w = R 1 / |R 1|; it solves the same equations with R K R and R y
# projected onto the complement of w. The matrix of all rows is never cut: a product with
# coefficients that are zero outside of the fold gives the fit at all rows, those left out
# included.

_ENOUGH = 1e-9  # of the targets: residuals from here on are answers
_SYSTEM_BOUND = 1e-5  # of the targets: what a prediction may be off at most


@dataclass(frozen=True, eq=False)
class FoldSystem:
    """One fold.

    Attributes
    ----------
    K : (n, n) array
        The kernel on all rows.
    rows : (m,) int array
        Rows learnt from, weights above zero.
    root : (m,) array
        R.
    right : (m,) array
        R y, projected where there is a bias.
    targets : (m,) array
        y.
    along : (m,) array or None
        w where there is a bias.
    """

    K: Array
    rows: Array
    root: Array
    right: Array
    targets: Array
    along: Array | None

    @classmethod
    def of(cls, K: Array, rows: Array, y: Array, weights: Array | None, bias: bool) -> FoldSystem:
        """Write the equations of some rows."""
        s = np.ones(len(rows)) if weights is None else weights[rows]
        rows, s = rows[s > 0], s[s > 0]
        root, targets = np.sqrt(s), y[rows]
        along = root / np.linalg.norm(root) if bias else None
        system = cls(K, rows, root, root * targets, targets, along)
        return cls(K, rows, root, system.project(system.right[:, None])[:, 0], targets, along)

    def matrix(self) -> Array:
        """Return R K R as a new matrix, free to be overwritten."""
        A = self.root[:, None] * self.K[np.ix_(self.rows, self.rows)] * self.root
        return np.ascontiguousarray(A)

    def project(self, V: Array) -> Array:
        """Take off what lies along the bias."""
        return V if self.along is None else V - np.outer(self.along, self.along @ V)

    def spread(self, X: Array) -> Array:
        """Return a = R x at all rows, zero outside of the fold."""
        full = np.zeros((len(self.K), X.shape[1]))
        full[self.rows] = self.root[:, None] * X
        return full

    def values(self, X: Array) -> Array:
        """Return K a at all rows for a = R x."""
        parts = FoldParts([self.rows], len(self.K))
        return parts.product(self.K, [self.spread(X)], reads=True)

    def operate(self, values: Array) -> Array:
        """Return the projected R K R x from the values of x at all rows."""
        return self.project(self.root[:, None] * values[self.rows])

    def intercept(self, values: Array) -> Array:
        """Return the bias that goes with values at all rows."""
        if self.along is None:
            return np.zeros(values.shape[1])
        left = self.targets[:, None] - values[self.rows]
        share = self.root**2 / np.sum(self.root**2)
        return np.asarray(share @ left)

    def residuals(self, X: Array, values: Array, penalties: Array) -> Array:
        """Return what is left of the equations for each penalty."""
        left = self.right[:, None] - self.operate(values) - X * penalties
        return np.asarray(left)

    def enough(self, penalties: Array) -> Array:
        """Return the sizes from which on residuals make an answer, for each penalty.

        A residual r moves a prediction by k_z'R (R K R + p)^-1 r, which is at most
        k(z, z)^1/2 |r| / (2 p^1/2). That is far from reached, but bounds what a small residual can
        hide at a tiny penalty.
        """
        largest = float(self.K.diagonal().max(initial=0.0)) * len(self.rows)
        bound = 2.0 * np.sqrt(penalties / (largest if largest > 0 else 1.0))
        return np.asarray(np.minimum(_ENOUGH, _SYSTEM_BOUND * bound))

    def sizes(self, residuals: Array) -> Array:
        """Measure residuals in units of the targets."""
        unit = np.linalg.norm(self.right)
        return np.asarray(np.linalg.norm(residuals, axis=0) / (unit if unit > 0 else 1.0))


def fold_systems(problem: FoldedRidgePath) -> list[FoldSystem]:
    """Write the equations of all folds."""
    K = np.ascontiguousarray(problem.gram.dense(), dtype=np.float64)
    weights, y = problem.row_weights, problem.targets
    return [FoldSystem.of(K, fold, y, weights, problem.bias) for fold in problem.folds or ()]


# --- fits ----------------------------------------------------------------------------------------
#
# Fits of a fold at several penalties: found, refined against their equations, put together.

_FITS_REFINEMENTS = 2  # what is not met then never is: rounding of K stands in the way

Correct = Callable[[Array, Array], Array]
"""Takes positions of penalties and what is left of their equations; returns what to add to x."""


@dataclass(frozen=True, eq=False)
class FoldFits:
    """Fits of one fold for several penalties.

    Attributes
    ----------
    values : (n, p) array
        Predictions at all rows.
    met : (p,) bool array
        Whether the equations are met.
    coef : (n, p) array
        Coefficients, zero outside of the fold.
    intercept : (p,) array
        Biases.
    """

    values: Array
    met: Array
    coef: Array
    intercept: Array

    @staticmethod
    def nothing(system: FoldSystem, penalties: Array) -> FoldFits:
        """Return fits that meet no equation."""
        table = np.full((len(system.K), len(penalties)), np.nan)
        met = np.zeros(len(penalties), dtype=bool)
        return FoldFits(table, met, table.copy(), table[0].copy())

    def put(self, chosen: Array, others: FoldFits) -> None:
        """Take the fits of some penalties from others."""
        self.values[:, chosen], self.met[chosen] = others.values, others.met
        self.coef[:, chosen], self.intercept[chosen] = others.coef, others.intercept


def refined(
    system: FoldSystem,
    penalties: Array,
    correct: Correct,
    watch: Watch,
    tried: Array | None = None,
) -> FoldFits:
    """Solve, then solve again for what the equations leave, until that is small enough.

    Parameters
    ----------
    system : FoldSystem
        The equations; what they leave is always computed from K itself.
    penalties : (p,) array
        All of them.
    correct : callable
        Solves, about as well as it can.
    watch : Watch
        Asked before every refinement.
    tried : (p,) bool array, optional
        Penalties to solve for; all by default.
    """
    count, enough = len(penalties), system.enough(penalties)
    X, values = np.zeros((len(system.rows), count)), np.zeros((len(system.K), count))
    residuals = np.repeat(system.right[:, None], count, axis=1)
    sizes = np.full(count, np.inf) if tried is None else np.where(tried, np.inf, np.nan)
    for refinement in range(1 + _FITS_REFINEMENTS):
        worse = np.flatnonzero(sizes > enough)  # no number is no better the next time
        if not len(worse) or (refinement and watch.tick(refinement, len(worse))):
            break
        X[:, worse] += correct(worse, residuals[:, worse])
        values[:, worse] = system.values(X[:, worse])
        residuals[:, worse] = system.residuals(X[:, worse], values[:, worse], penalties[worse])
        sizes[worse] = system.sizes(residuals[:, worse])
    intercept = system.intercept(values)
    return FoldFits(values + intercept, sizes <= enough, system.spread(X), intercept)


def reported(
    solver: Solver, problem: FoldedRidgePath, fits: Sequence[FoldFits], steps: int, watch: Watch
) -> Solution:
    """Put the fits of all folds together; folds that were not reached have none."""
    n, p, k = len(problem.targets), len(problem.penalties), len(problem.folds or ())
    values, coef = np.empty((k, n, p)), np.empty((k, n, p))
    met, intercept = np.zeros((k, p), dtype=bool), np.empty((k, p))
    for fold, found in enumerate(fits):
        values[fold], coef[fold] = found.values, found.coef
        met[fold], intercept[fold] = found.met, found.intercept
    return ended(solver, FoldedPathValue(values, met, intercept, coef), steps, watch)


def ended(solver: Solver, value: FoldedPathValue, steps: int, watch: Watch) -> Solution:
    """Return how it ended: whether all equations are met; what does not meet them is NaN."""
    unmet = int(np.count_nonzero(~value.met))
    if not unmet:
        return report(solver, value, Status.SOLVED, steps, watch)
    for part in (value.values, value.coef, value.weights):
        if part is not None:
            part.transpose(0, 2, 1)[~value.met] = np.nan
    if value.intercept is not None:
        value.intercept[~value.met] = np.nan
    detail = f"{unmet} of {value.met.size} fits do not meet their equations"
    return report(solver, value, watch.stopped or Status.INACCURATE, steps, watch, detail)


# --- fold solver ---------------------------------------------------------------------------------
#
# What solvers of ridge paths over folds have in common.


class FoldSolver(Solver):
    """A solver of the folds of a `FoldedRidgePath`, from K."""

    def refuses(self, problem: Any) -> str | None:
        """Take ridge paths over folds, leave-one-out apart."""
        name = type(self).__name__
        refusal = refuses(name, problem)
        if refusal is None and problem.folds is None:
            return f"{name} needs folds; use solver=BandPath()"
        return refusal


class DirectFolds(FoldSolver):
    """A solver that factors the matrix of one fold after another."""

    def run(self, problem: FoldedRidgePath, watch: Watch, start: Any = None) -> Solution:
        """Answer fold by fold."""
        fits: list[FoldFits] = []
        # factors have threads of ours; the rest is small, or would depend on how many there are
        with one_blas_thread(), watch.keeping(lambda: bool(fits)):
            for system in fold_systems(problem):
                if watch.tick(len(fits), np.nan):
                    break
                fits.append(self.fold(system, problem.penalties, watch))
        return reported(self, problem, fits, len(fits), watch)

    @abstractmethod
    def fold(self, system: FoldSystem, penalties: Array, watch: Watch) -> FoldFits:
        """Answer one fold."""


def refuses(name: str, problem: Any) -> str | None:
    """Return why a problem is no ridge path over folds, with positive penalties; None if it is."""
    if not isinstance(problem, FoldedRidgePath):
        return f"{name} answers FoldedRidgePath problems, not {type(problem).__name__}"
    if not (problem.penalties > 0).all():
        return f"{name} needs positive penalties; solve a LinearSystem for a penalty of zero"
    return None


# --- band ----------------------------------------------------------------------------------------
#
# All penalties of a fold from one reduction to a band.


@dataclass(frozen=True)
class BandFolds(DirectFolds):
    """Reduce the matrix of each fold to a band: (R K R + p)^-1 = Q (B + p)^-1 Q'.

    Reducing costs 8/3 m^3 operations once, a penalty m^2 and a band. Residuals are those of the
    original equations: where rounding spoils them, a refinement repairs them or says so.

    Parameters
    ----------
    width : int
        Half-width of the band: wider reduces faster, narrower makes a penalty cheaper.
    """

    width: int = 32

    def fold(self, system: FoldSystem, penalties: Array, watch: Watch) -> FoldFits:
        """Answer one fold."""
        m = len(system.rows)
        if m == 0:
            return FoldFits.nothing(system, penalties)
        band = choose_backend().band_reduce(system.matrix(), min(self.width, m))

        def correct(chosen: Array, left: Array) -> Array:
            return _band_solve(system, band, penalties[chosen], left)

        return refined(system, penalties, correct, watch)


def _band_solve(system: FoldSystem, band: Band, penalties: Array, right: Array) -> Array:
    """Solve each column at its penalty; NaN where the matrix is not positive definite."""
    w = system.along
    rotated = band.Qt @ np.column_stack([right] if w is None else [right, w])
    found = np.full_like(right, np.nan)
    for k, penalty in enumerate(penalties.tolist()):
        solved = solve_band(band, penalty, rotated[:, [k] if w is None else [k, -1]])
        if np.isfinite(solved).all():
            found[:, k] = solved[:, 0]
            if w is not None:  # what makes it orthogonal to w: rotations keep inner products
                turned = rotated[:, -1]
                found[:, k] -= solved[:, 1] * ((turned @ solved[:, 0]) / (turned @ solved[:, 1]))
    return np.asarray(band.Qt.T @ found)


# --- cholesky ------------------------------------------------------------------------------------
#
# A few penalties of a fold: a factorisation for each is cheaper than a reduction for all.


@dataclass(frozen=True)
class CholeskyFolds(DirectFolds):
    """Factor R K R + p of each fold for each penalty."""

    def fold(self, system: FoldSystem, penalties: Array, watch: Watch) -> FoldFits:
        """Answer one fold."""
        fits = FoldFits.nothing(system, penalties)
        if not len(system.rows):
            return fits
        A = system.matrix()
        for k, penalty in enumerate(penalties.tolist()):
            if k and watch.tick(k, len(penalties) - k):
                break
            factor = _factor(A, penalty)
            if factor is None:
                continue

            def correct(chosen: Array, left: Array, factor: Array = factor) -> Array:
                return _cholesky_solve(system, factor, left)

            fits.put(np.array([k]), refined(system, penalties[[k]], correct, watch))
        return fits


def _factor(A: Array, penalty: float) -> Array | None:
    """Return the Cholesky factor of A + p; None where that is not positive definite."""
    factor = A.copy()
    factor.flat[:: len(A) + 1] += penalty
    return factor if choose_backend().cholesky(factor) == 0 else None


def _cholesky_solve(system: FoldSystem, factor: Array, right: Array) -> Array:
    """Solve, orthogonal to the bias."""
    w = system.along
    columns = right if w is None else np.column_stack([right, w])
    solved = linalg.cho_solve((factor.T, False), columns, check_finite=False)
    if w is None:
        return np.asarray(solved)
    return np.asarray(solved[:, :1] - solved[:, 1:] * ((w @ solved[:, 0]) / (w @ solved[:, 1])))


# --- direct --------------------------------------------------------------------------------------
#
# Which factorisation of a fold: decided by how many penalties it serves.

_FEW = 4  # penalties: reducing a matrix to a band costs as much as so many factorisations


def direct(penalties: int) -> DirectFolds:
    """Return the solver that factors the matrix of a fold for so many penalties."""
    return CholeskyFolds() if penalties <= _FEW else BandFolds()


# --- primal --------------------------------------------------------------------------------------
#
# All penalties of a fold where the kernel has few features: one small eigenproblem.

_PRIMAL_REFINEMENTS = 2
_PRIMAL_BOUND = 1e-8  # of the spread of the targets: what a prediction may be off
_NOTHING = 1e-200


@dataclass(frozen=True)
class PrimalFolds(FoldSolver):
    """Decompose F'SF of each fold, where K = F F'.

    F'SF of the rows learnt from is that of all rows less that of the rows left out.
    """

    def refuses(self, problem: Any) -> str | None:
        """Take ridge paths over folds whose Gram is factored."""
        refusal = super().refuses(problem)
        if refusal is None and not isinstance(problem.gram, FactoredGram):
            return "PrimalFolds needs a kernel with an explicit finite feature map"
        return refusal

    def run(self, problem: FoldedRidgePath, watch: Watch, start: Any = None) -> Solution:
        """Decompose for each fold; every penalty is then a few products."""
        assert problem.folds is not None
        moments = problem.moments
        if moments is None:
            moments = FeatureMoments.of(problem.gram, problem.row_weights, problem.bias)
        n, D = moments.F.shape
        k, p = len(problem.folds), len(problem.penalties)
        values, weights = np.empty((k, n, p)), np.empty((k, D, p))
        met, intercept = np.zeros((k, p), dtype=bool), np.empty((k, p))
        done = 0
        with watch.keeping(lambda: done > 0):
            for fold, rows in enumerate(problem.folds):
                if watch.tick(fold, k - fold):
                    break
                V, constant, met[fold] = _fold(problem, moments, rows)
                values[fold], weights[fold] = moments.F @ V + constant, V
                intercept[fold] = constant - moments.mean @ V
                done = fold + 1
        return ended(self, FoldedPathValue(values, met, intercept, None, weights), done, watch)


def _fold(
    problem: FoldedRidgePath, moments: FeatureMoments, rows: Array
) -> tuple[Array, Array, Array]:
    """Fit to some rows: (F'SF + p) v = F'S (y - b), all centred where there is a bias.

    Returns v and b for each penalty, and whether they are right.
    """
    F, y, penalties = moments.F, problem.targets, problem.penalties
    s = np.zeros(len(F))
    s[rows] = problem.row_weights[rows]
    total, N = s.sum(), _square(problem, moments, s)
    right, mean, middle = F.T @ (s * y), np.zeros(len(N)), 0.0
    if problem.bias:
        mean, middle = s @ F / total, float(s @ y / total)
        N = N - total * np.outer(mean, mean)
        right = F.T @ (s * (y - middle)) - mean * (s @ (y - middle))
    eigenvalues, U = np.linalg.eigh(N)
    V = np.zeros((len(N), len(penalties)))
    left = np.repeat(right[:, None], len(penalties), axis=1)
    for _ in range(1 + _PRIMAL_REFINEMENTS):
        V += U @ ((U.T @ left) / (np.maximum(eigenvalues, 0.0)[:, None] + penalties))
        left = right[:, None] - N @ V - V * penalties
    # what is left moves a prediction by phi(z)'(N + p)^-1 left
    off = np.linalg.norm(left, axis=0) * moments.longest / penalties
    met = off <= _PRIMAL_BOUND * np.sqrt(s @ np.square(y - middle) / total) + _NOTHING
    return V, np.asarray(middle - mean @ V), np.asarray(met)


def _square(problem: FoldedRidgePath, moments: FeatureMoments, s: Array) -> Array:
    """Return F'SF for weights that are zero outside of the fold."""
    out = np.flatnonzero((s == 0) & (problem.row_weights > 0))
    if 2 * len(out) > len(s):
        return np.asarray(moments.F.T @ (s[:, None] * moments.F))
    F = moments.F[out]
    return np.asarray(moments.square - F.T @ (problem.row_weights[out, None] * F))
