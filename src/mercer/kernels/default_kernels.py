"""Function `resolve`, which reads the `kernel=` argument, and scales that suit the data."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mercer.array_types import Array, Points
from mercer.expression import Expression
from mercer.kernels.algebra import Kernel, On
from mercer.kernels.families import (
    FromCallable,
    Gaussian,
    Laplacian,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
)
from mercer.kernels.parser import KERNELS, parse, plain
from mercer.rows.points import as_points, chosen_columns, column_names, is_objects

# --- resolve -------------------------------------------------------------------------------------
#
# What users hand over becomes a kernel here, and only here: objects, names, texts, functions.
#
# Names without brackets stand for a kernel whose scale suits the data (see below), alone
# or within a formula: "gaussian", "gaussian + linear", "rbf[age, income]".


def resolve(
    kernel: Any,
    X: Any = None,
    sample_weight: Any = None,
    names: Sequence[str] | None = None,
) -> Kernel:
    """Turn the value of a `kernel` parameter into a Kernel.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A kernel; a name or a text for `parse`; a function of two blocks of rows;
        or a kernel of scikit-learn's Gaussian processes (whose noise terms are ignored here:
        the penalty of an estimator replaces them).
    X : array-like, optional
        Data that names without brackets take their scale from; without it, a name has the defaults
        of its class.
    sample_weight : array-like (n,), optional
        How often each row counts.
    names : sequence of str, optional
        Names of the columns, where X has none itself.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> resolve("rbf", [[0.0, 2.0], [4.0, 2.0]])
    Gaussian(scale=1.4142135623730951)
    >>> resolve("0.5 * linear + rbf(gamma=0.5)")
    0.5 * Linear() + Gaussian(scale=1.0)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        return with_scales(parse(kernel, unscaled), X, sample_weight, _names(X, names))
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise TypeError(f"kernel={kernel.__name__} is a class; pass a kernel: {kernel.__name__}()")
    if _is_gaussian_process_kernel(kernel):
        return FromCallable(GaussianProcessFunction(kernel))
    if callable(kernel):
        return FromCallable(kernel)
    raise TypeError(
        f"kernel={kernel!r} must be a kernel such as Gaussian(scale=2.0), a name such as 'rbf', a "
        "text such as 'gaussian(2) + linear', or a function of two blocks of rows"
    )


@dataclass(frozen=True, eq=False)
class GaussianProcessFunction:
    """A kernel of scikit-learn's Gaussian processes as a function of two blocks of rows."""

    kernel: Any

    def __call__(self, X: Points, Y: Points) -> Array:
        """Evaluate on dense rows."""
        dense = (P.toarray() if isinstance(P, csr_array) else P for P in (X, Y))
        return np.asarray(self.kernel(*dense))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GaussianProcessFunction) and bool(self.kernel == other.kernel)

    def __hash__(self) -> int:
        return hash(repr(self.kernel))  # scikit-learn's own kernels compare but have no hash


def _is_gaussian_process_kernel(kernel: Any) -> bool:
    module = sys.modules.get("sklearn.gaussian_process.kernels")  # without it no such kernel exists
    return module is not None and isinstance(kernel, module.Kernel)


def _names(X: Any, names: Sequence[str] | None) -> Sequence[str] | None:
    return column_names(X) if names is None else names


# --- default scales ------------------------------------------------------------------------------
#
# Kernels whose scale is chosen from the data: the meaning of a name without brackets.
#
# With d features, v the variance of all entries of X (rows counted as often as their sample
# weight says) and g = 1 / (d v):
#
# ==============================  ============================================  ====================
# name                            kernel                                          compare scikit-learn  # noqa: E501
# ==============================  ============================================  ====================
# "gaussian", "rbf"               exp(-g |x - y|^2): scale sqrt(d v / 2)          gamma="scale"
# "matern", "rational_quadratic"  scale sqrt(d v / 2); nu 1.5, alpha 1            (no such default)
# "laplacian"                     exp(-|x - y|_1 / (d sqrt(v)))                   gamma=1/d if v = 1
# "polynomial", "poly"            (g x'y + 1)^3 = g^3 (x'y + 1/g)^3               gamma="scale" and 1  # noqa: E501
# "sigmoid"                       tanh(g x'y)                                     gamma="scale"
# "chi_squared", "chi2"           exp(-chi^2(x, y))                               gamma=1
# any other name of a kernel      the defaults of its class
# ==============================  ============================================  ====================
#
# On some columns, `rbf[age, income]`, d and v are those of these columns. If all entries are
# equal then g = 1 (v = 1/d), with a warning.

_SMALL = sqrt(sys.float_info.min)  # entries below have squares that lose digits, and then vanish
_ROUNDING = 16 * float(np.finfo(np.float64).eps)

_DEFAULTS: dict[str, Callable[[int, float], Kernel]] = {
    "gaussian": lambda d, v: Gaussian(sqrt(d * v / 2)),
    "matern": lambda d, v: Matern(scale=sqrt(d * v / 2)),
    "rationalquadratic": lambda d, v: RationalQuadratic(scale=sqrt(d * v / 2)),
    "laplacian": lambda d, v: Laplacian(d * sqrt(v)),
    "polynomial": lambda d, v: (d * v) ** -3 * Polynomial(degree=3, offset=d * v),
    "sigmoid": lambda d, v: Sigmoid(slope=1 / (d * v)),
}

