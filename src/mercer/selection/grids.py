"""Grids of candidates, default grids for estimators, and the growth of a grid beyond its edge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
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
from mercer.machines.bayes.naive_bayes import NaiveBayes
from mercer.machines.clustering.kmeans import KMeans
from mercer.machines.clustering.spectral import SpectralClustering
from mercer.machines.decomposition.pca import PCA
from mercer.machines.discriminant.fisher import FisherDiscriminant
from mercer.machines.logistic.logistic_regression import LogisticRegression
from mercer.machines.mixture.gaussian_mixture import GaussianMixture
from mercer.machines.neighbors.nearest_mean import NearestMean
from mercer.machines.neighbors.nearest_neighbors import NearestNeighbors
from mercer.machines.ridge.kernel_ridge import KernelRidge
from mercer.machines.svm.novelty import EnclosingBall, OneClassSVM
from mercer.machines.svm.svc import SVC
from mercer.machines.svm.svr import SVR
from mercer.rows.points import as_points, is_objects, mixed_rows, row_count, take
from mercer.selection.folds import count_rows

# --- grids ---------------------------------------------------------------------------------------
#
# Points to try: axes of values by name, every combination of them.


@dataclass(frozen=True, eq=False)
class Grid:
    """One box of values, or several.

    Attributes
    ----------
    parts : tuple of dict of str to tuple
        Each a box: values by name of the parameter.
    """

    parts: tuple[dict[str, tuple[Any, ...]], ...]

    @staticmethod
    def of(grid: Any) -> Grid:
        """Read a grid as scikit-learn writes it: a dict of lists, or a list of such."""
        if isinstance(grid, Grid):
            return grid
        boxes = [grid] if isinstance(grid, Mapping) else grid
        single = isinstance(boxes, str) or getattr(boxes, "ndim", 1) == 0
        if single or not isinstance(boxes, Iterable):
            raise TypeError(
                f"grid={grid!r} must be a dict of lists, such as {{'C': [1, 10]}}, or a list of "
                "such dicts"
            )
        parts = tuple(_box(box) for box in boxes)
        if not parts:
            raise ValueError("grid is empty: give at least one dict of lists of values")
        return Grid(parts)

    def points(self) -> list[dict[str, Any]]:
        """Return all combinations, in the order of scikit-learn's ParameterGrid."""
        return list(ParameterGrid([dict(part) for part in self.parts]))

    def __len__(self) -> int:
        return len(ParameterGrid([dict(part) for part in self.parts]))


def _box(box: Any) -> dict[str, tuple[Any, ...]]:
    if not isinstance(box, Mapping):
        raise TypeError(f"grid: {box!r} must be a dict of lists, such as {{'C': [1, 10]}}")
    return {str(name): _values(str(name), values) for name, values in box.items()}


def _values(name: str, values: Any) -> tuple[Any, ...]:
    if (
        isinstance(values, str)
        or not isinstance(values, Iterable)
        or getattr(values, "ndim", 1) != 1
    ):
        raise TypeError(
            f"grid: the values of {name!r} must be a list (one value alone: [{values!r}])"
        )
    found = tuple(values.tolist() if isinstance(values, np.ndarray) else values)
    if not found:
        raise ValueError(f"grid: {name!r} has no values; give at least one")
    return found


# --- default grids -------------------------------------------------------------------------------
#
# Grids that suit the data, for machines that are tuned without being told what to try.
#
# Scales of radial kernels go by factors of two around half the median distance of rows (where the
# Gaussian of two typical rows is exp(-2)), for detectors of novelty by factors of sqrt(2) and
# further down; costs and penalties go by factors of ten, in units of the targets' spread where
# they have one. Where a class has less than a third of another's rows, weighing classes alike is
# tried, too.

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
            f"{type(machine).__name__}: there is no default grid; pass grid, a dict of parameter "
            "names to lists of values"
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
    mixed = mixed_rows(X)
    points = as_points(X) if mixed is None else mixed
    if isinstance(kernel, Precomputed) or (mixed is None and is_objects(points)):
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


# --- edges ---------------------------------------------------------------------------------------
#
# Best points on the edge of a grid: they are told of, and grids of our own grow beyond it.
#
# An axis has an edge where its values are numbers in geometric order (costs, penalties), or
# kernels that differ by the factor of their scales. The best point on the first or last of them
# may have a better neighbour outside.

