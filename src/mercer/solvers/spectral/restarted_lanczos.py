"""A few eigenpairs of a sparse matrix: single-vector Lanczos, restarted, largest first.

The matrix is never factored: the factors of a neighbour graph fill up. Only a graph that is nearly
a tree factors without fill, and `InverseLanczos` is for those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.problems import Eigenproblem
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.spectral.eigh import ordered
from mercer.solvers.spectral.lobpcg import LOBPCG
from mercer.solvers.spectral.thick_restart import thick_restart


@dataclass(frozen=True)
class RestartedLanczos(Solver):
    """Thick-restart Lanczos for the largest eigenpairs, for matrices that are cheap to multiply.

    Where it does not converge, `LOBPCG` goes on from what it found, and the solution says so.

    Parameters
    ----------
    tol : float
        Stop when every wanted residual is below tol times the largest eigenvalue, and small beside
        the gap to the next eigenvalue.
    max_iter : int
        Largest number of products.
    random_state : int
        Seed of the starting vector.
    """

    answers = Eigenproblem

    tol: float = 1e-8
    max_iter: int = 10_000
    random_state: int = 0

    def _obstacle(self, problem: Eigenproblem) -> str | None:
        """Take eigenproblems that want few of many pairs."""
        locked = 0 if problem.known is None else problem.known.shape[1]
        if 2 * problem.count + locked + 4 > problem.gram.shape[0]:
            return "RestartedLanczos is for few of many eigenpairs; use solver=Eigh()"
        return None

    def run(self, problem: Eigenproblem, watch: Watch, start: Any = None) -> Solution:
        """Iterate; hand over to LOBPCG where that does not end well."""
        gram, n = problem.gram, problem.gram.shape[0]
        first = np.random.default_rng(self.random_state).standard_normal(n)
        if start is not None:
            first = start.vectors.sum(axis=1) + 1e-6 * first / np.sqrt(n)
        found = thick_restart(
            lambda v: np.asarray(gram @ v, dtype=np.float64),
            first,
            problem.count,
            tol=self.tol,
            max_products=self.max_iter,
            watch=watch,
            known=problem.known,
        )
        modes = ordered(found.values, found.vectors, problem.count)
        if found.status is not Status.ITERATION_LIMIT:
            return report(self, modes, found.status, found.products, watch)
        return _rescued(self, problem, watch, modes, found.products)


def _rescued(
    solver: RestartedLanczos, problem: Eigenproblem, watch: Watch, modes: Any, products: int
) -> Solution:
    other = LOBPCG(tol=solver.tol)
    again = other.run(problem, watch, modes)
    detail = (
        f"RestartedLanczos did not reach the tolerance in {products} products; LOBPCG went on from "
        f"there, and {again.status.value}"
    )
    return report(other, again.value, again.status, products + again.iterations, watch, detail)
