"""What searches for parameters share: logarithms between bounds, and where to start."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array

FLAT = 1e-4  # slopes of the log-likelihood of one row up to this count as none


class BoundedSearch:
    """A function of numbers between bounds, to be minimised from several starts.

    Attributes
    ----------
    lower, upper : (p,) array
        Bounds.
    starts : (k, p) array
        Where to start from.
    """

    lower: Array
    upper: Array
    starts: Array

    def uphill(self, logs: Array, gradient: Array) -> Array:
        """Return the gradient without what only points out of the bounds."""
        at_bound = ((logs <= self.lower) & (gradient > 0)) | ((logs >= self.upper) & (gradient < 0))
        return np.where(at_bound, 0.0, gradient)

    def at_bounds(self, logs: Array) -> Array:
        """Return the numbers with those that are at a bound, but for rounding, put there."""
        rounding = 1e-12 * (1.0 + np.abs(logs))
        near = np.where(logs <= self.lower + rounding, self.lower, logs)
        return np.where(logs >= self.upper - rounding, self.upper, near)
