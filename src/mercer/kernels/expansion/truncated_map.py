"""The feature map of a kernel with infinitely many features, cut off with a bound on the error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import expression as ex
from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.expression import Expression
from mercer.kernels.columns import column_names
from mercer.kernels.expansion.truncate import NoSeriesError, largest, truncated
from mercer.kernels.features import FeatureMap, feature_map
from mercer.points import as_points, is_objects, is_sparse, row_count
from mercer.resources import require_memory

_SMALLEST = 1e-13  # a hundred roundings of float64: a map cannot be better than its own sums
_WORKING = 3  # arrays of the size of the features that are held while they are made


@dataclass(frozen=True)
class TruncatedFeatureMap(FeatureMap):
    """phi with |k(x, y) - <phi(x), phi(y)>| <= tol on the rows it was made for.

    What the series leaves out is a kernel r = k - <phi, phi>, hence
    |r(x, y)| <= sqrt(r(x, x) r(y, y)): the error of a pair is bounded by what each row shows alone,
    `phi.error(X)`, at rows that were not given as well. For the Gaussian kernel r(x, x) is the
    probability that a Poisson number of mean |x - centre|^2 / scale^2 exceeds the degree: no more
    than `tol` in the whole ball that holds the given rows.

    Parameters
    ----------
    expression : Expression
        The formula of <phi(x), phi(y)>.
    n_features : int
        Length of the rows x.
    exact : Expression
        The formula of k.
    tol : float
        Bound on the error.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian
    >>> X = np.linspace(-1, 1, 5)[:, None]
    >>> phi = Gaussian(1.0).features(X, tol=1e-6)
    >>> phi.dimension
    10
    >>> F = phi(X)
    >>> bool(np.abs(F @ F.T - Gaussian(1.0)(X)).max() <= phi.error(X).max() <= 1e-6)
    True
    """

    exact: Expression
    tol: float

    def __call__(self, X: Any) -> Any:
        """Return the features (n, dimension) in X's type."""
        _refuse_many(row_count(as_points(X)), self.dimension, self.tol)
        return super().__call__(X)

    def error(self, X: Any) -> Array:
        """Return k(x, x) - |phi(x)|^2 of every row, which is never negative: (n,).

        Two rows are compared with an error of at most the geometric mean of theirs.
        """
        points = _float64(as_points(X))
        features = super().__call__(X if column_names(X) else points).astype(np.float64)
        formula = ex.bind_columns(self.exact, column_names(X))
        own = choose_backend().diagonal(formula, points, np.float64)
        return np.asarray(np.maximum(own - np.square(features).sum(axis=1), 0.0))


def truncated_feature_map(expression: Expression, X: Any, tol: Any) -> FeatureMap:
    """Return the finite map of a kernel, or one with an error of at most tol on rows like X.

    Parameters
    ----------
    expression : Expression
        The formula of the kernel.
    X : array-like or sparse matrix of shape (n, d)
        Rows; how far they lie from each other says how many terms are needed.
    tol : float
        Bound on the error of a pair of rows.

    Returns
    -------
    FeatureMap
        A `TruncatedFeatureMap`, unless the map is finite.
    """
    if np.ndim(X) == 0 and not is_sparse(X):
        raise TypeError(
            f"features: with tol, pass rows X in place of the number {X!r}: how far rows lie from "
            "each other decides how many features are needed"
        )
    points = as_points(X)
    if is_objects(points):
        raise TypeError("features: X holds strings or lists; a series needs rows of numbers")
    finite = feature_map(expression, points.shape[1])
    if finite is not None:
        return finite
    points = _float64(points)
    if not row_count(points):
        raise ValueError("features: X has no rows; how far out they lie is not known")
    if not np.isfinite(points.data if is_sparse(points) else points).all():
        raise ValueError("features: X holds values that are not finite; remove or fill these rows")
    bound = ex.bind_columns(expression, column_names(X))
    size = largest(bound, points)
    if not np.isfinite(size):
        raise ValueError("features: k(x, x) is beyond float64 for some row of X; scale the rows")
    least = _SMALLEST * size
    real = isinstance(tol, int | float | np.number) and not isinstance(tol, bool)
    if not real or not 0.0 < float(tol) < np.inf or float(tol) < least:
        raise ValueError(
            f"features: tol={tol!r} must be a positive number, and at least {least:.1g}, the "
            "rounding of k(x, x) on these rows"
        )
    made = truncated(bound, points, float(tol))
    found = TruncatedFeatureMap(made, points.shape[1], bound, float(tol))
    _refuse_many(row_count(points), found.dimension, float(tol))
    return found


def _refuse_many(n: int, dimension: int, tol: float) -> None:
    """Refuse features that do not fit into memory."""
    shown = f"{dimension:,}" if dimension < 10**15 else f"{dimension:.1e}"
    require_memory(
        _WORKING * 8 * n * dimension,
        f"features: an error of {tol:g} needs {shown} features for each of {n} rows, which",
        "Take a larger tol or scale, fewer columns (k.on), or fewer rows at a time; or take "
        "features from the rows: kernels.eigenfunctions(k, X, n_components).features",
    )


def _float64(points: Points) -> Points:
    return points.astype(np.float64, copy=False)


__all__ = ["NoSeriesError", "TruncatedFeatureMap", "truncated_feature_map"]
