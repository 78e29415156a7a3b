"""Choose the solver of an eigenproblem: dense, Lanczos, or for sparse graphs."""

from __future__ import annotations

from mercer.gram import CachedGram, FactoredGram, Gram, LazyGram, ShiftedGram, SparseGram
from mercer.gram.policy import LAPACK_ROWS, LARGEST_UNASKED, SQUARED
from mercer.resources import MemoryBudgetError, format_bytes
from mercer.rows.points import is_sparse
from mercer.solvers.base import Solver
from mercer.solvers.dispatch import choose
from mercer.solvers.eigen.arpack import ARPACK, sparse_matrix
from mercer.solvers.eigen.dense import Eigh
from mercer.solvers.eigen.lanczos_solver import Lanczos
from mercer.solvers.eigen.lobpcg import LOBPCG
from mercer.solvers.eigen.problem import Eigenproblem


@choose.register
def _(problem: Eigenproblem) -> Solver:
    n = problem.gram.shape[0]
    if n > LAPACK_ROWS and isinstance(problem.gram, SparseGram | ShiftedGram):
        return _for_graphs(problem)
    lanczos = Lanczos()
    if n <= LAPACK_ROWS or lanczos.refuses(problem) or _few_features(problem):
        return Eigh()
    _refuse_endless(problem)
    return lanczos


def _few_features(problem: Eigenproblem) -> bool:
    gram = problem.gram
    if not isinstance(gram, FactoredGram) or gram.rank >= gram.shape[0]:
        return False
    return gram.rank <= (SQUARED // 4 if is_sparse(gram.factor) else SQUARED)


def _refuse_endless(problem: Eigenproblem) -> None:
    n = problem.gram.shape[0]
    if n > LARGEST_UNASKED and _not_stored(problem.gram):
        raise MemoryBudgetError(
            f"exact eigenpairs of {n} points: the matrix takes {format_bytes(4.0 * n * n)} and "
            f"does not fit the memory budget, and each of a dozen products without storing it "
            f"takes {float(n) * n:.0e} kernel evaluations. Alternatives: landmarks in place of the "
            "kernel, mercer.approximation.Nystrom(2000).of(kernel, X); a kernel with a small "
            "explicit feature map (Linear, low-degree Polynomial); fewer rows; a larger budget "
            "with mercer.config(memory=...); or ask for the long way with solver=Lanczos()."
        )


def _not_stored(gram: Gram) -> bool:
    return isinstance(gram.raw, LazyGram | CachedGram)


def _for_graphs(problem: Eigenproblem) -> Solver:
    """Choose for sparse graphs, and for Laplacians of kernels, whose diagonal is most of them."""
    solver = LOBPCG() if sparse_matrix(problem.gram) is None else ARPACK()
    return Eigh() if solver.refuses(problem) else solver
