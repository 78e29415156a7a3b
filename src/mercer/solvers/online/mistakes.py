"""The perceptron on rows that stay: passes over them until one is without a mistake."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.perceptron_state import LinearFunctions
from mercer.backends.reference.perceptron import learn_row
from mercer.deadline import TimeLimitError
from mercer.gram import FactoredGram
from mercer.points import to_dense
from mercer.problems import Separation, Separator
from mercer.resources import rows_at_once
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.online.kernel_perceptron import Memory
from mercer.solvers.online.removal import Oldest, Removal

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
        Which row loses its coefficient when there are more.
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
