"""Planes through the data: pairs of columns, and projection directions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.array_types import Array
from mercer.machines.decomposition.ica import ProjectionPursuit
from mercer.machines.decomposition.ica_fixed_point import LogCosh
from mercer.machines.decomposition.pca import PCA
from mercer.machines.discriminant.fisher import FisherDiscriminant
from mercer.rows.points import is_sparse

# --- directions ----------------------------------------------------------------------------------
#
# Directions of view: random, principal, discriminant, non-Gaussian, or user-defined.
#
# Most projections of many columns look Gaussian (Diaconis and Freedman, Asymptotics of graphical
# projection pursuit, Annals of Statistics 12 (1984)), whatever the rows are: directions are
# interesting if they do not. `ProjectionPursuit` finds these from several starts, and
# gives them one after another, the farthest from Gaussian first.

KINDS = ("random", "principal", "discriminant", "non_gaussian")
_MOST = 20  # principal components that directions are sought among: more need more rows
_SLOPE = 1e-4  # of the pursuit, radians: below visible differences


@dataclass(frozen=True, eq=False)
class ProjectionDirections:
    """Rows along some directions: scores = (rows - mean) @ weights."""

    mean: Array
    weights: Array
    scores: Array
    names: tuple[str, ...]


def directions_of(
    display: str, X: Any, y: Any, kind: Any, count: int, random_state: int = 0
) -> ProjectionDirections:
    """Return so many directions of a kind, or those of an array (k, d), and rows along them."""
    rows = _numbers(display, X)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(
                f"{display}: there are no {kind!r} directions; take one of {', '.join(KINDS)}, or "
                "an array with a direction in each row"
            )
        mean, weights, names = _FIND[kind](display, rows, y, count, random_state)
    else:
        weights = np.atleast_2d(np.asarray(kind, dtype=np.float64)).T
        if weights.shape[0] != rows.shape[1]:
            raise ValueError(
                f"{display}: directions have {weights.shape[0]} entries, rows have {rows.shape[1]}"
            )
        mean = rows.mean(axis=0)
        names = [f"direction {k}" for k in range(weights.shape[1])]
    if weights.shape[1] < count:
        raise ValueError(_too_few(display, kind, weights.shape[1], count))
    weights, names = weights[:, :count], names[:count]
    return ProjectionDirections(mean, weights, (rows - mean) @ weights, tuple(names))


def non_gaussianity(scores: Array) -> Array:
    """Return how far from Gaussian each column looks: (E log cosh z - that of a Gaussian)^2.

    An approximation of negentropy (Hyvarinen, IEEE Transactions on Neural Networks 10 (1999)).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> bell, coin = rng.standard_normal(5000), rng.choice([-1.0, 1.0], 5000)
    >>> a, b = non_gaussianity(np.column_stack([bell, coin]))
    >>> bool(a < 1e-4 < 1e-3 < b)
    True
    """
    spread = scores.std(axis=0)
    z = (scores - scores.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    excess = LogCosh().value(z).mean(axis=0) - LogCosh.gaussian
    return np.asarray(excess**2)


def _numbers(display: str, X: Any) -> Array:
    try:
        rows = X.toarray() if is_sparse(X) else np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{display}: directions are weighted sums of columns, which must be numbers; leave "
            "the others out, or pass rows of a TablePreparation"
        ) from error
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise ValueError(
            f"{display}: X must be a table of finite numbers; fill its missing values first"
        )
    return np.asarray(rows, dtype=np.float64)


def _random(display: str, rows: Array, y: Any, count: int, seed: int) -> Any:
    d = rows.shape[1]
    # a row for each: the first ones are the same however many are asked for
    drawn = np.random.default_rng(seed).standard_normal((min(count, d), d))
    weights, _ = np.linalg.qr(drawn.T)
    return rows.mean(axis=0), weights, [f"random direction {k + 1}" for k in range(len(weights.T))]


def _principal(display: str, rows: Array, y: Any, count: int, seed: int) -> Any:
    machine = PCA(n_components=min(count, *rows.shape)).fit(rows)
    shares = machine.explained_variance_ratio_
    names = [f"principal component {k + 1} ({100 * s:.0f} %)" for k, s in enumerate(shares)]
    return machine.mean_, machine.components_.T, names


def _discriminant(display: str, rows: Array, y: Any, count: int, seed: int) -> Any:
    if y is None:
        raise ValueError(f"{display}: discriminant directions need labels, y=")
    machine = FisherDiscriminant().fit(rows, y)
    scores = machine.transform(rows)
    # the directions themselves, also if the estimator works with rows in place of columns
    centred = rows - rows.mean(axis=0)
    weights = np.linalg.lstsq(centred, scores - scores.mean(axis=0), rcond=None)[0]
    names = [f"discriminant direction {k + 1}" for k in range(weights.shape[1])]
    return rows.mean(axis=0), weights, names


def _non_gaussian(display: str, rows: Array, y: Any, count: int, seed: int) -> Any:
    machine = PCA(n_components=min(_MOST, rows.shape[1], len(rows) - 1)).fit(rows)
    values = machine.explained_variance_
    if not values[0] > 0:
        raise ValueError(f"{display}: all rows are equal, so every direction shows one point")
    axes = machine.components_[values > 1e-10 * values[0]].T
    with warnings.catch_warnings():
        # of a search that was cut short: a picture needs a direction, not a proof
        warnings.simplefilter("ignore", ConvergenceWarning)
        pursuit = ProjectionPursuit(min(count, axes.shape[1]), tol=_SLOPE, random_state=seed)
        pursuit.fit((rows - machine.mean_) @ axes)
    weights = axes @ pursuit.components_.T * np.sqrt(1.0 - 1.0 / len(rows))  # as whitening does
    names = [f"non-Gaussian direction {k + 1}" for k in range(weights.shape[1])]
    return machine.mean_, weights, names


_FIND = dict(zip(KINDS, (_random, _principal, _discriminant, _non_gaussian), strict=True))


def _too_few(display: str, kind: Any, have: int, count: int) -> str:
    text = f"{display}: {count} directions are asked for, but there "
    text += "is 1" if have == 1 else f"are {have}"
    if isinstance(kind, str) and kind == "discriminant":
        text += " (classes minus one)"
    return text + ("; ProjectionHistogramDisplay draws one" if have == 1 else "")


# --- planes --------------------------------------------------------------------------------------
#
# A plane through data of any number of columns: two of them, or two directions.
#
# An estimator of d columns is drawn on a plane. With two columns chosen, the others are held at
# their median (or the most frequent value if not numeric); with two directions, the plane
# goes through the mean of the rows.

_BORDER = 0.06  # of the range, left free around the rows
_CELLS = 2**20  # numbers of a block of rows that is predicted at once: 8 MB


@dataclass(frozen=True, eq=False)
class ViewPlane:
    """The coordinates of rows in a plane, and the rows that its points represent."""

    points: Array
    xlabel: str
    ylabel: str
    note: str
    rows: Callable[[Array], Any]
    columns: int

    def grid(self, resolution: int, display: str) -> tuple[Array, Array]:
        """Return the coordinates of a grid over all rows and a little more."""
        if resolution != int(resolution) or resolution < 2:
            raise ValueError(
                f"{display}: grid_resolution={resolution!r} must be an integer of at least 2"
            )
        sides = [axis_of(self.points[:, k], int(resolution)) for k in range(2)]
        xx0, xx1 = np.meshgrid(*sides)
        return xx0, xx1

    def evaluate(self, function: Callable[[Any], Any], xx0: Array, xx1: Array) -> Array:
        """Return a function of rows at the points of a grid, some rows at a time."""
        grid = np.column_stack([xx0.ravel(), xx1.ravel()])
        step = max(1, _CELLS // self.columns)
        blocks = [grid[start : start + step] for start in range(0, len(grid), step)]
        found = np.concatenate([np.asarray(function(self.rows(block))) for block in blocks])
        return found.reshape(*xx0.shape, *found.shape[1:])


def axis_of(values: Array, count: int) -> Array:
    """Return evenly spaced places over the range of these values and a little more."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    border = _BORDER * (high - low) if high > low else 0.5
    return np.linspace(low - border, high + border, count)


