"""Affinities, their normalizations, and eigenvectors of relaxed graph cuts."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from mercer.approximation import ApproximateKernel
from mercer.array_types import Array, Points
from mercer.gram import EdgeWeight, Gram, Need, exact, make_gram, neighbour_graph, scaled
from mercer.gram.build import matrix_gram
from mercer.gram.transformed import shifted
from mercer.kernels import Gaussian, Kernel, Laplacian, Matern, Precomputed, RationalQuadratic
from mercer.machines.base.inputs import read_rows, refuse_nonfinite
from mercer.machines.base.sharing import Store
from mercer.resources import rows_at_once
from mercer.rows.points import is_sparse
from mercer.solvers.base import Callback, Solution, Solver, Status
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.dispatch import choose
from mercer.solvers.dispatch import solve as solved
from mercer.solvers.eigen.certificate import EigenQuantities
from mercer.solvers.eigen.lobpcg import LOBPCG
from mercer.solvers.eigen.problem import Eigenproblem, Modes

# --- affinity ------------------------------------------------------------------------------------
#
# Affinities as they come in: rows and a kernel, neighbours only, or a matrix, even sparse.

_POSITIVE = (Gaussian, Laplacian, Matern, RationalQuadratic)  # nowhere negative, by their formula
_AFFINITY_ROUNDING = 1e-12  # of the largest entry
_ENTRIES_AT_ONCE = 1 << 22
_SAMPLE = 16  # rows that tell what single precision is worth

FAINT = float(np.finfo(np.float64).tiny / np.finfo(np.float64).eps)  # below, digits are lost


def sparse_matrix(machine: Any, X: Any, *, reset: bool) -> Points:
    """Check a sparse affinity matrix, or the sparse rows of new points."""
    rows: Points = read_rows(machine, X, fitting=reset, accept_sparse="csr")
    refuse_nonfinite(machine, rows)
    return rows


def affinity(
    kernel: Kernel,
    X: Points,
    neighbors: int | None,
    weight: EdgeWeight,
    *,
    names: list[str] | None,
    dtype: Any,
) -> Gram:
    """Return the weights between the rows."""
    if is_sparse(X) and isinstance(kernel, Precomputed):
        return matrix_gram(X)
    if neighbors is not None:
        return neighbour_graph(kernel, X, neighbors, weight, names)
    return make_gram(kernel, X, Need.PASSES, names=names, dtype=dtype)


def negative_entry(gram: Gram, kernel: Kernel) -> tuple[int, int, float] | None:
    """Find an entry below zero, beyond rounding: row, column, value."""
    if isinstance(kernel, _POSITIVE) or _stands_for_positive(kernel):
        return None
    if gram.csr is not None:
        return _in_sparse(gram.csr)
    n = gram.shape[0]
    step = rows_at_once(n, max(1, _ENTRIES_AT_ONCE // max(n, 1)))
    floor = -_AFFINITY_ROUNDING * float(np.abs(gram.diag()).max(initial=0.0))
    for first in range(0, n, step):
        block = gram.rows(slice(first, first + step))
        if block.min(initial=0.0) < floor:
            row, column = np.unravel_index(int(block.argmin()), block.shape)
            return first + int(row), int(column), float(block[row, column])
    return None


def _stands_for_positive(kernel: Kernel) -> bool:
    """Return whether entries below zero are but the error of features, which is stated."""
    return isinstance(kernel, ApproximateKernel) and isinstance(kernel.kernel, _POSITIVE)


def refuse_negative(machine: Any, gram: Gram) -> None:
    """Raise if a graph to be cut has negative weights, saying where, and what to do instead."""
    found = negative_entry(gram, machine.kernel_)
    if found is None:
        return
    row, column, value = found
    raise ValueError(
        f"Negative values in data passed to {type(machine).__name__}: the similarity of rows {row} "
        f"and {column} is {value:.3g}, but normalization={machine.normalization!r} cuts a graph, "
        "whose weights must not be negative. Use a kernel that is nowhere negative, such as "
        f"Gaussian, in place of {machine.kernel_!r}, or normalization='plain', which takes any "
        "valid kernel"
    )


def refuse_negative_rows(machine: Any, rows: Points) -> None:
    """Raise if affinities of new rows to training rows are negative, as for the training rows."""
    values = rows.data if is_sparse(rows) else rows
    if values.min(initial=0.0) >= 0.0:
        return
    worst = int(values.argmin())
    if is_sparse(rows):
        row = int(np.searchsorted(rows.indptr, worst, side="right")) - 1
    else:
        row = worst // rows.shape[1]
    raise ValueError(
        f"Negative values in data passed to {type(machine).__name__}: row {row} has an affinity of "
        f"{float(values.ravel()[worst]):.3g} to a training row, but weights of a graph that is cut "
        "must not be negative"
    )


def warn_of_strangers(machine: Any, sums: Array) -> None:
    """Warn that new rows have nothing in common with any training row."""
    strangers = np.flatnonzero(~sums.any(axis=1))
    if not len(strangers):
        return
    shown = ", ".join(map(str, strangers[:5])) + (", ..." if len(strangers) > 5 else "")
    warnings.warn(
        f"{type(machine).__name__}: {len(strangers)} new row(s) of X ({shown}) have no similarity "
        "to any training row: nothing tells their place or cluster. Take a wider kernel, or fit "
        "with rows like these.",
        UserWarning,
        stacklevel=4,
    )


def float32_serves(kernel: Kernel, X: Points, names: list[str] | None, most: float) -> bool:
    """Return whether single precision gets no row's sum wrong by more than a share, by a sample.

    Groups far apart lose digits of the distances within. Features stay in double anyway.
    """
    index = np.arange(0, X.shape[0], max(1, X.shape[0] // _SAMPLE))
    rough = make_gram(kernel, X, Need.SAMPLE, names=names, dtype=np.float32)
    if rough.dtype != np.float32:
        return False
    K = make_gram(kernel, X, Need.SAMPLE, names=names).rows(index)
    wrong = np.abs(rough.rows(index) - K).sum(axis=1)
    error = (wrong / np.maximum(np.abs(K).sum(axis=1), np.finfo(float).tiny)).max()
    return bool(error <= most)


def _in_sparse(matrix: Any) -> tuple[int, int, float] | None:
    data = matrix.data
    if data.min(initial=0.0) >= 0.0:
        return None
    worst = int(data.argmin())
    row = int(np.searchsorted(matrix.indptr, worst, side="right")) - 1
    return row, int(matrix.indices[worst]), float(data[worst])


def loops(gram: Gram, *, counted: bool, positive: bool) -> tuple[Array, Array]:
    """Return what is added to the diagonal before cutting, and the degrees after that.

    Points without any edge, or with none that float64 has all digits of, get a loop of weight one,
    which is in no cut and spares every formula the division by zero.

    Parameters
    ----------
    gram : Gram
        The affinity.
    counted : bool
        Whether similarities of points with themselves count in their degrees.
    positive : bool
        Whether every point needs a loop: those without get one of half their degree.

    Returns
    -------
    shift : (n,) array
        What is added.
    degrees : (n,) array
        Row sums with it.
    """
    own = gram.diag()
    shift = np.zeros(len(own)) if counted else -own
    degrees = np.asarray(gram @ np.ones(len(own)), dtype=np.float64) + shift
    alone = degrees < FAINT
    added = np.where(alone, 1.0 - degrees, 0.0)
    if positive:
        bare = ~alone & (own + shift <= 0)
        added = np.where(bare, degrees / 2, added)
    # one where alone, exactly: added to a large negative sum, which is rounding, it would be lost
    return shift + added, np.where(alone, 1.0, degrees + added)


# --- normalization -------------------------------------------------------------------------------
#
# Four ways to make K nearly doubly stochastic before its leading eigenvectors are taken.
#
# Each says which matrix that is, which of its eigenvectors are known without work (one for each
# connected component), how points are placed by the eigenvectors, and where new points go: the
# eigenvector equation solved for a row that was not there (Nystrom's extension).

_NOTHING = 1e-12
_NORMALIZATION_ROUNDING = 10.0


@dataclass(frozen=True, eq=False)
class Normalization(ABC):
    """A normalisation made for one affinity.

    Attributes
    ----------
    weight : (n,) array
        Degrees of the points, or what stands for them.
    """

    weight: Array
    cuts: ClassVar[bool] = True  # whether similarities are weights of edges, none negative
    balanced: ClassVar[bool] = False  # whether the weights are scales to be solved for

    @property
    @abstractmethod
    def top(self) -> float:
        """The eigenvalue of `first`, the largest there is."""

    @abstractmethod
    def matrix(self, gram: Gram) -> Gram:
        """Return the matrix whose leading eigenvectors are wanted, for the affinity."""

    def carried(self, values: Array, dtype: Any, tol: float) -> Array:
        """Return which eigenvalues are more than the rounding of a matrix of this type: (k,).

        Rounding of entries moves an eigenvalue by at most eps |K|_F <= eps sqrt(n) times the
        largest; the vectors of those below are arbitrary, and dividing by these gives noise.
        """
        floor = _NORMALIZATION_ROUNDING * float(np.finfo(dtype).eps) * np.sqrt(len(self.weight))
        return np.asarray(np.abs(values) > floor * np.abs(values).max(initial=0.0))

    @abstractmethod
    def first(self) -> Array | None:
        """Return what is a leading eigenvector on each component alone, (n,); None if unknown."""

    @abstractmethod
    def place(self, vectors: Array) -> Array:
        """Return the points' places by eigenvectors: (n, k)."""

    @abstractmethod
    def shown(self, values: Array) -> Array:
        """Return eigenvalues of the normalised matrix as the texts define it."""

    @abstractmethod
    def expanded(self, vectors: Array) -> Array:
        """Return coefficients whose sums over affinities new points are placed by: (n, k + 1)."""

    @abstractmethod
    def extend(self, sums: Array, values: Array) -> Array:
        """Place new points by these sums, the last of which is their degree: (m, k)."""


