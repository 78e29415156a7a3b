"""Rows one by one, a row of weight two as two rows: for clusters that are counted by rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.machines.base.parameters import refuse
from mercer.machines.base.targets import DistinctRows, distinct_rows, rows_as_they_are

_MOST = 10**7  # rows, repeated ones counted: beyond, no assignment ends in reasonable time


def repeated_rows(machine: Any, X: Points, weights: Array) -> DistinctRows:
    """Return rows, each as often as its weight says, in an order that is not that of the table.

    `group` has the first copy of each row.
    """
    if not np.array_equal(weights, np.floor(weights)) or weights.sum() > _MOST:
        raise ValueError(
            f"{type(machine).__name__}: balanced=True counts rows, so sample_weight must be whole "
            f"numbers with a sum of at most {_MOST:.0e}: a weight of two is two rows. Leave the "
            "weights out, or use balanced=False"
        )
    total = int(weights.sum())
    if machine.n_clusters > total:
        must = f"be at most the number of rows, repetitions counted, n_samples={total}"
        refuse(machine, "n_clusters", machine.n_clusters, must)
    nothing = np.zeros(len(weights))
    given = machine._is_precomputed()
    rows = rows_as_they_are(nothing, weights) if given else distinct_rows(X, nothing, weights)
    counts = rows.weight.astype(np.int64)
    kept = np.flatnonzero(rows.group >= 0)
    order = kept[np.argsort(rows.group[kept], kind="stable")]
    own = weights[order].astype(np.int64)
    group = np.full(len(weights), -1, dtype=np.intp)
    group[order] = np.cumsum(own) - own  # rows of one group stand side by side, as copies do
    return DistinctRows(np.repeat(rows.first, counts), np.ones(total), group, merged=False)
