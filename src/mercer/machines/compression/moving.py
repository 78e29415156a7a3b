"""Vectors that need not be training rows: moved by the gradient of |f - g|^2 (Burges).

With the best coefficients b for vectors v, the error only depends on v, and its derivative is that
of |f - sum_j b_j k(v_j, .)|^2 at fixed b: by v_j, -2 sum_c b_jc (grad f_c - grad g_c)(v_j). For the
Gaussian kernel grad k(x, .)(v) = k(x, v) (x - v) / scale^2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from mercer import deadline
from mercer.array_types import Array, FrozenArray
from mercer.kernels import Gaussian
from mercer.machines.compression.pursuit import Functions, Kept, best_coefficients
from mercer.points import is_objects, is_sparse

_RIDGE = 1e-10  # on the diagonal of K(v, v): vectors may run into each other


def refuse_immovable(kernel: Any, points: Any) -> None:
    """Refuse kernels and rows without a gradient."""
    if not isinstance(kernel, Gaussian):
        raise ValueError(
            f"compress: move=True needs the Gaussian kernel, not {kernel!r}; with move=False "
            "vectors are chosen among those there are, for any kernel"
        )
    if is_sparse(points) or is_objects(points):
        raise ValueError(
            "compress: move=True makes dense vectors; fit to dense rows, or move=False"
        )


@dataclass(frozen=True, eq=False)
class _Move:
    """The error of vectors in units of the scale, less |f|^2, and its gradient."""

    points: Array
    coef: Array
    allowed: Array | None
    shape: tuple[int, int]

    def coefficients(self, V: Array) -> tuple[Array, Array, Array, Array]:
        """Return the best coefficients, K(v, x), K(v, v) and f(v)."""
        across = np.exp(-0.5 * cdist(V, self.points, "sqeuclidean"))
        among = np.exp(-0.5 * cdist(V, V, "sqeuclidean"))
        values = across @ self.coef
        among[np.diag_indices_from(among)] += _RIDGE
        return best_coefficients(among, values, self.allowed), across, among, values

    def __call__(self, flat: Array) -> tuple[float, Array]:
        """Return the error and its gradient."""
        V = flat.reshape(self.shape)
        B, across, among, values = self.coefficients(V)
        pull = (B @ self.coef.T) * across
        push = (B @ B.T) * among
        slope = pull @ self.points - pull.sum(axis=1)[:, None] * V
        slope -= push @ V - push.sum(axis=1)[:, None] * V
        return -float((B * values).sum()), -2.0 * slope.ravel()


def moved(f: Functions, kept: Kept, weights: Array, kernel: Gaussian, max_iter: int) -> Kept:
    """Return the vectors moved to where they explain most of f.

    Parameters
    ----------
    f : Functions
        The functions.
    kept : Kept
        The vectors to begin with.
    weights : (k,) array
        What the squared error of each function counts.
    kernel : Gaussian
        The kernel.
    max_iter : int
        Largest number of steps.
    """
    if not len(kept.origin):
        return kept
    scale = np.asarray(
        kernel.scale.array if isinstance(kernel.scale, FrozenArray) else kernel.scale
    )
    points = np.asarray(f.source.X, dtype=np.float64)
    middle = points.mean(axis=0)  # which rounding is measured from
    start = (np.asarray(kept.vectors, dtype=np.float64) - middle) / scale
    allowed = None if f.allowed is None else f.allowed[kept.origin]
    move = _Move((points - middle) / scale, f.coef * np.sqrt(weights), allowed, start.shape)

    def late(_: Any) -> None:
        if deadline.is_over():
            raise StopIteration

    options: Any = {"options": {"maxiter": max_iter}, "callback": late}

    found: Any = minimize(
        move,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        **options,
    )
    V = found.x.reshape(start.shape)
    coef = replace(move, coef=f.coef).coefficients(V)[0]
    return Kept(kept.origin, V * scale + middle, coef)
