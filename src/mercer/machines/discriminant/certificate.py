"""Are these discriminant directions? The equation, the metric, and what the data show.

Any eigenvector solves the equation, so the answer is also put into a larger space: with what is
left of the class means when its directions are taken off, and a few steps of block Krylov from
there. What the best directions of that space gain is a proof that the answer was not the best.
Scatters are squares of lengths only if K is positive semidefinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram, definiteness, exact
from mercer.gram.base import RKHSFunction
from mercer.machines.discriminant.problem import Directions, Discriminant
from mercer.rows.points import is_sparse
from mercer.solvers.certificate import Certificate, certify, larger

_TOL = 1e-6
_STEPS = 3
_EPS = float(np.finfo(np.float64).eps)
_RESOLVED = 1e-8  # rounding over size: coefficients that K sends to nothing are no direction
_NOTHING = 1e-8  # of the largest in the metric of the larger space


@dataclass(frozen=True)
class DiscriminantQuantities:
    """Measures of a set of discriminant directions.

    Attributes
    ----------
    residual : float
        Largest |S_B w - lambda (S_W + penalty) w| in feature space, over |S_B w| of the first
        direction.
    orthogonality : float
        Largest entry of |W'(S_W + penalty) W - I|; and by how much weights and coefficients of one
        direction differ, where there are both.
    ratio : float
        Scatter between classes over scatter within classes along the first direction, on the data
        and without the penalty.
    gain : float
        By how much a larger space than that of the answer raises a lambda, over the largest.
    indefiniteness : float
        What is added to the diagonal of K to make it positive semidefinite: zero by the
        construction of the kernel, rounding where K was factored, infinite where that is not shown.
    """

    residual: float
    orthogonality: float
    ratio: float
    gain: float
    indefiniteness: float = 0.0


class _Space(NamedTuple):
    """How directions are held: as weights of the features F, or as coefficients of the rows."""

    problem: Discriminant
    gram: Gram
    F: Any

    def pulled(self, coefficients: Array) -> Array:
        """Hold Phi'coefficients."""
        return coefficients if self.F is None else np.asarray(self.F.T @ coefficients)

    def values(self, coef: Array) -> Array:
        """Return values at the rows."""
        return np.asarray((self.gram if self.F is None else self.F) @ coef)

    def lengths(self, coef: Array, f: Array) -> Array:
        """Return W'W."""
        return np.asarray(coef.T @ (f if self.F is None else coef))

    def inside(self, coef: Array, f: Array) -> Array:
        """Hold (S_W + penalty) W."""
        return self.pulled(self.problem.within(f)) + self.problem.penalty * coef

    def rounding(self, coef: Array) -> Array:
        """Estimate what rounding of values at the rows makes of each one's square; no bound.

        It decides which directions are tried as better ones; those that are tried are no estimate.
        """
        if self.F is not None:
            return np.zeros(coef.shape[1])  # their lengths count, and are as exact as they are
        largest, n = float(np.abs(self.gram.diag()).max(initial=0.0)), len(coef)
        squares = np.einsum("ij,ij->j", coef, coef)
        return np.asarray(n * _EPS * largest * (largest + self.problem.penalty) * squares)

    def sizes(self, coef: Array) -> Array:
        """Return the length of each."""
        f = coef if self.F is not None else self.values(coef)
        return np.asarray(np.sqrt(np.maximum(np.einsum("ij,ij->j", coef, f), 0.0)))


