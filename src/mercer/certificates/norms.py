"""Norms of columns that neither overflow nor vanish."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array


def norms(A: Array) -> Array:
    """Return the norms of columns, also where squares would overflow or vanish."""
    largest = np.abs(A).max(axis=0, initial=0.0)
    return np.asarray(largest * np.linalg.norm(A / np.where(largest > 0, largest, 1.0), axis=0))
