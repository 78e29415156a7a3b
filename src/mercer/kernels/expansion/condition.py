"""Mercer's condition: the integral of f(x) k(x, y) f(y) is nowhere negative, whatever f is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array
from mercer.kernels.base import Kernel
from mercer.kernels.expansion.densities import SampleDensity, as_density
from mercer.kernels.expansion.nystrom import operator_spectrum
from mercer.points import as_points, row_count

_ROUNDING = 1e-10  # of the largest eigenvalue
_OTHER = 11  # nodes fewer when a function is looked at again: a grid that shares none


@dataclass(frozen=True, eq=False)
class MercerCondition:
    """The verdict of `mercer_condition`; true where no function was found that breaks it.

    Attributes
    ----------
    smallest, largest : float
        Eigenvalues of the integral operator: the least and largest value of the integral over
        functions whose mean square is 1.
    f : callable or None
        Maps rows to numbers (n,): of mean square 1, and the integral is `value`; None if there is
        no such function.
    value : float
        The integral of f(x) k(x, y) f(y), by other nodes than those f was found by; 0 without f.
    """

    smallest: float
    largest: float
    f: Callable[[Any], Array] | None
    value: float

    def __bool__(self) -> bool:
        return self.f is None

    @property
    def statement(self) -> str:
        """The verdict in words."""
        if self.f is None:
            return f"no function breaks the condition here: eigenvalues from {self.smallest:.3g} on"
        return (
            f"not a kernel: the integral of f(x) k(x, y) f(y) is {self.value:.3g} for a function f "
            f"of mean square 1, the eigenfunction of the eigenvalue {self.smallest:.3g}"
        )


@dataclass(frozen=True, eq=False)
class Breaker:
    """The eigenfunction of a negative eigenvalue: f(x) = sum_i coef_i k(x, x_i)."""

    kernel: Kernel
    points: Any
    coef: Array

    def __call__(self, X: Any) -> Array:
        """Evaluate at rows: (n,)."""
        return np.asarray(self.kernel(X, self.points).astype(np.float64) @ self.coef)


def mercer_condition(k: Kernel, over: Any, n_nodes: int | None = None) -> MercerCondition:
    """Look for a function f with a negative integral of f(x) k(x, y) f(y) under a density.

    A symmetric continuous k is an inner product of features if and only if there is none
    (Mercer). The search is over all functions: the smallest eigenvalue of the integral operator is
    the least value, its eigenfunction is f. The integral is then taken by other nodes.

    Parameters
    ----------
    k : Kernel
        For example `FromCallable(f)` for a function of one's own.
    over : Density, or rows
        `UniformDensity(low, high)`, `NormalDensity(...)`, or a sample.
    n_nodes : int, optional
        Nodes of the quadrature for each column.

    Returns
    -------
    MercerCondition

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Sigmoid, UniformDensity, mercer_condition
    >>> bool(mercer_condition(Gaussian(1.0), UniformDensity(-1.0, 1.0)))
    True
    >>> found = mercer_condition(Sigmoid(slope=1.0, offset=-1.0), UniformDensity(-1.0, 1.0))
    >>> bool(found), round(found.value, 3)
    (False, -0.729)
    """
    density = as_density(over)
    points, weights = density.nodes(n_nodes)
    values, functions = operator_spectrum(k, points, weights)
    smallest, largest = float(values[0]), float(values[-1])
    if smallest >= -_ROUNDING * max(abs(largest), abs(smallest)):
        return MercerCondition(smallest, largest, None, 0.0)
    f = Breaker(k, points, weights * functions[:, 0] / smallest)
    other = None if isinstance(density, SampleDensity) else _fewer(len(weights), points)
    return MercerCondition(smallest, largest, f, integral_form(k, f, density, other))


def integral_form(
    k: Kernel, f: Callable[[Any], npt.ArrayLike], over: Any, n_nodes: int | None = None
) -> float:
    """Return the integral of f(x) k(x, y) f(y) p(x) p(y) over x and y.

    Parameters
    ----------
    k : Kernel
        A kernel, or a function that may not be one.
    f : callable
        Maps rows to numbers (n,).
    over : Density, or rows
        The density p.
    n_nodes : int, optional
        Nodes of the quadrature for each column.

    Returns
    -------
    float
        Never negative for a kernel.

    Examples
    --------
    >>> from mercer.kernels import Linear, UniformDensity, integral_form
    >>> integral_form(Linear(), lambda X: X[:, 0], UniformDensity(-1.0, 1.0))  # (1 / 3)^2
    0.1111111111111...
    """
    points, weights = as_density(over).nodes(n_nodes)
    n = row_count(as_points(points))
    values = np.asarray(f(points), dtype=np.float64)
    if values.shape != (n,):
        raise ValueError(f"integral_form: f gave values of shape {values.shape} for {n} rows")
    weighted = weights * values
    return float(weighted @ k(points, points).astype(np.float64) @ weighted)


def _fewer(nodes: int, points: Any) -> int:
    """Return another number of nodes for each column."""
    each: int = round(float(nodes) ** (1.0 / int(as_points(points).shape[1])))
    return each - _OTHER if each > 2 * _OTHER else each + 1
