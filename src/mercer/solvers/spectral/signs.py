"""Which of two opposite vectors: one rule for components, directions and variates."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array

_SAME = 1e-8  # entries this close tie


def signs_of(table: Array) -> Array:
    """Return the sign of each column that makes its entry of largest magnitude positive.

    Of entries that tie the first decides; those tie that are equal to eight digits, or else
    rounding would choose the sign.
    """
    if not table.size:
        return np.ones(table.shape[1])
    magnitude = np.abs(table)
    first = np.argmax(magnitude >= magnitude.max(axis=0) * (1 - _SAME), axis=0)
    return np.where(table[first, np.arange(table.shape[1])] < 0, -1.0, 1.0)
