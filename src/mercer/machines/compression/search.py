"""The search for few vectors: how many are needed, which, and where they go if they may move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.certificates import Certificate, certify
from mercer.certificates.reduction import are_within, squared_errors
from mercer.machines.compression.moving import moved
from mercer.machines.compression.pursuit import Functions, Kept, Pursuit
from mercer.problems.reduction import ReducedSet, Reduction
from mercer.solvers import Status
from mercer.solvers.base import Watch

_MORE = 1.25  # times as many vectors, where those that functions may have do not do yet


@dataclass(frozen=True, eq=False)
class Goal:
    """What is asked: errors of all functions, as shares of their norms.

    Attributes
    ----------
    norms : (k,) array
        |f| of every function.
    tol : float
        Largest error, as a share of it.
    hidden : (k,) array
        What rounding hides of |f|^2.
    """

    norms: Array
    tol: float
    hidden: Array

    @property
    def weights(self) -> Array:
        """What the squared error of each function counts."""
        nothing = np.zeros_like(self.norms)
        return np.divide(1.0, np.square(self.norms), out=nothing, where=self.norms > 0)

    def share(self, squares: Array) -> float:
        """Return the largest relative error of squared ones; 0 for what rounding hides."""
        seen = np.where(squares <= self.hidden, 0.0, squares)
        return float(np.sqrt((seen * self.weights).max(initial=0.0)))

    def is_met(self, squares: Array) -> bool:
        """Return whether no more vectors are needed."""
        share = self.share(squares)
        return share == 0.0 or share <= self.tol < np.inf


def search(
    f: Functions, tol: float, n_vectors: int | None, watch: Watch, kernel: Any, max_iter: int
) -> tuple[Kept, Status]:
    """Choose vectors one after another; then move them, if a kernel to move by is given.

    Parameters
    ----------
    f : Functions
        What to compress.
    tol : float
        Largest relative error; infinite if it does not matter.
    n_vectors : int or None
        Most vectors.
    watch : Watch
        The clock.
    kernel : Gaussian or None
        To move vectors by.
    max_iter : int
        Most steps of moving them.
    """
    goal = Goal(f.norms, tol, f.hidden)
    pursuit = Pursuit(f, goal.weights)
    most = len(f.coef) if n_vectors is None else min(n_vectors, len(f.coef))
    _extend(pursuit, goal, most, watch)
    kept = pursuit.kept(len(pursuit.picks))
    with deadline.cut_short() as cut:  # there is an answer from here on
        kept = _allowed(f, pursuit, goal, most, watch)
        if kernel is not None:
            kept = _moved(f, pursuit, kept, goal, partial(moved, kernel=kernel, max_iter=max_iter))
    late = Status.TIME_LIMIT if cut or deadline.is_over() else Status.SOLVED
    return kept, watch.stopped or late


def _moved(f: Functions, pursuit: Pursuit, kept: Kept, goal: Goal, move: Any) -> Kept:
    """Return the vectors where they explain most, and no more of them than are needed."""

    def relocated(count: int) -> Kept:
        found: Kept = move(f, pursuit.kept(count), goal.weights)
        return found

    best = _better(f, kept, relocated(len(kept.origin)))
    if goal.tol == np.inf or not is_within(f, best, goal.tol):
        return best
    return _fewest(f, goal.tol, len(kept.origin), relocated, best)


def _extend(pursuit: Pursuit, goal: Goal, most: int, watch: Watch, enough: bool = True) -> None:
    """Keep the vector that gains most, until enough is explained or there are enough."""
    while len(pursuit.picks) < most:
        if enough and goal.is_met(pursuit.squares):
            return
        if watch.tick(len(pursuit.picks), goal.share(pursuit.squares)):
            return
        best = pursuit.best()
        if best < 0:
            return
        pursuit.keep(best)


def _allowed(f: Functions, pursuit: Pursuit, goal: Goal, most: int, watch: Watch) -> Kept:
    """Return the vectors; more of them where functions may have some of them only."""
    kept = pursuit.kept(len(pursuit.picks))
    if f.allowed is None or goal.tol == np.inf:
        return kept
    low = 0
    while not is_within(f, kept, goal.tol) and watch.stopped is None:
        low = len(pursuit.picks)
        _extend(pursuit, goal, min(most, int(_MORE * low) + 1), watch, enough=False)
        if len(pursuit.picks) == low:  # what depends on others is not theirs to have
            return everything(f) if most == len(f.coef) else kept
        kept = pursuit.kept(len(pursuit.picks))
    return _fewest(f, goal.tol, len(pursuit.picks), pursuit.kept, kept, low)


def _fewest(
    f: Functions, tol: float, high: int, make: Callable[[int], Kept], best: Kept, low: int = 0
) -> Kept:
    """Return the fewest vectors that do, by bisection; `high` of them do."""
    while high - low > 1 and not deadline.is_over():
        middle = (low + high) // 2
        fewer = make(middle)
        if is_within(f, fewer, tol):
            best, high = fewer, middle
        else:
            low = middle
    return best


def _better(f: Functions, one: Kept, two: Kept) -> Kept:
    """Return the vectors with the smaller error: a search may end higher than it began."""
    weights = Goal(f.norms, np.inf, f.hidden).weights
    errors = [float((_measured(f, part)[0] * weights).max(initial=0.0)) for part in (one, two)]
    return two if errors[1] < errors[0] else one


def is_within(f: Functions, kept: Kept, tol: float) -> bool:
    """Return whether vectors stand for all vectors with an error of at most tol."""
    return are_within(*_measured(f, kept), tol)


def _measured(f: Functions, kept: Kept) -> tuple[Array, Array, Array]:
    return squared_errors(Reduction(f.source, f.coef), ReducedSet(kept.vectors, kept.coef))


def everything(f: Functions) -> Kept:
    """Keep all vectors as they are."""
    return Kept(np.arange(len(f.coef)), f.source.X, f.coef)


def judged(f: Functions, kept: Kept, tol: float) -> Certificate:
    """Judge vectors in the place of all vectors."""
    return certify(Reduction(f.source, f.coef), ReducedSet(kept.vectors, kept.coef), tol)
