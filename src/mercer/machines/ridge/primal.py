"""Ridge regression in the space of features: one penalty, and paths of penalties."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.factorizations import eigh, least_squares, multiplied, svd
from mercer.gram import FactoredGram
from mercer.machines.ridge.direct import path_end
from mercer.machines.ridge.problem import (
    Coefficients,
    LinearSystem,
    RidgePath,
    RidgePoint,
    ridge_point,
)
from mercer.rows.points import is_sparse, to_dense
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.linear_algebra import dual_form

# --- design --------------------------------------------------------------------------------------
#
# The features of K = F F' as a regression sees them: weighted, centred when there is a bias.

_DESIGN_EPS = float(np.finfo(float).eps)
ENTRY_ROUNDING = 8 * _DESIGN_EPS  # of an entry: a change of features so small is none
_BLOCK_WORK = 1e9  # operations between two chances to hear Ctrl-C


def resolved(sigma: Array, Vt: Array, lengths: Array, shape: tuple[int, ...]) -> Array:
    """Return which singular values of features, centred or not, are more than rounding.

    Let E have singular vectors v. Two roundings decide. That of the decomposition moves sigma by
    max(shape) eps sigma_max at most. That of the entries, known to eps |F_ij| each, before and
    after a mean is taken off, moves E v by eps sum_j |v_j| |F_j|, |F_j| the length of a column
    before it was centred: for a column far from zero, or columns of which one depends on the
    others, that is more. With a margin of 8, a change of a few units in the last place decides
    nothing, and columns
    that are small, but near zero, still count.

    Parameters
    ----------
    sigma : (r,) array
        Singular values of E.
    Vt : (r, D) array
        Their right singular vectors, one in a row.
    lengths : (D,) array
        The length of each column before it was centred.
    shape : tuple of int
        The shape of the matrix that was decomposed.
    """
    floor = max(shape) * _DESIGN_EPS * float(sigma.max(initial=0.0))
    return np.asarray(sigma > np.maximum(floor, ENTRY_ROUNDING * (np.abs(Vt) @ lengths)))


@dataclass(frozen=True, eq=False)
class Design:
    """G = F - 1 mean' with row weights s; the mean is zero without a bias.

    Attributes
    ----------
    F : (n, D) array or CSR array
        The features.
    G : (n, D) array or CSR array
        Dense features centred; sparse ones as they are, to stay sparse.
    s : (n,) array
        Row weights.
    mean : (D,) array
        The weighted mean of F.
    left : (D,) array
        What products must still take off G: the mean of sparse features, zero of dense ones.
    bias : bool
        Whether there is a bias.
    """

    F: Any
    G: Any
    s: Array
    mean: Array
    left: Array
    bias: bool

    @classmethod
    def of(cls, gram: Any, s: Array, bias: bool) -> Design:
        """Take the features of a factored Gram."""
        F = gram.factor
        none = np.zeros(F.shape[1])
        if not bias:
            return cls(F, F, s, none, none, bias)
        mean = np.asarray(F.T @ s) / s.sum()
        if is_sparse(F):
            return cls(F, F, s, mean, mean, bias)
        # taking means off products instead would lose all digits that the mean takes up
        return cls(F, F - mean, s, mean, none, bias)

    def center(self, y: Array) -> Array:
        """Take the weighted mean off targets, when there is a bias."""
        return np.asarray(y - self.s @ y / self.s.sum()) if self.bias else y

    def dense(self) -> Array:
        """Return G as an ordinary array."""
        return np.asarray(to_dense(self.G) - self.left)

    def lengths(self) -> Array:
        """Return the length of each column of S^1/2 F, which is not centred."""
        squares = np.square(self.F) if not is_sparse(self.F) else self.F.multiply(self.F)
        return np.asarray(np.sqrt(squares.T @ self.s))

    def normal_matrix(self) -> Array:
        """Return G'SG."""
        if is_sparse(self.G):
            product = to_dense(self.G.T @ self.G.multiply(self.s[:, None]).tocsr())
            return np.asarray(product - self.s.sum() * np.outer(self.left, self.left))
        n, d = self.G.shape
        product, height = np.zeros((d, d)), max(256, int(_BLOCK_WORK / max(1, d**2)))
        weighted = bool((self.s != 1).any())
        for first in range(0, n, height):
            deadline.check()
            block = self.G[first : first + height]
            if weighted:
                block = np.sqrt(self.s[first : first + height, None]) * block
            product += block.T @ block  # of one array with itself: half the work
        return product

    def rmatvec(self, residual: Array) -> Array:
        """Return G'S r for a residual that was centred."""
        return np.asarray(self.G.T @ (self.s[:, None] * residual))

    def push(self, weights: Array) -> Array:
        """Return G w."""
        return np.asarray(self.G @ weights - self.left @ weights)

    def coefficients(
        self, weights: Array, targets: Array, penalties: Array, floor: float
    ) -> Coefficients:
        """Return the answer in both spaces: a = S (y - F w - b) / penalty.

        A penalty up to `floor` is none: there, of all a with F'a = w, take the shortest.
        """
        residual = self.center(targets) - self.push(weights)
        intercept = np.zeros(targets.shape[1])
        if self.bias:
            intercept = self.s @ targets / self.s.sum() - self.mean @ weights
        penalised = penalties > floor
        coef = self.s[:, None] * residual / np.where(penalised, penalties, 1.0)
        middle = None if is_sparse(self.G) or not self.bias else self.mean
        coef[:, penalised] = dual_form(
            self.G, middle, self.s, self.bias, coef[:, penalised], weights[:, penalised]
        )
        if not penalised.all():
            right = weights[:, ~penalised]
            coef[:, ~penalised] = least_squares(to_dense(self.F).T, right)
        return Coefficients(coef, intercept, weights)


