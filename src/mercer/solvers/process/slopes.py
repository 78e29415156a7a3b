"""How a matrix product <M, K> changes with the parameters of the kernel."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.expression import Expression
from mercer.kernels.parameter_slopes import (
    DistanceSlope,
    FormulaSlope,
    MappedSlope,
    ParameterSlope,
)
from mercer.kernels.slopes import columns_of_distance
from mercer.problems.process.kernel_parameters import KernelParameters
from mercer.solvers.kernel_learning.ridge_slopes import by_scales, finite_slopes


def contracted(
    kernel: KernelParameters,
    logs: Array,
    M: Array,
    X: Points,
    known: dict[Expression, Array] | None = None,
    Y: Points | None = None,
) -> Array:
    """Return <M, dK(X, Y)> for the logarithm of each parameter.

    Parameters
    ----------
    kernel : KernelParameters
        The kernel, and which of its parameters are learnt.
    logs : (p,) array
        Where.
    M : (n, m) array
        What is multiplied by; symmetric where there is no Y.
    X : Points
        Rows.
    known : dict of Expression to (n, m) array, optional
        Matrices that were evaluated before.
    Y : Points, optional
        Other rows; X by default.
    """
    parts = [contraction(slope, M, X, known or {}, Y) for slope in kernel.slopes(logs)]
    return np.concatenate(parts) if parts else np.zeros(0)


@singledispatch
def contraction(
    slope: ParameterSlope, M: Array, X: Points, known: dict[Expression, Array], Y: Points | None
) -> Array:
    """Return <M, dK> for each entry of one parameter."""
    raise TypeError(f"no contraction for {type(slope).__name__}")


@contraction.register
def _(
    slope: FormulaSlope, M: Array, X: Points, known: dict[Expression, Array], Y: Points | None
) -> Array:
    bent = known.get(slope.outer)
    if bent is None:
        bent = choose_backend().pairs(slope.outer, X, Y, np.float64).dense()
        bent = np.where(np.isfinite(bent), bent, 0.0)
    return np.array([np.vdot(M, bent)])


@contraction.register
def _(
    slope: DistanceSlope, M: Array, X: Points, known: dict[Expression, Array], Y: Points | None
) -> Array:
    bent = finite_slopes(slope.outer, X, Y)
    bent *= M
    raw = columns_of_distance(slope.leaf, X)
    other = None if Y is None else columns_of_distance(slope.leaf, Y)
    stretch: Any = slope.leaf.steps[-1]
    return by_scales(bent, raw, 1.0 / stretch.factors.array, slope.leaf, other)


@contraction.register
def _(
    slope: MappedSlope, M: Array, X: Points, known: dict[Expression, Array], Y: Points | None
) -> Array:
    backend = choose_backend()
    bent = slope.function(backend.pairs(slope.inner, X, Y, np.float64).dense())
    bent = bent * backend.pairs(slope.outer, X, Y, np.float64).dense()
    return np.array([np.vdot(M, np.where(np.isfinite(bent), bent, 0.0))])


def diagonal_slopes(kernel: KernelParameters, logs: Array, weights: Array, X: Points) -> Array:
    """Return sum_i w_i dk(x_i, x_i) for the logarithm of each parameter."""
    parts = [_on_diagonal(slope, weights, X) for slope in kernel.slopes(logs)]
    return np.concatenate(parts) if parts else np.zeros(0)


@singledispatch
def _on_diagonal(slope: ParameterSlope, weights: Array, X: Points) -> Array:
    raise TypeError(f"no slope on the diagonal for {type(slope).__name__}")


@_on_diagonal.register
def _(slope: FormulaSlope, weights: Array, X: Points) -> Array:
    own = choose_backend().diagonal(slope.outer, X, np.float64)
    return np.array([weights @ np.where(np.isfinite(own), own, 0.0)])


@_on_diagonal.register
def _(slope: DistanceSlope, weights: Array, X: Points) -> Array:
    stretch: Any = slope.leaf.steps[-1]
    return np.zeros(len(stretch.factors.array))  # no row has a distance to itself


@_on_diagonal.register
def _(slope: MappedSlope, weights: Array, X: Points) -> Array:
    backend = choose_backend()
    own = slope.function(backend.diagonal(slope.inner, X, np.float64))
    own = own * backend.diagonal(slope.outer, X, np.float64)
    return np.array([weights @ np.where(np.isfinite(own), own, 0.0)])
