"""What a perceptron changes, and what it tells of a walk: passed to a backend and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mercer.array_types import Array


@dataclass(frozen=True, eq=False)
class LinearFunctions:
    """Linear functions of rows that a perceptron changes in place: one, or one for each class.

    Attributes
    ----------
    weights : (d, k) float64
        A column for each function.
    bias : (k,) float64
        Their constants.
    has_bias : bool
        Whether constants are learned.
    late, late_bias : like weights and bias, optional
        Sums of step times change: over T steps the mean of the weights is weights - late / T.
    tally : (3,) float64, optional
        Rows seen, mistakes made, largest squared length: counted row by row, so that a walk that is
        interrupted has counted what it learned.
    """

    weights: Array
    bias: Array
    has_bias: bool
    late: Array | None = None
    late_bias: Array | None = None
    tally: Array | None = None


class PassCounts(NamedTuple):
    """What a walk over rows met.

    Attributes
    ----------
    mistakes : int
        Rows whose class was not ahead, ties included.
    longest : float
        Largest squared length of a row.
    bad : int
        The first row whose squared length is not finite; then nothing was learned. -1 for none.
    """

    mistakes: int
    longest: float
    bad: int
