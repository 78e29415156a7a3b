"""A fitted machine beside the rows it was fitted to, and where these lie in the plane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array

Bounds = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows for a machine, and the plane that they are shown in.

    Attributes
    ----------
    X : (n, d) array
        What machines are fitted to.
    y : (n,) array or None
        Labels (whole numbers, -1 for none) or targets.
    index : (n,) int array
        Their positions among the points of the scene, or the rows of the table.
    places : (n, 2) array
        Where they lie in the plane.
    back : callable
        Takes points of the plane (m, 2) to rows (m, d).
    bounds : Bounds
        The part of the plane that is shown.
    axes : tuple of str
        What is drawn to the right and upwards.
    names : tuple of str
        Names of the classes.
    columns : tuple of str
        Names of the columns of X.
    note : str
        What is said of the columns that are not shown.
    preparation : TablePreparation or None
        What made X of the rows of a table.
    """

    X: Array
    y: Array | None
    index: Array
    places: Array
    back: Callable[[Array], Any]
    bounds: Bounds
    axes: tuple[str, str] = ("x1", "x2")
    names: tuple[str, ...] = ()
    columns: tuple[str, ...] = ("x1", "x2")
    note: str = ""
    preparation: Any = None

    def take(self, chosen: Array) -> Rows:
        """Return some of the rows."""
        labels = None if self.y is None else self.y[chosen]
        return Rows(
            self.X[chosen], labels, self.index[chosen], self.places[chosen], self.back,
            self.bounds, self.axes, self.names, self.columns, self.note, self.preparation,
        )  # fmt: skip


@dataclass(frozen=True)
class Grid:
    """Evenly spaced points of the plane, the lowest row first.

    Examples
    --------
    >>> Grid((0.0, 1.0, 0.0, 2.0), 2, 2).points().tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [1.0, 2.0]]
    """

    bounds: Bounds
    nx: int
    ny: int

    def points(self) -> Array:
        """Return all points, (ny * nx, 2)."""
        x0, x1, y0, y1 = self.bounds
        across, up = np.meshgrid(np.linspace(x0, x1, self.nx), np.linspace(y0, y1, self.ny))
        return np.column_stack([across.ravel(), up.ravel()])

    def at_most(self, side: int) -> Grid:
        """Return a grid of the same part of the plane with no more points a side."""
        return Grid(self.bounds, min(self.nx, side), min(self.ny, side))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A machine after its fit.

    Attributes
    ----------
    machine : estimator
        Fitted.
    rows : Rows
        What it was fitted to.
    warnings : tuple of str
        What it said on the way.
    seconds : float
        Time of the fit.
    """

    machine: Any
    rows: Rows
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
