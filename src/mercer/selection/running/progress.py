"""How far a tuning is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TuningProgress:
    """Where a running tuning stands; given to callbacks.

    Attributes
    ----------
    done : int
        Points judged on every fold that was asked for.
    points : int
        How many there are, as far as is known: searches that look at results add some.
    best_params : dict or None
        Parameters of the best point so far.
    best_score : float
        Its mean score; NaN before the first.
    seconds : float
        Time since the start.
    seconds_left : float
        Time to go if the rest takes as long as what is done; NaN before the first.
    """

    done: int
    points: int
    best_params: Mapping[str, Any] | None
    best_score: float
    seconds: float
    seconds_left: float

    def __str__(self) -> str:
        return (
            f"{self.done}/{self.points} points, best {self.best_score:.4g}, "
            f"{self.seconds:.1f} s, {self.seconds_left:.1f} s to go"
        )


TuningCallback = Callable[[TuningProgress], bool | None]
"""Called while points are judged; a true return value stops with what there is."""
