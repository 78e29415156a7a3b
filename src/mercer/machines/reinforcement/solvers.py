"""Solvers of action values: kernel policy iteration and fitted Q iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve

from mercer.array_types import Array
from mercer.machines.reinforcement.problem import BellmanEquation, KernelQ
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.dispatch import choose

# --- policy iteration ----------------------------------------------------------------------------


@dataclass(frozen=True)
class KernelPolicyIteration(Solver):
    """Policy iteration (Lagoudakis and Parr, 2003) with kernel values (Xu, Hu and Lu, 2007).

    The values of a policy solve one linear system, in which the targets r + discount Q(s', policy)
    are linear in Q. A greedy policy that is its own successor ends it; one that comes again later
    is a cycle, which approximate values may have.

    Parameters
    ----------
    tol : float
        Gain of an action over the one of the policy, relative to the largest value, up to which the
        policy is kept: ties must not turn in circles.
    max_iter : int
        Largest number of policies.
    """

    answers = BellmanEquation

    tol: float = 1e-10
    max_iter: int = 100

    def run(self, problem: BellmanEquation, watch: Watch, start: Any = None) -> Solution:
        """Begin with the policy that is greedy for the given values, or for none."""
        n = problem.next_rows.shape[1]
        policy = np.zeros(n, dtype=np.intp)
        if start is not None:
            policy = problem.after(start).argmax(axis=0)
        seen, status, steps, detail = {policy.tobytes()}, Status.ITERATION_LIMIT, 0, ""
        answer = KernelQ(np.zeros(len(problem.points)), 0.0)
        for steps in range(1, self.max_iter + 1):
            answer = valued(problem, policy)
            if not np.isfinite(answer.coef).all():
                status = Status.NOT_FINITE
                break
            better = improved(problem.after(answer), policy, self.tol)
            changed = int(np.count_nonzero((better != policy) & ~problem.ended))
            if changed == 0:
                status = Status.SOLVED
                break
            policy = better
            if policy.tobytes() in seen:
                status, detail = Status.INACCURATE, "policies came again: a cycle"
                break
            seen.add(policy.tobytes())
            if watch.tick(steps, changed / n):
                status = watch.stopped or Status.STOPPED
                break
        return report(self, answer, status, steps, watch, detail)


def improved(after: Array, policy: Array, tol: float) -> Array:
    """Return the greedy action of each next state; the one of the policy where others tie."""
    best, kept = after.max(axis=0), np.take_along_axis(after, policy[None], axis=0)[0]
    slack = tol * max(float(np.abs(after).max()), 1e-300)
    return np.where(best <= kept + slack, policy, after.argmax(axis=0))


def valued(problem: BellmanEquation, policy: Array) -> KernelQ:
    """Return the values of a policy: one linear system."""
    n, m = problem.next_rows.shape[1], len(problem.points)
    goes_on = problem.discount * (~problem.ended)
    chosen = problem.cross[policy, np.arange(n)]
    system = problem.matrix + np.diag(problem.penalty / problem.counts)
    system -= problem.mean(goes_on[:, None] * chosen)
    right = problem.mean(problem.rewards)
    if not problem.bias:
        return KernelQ(lu_solve(lu_factor(system), right), 0.0)
    whole = np.zeros((m + 1, m + 1))
    whole[:m, :m], whole[m, :m] = system, 1.0
    whole[:m, m] = 1.0 - problem.mean(goes_on)
    found = lu_solve(lu_factor(whole), np.append(right, 0.0))
    return KernelQ(found[:m], float(found[m]))


# --- fitted Q iteration --------------------------------------------------------------------------


@dataclass(frozen=True)
class FittedQIteration(Solver):
    """Sweeps of kernel ridge regression on r + discount max Q (Ernst et al., 2005).

    One factor of K + penalty W^-1 serves all sweeps. A sweep need not contract, as ridge regression
    is not an average: the status shows whether the sweeps converged.

    Parameters
    ----------
    tol : float
        Largest change of a value by a sweep, relative to the largest value.
    max_iter : int
        Largest number of sweeps.
    """

    answers = BellmanEquation

    tol: float = 1e-8
    max_iter: int = 5000

    def run(self, problem: BellmanEquation, watch: Watch, start: Any = None) -> Solution:
        """Sweep from zero, or from given values."""
        ridge = RidgeFactor(problem)
        answer = KernelQ(np.zeros(len(problem.points)), 0.0) if start is None else start
        after = problem.after(answer)
        status, steps = Status.ITERATION_LIMIT, 0
        for steps in range(1, self.max_iter + 1):
            answer = ridge.fit(problem.mean(problem.targets(after.max(axis=0))))
            before, after = after, problem.after(answer)
            change = float(np.abs(after - before).max())
            size = max(float(np.abs(after).max()), float(np.abs(problem.rewards).max()))
            if not np.isfinite(change):
                status = Status.NOT_FINITE
                break
            if watch.tick(steps, change / (size or 1.0)):
                status = watch.stopped or Status.STOPPED
                break
            if change <= self.tol * size:
                status = Status.SOLVED
                break
        return report(self, answer, status, steps, watch)


class RidgeFactor:
    """K + penalty W^-1, factored once.

    Parameters
    ----------
    problem : BellmanEquation
        Whose matrix it is.
    """

    def __init__(self, problem: BellmanEquation) -> None:
        shift = problem.penalty / problem.counts
        self.factor = cho_factor(problem.matrix + np.diag(shift), lower=True)
        self.ones = cho_solve(self.factor, np.ones(len(shift))) if problem.bias else None

    def fit(self, targets: Array) -> KernelQ:
        """Return the ridge solution for targets of the points."""
        coef = cho_solve(self.factor, targets)
        if self.ones is None:
            return KernelQ(coef, 0.0)
        intercept = float(coef.sum() / self.ones.sum())
        return KernelQ(coef - intercept * self.ones, intercept)


# --- choice --------------------------------------------------------------------------------------

choose.register(BellmanEquation)(lambda problem: KernelPolicyIteration())
