"""The largest eigenpairs of a symmetric operator from products alone: block Lanczos.

Blocks of 16 to 32 vectors cost hardly more than one (a product is bound by reading or making K), so
what counts is passes. Every new block is made orthogonal to the whole basis, twice; residuals of
the Ritz pairs come from the last block alone, without touching long vectors; a thick restart bounds
the basis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.backends.blas import one_blas_thread
from mercer.backends.long_arrays import Operator
from mercer.resources import memory_budget
from mercer.solvers.base import Status, Watch
from mercer.solvers.spectral.eigh import below_everything
from mercer.solvers.spectral.krylov_basis import Basis

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
    basis : Basis or None
        The space they come from, for those who go on from it.
    """

    values: Array
    vectors: Array
    residuals: Array
    status: Status
    iterations: int
    basis: Basis | None = None


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
        return Ritz(values, vectors, residuals, status, iteration, self._basis)

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
