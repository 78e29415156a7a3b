"""From a Gram to principal components: which eigenpairs, how many, which are only rounding.

Rows of weight s count s times, so the matrix is S^1/2 H K H' S^1/2, H taking off the weighted mean;
with an eigenvector u, the direction is v = sum_i sqrt(s_i / m) u_i phi(x_i), and the score of row i
is sqrt(m / s_i) u_i. Signs: in each column of training scores the entry of largest magnitude is
positive, the first of those that tie.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.certificates import Certificate, EigenQuantities
from mercer.certificates.spectral.complement import probe_complement
from mercer.gram import Gram, centered, exact, scaled
from mercer.gram.policy import LAPACK_ROWS
from mercer.gram.storage.precomputed import MatrixExpansion
from mercer.machines.projection.subspace import (
    FeatureSubspace,
    MatrixSubspace,
    PointSubspace,
    Subspace,
)
from mercer.points import is_sparse, to_dense
from mercer.problems import Eigenproblem, Modes
from mercer.solvers import Solution, Status
from mercer.solvers.spectral.signs import signs_of

_EPS = float(np.finfo(np.float64).eps)
_SMALLEST = 1e-12  # of the largest eigenvalue of a matrix: below, scores of new points are noise
_CLEARLY = 1e-6  # of the largest eigenvalue: a negative one below is no rounding of the entries
_FIRST = 32  # pairs asked for at first when a share of the variance is wanted

Solve = Callable[[Eigenproblem], Solution]


@dataclass(frozen=True, eq=False)
class Centred:
    """The question of PCA: principal components of a Gram whose rows count `weights` times.

    Attributes
    ----------
    gram : Gram
        K, not centred.
    weights : (n,) array
        Positive weights.
    size : float
        The sum of s_i k(x_i, x_i) before anything was taken off: what rounding is measured by.
    eps : float
        How finely the entries of K are known.
    """

    gram: Gram
    weights: Array
    size: float
    eps: float = _EPS
    called: ClassVar[str] = "centred kernel matrix"
    nothing: ClassVar[str] = "the rows do not vary"

    @property
    def most(self) -> int:
        """Return the largest number of components that there can be."""
        return max(1, min(self.gram.shape[0] - 1, self.gram.rank))

    def problem(self, count: int) -> Eigenproblem:
        """Ask for the largest pairs."""
        return self.pairs(self.gram, self.weights, count)

    @staticmethod
    def pairs(gram: Gram, weights: Array, count: int) -> Eigenproblem:
        """Ask for the largest pairs of the centred, weighted Gram."""
        return pairs_of(gram, weights, count)

    def variances(self, eigenvalues: Array) -> Array:
        """Return variances of scores."""
        total = float(self.weights.sum())
        return np.asarray(eigenvalues / (total - 1.0 if total > 1 else total))

    def subspace(self, coef: Array, rank: int) -> Subspace:
        """Return what scores new points."""
        return subspace(self, coef, rank)

    def feature_subspace(self, features: Any, F: Any, coef: Array, rank: int) -> FeatureSubspace:
        """Collapse coefficients to orthonormal directions among the features."""
        return feature_subspace(features, F, coef, self.weights, rank)

    def rounding(self, top: float) -> float:
        """Return what an eigenvalue must exceed to be one."""
        tiny = (4 * _EPS) ** 2 * max(self.gram.rank, self.gram.shape[0]) * self.size
        if isinstance(self.gram.factor, np.ndarray):
            return tiny  # from singular values of the centred features themselves
        held = float(self.weights @ np.abs(self.gram.diag()))
        return max(_SMALLEST * top, 16 * self.eps * held, tiny)


def pairs_of(gram: Gram, weights: Array, count: int) -> Eigenproblem:
    """Ask for the largest pairs of the centred, weighted Gram."""
    if (weights == weights[0]).all():
        unit = centered(gram)
        return Eigenproblem(unit if weights[0] == 1 else scaled(unit, np.sqrt(weights)), count)
    return Eigenproblem(scaled(centered(gram, weights), np.sqrt(weights)), count)


def leading(
    question: Centred, n_components: int | float | None, solve: Solve
) -> tuple[Solution, float]:
    """Return the wanted pairs that are not rounding, signs fixed.

    Parameters
    ----------
    question : Centred
        What is asked.
    wanted : int, float or None
        How many; or the share of the variance that they explain; or all.
    solve : callable
        Answers an eigenproblem.

    Returns
    -------
    Solution
        With `Modes`: possibly fewer than wanted, possibly none.
    float
        The sum of all positive eigenvalues that were found on the way.
    """
    most = question.most
    by_share = n_components is not None and not isinstance(n_components, Integral)
    if by_share:
        trace = float(question.problem(1).gram.diag().sum())
        solution = _enough(question, float(n_components or 0) * trace, solve)
    else:
        count = most if n_components is None else min(int(n_components), most)
        solution = solve(question.problem(count))
    _warn_of_negative(question, solution.value)
    modes = _kept(question, solution.value)
    found = float(modes.values.sum())
    if by_share:  # of the positive part, where a kernel is not valid
        modes = _fewest(modes, float(n_components or 0) * max(trace, found))
    return replace(solution, value=modes), found


def _enough(question: Centred, aim: float, solve: Solve) -> Solution:
    """Double the number of pairs until they explain enough."""
    most = question.most
    few = question.gram.shape[0] <= LAPACK_ROWS or question.gram.factor is not None
    count = most if few else min(_FIRST, most)
    while True:
        solution = solve(question.problem(count))
        kept = _kept(question, solution.value).values
        ended = solution.status is not Status.SOLVED  # more pairs would only take more time
        if ended or len(kept) < count or kept.sum() >= aim or count == most:
            return solution
        count = min(2 * count, most)  # anew: the pairs found would save a pass or two of a dozen


def _fewest(modes: Modes, aim: float) -> Modes:
    first = int(np.searchsorted(np.cumsum(modes.values), aim * (1 - 4 * _EPS)))
    return Modes(modes.values[: first + 1], modes.vectors[:, : first + 1])


def _warn_of_negative(question: Centred, modes: Modes) -> None:
    """Warn of a kernel that is not valid, where what was found shows it."""
    if question.gram.valid:
        return
    values = modes.values
    top = float(np.abs(values).max(initial=0.0))
    found = float(values[values > 0].sum())
    trace = float(question.problem(1).gram.diag().sum())
    if values.min(initial=0.0) < -_CLEARLY * top or found > trace + _CLEARLY * (abs(trace) + top):
        warnings.warn(
            f"PCA: the {question.called} has negative eigenvalues; only positive ones make "
            "components, and shares of the variance are of the positive part that was found. Use a "
            "valid kernel (mercer.kernels.is_valid tells)",
            UserWarning,
            stacklevel=5,
        )


def _kept(question: Centred, modes: Modes) -> Modes:
    top = float(modes.values.max(initial=0.0))
    kept = modes.values > question.rounding(top)
    values, vectors = modes.values[kept], modes.vectors[:, kept]
    vectors *= signs_of(vectors / np.sqrt(question.weights)[:, None])  # a copy already
    return Modes(values, vectors)


def judge_nothing(
    problem: Eigenproblem, rounding: float, nothing: str = Centred.nothing
) -> Certificate:
    """Judge the answer that there is no component: all of the matrix is rounding, or negative."""
    diagonal = exact(problem.gram).diag()
    trace = float(np.abs(diagonal).sum())
    statement = f"{nothing}: the trace, {trace:.1e}, is rounding"
    ok = trace <= len(diagonal) * rounding
    if not ok:
        largest = probe_complement(
            problem.gram, np.zeros((len(diagonal), 0)), rounding, trace
        ).found
        ok = not problem.gram.valid and largest <= rounding
        statement = f"the largest eigenvalue, {largest:.1e}, is " + (
            "not positive: the kernel is not valid" if ok else "positive: the rows vary"
        )
    return Certificate(ok, EigenQuantities(0.0, 0.0, 1.0, 0.0), rounding, statement)


def dual_coefficients(modes: Modes, weights: Array, count: int) -> Array:
    """Return coefficients of the centred training points: (n, count), zero beyond the rank."""
    coef = np.zeros((len(weights), count))
    found = coef[:, : len(modes.values)]
    np.divide(modes.vectors, np.sqrt(modes.values), out=found)
    found *= np.sqrt(weights)[:, None]
    return coef


def subspace(question: Centred, coef: Array, rank: int) -> Subspace:
    """Return what scores new points."""
    gram, weights = question.gram, question.weights
    if gram.factor is not None:
        return feature_subspace(gram.features, gram.factor, coef, weights, rank)
    shares = weights / weights.sum()
    coef = coef - shares[:, None] * coef.sum(axis=0)
    if gram.source is None:  # a given matrix
        means = np.asarray(gram @ shares, dtype=np.float64)
        spread = float(weights @ gram.diag() - weights.sum() * (shares @ means))
        expansion = gram.expand(coef).plus(-(means @ coef))
        assert isinstance(expansion, MatrixExpansion)
        return MatrixSubspace(expansion, spread)
    return PointSubspace(gram.source, coef, weights)


def feature_subspace(
    features: Any, F: Any, coef: Array, weights: Array, rank: int
) -> FeatureSubspace:
    """Collapse coefficients to orthonormal directions among the features."""
    mean, spread = moments(F, weights)
    table = to_dense(F.T @ coef[:, :rank]) - np.outer(mean, coef[:, :rank].sum(axis=0))
    return FeatureSubspace(features, mean, orthonormal(table, coef.shape[1]), spread)


def orthonormal(table: Array, count: int) -> Array:
    """Return orthonormal columns from nearly orthogonal ones, and zeros up to their number."""
    # small ones are contaminated by the large; taken in turn, the large are removed again
    Q, R = np.linalg.qr(table)
    directions = np.zeros((len(table), count))
    directions[:, : table.shape[1]] = Q * np.where(R.diagonal() < 0, -1.0, 1.0)
    return directions


def moments(F: Any, weights: Array) -> tuple[Array, float]:
    """Return the weighted mean of rows, and the weighted sum of squared distances from it."""
    share = weights / weights.sum()
    mean = np.asarray(share @ F).ravel()
    with np.errstate(over="ignore", invalid="ignore"):  # refused beside the kernel's own values
        if is_sparse(F):
            return mean, _sparse_spread(F, weights, mean)
        left = np.zeros(len(mean))  # of the mean, by rounding
        for part in deadline.row_slices(*F.shape):
            left += share[part] @ (F[part] - mean)
        mean, spread = mean + left, 0.0
        for part in deadline.row_slices(*F.shape):
            spread += float(weights[part] @ np.square(F[part] - mean).sum(axis=1))
        return mean, spread


def _sparse_spread(F: Any, weights: Array, mean: Array) -> float:
    """Sum squared distances from the mean, entries that are there apart from those that are not."""
    F = F.tocsr()
    if not F.has_canonical_format:
        F = F.copy()
        F.sum_duplicates()
    each = np.repeat(weights, np.diff(F.indptr))
    d = F.shape[1]
    here = np.bincount(F.indices, each, minlength=d)
    full = np.bincount(F.indices, minlength=d) == F.shape[0]
    absent = np.where(full, 0.0, np.maximum(weights.sum() - here, 0.0))
    return float(each @ np.square(F.data - mean[F.indices]) + absent @ np.square(mean))


def shifted(X: Points, weights: Array) -> tuple[Points, Array]:
    """Return dense rows less their mean: a linear kernel on them loses nothing to a far origin."""
    mean = moments(X.astype(np.float64, copy=False), weights)[0]
    return X - mean, mean
