"""How well do kernels fit a target? Inner products of their centred matrices, and the best sum.

With row weights w of sum 1, A and B centred (A <- H A H', H = I - 1 w') and the inner product

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

from mercer.array_types import Array
from mercer.gram import FactoredGram, Gram, exact
from mercer.points import is_sparse
from mercer.resources import memory_budget

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

    Up to a factor on all kernels and one on the target, powers of two, which alignment does not see
    and without which squares of small or large values would leave the range of numbers.

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
        """Return the alignment of the sum with these weights; 0 where that is no kernel at all."""
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
    def aim(self) -> Array:
        """Return the targets, centred where matrices are; zero where no kernel could fit them."""
        Y = np.asarray(self.targets, dtype=np.float64)
        return _without(self.row_weights / self.row_weights.sum() @ Y, Y) if self.centered else Y

    @cached_property
    def moments(self) -> Moments:
        """Measure with the Grams as they are held."""
        return _moments(self, self.grams)

    def measured_anew(self) -> Moments:
        """Measure with kernels evaluated anew in float64."""
        return _moments(self, tuple(map(exact, self.grams)))


def _moments(problem: KernelAlignment, grams: tuple[Gram, ...]) -> Moments:
    share = problem.row_weights / problem.row_weights.sum()
    Y = problem.aim / 2.0 ** _exponent(problem.aim)
    weighted = share[:, None] * Y
    sides = [np.asarray(gram @ np.column_stack([weighted, share])) for gram in grams]
    sizes = zip(sides, grams, strict=True)
    halves = np.array([_exponent(side, gram.diag()) // 2 for side, gram in sizes])
    units = 4.0**-halves
    sides = [unit * side for unit, side in zip(units, sides, strict=True)]
    target = np.array([float(np.sum(weighted * side[:, :-1])) for side in sides])
    means = [side[:, -1] if problem.centered else np.zeros(len(share)) for side in sides]
    inner = _by_features(grams, units, share, problem.centered)
    if inner is None:
        inner = _by_blocks(grams, units, means, share)
    f = problem.factors / units
    f = f * 2.0 ** -_exponent(f)
    return Moments(f[:, None] * inner * f, f * target, float(np.sum((weighted.T @ Y) ** 2)))


def _exponent(*arrays: Array) -> int:
    """Return the power of two that the largest entry is near, short of where powers end."""
    largest = max(float(np.abs(values).max(initial=0.0)) for values in arrays)
    return int(np.clip(np.frexp(largest)[1], -1000, 1000))


def _by_features(
    grams: tuple[Gram, ...], units: Array, share: Array, centered: bool
) -> Array | None:
    """Return <K_k, K_l> = |F_k' W F_l|^2 where all kernels have fewer features than rows."""
    factors = [gram.factor for gram in grams if isinstance(gram, FactoredGram)]
    few = sum(factor.shape[1] for factor in factors) < len(share)
    if len(factors) < len(grams) or not few or any(map(is_sparse, factors)):
        return None
    factors = [np.sqrt(unit) * factor for unit, factor in zip(units, factors, strict=True)]
    parts = [_without(share @ factor, factor) if centered else factor for factor in factors]
    inner = np.empty((len(parts), len(parts)))
    for k, left in enumerate(parts):
        weighted = share[:, None] * left
        for other, right in enumerate(parts[: k + 1]):
            inner[k, other] = inner[other, k] = np.sum((weighted.T @ right) ** 2)
    return inner


def _by_blocks(grams: tuple[Gram, ...], units: Array, means: list[Array], share: Array) -> Array:
    """Sum over blocks of rows, so that no matrix needs to be stored."""
    n, count, root = len(share), len(grams), np.sqrt(share)
    middles = [float(share @ mean) for mean in means]
    inner, largest = np.zeros((count, count)), np.zeros(count)
    size = _rows_at_once(n, count)
    for first in range(0, n, size):
        rows = slice(first, min(first + size, n))
        block = np.empty((count, rows.stop - first, n))
        for k, (gram, mean, middle) in enumerate(zip(grams, means, middles, strict=True)):
            np.multiply(gram.rows(rows), units[k], out=block[k])
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