class Plain(Normalization):
    """K itself, rows of the eigenvectors brought to length one: kernel K-means relaxed."""

    cuts = False

    @property
    def top(self) -> float:
        """Not known beforehand."""
        return np.inf

    def matrix(self, gram: Gram) -> Gram:
        """Take K as it is."""
        return gram

    def first(self) -> Array | None:
        """No eigenvector of K is known."""
        return None

    def place(self, vectors: Array) -> Array:
        """Bring rows to length one."""
        return _unit_rows(vectors)

    def shown(self, values: Array) -> Array:
        """Return eigenvalues of K."""
        return values

    def expanded(self, vectors: Array) -> Array:
        """Take the vectors."""
        return np.column_stack([vectors, np.zeros(len(vectors))])

    def extend(self, sums: Array, values: Array) -> Array:
        """Return v(z) = sum_j k(z, x_j) v_j / m, at length one."""
        return _unit_rows(_over(sums[:, :-1], values[None, :]))


class RatioCut(Normalization):
    """K - D + I: eigenvectors of the Laplacian D - K, smallest first.

    Solved as (K - D) / mean(d) + c I with c = 2 max(d) / mean(d), which has the same eigenvectors
    and no negative eigenvalue, so that residuals relative to eigenvalues mean something.
    """

    @property
    def _mean(self) -> float:
        return float(self.weight.mean())

    @property
    def _shift(self) -> float:
        return float(2.0 * self.weight.max() / self._mean)

    @property
    def top(self) -> float:
        """The shift."""
        return self._shift

    def matrix(self, gram: Gram) -> Gram:
        """Return the Laplacian, turned over and lifted."""
        base = scaled(gram, np.full(gram.shape[0], self._mean**-0.5))
        shift = self._shift - self.weight / self._mean
        return shifted(base, shift)  # whose diagonal is seen by solvers that divide by it

    def carried(self, values: Array, dtype: Any, tol: float) -> Array:
        """Return which are not the degree of all points alike, where K v = (D - l) v is nothing."""
        away = np.abs(self.weight[:, None] - self._laplacian(values)).max(axis=0)
        return np.asarray(away > 2.0 * tol * self.weight.max())  # residuals are relative to 2 max d

    def first(self) -> Array | None:
        """Return the constant."""
        return np.ones(len(self.weight))

    def place(self, vectors: Array) -> Array:
        """Take the vectors."""
        return vectors

    def shown(self, values: Array) -> Array:
        """Return eigenvalues of K - D + I."""
        return np.asarray(1.0 - self._laplacian(values))

    def expanded(self, vectors: Array) -> Array:
        """Take the vectors, and ones for the degree."""
        return np.column_stack([vectors, np.ones(len(vectors))])

    def extend(self, sums: Array, values: Array) -> Array:
        """Return v(z) = sum_j k(z, x_j) v_j / (d(z) - l), l the eigenvalue of D - K."""
        left = sums[:, -1:] - self._laplacian(values)[None, :]
        floor = _NOTHING * self._mean
        left = np.where(np.abs(left) < floor, floor, left)
        return np.asarray(sums[:, :-1] / left)

    def _laplacian(self, values: Array) -> Array:
        return np.maximum((self._shift - values) * self._mean, 0.0)