# --- primal --------------------------------------------------------------------------------------
#
# Linear systems with K = F F' in the space of the features: cost n D^2 instead of n^3.

_REFINEMENTS = 2
_PRIMAL_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Primal(Solver):
    """Solve (G'SG + penalty I) w = G'S y for the features G = F, centred when there is a bias.

    The normal equations square the condition number; two steps of refinement against the residual
    of the features themselves win back what that costs. Where they cannot, and for penalties that
    rounding would swallow, singular values of the features give the answer of least norm.
    """

    answers = LinearSystem

    def _obstacle(self, problem: LinearSystem) -> str | None:
        """Take linear systems whose Gram is factored."""
        if isinstance(problem.gram, FactoredGram):
            return None
        return "Primal needs a LinearSystem whose kernel has an explicit finite feature map"

    def run(self, problem: LinearSystem, watch: Watch, start: Any = None) -> Solution:
        """Solve for each group of targets that share a penalty."""
        design = Design.of(problem.gram, problem.row_weights, problem.bias)
        matrix = design.normal_matrix()
        floor = _PRIMAL_EPS * float(np.trace(matrix)) / max(1, len(matrix))
        weights = np.empty((len(matrix), problem.targets.shape[1]))
        status = Status.SOLVED
        for done, columns in enumerate(problem.groups(), start=1):
            y, penalty = problem.targets[:, columns], float(problem.penalties[columns[0]])
            if penalty > floor:
                weights[:, columns] = _refined(design, matrix, y, penalty)
            else:
                weights[:, columns], whole = _least_squares(design, y)
                status = status if whole else Status.SINGULAR
            watch.tick(done, np.nan)  # told, but a direct answer has no half way to stop at
        value = design.coefficients(weights, problem.targets, problem.penalties, floor)
        return report(self, value, status, 1, watch)


def _refined(design: Design, matrix: Array, y: Array, penalty: float) -> Array:
    A = matrix.copy()
    A.flat[:: len(A) + 1] += penalty
    diagonal = A.diagonal().copy()
    info = choose_backend().cholesky(A)
    # a pivot at the level of rounding means the factor holds noise, not the matrix
    if info or (np.square(A.diagonal()) <= len(A) * _PRIMAL_EPS * diagonal).any():
        return _least_squares(design, y, penalty)[0]
    factor, centred = (A.T, False), design.center(y)
    w = linalg.cho_solve(factor, design.rmatvec(centred), check_finite=False)
    for _ in range(_REFINEMENTS):
        left = design.center(centred - design.push(w))
        w = w + linalg.cho_solve(factor, design.rmatvec(left) - penalty * w, check_finite=False)
    return np.asarray(w)


