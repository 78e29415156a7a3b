"""Best points on the edge of a grid: they are told of, and grids of our own grow beyond it.

An axis has an edge where its values are numbers in geometric order (costs, penalties), or kernels
that differ by the factor of their scales. The best point on the first or last of them may have a
better neighbour outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from mercer.kernels import Kernel
from mercer.selection.default_grids import rescaled, scales_of
from mercer.selection.grids import Grid

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
    tried = f", after {steps} steps beyond the first grid" if steps else ""
    return (
        f"The best {name} is the {end} that was tried, {value!r}{tried}: a better one may lie "
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
        notes.insert(0, f"The grid was widened along {axes}: the best point lay on its edge.")
    return notes