class NormalizedCut(Normalization):
    """D^-1/2 K D^-1/2; points are placed by D^-1/2 v, eigenvectors of the random walk D^-1 K."""

    @property
    def top(self) -> float:
        """One."""
        return 1.0

    def matrix(self, gram: Gram) -> Gram:
        """Divide by the roots of the degrees."""
        return scaled(gram, self.weight**-0.5)

    def first(self) -> Array | None:
        """Return the roots of the degrees."""
        return np.sqrt(self.weight)

    def place(self, vectors: Array) -> Array:
        """Divide by the roots of the degrees."""
        return np.asarray(vectors / np.sqrt(self.weight)[:, None])

    def shown(self, values: Array) -> Array:
        """Return the eigenvalues."""
        return values

    def expanded(self, vectors: Array) -> Array:
        """Take the places, and ones for the degree."""
        return np.column_stack([self.place(vectors), np.ones(len(vectors))])

    def extend(self, sums: Array, values: Array) -> Array:
        """Return u(z) = sum_j k(z, x_j) u_j / (m d(z))."""
        with np.errstate(over="ignore"):  # an infinite divisor leaves zero
            divisor = values[None, :] * sums[:, -1:]
        return _over(sums[:, :-1], divisor)


class DoublyStochastic(Normalization):
    """X K X with all row sums one, X diagonal: the limit of K <- D^-1/2 K D^-1/2."""

    balanced = True

    @property
    def top(self) -> float:
        """One."""
        return 1.0

    def matrix(self, gram: Gram) -> Gram:
        """Multiply by the scales."""
        return scaled(gram, self.weight)

    def first(self) -> Array | None:
        """Return the constant."""
        return np.ones(len(self.weight))

    def place(self, vectors: Array) -> Array:
        """Take the vectors."""
        return vectors

    def shown(self, values: Array) -> Array:
        """Return the eigenvalues."""
        return values

    def expanded(self, vectors: Array) -> Array:
        """Multiply the vectors by the scales; these themselves give the scale of a new point."""
        return np.asarray(self.weight[:, None] * np.column_stack([vectors, np.ones(len(vectors))]))

    def extend(self, sums: Array, values: Array) -> Array:
        """Return v(z) = x(z) sum_j k(z, x_j) x_j v_j / m with x(z) = 1 / sum_j k(z, x_j) x_j."""
        return _over(sums[:, :-1], values[None, :] * sums[:, -1:])


