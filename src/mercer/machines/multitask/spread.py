"""Posterior variances of several tasks at new rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.gram import Source
from mercer.gram.storage.factored import FeatureFunction
from mercer.gram.storage.precomputed import rectangle
from mercer.machines.process.latent import LatentSpread
from mercer.points import is_objects, row_count, take, to_dense
from mercer.problems.multitask.regression import TaskPosterior, TaskRegression, task_root
from mercer.resources import rows_at_once

_ROWS_AT_ONCE = 512  # new rows: one product or solve between two chances to hear Ctrl-C


@dataclass(frozen=True, eq=False)
class TaskSpread(LatentSpread):
    """Variances of f_t at new rows, from what the fit decomposed.

    Attributes
    ----------
    source : Source or None
        The kernel on the training rows; None for a given matrix.
    given : int
        How many training rows there were.
    rows : (n,) int array
        Those of positive weight.
    tasks : (T, T) array
        B.
    basis : (n, n) array or None
        S^1/2 U, where every task was read at every row.
    shares : (n, T) array or None
        What each direction of the basis explains of the variance of each task.
    factor : (r, r) array or None
        Lower Cholesky factor of the covariance of all readings, where not.
    task, row : (r,) int array or None
        Of these readings.
    """

    source: Source | None
    given: int
    rows: Array
    tasks: Array
    basis: Array | None
    shares: Array | None
    factor: Array | None
    task: Array | None
    row: Array | None

    def variance(self, Z: Points, prior: Array | None) -> Array:
        """Take what was read off the prior, which a given matrix does not hold."""
        if prior is None:
            if self.source is None:
                raise ValueError(
                    "MultiTaskGaussianProcess: with a precomputed kernel the spread at new rows "
                    "needs their own k(z, z), which is not in X; pass prior_var"
                )
            prior = choose_backend().diagonal(self.source.expression, Z, np.float64)
        found = np.outer(prior, self.tasks.diagonal())
        step = rows_at_once(self.given * len(self.tasks), _ROWS_AT_ONCE, arrays=3)
        for first in range(0, row_count(Z), step):
            deadline.check()
            some = slice(first, first + step)
            found[some] -= self._explained(self._across(take(Z, some)))
        return np.asarray(np.maximum(found, 0.0))  # below by rounding only

    def _explained(self, across: Array) -> Array:
        if self.basis is not None and self.shares is not None:
            return squares_times(across @ self.basis, self.shares)
        assert self.factor is not None
        columns = []
        for t in range(len(self.tasks)):
            c = self.tasks[t, self.task][:, None] * across.T[self.row]
            half = linalg.solve_triangular(self.factor, c, lower=True, check_finite=False)
            columns.append(np.einsum("ij,ij->j", half, half))
        return np.column_stack(columns)

    def _across(self, Z: Points) -> Array:
        if self.source is not None:
            return np.asarray(self.source.cross(Z).dense())
        return np.asarray(rectangle(Z, self.given)[:, self.rows], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class TaskFeatureSpread(LatentSpread):
    """The same from features, of which nothing is taken off: noise |L^-1 (R_t (x) phi(z))|^2.

    Attributes
    ----------
    features : callable
        The feature map phi.
    root : (T, T) array
        R, the symmetric root of B.
    noise : float
        Variance of the noise.
    basis : (D, D) array or None
        Eigenvectors of F'SF, where every task was read at every row.
    shares : (D, T) array or None
        What of each direction of the basis is left in the variance of each task.
    factor : (T D, T D) array or None
        L, where not.
    """

    features: FeatureFunction
    root: Array
    noise: float
    basis: Array | None
    shares: Array | None
    factor: Array | None

    def variance(self, Z: Points, prior: Array | None) -> Array:
        """Multiply, or solve with the factor."""
        T = len(self.root)
        found = np.empty((row_count(Z), T))
        width = (self.basis if self.factor is None else self.factor).shape[0]  # type: ignore[union-attr]
        step = rows_at_once(width, _ROWS_AT_ONCE, arrays=3)
        for first in range(0, len(found), step):
            deadline.check()
            some = slice(first, first + step)
            found[some] = self._left(self._phi(take(Z, some)))
        return found

    def _left(self, phi: Array) -> Array:
        if self.basis is not None and self.shares is not None:
            return squares_times(phi @ self.basis, self.shares)
        assert self.factor is not None
        columns = []
        for row in self.root:
            half = linalg.solve_triangular(
                self.factor, np.kron(row[:, None], phi.T), lower=True, check_finite=False
            )
            columns.append(self.noise * np.einsum("ij,ij->j", half, half))
        return np.column_stack(columns)

    def _phi(self, Z: Points) -> Array:
        return to_dense(self.features(Z if is_objects(Z) else Z.astype(np.float64, copy=False)))


def squares_times(H: Array, shares: Array) -> Array:
    """Return the squares of H, times shares; of a kernel of size 1e300 they are out of range.

    Powers of two are taken out before, and put back after: no bit changes within the range.

    Examples
    --------
    >>> squares_times(np.array([[3e200]]), np.array([[1e-200]]))
    array([[9.e+200]])
    """
    exponent = int(np.frexp(np.abs(H).max(initial=0.0))[1])
    squares = np.square(np.ldexp(H, -exponent))
    return np.asarray(np.ldexp(squares @ np.ldexp(shares, exponent), exponent))


def spread_of(
    problem: TaskRegression, value: TaskPosterior, given: int, rows: Array
) -> LatentSpread:
    """Return the variances at new rows.

    Parameters
    ----------
    problem : TaskRegression
        What was asked.
    value : TaskPosterior
        The answer.
    given : int
        How many rows the fit was given.
    rows : (n,) int array
        Those of positive weight.
    """
    gram: Any = problem.gram
    B, noise, basis, shares = problem.tasks, problem.noise, value.basis, None
    if value.basis is not None and value.values is not None:
        m, V = np.linalg.eigh(B)
        m = np.maximum(m, 0.0)
        parts = 1.0 / (np.outer(value.values, m) + noise)
        with np.errstate(over="ignore", invalid="ignore"):  # refused when they are asked for
            if value.weights is None:
                shares = (parts * m) @ (np.square(V) * m).T  # m^2 may be out of range
            else:
                shares = parts @ (np.square(V) * (m * noise)).T
    if value.weights is not None:
        return TaskFeatureSpread(gram.features, task_root(B), noise, basis, shares, value.factor)
    if basis is not None:
        basis = np.sqrt(problem.row_weights)[:, None] * basis
    task, row = (None, None)
    if value.factor is not None:
        task, row = problem.readings.task, problem.readings.row
    return TaskSpread(gram.source, given, rows, B, basis, shares, value.factor, task, row)
