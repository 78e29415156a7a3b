"""Where rows come from: a density, or a sample, as points with weights that sum to one.

The integral operator of a kernel, (T f)(x) = integral of k(x, y) f(y) p(y) dy, needs a density p.
Quadrature turns an integral under p into a sum over nodes: exact for polynomials up to twice their
number in each column. Of a sample, the nodes are the rows themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss

from mercer.array_types import Array, FrozenArray
from mercer.kernels import checks
from mercer.points import as_points, is_objects, row_count
from mercer.resources import require_memory

_NODES = 1000  # in all columns together: the matrix of the operator has as many rows
_MOST = 180  # in one column: the weights of more nodes of Hermite's rule leave float64


class Density(ABC):
    """A probability density, or a sample of one."""

    @abstractmethod
    def nodes(self, n_nodes: int | None = None) -> tuple[Any, Array]:
        """Return points (N, d) and weights (N,) that sum to 1, `n_nodes` for each column."""


@dataclass(frozen=True)
class NormalDensity(Density):
    """The normal density.

    Parameters
    ----------
    mean : float or array-like of shape (d,)
        Its mean.
    covariance : float, or array-like of shape (d,) or (d, d)
        Variance of all columns, of each column, or the matrix.

    Examples
    --------
    >>> points, weights = NormalDensity(mean=1.0, covariance=4.0).nodes(5)
    >>> round(float(weights @ points[:, 0] ** 2), 12)  # mean^2 + variance
    5.0
    """

    mean: float | npt.ArrayLike = 0.0
    covariance: float | npt.ArrayLike = 1.0

    def __post_init__(self) -> None:
        owner = "NormalDensity"
        mean = np.atleast_1d(_numbers(owner, "mean", self.mean, 1))
        given = _numbers(owner, "covariance", self.covariance, 2)
        if given.ndim < 2:
            count = max(len(mean), given.size)
            given = np.diag(np.broadcast_to(given, count) if given.size in (1, count) else given)
        if mean.size == 1:
            mean = np.broadcast_to(mean, len(given))
        if given.shape != (len(mean), len(mean)):
            raise ValueError(
                f"{owner}: a mean of {len(mean)} columns needs a covariance of as many, not of "
                f"shape {given.shape}"
            )
        matrix = checks.psd_matrix(owner, "covariance", given)
        if not (np.linalg.eigvalsh(matrix.array) > 0).all():
            raise ValueError(f"{owner}: covariance must have positive eigenvalues")
        object.__setattr__(self, "mean", FrozenArray(mean))
        object.__setattr__(self, "covariance", matrix)

    def nodes(self, n_nodes: int | None = None) -> tuple[Array, Array]:
        """Return the nodes of Gauss and Hermite along the axes of the covariance."""
        mean, covariance = np.asarray(self.mean), np.asarray(self.covariance)
        variances, axes = np.linalg.eigh(covariance)
        points, weights = _grid(hermegauss, len(mean), n_nodes)
        return mean + (points * np.sqrt(variances)) @ axes.T, weights


@dataclass(frozen=True)
class UniformDensity(Density):
    """The uniform density on an interval, or on a box.

    Parameters
    ----------
    low, high : float or array-like of shape (d,)
        Its ends, for each column.

    Examples
    --------
    >>> points, weights = UniformDensity(0.0, 3.0).nodes(4)
    >>> round(float(weights @ points[:, 0] ** 2), 12)
    3.0
    """

    low: float | npt.ArrayLike = 0.0
    high: float | npt.ArrayLike = 1.0

    def __post_init__(self) -> None:
        low, high = _box("UniformDensity", self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def nodes(self, n_nodes: int | None = None) -> tuple[Array, Array]:
        """Return the nodes of Gauss and Legendre."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        points, weights = _grid(leggauss, len(low), n_nodes)
        return low + (points + 1) / 2 * (high - low), weights


