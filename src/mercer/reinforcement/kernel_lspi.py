"""Least-squares policy iteration with kernels."""

from __future__ import annotations

from typing import Any

from mercer.reinforcement.action_values import ActionValues
from mercer.solvers import Callback, KernelPolicyIteration


class KernelLSPI(ActionValues):
    """Least-squares policy iteration: value a policy by one linear system, act greedily, repeat.

    (K + penalty W^-1) c + b 1 = mean of r + discount Q(s', policy(s')), linear in c and b
    (Lagoudakis and Parr, 2003; with kernels Xu, Hu and Lu, 2007). Where it ends with a policy that
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
        What a reward is worth one step later, below one.
    actions : array-like or None, default=None
        What can be done; None for the actions of the sample.
    bias : bool, default=True
        Whether Q has a constant.
    tol : float, default=1e-10
        Gain of another action, relative to the largest value, up to which the policy is kept.
    max_iter : int, default=100
        Largest number of policies.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress` after every policy; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which the fit stops with what it has.

    Attributes
    ----------
    actions_ : array of shape (n_actions,)
        What can be done.
    kernel_ : Kernel
        The kernel.
    n_iter_ : int
        Policies.
    solution_ : Solution
        How it ended.
    certificate_ : Certificate
        What is left of the equation, and of Bellman's on the sample.

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
