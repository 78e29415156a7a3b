"""Eigenpairs of graphs that are nearly trees: Lanczos on the inverse.

On a long path or a tree the eigenvalues at the top lie so close that no number of products tells
them apart; but such a matrix factors without fill, and its inverse spreads them wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from mercer.array_types import Array
from mercer.gram import SparseGram
from mercer.problems import Eigenproblem
from mercer.solvers.base import Solution, Solver, Watch, report
from mercer.solvers.spectral.eigh import ordered
from mercer.solvers.spectral.thick_restart import thick_restart

_CYCLES = 0.05  # of the points: how many edges beyond a tree factor without filling up
_BEYOND = 1e-12  # of the largest eigenvalue: how far above it the shift is


def nearly_a_tree(gram: Any) -> bool:
    """Return whether a sparse Gram has hardly more edges than points."""
    if not isinstance(gram, SparseGram):
        return False
    n = gram.shape[0]
    edges = (gram.csr.nnz - int(np.count_nonzero(gram.csr.diagonal()))) / 2
    return bool(edges <= (1 + _CYCLES) * n)


@dataclass(frozen=True)
class InverseLanczos(Solver):
    """Largest eigenpairs of a graph that is nearly a tree, by Lanczos on (s I - K)^-1.

    Parameters
    ----------
    tol : float
        Stop when residuals on the inverse are below tol times its largest eigenvalue.
    max_iter : int
        Largest number of solves.
    random_state : int
        Seed of the starting vector.
    """

    answers = Eigenproblem

    tol: float = 1e-8
    max_iter: int = 2000
    random_state: int = 0

    def _obstacle(self, problem: Eigenproblem) -> str | None:
        """Take sparse eigenproblems, with the eigenvectors of the largest value known."""
        if not nearly_a_tree(problem.gram) or problem.known is None:
            return (
                "InverseLanczos is for sparse graphs that are nearly trees, whose first vector is "
                "known; use solver=RestartedLanczos()"
            )
        if 2 * problem.count + problem.known.shape[1] + 4 > problem.gram.shape[0]:
            return "InverseLanczos is for few of many eigenpairs; use solver=Eigh()"
        return None

    def run(self, problem: Eigenproblem, watch: Watch, start: Any = None) -> Solution:
        """Factor once, and iterate on the inverse."""
        gram, known, n = problem.gram, problem.known, problem.gram.shape[0]
        first = np.random.default_rng(self.random_state).standard_normal(n)
        found = thick_restart(
            _inverse(gram, known),
            first,
            problem.count,
            tol=self.tol,
            max_products=self.max_iter,
            watch=watch,
            known=known,
            reserve=6,
        )
        products = np.asarray(gram @ found.vectors)
        values = np.einsum("ij,ij->j", found.vectors, products)
        modes = ordered(values, found.vectors, problem.count)
        return report(self, modes, found.status, found.products, watch)


def _inverse(gram: Any, known: Any) -> Any:
    matrix = gram.csr
    top = float(np.einsum("ij,ij->j", known, np.asarray(matrix @ known)).max())
    shift = top + _BEYOND * max(abs(top), np.finfo(float).tiny)
    shifted = sparse.csc_array(shift * sparse.eye_array(matrix.shape[0]) - matrix)
    factor = splu(
        shifted,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )

    def solve(v: Array) -> Array:
        x = np.asarray(factor.solve(v))
        # what rounding left along the known vectors grew most: out before it drowns the rest
        return np.asarray(x - known @ (known.T @ x))

    return solve
