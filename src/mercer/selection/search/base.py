"""Ways through a grid. A way sees an evaluator and nothing else; it keeps all results itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mercer.array_types import Array
from mercer.selection.grids import Grid
from mercer.selection.running.task import Point, Task

# Of the spread of a score over folds: that of a difference is taken to be no smaller, since a few
# folds may agree by chance (scores of few rows are coarse).
LEAST_SPREAD = 0.3


class Evaluates(Protocol):
    """What a way through a grid may ask for."""

    task: Task
    rng: np.random.Generator

    def evaluate(
        self,
        points: Sequence[Point],
        folds: Sequence[int] | None = None,
        rows: Array | None = None,
    ) -> Array:
        """Return scores (points, folds), the larger the better, NaN where a fit failed."""

    def say(self, note: str) -> None:
        """Keep a sentence about how sure the outcome is."""


class Search(ABC):
    """A way through a grid."""

    @abstractmethod
    def run(self, evaluator: Evaluates, grid: Grid) -> None:
        """Ask for the scores of those points that are worth it."""


@dataclass(frozen=True)
class Exhaustive(Search):
    """Every point on every fold.

    Examples
    --------
    >>> from mercer.selection import Exhaustive
    >>> Exhaustive()
    Exhaustive()
    """

    def run(self, evaluator: Evaluates, grid: Grid) -> None:
        """Ask for everything."""
        evaluator.evaluate(grid.points())


def check_whole(owner: Any, name: str, least: int) -> None:
    """Require a whole number of at least `least`."""
    value = getattr(owner, name)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(
            f"{type(owner).__name__}: {name}={value!r} must be a whole number of at least {least}"
        )


def check_above(owner: Any, name: str, least: float) -> None:
    """Require a finite number above `least`."""
    value = getattr(owner, name)
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ValueError(f"{type(owner).__name__}: {name}={value!r} must be a number")
    if not (np.isfinite(value) and value > least):
        raise ValueError(f"{type(owner).__name__}: {name}={value!r} must be above {least:g}")