def _over(sums: Array, divisor: Array) -> Array:
    """Divide, leaving zero where there is nothing to divide by."""
    divisor = np.broadcast_to(divisor, sums.shape)
    out: Any = np.zeros_like(sums)
    np.divide(sums, divisor, out=out, where=np.abs(divisor) > np.finfo(float).tiny)
    return np.asarray(out)


def _unit_rows(vectors: Array) -> Array:
    # by powers of two first: squares at the end of the range are not finite, or nothing
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    vectors = np.ldexp(vectors, -np.frexp(largest)[1])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0))


# --- disconnected --------------------------------------------------------------------------------
#
# Graphs that fall apart: the leading eigenvectors are known, and clusters never cross a gap.

_FAINT = 1e-2  # of length one: less of a vector on a component does not tell its direction
_SAME = 12  # digits of eigenvalues that tell them apart


class DisconnectedWarning(UserWarning):
    """A graph has more connected components than clusters were asked for."""


def on_components(first: Array, group: Array, count: int) -> Array:
    """Restrict a vector to each group, at length one: orthonormal columns (n, count)."""
    columns = np.zeros((len(first), count))
    columns[np.arange(len(first)), group] = first
    return np.asarray(columns / np.linalg.norm(columns, axis=0))


def largest_and_rest(component: Array, count: int) -> Array:
    """Return the count - 1 largest components numbers of their own, and all others the last one."""
    return np.minimum(component, count - 1)


