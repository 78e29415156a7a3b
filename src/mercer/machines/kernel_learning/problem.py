"""Kernel learning problems: alignment, weights of a sum of kernels, scales of features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from mercer.array_types import Array, Points
from mercer.expression import Expression, Statistic
from mercer.gram import FactoredGram, Gram, exact
from mercer.machines.gaussian_process.marginal_likelihood import Inverted
from mercer.machines.svm.problem import BoxQP, Duals, Many
from mercer.resources import memory_budget
from mercer.rows.points import is_sparse
from mercer.solvers.bounded_descent import BoundedSearch

# --- weights by a loss ---------------------------------------------------------------------------
#
# Multiple kernel learning: the sum of kernels, weights on a simplex, of the smallest loss.
#
# A machine that is a box programme has, for K = sum_m d_m f_m K_m, the optimal value
#
#     J(d) = max over b of p'b - b'K(d)b/2 - epsilon'|b|,
#
# a convex function of d (a maximum of linear ones). The best weights minimise it over d >= 0 of
# sum 1; for several programmes (pairs of classes, several targets) that share the weights, its
# sum over them. Every b that the boxes admit bounds the minimum from below, since a minimum of a
# maximum is at least the maximum of the minimum:
#
#     p'b - epsilon'|b| - max_m f_m b'K_m b/2 <= min J <= J(d).


@dataclass(frozen=True, eq=False)
class WeightedDuals:
    """An answer to a `KernelCombination`.

    Attributes
    ----------
    weights : (kernels,) array
        d: nonnegative, of sum 1.
    duals : Duals
        The answers to the programmes on the weighted sum.
    """

    weights: Array
    duals: Duals


@dataclass(frozen=True, eq=False)
class KernelCombination:
    """The weights of kernels for which box programmes have the smallest optimal value.

    Attributes
    ----------
    grams : tuple of Gram
        K_1, ..., K_m on the same rows.
    factors : (m,) array
        What each is multiplied by first, f.
    question : callable
        Writes the programmes (`BoxQP` or `Many`) on a Gram of those rows. Boxes, linear terms and
        what is added to the diagonal must not depend on the Gram.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.machines.svm import problem as svm
    >>> from mercer.solvers import solve
    >>> y = np.array([1.0, 1.0, -1.0, -1.0])
    >>> grams = (PrecomputedGram(np.eye(4)), PrecomputedGram(np.outer(y, y)))
    >>> question = lambda gram: svm.svc(gram, y, np.full(4, 10.0))
    >>> solve(KernelCombination(grams, np.ones(2), question)).value.weights.round(6)
    array([0., 1.])
    """

    grams: tuple[Gram, ...]
    factors: Array
    question: Callable[[Gram], BoxQP | Many]

    def programmes(self, gram: Gram) -> tuple[BoxQP, ...]:
        """Write all programmes on a Gram."""
        asked = self.question(gram)
        return asked.problems if isinstance(asked, Many) else (asked,)

    def products(self, columns: Array, grams: tuple[Gram, ...] | None = None) -> Array:
        """Return f_m K_m times columns (n, k) for every kernel: (m, n, k)."""
        grams = self.grams if grams is None else grams
        parts = (f * (gram @ columns) for f, gram in zip(self.factors, grams, strict=True))
        return np.stack([np.asarray(part) for part in parts])


def on_all_rows(programmes: tuple[BoxQP, ...], coefs: list[Array], n: int) -> Array:
    """Put the variables of all programmes side by side, one row for each row of the Gram."""
    columns = np.zeros((n, len(programmes)))
    for k, (programme, b) in enumerate(zip(programmes, coefs, strict=True)):
        index = programme.unwrapped.index
        columns[:, k] = b if index is None else np.bincount(index, b, n)
    return columns


def on_own_rows(programme: BoxQP, column: Array) -> Array:
    """Read the rows of one programme from a column of all rows."""
    index = programme.unwrapped.index
    return column if index is None else column[index]


# --- weights by alignment ------------------------------------------------------------------------
#
# Inner products of centered kernel matrices and a target, and the best aligned sum.
#
# With row weights w of sum 1, A and B centred (A <- H A H', H = I - 1 w') and the inner product
#
#     <A, B> = sum_ij w_i w_j A_ij B_ij,
#
# the alignment of A and B is <A, B> / sqrt(<A, A> <B, B>): the cosine of the angle between them.
# The nonnegative sum of kernels that is aligned best with the target solves
#
#     min d'Md - 2 a'd over d >= 0, M_kl = <K_k, K_l>, a_k = <K_k, Y Y'>,
#
# up to its length, which alignment does not see.

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
class AlignmentMoments:
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
    def moments(self) -> AlignmentMoments:
        """Measure with the Grams as they are held."""
        return _moments(self, self.grams)

    def measured_anew(self) -> AlignmentMoments:
        """Measure with kernels evaluated anew in float64."""
        return _moments(self, tuple(map(exact, self.grams)))


def _moments(problem: KernelAlignment, grams: tuple[Gram, ...]) -> AlignmentMoments:
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
    return AlignmentMoments(
        f[:, None] * inner * f, f * target, float(np.sum((weighted.T @ Y) ** 2))
    )


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


# --- scales of features --------------------------------------------------------------------------
#
# One scale for each feature, by the leave-one-out error or the likelihood of ridge regression.
#
# With K of the scales, C = K + penalty S^-1 (S the row weights) and G = C^-1 (G - u u'/1'u, u = G
# 1, with a bias), the coefficients are a = G y and dG = -G dC G. Both measures have slopes of the
# form <M, dC> for one matrix M, whatever the parameter is:
#
# leave-one-out
#     E = sum_i s_i (a_i / k_i)^2 / sum s, k_i = G_ii for rows that count once:
#     M = G diag(c) G - (a (G v)' + (G v) a')/2 with v_i = 2 s_i a_i / k_i^2 / sum s and
#     c_i = v_i a_i / k_i;
# likelihood
#     of y under a Gaussian process with covariance sigma^2 C, sigma^2 at its best (and a constant
#     mean integrated out, with a bias): M = (G - a a' / sigma^2) / 2 for each target.


@dataclass(frozen=True, eq=False)
class Measured:
    """A measure of a fit, and what is needed for its slopes.

    Attributes
    ----------
    value : float
        What is minimised: free of the units of the targets.
    M : (n, n) array
        The slope in C: dvalue = <M, dC>.
    direct : float
        The slope in the penalty that does not come through C.
    """

    value: float
    M: Array
    direct: float


@dataclass(frozen=True)
class RidgeMeasure(ABC):
    """How a ridge fit is judged while its scales are learnt."""

    name: ClassVar[str]

    @abstractmethod
    def __call__(self, problem: Relevance, found: Inverted) -> Measured:
        """Measure."""

    @abstractmethod
    def reported(self, problem: Relevance, value: float) -> float:
        """Turn what is minimised into what people know it by."""


class LeaveOneOut(RidgeMeasure):
    """The logarithm of the mean squared leave-one-out error."""

    name = "loo"

    def __call__(self, problem: Relevance, found: Inverted) -> Measured:
        """Measure the errors of fits without one copy of each row."""
        s, a, p = problem.row_weights[:, None], found.coef, found.penalty
        more = np.maximum(s - 1.0, 0.0)
        stiff = more / p + found.G.diagonal()[:, None] / np.maximum(1.0, s)
        error = float(np.sum(s * (a / stiff) ** 2) / s.sum())
        v = 2.0 * s * a / stiff**2 / s.sum()
        c = np.sum(v * a / stiff, axis=1)
        pulled = found.G @ v
        M = (found.G * (c / np.maximum(1.0, s[:, 0]))) @ found.G
        for t in range(a.shape[1]):
            cross = np.outer(a[:, t], pulled[:, t])
            M -= 0.5 * (cross + cross.T)
        return Measured(float(np.log(error)), M / error, float(c @ more[:, 0]) / p**2 / error)

    def reported(self, problem: Relevance, value: float) -> float:
        """Return the mean squared error."""
        return float(np.exp(value))


class Likelihood(RidgeMeasure):
    """Minus the logarithm of the marginal likelihood, of one row and target on the average."""

    name = "likelihood"

    def __call__(self, problem: Relevance, found: Inverted) -> Measured:
        """Measure how likely the targets are."""
        total, targets = float(problem.row_weights.sum()), found.coef.shape[1]
        free = total - problem.bias
        squares = np.sum(found.coef * problem.targets, axis=0)
        copies = total - len(problem.row_weights)
        log_likelihood = (
            targets * (found.log_determinant + copies * np.log(found.penalty))
            + float(np.sum(free * np.log(squares / free)))
            + targets * free * (1.0 + np.log(2.0 * np.pi))
        )
        unit = 0.5 / (total * targets)
        M = targets * found.G - (found.coef * (free / squares)) @ found.coef.T
        direct = unit * targets * copies / found.penalty
        return Measured(unit * log_likelihood, unit * M, direct)

    def reported(self, problem: Relevance, value: float) -> float:
        """Return the logarithm of the likelihood of all rows."""
        return float(-value * problem.row_weights.sum() * problem.targets.shape[1])


@dataclass(frozen=True, eq=False)
class Scaled:
    """An answer to `Relevance`.

    Attributes
    ----------
    scales : (d,) array
        One for each feature.
    penalty : float
        Of the ridge.
    """

    scales: Array
    penalty: float

    @property
    def logs(self) -> Array:
        """Return the logarithms, those of the scales first."""
        return np.asarray(np.log(np.append(self.scales, self.penalty)))


@dataclass(frozen=True, eq=False)
class Relevance(BoundedSearch):
    """Scales of features, and the penalty, for which ridge regression is judged best.

    Attributes
    ----------
    X : Points
        Rows.
    family : callable
        Returns a kernel's formula, and the distance in it that is stretched, for given scales.
    targets : (n, t) array
        y.
    row_weights : (n,) array
        Positive: how often each row counts.
    measure : RidgeMeasure
        How fits are judged.
    bias : bool
        Whether there is an unpenalised bias.
    lower, upper : (d + 1,) array
        Bounds on the logarithms of the scales and, last, of the penalty.
    starts : (k, d + 1) array
        Logarithms to start from.
    """

    X: Points
    family: Callable[[Array], tuple[Expression, Statistic]]
    targets: Array
    row_weights: Array
    measure: RidgeMeasure
    bias: bool
    lower: Array
    upper: Array
    starts: Array

    def at(self, logs: Array) -> Scaled:
        """Read scales and penalty from their logarithms."""
        values = np.exp(np.clip(logs, self.lower, self.upper))
        return Scaled(values[:-1], float(values[-1]))
