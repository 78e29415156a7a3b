"""A weighted sum of Grams, multiplied out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram.base import Gram
from mercer.gram.storage.precomputed import PrecomputedGram
from mercer.resources import rows_at_once

_ROWS_AT_ONCE = 512  # so that no second matrix is made on the way


class WeightedSumGram(PrecomputedGram):
    """K = sum_m weight_m K_m as one stored matrix; Grams of weight zero are not looked at.

    Parameters
    ----------
    grams : sequence of Gram
        On the same rows.
    weights : (m,) array
        Nonnegative.
    dtype : numpy dtype
        Type of the matrix.
    """

    def __init__(self, grams: Sequence[Gram], weights: Array, dtype: Any = np.float64) -> None:
        n = grams[0].shape[0]
        self._given, self._rows = n, np.arange(n)
        self._matrix = np.zeros((n, n), dtype=dtype)
        used = [(float(w), gram) for w, gram in zip(weights, grams, strict=True) if w > 0]
        step = rows_at_once(n, _ROWS_AT_ONCE, arrays=3)
        for first in range(0, n, step):
            rows = slice(first, min(first + step, n))
            for weight, gram in used:
                self._matrix[rows] += np.asarray(weight * gram.rows(rows), dtype=dtype)
        self._matrix.setflags(write=False)
        self.shape, self.dtype = (n, n), self._matrix.dtype
        self.valid = all(gram.valid for gram in grams)