class TableColumns:
    """The columns of an array or table, by name and by place."""

    def __init__(self, display: str, X: Any) -> None:
        if is_sparse(X):
            raise TypeError(
                f"{display}: X is sparse; choose columns, X[:, [i, j]].toarray(), or project first"
            )
        self.display, self.table = display, hasattr(X, "columns")
        if self.table:
            names = getattr(X, "column_names", X.columns)  # pyarrow's columns are arrays
            self.names: list[Any] = list(names)
            self.values = [np.asarray(X[name]) for name in self.names]
            kind = type(X)
            self.make = next(
                (getattr(kind, way) for way in ("of", "from_pydict") if hasattr(kind, way)), kind
            )
        else:
            array = np.asarray(X)
            if array.ndim != 2:
                raise ValueError(f"{display}: X must have rows and columns, got {array.ndim} axes")
            self.names = [f"column {place}" for place in range(array.shape[1])]
            self.values = list(array.T)

    def place(self, feature: Any) -> int:
        """Return the place of a column given by name or place, which must hold numbers."""
        count = len(self.names)
        if self.table and feature in self.names:
            place = self.names.index(feature)
        elif isinstance(feature, int | np.integer) and 0 <= feature < count:
            place = int(feature)
        else:
            known = ", ".join(map(repr, self.names[:8])) + (", ..." if count > 8 else "")
            have = f"columns are {known}" if self.table else f"they go from 0 to {count - 1}"
            raise ValueError(f"{self.display}: unknown feature {feature!r}; {have}")
        if self.values[place].dtype.kind not in "fiub":
            raise TypeError(
                f"{self.display}: feature {feature!r} holds {self.values[place].dtype}, not "
                "numbers, and has no axis; choose another in features="
            )
        return place

    def held(self, value: Any) -> list[Any]:
        """Return one value of each column: its median, or the given value."""
        middle = [_middle(column) for column in self.values]
        if isinstance(value, str) and value == "median":
            return middle
        if isinstance(value, Mapping):
            for feature, given in value.items():
                middle[self.place(feature)] = given
            return middle
        given = [] if isinstance(value, str) else list(np.ravel(value))
        if len(given) != len(middle):
            raise ValueError(
                f"{self.display}: held={value!r} must be 'median', a dict of feature and value, or "
                f"a row of {len(middle)} values"
            )
        return given

    def rows(self, places: tuple[int, ...], held: list[Any], at: Array) -> Any:
        """Return rows that are `at` in the columns of these places and `held` elsewhere."""
        filled = [np.repeat(_one(value), len(at)) for value in held]
        for k, place in enumerate(places):
            filled[place] = at[:, k]
        if self.table:
            return self.make(dict(zip(self.names, filled, strict=True)))
        return np.column_stack(filled)

    def note(self, places: tuple[int, ...], held: Any) -> str:
        """Return the note on the columns that are not shown."""
        others = [k for k in range(len(self.names)) if k not in places]
        if not others:
            return ""
        numbers = {self.values[k].dtype.kind in "fiub" for k in others}
        how = {True: "median", False: "most frequent value"}
        said = " or ".join(how[known] for known in sorted(numbers, reverse=True))
        if not isinstance(held, str):
            said = "given value" if len(others) == 1 else "given values"
            return f"the other {_columns(len(others))} at {said}"
        whose = "its" if len(others) == 1 else "their"
        return f"the other {_columns(len(others))} at {whose} {said}"


