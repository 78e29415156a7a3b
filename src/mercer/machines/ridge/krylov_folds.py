"""Held-out errors of ridge regression by one Krylov subspace per fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from mercer.array_types import Array
from mercer.backends.lapack import invert, one_blas_thread
from mercer.machines.ridge.folds import (
    FoldFits,
    FoldParts,
    FoldSolver,
    FoldSystem,
    direct,
    fold_systems,
    refined,
    reported,
)
from mercer.machines.ridge.problem import FoldedRidgePath
from mercer.solvers.base import Solution, Watch

# --- shifted inverse -----------------------------------------------------------------------------
#
# (A + s)^-1 on the rows of every fold, from one inverse on all rows.
#
# With M = (A + s)^-1 on all rows, and F those that a fold leaves out, the inverse on the others
# is M - M_F M_FF^-1 M_F': two products with M, and a small factor for each fold. Folds share M
# and the passes over it. What it gives is where to look for answers, not the answers, so float32
# will do while s is well above its rounding.

_BLOCK = 256  # rows at a time


@dataclass(frozen=True, eq=False)
class _FoldIndex:
    """Where a fold is among all rows: what it has, what it leaves out, and M_FF^-1."""

    inside: Array
    outside: Array
    S: Array

    @classmethod
    def of(cls, M: Array, inside: Array) -> _FoldIndex:
        outside = np.setdiff1d(np.arange(len(M)), inside, assume_unique=True)
        S = M[np.ix_(outside, outside)]
        if not invert(S):
            raise np.linalg.LinAlgError("an inverse that is not positive definite")
        return cls(inside, outside, _mirrored(S))

    def correct(self, W: Array, X: Array) -> None:
        """Change W at rows left out, so that M W is zero there; X is M W."""
        if self.outside.size and W.size:
            W[self.outside] -= self.S @ X[self.outside].astype(self.S.dtype)


class ShiftedInverse:
    """The inverse at one shift.

    Parameters
    ----------
    systems : sequence of FoldSystem
        The folds.
    shift : float
        s.
    dtype : dtype
        Precision of the inverse: float32 or float64.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where A + s is not positive definite in that precision.
    """

    def __init__(self, systems: Sequence[FoldSystem], shift: float, dtype: Any) -> None:
        root = np.zeros(len(systems[0].K))
        for system in systems:
            root[system.rows] = system.root
        rows = np.flatnonzero(root)
        self._systems = systems
        self._M = _inverse(systems[0].K, rows, root, shift, np.dtype(dtype))
        self._places = [_FoldIndex.of(self._M, np.searchsorted(rows, s.rows)) for s in systems]
        self._parts = FoldParts([place.inside for place in self._places], len(rows))
        along = [system.along for system in systems if system.along is not None]
        self._along = self._solve([w[:, None] for w in along]) if along else []

    def solve(self, blocks: Sequence[Array]) -> list[Array]:
        """Return (A + s)^-1 W for a block of every fold, nearly and up to a factor.

        With a bias, A is the projected matrix.
        """
        found = self._solve(blocks)
        for k, u in enumerate(self._along):
            w = self._systems[k].along
            found[k] -= u * (w @ found[k] / (w @ u))
        return [system.project(X) for system, X in zip(self._systems, found, strict=True)]

    def _solve(self, blocks: Sequence[Array]) -> list[Array]:
        full = [np.zeros((len(self._M), block.shape[1])) for block in blocks]
        ends = np.cumsum([block.shape[1] for block in blocks])[:-1]
        for place, block, W in zip(self._places, blocks, full, strict=True):
            W[place.inside] = block
        X = self._parts.product(self._M, full, reads=True, writes=False)
        for place, W, own in zip(self._places, full, np.split(X, ends, axis=1), strict=True):
            place.correct(W, own)
        X = self._parts.product(self._M, full, writes=True)
        found = zip(self._places, np.split(X, ends, axis=1), strict=True)
        return [own[place.inside] for place, own in found]


def _inverse(K: Array, rows: Array, root: Array, shift: float, dtype: np.dtype[Any]) -> Array:
    """Return (R K R + s)^-1 in units of its largest entry, block by block: K may be large."""
    n = len(rows)
    unit = float((root[rows] ** 2 * K.diagonal()[rows]).max(initial=0.0)) or 1.0
    A = np.empty((n, n), dtype)
    scaled = root[rows] / np.sqrt(unit)
    for i in range(0, n, _BLOCK):
        part = K[i : i + _BLOCK] if n == len(K) else K[np.ix_(rows[i : i + _BLOCK], rows)]
        np.multiply(
            part * scaled, scaled[i : i + _BLOCK, None], out=A[i : i + _BLOCK], casting="same_kind"
        )
    A.flat[:: n + 1] += shift / unit
    if not invert(A):
        raise np.linalg.LinAlgError("not positive definite")
    return _mirrored(A)


def _mirrored(A: Array) -> Array:
    """Copy the lower triangle of A into the upper one."""
    for i in range(0, len(A), _BLOCK):
        j = i + _BLOCK
        A[i:j, i:j] = np.tril(A[i:j, i:j]) + np.tril(A[i:j, i:j], -1).T
        A[i:j, j:] = A[j:, i:j].T
    return A


# --- krylov subspace -----------------------------------------------------------------------------
#
# The subspace in which a fold is solved for all penalties: Lanczos' vectors, and others beside.
#
# Lanczos' vectors V turn the matrix A of a fold into a tridiagonal T, A V = V T + beta v e'.
# Further vectors Z, orthogonal to V, are tied to them by their products q with v alone:
#
#     | T + p     beta e q' |  | x |     | V'r |
#     | beta q e' Z'AZ + p  |  | y |  =  | Z'r |
#
# So a penalty costs a tridiagonal solve and a small dense one, and what the equations leave lies
# in the span of AZ, Z and two of the Lanczos vectors.

_TINY = float(np.finfo(np.float64).tiny)
_NEW = 1e-6  # of a vector's length: less than that beside the subspace is rounding
_PURE = 0.5  # the same: with more than that, a vector is orthogonal to it at once


class KrylovSubspace:
    """The subspace of one fold, with the residual of each penalty.

    Parameters
    ----------
    system : FoldSystem
        The equations of the fold.
    penalties : (p,) array
        All of them.
    most : int
        Lanczos' vectors, and vectors beside them, at most.
    """

    def __init__(self, system: FoldSystem, penalties: Array, most: int) -> None:
        m = len(system.rows)
        self.system, self.penalties = system, penalties
        self.enough = system.enough(penalties)
        self.left = np.ones(len(penalties))  # residuals, in units of the targets
        self.alpha, self.beta = np.zeros(most), np.zeros(most)
        self.size = self.width = 0
        self._unit = float(np.linalg.norm(system.right))
        self._V = np.empty((m, most + 1), order="F")
        self._V[:, 0] = system.right / (self._unit or 1.0)
        self._pivot = np.full(len(penalties), np.inf)
        self._Z, self._AZ = np.empty((m, most), order="F"), np.empty((m, most), order="F")
        self._H, self._q = np.zeros((most, most)), np.zeros(most)

    def vector(self) -> Array:
        """Return the last of Lanczos' vectors."""
        return self._V[:, self.size]

    def extend(self, values: Array) -> None:
        """Add a Lanczos vector, from the values of the last one at all rows."""
        k, V = self.size, self._V[:, : self.size + 1]
        w = self.system.operate(values[:, None])[:, 0]
        alpha = float(V[:, k] @ w)
        w -= alpha * V[:, k]
        last = float(self.beta[k - 1]) if k else 0.0
        if k:
            w -= last * V[:, k - 1]
        w -= V @ (V.T @ w)  # what rounding left along the others
        w = self.system.project(w[:, None])[:, 0]
        beta = float(np.linalg.norm(w))
        self._V[:, k + 1] = w / (beta or 1.0)
        self.alpha[k], self.beta[k], self.size = alpha, beta, k + 1
        with np.errstate(all="ignore"):  # no number, and so not met, where a kernel is not valid
            self._pivot = alpha + self.penalties - last**2 / self._pivot
            self.left = self.left * np.abs(beta / self._pivot)

    def fresh(self, W: Array) -> Array:
        """Return an orthonormal basis of what vectors have beside the subspace.

        Taking the subspace off a vector leaves along it what rounding leaves, over the part of the
        vector that is new. Those errors would multiply from one call to the next, so the subspace
        is taken off twice where less than half is new (Kahan and Parlett: twice is enough); and
        again where a vector is dropped, since the others were made orthogonal to its rounding.
        """
        V, Z = self._V[:, : self.size], self._Z[:, : self.width]
        W = W[:, : self._Z.shape[1] - self.width]
        for _ in range(2 + W.shape[1]):
            W = np.array(W / np.maximum(np.linalg.norm(W, axis=0), _TINY), order="F")
            for j in range(W.shape[1]):  # products with two or three vectors at once are slower
                W[:, j] -= V @ (V.T @ W[:, j])
                W[:, j] -= Z @ (Z.T @ W[:, j])
            W, R = np.linalg.qr(self.system.project(W))
            beside = np.abs(np.diagonal(R))
            W = W[:, beside > _NEW]
            if not (beside <= _PURE).any():
                break  # rounding left nothing along the subspace that would matter
        return W

    def widen(self, W: Array, values: Array) -> None:
        """Add fresh vectors, with their values at all rows; residuals are those they leave."""
        first, last = self.width, self.width + W.shape[1]
        self._Z[:, first:last], self._AZ[:, first:last] = W, self.system.operate(values)
        block = self._Z[:, :last].T @ self._AZ[:, first:last]
        self._H[:last, first:last], self._H[first:last, :last] = block, block.T
        self._q[first:last] = W.T @ self._V[:, self.size]
        self.width = last

    def residuals(self, chosen: Array) -> Array:
        """Return what chosen penalties leave, in units of the targets, and note its size."""
        k, Z, AZ = self.size, self._Z[:, : self.width], self._AZ[:, : self.width]
        penalties = self.penalties[chosen]
        right = np.zeros((k + self.width, len(chosen)))
        right[0] = 1.0
        both = self._solve(penalties, right)
        x, y, beta = both[k - 1], both[k:], self.beta[k - 1]
        left = np.outer(self._V[:, k - 1], beta * (self._q[: self.width] @ y))
        left -= np.outer(self._V[:, k], beta * x)
        left -= AZ @ y + Z @ (y * penalties)
        self.left[chosen] = np.linalg.norm(left, axis=0)
        return left

    def worst(self, chosen: Array, most: int, spare: float) -> Array:
        """Return directions that have most of what chosen penalties leave beyond what is enough."""
        unmet = np.flatnonzero(chosen & (self.digits() > -spare))
        if not len(unmet):
            unmet = np.flatnonzero(chosen)  # more vectors may have spoilt what was met
        left = self.residuals(unmet) / self.enough[unmet]
        left = left[:, np.linalg.norm(left, axis=0) > 10.0**-spare]
        sizes, turned = np.linalg.eigh(left.T @ left)
        large = np.flatnonzero(sizes > 100.0**-spare)[::-1][:most]
        return np.asarray(left @ turned[:, large])

    def digits(self) -> Array:
        """Return how many digits the residual of each penalty is above what is enough."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log10(self.left / self.enough))

    def fits(self, watch: Watch) -> FoldFits:
        """Solve in the subspace for all penalties that it should answer, and refine."""
        V, Z = self._V[:, : self.size], self._Z[:, : self.width]

        def correct(chosen: Array, left: Array) -> Array:
            both = self._solve(self.penalties[chosen], np.vstack([V.T @ left, Z.T @ left]))
            return np.asarray(V @ both[: self.size] + Z @ both[self.size :])

        met = self.left <= self.enough  # as the recurrence sees it
        return refined(self.system, self.penalties, correct, watch, tried=met)

    def _solve(self, penalties: Array, right: Array) -> Array:
        """Solve each column at its penalty; NaN where the matrix is not positive definite."""
        k, found = self.size, np.full_like(right, np.nan)
        q, H, diagonal = self._q[: self.width], self._H[: self.width, : self.width], np.arange(k)
        end = (diagonal == k - 1).astype(np.float64)
        for j, penalty in enumerate(penalties.tolist()):
            ends = np.column_stack([right[:k, j], end])
            _, _, solved, info = lapack.dptsv(self.alpha[:k] + penalty, self.beta[: k - 1], ends)
            if info != 0:
                continue
            tie = self.beta[k - 1] * q
            if self.width:
                small = H - np.outer(tie, solved[-1, 1] * tie)
                small.flat[:: self.width + 1] += penalty
                _, y, info = lapack.dposv(small, right[k:, [j]] - tie[:, None] * solved[-1, 0])
                if info != 0:
                    continue
                found[k:, j] = y[:, 0]
                solved[:, 0] -= solved[:, 1] * (tie @ y[:, 0])
            found[:k, j] = solved[:, 0]
        return found


# --- krylov --------------------------------------------------------------------------------------
#
# All penalties of all folds in one subspace for each fold, which grows until it answers them.
#
# A step multiplies one vector of each fold by the matrix: one pass over it serves all folds, each
# of which uses the blocks whose rows and columns it has. The vectors of a fold do not depend on
# the penalty, which only shifts the matrix, so one sequence of Lanczos' steps answers all
# penalties, and tells when. Few steps are needed for smooth kernels, whose eigenvalues fall fast,
# for narrow ones, whose smallest eigenvalues are not small, and for large penalties.
#
# For what is left the matrix is inverted at a shift s between the penalties, once for all folds.
# Solving with that inverse for what the equations leave adds vectors to the subspace: a round.
# Eigenvalues (l + p) / (l + s) are within a factor of p / s then, whatever those of the matrix
# are, so D digits take about ln 10 / 2 D max(p / s, s / p)^1/2 rounds. That forecast decides when
# Lanczos' steps end, and what s is. Penalties that would take longer than factors of their own
# are not met.

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
