"""From a Gram to principal components: leading eigenpairs, subspaces, and scores."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.gram import Expansion, Gram, Need, Source, centered, exact, make_gram, scaled
from mercer.gram.factored import over_features
from mercer.gram.policy import FLOAT32_TOL_COMPONENTS, FREE_ROWS, LAPACK_ROWS, stored_dtype
from mercer.gram.precomputed import MatrixExpansion
from mercer.kernels import Kernel, Linear, Precomputed
from mercer.resources import require_memory, within_budget
from mercer.rows.points import is_objects, is_sparse, row_count, to_dense
from mercer.solvers.base import Solution, Status
from mercer.solvers.certificate import Certificate
from mercer.solvers.eigen.certificate import EigenQuantities, probe_complement
from mercer.solvers.eigen.dense import signs_of
from mercer.solvers.eigen.problem import Eigenproblem, Modes

# --- origin --------------------------------------------------------------------------------------
#
# Dense rows of a linear kernel moved to the origin before they are compared.
#
# Where K has fewer rows than there are columns, products of rows far from the origin carry none
# of the digits in which the rows differ, and no centring of K brings them back. Machines that do
# not care where the origin is compare rows less their mean, and new rows less the same.


@dataclass(frozen=True, eq=False)
class MovedExpansion(Expansion):
    """Functions of rows less a mean.

    Attributes
    ----------
    base : Expansion
        The functions.
    mean : (d,) array
        What is taken off every row first.
    """

    base: Expansion
    mean: Array

    def __call__(self, Z: Points) -> Array:
        """Evaluate at new points."""
        return self.base(Z - self.mean)

    def plus(self, offset: Array) -> MovedExpansion:
        """Add to the constant."""
        return replace(self, base=self.base.plus(offset))


def near_origin(kernel: Kernel, X: Points, rows: Array, weights: Array) -> tuple[Points, Any]:
    """Return rows less the mean of those that count, and that mean; None where nothing is gained.

    Parameters
    ----------
    kernel : Kernel
        What compares the rows.
    X : Points
        All rows.
    rows : (m,) int array
        Those that count.
    weights : (n,) array
        How often each row counts.
    """
    if not isinstance(kernel, Linear) or is_objects(X) or is_sparse(X):
        return X, None
    if X.shape[1] < len(rows):  # compared by features, which are centred themselves
        return X, None
    require_memory(16 * X.size, "a copy of the rows", "Use fewer rows.")
    mean = shifted(X[rows], weights[rows])[1]
    return X - mean, mean


def moved(expansion: Expansion, mean: Any) -> Expansion:
    """Take the mean off new rows, too."""
    return expansion if mean is None else MovedExpansion(expansion, mean)


# --- subspace ------------------------------------------------------------------------------------
#
# A mean and a few directions in feature space: scores of new points, and their distance from it.
#
# Where the directions are held as weights of features, everything is done there. Where they are
# held as coefficients of training points, what centres new points, w'K, is one pass over the
# kernel: it is made when the first new point comes, since many fits never see one.

_ARRAYS = 5  # of features: as they are, centred, projected, what is left, and its squares
HEAVY = 32  # columns of sparse rows that may be filled in


class Subspace(ABC):
    """Orthonormal directions v_1..v_k from a mean; some may be zero."""

    @abstractmethod
    def scores(self, Z: Points) -> Array:
        """Return v_j'(phi(z) - mean): (len(Z), k)."""

    @abstractmethod
    def squared_distances(self, Z: Points) -> Array:
        """Return the squared distance of phi(z) from the subspace: (len(Z),), never negative."""

    @property
    @abstractmethod
    def total(self) -> float:
        """Return the sum of squared distances of the training points from their mean."""


@dataclass(frozen=True, eq=False)
class FeatureSubspace(Subspace):
    """Directions as weights of features.

    Attributes
    ----------
    features : callable
        The feature map.
    mean : (D,) array
        The mean of the features.
    directions : (D, k) array
        Orthonormal columns, or zero ones.
    spread : float
        The sum of squared distances of the training points from their mean.
    """

    features: Callable[[Any], Any]
    mean: Array
    directions: Array
    spread: float

    def scores(self, Z: Points) -> Array:
        """Project features less their mean."""
        return over_features(self._projected, self.features, Z, len(self.mean))

    def squared_distances(self, Z: Points) -> Array:
        """Measure what the projection leaves."""
        return over_features(self._left, self.features, Z, len(self.mean), _ARRAYS)

    @property
    def total(self) -> float:
        """Return the spread of the training points."""
        return self.spread

    def _projected(self, F: Any) -> Array:
        if is_sparse(F):
            return np.asarray(F @ self.directions - self.mean @ self.directions)
        return np.asarray((F - self.mean) @ self.directions)

    def _left(self, F: Any) -> Array:
        if is_sparse(F):
            return left_of(_from_mean(F, self.mean), self._projected(F))
        centred = F - self.mean
        left = centred - (centred @ self.directions) @ self.directions.T
        return np.asarray(np.einsum("ij,ij->i", left, left))


