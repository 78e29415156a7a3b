"""Which algorithm answers a problem: decided here and nowhere else, by asking what it is."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from mercer.backends import choose_backend
from mercer.gram import (
    CachedGram,
    FactoredGram,
    Gram,
    LazyGram,
    ShiftedGram,
    SparseGram,
    StreamedGram,
)
from mercer.gram.policy import LAPACK_ROWS, LARGEST_UNASKED, SQUARED
from mercer.points import is_sparse
from mercer.problems import (
    BoxQP,
    Correlation,
    Discriminant,
    Eigenproblem,
    FoldedRidgePath,
    GraphLabels,
    LinearSystem,
    Many,
    MarginPath,
    RidgePath,
    SmoothRisk,
    TaskRegression,
)
from mercer.resources import MemoryBudgetError, format_bytes
from mercer.solvers.base import Solver
from mercer.solvers.correlation.cholesky import CholeskyCorrelation
from mercer.solvers.correlation.eigh import EighCorrelation
from mercer.solvers.correlation.iterative import IterativeCorrelation
from mercer.solvers.correlation.qr import QRCorrelation
from mercer.solvers.correlation.sparse_view import MOST
from mercer.solvers.correlation.views import has_features
from mercer.solvers.discriminant.cholesky import CholeskyDiscriminant
from mercer.solvers.discriminant.primal import PrimalDiscriminant
from mercer.solvers.linear_margin.dual_descent import DualDescent
from mercer.solvers.linear_margin.interior_point import InteriorPoint
from mercer.solvers.many import Each
from mercer.solvers.margin.path import SMOPath
from mercer.solvers.margin.smo import SMO
from mercer.solvers.margin.working_sets import WorkingSets
from mercer.solvers.multitask.features import TaskFeatures
from mercer.solvers.multitask.posterior import KroneckerPosterior, TaskCholesky
from mercer.solvers.only_solver import ONLY
from mercer.solvers.ridge.band_path import BandPath
from mercer.solvers.ridge.cholesky import Cholesky
from mercer.solvers.ridge.cholesky_path import CholeskyPath
from mercer.solvers.ridge.folds.direct import direct
from mercer.solvers.ridge.folds.krylov import FEWEST_ROWS, KrylovFolds
from mercer.solvers.ridge.folds.leave_one_out import BandLeaveOneOut
from mercer.solvers.ridge.folds.primal import PrimalFolds
from mercer.solvers.ridge.full.choice import past_memory
from mercer.solvers.ridge.primal import Primal
from mercer.solvers.ridge.primal_gradient import PrimalConjugateGradient
from mercer.solvers.ridge.primal_path import PrimalPath
from mercer.solvers.risk.newton import NewtonRisk
from mercer.solvers.risk.unpenalized import UnpenalizedNewton
from mercer.solvers.semi_supervised.graph_cholesky import GraphCholesky
from mercer.solvers.semi_supervised.graph_conjugate_gradient import GraphConjugateGradient
from mercer.solvers.spectral.eigh import Eigh
from mercer.solvers.spectral.inverse_lanczos import InverseLanczos
from mercer.solvers.spectral.lanczos import Lanczos
from mercer.solvers.spectral.lobpcg import LOBPCG
from mercer.solvers.spectral.restarted_lanczos import RestartedLanczos

_ROUNDING = 2.0**-52  # of the mean eigenvalue: penalties below are none
_FEW_PENALTIES = 2  # up to here a Cholesky factor for each beats one band reduction
_SMALL_PATH = 64  # rows; up to the width of the band there is nothing to reduce


@singledispatch
def choose(problem: Any) -> Solver:
    """Return the solver that answers the problem best."""
    raise TypeError(f"no solver for {type(problem).__name__}")


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
    """Choose for sparse graphs, and for Laplacians, whose diagonal is most of them."""
    laplacian = isinstance(problem.gram, ShiftedGram)
    for solver in (LOBPCG(),) if laplacian else (InverseLanczos(), RestartedLanczos()):
        if solver.refuses(problem) is None:
            return solver
    return Eigh()


@choose.register
def _(problem: GraphLabels) -> Solver:
    return GraphConjugateGradient() if problem.has_few_edges else GraphCholesky()


@choose.register
def _(problem: BoxQP) -> Solver:
    base = problem.unwrapped.base
    if isinstance(base, FactoredGram):
        return InteriorPoint() if base.rank <= SQUARED else DualDescent()
    return WorkingSets() if isinstance(base, LazyGram | CachedGram) else SMO()


@choose.register
def _(problem: Many) -> Solver:
    one = choose(problem.problems[0]) if problem.problems else SMO()
    bases = {id(part.unwrapped.base) for part in problem.problems}
    # those that share a Gram are answered together, by solvers that can
    return one if isinstance(one, SMO | WorkingSets) and len(bases) < 2 else Each(one)


@choose.register
def _(problem: MarginPath) -> Solver:
    if not problem.problems or SMOPath().refuses(problem) is None:
        return SMOPath()
    return Each(choose(problem.problems[0]))


@choose.register
def _(problem: Correlation) -> Solver:
    grams = [gram for gram, _ in problem.views]
    if all(map(has_features, grams)):
        return QRCorrelation()
    if any(map(_unstored, grams)):
        return IterativeCorrelation()
    n = problem.gram_x.shape[0]
    small = n <= LAPACK_ROWS or 3 * (problem.count + 32) > n
    if small or CholeskyCorrelation().refuses(problem):
        return EighCorrelation()
    return CholeskyCorrelation()


def _unstored(gram: Gram) -> bool:
    """Return whether a Gram, under its wrappers, is better multiplied than written out."""
    base = gram.raw
    if not isinstance(base, FactoredGram) or has_features(base):
        return isinstance(base, LazyGram | CachedGram)
    return bool(min(base.factor.shape) > MOST)


@choose.register
def _(problem: Discriminant) -> Solver:
    return (
        PrimalDiscriminant() if isinstance(problem.gram, FactoredGram) else CholeskyDiscriminant()
    )


@choose.register
def _(problem: SmoothRisk) -> Solver:
    return NewtonRisk() if problem.penalty > 0 else UnpenalizedNewton()


@choose.register
def _(problem: TaskRegression) -> Solver:
    if problem.gram.factor is not None:
        return TaskFeatures()
    return KroneckerPosterior() if problem.readings.whole else TaskCholesky()


for _kind, _solver in ONLY:
    choose.register(_kind)(lambda problem, solver=_solver: solver())
