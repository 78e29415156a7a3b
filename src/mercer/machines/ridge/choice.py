"""Choose the solver of ridge problems: one penalty, a path of penalties, and folds."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from mercer.backends import choose_backend
from mercer.deadline import seconds_left
from mercer.gram import FactoredGram, LazyGram, StreamedGram
from mercer.gram.policy import SQUARED
from mercer.machines.ridge.conjugate_gradient import ConjugateGradient
from mercer.machines.ridge.direct import Cholesky, CholeskyPath
from mercer.machines.ridge.folds import PrimalFolds, direct
from mercer.machines.ridge.krylov_folds import FEWEST_ROWS, KrylovFolds
from mercer.machines.ridge.leave_one_out import BandPath
from mercer.machines.ridge.normal_equations import PrimalConjugateGradient
from mercer.machines.ridge.primal import Primal, PrimalPath
from mercer.machines.ridge.problem import FoldedPathValue, FoldedRidgePath, LinearSystem, RidgePath
from mercer.machines.ridge.sketch_and_project import SketchAndProject
from mercer.resources import MemoryBudgetError, format_bytes
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


# --- past memory ---------------------------------------------------------------------------------
#
# Which way the full kernel is solved with where K is not stored: by memory and measured time.

_TOL = 3e-7  # a third of what certificates ask for
_SMALL = 20_000  # rows: products take a fraction of a second, and nothing has to be measured
_LEAST_RANK = 100  # columns of a preconditioner that conjugate gradients are worth it with
_MEASURED = 64  # rows of a product, for its time
_PRODUCTS = 30  # that conjugate gradients need before they have much to show
_LONGEST = 3600.0  # seconds of one product that nobody waits for unasked


def past_memory(gram: LazyGram) -> Solver:
    """Choose a solver of ridge equations that does not store K.

    Conjugate gradients need the fewest passes over K, and a preconditioner of n rows; block
    steps need memory for a block alone, and have something to show before a first pass is over.

    Parameters
    ----------
    gram : LazyGram
        K.

    Returns
    -------
    Solver
        `ConjugateGradient`, or `SketchAndProject` where its preconditioner does not fit the memory
        budget or the time limit of the fit does not hold thirty products with K. A product that
        takes more than an hour is refused if there is no time limit.
    """
    n = gram.shape[0]
    if n <= _SMALL:
        return ConjugateGradient(tol=_TOL)
    product, left = seconds_of_product(gram), seconds_left()
    if left is None and product > _LONGEST:
        raise MemoryBudgetError(
            f"exact kernel ridge on {n} rows: the matrix takes {format_bytes(8.0 * n * n)} and "
            "does not fit the memory budget, and one product without storing it takes about "
            f"{product / 3600:.1f} hours here. Alternatives: landmarks in place of the kernel "
            "(approximation=Nystrom(2000), of mercer.approximation); a kernel with a small "
            "explicit feature map (Linear, low-degree Polynomial); fewer rows; a larger budget "
            "with mercer.config(memory=...); a time limit, after which the fit ends with what it "
            "has (time_limit=...); or ask for the long way with solver=ConjugateGradient()."
        )
    conjugate = ConjugateGradient(tol=_TOL)
    if conjugate.columns(n) < _LEAST_RANK or (left is not None and left < _PRODUCTS * product):
        return SketchAndProject(tol=_TOL)
    return conjugate


def seconds_of_product(gram: LazyGram) -> float:
    """Return about how long a product with K takes, from that of a few rows.

    Parameters
    ----------
    gram : LazyGram
        K.

    Returns
    -------
    float
        Seconds; entries are evaluated for one of their two places only.
    """
    n = gram.shape[0]
    rows = np.linspace(0, n - 1, min(_MEASURED, n)).astype(np.int64)
    started = perf_counter()
    gram.rows(rows) @ np.ones(n)
    return (perf_counter() - started) * n / len(rows) / 2


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
        return BandPath()
    gram = problem.gram
    if isinstance(gram, FactoredGram) and gram.rank <= min(SQUARED, gram.shape[0]):
        return PrimalFolds()
    rows = min((len(problem.learnt_from(fold)) for fold in problem.folds), default=0)
    return KrylovFolds() if rows >= FEWEST_ROWS else direct(len(problem.penalties))


@is_finite.register
def _(value: FoldedPathValue) -> bool:
    return True  # fits without numbers are marked as not met