def localised(values: Array, vectors: Array, component: Array) -> tuple[Array, Array, Array]:
    """Make eigenvectors of a disconnected graph live on one component each.

    Repeated eigenvalues of different components come mixed. What a vector is on one component is
    an eigenvector, too: from all these, orthogonal ones of each component are made, and those of
    the largest values are kept. They span the given space, unless that holds a part only of the
    vectors of its smallest value: then they are others of that value.

    Parameters
    ----------
    values : (k,) array
        Eigenvalues, largest first.
    vectors : (n, k) array
        Orthonormal eigenvectors.
    component : (n,) int array
        The component of each point.

    Returns
    -------
    values, vectors
        As many, largest value first, orthonormal.
    owner : (k,) int array
        The component that each vector lives on.
    """
    order = np.argsort(component, kind="stable")
    starts = np.searchsorted(component[order], np.arange(int(component.max()) + 2))
    rows = [order[i:j] for i, j in pairwise(starts)]
    # squared lengths add up to the number of vectors: with this bound as many are left
    faint = min(_FAINT, float(1 / np.sqrt(2 * len(values) * len(rows))))
    found = [_on_one(values, vectors[some], faint) for some in rows]
    every = np.concatenate([those for those, _ in found])
    owner = np.repeat(np.arange(len(found)), [len(those) for those, _ in found])
    column = np.concatenate([np.arange(len(those)) for those, _ in found])
    # rounding does not order equal values: a component of more points, which comes first, has them
    size = max(float(np.abs(every).max(initial=0.0)), np.finfo(float).tiny)
    kept = np.argsort(-np.round(every / size, _SAME), kind="stable")[: len(values)]
    kept = kept[np.argsort(-every[kept], kind="stable")]
    out = np.zeros(vectors.shape)
    for i, (j, c) in enumerate(zip(owner[kept], column[kept], strict=True)):
        out[rows[j], i] = found[j][1][:, c]
    return every[kept], _signed(out), owner[kept]


