"""min b'Kb/2 - p'b over lower <= b <= upper, sum(b) = total: the dual of support vector machines.

Variables are signed: for a classifier b_i = y_i alpha_i, so the matrix is K itself and the
decision function is f = sum_i b_i k(x_i, .) + intercept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._types import Array
from mercer.gram import Gram


@dataclass(frozen=True, eq=False)
class Dual:
    """An answer to a `BoxQP`.

    Attributes
    ----------
    coef : (n,) array
        The signed variables b.
    intercept : float
        The multiplier of the equality: the bias of the decision function.
    """

    coef: Array
    intercept: float


@dataclass(frozen=True, eq=False)
class BoxQP:
    """A quadratic programme with a box and one equality.

    Attributes
    ----------
    gram : Gram
        K.
    linear : (n,) array
        p.
    lower, upper : (n,) array
        The box.
    total : float
        What the variables sum to.
    """

    gram: Gram
    linear: Array
    lower: Array
    upper: Array
    total: float = 0.0

    @classmethod
    def svc(cls, gram: Gram, signs: Array, C: Array) -> BoxQP:
        """Write the soft-margin classifier with L1 slack: weight C_i on the slack of row i."""
        upper = np.where(signs > 0, C, 0.0)
        lower = np.where(signs < 0, -C, 0.0)
        return cls(gram, signs.astype(np.float64), lower, upper)

    def feasible_near(self, point: Array) -> Array:
        """Give a point inside the box that sums to `total`, near the given one."""
        start = np.clip(point, self.lower, self.upper)
        missing = self.total - start.sum()
        room = (self.upper if missing > 0 else self.lower) - start
        astray = abs(missing) > 1e-12 * (np.abs(start).sum() + abs(self.total))  # not by rounding
        if astray and np.abs(room).sum() > 0:
            finite = np.where(np.isfinite(room), room, np.sign(room) * abs(missing))
            start = start + finite * min(1.0, missing / finite.sum())
        return start