def _spread(design: Design, E: Array, Vt: Array) -> Array:
    """Return the singular values, less the rounding of the means that were taken off.

    A sum of n terms may be off by n eps of them, which shifts all rows alike.
    """
    along = multiplied(E, Vt.T)
    if design.bias:
        root = np.sqrt(design.s)
        along -= np.outer(root, root @ along / design.s.sum())
    return np.asarray(np.linalg.norm(along, axis=0))


def _least_squares(design: Design, y: Array, penalty: float = 0.0) -> tuple[Array, bool]:
    """Solve by singular values: of all best fits, that of least norm; and whether it was alone."""
    root = np.sqrt(design.s)[:, None]
    E = root * design.dense()
    try:
        U, sigma, Vt = svd(E)
    except np.linalg.LinAlgError:  # of numbers that are none, or too far apart for any answer
        return np.full((E.shape[1], y.shape[1]), np.nan), False
    kept = resolved(_spread(design, E, Vt), Vt, design.lengths(), E.shape)
    shrink = sigma[kept] / (sigma[kept] ** 2 + penalty)
    w = Vt[kept].T @ (shrink[:, None] * (U[:, kept].T @ (root * design.center(y))))
    return np.asarray(w), len(sigma) == E.shape[1] and bool(kept.all())


# --- primal path ---------------------------------------------------------------------------------
#
# Ridge paths with K = F F' in the space of the features: one small eigendecomposition.

_SQUARED = 1e100  # numbers up to here, and down to its inverse, have squares with all digits


@dataclass(frozen=True)
class PrimalPath(Solver):
    """With E = S^1/2 G and E'E = V diag(m) V': (E E' + p)^-1 = (I - E V diag(1/(m + p)) V'E')/p.

    G are the features, centred when there is a bias: an unpenalised bias takes up any shift of
    them, so coefficients and leave-one-out residuals are those of the features as they are.
    """

    answers = RidgePath

    def _obstacle(self, problem: RidgePath) -> str | None:
        """Take ridge paths whose Gram is factored."""
        if isinstance(problem.gram, FactoredGram):
            return None
        return "PrimalPath needs a RidgePath whose kernel has an explicit finite feature map"

    def run(self, problem: RidgePath, watch: Watch, start: Any = None) -> Solution:
        """Rotate the features once; every penalty is then a few products."""
        root = np.sqrt(problem.row_weights)[:, None]
        design = Design.of(problem.gram, problem.row_weights, problem.bias)
        m, V = _modes(design.normal_matrix())
        EV = multiplied(root * design.dense(), V)
        right = root * np.column_stack([problem.targets, np.ones(len(root))])
        rotated, squares = EV.T @ right, np.square(EV)
        points: list[RidgePoint] = []
        for penalty in problem.penalties.tolist():
            shrink = 1.0 / (m + penalty)
            diag = problem.row_weights * (1.0 - squares @ shrink) / penalty
            solved = root * (right - EV @ (shrink[:, None] * rotated)) / penalty
            points.append(ridge_point(problem, penalty, diag, solved))
            if watch.tick(len(points), len(problem.penalties) - len(points)):
                break
        value, status = path_end(problem, points, watch)
        status = Status.NOT_FINITE if np.isnan(m).any() else status
        chosen = problem.penalties[value.best]
        target = EV.T @ (root * (problem.targets - value.intercept))
        weights = V @ (target / (m[:, None] + chosen))
        answer = design.coefficients(weights, problem.targets, chosen, floor=0.0)
        value = replace(value, coef=answer.coef, weights=weights, intercept=answer.intercept)
        return report(self, value, status, len(points), watch)


def _modes(matrix: Array) -> tuple[Array, Array]:
    """Return the eigenpairs above rounding; below, a tiny penalty would blow up noise."""
    size = float(np.abs(matrix).max(initial=0.0))
    if not np.isfinite(size):  # LAPACK may find numbers that look like any
        return np.full(1, np.nan), np.full((len(matrix), 1), np.nan)
    # where its squares would overflow or vanish, LAPACK is given other units
    unit = 1.0 if 1.0 / _SQUARED <= size <= _SQUARED else 2.0 ** (np.frexp(size)[1] - 1)
    m, V = eigh(matrix / unit)
    m = m * unit
    kept = m > len(m) * np.finfo(float).eps * m.max(initial=0.0)
    return m[kept], V[:, kept]
