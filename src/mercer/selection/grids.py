"""Points to try: axes of values by name, every combination of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid


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
