"""Mercer's theorem: eigenfunctions of a kernel under a density, and densities."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss
from scipy import linalg

from mercer.array_types import Array, FrozenArray
from mercer.kernels import checks
from mercer.kernels.algebra import Kernel
from mercer.kernels.families import Gaussian
from mercer.resources import require_memory
from mercer.rows.points import as_points, is_objects, row_count, to_dense

# --- eigenfunctions ------------------------------------------------------------------------------
#
# Mercer's theorem for a kernel and a density: closed form if known, else quadrature.

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
        Number of components; fewer if fewer eigenvalues are above 1e-10 of the largest.
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
            "needs them nonnegative; mercer_condition(k, over) returns a counterexample"
        )
    kept = min(count, max(1, int((values > _SMALLEST * values[-1]).sum())))
    found, functions = values[::-1][:kept], vectors[:, ::-1][:, :kept]
    trace = float(weights @ np.asarray(k.diag(points), dtype=np.float64))
    coef = functions * weights[:, None] / np.where(found > 0, found, 1.0)
    return NystromEigenfunctions(k, density, found.copy(), trace, _kept(points), coef)


def _kept(points: Any) -> Any:
    """Return a private copy of rows; a table keeps its names."""
    return points.copy() if hasattr(points, "copy") else as_points(points)


# --- nystrom -------------------------------------------------------------------------------------
#
# Mercer's theorem: a kernel as the sum of lambda_j psi_j(x) psi_j(y) over its eigenfunctions.
#
# Under a density p, integral k(x, y) psi_j(y) p(y) dy = lambda_j psi_j(x), the psi_j are
# orthonormal
# under p, and the sum of all lambda_j is the trace, integral k(x, x) p(x) dx. The features of the
# theorem are sqrt(lambda_j) psi_j(x). The remainder of a sum over the first m is a kernel again,
# hence
# |k(x, y) - k_m(x, y)| <= sqrt(r(x) r(y)) with r(x) = k(x, x) - k_m(x, x), whose mean is the sum of
# the eigenvalues that were left out.

_ASYMMETRY = 1e-8  # of the largest value: beyond rounding


@dataclass(frozen=True, eq=False)
class Eigenfunctions(ABC):
    """The first eigenvalues and eigenfunctions of a kernel under a density.

    Attributes
    ----------
    kernel : Kernel
        k.
    density : Density
        Distribution of rows.
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
            Distribution for the integrals; by default the density.
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
            f"{k!r}: k(x, y) and k(y, x) differ by up to {apart:.3g}; Mercer's theorem needs "
            "a symmetric function, such as (k(x, y) + k(y, x)) / 2"
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


# --- hermite -------------------------------------------------------------------------------------
#
# Eigenfunctions of the Gaussian kernel under a normal density, in closed form.
#
# For k(x, y) = exp(-b (x - y)^2), variance 1 / (4 a), c = sqrt(a^2 + 2 a b) and A = a + b + c:
#
#     lambda_j = sqrt(2 a / A) (b / A)^j,
#     psi_j(x) = (c / a)^(1/4) (2^j j!)^(-1/2) exp(-(c - a) x^2) H_j(sqrt(2 c) x).
#
# In several columns, rows are divided by the scales and turned to the axes of their covariance,
# where kernel and density are products over columns, and so are the eigenfunctions.


@dataclass(frozen=True, eq=False)
class HermiteEigenfunctions(Eigenfunctions):
    """Products of Hermite functions.

    Attributes
    ----------
    degrees : int array of shape (m, d)
        The degree of each function along each axis.
    axes : array of shape (d, d)
        Maps centered rows to the axes, in units of the scale.
    a : array of shape (d,)
        1 / (4 variance) along each axis, in units of the scale.
    """

    degrees: Array
    axes: Array
    a: Array

    def __call__(self, X: Any) -> Array:
        """Evaluate the eigenfunctions at rows: (n, m)."""
        rows = to_dense(as_points(X))
        mean = np.asarray(self.density.mean)  # type: ignore[attr-defined]
        if rows.shape[1] != len(mean):
            raise ValueError(f"X has {rows.shape[1]} columns; the density has {len(mean)}")
        Z = (rows - mean) @ self.axes
        out = np.ones((len(Z), len(self.degrees)))
        for i, a in enumerate(self.a):
            out *= _functions(Z[:, i], float(a), int(self.degrees[:, i].max()))[
                self.degrees[:, i]
            ].T
        return out


def hermite_eigenfunctions(
    k: Gaussian, density: NormalDensity, count: int
) -> HermiteEigenfunctions:
    """Return the first eigenfunctions, by the size of their eigenvalues.

    Parameters
    ----------
    k : Gaussian
        One scale, or one for each column.
    density : NormalDensity
        Any mean and covariance.
    count : int
        Number of nodes.
    """
    covariance = np.asarray(density.covariance)
    d = len(covariance)
    scale = k.scale.array if isinstance(k.scale, FrozenArray) else np.full(d, float(k.scale))  # type: ignore[arg-type]
    if len(scale) != d:
        raise ValueError(
            f"eigenfunctions: the kernel has {len(scale)} scales, the density {d} columns"
        )
    variances, turn = np.linalg.eigh(covariance / scale / scale[:, None])
    a = 1.0 / (4.0 * variances)
    first, ratio = _eigenvalues(a)
    degrees = _largest_products(np.log(ratio), count)
    values = np.exp(np.log(first).sum() + degrees @ np.log(ratio))
    return HermiteEigenfunctions(k, density, values, 1.0, degrees, turn / scale[:, None], a)


def _eigenvalues(a: Array, b: float = 0.5) -> tuple[Array, Array]:
    """Return the largest eigenvalue along each axis, and the ratio of each to the one before."""
    A = a + b + np.sqrt(a * a + 2 * a * b)
    return np.sqrt(2 * a / A), b / A


def _functions(x: Array, a: float, degree: int, b: float = 0.5) -> Array:
    """Return psi_0, ..., psi_degree along one axis, by the recurrence of Hermite's polynomials."""
    c = np.sqrt(a * a + 2 * a * b)
    u = np.sqrt(2 * c) * x
    out = np.empty((degree + 1, len(x)))
    out[0] = (c / a) ** 0.25 * np.exp(-2 * a * b / (c + a) * x * x)  # c - a without cancellation
    if degree:
        out[1] = np.sqrt(2.0) * u * out[0]
    for j in range(1, degree):
        out[j + 1] = np.sqrt(2 / (j + 1)) * u * out[j] - np.sqrt(j / (j + 1)) * out[j - 1]
    return out


def _largest_products(logs: Array, count: int) -> Array:
    """Return the `count` vectors of degrees with the largest sum of degree times log, in order."""
    start = (0,) * len(logs)
    waiting, seen = [(0.0, start)], {start}
    found: list[tuple[int, ...]] = []
    while len(found) < count:
        _, degrees = heapq.heappop(waiting)
        found.append(degrees)
        for i in range(len(logs)):
            larger = (*degrees[:i], degrees[i] + 1, *degrees[i + 1 :])
            if larger not in seen:
                seen.add(larger)
                heapq.heappush(waiting, (-float(np.dot(larger, logs)), larger))
    return np.array(found)


# --- densities -----------------------------------------------------------------------------------
#
# Where rows come from: a density, or a sample, as points with weights that sum to one.
#
# The integral operator of a kernel, (T f)(x) = integral of k(x, y) f(y) p(y) dy, needs a density
# p. Quadrature turns an integral under p into a sum over nodes: exact for polynomials up to twice
# their number in each column. Of a sample, the nodes are the rows themselves.

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
        Weight of each row; all equal by default.

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
