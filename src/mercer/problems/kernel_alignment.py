"""How well do kernels fit a target? Inner products of their centred matrices, and the best sum.

With row weights w, A and B centred (A <- H A H', H = I - 1 w'/1'w) and the inner product

    <A, B> = sum_ij w_i w_j A_ij B_ij,

the alignment of A and B is <A, B> / sqrt(<A, A> <B, B>): the cosine of the angle between them. The
nonnegative sum of kernels that is aligned best with the target solves

    min d'Md - 2 a'd over d >= 0, M_kl = <K_k, K_l>, a_k = <K_k, Y Y'>,

up to its length, which alignment does not see.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer._points import is_sparse
from mercer._resources import memory_budget
from mercer._types import Array
from mercer.gram import FactoredGram, Gram, exact

_SHARE = 16  # of the memory budget that blocks of rows of all kernels may take
_ROUNDING = 1e-13  # of the values: what is left of a constant when its mean is taken off
_MOST = 1 << 26  # bytes of such blocks: beyond, they are no faster


@dataclass(frozen=True, eq=False)
class KernelWeights:
    """Weights of a sum of kernels.

    Attributes
    ----------
    weights : (kernels,) array
        Nonnegative, of sum 1.
    """

    weights: Array


@dataclass(frozen=True, eq=False)
class Moments:
    """Inner products of kernel matrices among themselves and with the target.

    Attributes
    ----------
    kernels : (m, m) array
        <K_k, K_l>.
    target : (m,) array
        <K_k, Y Y'>.
    size : float
        <Y Y', Y Y'>.
    """

    kernels: Array
    target: Array
    size: float

    def alignment(self, weights: Array) -> float:
        """Give the alignment of the sum with these weights; 0 where that is no kernel at all."""
        squared = float(weights @ self.kernels @ weights)
        length = np.sqrt(max(squared, 0.0)) * np.sqrt(self.size)
        if not length > 0:
            return 0.0
        return float(np.clip(weights @ self.target / length, -1.0, 1.0))


@dataclass(frozen=True, eq=False)
class KernelAlignment:
    """The sum of kernels that is aligned best with a target.

    Attributes
    ----------
    grams : tuple of Gram
        K_1, ..., K_m on the same rows.
    factors : (m,) array
        What each is multiplied by first.
    targets : (n, t) array
        Y.
    row_weights : (n,) array
        How often each row counts.
    centered : bool
        Whether matrices and target are centred.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers import solve
    >>> y = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    >>> grams = (PrecomputedGram(y @ y.T), PrecomputedGram(np.eye(4)))
    >>> problem = KernelAlignment(grams, np.ones(2), y, np.ones(4), True)
    >>> solve(problem).value.weights.round(6)
    array([1., 0.])
    """

    grams: tuple[Gram, ...]
    factors: Array
    targets: Array
    row_weights: Array
    centered: bool = True

    @cached_property
    def moments(self) -> Moments:
        """Measure with the Grams as they are held."""
        return _moments(self, self.grams)

    def measured_anew(self) -> Moments:
        """Measure with kernels evaluated anew in float64."""
        return _moments(self, tuple(map(exact, self.grams)))


def _moments(problem: KernelAlignment, grams: tuple[Gram, ...]) -> Moments:
    w, Y = problem.row_weights, np.asarray(problem.targets, dtype=np.float64)
    share = w / w.sum()
    if problem.centered:
        Y = _without(share @ Y, Y)
    weighted = w[:, None] * Y
    sides = [np.asarray(gram @ np.column_stack([weighted, share])) for gram in grams]
    target = np.array([float(np.sum(weighted * side[:, :-1])) for side in sides])
    means = [side[:, -1] if problem.centered else np.zeros(len(w)) for side in sides]
    inner = _by_features(grams, share, w, problem.centered)
    if inner is None:
        inner = _by_blocks(grams, means, share, w)
    f = problem.factors
    return Moments(f[:, None] * inner * f, f * target, float(np.sum((weighted.T @ Y) ** 2)))


def _by_features(grams: tuple[Gram, ...], share: Array, w: Array, centered: bool) -> Array | None:
    """Give <K_k, K_l> = |F_k' W F_l|^2 where all kernels have fewer features than rows."""
    factors = [gram.factor for gram in grams if isinstance(gram, FactoredGram)]
    few = sum(factor.shape[1] for factor in factors) < len(w)
    if len(factors) < len(grams) or not few or any(map(is_sparse, factors)):
        return None
    parts = [_without(share @ factor, factor) if centered else factor for factor in factors]
    inner = np.empty((len(parts), len(parts)))
    for k, left in enumerate(parts):
        weighted = w[:, None] * left
        for other, right in enumerate(parts[: k + 1]):
            inner[k, other] = inner[other, k] = np.sum((weighted.T @ right) ** 2)
    return inner


def _by_blocks(grams: tuple[Gram, ...], means: list[Array], share: Array, w: Array) -> Array:
    """Sum over blocks of rows, so that no matrix needs to be stored."""
    n, count, root = len(w), len(grams), np.sqrt(w)
    middles = [float(share @ mean) for mean in means]
    inner, largest = np.zeros((count, count)), np.zeros(count)
    size = _rows_at_once(n, count)
    for first in range(0, n, size):
        rows = slice(first, min(first + size, n))
        block = np.empty((count, rows.stop - first, n))
        for k, (gram, mean, middle) in enumerate(zip(grams, means, middles, strict=True)):
            block[k] = gram.rows(rows)
            block[k] -= mean[rows][:, None] + (mean - middle)
        largest = np.maximum(largest, np.abs(block).max(axis=(1, 2), initial=0.0))
        block *= root[rows][:, None] * root
        flat = block.reshape(count, -1)
        inner += flat @ flat.T
    level = np.array([np.abs(mean).max(initial=0.0) for mean in means])
    constant = largest <= _ROUNDING * level
    inner[constant], inner[:, constant] = 0.0, 0.0
    return inner


def _without(mean: Array, values: Array) -> Array:
    """Take the mean off; what rounding leaves of columns that are constant is nothing."""
    rest = values - mean
    constant = np.abs(rest).max(axis=0) <= _ROUNDING * np.abs(values).max(axis=0)
    return np.where(constant, 0.0, rest)


def _rows_at_once(n: int, count: int) -> int:
    most = min(_MOST, memory_budget() // _SHARE)
    return max(1, int(most // (8 * n * count)))
