"""Which algorithm: decided here and nowhere else, by asking the problem what it is."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from mercer._resources import MemoryBudgetError, format_bytes
from mercer.gram import CachedGram, FactoredGram, LazyGram
from mercer.gram.build import SQUARED
from mercer.problems import BoxQP, Eigenproblem, LinearSystem, Many, RidgePath
from mercer.solvers.band_path import BandPath
from mercer.solvers.base import Solver
from mercer.solvers.cholesky import Cholesky
from mercer.solvers.cholesky_path import CholeskyPath
from mercer.solvers.conjugate_gradient import ConjugateGradient
from mercer.solvers.dual_descent import DualDescent
from mercer.solvers.eigh import Eigh
from mercer.solvers.interior_point import InteriorPoint
from mercer.solvers.lanczos import Lanczos
from mercer.solvers.many import Each
from mercer.solvers.primal import Primal
from mercer.solvers.primal_path import PrimalPath
from mercer.solvers.smo import SMO
from mercer.solvers.working_sets import WorkingSets

_LARGEST_UNASKED = 100_000  # rows; beyond, one product alone is 10^10 kernel evaluations
_FEW_PENALTIES = 2  # up to here a Cholesky factor for each beats one band reduction
_SMALL_PATH = 64  # rows; up to the width of the band there is nothing to reduce
_SMALL_EIGEN = 600  # rows; below, LAPACK is done before an iteration would start


@singledispatch
def choose(problem: Any) -> Solver:
    """Give the solver that answers the problem best."""
    raise TypeError(f"no solver for {type(problem).__name__}")


@choose.register
def _(problem: LinearSystem) -> Solver:
    if isinstance(problem.gram, FactoredGram):
        return Primal()
    if isinstance(problem.gram, LazyGram):
        n = problem.gram.shape[0]
        if n > _LARGEST_UNASKED:
            raise MemoryBudgetError(
                f"exact kernel ridge on {n} rows: the matrix takes {format_bytes(8.0 * n * n)} "
                f"and does not fit the memory budget, and one product without storing it takes "
                f"{float(n) * n:.0e} kernel evaluations. Alternatives: a kernel with a small "
                "explicit feature map (Linear, low-degree Polynomial); fewer rows; a larger budget "
                "with mercer.config(memory=...); or ask for the long way with "
                "solver=ConjugateGradient()."
            )
        return ConjugateGradient()
    return Cholesky()


@choose.register
def _(problem: RidgePath) -> Solver:
    if isinstance(problem.gram, FactoredGram):
        return PrimalPath()
    small = problem.gram.shape[0] <= _SMALL_PATH
    return CholeskyPath() if small or len(problem.penalties) <= _FEW_PENALTIES else BandPath()


@choose.register
def _(problem: Eigenproblem) -> Solver:
    n = problem.gram.shape[0]
    lanczos = Lanczos()
    if isinstance(problem.gram, FactoredGram) or n <= _SMALL_EIGEN or lanczos.refuses(problem):
        return Eigh()
    return lanczos


@choose.register
def _(problem: BoxQP) -> Solver:
    base = problem.held.base
    if isinstance(base, FactoredGram):
        return InteriorPoint() if base.rank <= SQUARED else DualDescent()
    return WorkingSets() if isinstance(base, LazyGram | CachedGram) else SMO()


@choose.register
def _(problem: Many) -> Solver:
    one = choose(problem.problems[0]) if problem.problems else SMO()
    bases = {id(part.held.base) for part in problem.problems}
    # those that share a Gram are answered together, by solvers that can
    return one if isinstance(one, SMO | WorkingSets) and len(bases) < 2 else Each(one)