@certify.register
def _(problem: Discriminant, value: Directions, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    space, W = _space(problem, value)
    f = space.values(W)
    metric = problem.metric(f, space.lengths(W, f))
    off = float(np.abs(metric - np.eye(len(metric))).max(initial=0.0))
    off = larger(off, _mismatch(space, value))
    inside = float(f[:, 0] @ problem.within(f)[:, 0])
    between = float(np.square(problem.contrasts.T @ f[:, 0]).sum())
    convex = definiteness(problem.gram)
    quantities = DiscriminantQuantities(
        _residual(space, W, f, value.values),
        off,
        between / inside if inside > 0 else float("inf"),
        _gain(space, W, f, value.values),
        convex.shift,
    )
    measured = (quantities.residual, off, quantities.gain)
    ok = all(q <= tol for q in measured) and 0 < len(value.values) <= problem.count
    statement = (
        _statement(quantities, len(value.values), tol)
        if convex.shown
        else f"{convex.obstacle}, so scatters are no squares, and no ratio of them is the largest"
    )
    return Certificate(bool(ok and convex.shown), quantities, tol, statement)


def _statement(q: DiscriminantQuantities, count: int, tol: float) -> str:
    if q.gain > tol:
        return (
            f"these {count} direction(s) are not the best, or not all: a ratio can be raised by "
            f"{q.gain:.1e} of the largest"
        )
    return (
        f"{count} direction(s) solve the generalised eigenproblem with relative residual "
        f"{q.residual:.1e}; along the first, classes are {q.ratio:.3g} times as far apart as they "
        "are wide (squared)"
    )


def _space(problem: Discriminant, value: Directions) -> tuple[_Space, Array]:
    gram = exact(problem.gram)
    functions = RKHSFunction(gram, value.coef, value.weights)
    if functions.weights is not None:
        F = gram.factor  # less the mean: neither scatter depends on the origin, but rounding does
        near = F if is_sparse(F) else F - F.mean(axis=0)
        return _Space(problem, gram, near), functions.weights
    assert value.coef is not None
    return _Space(problem, gram, None), value.coef


def _mismatch(space: _Space, value: Directions) -> float:
    """Compare both forms of the directions at the rows, where the answer has two."""
    functions = RKHSFunction(space.gram, value.coef, value.weights)
    if value.coef is None or not functions.is_primal:
        return 0.0
    f, g = functions.at_points(), np.asarray(space.gram @ value.coef)
    return float(np.abs(f - g).max(initial=0.0) / max(np.abs(f).max(initial=0.0), 1e-300))


def _residual(space: _Space, W: Array, f: Array, values: Array) -> float:
    B = space.problem.contrasts
    between = space.pulled(B @ (B.T @ f))
    left = between - values * space.inside(W, f)
    sizes = space.sizes(np.hstack([left, between[:, :1]]))
    return float(sizes[:-1].max() / sizes[-1]) if sizes[-1] > 0 else float("inf")


def _gain(space: _Space, W: Array, f: Array, values: Array) -> float:
    """Find the best directions in a space that holds the answer and more; return what they gain."""
    problem, B = space.problem, space.problem.contrasts
    blocks, block = [W], space.pulled(B)
    at_rows = [f]
    for _ in range(_STEPS):
        block = np.linalg.qr(block)[0]
        blocks.append(block)
        at_rows.append(space.values(block))
        block = space.inside(block, at_rows[-1])
    V, fV = np.hstack(blocks), np.hstack(at_rows)
    metric = problem.metric(fV, space.lengths(V, fV))
    resolved = metric.diagonal() > space.rounding(V) / _RESOLVED
    V, fV, metric = V[:, resolved], fV[:, resolved], metric[np.ix_(resolved, resolved)]
    size = np.sqrt(np.maximum(metric.diagonal(), np.finfo(float).tiny))
    s, turn = np.linalg.eigh(metric / np.outer(size, size))
    kept = s > _NOTHING * s.max(initial=0.0)
    white = (B.T @ (fV / size)) @ (turn[:, kept] / np.sqrt(s[kept]))
    better = np.square(np.linalg.svd(white, compute_uv=False))[: problem.count]
    claimed = np.zeros(len(better))
    claimed[: len(values)] = np.sort(values)[::-1][: len(better)]
    largest = float(better.max(initial=0.0))
    return float((better - claimed).max(initial=0.0)) / largest if largest > 0 else 0.0
