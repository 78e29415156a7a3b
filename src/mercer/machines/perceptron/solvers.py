"""Kernel perceptron: passes over the rows, support budget, and removal rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.contract import LinearFunctions
from mercer.backends.reference.perceptron import learn_row, rival_of
from mercer.deadline import TimeLimitError
from mercer.gram import FactoredGram
from mercer.gram.accurate_products import gamma
from mercer.machines.perceptron.problem import Separation, Separator
from mercer.resources import rows_at_once
from mercer.rows.points import to_dense
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.dispatch import choose

# --- removal -------------------------------------------------------------------------------------
#
# Removal rules of a perceptron with a budget.


class Removal(ABC):
    """A rule that picks one of the mistakes remembered."""

    @abstractmethod
    def pick(self, coef: Array, age: Array, squares: Array, step: int) -> int:
        """Return the place of one to forget: coefficients (m, k), steps of entry, k(x, x)."""


@dataclass(frozen=True)
class Oldest(Removal):
    """Drop the oldest mistake: the rest is that of a window on the stream."""

    def pick(self, coef: Array, age: Array, squares: Array, step: int) -> int:
        """Return the one with the earliest step."""
        return int(np.argmin(age))


@dataclass(frozen=True)
class Smallest(Removal):
    """Forget what changes the function least: the smallest |coef|^2 k(x, x), the oldest first."""

    def pick(self, coef: Array, age: Array, squares: Array, step: int) -> int:
        """Return the one of the smallest norm."""
        norms = np.square(coef).sum(axis=1) * squares
        return int(np.lexsort((age, norms))[0])


@dataclass(frozen=True)
class AtRandom(Removal):
    """Forget any: the one rule that a stream cannot be arranged against.

    Parameters
    ----------
    seed : int
        With the number of the step, it decides.
    """

    seed: int = 0

    def pick(self, coef: Array, age: Array, squares: Array, step: int) -> int:
        """Draw one; the same at the same step."""
        return int(np.random.default_rng((self.seed, step)).integers(len(coef)))


# --- kernel perceptron ---------------------------------------------------------------------------
#
# The kernel perceptron's memory: mistakes with their coefficients, as many as a budget allows.

_TWICE = 2.0  # once for these scores, once for those of the certificate
_MORE = 12  # roundings of a score in addition to those of its sum


@dataclass(eq=False)
class Memory:
    """Functions sum_j coef_j k(p_j, .) + bias, over columns p_j some of which are mistakes.

    Attributes
    ----------
    coef : (N, k) array
        Coefficients: integers, so nothing drifts however long the stream.
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
        The rule that selects the row to drop.
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
        """Return the same memory with capacity for more columns after the present ones."""
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
        """Learn a row whose lead does not exceed rounding."""
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


# --- mistakes ------------------------------------------------------------------------------------
#
# The perceptron on rows that stay: passes over them until one is without a mistake.

_BLOCK = 1 << 21  # entries of K looked at together
_ARRAYS = 3  # of a block: as computed, as kept, and put together
_NO_LOG = np.empty((0, 4), dtype=np.int64)


@dataclass(frozen=True)
class Mistakes(Solver):
    """Rosenblatt's perceptron, in the space of the features or with coefficients of rows.

    Parameters
    ----------
    max_epochs : int
        Most passes over the rows.
    shuffle : bool
        Whether each pass has a new order.
    budget : int or None
        Most rows that may have a coefficient; None for any number.
    removal : Removal
        The rule that selects the row whose coefficient is dropped.
    keep_log : bool
        Whether every mistake is noted, as votes need.
    random_state : int
        Seed of the orders.
    """

    answers = Separation

    max_epochs: int = 100
    shuffle: bool = True
    budget: int | None = None
    removal: Removal = field(default_factory=Oldest)
    keep_log: bool = False
    random_state: int = 0

    def run(self, problem: Separation, watch: Watch, start: Any = None) -> Solution:
        """Pass over the rows until nothing is wrong."""
        featured = isinstance(problem.gram, FactoredGram)
        walk: Any = _InFeatures if featured and self._remembers_all else _InRows
        state, n = walk(problem, self), len(problem.codes)
        status, epoch, wrong = Status.ITERATION_LIMIT, 0, n
        for epoch, order in enumerate(self._orders(n), start=1):
            cut = True
            with watch.keeping():
                wrong, cut = state.learn(order), False
            if cut:
                status = Status.TIME_LIMIT
                break
            if wrong == 0:
                status = Status.SOLVED
                break
            if watch.tick(epoch, wrong / n):
                status = watch.stopped or Status.STOPPED
                break
        detail = "" if status.ok else f"not separated so far: {wrong} of {n} wrong in the last pass"
        return report(self, state.value(), status, epoch, watch, detail)

    @property
    def _remembers_all(self) -> bool:
        return self.budget is None and not self.keep_log

    def _orders(self, n: int) -> Iterator[Array]:
        rng = np.random.default_rng(self.random_state)
        for _ in range(self.max_epochs):
            yield rng.permutation(n) if self.shuffle else np.arange(n)


