"""Samples of the rows of a programme, of growing size, each containing those before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.points import to_host
from mercer.solvers.linear_margin.screening import FeatureProgramme


@dataclass(frozen=True, eq=False)
class StratifiedSample:
    """Rows in random order, each kind by itself: samples of growing size contain one another."""

    kinds: tuple[Array, ...]

    @classmethod
    def of(cls, P: FeatureProgramme) -> StratifiedSample:
        """Order the rows of each sign and group at random."""
        with np.errstate(invalid="ignore"):
            side = np.nan_to_num(np.maximum(P.upper, 0.0) + np.minimum(P.lower, 0.0))
        key = to_host(np.sign(side)).astype(np.int8) + 3 * to_host(P.rows.group)
        rng = np.random.default_rng(0)
        return cls(tuple(rng.permutation(np.flatnonzero(key == kind)) for kind in np.unique(key)))

    def draw(self, size: int) -> tuple[Array, Array]:
        """Return rows, as many of each kind if there are enough, and how many each stands for."""
        count = max(1, size // len(self.kinds))
        which = np.concatenate([kind[:count] for kind in self.kinds])
        ratio = np.concatenate(
            [np.full(min(count, len(k)), len(k) / min(count, len(k))) for k in self.kinds]
        )
        order = np.argsort(which)
        return which[order], ratio[order]


def effective_rows(P: FeatureProgramme) -> float:
    """Return Kish's effective number of rows, (sum of weights)^2 / (sum of their squares).

    A sample of more rows than that says little of the whole: the few that weigh most are not in it.
    """
    box = P.upper - P.lower
    free = box > 0
    bent = np.isinf(box) & free
    weight = np.where(bent, 1.0 / np.where(bent, P.shift, 1.0), box)[free]
    weight = weight / weight.max(initial=np.finfo(float).tiny)
    squares = float(np.square(weight).sum())
    return float(weight.sum()) ** 2 / squares if squares else 0.0
