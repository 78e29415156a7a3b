"""Where a training row stands: clear of the margin, on it, or paying slack."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array


@dataclass(frozen=True, eq=False)
class Zones:
    """The zone of each row, and what slack it needs.

    Attributes
    ----------
    zone : array of str
        For a classifier "beyond", "on" or "inside" the margin; for regression and novelty
        "inside", "on" or "outside" the tube or region. Empty text where a row takes no part (a
        pair of other classes).
    slack : array
        How far a row is on the wrong side: zero unless its zone is the last of the three.
    """

    zone: Array
    slack: Array


def zones(room: Array, tol: float, names: tuple[str, str, str]) -> Zones:
    """Sort rows by the room they have: positive, zero to within tol, or negative.

    The coefficients say the same: zero, between the bounds, at the bound. NaN marks rows that take
    no part.
    """
    clear, on, slack = names
    zone = np.where(room > tol, clear, np.where(room < -tol, slack, on))
    zone = np.where(np.isnan(room), "", zone)
    return Zones(zone, np.maximum(np.nan_to_num(-room), 0.0) * (room < -tol))
