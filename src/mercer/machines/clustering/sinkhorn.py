"""Doubly stochastic scaling of a symmetric matrix: the problem, and Sinkhorn's iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.dispatch import choose

# --- scaling -------------------------------------------------------------------------------------
#
# x_i (K x)_i = 1: scale a nonnegative symmetric matrix so that its rows sum to one.


@dataclass(frozen=True, eq=False)
class Scales:
    """An answer to a `Scaling`.

    Attributes
    ----------
    scale : (n,) array
        The factors x, positive; zero where a row of K is zero, which no factor can help.
    """

    scale: Array


@dataclass(frozen=True, eq=False)
class Scaling:
    """Find x with diag(x) K diag(x) doubly stochastic: nonnegative, symmetric, rows sum to one.

    It is the doubly stochastic matrix closest to K in relative entropy, and the limit of
    K <- D^-1/2 K D^-1/2 with D the row sums. It exists when the diagonal of K is positive.

    Attributes
    ----------
    gram : Gram
        K, with no negative entry.
    """

    gram: Gram


# --- sinkhorn ------------------------------------------------------------------------------------
#
# Symmetric Sinkhorn scaling on log x, accelerated by Anderson mixing.
#
# With w = x o (K x), the step log x <- log x - s log w is a fixed point iteration; s = 1/2
# repeats K <- D^-1/2 K D^-1/2. Near the answer its error map is I - s (I + S), S the scaled
# matrix with spectrum in [-1, 1]: for a positive semidefinite K that is [0, 1], and s = 2/3
# contracts by 1/3.

_FLOOR = 1e-15  # a row sum is not known better, however long one tries


@dataclass(frozen=True)
class Sinkhorn(Solver):
    """Scale a symmetric matrix to row sums of one.

    Parameters
    ----------
    tol : float
        Stop when no row sum is farther from one.
    max_iter : int
        Largest number of products.
    memory : int
        Differences that are mixed; 0 is the plain iteration.
    """

    answers = Scaling

    tol: float = 1e-10
    max_iter: int = 2000
    memory: int = 4

    def run(self, problem: Scaling, watch: Watch, start: Any = None) -> Solution:
        """Iterate on the rows that are not zero."""
        gram = problem.gram
        sums = np.asarray(gram @ np.ones(gram.shape[0]), dtype=np.float64)
        rows = sums > 0
        log_x = np.zeros(gram.shape[0])
        log_x[rows] = -0.5 * np.log(sums[rows])
        if start is not None:
            log_x[rows] = np.log(start.scale[rows])
        status, iteration = Status.ITERATION_LIMIT, 0
        mixing = _Mixing(self.memory)
        best, least = log_x, np.inf
        step = 2 / 3 if gram.valid else 1 / 2
        for iteration in range(1, self.max_iter + 1):
            log_w = _log_row_sums(gram, log_x, rows)
            error = float(np.abs(log_w).max(initial=0.0))  # a plain step never makes this larger
            if error < least:
                best, least = log_x, error
            elif mixing.bold:  # the mixed step went astray: back, and one plain step from there
                log_x = best
                log_w = _log_row_sums(gram, log_x, rows)
                mixing.forget()
            if least <= max(self.tol, _FLOOR):
                status = Status.SOLVED
                break
            if watch.tick(iteration, least):
                status = watch.stopped or Status.STOPPED
                break
            log_x = mixing.next(log_x, -step * log_w)
        scale = np.where(rows, np.exp(best), 0.0)
        return report(self, Scales(scale), status, iteration, watch)


def _log_row_sums(gram: Gram, log_x: Array, rows: Array) -> Array:
    """Return log(x o K x), and 0 for rows that are zero."""
    # over their largest, so that neither ends of the scale leave the range of numbers
    shift = float(log_x[rows].max(initial=0.0))
    x = np.where(rows, np.exp(log_x - shift), 0.0)
    sums = np.asarray(gram @ x, dtype=np.float64)
    tiny = np.finfo(float).tiny
    return np.where(rows, log_x + shift + np.log(np.maximum(sums, tiny)), 0.0)


class _Mixing:
    """Anderson mixing: the combination of the last points whose steps cancel best."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self.forget()

    def forget(self) -> None:
        """Start anew."""
        self._points: list[Array] = []
        self._steps: list[Array] = []
        self.bold = False

    def next(self, point: Array, step: Array) -> Array:
        """Return the next point from the steps taken so far."""
        self._points, self._steps = self._points[-self._memory :], self._steps[-self._memory :]
        dp = [point - p for p in self._points] if self._memory else []
        ds = [step - s for s in self._steps] if self._memory else []
        self._points.append(point)
        self._steps.append(step)
        self.bold = bool(dp)
        if not dp:
            return point + step
        P, S = np.stack(dp, axis=1), np.stack(ds, axis=1)
        gamma = np.linalg.lstsq(S, step, rcond=1e-10)[0]
        return np.asarray(point + step - (P + S) @ gamma)


# --- choice -------------------------------------------------------------------------------------

choose.register(Scaling)(lambda problem: Sinkhorn())