@dataclass(frozen=True, eq=False)
class PointSubspace(Subspace):
    """Directions as coefficients of training points.

    Attributes
    ----------
    source : Source
        The kernel and the training points.
    coef : (n, k) array
        Coefficients; each column sums to zero.
    weights : (n,) array
        How often each point counts.
    """

    source: Source
    coef: Array
    weights: Array

    @cached_property
    def shares(self) -> Array:
        """The weight of each point in the mean."""
        return np.asarray(self.weights / self.weights.sum())

    @cached_property
    def centre(self) -> Array:
        """The mean of all functions over the training points; of the mean function last."""
        table = np.column_stack([self.coef, self.shares])
        return np.asarray(self.shares @ (exact(self.source) @ table))

    def scores(self, Z: Points) -> Array:
        """Evaluate without storing K(Z, points)."""
        pairs = self._pairs(Z)
        return np.asarray(pairs @ self.coef - self.centre[:-1])

    def squared_distances(self, Z: Points) -> Array:
        """Return k(z, z) centred, less the squared scores."""
        values = np.asarray(self._pairs(Z) @ np.column_stack([self.coef, self.shares]))
        own = Source(self.source.expression, Z).diag()
        with np.errstate(over="ignore", invalid="ignore"):
            squared = own - 2.0 * values[:, -1] + self.centre[-1]
            return left_of(squared, values[:, :-1] - self.centre[:-1])

    @property
    def total(self) -> float:
        """Return the trace of the centred, weighted kernel matrix."""
        own = self.source.diag()
        return float(self.weights @ own - self.weights.sum() * self.centre[-1])

    def _pairs(self, Z: Points) -> Any:
        # in float64 whatever the rows are: coefficients may be large
        return self.source.in_float64().cross(Z)


@dataclass(frozen=True, eq=False)
class MatrixSubspace(Subspace):
    """Directions as coefficients of the columns of matrices to come.

    Attributes
    ----------
    expansion : MatrixExpansion
        The scores.
    spread : float
        The trace of the centred, weighted kernel matrix.
    """

    expansion: MatrixExpansion
    spread: float

    def scores(self, Z: Points) -> Array:
        """Multiply the matrix of new points against training points."""
        return self.expansion(Z)

    def squared_distances(self, Z: Points) -> Array:
        """Refuse: k(z, z) is not in the matrix."""
        raise ValueError(
            "the distance of new rows from the subspace needs k(z, z), which a precomputed matrix "
            f"of {row_count(Z)} new rows against training rows does not hold; pass a kernel and "
            "rows instead"
        )

    @property
    def total(self) -> float:
        """Return the spread of the training points."""
        return self.spread


def _from_mean(F: Any, mean: Array) -> Array:
    """Return |f - mean|^2 of sparse rows; columns of large mean, which cancel, are filled in."""
    heavy = np.argsort(-np.abs(mean), kind="stable")[:HEAVY]
    near = F[:, heavy].toarray() - mean[heavy]
    rest = np.delete(np.arange(len(mean)), heavy)
    F, mean = F[:, rest], mean[rest]
    own = np.asarray(F.multiply(F).sum(axis=1)).ravel()
    return np.asarray(np.square(near).sum(axis=1) + own - 2.0 * (F @ mean) + mean @ mean)


def left_of(squared: Array, scores: Array) -> Array:
    """Return squared lengths less the squared scores, never negative."""
    return np.asarray(np.maximum(squared - np.einsum("ij,ij->i", scores, scores), 0.0))


# --- reduced subspace ----------------------------------------------------------------------------
#
# Directions and mean of a compressed machine: few vectors stand for the training points.


