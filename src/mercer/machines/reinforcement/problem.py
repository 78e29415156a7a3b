"""Action values of a Markov decision process, as the ridge solution of their own targets.

From transitions (s, a, r, s') the function Q(s, a) = sum_j c_j k((s_j, a_j), (s, a)) + b is sought
that is the kernel ridge regression on the targets r + discount max_a' Q(s', a'), which contain Q:

    (K + penalty W^-1) c + b 1 = T Q,   1'c = 0 if there is a constant b,

T Q being the mean target of each different (s, a) and W how often it occurs. Without a penalty, and
with a value of its own for each (s, a), it is Bellman's equation of the sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer.array_types import Array
from mercer.kernels import Kernel


@dataclass(frozen=True, eq=False)
class KernelQ:
    """A solution of a `BellmanEquation`.

    Attributes
    ----------
    coef : (m,) array
        A coefficient for each different state and action.
    intercept : float
        The constant.
    """

    coef: Array
    intercept: float


@dataclass(frozen=True, eq=False)
class BellmanEquation:
    """Action values that agree with the rewards and with themselves.

    Attributes
    ----------
    kernel : Kernel
        Of states and actions, side by side.
    points : (m, d + 1) array
        Different states and actions.
    group : (n,) int array
        Index of the point in which each transition begins.
    rewards, weights : (n,) arrays
        Reward and weight of each transition.
    ended : (n,) bool array
        Whether nothing comes after it.
    next_rows : (n_actions, n, d + 1) array
        Next states with every action.
    discount : float
        Discount factor.
    penalty : float
        Of the squared norm of Q.
    bias : bool
        Whether Q has a constant.
    """

    kernel: Kernel
    points: Array
    group: Array
    rewards: Array
    weights: Array
    ended: Array
    next_rows: Array
    discount: float
    penalty: float
    bias: bool

    @cached_property
    def matrix(self) -> Array:
        """K of the different states and actions."""
        return np.asarray(self.kernel(self.points), dtype=np.float64)

    @cached_property
    def cross(self) -> Array:
        """The kernel of next states with every action against the points: (n_actions, n, m)."""
        shown = [self.kernel(rows, self.points) for rows in self.next_rows]
        return np.asarray(shown, dtype=np.float64)

    @cached_property
    def counts(self) -> Array:
        """How often each different state and action occurs."""
        return np.bincount(self.group, self.weights, minlength=len(self.points))

    def mean(self, values: Array) -> Array:
        """Return the mean over the transitions of each state and action; (n,) or (n, k)."""
        share = self.weights / self.counts[self.group]
        found = np.zeros((len(self.points), *values.shape[1:]))
        np.add.at(found, self.group, (share * values.T).T)
        return found

    def here(self, answer: KernelQ) -> Array:
        """Return Q at the different states and actions."""
        return np.asarray(self.matrix @ answer.coef + answer.intercept)

    def after(self, answer: KernelQ) -> Array:
        """Return Q at the next states, (n_actions, n)."""
        return np.asarray(self.cross @ answer.coef + answer.intercept)

    def targets(self, best: Array) -> Array:
        """Return r + discount * value of the next state, zero after the end of an episode: (n,)."""
        return np.asarray(self.rewards + self.discount * np.where(self.ended, 0.0, best))

    def leftover(self, answer: KernelQ) -> tuple[Array, Array]:
        """Return the residual of the equation at each point, and Bellman's at each transition."""
        here, targets = self.here(answer), self.targets(self.after(answer).max(axis=0))
        shrunk = self.penalty * answer.coef / self.counts
        return here + shrunk - self.mean(targets), targets - here[self.group]
