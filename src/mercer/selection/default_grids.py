"""Grids that suit the data, for machines that are tuned without being told what to try.

Scales of radial kernels go by factors of two around half the median distance of rows (where the
Gaussian of two typical rows is exp(-2)), for detectors of novelty by factors of sqrt(2) and further
down; costs and penalties go by factors of ten, in units of the
targets' spread where they have one. Where a class has less than a third of another's rows, weighing
classes alike is tried, too.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mercer.array_types import Points
from mercer.kernels import (
    Gaussian,
    Kernel,
    Laplacian,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    resolve,
)
from mercer.machines import (
    PCA,
    SVC,
    SVR,
    EnclosingBall,
    FisherDiscriminant,
    GaussianMixture,
    KernelRidge,
    KMeans,
    LogisticRegression,
    NaiveBayes,
    NearestMean,
    NearestNeighbors,
    OneClassSVM,
    SpectralClustering,
)
from mercer.points import as_points, is_objects, row_count, take
from mercer.selection.grids import Grid
from mercer.selection.running.rows import count_rows

_SAMPLE = 400  # rows whose distances stand for all
_FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
# Detectors rank best at scales below those of classifiers, where the area changes fast.
_NOVELTY_FACTORS = tuple(2.0 ** (step / 2) for step in range(-6, 2))
_DEGREES = (1, 2, 3, 4)
_COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
_PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
_TUBES = (0.01, 0.05, 0.2)  # of the spread of the targets
_SHARES = (0.01, 0.03, 0.1, 0.3)
_NEIGHBOURS = (1, 3, 5, 9, 15, 25, 45)
_COUNTS = (2, 3, 4, 5, 6, 8, 10)
_ROWS_PER_MEAN = 5  # and number of a mean: fewer rows, and components sit on single ones
_RARE = 3.0  # times as many rows in one class as in another

Axes = dict[str, tuple[Any, ...]]


def default_grid(machine: Any, X: Any, y: Any = None) -> Grid:
    """Return a grid for a machine on these rows.

    Parameters
    ----------
    machine : estimator
        A machine of this library, or a pipeline that ends in one.
    X : array-like
        Rows.
    y : array-like, optional
        Targets.

    Returns
    -------
    Grid
        Axes of values; `points()` gives their combinations.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.selection import default_grid
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> grid = default_grid(SVC(), X, X[:, 0] > 0)
    >>> sorted(grid.parts[0]), len(grid)
    (['C', 'kernel'], 30)
    """
    axes = known_axes(machine, X, y)
    if not axes:
        raise ValueError(
            f"{type(machine).__name__}: nothing is known of what to tune; pass grid, a dict of "
            "lists of values by name of the parameter"
        )
    return Grid((axes,))


@singledispatch
def known_axes(machine: Any, X: Any, y: Any) -> Axes:
    """Return values to try by name of the parameter; none where nothing is known of the machine."""
    return {}


@known_axes.register
def _(machine: Pipeline, X: Any, y: Any) -> Axes:
    """Take the axes of the last step, on rows as it will see them."""
    name, last = machine.steps[-1]
    before = clone(Pipeline(machine.steps[:-1])) if len(machine.steps) > 1 else None
    rows = X if before is None else before.fit_transform(X, y)
    return {f"{name}__{key}": values for key, values in known_axes(last, rows, y).items()}


@known_axes.register
def _(machine: SVC, X: Any, y: Any) -> Axes:
    axes: Axes = {} if machine.nu is not None else {"C": _COSTS}
    if machine.nu is not None:
        axes["nu"] = (0.05, 0.1, 0.2, 0.4)
    _, counts = np.unique(np.asarray(y), return_counts=True)
    if machine.class_weight is None and counts.max() > _RARE * counts.min():
        axes["class_weight"] = (None, "balanced")
    return axes | _kernels(machine.kernel, X)


@known_axes.register
def _(machine: SVR, X: Any, y: Any) -> Axes:
    spread = _spread(y)
    axes: Axes = {"C": tuple(spread * cost for cost in _COSTS)}
    if machine.nu is not None:
        return axes | {"nu": (0.1, 0.3, 0.5, 0.7)} | _kernels(machine.kernel, X)
    return axes | {"epsilon": tuple(spread * t for t in _TUBES)} | _kernels(machine.kernel, X)


@known_axes.register
def _(machine: OneClassSVM, X: Any, y: Any) -> Axes:
    """Leave nu alone without labels: which share may be novel is then for the user to say."""
    kernels = _kernels(machine.kernel, X, _NOVELTY_FACTORS)
    return kernels if y is None and kernels else {"nu": _SHARES} | kernels


@known_axes.register
def _(machine: EnclosingBall, X: Any, y: Any) -> Axes:
    return _kernels(machine.kernel, X, _NOVELTY_FACTORS)


@known_axes.register
def _(machine: KernelRidge, X: Any, y: Any) -> Axes:
    """Leave the penalty alone where the machine itself chooses it."""
    axes: Axes = {} if isinstance(machine.penalty, str) else {"penalty": _PENALTIES}
    return axes | _kernels(machine.kernel, X)


@known_axes.register
def _(machine: LogisticRegression, X: Any, y: Any) -> Axes:
    return {"penalty": _PENALTIES} | _kernels(machine.kernel, X)


@known_axes.register
def _(machine: FisherDiscriminant, X: Any, y: Any) -> Axes:
    return {"penalty": (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)} | _kernels(machine.kernel, X)


@known_axes.register
def _(machine: NearestMean, X: Any, y: Any) -> Axes:
    return _kernels(machine.kernel, X)


@known_axes.register
def _(machine: NearestNeighbors, X: Any, y: Any) -> Axes:
    most = max(1, count_rows(X) // 2)
    counts = tuple(k for k in _NEIGHBOURS if k <= most)
    return {"n_neighbors": counts, "votes": ("plain", "similarity")}


@known_axes.register
def _(machine: NaiveBayes, X: Any, y: Any) -> Axes:
    return {"alpha": (0.01, 0.1, 0.3, 1.0, 3.0)}


@known_axes.register
def _(machine: PCA, X: Any, y: Any) -> Axes:
    n = count_rows(X)
    columns = np.shape(X)[1] if len(np.shape(X)) > 1 else n
    most = min(n, columns)
    return {"n_components": tuple(k for k in (1, 2, 3, 5, 8, 13, 21, 34, 55) if k <= most)}


@known_axes.register
def _(machine: GaussianMixture, X: Any, y: Any) -> Axes:
    n, d = np.shape(X)
    counts = tuple(k for k in (1, *_COUNTS) if k == 1 or k * _ROWS_PER_MEAN * (d + 1) <= n)
    return {"n_components": counts, "covariance": ("spherical", "diagonal", "full")}


@known_axes.register(KMeans)
@known_axes.register(SpectralClustering)
def _(machine: Any, X: Any, y: Any) -> Axes:
    return {"n_clusters": tuple(k for k in _COUNTS if k < max(3, count_rows(X)))}


def _kernels(kernel: Any, X: Any, factors: tuple[float, ...] = _FACTORS) -> Axes:
    """Return kernels like this one, of several scales or degrees; none where it has neither."""
    points = as_points(X)
    if isinstance(kernel, Precomputed) or is_objects(points):
        return {}
    found = resolve(kernel, points)
    if isinstance(found, Gaussian | Matern | RationalQuadratic | Laplacian):
        middle = typical_distance(points, 1 if isinstance(found, Laplacian) else 2) / 2
        return {"kernel": tuple(found.with_params(scale=f * middle) for f in factors)}
    if scales_of(found):
        return {"kernel": tuple(rescaled(found, factor) for factor in factors)}
    degrees = [name for name, part in found.get_params().items() if isinstance(part, Polynomial)]
    if isinstance(found, Polynomial) or len(degrees) == 1:
        path = f"{degrees[0]}__" if degrees else ""
        return {"kernel": tuple(_of_degree(found, path, degree) for degree in _DEGREES)}
    return {}


def _of_degree(kernel: Kernel, path: str, degree: int) -> Kernel:
    """Change the degree; a factor of offset^-degree, which keeps values near one, goes along."""
    params = kernel.get_params()
    old, offset, factor = params[f"{path}degree"], params[f"{path}offset"], params.get("factor")
    changed: dict[str, Any] = {f"{path}degree": degree}
    if factor is not None and offset > 0 and np.isclose(factor, float(offset) ** -old):
        changed["factor"] = float(offset) ** -degree
    return kernel.with_params(**changed)


def scales_of(kernel: Kernel) -> dict[str, Any]:
    """Return the scales of all parts of a kernel, by name of the parameter."""
    params = kernel.get_params()
    return {name: value for name, value in params.items() if name.rpartition("__")[2] == "scale"}


def rescaled(kernel: Kernel, factor: float) -> Kernel:
    """Return a kernel with all of its scales multiplied by a factor."""
    scales = scales_of(kernel).items()
    changed = {name: (factor * np.asarray(scale, dtype=float)).tolist() for name, scale in scales}
    return kernel.with_params(**changed)


def typical_distance(X: Points, power: int) -> float:
    """Return the median distance of rows that differ, from an even sample."""
    n = row_count(X)
    some = take(X, np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(int)))
    rows = np.asarray(some.toarray() if hasattr(some, "toarray") else some, dtype=np.float64)
    if power == 1:
        between = np.array([np.abs(rows - row).sum(axis=1) for row in rows])
    else:
        between = _norms(rows)
    apart = between[between > 0]
    return float(np.median(apart)) if len(apart) else 1.0


def _norms(rows: Any) -> Any:
    rows = rows - rows.mean(axis=0)
    squares = np.einsum("ij,ij->i", rows, rows)
    distances = squares[:, None] + squares - 2.0 * rows @ rows.T
    level = 1e-12 * max(float(squares.max(initial=0.0)), np.finfo(float).tiny)
    return np.sqrt(np.where(distances > level, distances, 0.0))


def _spread(y: Any) -> float:
    spread = float(np.std(np.asarray(y, dtype=np.float64)))
    return spread if spread > 0 else 1.0
