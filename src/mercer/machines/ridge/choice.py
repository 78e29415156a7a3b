"""Choose the solver of ridge problems: one penalty, a path of penalties, and folds."""

from __future__ import annotations

from typing import Any

from mercer.backends import choose_backend
from mercer.gram import FactoredGram, LazyGram, StreamedGram
from mercer.gram.policy import SQUARED
from mercer.machines.ridge.direct import Cholesky, CholeskyPath
from mercer.machines.ridge.eigenpro_sketch_and_project import past_memory
from mercer.machines.ridge.folds import PrimalFolds, direct
from mercer.machines.ridge.krylov_folds import FEWEST_ROWS, KrylovFolds
from mercer.machines.ridge.leave_one_out import BandLeaveOneOut, BandPath
from mercer.machines.ridge.normal_equations import PrimalConjugateGradient
from mercer.machines.ridge.primal import Primal, PrimalPath
from mercer.machines.ridge.problem import FoldedPathValue, FoldedRidgePath, LinearSystem, RidgePath
from mercer.solvers.base import Solver
from mercer.solvers.dispatch import choose, is_finite

_ROUNDING = 2.0**-52  # of the mean eigenvalue: penalties below are none
_FEW_PENALTIES = 2  # up to here a Cholesky factor for each beats one band reduction
_SMALL_PATH = 64  # rows; up to the width of the band there is nothing to reduce


@choose.register
def _(problem: LinearSystem) -> Solver:
    if isinstance(problem.gram, StreamedGram) and _is_penalised(problem):
        return PrimalConjugateGradient()
    if isinstance(problem.gram, FactoredGram):
        return Primal()
    return past_memory(problem.gram) if isinstance(problem.gram, LazyGram) else Cholesky()


def _is_penalised(problem: LinearSystem) -> bool:
    """Return whether penalties are above the rounding of products of features."""
    gram: Any = problem.gram
    floor = _ROUNDING * float(problem.row_weights @ gram.longest()) / max(1, gram.rank)
    return bool((problem.penalties > floor).all())


@choose.register
def _(problem: RidgePath) -> Solver:
    if isinstance(problem.gram, FactoredGram):
        return PrimalPath()
    n = problem.gram.shape[0]
    # on a card factors are soon made where K lies, and a reduction would have to bring it here
    factored = n <= _SMALL_PATH or choose_backend().keeps(8.0 * n * n)
    return CholeskyPath() if factored or len(problem.penalties) <= _FEW_PENALTIES else BandPath()


@choose.register
def _(problem: FoldedRidgePath) -> Solver:
    if problem.folds is None:
        return BandLeaveOneOut()
    gram = problem.gram
    if isinstance(gram, FactoredGram) and gram.rank <= min(SQUARED, gram.shape[0]):
        return PrimalFolds()
    rows = min((len(problem.learnt_from(fold)) for fold in problem.folds), default=0)
    return KrylovFolds() if rows >= FEWEST_ROWS else direct(len(problem.penalties))


@is_finite.register
def _(value: FoldedPathValue) -> bool:
    return True  # fits without numbers are marked as not met