class _InFeatures:
    def __init__(self, problem: Separation, solver: Mistakes) -> None:
        F: Any = problem.gram.factor
        d, k = F.shape[1], problem.columns
        self._problem, self._F, self._codes = problem, F, problem.codes.astype(np.int64)
        table, constants = np.zeros((d, k)), np.zeros(k)
        self._rules = LinearFunctions(
            table, constants, problem.bias, table.copy(), constants.copy()
        )
        self._steps = self._mistakes = 0

    def learn(self, order: Array) -> int:
        before = deepcopy(self._rules)
        try:
            walked = choose_backend().perceptron(
                self._F, self._codes, order, self._rules, float(self._steps), True
            )
        except TimeLimitError:
            self._rules = before  # half a pass is not counted
            raise
        self._steps += len(order)
        wrong = walked.mistakes or self._learn_ties()
        self._mistakes += wrong
        return wrong

    def _learn_ties(self) -> int:
        """Learn the rows that are ahead, after a pass without mistakes, by rounding alone."""
        problem, rules = self._problem, self._rules
        lengths = np.sqrt(np.abs(problem.gram.diag()))
        norm = float(np.linalg.norm(rules.weights, axis=0).max(initial=0.0))
        scores = np.asarray(self._F @ rules.weights) + rules.bias
        hidden = 2 * problem.rounding(lengths, norm, rules.bias, len(rules.weights))
        ties = np.flatnonzero(~(problem.advantages(scores) > hidden))
        for row in ties:
            learn_row(
                rules, to_dense(self._F[[row]])[0], scores[row], self._codes[row], self._steps
            )
        return len(ties)

    def value(self) -> Separator:
        rules, steps = self._rules, max(self._steps, 1)
        assert rules.late is not None and rules.late_bias is not None
        none = np.empty((0, rules.weights.shape[1]))
        mean, mean_bias = rules.weights - rules.late / steps, rules.bias - rules.late_bias / steps
        return Separator(
            none, rules.bias, rules.weights, none, mean_bias, mean, self._mistakes, 0, _NO_LOG
        )


class _InRows:
    def __init__(self, problem: Separation, solver: Mistakes) -> None:
        self._problem = problem
        memory = Memory.empty(problem.gram.diag(), problem.columns, problem.bias)
        memory.budget, memory.removal = solver.budget, solver.removal
        memory.log = [] if solver.keep_log else None
        self.memory = memory

    def learn(self, order: Array) -> int:
        height = rows_at_once(len(order), max(1, _BLOCK // len(order)), arrays=_ARRAYS)
        wrong = 0
        for first in range(0, len(order), height):
            deadline.check()
            rows = order[first : first + height]
            K = np.asarray(self._problem.gram.rows(rows), dtype=np.float64)
            wrong += self.memory.learn(K, rows, self._problem.codes[rows])
        return wrong

    def value(self) -> Separator:
        memory = self.memory
        mean, mean_bias = memory.mean
        log = np.array(memory.log, dtype=np.int64) if memory.log else _NO_LOG
        counts = memory.mistakes, memory.forgotten
        return Separator(memory.coef, memory.bias, None, mean, mean_bias, None, *counts, log)


# --- choice -------------------------------------------------------------------------------------

choose.register(Separation)(lambda problem: Mistakes())
