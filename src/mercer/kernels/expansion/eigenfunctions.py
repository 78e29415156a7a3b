"""Mercer's theorem for a kernel and a density: closed form where there is one, else quadrature."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels import checks
from mercer.kernels.base import Kernel
from mercer.kernels.expansion.densities import NormalDensity, as_density
from mercer.kernels.expansion.hermite import hermite_eigenfunctions
from mercer.kernels.expansion.nystrom import (
    Eigenfunctions,
    NystromEigenfunctions,
    operator_spectrum,
)
from mercer.kernels.families.radial import Gaussian
from mercer.points import as_points

_SMALLEST = 1e-10  # of the largest eigenvalue: below, a function has fewer than six right digits
_NEGATIVE = 1e-8  # of the largest: beyond rounding, a negative eigenvalue is the kernel's own


def eigenfunctions(
    k: Kernel, over: Any, n_components: int = 10, n_nodes: int | None = None
) -> Eigenfunctions:
    """Find the eigenfunctions of a kernel under a density, or on a sample.

    They solve integral k(x, y) psi(y) p(y) dy = lambda psi(x). For the Gaussian kernel and a normal
    density they are Hermite functions, in closed form; else the integral is a sum over nodes, whose
    eigenvectors are extended to all rows (Nystrom).

    Parameters
    ----------
    k : Kernel
        A positive semidefinite kernel.
    over : Density, or rows
        `NormalDensity`, `UniformDensity`, `BoxDensity`, `SampleDensity`; rows are a sample in which
        each counts alike.
    n_components : int
        How many; there are fewer if fewer eigenvalues are above 1e-10 of the largest.
    n_nodes : int, optional
        Nodes of the quadrature for each column; 180 in one column if left out, fewer in several.

    Returns
    -------
    Eigenfunctions
        Eigenvalues, functions, and the error of the expansion that ends with them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian, NormalDensity, eigenfunctions
    >>> found = eigenfunctions(Gaussian(1.0), NormalDensity(0.0, 1.0), n_components=4)
    >>> found.eigenvalues.round(4).tolist()  # each times 0.382, the square of the golden ratio
    [0.618, 0.2361, 0.0902, 0.0344]
    >>> round(found.remainder, 4)
    0.0213
    >>> x = np.array([[0.0], [1.0]])
    >>> bool((np.abs(found.expansion(x) - Gaussian(1.0)(x)) <= found.error(x).max()).all())
    True
    """
    if not isinstance(k, Kernel):
        raise TypeError(f"eigenfunctions: k={k!r} must be a kernel, such as Gaussian(1.0)")
    count = checks.whole("eigenfunctions", "n_components", n_components)
    density = as_density(over)
    if isinstance(k, Gaussian) and isinstance(density, NormalDensity) and n_nodes is None:
        return hermite_eigenfunctions(k, density, count)
    points, weights = density.nodes(n_nodes)
    values, vectors = operator_spectrum(k, points, weights)
    if values[0] < -_NEGATIVE * max(values[-1], 0.0):
        raise ValueError(
            f"eigenfunctions: {k!r} has the eigenvalue {values[0]:.3g} here, and Mercer's theorem "
            "needs them nonnegative; mercer_condition(k, over) shows the function that breaks it"
        )
    kept = min(count, max(1, int((values > _SMALLEST * values[-1]).sum())))
    found, functions = values[::-1][:kept], vectors[:, ::-1][:, :kept]
    trace = float(weights @ np.asarray(k.diag(points), dtype=np.float64))
    coef = functions * weights[:, None] / np.where(found > 0, found, 1.0)
    return NystromEigenfunctions(k, density, found.copy(), trace, _kept(points), coef)


def _kept(points: Any) -> Any:
    """Return rows that nobody else writes to; a table keeps its names."""
    return points.copy() if hasattr(points, "copy") else as_points(points)
