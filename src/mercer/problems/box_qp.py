"""min b'Kb/2 - p'b + kink'|b| over a box with fixed sums: the dual of support vector machines.

Variables are signed: for a classifier b_i = y_i alpha_i, so the matrix is K itself and the
decision function is f = sum_i b_i k(x_i, .) + intercept. `mercer.problems.svm` writes each machine
in this form.
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
    intercept : float or (groups,) array
        The multiplier of each equality; with one group, the bias of the decision function.
    """

    coef: Array
    intercept: float | Array


@dataclass(frozen=True, eq=False)
class BoxQP:
    """A quadratic programme with a box and one equality for each group of variables.

    Attributes
    ----------
    gram : Gram
        K.
    linear : (n,) array
        p.
    lower, upper : (n,) array
        The box; bounds may be infinite.
    total : float or (groups,) array
        What the variables of each group sum to.
    kink : float or (n,) array
        Nonnegative cost of |b_i|: the width of the tube in regression.
    group : (n,) int array, optional
        The group of each variable, numbered from 0; None for one group.
    """

    gram: Gram
    linear: Array
    lower: Array
    upper: Array
    total: float | Array = 0.0
    kink: float | Array = 0.0
    group: Array | None = None

    @classmethod
    def svc(cls, gram: Gram, signs: Array, C: Array) -> BoxQP:
        """Write the soft-margin classifier with L1 slack: weight C_i on the slack of row i."""
        upper = np.where(signs > 0, C, 0.0)
        lower = np.where(signs < 0, -C, 0.0)
        return cls(gram, signs.astype(np.float64), lower, upper)

    @property
    def totals(self) -> Array:
        """Give the required sum of each group."""
        return np.atleast_1d(np.asarray(self.total, dtype=np.float64))

    @property
    def kinks(self) -> Array:
        """Give the kink of each variable."""
        return np.broadcast_to(np.asarray(self.kink, dtype=np.float64), self.linear.shape)

    def members(self) -> list[Array]:
        """Give the variables of each group."""
        if self.group is None:
            return [np.arange(len(self.linear))]
        return [np.flatnonzero(self.group == g) for g in range(len(self.totals))]

    def infeasible(self) -> bool:
        """Tell whether no point of the box has the required sums."""
        parts = zip(self.members(), self.totals, strict=True)
        return any(not self.lower[m].sum() <= total <= self.upper[m].sum() for m, total in parts)

    def feasible_near(self, point: Array) -> Array:
        """Give a point inside the box with the required sums, near the given one."""
        start = np.clip(point, self.lower, self.upper)
        for m, total in zip(self.members(), self.totals, strict=True):
            start[m] = _with_sum(start[m], self.lower[m], self.upper[m], float(total))
        return start


def _with_sum(start: Array, lower: Array, upper: Array, total: float) -> Array:
    missing = total - start.sum()
    room = (upper if missing > 0 else lower) - start
    astray = abs(missing) > 1e-12 * (np.abs(start).sum() + abs(total))  # not by rounding
    if astray and np.abs(room).sum() > 0:
        finite = np.where(np.isfinite(room), room, np.sign(room) * abs(missing))
        return np.asarray(start + finite * min(1.0, missing / finite.sum()))
    return start
