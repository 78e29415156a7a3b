"""The cut problems relaxed: leading eigenvectors of a normalised affinity, known ones deflated."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.certificates import Certificate, EigenQuantities, certify
from mercer.gram import Gram, exact
from mercer.machines.base.reuse import Store
from mercer.machines.clustering.disconnected import (
    DisconnectedWarning,
    largest_and_rest,
    localised,
    on_components,
)
from mercer.machines.clustering.normalization import Normalization, NormalizedCut
from mercer.problems import Eigenproblem, Modes
from mercer.solvers import LOBPCG, Callback, InverseLanczos, Solution, Solver, Status
from mercer.solvers import solve as solved
from mercer.solvers.choose import choose

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
    if "tol" not in named or isinstance(solver, InverseLanczos):
        return solver
    return replace(solver, tol=tol)  # type: ignore[type-var]


@dataclass(frozen=True, eq=False)
class Relaxed:
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

    def first(self, count: int) -> Relaxed:
        """Keep the leading pairs."""
        c = len(self.shares)
        kept = replace(self, values=self.values[:count], vectors=self.vectors[:, :count])
        if c == 1:
            return replace(kept, shares=np.array([count]))
        owner = [int(self.component[np.argmax(np.abs(v))]) for v in kept.vectors.T]
        return replace(kept, shares=np.bincount(owner, minlength=c))


def relax(
    machine: Any, norm: Normalization, graph: Gram, component: Array, count: int, solving: Solving
) -> Relaxed:
    """Find the leading eigenpairs; those that components give are not computed."""
    first = norm.first()
    if first is None:
        matrix = norm.matrix(graph)
        problem = Eigenproblem(matrix, _at_most(matrix, count, 0))
        solution = solving.store.pairs(matrix.dtype, problem, solving)
        modes = solution.value
        return Relaxed(modes.values, modes.vectors, component, np.array([count]), solution)
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
    return Relaxed(all_values, np.hstack([known, vectors]), component, shares, solution)


def _at_most(matrix: Gram, count: int, known: int) -> int:
    """Return how many pairs to look for beside the known ones: features have no more than these."""
    return max(1, min(count, matrix.rank) - known)


def _components_alone(
    machine: Any, norm: Normalization, first: Array, component: Array, count: int
) -> Relaxed:
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
    return Relaxed(values, vectors, group, np.ones(count, dtype=np.int64), solution)


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
