"""Estimators `FittedQ` and `KernelLSPI` of action values, and samples of transitions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
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
from mercer.machines.reinforcement.problem import BellmanEquation, KernelQ
from mercer.machines.reinforcement.solvers import FittedQIteration, KernelPolicyIteration
from mercer.resources import require_memory
from mercer.solvers.base import Callback, Solution, Solver
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.dispatch import solve

# --- action values -------------------------------------------------------------------------------
#
# Base of both methods: the equation of a sample, action values, and the greedy policy.

_APART = 0.01  # of the least difference of actions: nothing is left of their similarity


class ActionValues(NestedKernels):
    """Base of estimators that find Q(s, a) from transitions, and act by it."""

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
            Observed transitions.
        y : ignored
            Not used.

        Returns
        -------
        self
            The fitted estimator.
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
        The possible actions.
    """
    spread = points[:, :-1].std(axis=0)
    gaps = np.diff(np.sort(actions))
    apart = _APART * float(gaps.min()) if len(gaps) else 1.0
    return Matern(1.5, scale=[*np.where(spread > 0, spread, 1.0), apart])


# --- fitted Q iteration --------------------------------------------------------------------------


class FittedQ(ActionValues):
    """Fitted Q iteration: Q <- ridge regression on r + discount max_a' Q(s', a'), again and again.

    Each sweep is `KernelRidge` on states and actions side by side, with targets made of the values
    before it (Ernst, Geurts and Wehenkel, 2005); one factor serves all sweeps.

    Parameters
    ----------
    kernel : Kernel, str or None, default=None
        Of states and actions, side by side: the last column is the action. None for a Matern
        kernel (nu = 3/2) of a standard deviation of each entry of the states, in which actions have
        nothing in common.
    penalty : float, default=0.1
        Of the squared norm of Q.
    discount : float, default=0.95
        Discount factor, below one.
    actions : array-like or None, default=None
        The possible actions; None for the actions of the sample.
    bias : bool, default=True
        Whether Q has a constant.
    tol : float, default=1e-8
        Largest change of a value by a sweep, relative to the largest value.
    max_iter : int, default=5000
        Largest number of sweeps.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress` after every sweep; a true return value stops the fit.
    time_limit : float or None, default=None
        Time limit in seconds. The fit then keeps the current solution.

    Attributes
    ----------
    actions_ : array of shape (n_actions,)
        The possible actions.
    kernel_ : Kernel
        The kernel.
    n_iter_ : int
        Sweeps.
    solution_ : Solution
        How it ended.
    certificate_ : Certificate
        Residual of the equation, and Bellman residual on the sample.

    Examples
    --------
    >>> from mercer.reinforcement import FittedQ, MountainCar
    >>> car = MountainCar()
    >>> learner = FittedQ(discount=car.discount).fit(car.explore(600))
    >>> states, actions, arrived = car.follow(learner, steps=300)
    >>> arrived
    True
    """

    def __init__(
        self,
        kernel: Any = None,
        penalty: float = 0.1,
        discount: float = 0.95,
        *,
        actions: Any = None,
        bias: bool = True,
        tol: float = 1e-8,
        max_iter: int = 5000,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.penalty = penalty
        self.discount = discount
        self.actions = actions
        self.bias = bias
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.time_limit = time_limit

    def _solver(self) -> FittedQIteration:
        return FittedQIteration(float(self.tol), int(self.max_iter))


# --- least-squares policy iteration --------------------------------------------------------------


class KernelLSPI(ActionValues):
    """Least-squares policy iteration: value a policy by one linear system, act greedily, repeat.

    (K + penalty W^-1) c + b 1 = mean of r + discount Q(s', policy(s')), linear in c and b
    (Lagoudakis and Parr, 2003; with kernels Xu, Hu and Lu, 2007). If it ends with a policy that
    is greedy for its own values, those are also where `FittedQ` ends, in far fewer steps.

    Parameters
    ----------
    kernel : Kernel, str or None, default=None
        Of states and actions, side by side: the last column is the action. None for a Matern
        kernel (nu = 3/2) of a standard deviation of each entry of the states, in which actions have
        nothing in common.
    penalty : float, default=0.1
        Of the squared norm of Q.
    discount : float, default=0.95
        Discount factor, below one.
    actions : array-like or None, default=None
        The possible actions; None for the actions of the sample.
    bias : bool, default=True
        Whether Q has a constant.
    tol : float, default=1e-10
        Gain of another action, relative to the largest value, up to which the policy is kept.
    max_iter : int, default=100
        Largest number of policies.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress` after every policy; a true return value stops the fit.
    time_limit : float or None, default=None
        Time limit in seconds. The fit then keeps the current solution.

    Attributes
    ----------
    actions_ : array of shape (n_actions,)
        The possible actions.
    kernel_ : Kernel
        The kernel.
    n_iter_ : int
        Policies.
    solution_ : Solution
        How it ended.
    certificate_ : Certificate
        Residual of the equation, and Bellman residual on the sample.

    Examples
    --------
    >>> from mercer.reinforcement import KernelLSPI, MountainCar
    >>> car = MountainCar()
    >>> learner = KernelLSPI(discount=car.discount).fit(car.explore(600))
    >>> states, actions, arrived = car.follow(learner, steps=300)
    >>> arrived
    True
    """

    def __init__(
        self,
        kernel: Any = None,
        penalty: float = 0.1,
        discount: float = 0.95,
        *,
        actions: Any = None,
        bias: bool = True,
        tol: float = 1e-10,
        max_iter: int = 100,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.penalty = penalty
        self.discount = discount
        self.actions = actions
        self.bias = bias
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.time_limit = time_limit

    def _solver(self) -> KernelPolicyIteration:
        return KernelPolicyIteration(float(self.tol), int(self.max_iter))


# --- transitions ---------------------------------------------------------------------------------
#
# The sample to learn from: states, actions, rewards and next states.


@dataclass(frozen=True, eq=False)
class Transitions:
    """A sample of a Markov decision process.

    Attributes
    ----------
    states : (n, d) array
        The states.
    actions : (n,) array
        The actions.
    rewards : (n,) array
        The rewards.
    next_states : (n, d) array
        The following states.
    ended : (n,) bool array
        Whether nothing comes after it.
    weights : (n,) array or None
        How often each counts: a row of weight 2 is that row twice. None for once each.

    Examples
    --------
    >>> import numpy as np
    >>> seen = Transitions([[0.0]], [1.0], [-1.0], [[1.0]], [False])
    >>> len(seen)
    1
    """

    states: Array
    actions: Array
    rewards: Array
    next_states: Array
    ended: Array
    weights: Array | None = None

    def __post_init__(self) -> None:
        rows = {}
        for name in ("states", "next_states"):
            rows[name] = np.asarray(read_array("Transitions", getattr(self, name), name), float)
            refuse_nonfinite("Transitions", rows[name], name)
        n = len(rows["states"])
        if rows["next_states"].shape != rows["states"].shape:
            raise ValueError(
                f"Transitions: next_states of shape {rows['next_states'].shape} must have the "
                f"shape of states, {rows['states'].shape}"
            )
        weights = np.ones(n) if self.weights is None else self.weights
        for name, values in (
            ("actions", self.actions),
            ("rewards", self.rewards),
            ("weights", weights),
        ):
            rows[name] = np.asarray(values, dtype=np.float64)
            if rows[name].shape != (n,) or not np.isfinite(rows[name]).all():
                raise ValueError(
                    f"Transitions: {name} must be {n} finite numbers, one for each row"
                )
        if (rows["weights"] < 0).any() or not rows["weights"].any():
            raise ValueError("Transitions: weights must not be negative, and not all zero")
        rows["ended"] = np.asarray(self.ended, dtype=bool)
        if rows["ended"].shape != (n,):
            raise ValueError(f"Transitions: ended must be {n} truth values, one for each row")
        for name, values in rows.items():
            object.__setattr__(self, name, values)

    def __len__(self) -> int:
        return len(self.states)

    @property
    def rows(self) -> Array:
        """States and actions side by side, (n, d + 1): what kernels compare."""
        return np.column_stack([self.states, self.actions])

    def next_rows(self, actions: Sequence[float]) -> Array:
        """Return the next states with every action, (actions * n, d + 1), action by action."""
        n = len(self)
        return np.vstack([np.column_stack([self.next_states, np.full(n, a)]) for a in actions])

    @staticmethod
    def joined(parts: Sequence[Transitions]) -> Transitions:
        """Return several samples as one."""
        names = ("states", "actions", "rewards", "next_states", "ended", "weights")
        return Transitions(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in names)
        )