# Without data g = 1, so that "polynomial" has one degree, not two.
_CLASS_DEFAULTS: dict[str, Callable[[], Kernel]] = {"polynomial": lambda: Polynomial(degree=3)}


@dataclass(frozen=True, repr=False)
class Unscaled(Kernel):
    """A name, and how it was written, whose kernel is made when the data are known."""

    name: str
    written: str

    def expression(self) -> Expression:
        """Write the formula with the defaults of the class."""
        return self.without_data().expression()

    def without_data(self) -> Kernel:
        """Return the kernel with the defaults of its class."""
        return _CLASS_DEFAULTS.get(self.name, KERNELS[self.name])()


def unscaled(name: str) -> Kernel | None:
    """Return the kernel of a name that takes its scale from the data; None for any other."""
    return Unscaled(plain(name), name) if plain(name) in _DEFAULTS else None


def with_scales(kernel: Kernel, X: Any, sample_weight: Any, names: Sequence[str] | None) -> Kernel:
    """Return the kernel with every name in it replaced by a kernel that suits the data."""
    if isinstance(kernel, Unscaled):
        return _suited(kernel, X, sample_weight)
    if isinstance(kernel, On):
        X = _columns_of(X, kernel.columns, names)
    made = {
        name: with_scales(part, X, sample_weight, names)
        for name, part in kernel.get_params(deep=False).items()
        if isinstance(part, Kernel)
    }
    changed = {name: part for name, part in made.items() if part is not getattr(kernel, name, None)}
    return kernel.with_params(**changed) if changed else kernel


def _columns_of(X: Any, columns: Sequence[int | str], names: Sequence[str] | None) -> Any:
    """Return some columns; all if they are unknown, in which case the fit raises an error."""
    points = None if X is None else as_points(X)
    if points is None:
        return points
    places = {name: place for place, name in enumerate(() if names is None else names)}
    chosen = [places.get(column, -1) if isinstance(column, str) else column for column in columns]
    if is_objects(points):
        mixed = all(isinstance(row, list | tuple) and len(row) > max(chosen) >= 0 for row in points)
        return chosen_columns(points, chosen) if mixed else points
    known = all(0 <= place < points.shape[1] for place in chosen)
    return points[:, chosen] if known else points


def _suited(kernel: Unscaled, X: Any, sample_weight: Any) -> Kernel:
    points = None if X is None else as_points(X)
    if points is None or is_objects(points):
        return kernel.without_data()
    d, owner = points.shape[1], f"kernel={kernel.written!r}"
    variance = _variance_or_one_over(d, points, sample_weight, owner)
    try:
        return _DEFAULTS[kernel.name](d, variance)
    except (ArithmeticError, ValueError) as error:
        raise no_scale(owner, points, "a kernel with a scale of its own") from error


def _variance_or_one_over(d: int, X: Points, sample_weight: Any, owner: str) -> float:
    variance = spread_of_entries(X, sample_weight, owner, "a kernel with a scale")
    if variance > 0.0:
        return variance
    warnings.warn(
        f"{owner}: all entries of X are equal, so they suggest no scale; 1 / (n_features * "
        f"variance) is set to 1. Pass a kernel with a scale to choose another.",
        UserWarning,
        stacklevel=5,
    )
    return 1.0 / d


def spread_of_entries(X: Points, sample_weight: Any, owner: str, remedy: str) -> float:
    """Return the variance of all entries of X; zero if they are all equal, to rounding.

    Raises
    ------
    ValueError
        If it is outside the range of float64: entries beyond 1e154, or all below 1e-154.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        variance = weighted_variance(X, sample_weight)
    largest = float(abs(X).max())
    vanishes = largest < _SMALL and X.max() > X.min()
    if vanishes or not variance < np.inf:
        raise no_scale(owner, X, remedy)
    # what equal entries leave, when their mean is rounded, is not a variance
    return variance if sqrt(variance) > _ROUNDING * largest else 0.0


def no_scale(owner: str, X: Points, remedy: str) -> ValueError:
    """Return a message that the data suggest no scale that is a number, and what to do."""
    return ValueError(
        f"{owner}: entries of X of size {float(abs(X).max()):.0e} suggest a scale that float64 "
        f"cannot hold. Scale the features, or pass {remedy}."
    )


def weighted_variance(X: Points, sample_weight: Any = None) -> float:
    """Return the variance of all entries of X, rows counted as often as their weight says.

    Examples
    --------
    >>> weighted_variance(np.array([[0.0], [3.0]]), [2, 1])
    2.0
    """
    w = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    total = w.sum() * X.shape[1]
    if not total > 0:
        raise ValueError("sample_weight must have a positive sum, and X at least one entry")
    mean = float(w @ _row_sums(X) / total)
    return float(w @ _row_squares(X, mean) / total)


def _row_sums(X: Points) -> Array:
    return np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()


def _row_squares(X: Points, mean: float) -> Array:
    """Sum (x_ij - mean)^2 over each row; two passes, since one would cancel."""
    if isinstance(X, csr_array):
        stored = np.diff(X.indptr)
        values = np.square(X.data - np.float64(mean), dtype=np.float64)
        around = csr_array((values, X.indices, X.indptr), shape=X.shape)
        return np.asarray(_row_sums(around) + (X.shape[1] - stored) * np.square(np.float64(mean)))
    blocks = range(0, len(X), 4096)  # so that no second copy of X is made
    squares = [
        np.square(X[i : i + 4096] - np.float64(mean), dtype=np.float64).sum(axis=1) for i in blocks
    ]
    return np.concatenate(squares)
