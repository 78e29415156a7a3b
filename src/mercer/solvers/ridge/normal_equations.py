"""Normal equations of ridge regression on features, with rows on the host or on a card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.landmark_rows import LandmarkRows
from mercer.backends.stored import Factor
from mercer.gram import FactoredGram, StreamedGram
from mercer.gram.policy import FLOAT32_RANGE
from mercer.problems import LinearSystem

# Landmarks up to which the factor of all rows costs less than the passes that it saves: a row of it
# takes 2 m^2 operations at 6e13 a second, a pass 2 m values at 6e11, and one of some rows needs
# about 40 passes more.
_WHOLE = 4000
_FEW = 4  # rows for each landmark of which a factor is made first, and how many more are next
# Seconds of a row of a factor over m^2, and of a value of a pass; passes that rows beside the
# landmarks save. With more landmarks than these allow for, the landmarks alone make a factor.
_ROW, _VALUE, _SAVED = 2 / 6e13, 2 / 6e11, 20
_MADE_UP = 1e-5  # of sums before they cancel: right-hand sides that float32 may have made up
_NOTHING = 64 * float(
    np.finfo(float).eps
)  # of sums before they cancel: right-hand sides that are rounding


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """(G'SG + penalty) w = G'S y: all that is asked of the rows are round trips.

    Attributes
    ----------
    quick : FactoredGram
        K = F F', for products; it may be rounded to float32.
    problem : LinearSystem
        Weights, targets and penalties, and K itself.
    mean : (m,) array
        The weighted mean of F, zero without a bias; G = F - 1 mean'.
    centre : (t,) array
        The weighted mean of the targets, zero without a bias.
    right : (m, t) array
        G'S (y - centre).
    """

    quick: FactoredGram
    problem: LinearSystem
    mean: Array
    centre: Array
    right: Array

    @classmethod
    def of(cls, gram: FactoredGram, problem: LinearSystem) -> NormalEquations:
        """Find means and the right-hand side in one pass."""
        centre, pulled = centred_targets(problem)
        sums = gram.pull(np.column_stack([pulled, problem.row_weights]))
        return cls.from_sums(gram, problem, centre, pulled, sums)

    @classmethod
    def from_sums(
        cls, gram: FactoredGram, problem: LinearSystem, centre: Array, pulled: Array, sums: Array
    ) -> NormalEquations:
        """Take F'(pulled, s) that a pass has found."""
        s, y = problem.row_weights, problem.targets
        mean = sums[:, -1] / s.sum() if problem.bias else np.zeros(len(sums))
        right = sums[:, :-1] - np.outer(mean, pulled.sum(axis=0))
        most = np.linalg.norm(gram.absolute_pull(np.abs(s[:, None] * y)), axis=0)
        right[:, np.linalg.norm(right, axis=0) <= _NOTHING * most] = 0.0  # rounding, no target
        return cls(gram, problem, mean, centre, right)

    @property
    def is_rough(self) -> bool:
        """Whether products are those of rows rounded to float32."""
        return isinstance(self.quick, StreamedGram) and self.quick.is_rounded

    def product(self, W: Array) -> Array:
        """Return (G'SG + penalty) W."""
        s, level = self.problem.row_weights[:, None], self.mean @ W
        held = np.empty((len(s), W.shape[1]))  # by rows: a card without room begins anew

        def weigh(rows: slice, values: Array) -> Array:
            held[rows] = s[rows] * (values - level)
            return held[rows]

        pulled = self.quick.round_trip(W, weigh) - np.outer(self.mean, held.sum(axis=0))
        return np.asarray(pulled + self.problem.penalties * W)

    def residual(self, W: Array) -> Array:
        """Return G'S (y - centre - G W) - penalty W, differences taken row by row."""
        s, level = self.problem.row_weights[:, None], self.mean @ W
        y, held = self.problem.targets, np.empty((len(s), W.shape[1]))

        def left(rows: slice, values: Array) -> Array:
            held[rows] = s[rows] * ((y[rows] - self.centre) - (values - level))
            return held[rows]

        gram: Any = self.problem.gram if self.is_rough else self.quick
        pulled = gram.round_trip(W, left) - np.outer(self.mean, held.sum(axis=0))
        return np.asarray(pulled - self.problem.penalties * W)

    def intercept(self, W: Array) -> Array:
        """Return the biases."""
        return np.asarray(self.centre - self.mean @ W)


# --- descent -------------------------------------------------------------------------------------


def centred_targets(problem: LinearSystem) -> tuple[Array, Array]:
    """Return the weighted mean of the targets, zero without a bias, and S (y - mean)."""
    s, y = problem.row_weights, problem.targets
    centre = s @ y / s.sum() if problem.bias else np.zeros(y.shape[1])
    return centre, s[:, None] * (y - centre)


class CardEquations:
    """(G'SG + penalty) w = G'S y as `NormalEquations`, with rows that stay on a card.

    Parameters
    ----------
    problem : LinearSystem
        Weights, targets and penalties.
    rows : LandmarkRows
        The rows, their weights and centred targets on the card.
    centre : (t,) array
        The weighted mean of the targets, zero without a bias.

    Attributes
    ----------
    right : (m, t) array
        G'S (y - centre), to the digits of float32: where a descent begins. Residuals are exact.
    is_rough : bool
        Products are those of float32.
    """

    is_rough = True

    def __init__(self, problem: LinearSystem, rows: LandmarkRows, centre: Array) -> None:
        self.problem, self._rows, self._centre = problem, rows, centre
        self._weight = float(problem.row_weights.sum())
        self.right, sums = rows.pull()
        self._mean = self._mean_of(sums)

    @classmethod
    def of(cls, problem: LinearSystem) -> CardEquations | None:
        """Send the rows; None where no card works with them, or float32 does not hold them."""
        gram: Any = problem.gram
        if not isinstance(gram, StreamedGram) or gram.written is not None:
            return None
        size = float(gram.longest().max(initial=0.0))
        bound = gram.map.bound(gram.X) if FLOAT32_RANGE[0] < size < FLOAT32_RANGE[1] else None
        if bound is None:
            return None
        s, y = problem.row_weights, problem.targets
        centre = s @ y / s.sum() if problem.bias else np.zeros(y.shape[1])
        found = cls(problem, bound(s, y - centre, problem.bias), centre)
        most = gram.absolute_pull(np.abs(s[:, None] * y))[0]
        made_up = np.linalg.norm(found.right, axis=0) <= _MADE_UP * most
        return None if made_up.any() else found

    def first_sample(self) -> int:
        """Return how many rows a factor is made of first; 0 for the landmarks alone."""
        n, m = self.problem.gram.shape[0], len(self.right)
        if m <= _WHOLE:
            return int(n)
        few = min(n, _FEW * m)
        return few if few * m * _ROW <= _SAVED * n * _VALUE else 0

    def larger_sample(self, rows: int) -> int:
        """Return how many to take after a factor that did not serve."""
        return min(self.problem.gram.shape[0], _FEW * max(rows, len(self.right)))

    def factors(self, count: int, seed: int) -> list[tuple[Array, Factor]]:
        """Factor G'SG + penalty of some rows, for the targets of each penalty."""
        s = self.problem.row_weights
        n, total = len(s), self._weight
        index, share, lone = np.arange(n), s, 0.0
        if not count:
            index, share, lone = index[:0], s[:0], total / len(self.right)
        elif count < n:
            rng, even = np.random.default_rng(seed), bool((s == s[0]).all())
            index = np.sort(rng.choice(n, count, replace=not even, p=None if even else s / total))
            share, lone = np.full(count, total / count), total / n
        penalties = self.problem.penalties
        return [
            (columns, self._rows.factor(index, share, lone, float(penalties[columns[0]])))
            for columns in self.problem.groups()
        ]

    def product(self, W: Array) -> Array:
        """Return (G'SG + penalty) W."""
        pulled, sums = self._rows.product(W, self._mean @ W)
        return np.asarray(pulled - np.outer(self._mean, sums) + self.problem.penalties * W)

    def residual(self, W: Array) -> Array:
        """Return G'S (y - centre - G W) - penalty W in float64, and learn the mean as exactly."""
        before = self._mean @ W
        pulled, sums, mass = self._rows.residual(W, before)
        self._mean = self._mean_of(mass)
        more = self._mean @ W - before
        pulled = pulled + np.outer(mass, more) - np.outer(self._mean, sums + self._weight * more)
        return np.asarray(pulled - self.problem.penalties * W)

    def intercept(self, W: Array) -> Array:
        """Return the biases."""
        return np.asarray(self._centre - self._mean @ W)

    def _mean_of(self, mass: Array) -> Array:
        return mass / self._weight if self.problem.bias else np.zeros(len(mass))