UNBOUNDED = {"C", "penalty", "epsilon", "kernel", "scale"}  # any positive value is allowed
MOST_STEPS = 4  # beyond each edge: four more decades of a cost, a factor of 16 of a scale
_SAME = 1e-6  # relative difference of factors that count as one


def edges_of(grid: Grid, point: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the axes on whose first (-1) or last (+1) value a point lies."""
    found = []
    for name, values in _box_of(grid, point).items():
        unbounded = name.rpartition("__")[2] in UNBOUNDED
        if unbounded and len(values) > 2 and _factor(values) is not None:
            place = next(k for k, value in enumerate(values) if value is point[name])
            if place in (0, len(values) - 1):
                found.append((name, 1 if place else -1))
    return found


def widened(grid: Grid, point: Mapping[str, Any], name: str, side: int) -> tuple[Grid, Grid]:
    """Return the grid with one more value beyond an edge, and the points that are new in it."""
    box = _box_of(grid, point)
    values = box[name]
    factor = _factor(values)
    assert factor is not None
    new = _times(values[-1], factor) if side > 0 else _times(values[0], 1 / factor)
    longer = (*values, new) if side > 0 else (new, *values)
    parts = tuple({**part, name: longer} if part is box else part for part in grid.parts)
    return Grid(parts), Grid(({**box, name: (new,)},))


def note_on_edge(name: str, side: int, value: Any, steps: int) -> str:
    """Return a message that the best point is the outermost one."""
    end = "largest" if side > 0 else "smallest"
    tried = f", after {steps} extensions of the grid" if steps else ""
    return (
        f"The best {name} is the {end} in the grid, {value!r}{tried}: a better one may lie "
        "beyond it."
    )


def _box_of(grid: Grid, point: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return the box that a point is from; values may be arrays, which have no truth value."""
    return next(part for part in grid.parts if part.keys() == point.keys() and _holds(part, point))


def _holds(box: dict[str, tuple[Any, ...]], point: Mapping[str, Any]) -> bool:
    return all(any(value is point[name] for value in values) for name, values in box.items())


def _factor(values: Sequence[Any]) -> float | None:
    """Return the factor between values; None where they do not go by one."""
    steps = [_ratio(a, b) for a, b in pairwise(values)]
    if any(step is None for step in steps):
        return None
    factors = np.array(steps, dtype=float)
    even = factors[0] > 1 and np.all(np.abs(factors / factors[0] - 1) < _SAME)
    return float(factors[0]) if even else None


def _ratio(a: Any, b: Any) -> float | None:
    if isinstance(a, Real) and isinstance(b, Real):
        first, second = float(a), float(b)
        return second / first if first > 0 and second > 0 else None
    if not (isinstance(a, Kernel) and isinstance(b, Kernel) and type(a) is type(b)):
        return None
    scales = {name: (value, b.get_params().get(name)) for name, value in scales_of(a).items()}
    if not scales or a.with_params(**{name: other for name, (_, other) in scales.items()}) != b:
        return None
    ratios = np.concatenate(
        [np.atleast_1d(np.asarray(y, float) / np.asarray(x, float)) for x, y in scales.values()]
    )
    return float(ratios[0]) if np.all(np.abs(ratios / ratios[0] - 1) < _SAME) else None


def _times(value: Any, factor: float) -> Any:
    return rescaled(value, factor) if isinstance(value, Kernel) else value * factor


def grow(
    grid: Grid, best: Callable[[], Mapping[str, Any] | None], judge: Callable[[Grid], None] | None
) -> list[str]:
    """Judge points beyond the edges until the best one is inside; return what to say about it.

    Parameters
    ----------
    grid : Grid
        What was judged.
    best : callable
        Gives the best point so far; None where there is none, or no time is left.
    judge : callable
        Judges more points; None where the grid is the user's, and stays as it is.
    """
    steps: dict[tuple[str, int], int] = {}
    while (point := best()) is not None and judge is not None:
        outside = [edge for edge in edges_of(grid, point) if steps.get(edge, 0) < MOST_STEPS]
        if not outside:
            break
        for name, side in outside:
            grid, new = widened(grid, point, name, side)
            steps[name, side] = steps.get((name, side), 0) + 1
            judge(new)
    notes = (
        []
        if point is None
        else [
            note_on_edge(name, side, point[name], steps.get((name, side), 0))
            for name, side in edges_of(grid, point)
        ]
    )
    if steps:
        axes = ", ".join(sorted({name for name, _ in steps}))
        notes.insert(0, f"The grid was extended along {axes}: its best point was on the edge.")
    return notes
