"""The kernel perceptron's memory: mistakes with their coefficients, as many as a budget allows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from mercer.array_types import Array
from mercer.backends.reference.perceptron import rival_of
from mercer.gram.accurate_products import gamma
from mercer.solvers.online.removal import Oldest, Removal

_TWICE = 2.0  # once for these scores, once for those of who judges them
_MORE = 12  # roundings of a score beside those of its sum


@dataclass(eq=False)
class Memory:
    """Functions sum_j coef_j k(p_j, .) + bias, over columns p_j some of which are mistakes.

    Attributes
    ----------
    coef : (N, k) array
        Coefficients: whole numbers, so nothing drifts however long the stream.
    bias : (k,) array
        Constants.
    has_bias : bool
        Whether constants are learned.
    late, late_bias : array
        Sums of step times change: over T steps the mean is coef - late / T.
    age : (N,) int array
        Step at which each column was last a mistake.
    squares : (N,) array
        k(p_j, p_j).
    budget : int or None
        Most columns with a coefficient.
    removal : Removal
        Which one goes when there are more.
    steps, mistakes, forgotten : int
        Rows seen, mistakes made, mistakes forgotten.
    log : list or None
        Column, class, rival and step of each mistake, if asked for.
    one_by_one : bool
        Whether each column was a mistake at most once, in their order, as on a stream: then the
        functions on the way can be told.
    """

    coef: Array
    bias: Array
    has_bias: bool
    late: Array
    late_bias: Array
    age: Array
    squares: Array
    budget: int | None = None
    removal: Removal = field(default_factory=Oldest)
    steps: int = 0
    mistakes: int = 0
    forgotten: int = 0
    log: list[tuple[int, int, int, int]] | None = None
    one_by_one: bool = True

    @classmethod
    def empty(cls, squares: Array, k: int, has_bias: bool) -> Memory:
        """Return a memory of columns none of which was a mistake yet."""
        n = len(squares)
        table, constants = np.zeros((n, k)), np.zeros(k)
        age = np.zeros(n, dtype=np.int64)
        return cls(table, constants, has_bias, table.copy(), constants.copy(), age, squares)

    @property
    def used(self) -> Array:
        """The columns that have a coefficient, now or in the mean."""
        return np.flatnonzero((self.coef != 0).any(axis=1) | (self.late != 0).any(axis=1))

    @property
    def mean(self) -> tuple[Array, Array]:
        """Coefficients and constants of the mean over all steps."""
        steps = max(self.steps, 1)
        return self.coef - self.late / steps, self.bias - self.late_bias / steps

    def learn(self, K: Array, places: Array, codes: Array) -> int:
        """Walk over rows: K (rows, N) against all columns, the column each row is, its class."""
        before = self.mistakes
        lengths = np.sqrt(np.abs(self.squares))
        longest = float(lengths.max(initial=0.0))
        for row, place, code in zip(K, places.tolist(), codes.tolist(), strict=True):
            scores = row @ self.coef + self.bias
            # each mistake added a row, so that terms of a score are no more than these together
            terms = self.mistakes * (float(lengths[place]) * longest + 1.0)
            known = _TWICE * gamma(self.mistakes + _MORE)  # Higham (3.5)
            self._see(scores, place, code, known * terms)
            self.steps += 1
        return self.mistakes - before

    def grown(self, squares: Array) -> Memory:
        """Return the same memory with room for more columns, after those it has."""
        more, k = len(squares), self.coef.shape[1]
        return replace(
            self,
            coef=np.concatenate([self.coef, np.zeros((more, k))]),
            late=np.concatenate([self.late, np.zeros((more, k))]),
            bias=self.bias.copy(),
            late_bias=self.late_bias.copy(),
            age=np.concatenate([self.age, np.zeros(more, dtype=np.int64)]),
            squares=np.concatenate([self.squares, squares]),
        )

    def only(self, columns: Array) -> Memory:
        """Return the same memory on some of its columns."""
        return replace(
            self,
            coef=self.coef[columns],
            late=self.late[columns],
            age=self.age[columns],
            squares=self.squares[columns],
        )

    def _see(self, scores: Array, place: int, code: int, rounding: float) -> None:
        """Learn a row that is not ahead by more than rounding: what cancels is no lead."""
        if len(scores) == 1:
            if (scores[0] if code == 1 else -scores[0]) > rounding:
                return
            self._add(place, 0, 1.0 if code == 1 else -1.0)
            rival = 1 - code
        else:
            rival = rival_of(scores, code)
            if scores[code] - scores[rival] > 2 * rounding:
                return
            self._add(place, code, 1.0)
            self._add(place, rival, -1.0)
        self.mistakes += 1
        self.age[place] = self.steps
        if self.log is not None:
            self.log.append((place, code, rival, self.steps))
        if self.budget is not None:
            self._make_room(place)

    def _add(self, place: int, c: int, sign: float) -> None:
        self.coef[place, c] += sign
        self.late[place, c] += sign * self.steps
        if self.has_bias:
            self.bias[c] += sign
            self.late_bias[c] += sign * self.steps

    def _make_room(self, newest: int) -> None:
        support = np.flatnonzero((self.coef != 0).any(axis=1))
        if len(support) <= (self.budget or len(support)):
            return
        others = support[support != newest]
        gone = others[
            self.removal.pick(self.coef[others], self.age[others], self.squares[others], self.steps)
        ]
        self.forgotten += 1
        if self.has_bias:  # the constant feature of the row goes with it
            self.bias -= self.coef[gone]
        self.coef[gone] = 0.0
        self.late[gone] = 0.0