@dataclass(frozen=True, eq=False)
class ReducedSubspace(Subspace):
    """Directions, and the mean of the training points, as coefficients of a few vectors.

    Attributes
    ----------
    source : Source
        The kernel and the vectors.
    coef : (m, k) array
        Coefficients of the directions.
    mean : (m,) array
        Coefficients of the mean.
    spread : float
        The sum of squared distances of the training points from their mean.
    """

    source: Source
    coef: Array
    mean: Array
    spread: float

    @cached_property
    def centre(self) -> Array:
        """The inner products of the mean with all directions; with itself last."""
        if not len(self.mean):
            return np.zeros(self.coef.shape[1] + 1)
        return np.asarray(self.mean @ (exact(self.source) @ self._table))

    def scores(self, Z: Points) -> Array:
        """Evaluate without storing K(Z, vectors)."""
        return np.asarray(self._values(Z)[:, :-1] - self.centre[:-1])

    def squared_distances(self, Z: Points) -> Array:
        """Return k(z, z) centred, less the squared scores."""
        values = self._values(Z)
        own = Source(self.source.expression, Z).diag()
        with np.errstate(over="ignore", invalid="ignore"):
            squared = own - 2.0 * values[:, -1] + self.centre[-1]
            return left_of(squared, values[:, :-1] - self.centre[:-1])

    @property
    def total(self) -> float:
        """Return the spread of the training points."""
        return self.spread

    @property
    def _table(self) -> Array:
        return np.column_stack([self.coef, self.mean])

    def _values(self, Z: Points) -> Array:
        if not len(self.mean):
            return np.zeros((Z.shape[0], self.coef.shape[1] + 1))
        return np.asarray(self.source.in_float64().cross(Z) @ self._table)


# --- components ----------------------------------------------------------------------------------
#
# From a Gram to principal components: which eigenpairs, how many, which are only rounding.
#
# Rows of weight s count s times, so the matrix is S^1/2 H K H' S^1/2, H taking off the weighted
# mean; with an eigenvector u, the direction is v = sum_i sqrt(s_i / m) u_i phi(x_i), and the
# score of row i is sqrt(m / s_i) u_i. Signs: in each column of training scores the entry of
# largest magnitude is positive, the first of those that tie.

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


# --- uncentred -----------------------------------------------------------------------------------
#
# Principal components about the origin: nothing is taken off rows, and energy is what they have.
#
# The matrix is S^1/2 K S^1/2, its trace the energy sum_i s_i k(x_i, x_i): squared distances from
# the origin instead of the mean. What `components.py` has for rows less their mean is here
# without.


class Uncentred(Centred):
    """The question of PCA without centring."""

    called = "kernel matrix"
    nothing = "the rows are zero"

    @property
    def most(self) -> int:
        """Return the largest number of components that there can be."""
        return max(1, min(self.gram.shape[0], self.gram.rank))

    @staticmethod
    def pairs(gram: Gram, weights: Array, count: int) -> Eigenproblem:
        """Ask for the largest pairs of the weighted Gram."""
        if (weights == 1).all():
            return Eigenproblem(gram, count)
        return Eigenproblem(scaled(gram, np.sqrt(weights)), count)

    def variances(self, eigenvalues: Array) -> Array:
        """Return mean squares of scores."""
        return np.asarray(eigenvalues / float(self.weights.sum()))

    def subspace(self, coef: Array, rank: int) -> Subspace:
        """Return what scores new points."""
        gram, weights = self.gram, self.weights
        if gram.factor is not None:
            return self.feature_subspace(gram.features, gram.factor, coef, rank)
        if gram.source is None:  # a given matrix
            expansion = gram.expand(coef)
            assert isinstance(expansion, MatrixExpansion)
            return MatrixSubspace(expansion, float(weights @ gram.diag()))
        return OriginSubspace(gram.source, coef, weights)

    def feature_subspace(self, features: Any, F: Any, coef: Array, rank: int) -> FeatureSubspace:
        """Collapse coefficients to orthonormal directions among the features."""
        directions = orthonormal(to_dense(F.T @ coef[:, :rank]), coef.shape[1])
        squares = F.multiply(F).sum(axis=1) if is_sparse(F) else np.square(F).sum(axis=1)
        energy = float(self.weights @ np.asarray(squares).ravel())
        return FeatureSubspace(features, np.zeros(F.shape[1]), directions, energy)


@dataclass(frozen=True, eq=False)
class OriginSubspace(PointSubspace):
    """Directions as coefficients of training points, from the origin of feature space."""

    @cached_property
    def shares(self) -> Array:
        """The weight of each point in what is taken off: none."""
        return np.zeros(len(self.weights))

    @cached_property
    def centre(self) -> Array:
        """What is taken off all functions: nothing."""
        return np.zeros(self.coef.shape[1] + 1)


# --- centred rows --------------------------------------------------------------------------------
#
# How PCA has K held: by what is wanted of it, and by whose features are at hand.

_FEWER = "a number of components (n_components=10: a few products, never stores the matrix)"
_TINY = 1e-20  # entries of X: above, no kernel of use underflows
_NO_DIGITS = 1e-290  # kernel values: below, the smaller variances are lost
_FAR = 1e4  # variances of a row: a squared mean above costs digits of K
_ALL = 8  # matrices held for all components: K, its decomposition, coefficients and scores
_FEW = 10  # rows for each component: fewer, and all pairs are found at once


