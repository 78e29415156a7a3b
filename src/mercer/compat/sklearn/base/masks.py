"""Sample weights as LIBSVM and LIBLINEAR take them: negative ones leave the row out."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.machines.base.targets import check_weights


def masked_weights(machine: Any, sample_weight: Any, n: int) -> Array:
    """Return the weights of n rows, zero where they are negative; ones when none are given."""
    if sample_weight is None:
        return np.ones(n)
    try:
        given = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        return check_weights(machine, sample_weight, n)  # which says what is wrong with them
    weights = np.where(np.isfinite(given) & (given < 0), 0.0, given)
    if weights.size and not weights.any():
        raise ValueError(
            f"{type(machine).__name__}: sample_weight: Invalid input - all samples have zero or "
            "negative weights."
        )
    return check_weights(machine, weights, n)


def refuse_one_class_left(machine: Any, labels: Array, weights: Array, reason: str) -> None:
    """Raise where y has several classes, but the rows that count have one."""
    kept = weights > 0
    if kept.all() or len(np.unique(labels[kept])) > 1 or len(np.unique(labels)) < 2:
        return
    raise ValueError(f"{type(machine).__name__}: sample_weight: {reason}")