@dataclass(frozen=True)
class BoxDensity(Density):
    """Any density on a box.

    Parameters
    ----------
    density : callable
        Maps rows (n, d) to numbers (n,) that are nowhere negative, up to a factor.
    low, high : float or array-like of shape (d,)
        The ends of the box, for each column.

    Examples
    --------
    >>> points, weights = BoxDensity(lambda X: X[:, 0], 0.0, 1.0).nodes(4)
    >>> round(float(weights @ points[:, 0]), 12)
    0.666666666667
    """

    density: Callable[[Array], npt.ArrayLike]
    low: float | npt.ArrayLike = 0.0
    high: float | npt.ArrayLike = 1.0

    def __post_init__(self) -> None:
        if not callable(self.density):
            raise TypeError(f"BoxDensity: density={self.density!r} must be a function of rows")
        low, high = _box("BoxDensity", self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def nodes(self, n_nodes: int | None = None) -> tuple[Array, Array]:
        """Return the nodes of Gauss and Legendre, their weights times the density."""
        points, weights = UniformDensity(self.low, self.high).nodes(n_nodes)
        values = np.asarray(self.density(points), dtype=np.float64)
        if values.shape != weights.shape:
            raise ValueError(
                f"BoxDensity: density gave values of shape {values.shape} for {len(points)} rows; "
                "it must return one for each"
            )
        return points, _normalized("BoxDensity: density", weights * values)


@dataclass(frozen=True, eq=False)
class SampleDensity(Density):
    """The rows of a sample, each with its weight.

    Parameters
    ----------
    X : array-like, sparse matrix, DataFrame, or list of sequences
        Rows.
    weights : array-like of shape (n,), optional
        How much each row counts; all alike if left out.

    Examples
    --------
    >>> SampleDensity([[0.0], [4.0]], weights=[3, 1]).nodes()[1].tolist()
    [0.75, 0.25]
    """

    X: Any
    weights: npt.ArrayLike | None = None

    def nodes(self, n_nodes: int | None = None) -> tuple[Any, Array]:
        """Return the rows with their weights."""
        if n_nodes is not None:
            raise ValueError("n_nodes: the nodes of a sample are its rows; leave n_nodes out")
        points = as_points(self.X)
        n = row_count(points)
        if n == 0:
            raise ValueError("X has no rows")
        if not is_objects(points) and not np.isfinite(_entries(points)).all():
            raise ValueError("X holds values that are not finite")
        if self.weights is None:
            return self.X, np.full(n, 1.0 / n)
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (n,):
            raise ValueError(
                f"weights have shape {weights.shape}; there must be one for each of {n} rows"
            )
        return self.X, _normalized("weights", weights)


def as_density(over: Any) -> Density:
    """See rows as the sample they are."""
    return over if isinstance(over, Density) else SampleDensity(over)


def _grid(rule: Callable[[int], Any], d: int, n_nodes: int | None) -> tuple[Array, Array]:
    """Return the nodes of a rule in d columns: all combinations."""
    most = max(2, min(_MOST, int(_NODES ** (1 / d))))
    n = most if n_nodes is None else checks.whole("nodes", "n_nodes", n_nodes)
    if n > _MOST:
        raise ValueError(f"n_nodes={n} must be at most {_MOST} for each column")
    require_memory(
        8 * (d + 1) * n**d,
        f"{n} nodes in each of {d} columns: the grid",
        "Take fewer nodes, or a sample of rows in place of the density",
    )
    at, weight = rule(n)
    points = np.stack([axis.ravel() for axis in np.meshgrid(*[at] * d, indexing="ij")], axis=1)
    weights = np.ones(1)
    for _ in range(d):
        weights = np.multiply.outer(weights, weight / weight.sum()).ravel()
    kept = weights > 0
    return points[kept], weights[kept]


def _normalized(owner: str, weights: Array) -> Array:
    total = weights.sum()
    if not (weights >= 0).all() or not 0 < total < np.inf:
        raise ValueError(f"{owner} must be finite, nowhere negative, and positive somewhere")
    return np.asarray(weights / total)


def _box(owner: str, low: Any, high: Any) -> tuple[FrozenArray, FrozenArray]:
    ends = [np.atleast_1d(_numbers(owner, n, v, 1)) for n, v in (("low", low), ("high", high))]
    if len({len(end) for end in ends} | {1}) > 2 or not (ends[0] < ends[1]).all():
        raise ValueError(f"{owner}: low={low!r} must be below high={high!r} in every column")
    below, above = np.broadcast_arrays(*ends)
    return FrozenArray(below), FrozenArray(above)


def _numbers(owner: str, name: str, value: Any, most: int) -> Array:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full(1, np.nan)
    if array.ndim > most or not array.size or not np.isfinite(array).all():
        raise ValueError(f"{owner}: {name}={value!r} must hold finite numbers")
    return array


def _entries(points: Any) -> Array:
    return np.asarray(
        getattr(points, "data", points) if not isinstance(points, np.ndarray) else points
    )