def centred_rows(machine: Any, X: Points, used: Points, rows: Array, weights: Array) -> Centred:
    """Put the question of PCA.

    Parameters
    ----------
    machine : PCA
        With `kernel_` resolved.
    X : Points
        All rows, or the precomputed matrix.
    used : Points
        The rows of positive weight.
    rows : (m,) int array
        Which these are.
    weights : (m,) array
        Their weights.
    """
    linear = isinstance(machine.kernel_, Linear) and not is_objects(used)
    if linear and is_sparse(used):
        near, mean = _nearer(_thin(machine, used), weights)
        gram = _gram(machine, near, None)
        return Centred(gram, weights, _size(gram, weights) + float(weights.sum() * (mean @ mean)))
    if linear and used.shape[1] >= len(weights):  # centred first: a far origin costs nothing then
        near, mean = shifted(used, weights)
        gram = _gram(machine, near, None)
        size = _size(gram, weights) + float(weights.sum() * (mean @ mean))
        return Centred(gram, weights, size)
    if isinstance(machine.kernel_, Precomputed):
        gram = _gram(machine, X.astype(np.float64, copy=False), rows)
        known = float(np.finfo(X.dtype).eps)
        return Centred(gram, weights, _size(gram, weights), known)
    gram = _gram(machine, used, None)
    return Centred(gram, weights, _size(gram, weights))


def uncentred_rows(machine: Any, X: Points, used: Points, rows: Array, weights: Array) -> Uncentred:
    """Put the question of PCA without centring; see `centred_rows`."""
    if isinstance(machine.kernel_, Precomputed):
        gram = _gram(machine, X.astype(np.float64, copy=False), rows)
        return Uncentred(gram, weights, _size(gram, weights), float(np.finfo(X.dtype).eps))
    thin = isinstance(machine.kernel_, Linear) and is_sparse(used)
    gram = _gram(machine, _thin(machine, used) if thin else used, None)
    return Uncentred(gram, weights, _size(gram, weights))


def _size(gram: Gram, weights: Array) -> float:
    return float(weights @ np.abs(gram.diag()))


def _nearer(X: Points, weights: Array) -> tuple[Points, Array]:
    """Return sparse rows, and what was taken off: the mean of the few columns that lie far away."""
    if not is_sparse(X):
        return X, np.zeros(1)
    mean, spread = moments(X.astype(np.float64, copy=False), weights)
    if not np.isfinite(spread) or spread == 0:
        return X, np.zeros(1)
    far = np.flatnonzero(np.square(mean) > _FAR * spread / weights.sum())
    if not 0 < len(far) <= HEAVY:
        return X, np.zeros(1)
    rest = np.ones(X.shape[1])
    rest[far] = 0.0
    columns = sparse.csr_array(X[:, far].toarray() - mean[far])
    place = (np.ones(len(far)), (np.arange(len(far)), far))
    filled = columns @ sparse.csr_array(place, shape=(len(far), X.shape[1]))
    return type(X)(X @ sparse.diags_array(rest, format="csr") + filled), mean[far]


def _thin(machine: Any, X: Points) -> Points:
    """Return sparse rows as they are, unless all components are wanted and dense rows fit."""
    many = not isinstance(machine.n_components, int | np.integer)
    n, d = X.shape
    return to_dense(X) if many and d < n and within_budget(32 * n * d) else X


def _gram(machine: Any, X: Points, rows: Array | None) -> Gram:
    gram = _held(machine, X, rows)
    if rows is None and not is_objects(X):
        _refuse_underflow(machine, X, gram)
    return gram


def _refuse_underflow(machine: Any, X: Points, gram: Gram) -> None:
    """Raise where kernel values are so small that variances have no digits left."""
    largest = float(np.abs(X.data if is_sparse(X) else X).max(initial=0.0))
    if 0 < largest < _TINY and float(np.abs(gram.diag()).max(initial=0.0)) < _NO_DIGITS:
        raise ValueError(
            f"{type(machine).__name__}: {machine.kernel_!r} underflows on rows of X as small as "
            f"{largest:.0e}: variances would have no digits. Scale the features, e.g. multiply X "
            f"by {2.0 ** min(round(-np.log2(largest)), 1000):.0e}."
        )


def _held(machine: Any, X: Points, rows: Array | None) -> Gram:
    n, n_components = X.shape[0], machine.n_components
    options: dict[str, Any] = {"rows": rows, "names": machine._column_names()}
    if n_components is None and n > FREE_ROWS:  # all pairs: the matrix, and room for its vectors
        return make_gram(machine.kernel_, X, Need.MATRIX, copies=_ALL, remedy=_FEWER, **options)
    few = isinstance(n_components, int | np.integer) and _FEW * int(n_components) <= n
    single = few and machine.tol >= FLOAT32_TOL_COMPONENTS and machine.solver is None
    dtype = stored_dtype(n, lambda: single)
    return make_gram(machine.kernel_, X, Need.PASSES, dtype=dtype, **options)
