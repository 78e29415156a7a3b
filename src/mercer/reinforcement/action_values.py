"""What both methods share: the equation of a sample, action values, and the greedy policy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.certificates import Certificate, certify
from mercer.kernels import Kernel, Matern, resolve
from mercer.machines.base.inputs import read_array, refuse_nonfinite
from mercer.machines.base.machine import NestedKernels, all_or_nothing
from mercer.machines.base.parameters import (
    check_count,
    check_flag,
    check_limits,
    check_real,
    is_real,
    refuse,
)
from mercer.problems.bellman import BellmanEquation, KernelQ
from mercer.reinforcement.transitions import Transitions
from mercer.resources import require_memory
from mercer.solvers import Callback, Solution, Solver, solve

_APART = 0.01  # of the least difference of actions: nothing is left of their similarity


class ActionValues(NestedKernels):
    """Base of machines that find Q(s, a) from transitions, and act by it."""

    kernel: Any
    penalty: float
    discount: float
    actions: Any
    bias: bool
    tol: float
    max_iter: int
    callback: Callback | None
    time_limit: float | None

    kernel_: Kernel
    actions_: Array
    solution_: Solution
    certificate_: Certificate

    @abstractmethod
    def _solver(self) -> Solver:
        """Return how the equation is solved."""

    @all_or_nothing
    def fit(self, transitions: Transitions, y: Any = None) -> Self:
        """Learn from a sample.

        Parameters
        ----------
        transitions : Transitions
            What happened.
        y : ignored
            Not used.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        if not isinstance(transitions, Transitions):
            raise TypeError(
                f"{type(self).__name__}.fit takes mercer.reinforcement.Transitions, not "
                f"{type(transitions).__name__}"
            )
        problem = self._equation(transitions)
        options: dict[str, Any] = {"callback": self.callback, "time_limit": self.time_limit}
        self.solution_ = solve(problem, self._solver(), **options)
        self.certificate_ = certify(problem, self.solution_.value)
        self.kernel_, self._points = problem.kernel, problem.points
        self.n_iter_ = int(self.solution_.iterations)
        return self

    def q(self, states: Any) -> Array:
        """Return the value of every action in states.

        Parameters
        ----------
        states : array-like of shape (n, d)
            States.

        Returns
        -------
        array of shape (n, n_actions)
            Q(s, a), actions as in `actions_`.
        """
        check_is_fitted(self)
        rows = np.asarray(read_array(type(self).__name__, states, "states"), dtype=np.float64)
        refuse_nonfinite(type(self).__name__, rows, "states")
        if rows.shape[1] + 1 != self._points.shape[1]:
            raise ValueError(
                f"{type(self).__name__}: states have {rows.shape[1]} entries, but those of the "
                f"sample have {self._points.shape[1] - 1}"
            )
        answer: KernelQ = self.solution_.value
        shown = [np.column_stack([rows, np.full(len(rows), a)]) for a in self.actions_]
        values = [self.kernel_(each, self._points) @ answer.coef for each in shown]
        return np.column_stack(values) + answer.intercept

    def value(self, states: Any) -> Array:
        """Return max_a Q(s, a) of states.

        Parameters
        ----------
        states : array-like of shape (n, d)
            States.

        Returns
        -------
        array of shape (n,)
            Values.
        """
        return np.asarray(self.q(states).max(axis=1))

    def act(self, states: Any) -> Array:
        """Return the greedy action in states.

        Parameters
        ----------
        states : array-like of shape (n, d)
            States.

        Returns
        -------
        array of shape (n,)
            Actions; the first of equal ones.
        """
        return np.asarray(self.actions_[self.q(states).argmax(axis=1)])

    def _equation(self, sample: Transitions) -> BellmanEquation:
        kept = sample.weights > 0 if sample.weights is not None else np.ones(len(sample), bool)
        points, group = np.unique(sample.rows[kept], axis=0, return_inverse=True)
        self.actions_ = self._known_actions(sample.actions[kept])
        n, m = int(kept.sum()), len(points)
        require_memory(
            8 * m * (2 * m + (len(self.actions_) + 1) * n),
            f"{type(self).__name__} on {n} transitions",
            "Take fewer transitions.",
        )
        after = sample.next_rows(self.actions_.tolist())
        after = after.reshape(len(self.actions_), len(sample), -1)[:, kept]
        weights = np.ones(len(sample)) if sample.weights is None else sample.weights
        kernel = default_kernel(points, self.actions_) if self.kernel is None else self.kernel
        return BellmanEquation(
            kernel if isinstance(kernel, Kernel) else resolve(kernel, points),
            points,
            group.ravel(),
            sample.rewards[kept],
            weights[kept],
            sample.ended[kept],
            after,
            float(self.discount),
            float(self.penalty),
            bool(self.bias),
        )

    def _known_actions(self, seen: Array) -> Array:
        if self.actions is None:
            return np.unique(seen)
        given = np.asarray(self.actions, dtype=np.float64).ravel()
        if not len(given) or not np.isfinite(given).all() or len(np.unique(given)) < len(given):
            refuse(self, "actions", self.actions, "be None or different finite numbers")
        return given

    def _check_parameters(self) -> None:
        check_real(self, "penalty", above=0)
        if not is_real(self.discount) or not 0 <= self.discount < 1:
            refuse(self, "discount", self.discount, "be a number from 0 on and below 1")
        check_flag(self, "bias")
        check_real(self, "tol", above=0)
        check_count(self, "max_iter")
        check_limits(self)


def default_kernel(points: Array, actions: Sequence[float] | Array) -> Kernel:
    """Return a Matern kernel of a standard deviation for each entry of a state, actions apart.

    Values have kinks where one action takes over from another, which smoother kernels overshoot.

    Parameters
    ----------
    points : (m, d + 1) array
        States and actions.
    actions : (n_actions,) array
        What can be done.
    """
    spread = points[:, :-1].std(axis=0)
    gaps = np.diff(np.sort(actions))
    apart = _APART * float(gaps.min()) if len(gaps) else 1.0
    return Matern(1.5, scale=[*np.where(spread > 0, spread, 1.0), apart])
