"""Block Lanczos method, and the orthonormal basis that it grows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends.contract import LongArrays, Operator
from mercer.backends.lapack import one_blas_thread
from mercer.resources import memory_budget
from mercer.solvers.base import Status, Watch
from mercer.solvers.eigen.dense import below_everything

# --- krylov --------------------------------------------------------------------------------------
#
# The largest eigenpairs of a symmetric operator from products alone: block Lanczos.
#
# Blocks of 16 to 32 vectors cost hardly more than one (a product is bound by reading or making
# K), so what counts is passes. Every new block is made orthogonal to the whole basis, twice;
# residuals of the Ritz pairs come from the last block alone, without touching long vectors; a
# thick restart bounds the basis.

FLOOR = 1e-3  # of the largest value: what the residual of a smaller one is measured against
_EPS = float(np.finfo(np.float64).eps)
_HELD = 6  # arrays of the size of the basis at once: it, its image, both rotated, and a step's
_DEEP = 200  # vectors; from here on decomposing the projection costs as much as a pass
_SAME = 1e-6  # of the largest value: closer values may be copies of one

_PASSES_TO_SHOW = 6  # after which a random direction has shown what it holds

Apply = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Ritz:
    """Eigenpairs as a Krylov space sees them.

    Attributes
    ----------
    values : (k,) array
        Largest first.
    vectors : (n, k) array
        Orthonormal columns.
    residuals : (k,) array
        |A v - m v| of each pair, as the recurrence knows them.
    status : Status
        Why the iteration ended.
    iterations : int
        Passes: products with a block.
    """

    values: Array
    vectors: Array
    residuals: Array
    status: Status
    iterations: int


def block_width(count: int) -> int:
    """Return how many vectors a pass should carry."""
    return 16 if count < 50 else 32


def largest_pairs(
    apply: Apply | Operator,
    n: int,
    count: int,
    *,
    tol: float,
    max_iter: int = 300,
    block: int | None = None,
    random_state: int = 0,
    watch: Watch | None = None,
    start: Array | None = None,
    known: Array | None = None,
    noise: float = 0.0,
) -> Ritz:
    """Find the largest eigenpairs of a symmetric operator.

    Parameters
    ----------
    apply : callable or Operator
        Returns A V in float64 for V (n, b); an `Operator` where these may lie on a card.
    n : int
        Size of A.
    count : int
        How many pairs.
    tol : float
        Every residual is at most tol times the size of its value, or times a thousandth of the
        largest value where that is more; see `allowed`.
    max_iter : int
        Most passes.
    block : int, optional
        Vectors of a pass, at least 2; 16, or 32 from 50 pairs on.
    random_state : int
        Seed of the starting block.
    watch : Watch, optional
        Asked after every pass whether to stop.
    start : (n, c) array, optional
        Approximate eigenvectors to start from.
    known : (n, c) array, optional
        Orthonormal eigenvectors; only pairs orthogonal to them are looked for.
    noise : float
        Length of the rounding in A v for a unit vector v, where it is more than usual: no residual
        need be below.

    Returns
    -------
    Ritz
        The pairs, largest first, and how it ended.
    """
    operator = apply if isinstance(apply, Operator) else Operator(apply)
    watch = Watch() if watch is None else watch
    width = block_width(count) if block is None else max(2, block)  # one shows no copies
    outside = n - (0 if known is None else known.shape[1])
    count = min(count, outside)
    first = _starting_block(random_state, n, width, start)
    width = first.shape[1]
    if 3 * (count + width) > outside:
        return _all_at_once(operator, n, count, known)
    longest = _longest(n, count, width, outside)
    basis = Basis(operator, n, longest + 2 * width, known)
    basis.begin(first)
    return _BlockLanczosRun(basis, count, width, (tol, noise), longest).run(max_iter, watch)


def allowed(values: Array, tol: float, norm: float, noise: float = 0.0) -> Array:
    """Return the largest residual that each pair may have; rounding of the operator is forgiven."""
    sizes = np.abs(values)
    floor = FLOOR * float(sizes.max(initial=0.0))
    least = max(16 * _EPS * norm, noise, np.finfo(float).tiny)
    return np.asarray(np.maximum(tol * np.maximum(sizes, floor), least))


class _BlockLanczosRun:
    """Passes until the wanted pairs stand still."""

    def __init__(
        self, basis: Basis, count: int, width: int, aim: tuple[float, float], longest: int
    ) -> None:
        self._basis, self._count, self._width = basis, count, width
        (self._tol, self._noise), self._longest = aim, longest
        self._candidate: tuple[Array, int] | None = None  # values to be seen again, since when
        self._tried: Array | None = None  # values that random directions came in at
        self._ratio = np.inf  # of the worst residual to what is allowed, at the last look
        self._last = self._next_look = 0

    def run(self, max_iter: int, watch: Watch) -> Ritz:
        status, iteration = Status.ITERATION_LIMIT, 0
        for iteration in range(1, max_iter + 1):
            cut = True
            with watch.keeping(lambda: self._basis.size >= self._count):
                self._basis.extend()
                cut = False
            if cut:
                status = Status.TIME_LIMIT
                break
            if self._due(iteration) or iteration == max_iter:
                with one_blas_thread():
                    ended = self._look(iteration, watch)
                if ended is not None:
                    status = ended
                    break
            elif watch.tick(iteration, self._ratio * self._tol):
                status = watch.stopped or Status.STOPPED
                break
            if self._basis.size + 2 * self._basis.waiting > self._longest:
                with one_blas_thread():
                    self._basis.restart(self._count + self._width)
        with one_blas_thread():
            values, Y, residuals = self._basis.ritz(min(self._count, self._basis.size))
            vectors = self._basis.lift(Y)
        return Ritz(values, vectors, residuals, status, iteration)

    def _due(self, iteration: int) -> bool:
        return self._basis.size >= self._count + self._width and iteration >= self._next_look

    def _look(self, iteration: int, watch: Watch) -> Status | None:
        """Compare residuals with what is allowed; say how the search ends, if it does."""
        basis = self._basis
        values, _, residuals = basis.ritz(self._count)
        if not np.isfinite(basis.norm):
            return Status.NOT_FINITE
        limits = allowed(values, self._tol, basis.norm, self._noise)
        ratio = float((residuals / limits).max(initial=0.0))
        if self._is_reliable(values, iteration) and ratio <= 1.0:
            if not self._may_hide_copies(values):
                return Status.SOLVED
            basis.add_random(self._width)
            self._candidate, self._tried = (values, iteration), values
        self._plan(iteration, ratio)
        stopped = watch.tick(iteration, ratio * self._tol)
        return (watch.stopped or Status.STOPPED) if stopped else None

    def _is_reliable(self, values: Array, iteration: int) -> bool:
        """Return whether values may be believed.

        Where the space closed on itself, random directions came in, and along them further copies
        of an eigenvalue may show up: the same values must be seen again some passes later.
        """
        closed, self._basis.closed = self._basis.closed, False
        if self._candidate is None and not closed:
            return True
        if self._candidate is None or not self._same(values, self._candidate[0]):
            self._candidate = values, iteration
            return False
        return iteration - self._candidate[1] >= _PASSES_TO_SHOW

    def _same(self, values: Array, before: Array) -> bool:
        slack = float(allowed(values, self._tol, self._basis.norm, self._noise).max(initial=0.0))
        return len(values) == len(before) and bool(
            np.abs(values - before).max(initial=0.0) <= slack
        )

    def _may_hide_copies(self, values: Array) -> bool:
        """Return whether a value has as many copies as a block shows, and none were looked for."""
        if self._basis.waiting > self._width:  # there is no memory for more
            return False
        if self._tried is not None and self._same(values, self._tried):
            return False
        top = max(float(np.abs(values).max()), np.finfo(float).tiny)
        gaps = np.flatnonzero(np.abs(np.diff(values)) > _SAME * top)
        ends = np.concatenate([[-1], gaps, [len(values) - 1]])
        return int(np.diff(ends).max()) >= self._basis.waiting

    def _plan(self, iteration: int, ratio: float) -> None:
        """Look again when the residuals, falling as they did, are half way to the end."""
        skip = 1 if self._basis.size <= _DEEP else 2
        if np.isfinite(ratio) and ratio < self._ratio < np.inf:
            rate = np.log(self._ratio / max(ratio, 1e-300)) / max(1, iteration - self._last)
            skip = max(skip, min(8, int(0.5 * np.log(max(ratio, 1.0)) / rate)))
        self._ratio, self._last, self._next_look = ratio, iteration, iteration + skip


def _longest(n: int, count: int, width: int, outside: int) -> int:
    """Return the size of the basis at which it is cut back: enough to go on, within the budget."""
    least = count + 4 * width
    room = int(memory_budget() // (_HELD * 8 * max(n, 1)))
    return min(outside - width, max(least, min(max(6 * count, 40 * width), room)))


def _starting_block(seed: int, n: int, width: int, start: Array | None) -> Array:
    """Return random vectors beside those to start from: these alone may never show the others."""
    block = np.random.default_rng(seed).standard_normal((n, width))
    return block if start is None else np.hstack([start, block])


def _all_at_once(operator: Operator, n: int, count: int, known: Array | None) -> Ritz:
    """Decompose the whole matrix, when that is hardly larger than a basis would be."""
    A = np.asarray(operator.here().apply(np.eye(n)), dtype=np.float64)
    A = (A + A.T) / 2
    deflated = A if known is None else below_everything(A, known)
    values, vectors = np.linalg.eigh(deflated)
    values, vectors = values[::-1][:count], np.ascontiguousarray(vectors[:, ::-1][:, :count])
    residuals = np.linalg.norm(A @ vectors - vectors * values, axis=0)
    return Ritz(values, vectors, residuals, Status.SOLVED, 1)


# --- krylov basis --------------------------------------------------------------------------------
#
# An orthonormal basis that grows by blocks, and the operator as it looks inside it.

_LOST = 1e-13  # of the operator's size: what is left of a direction that lay inside the basis
_SKEW = 1e-6  # ratio of extreme pivots below which Cholesky of W'W is not trusted
_SQUARED = 1e-140  # norms whose squares have all their digits


class Basis:
    """Orthonormal vectors Q, T = Q'AQ, and the part of A Q that lies outside of Q.

    Vectors are rows here (`_Q`), in memory taken once. Those that are known beforehand come first;
    T leaves them out.

    Parameters
    ----------
    operator : Operator
        A; the basis lies where its products are made.
    n, most : int
        Length and largest number of vectors.
    known : (n, c) array, optional
        Orthonormal vectors that everything else stays orthogonal to.
    """

    def __init__(self, operator: Operator, n: int, most: int, known: Array | None = None) -> None:
        self._fixed = 0 if known is None else known.shape[1]
        if not operator.arrays.has_room(8.0 * (self._fixed + most) * n):
            operator = operator.here()
        self._apply, self._long, self._n = operator.apply, operator.arrays, n
        self._Q = self._long.empty(self._fixed + most, n)
        if known is not None:
            self._Q[: self._fixed] = self._long.put(known.T)
        self._T = np.zeros((most, most))
        self.size = 0  # vectors that A was applied to
        self._waiting = 0  # orthonormal vectors after those: the next block
        self._coupling = np.zeros((0, 0))  # what A sends from the last block to the waiting one
        self.closed = False  # whether a product lay, in part, inside the basis; reset by others
        self.norm = 0.0  # size of the operator as seen so far
        self._seed = 0

    def begin(self, block: Array) -> None:
        """Take the first block."""
        with one_blas_thread():
            W = np.array(block, dtype=np.float64)
            W /= np.maximum(np.linalg.norm(W, axis=0), np.finfo(float).tiny)
            U, _, lost = self._orthonormal(self._long.put(W), None)
            self._append(self._replaced(U, lost))

    @property
    def waiting(self) -> int:
        """Count the vectors of the next block."""
        return self._waiting

    @property
    def vectors(self) -> Array:
        """The basis as columns, without the block that waits: (n, size)."""
        return self._long.get(self._Q[self._fixed : self._fixed + self.size]).T

    def extend(self) -> None:
        """Multiply the waiting block, project, and orthonormalise what is left."""
        first, b = self.size, self._waiting
        rows = slice(self._fixed + first, self._fixed + first + b)
        W = self._long.put(self._apply(self._long.turned(self._Q[rows])))
        self.size, self._waiting = first + b, 0
        with one_blas_thread():
            H = np.zeros((self._fixed + self.size, b))
            self._scale(W)
            U, R, lost = self._orthonormal(W, H)
            H = H[self._fixed :]
            T = self._T
            T[: self.size, first : self.size] = H
            T[first : self.size, :first] = H[:first].T
            T[first : self.size, first : self.size] = (H[first:] + H[first:].T) / 2
            self._coupling = R
            self._append(self._replaced(U, lost))
        self.closed = self.closed or bool(lost)

    def _scale(self, W: Any) -> None:
        squares = self._long.squared_lengths(W)
        self.norm = max(self.norm, float(np.sqrt(squares.max(initial=0.0))))

    def add_random(self, width: int) -> None:
        """Widen the waiting block by random directions: copies that hid may lie along them."""
        with one_blas_thread():
            self._append(self._random(width, None))

    def ritz(self, k: int) -> tuple[Array, Array, Array]:
        """Return the k largest Ritz values, their coordinates, and residual norms."""
        values, Y = self._decomposed(k)
        last = Y[len(Y) - self._coupling.shape[1] :]
        residuals = np.linalg.norm(self._coupling @ last, axis=0)
        return values, Y, residuals

    def _decomposed(self, k: int) -> tuple[Array, Array]:
        T, m = self._T[: self.size, : self.size], self.size
        if not np.isfinite(T).all():
            self.norm = np.inf
            return np.full(k, np.nan), np.zeros((m, k))
        if 4 * k <= m:
            values, Y = linalg.eigh(T, subset_by_index=[m - k, m - 1], check_finite=False)
        if 4 * k > m or len(values) < k:  # LAPACK may give fewer where all are equal to rounding
            values, Y = linalg.eigh(T, check_finite=False, driver="evd")
        return values[::-1][:k], Y[:, ::-1][:, :k]

    def lift(self, Y: Array) -> Array:
        """Return the long vectors of coordinates: (n, k)."""
        Q = self._Q[self._fixed : self._fixed + self.size]
        return np.ascontiguousarray(self._long.get(self._long.put(Y).T @ Q).T)

    def restart(self, keep: int) -> None:
        """Shrink to the best Ritz vectors and the waiting block.

        What couples the two comes back with the next product, which is projected on everything.
        """
        values, Y = self._decomposed(min(keep, self.size))
        end = self._fixed + self.size
        kept, waiting = self._long.put(Y).T @ self._Q[self._fixed : end], self._waiting
        following = self._long.put(self._Q[end : end + waiting])
        middle = self._fixed + len(kept)
        self._Q[self._fixed : middle], self._Q[middle : middle + waiting] = kept, following
        self._T[:] = 0.0
        np.fill_diagonal(self._T[: len(kept), : len(kept)], values)
        self.size = len(kept)
        self._coupling = self._coupling[:, :0]

    def _append(self, U: Any) -> None:
        at = self._fixed + self.size + self._waiting
        self._Q[at : at + U.shape[1]] = U.T
        self._waiting += U.shape[1]

    def _orthonormal(self, W: Any, H: Array | None) -> tuple[Any, Array, list[int]]:
        """Orthonormalise W against the basis and itself: W = Q H + U R; H is added to.

        Twice each: what one step leaves of its own rounding the other one takes. Gives the columns
        of U that are only rounding, too; rows of R are zero there.
        """
        W -= self._taken(W, H, None)
        U, R, lost = _unit(W, _LOST * self.norm, self._long)
        U -= self._taken(U, H, R)
        again, S, _ = _unit(U, 0.0, self._long)
        return again, S @ R, lost

    def _taken(self, W: Any, H: Array | None, R: Array | None) -> Any:
        Q = self._Q[: self._fixed + self.size + self._waiting]
        C = Q @ W
        if H is not None:
            H += self._long.get(C) if R is None else self._long.get(C) @ R
        return (C.T @ Q).T

    def _replaced(self, U: Any, lost: list[int]) -> Any:
        """Put random directions where a direction was lost."""
        if lost:
            others = np.delete(self._long.get(U), lost, axis=1)
            U[:, lost] = self._random(len(lost), self._long.put(others))
        return U

    def _random(self, count: int, others: Any) -> Any:
        self._seed += 1
        rng = np.random.default_rng([self._seed, self.size])
        W = self._long.put(rng.standard_normal((self._n, count)) / np.sqrt(self._n))
        for _ in range(2):
            W -= self._taken(W, None, None)
            if others is not None:
                W -= others @ (others.T @ W)
            W = self._long.put(np.linalg.qr(self._long.get(W))[0])
        return W


def _unit(W: Any, least: float, arrays: LongArrays) -> tuple[Any, Array, list[int]]:
    """Factor W = U R with orthonormal columns; columns below `least` are lost (zero in R).

    Cholesky of W'W is ten times faster than Householder steps, and good enough when taken twice,
    unless columns are nearly dependent.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        G = arrays.get(W.T @ W)
    try:
        R = linalg.cholesky(G, check_finite=False)
        pivots = R.diagonal()
        if pivots.min() > max(_SKEW * pivots.max(), 1e3 * least, _SQUARED):
            inverse = linalg.solve_triangular(R, np.eye(len(R)), check_finite=False)
            return W @ arrays.put(inverse), R, []
    except linalg.LinAlgError:
        pass
    if not np.isfinite(G).all():
        return arrays.put(np.zeros(tuple(W.shape))), np.full_like(G, np.nan), []
    Q, R = np.linalg.qr(arrays.get(W))
    left, sigma, right = np.linalg.svd(R)
    lost = np.flatnonzero(sigma <= least).tolist()
    sigma[lost] = 0.0
    return arrays.put(Q @ left), sigma[:, None] * right, lost
