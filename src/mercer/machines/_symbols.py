"""Whole rows as symbols, and how often each occurs in each class."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._types import Array
from mercer.machines._columns import Column, Table

Tally = tuple[dict[Any, int], Array]


def symbols(machine: Any, table: Table) -> list[tuple[Any, ...]]:
    """Give each row as a tuple of its values; refuse missing entries."""
    columns = [_listed(machine, table.column(j), j) for j in range(table.shape[1])]
    return list(zip(*columns, strict=True))


def _listed(machine: Any, column: Column, j: int) -> list[Any]:
    if column.numbers is None:
        assert column.codes is not None
        gaps = np.flatnonzero(column.codes < 0)
        found = [column.values[code] for code in column.codes] if not len(gaps) else []
    else:
        gaps = np.flatnonzero(column.numbers != column.numbers)
        found = (column.numbers + 0).tolist()  # -0.0 is 0.0
    if len(gaps):
        raise ValueError(
            f"Input X contains NaN: {len(gaps)} missing entries in column {j}, the first in row "
            f"{gaps[0]}. {type(machine).__name__} needs whole rows; NaiveBayes skips missing ones"
        )
    return found


def tallied(rows: list[Any], codes: Array, weights: Array, k: int) -> Tally:
    """Count rows in classes; rows of weight zero do not occur."""
    kept = np.flatnonzero(weights)
    place: dict[Any, int] = {}
    numbers = [place.setdefault(rows[i], len(place)) for i in kept]
    flat = np.array(numbers, dtype=np.intp) * k + codes[kept]
    counts = np.bincount(flat, weights[kept], minlength=k * len(place)).reshape(-1, k)
    return place, counts


def joined(one: Tally, other: Tally) -> Tally:
    """Add up two tallies."""
    place = dict(one[0])
    numbers = [place.setdefault(row, len(place)) for row in other[0]]
    counts = np.zeros((len(place), one[1].shape[1]))
    counts[: len(one[1])] = one[1]
    counts[numbers] += other[1]
    return place, counts