def plane_of(
    display: str, X: Any, y: Any, features: Any = None, plane: Any = None, held: Any = "median"
) -> ViewPlane:
    """Return the plane of two features, or of two directions."""
    if plane is not None:
        if features is not None:
            raise ValueError(f"{display}: pass features= or plane=, not both")
        return _plane_of_directions(display, X, y, plane)
    columns = TableColumns(display, X)
    if features is None:
        if len(columns.names) != 2:
            raise ValueError(
                f"{display}: X has {len(columns.names)} columns; choose two, such as "
                "features=(0, 1), or plane='principal'"
            )
        features = (0, 1)
    if isinstance(features, str) or np.size(features) != 2:
        raise ValueError(f"{display}: features={features!r} must be two columns")
    i, j = (columns.place(feature) for feature in features)
    if i == j:
        raise ValueError(f"{display}: features={features!r} must be two different columns")
    points = np.column_stack([columns.values[i], columns.values[j]]).astype(np.float64)
    rows = partial(columns.rows, (i, j), columns.held(held))
    names, note = columns.names, columns.note((i, j), held)
    return ViewPlane(points, str(names[i]), str(names[j]), note, rows, len(names))


def _plane_of_directions(display: str, X: Any, y: Any, plane: Any) -> ViewPlane:
    if is_sparse(X):
        X = X.toarray()
    found = directions_of(display, X, y, plane, count=2)
    back = np.linalg.pinv(found.weights)  # of all rows with these coordinates, the shortest
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None

    def rows(at: Array) -> Any:
        made = found.mean + at @ back
        if names is None:
            return made
        columns = TableColumns(display, X)
        return columns.make(dict(zip(columns.names, made.T, strict=True)))

    note = "the plane goes through the mean of the rows"
    xlabel, ylabel = found.names
    return ViewPlane(found.scores, xlabel, ylabel, note, rows, len(found.mean))


def _columns(count: int) -> str:
    return "column" if count == 1 else f"{count} columns"


def _middle(column: Array) -> Any:
    if column.dtype.kind in "fiub":
        return float(np.nanmedian(column.astype(np.float64)))
    present = [value for value in column.tolist() if not _is_gap(value)]
    values, counts = np.unique(np.array([str(value) for value in present]), return_counts=True)
    if not len(values):
        return None
    wanted = values[counts.argmax()]
    return next(value for value in present if str(value) == wanted)


def _is_gap(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def _one(value: Any) -> Array:
    return np.array([value], dtype=object if isinstance(value, str) or value is None else None)