def _on_one(values: Array, part: Array, faint: float) -> tuple[Array, Array]:
    """Return eigenpairs of one component, from the rows of eigenvectors of all: (c,), (m, c).

    With part = U S W', the matrix of the component maps part to part diag(values), and so has
    S W' diag(values) W / S in the basis U.
    """
    U, strengths, W = np.linalg.svd(part, full_matrices=False)
    kept = strengths > faint
    U, strengths, W = U[:, kept], strengths[kept], W[kept]
    inner = strengths[:, None] * (W @ (values[:, None] * W.T)) / strengths
    found, turn = np.linalg.eigh((inner + inner.T) / 2)
    return found[::-1], U @ turn[:, ::-1]


def _signed(vectors: Array) -> Array:
    peak = np.argmax(np.abs(vectors), axis=0)
    sign = np.where(vectors[peak, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    return np.asarray(vectors * sign)


# --- relaxation ----------------------------------------------------------------------------------
#
# The cut problems relaxed: leading eigenvectors of a normalised affinity, known ones deflated.

_BELOW = 0.9  # of tol, so that the certificate, computed from the data, meets tol itself
_ROUGH = 1e-2  # how well the normalised cut is solved where it is only a start


@dataclass
class Solving:
    """How well, how long (the deadline of the fit holds for all of its parts), who looks on."""

    tol: float
    callback: Callback | None
    time_limit: float | None
    store: Store

    def __call__(self, problem: Any, tol: float | None = None, start: Any = None) -> Solution:
        """Answer a problem by the solver that suits it."""
        solver = _wished(choose(problem), _BELOW * self.tol if tol is None else tol)
        options: dict[str, Any] = {"callback": self.callback, "time_limit": self.time_limit}
        return solved(problem, solver, start=start, **options)


def _wished(solver: Solver, tol: float) -> Solver:
    """Set the tolerance, where a solver has one that means this."""
    named = {field.name for field in fields(solver)}  # type: ignore[arg-type]
    return replace(solver, tol=tol) if "tol" in named else solver  # type: ignore[type-var]


@dataclass(frozen=True, eq=False)
class RelaxedCut:
    """Leading eigenpairs, and what is known of components.

    Attributes
    ----------
    values, vectors : (k,) and (n, k) arrays
        Largest first; fewer than clusters where the matrix has no more.
    component : (n,) int array
        The component of each point; where there are more than clusters, all small ones are one.
    shares : (c,) int array
        How many clusters each component is to be divided into.
    solution : Solution
        How the solver ended.
    """

    values: Array
    vectors: Array
    component: Array
    shares: Array
    solution: Solution

    def first(self, count: int) -> RelaxedCut:
        """Keep the leading pairs."""
        c = len(self.shares)
        kept = replace(self, values=self.values[:count], vectors=self.vectors[:, :count])
        if c == 1:
            return replace(kept, shares=np.array([count]))
        owner = [int(self.component[np.argmax(np.abs(v))]) for v in kept.vectors.T]
        return replace(kept, shares=np.bincount(owner, minlength=c))


def relax(
    machine: Any, norm: Normalization, graph: Gram, component: Array, count: int, solving: Solving
) -> RelaxedCut:
    """Find the leading eigenpairs; those that components give are not computed."""
    first = norm.first()
    if first is None:
        matrix = norm.matrix(graph)
        problem = Eigenproblem(matrix, _at_most(matrix, count, 0))
        solution = solving.store.pairs(matrix.dtype, problem, solving)
        modes = solution.value
        return RelaxedCut(modes.values, modes.vectors, component, np.array([count]), solution)
    c = int(component.max()) + 1
    if c >= count:
        return _components_alone(machine, norm, first, component, count)
    known = on_components(first, component, c)
    matrix = norm.matrix(graph)
    problem = Eigenproblem(matrix, _at_most(matrix, count, c), known)

    def solve(problem: Eigenproblem) -> Solution:
        return solving(problem, start=_start(problem, graph, norm, component, solving))

    solution = solving.store.pairs(matrix.dtype, problem, solve)
    values, vectors = solution.value.values, solution.value.vectors
    owner = np.zeros(len(values), dtype=np.int64)
    if c > 1:
        values, vectors, owner = localised(values, vectors, component)
    all_values = np.concatenate([np.full(c, norm.top), values])
    shares = 1 + np.bincount(owner, minlength=c)
    shares[0] += count - shares.sum()  # without a vector of their own, from the largest
    return RelaxedCut(all_values, np.hstack([known, vectors]), component, shares, solution)


def _at_most(matrix: Gram, count: int, known: int) -> int:
    """Return how many pairs to look for beside the known ones: features have no more than these."""
    return max(1, min(count, matrix.rank) - known)


def _components_alone(
    machine: Any, norm: Normalization, first: Array, component: Array, count: int
) -> RelaxedCut:
    c = int(component.max()) + 1
    if c > count:
        clusters = (
            f"more than the {count} clusters asked for; clusters are the {count - 1} largest "
            "components and all others together"
            if count > 1
            else "all of which the one cluster asked for holds"
        )
        warnings.warn(
            f"{type(machine).__name__}: the graph has {c} connected components, {clusters}. Ask "
            "for more clusters, for more neighbours, or take a wider kernel.",
            DisconnectedWarning,
            stacklevel=8,
        )
    group = largest_and_rest(component, count)
    vectors, values = on_components(first, group, count), np.full(count, norm.top)
    solution = Solution(Modes(values, vectors), Status.SOLVED, 0, 0.0, "connected components")
    return RelaxedCut(values, vectors, group, np.ones(count, dtype=np.int64), solution)


def _start(
    problem: Eigenproblem, graph: Gram, norm: Normalization, component: Array, solving: Solving
) -> Modes | None:
    """For a preconditioned search: the vectors of the normalised cut, which are nearly there."""
    if not isinstance(choose(problem), LOBPCG):
        return None
    near = NormalizedCut(np.asarray(graph @ np.ones(graph.shape[0])))
    known = on_components(np.sqrt(near.weight), component, int(component.max()) + 1)
    rough = Eigenproblem(near.matrix(graph), problem.count, known)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a start may be as rough as it likes
        modes = solving(rough, tol=_ROUGH).value
    return Modes(modes.values, near.place(modes.vectors))


def warn_of_rank(machine: Any, rank: int, count: int) -> None:
    """Warn that there are fewer eigenvectors that mean something than clusters."""
    warnings.warn(
        f"{type(machine).__name__}: the similarities have rank {rank} < n_clusters={count}, to "
        "rounding: only so many eigenvectors place the rows, other coordinates are zero. Ask for "
        "fewer clusters, or take a kernel with more features, such as a narrower Gaussian.",
        UserWarning,
        stacklevel=5,
    )


def eigengap(values: Array) -> int:
    """Choose the number of clusters, two at least, before the largest drop of eigenvalues."""
    if len(values) < 3:
        return len(values)
    return 2 + int(np.argmax(values[1:-1] - values[2:]))


@dataclass(frozen=True)
class StochasticQuantities(EigenQuantities):
    """Measures of eigenpairs of a doubly stochastic matrix.

    Attributes
    ----------
    row_sum_error : float
        Largest distance of a row sum from one.
    """

    row_sum_error: float = 0.0


def certify_stochastic(problem: Eigenproblem, value: Modes, tol: float) -> Certificate:
    """Judge eigenpairs, and that all rows of the matrix sum to one."""
    found = certify(problem, value, tol)
    sums = np.asarray(exact(problem.gram) @ np.ones(problem.gram.shape[0]))
    error = float(np.abs(sums - 1.0).max(initial=0.0))
    names = [field.name for field in fields(EigenQuantities)]
    common = {name: getattr(found.quantities, name) for name in names}
    statement = f"{found.statement}; every row sums to one within {error:.1e}"
    ok = found.ok and error <= max(tol, 1e-8)
    return Certificate(ok, StochasticQuantities(**common, row_sum_error=error), tol, statement)
