"""Eigenpairs of a Gram by block Lanczos, in float32 where that is enough."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import CenteredGram, Gram, ScaledGram, exact
from mercer.resources import rows_at_once
from mercer.rows.points import take
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.eigen.block_lanczos import (
    FLOOR,
    Ritz,
    block_width,
    largest_pairs,
)
from mercer.solvers.eigen.dense import evaluated, in_units, ordered
from mercer.solvers.eigen.problem import Eigenproblem

# --- lanczos -------------------------------------------------------------------------------------
#
# A few eigenpairs from products alone: block Lanczos, first with K in float32 where it is.

# Residuals that products leave, over the length of the diagonal of K before centring: rounding of
# the entries is some 1e-7 of them in float32 and averages out. What was measured is below.
_NOISE = {4: 5e-7, 8: 1e-15}
_FINEST = 2e-7  # relative residual: float32 is not asked for more
_LEFT = 0.7  # of the tolerance, for a recurrence that does not see its own rounding
_SURE = 0.85  # of the tolerance: what residuals of some rows may be, two standard errors below it


@dataclass(frozen=True)
class Lanczos(Solver):
    """Block Lanczos for the largest eigenpairs.

    A Gram in float32 is enough for residuals of about 1e-7 of the largest eigenvalue. Where more is
    asked, or a few rows in float64 say that products were less exact than that, products in
    float64, evaluated from the points, go on from the pairs found.

    Parameters
    ----------
    tol : float
        Stop when the residual |K v - m v| of every pair is at most tol times its eigenvalue, or
        times a thousandth of the largest eigenvalue where that is more.
    max_iter : int
        Largest number of passes over K.
    block : int or None
        Vectors per pass; None takes 16, or 32 when 50 pairs or more are wanted.
    random_state : int
        Seed of the starting block.
    """

    answers = Eigenproblem

    tol: float = 1e-10
    max_iter: int = 300
    block: int | None = None
    random_state: int = 0

    def _obstacle(self, problem: Eigenproblem) -> str | None:
        """Take eigenproblems that want few of many pairs."""
        width = block_width(problem.count) if self.block is None else self.block
        if 3 * (problem.count + width) > problem.gram.shape[0] - problem.known_count:
            return "Lanczos is for few of many eigenpairs; use solver=Eigh()"
        return None

    def run(self, problem: Eigenproblem, watch: Watch, start: Any = None) -> Solution:
        """Grow a Krylov space until the wanted pairs stand still."""
        problem, unit = in_units(problem)
        gram, precise = problem.gram, exact(problem.gram)
        vectors = None if start is None else start.vectors
        if np.dtype(gram.dtype) == np.float32 and np.dtype(precise.dtype) == np.float64:
            found = self._search(problem, gram, max(_LEFT * self.tol, _FINEST), watch, vectors)
            if found.status is Status.SOLVED and self._beyond(gram, found):
                rough = found.iterations
                found = self._search(problem, precise, self.tol, watch, found.vectors)
                found = replace(found, iterations=rough + found.iterations)
        else:
            found = self._search(problem, gram, self.tol, watch, vectors)
        modes = ordered(found.values * unit * unit, found.vectors, problem.count)
        return report(self, modes, found.status, found.iterations, watch)

    def _search(
        self, problem: Eigenproblem, gram: Gram, tol: float, watch: Watch, start: Array | None
    ) -> Ritz:
        return largest_pairs(
            gram.operator(),
            gram.shape[0],
            problem.count,
            tol=tol,
            max_iter=self.max_iter,
            block=self.block,
            random_state=self.random_state,
            watch=watch,
            start=start,
            known=problem.known,
            noise=noise_of(gram),
        )

    def _beyond(self, gram: Gram, found: Ritz) -> bool:
        """Return whether the rounding of float32 may be too much, or is, on some rows of K."""
        sizes, noise = np.abs(found.values), noise_of(gram)
        floor = FLOOR * float(sizes.max(initial=0.0))
        least = max(float(sizes.min(initial=np.inf)), floor)
        if float(np.hypot(_LEFT * self.tol * least, noise)) > self.tol * least:
            return True
        residuals = sampled_residuals(gram, found.values, found.vectors, self.random_state)
        return bool((residuals > _SURE * self.tol * np.maximum(sizes, floor)).any())


def noise_of(gram: Gram) -> float:
    """Return the length of the rounding in K v for a unit vector v."""
    base, factor = evaluated(gram)
    return float(_NOISE[np.dtype(gram.dtype).itemsize] * np.linalg.norm(factor * base.diag()))


# --- sampled residuals ---------------------------------------------------------------------------
#
# True residuals of eigenpairs, from a few rows of K in float64.
#
# How far products with a K in float32 are off depends on who makes them: tensor cores, and sums
# over many columns, round differently from a processor. A few rows of the exact product tell it
# for the price of these rows.

ROWS = 256  # of K: lengths are off by a twentieth where rounding is spread evenly over rows
_ARRAYS = 2  # of a block of rows: itself, and in float64


def sampled_residuals(gram: Gram, values: Array, vectors: Array, seed: int) -> Array:
    """Estimate |K v - m v| of every pair from some rows of K, evaluated anew in float64.

    Parameters
    ----------
    gram : Gram
        K, in any precision.
    values : (k,) array
        The eigenvalues m.
    vectors : (n, k) array
        The eigenvectors v.
    seed : int
        Of the choice of rows.

    Returns
    -------
    (k,) array
        Root mean squares over the rows chosen, times sqrt(n).

    Examples
    --------
    >>> from mercer.gram.build import matrix_gram
    >>> K = np.diag(np.arange(1.0, 1001.0))
    >>> v = np.eye(1000)[:, -1:] + 1e-3
    >>> exact_one = np.linalg.norm(K @ v - 1000.0 * v)
    >>> found = sampled_residuals(matrix_gram(K), np.array([1000.0]), v, 0)
    >>> bool(abs(found[0] / exact_one - 1) < 0.1)
    True
    """
    n = len(vectors)
    chosen = np.sort(np.random.default_rng(seed).permutation(n)[:ROWS])
    product, means = _at_rows(gram, vectors, chosen)
    left = product - vectors[chosen] * values
    # a mean over all rows is not known, but it is the same number for all of them
    for ones in means.T:
        left = left - np.outer(ones, ones @ left) / max(float(ones @ ones), np.finfo(float).tiny)
    return np.asarray(np.sqrt(n / max(1, len(chosen))) * np.linalg.norm(left, axis=0))


def _at_rows(gram: Gram, V: Array, chosen: Array) -> tuple[Array, Array]:
    """Return rows of K V but for multiples of some columns, and these columns."""
    if isinstance(gram, ScaledGram):
        product, means = _at_rows(gram.base, gram.scale[:, None] * V, chosen)
        scale = gram.scale[chosen, None]
        return scale * product, scale * means
    if isinstance(gram, CenteredGram):
        shifted = V - gram.weights[:, None] * V.sum(axis=0)
        product, means = _at_rows(gram.base, shifted, chosen)
        return product, np.hstack([means, np.ones((len(chosen), 1))])
    return _evaluated(gram, V, chosen), np.zeros((len(chosen), 0))


def _evaluated(gram: Gram, V: Array, chosen: Array) -> Array:
    if gram.source is not None:
        source = gram.source.in_float64()
        return np.asarray(source.cross(take(source.X, chosen)) @ V)
    precise, product = exact(gram), np.empty((len(chosen), V.shape[1]))
    step = rows_at_once(len(V), len(chosen), arrays=_ARRAYS)
    for first in range(0, len(chosen), step):
        some = slice(first, first + step)
        product[some] = precise.rows(chosen[some]).astype(np.float64, copy=False) @ V
    return product
