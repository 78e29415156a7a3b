"""All penalties of all folds in one subspace for each fold, which grows until it answers them.

A step multiplies one vector of each fold by the matrix: one pass over it serves all folds, each of
which uses the blocks whose rows and columns it has. The vectors of a fold do not depend on the
penalty, which only shifts the matrix, so one sequence of Lanczos' steps answers all penalties, and
tells when. Few steps are needed for smooth kernels, whose eigenvalues fall fast, for narrow ones,
whose smallest eigenvalues are not small, and for large penalties.

For what is left the matrix is inverted at a shift s between the penalties, once for all folds.
Solving with that inverse for what the equations leave adds vectors to the subspace: a round.
Eigenvalues (l + p) / (l + s) are within a factor of p / s then, whatever those of the matrix are,
so D digits take about ln 10 / 2 D max(p / s, s / p)^1/2 rounds. That forecast decides when Lanczos'
steps end, and what s is. Penalties that would take longer than factors of their own are not met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.blas import one_blas_thread
from mercer.problems import FoldedRidgePath
from mercer.solvers.base import Solution, Watch
from mercer.solvers.ridge.folds.direct import direct
from mercer.solvers.ridge.folds.fits import FoldFits, reported
from mercer.solvers.ridge.folds.fold_solver import FoldSolver
from mercer.solvers.ridge.folds.krylov_subspace import KrylovSubspace
from mercer.solvers.ridge.folds.products import FoldParts
from mercer.solvers.ridge.folds.shifted_inverse import ShiftedInverse
from mercer.solvers.ridge.folds.system import FoldSystem, fold_systems

# costs, in passes over the matrix
_INVERSE = 21  # rows for each pass that an inverse in float32 costs, half as many in float64
_FACTOR = 33  # as many for a Cholesky factor, of which every fold and penalty needs its own
_ROUND = 5.0

FEWEST_ROWS = 500  # below, reducing a matrix to a band takes no time
_TOGETHER = 8  # folds: up to here a pass over the matrix costs little more than for one
_LOOK = 20  # steps between forecasts
_SPARE = 0.5  # digits below what is enough: for rounding
_REACH = 1e4  # largest to smallest penalty of one inverse: 100 rounds for nine digits
_WIDE = 3  # vectors that a round adds at most: what penalties leave is nearly parallel


@dataclass(frozen=True)
class KrylovFolds(FoldSolver):
    """Grow a subspace for each fold, all of them together; factor for what that leaves."""

    def run(self, problem: FoldedRidgePath, watch: Watch, start: Any = None) -> Solution:
        """Answer what subspaces can, then the rest fold by fold."""
        systems, penalties = fold_systems(problem), problem.penalties
        # passes over the matrix have threads; the rest is small, or would depend on how many
        with one_blas_thread():
            fits, steps = by_subspaces(systems, penalties, watch)
            for system, found in zip(systems, fits, strict=True):
                rest = np.flatnonzero(~found.met)
                if not len(rest):
                    continue
                if watch.tick(steps, len(rest)):
                    break
                with watch.keeping():
                    solver = direct(len(rest))
                    found.put(rest, solver.fold(system, penalties[rest], watch))
        return reported(self, problem, fits, steps, watch)


def by_subspaces(
    systems: Sequence[FoldSystem], penalties: Array, watch: Watch
) -> tuple[list[FoldFits], int]:
    """Solve for all penalties of all folds, and count the passes over the matrix.

    Penalties that would take longer than factors of their own are not met.
    """
    fits: list[FoldFits] = []
    passes = 0
    for first in range(0, len(systems), _TOGETHER):
        run = _FoldsRun(systems[first : first + _TOGETHER], penalties, watch)
        fits += run.fits()
        passes += run.passes
    return fits, passes


def room(n: int, folds: int) -> float:
    """Return the bytes that are needed beside K, at most: an inverse, and vectors of all folds."""
    return 8.0 * (n**2 + min(folds, _TOGETHER) * n * 3 * _most(n))


def _most(rows: int) -> int:
    """Bound the steps, and the vectors that rounds add."""
    return min(rows, 200 + rows // 10)


@dataclass(frozen=True, eq=False)
class _Plan:
    """An inverse: what for, at which shift, how exact, and what it and its rounds will cost."""

    chosen: Array
    shift: float
    dtype: Any
    rounds: float
    cost: float


class _FoldsRun:
    """Subspaces of several folds that grow together."""

    def __init__(self, systems: Sequence[FoldSystem], penalties: Array, watch: Watch) -> None:
        self.systems, self.penalties, self.K = systems, penalties, systems[0].K
        self.watch, self.passes = watch, 0
        self.parts = FoldParts([system.rows for system in systems], len(self.K))
        self.most = _most(min(len(system.rows) for system in systems))
        self.chains = [KrylovSubspace(system, penalties, self.most) for system in systems]
        largest = [(s.root**2 * self.K.diagonal()[s.rows]).max(initial=0.0) for s in systems]
        self._floor = float(np.finfo(np.float32).eps / 2 * len(self.K) * max(largest))

    def fits(self) -> list[FoldFits]:
        """Let the subspaces grow as long as that is the cheapest, then solve in them."""
        self._steps()
        while not self.watch.stopped and (plans := self._plans()) and self._pays(plans[0]):
            pole = self._invert(plans[0])
            if pole is None or not self._rounds(pole, plans[0]):
                break
        return [chain.fits(self.watch) for chain in self.chains]

    def _steps(self) -> None:
        """Make Lanczos' steps until all is met, or they no longer make the rest cheaper."""
        seen, before = [float(self._digits().max())], np.inf
        for step in range(1, self.most + 1):
            if self._stopped(seen[-1]):
                return
            columns = self._values([chain.vector()[:, None] for chain in self.chains])
            for chain, column in zip(self.chains, columns, strict=True):
                chain.extend(column[:, 0])
            ahead = float(self._digits().max())
            if ahead <= 0 and step > 1:
                return
            if step % _LOOK == 0:
                seen.append(ahead)
                plans = self._plans()
                if not plans:  # what is left is no number
                    return
                other = sum(min(plan.cost, self._factors(plan.chosen)) for plan in plans)
                if _steps_to_go(seen) > other and before - other <= _LOOK:
                    return
                before = other

    def _rounds(self, pole: ShiftedInverse, plan: _Plan) -> bool:
        """Widen all subspaces until what the plan is for is met; tell whether it is."""
        for _ in range(10 + 2 * int(plan.rounds)):
            worst = [chain.worst(plan.chosen, _WIDE, _SPARE) for chain in self.chains]
            if not any(block.shape[1] for block in worst):
                return True
            if self._stopped(np.nan):
                return False
            found = pole.solve(worst)
            fresh = [chain.fresh(block) for chain, block in zip(self.chains, found, strict=True)]
            if not any(block.shape[1] for block in fresh):
                return False
            for chain, *both in zip(self.chains, fresh, self._values(fresh), strict=True):
                chain.widen(*both)
        return False

    def _stopped(self, digits: float) -> bool:
        """Count a pass; return whether there is no time for it."""
        self.passes += 1
        return self.watch.tick(self.passes, digits)

    def _values(self, blocks: Sequence[Array]) -> list[Array]:
        """Return the values at its own rows of a block of each fold, in one pass over K."""
        full = [system.spread(block) for system, block in zip(self.systems, blocks, strict=True)]
        values = self.parts.product(self.K, full, reads=True, writes=True)
        return np.split(values, np.cumsum([block.shape[1] for block in blocks])[:-1], axis=1)

    def _digits(self) -> Array:
        """Return how many digits each penalty is from being met in all folds."""
        return np.asarray(np.max([chain.digits() for chain in self.chains], axis=0) + _SPARE)

    def _plans(self) -> list[_Plan]:
        """Choose inverses for all penalties that are not met, the largest of them first."""
        digits, plans = self._digits(), []
        unmet = digits > _SPARE
        while unmet.any():
            reached = self.penalties * _REACH >= self.penalties[unmet].max()
            chosen = reached & (self.penalties >= self.penalties[unmet & reached].min())
            plans.append(self._plan(chosen, digits[chosen]))
            unmet &= ~reached
        return plans

    def _plan(self, chosen: Array, digits: Array) -> _Plan:
        """Choose an inverse for some penalties, by what it and its rounds will cost."""
        p = self.penalties[chosen]
        shifts = np.geomspace(p.min(), p.max(), 61)
        plans = []
        for dtype, rows in ((np.float32, _INVERSE), (np.float64, _INVERSE / 2)):
            s = np.maximum(shifts, self._floor) if dtype is np.float32 else shifts
            apart = np.maximum(p / s[:, None], s[:, None] / p)
            rounds = np.log(10) / 2 * (digits * np.sqrt(apart)).max(axis=1)
            k = int(rounds.argmin())
            cost = len(self.K) / rows + _ROUND * float(rounds[k])
            plans.append(_Plan(chosen, float(s[k]), dtype, float(rounds[k]), cost))
        return min(plans, key=lambda plan: plan.cost)

    def _pays(self, plan: _Plan) -> bool:
        """Return whether a plan is cheaper than factors, and there is room for its vectors."""
        left = self.most - max(chain.width for chain in self.chains)
        return plan.rounds <= left and plan.cost < self._factors(plan.chosen)

    def _factors(self, chosen: Array) -> float:
        """Return the cost of a Cholesky factor for every fold and penalty."""
        cubes = sum(len(system.rows) ** 3 for system in self.systems)
        return float(np.sum(chosen) * cubes / (_FACTOR * len(self.K) ** 2))

    def _invert(self, plan: _Plan) -> ShiftedInverse | None:
        """Invert as planned, else in float64; nothing where the matrix is not positive definite."""
        for dtype in dict.fromkeys((plan.dtype, np.float64)):
            try:
                return ShiftedInverse(self.systems, plan.shift, dtype)
            except np.linalg.LinAlgError:
                continue
        return None


def _steps_to_go(digits: Sequence[float]) -> float:
    """Forecast the steps until no digits are missing, from how many were at all looks.

    Steps gain pace, as the largest eigenvalues are found: by as much with every look, let us say,
    as with the last.
    """
    if len(digits) < 3:
        return 0.0  # too early to tell
    earlier, now = digits[-3] - digits[-2], digits[-2] - digits[-1]
    gain = max(now - earlier, 0.0)
    if not now > 0:
        return np.inf
    return _LOOK * 2 * digits[-1] / (now + float(np.sqrt(now**2 + 2 * gain * digits[-1])))
