"""Mercer's theorem: a kernel as the sum of lambda_j psi_j(x) psi_j(y) over its eigenfunctions.

Under a density p, integral k(x, y) psi_j(y) p(y) dy = lambda_j psi_j(x), the psi_j are orthonormal
under p, and the sum of all lambda_j is the trace, integral k(x, x) p(x) dx. The features of the
theorem are sqrt(lambda_j) psi_j(x). What a sum over the first m leaves out is a kernel again, hence
|k(x, y) - k_m(x, y)| <= sqrt(r(x) r(y)) with r(x) = k(x, x) - k_m(x, x), whose mean is the sum of
the eigenvalues that were left out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.kernels.base import Kernel
from mercer.kernels.expansion.densities import Density, as_density
from mercer.points import as_points, row_count
from mercer.resources import require_memory

_ASYMMETRY = 1e-8  # of the largest value: beyond rounding


@dataclass(frozen=True, eq=False)
class Eigenfunctions(ABC):
    """The first eigenvalues and eigenfunctions of a kernel under a density.

    Attributes
    ----------
    kernel : Kernel
        k.
    density : Density
        Where rows come from.
    eigenvalues : array of shape (m,)
        From the largest on.
    trace : float
        The sum of all eigenvalues: the mean of k(x, x).
    """

    kernel: Kernel
    density: Density
    eigenvalues: Array
    trace: float

    @abstractmethod
    def __call__(self, X: Any) -> Array:
        """Evaluate the eigenfunctions at rows: (n, m)."""

    @property
    def remainder(self) -> float:
        """The trace that the first m eigenvalues leave out: the mean of `error`."""
        return max(0.0, self.trace - float(self.eigenvalues.sum()))

    def features(self, X: Any) -> Array:
        """Return sqrt(lambda_j) psi_j(x), whose inner products are `expansion`: (n, m)."""
        return self(X) * np.sqrt(self.eigenvalues)

    def expansion(self, X: Any, Y: Any = None) -> Array:
        """Return the sum of lambda_j psi_j(x) psi_j(y) over the m eigenfunctions."""
        F = self.features(X)
        return F @ (F if Y is None else self.features(Y)).T

    def error(self, X: Any) -> Array:
        """Return r(x) = k(x, x) - sum_j lambda_j psi_j(x)^2 of every row: (n,).

        The expansion is off by at most sqrt(r(x) r(y)) at (x, y), so the largest r of a sample
        bounds the error on all of its pairs.
        """
        own = np.asarray(self.kernel.diag(X), dtype=np.float64)
        return np.asarray(np.maximum(own - np.square(self.features(X)).sum(axis=1), 0.0))

    def residuals(self, over: Any = None, n_nodes: int | None = None) -> Array:
        """Return how far each function is from solving the integral equation: (m,).

        Parameters
        ----------
        over : Density or rows, optional
            Where integrals are taken; the density itself if left out.
        n_nodes : int, optional
            Nodes for each column: another number than that of the functions is an independent look.

        Returns
        -------
        array of shape (m,)
            Root mean squares of integral k(x, y) psi_j(y) p(y) dy - lambda_j psi_j(x).
        """
        points, weights = as_density(self.density if over is None else over).nodes(n_nodes)
        values = self(points)
        left = (
            operator_matrix(self.kernel, points) @ (weights[:, None] * values)
            - self.eigenvalues * values
        )
        return np.asarray(np.sqrt(weights @ np.square(left)))

    def products(self, over: Any = None, n_nodes: int | None = None) -> Array:
        """Return integral psi_i(x) psi_j(x) p(x) dx: the identity, if p is their density."""
        points, weights = as_density(self.density if over is None else over).nodes(n_nodes)
        values = self(points)
        return np.asarray(values.T @ (weights[:, None] * values))


@dataclass(frozen=True, eq=False)
class NystromEigenfunctions(Eigenfunctions):
    """psi_j(x) = sum_i w_i k(x, x_i) psi_j(x_i) / lambda_j, from nodes x_i with weights w_i.

    The equation holds exactly at the nodes, and extends the functions to all rows (Nystrom).

    Attributes
    ----------
    points : rows
        The nodes.
    coef : array of shape (N, m)
        w_i psi_j(x_i) / lambda_j.
    """

    points: Any
    coef: Array

    def __call__(self, X: Any) -> Array:
        """Evaluate the eigenfunctions at rows: (n, m)."""
        n, N = row_count(as_points(X)), len(self.coef)
        require_memory(8 * n * N, f"k of {n} rows and {N} nodes", "Evaluate fewer rows at a time")
        return np.asarray(self.kernel(X, self.points).astype(np.float64) @ self.coef)


def operator_spectrum(k: Kernel, points: Any, weights: Array) -> tuple[Array, Array]:
    """Return all eigenvalues, from the smallest on, and the values of eigenfunctions at the nodes.

    The symmetric matrix sqrt(w_i) k(x_i, x_j) sqrt(w_j) has the eigenvalues of the operator.
    """
    roots = np.sqrt(weights)
    K = operator_matrix(k, points)
    apart = float(np.abs(K - K.T).max())
    if apart > _ASYMMETRY * float(np.abs(K).max()):
        raise ValueError(
            f"{k!r}: k(x, y) and k(y, x) differ by up to {apart:.3g}; Mercer's theorem is about "
            "symmetric functions, such as (k(x, y) + k(y, x)) / 2"
        )
    values, vectors = linalg.eigh(roots[:, None] * ((K + K.T) / 2) * roots)
    lead = np.abs(vectors).argmax(axis=0)
    vectors *= np.where(vectors[lead, np.arange(len(values))] < 0, -1.0, 1.0)  # signs that repeat
    with np.errstate(divide="ignore", invalid="ignore"):
        functions = np.where(roots[:, None] > 0, vectors / roots[:, None], 0.0)
    return values, functions


def operator_matrix(k: Kernel, points: Any) -> Array:
    """Return k of all pairs of nodes, in float64."""
    if not isinstance(k, Kernel):
        raise TypeError(f"k={k!r} must be a kernel, such as Gaussian(1.0) or FromCallable(f)")
    n = row_count(as_points(points))
    require_memory(
        4 * 8 * n * n,
        f"eigenfunctions: the matrix of {n} nodes, with its vectors,",
        "Take fewer nodes (n_nodes), or a sample of the rows",
    )
    # as two blocks, since one block is symmetric by construction
    K = k(points, points).astype(np.float64)
    if not np.isfinite(K).all():
        raise ValueError(f"eigenfunctions: {k!r} is not finite at some of the points; scale them")
    return np.asarray(K)
