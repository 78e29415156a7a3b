"""Is a function a kernel? Mercer's condition under a density, and eigenvalues on sampled rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.expression import bind_columns
from mercer.kernels.algebra import Kernel, formula_points
from mercer.kernels.mercer_theorem import SampleDensity, as_density, operator_spectrum
from mercer.rows.points import as_points, column_names, is_objects, row_count, take

# --- validity ------------------------------------------------------------------------------------
#
# On data: symmetry and the smallest eigenvalue of K.


@dataclass(frozen=True)
class Validity:
    """The verdict of `is_valid`; true when the matrix is symmetric positive semidefinite.

    Attributes
    ----------
    smallest_eigenvalue : float
        Of the symmetric part of K; NaN if K has entries that are not finite.
    asymmetry : float
        Largest |k(x, y) - k(y, x)|.
    tol : float
        Tolerance for zero.
    n_samples : int
        Rows that were looked at.
    """

    smallest_eigenvalue: float
    asymmetry: float
    tol: float
    n_samples: int

    def __bool__(self) -> bool:
        return self.asymmetry <= self.tol and self.smallest_eigenvalue >= -self.tol

    @property
    def statement(self) -> str:
        """The verdict in words."""
        rows = f"on {self.n_samples} rows"
        if np.isnan(self.smallest_eigenvalue):
            return f"not a kernel {rows}: it has values that are not finite"
        if self.asymmetry > self.tol:
            return f"not a kernel {rows}: k(x, y) and k(y, x) differ by up to {self.asymmetry:.3g}"
        eigenvalue = f"the smallest eigenvalue is {self.smallest_eigenvalue:.3g}"
        if self.smallest_eigenvalue < -self.tol:
            return f"not positive semidefinite {rows}: {eigenvalue}"
        return f"symmetric and positive semidefinite {rows}: {eigenvalue}"


def is_valid(k: Kernel, X: Any, n_samples: int = 200, tol: float | None = None) -> Validity:
    """Look at the matrix of a kernel on sampled rows: is it symmetric and positive semidefinite.

    A "yes" is evidence from these rows, a "no" is proof.

    Parameters
    ----------
    k : Kernel
        For example `FromCallable(f)` for a custom function f.
    X : array-like, sparse matrix, DataFrame, or list of sequences
        Rows to sample from.
    n_samples : int
        Rows that are looked at, drawn without replacement, the same ones each time.
    tol : float, optional
        Tolerance for zero; 1e-10 of the largest eigenvalue by default.

    Returns
    -------
    Validity

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Sigmoid
    >>> X = [[0.1, 0.0], [1.0, 1.0], [2.0, -1.0]]
    >>> bool(is_valid(Gaussian(), X)), bool(is_valid(Sigmoid(offset=-1.0), X))
    (True, False)
    >>> print(is_valid(Sigmoid(offset=-1.0), X).statement)
    not positive semidefinite on 3 rows: the smallest eigenvalue is -1.22
    """
    rows = _sample(formula_points(k.expression(), X), n_samples)
    formula = bind_columns(k.expression(), column_names(X))
    # as two blocks, since one block is symmetric by construction
    K = choose_backend().pairs(formula, rows, rows, np.float64).dense()
    if not np.all(np.isfinite(K)):
        return Validity(np.nan, np.nan, tol or 0.0, len(K))
    eigenvalues = linalg.eigvalsh((K + K.T) / 2)
    zero = 1e-10 * float(np.abs(eigenvalues).max()) if tol is None else tol
    return Validity(float(eigenvalues[0]), float(np.abs(K - K.T).max()), zero, len(K))


def _sample(X: Points, n_samples: int) -> Points:
    n = row_count(X)
    if n == 0:
        raise ValueError("is_valid: X has no rows")
    if n > n_samples:
        X = take(X, np.sort(np.random.default_rng(0).choice(n, n_samples, replace=False)))
    if is_objects(X):
        return X
    # the check concerns the kernel, not the rounding of float32
    return X.astype(np.float64, copy=False)


# --- condition -----------------------------------------------------------------------------------
#
# Mercer's condition: the integral of f(x) k(x, y) f(y) is nowhere negative, whatever f is.

_ROUNDING = 1e-10  # of the largest eigenvalue
_OTHER = 11  # nodes fewer when a function is looked at again: a grid that shares none


@dataclass(frozen=True, eq=False)
class MercerCondition:
    """The result of `mercer_condition`; true unless a function was found that violates it.

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
        For example `FromCallable(f)` for a custom function f.
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
