"""Function `solve`: choose the solver of a problem, run it, and report; stored solutions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning

from mercer.backends import choose_backend
from mercer.deadline import check, within
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
from mercer.machines.bayes.problem import ClassTables, GaussianClasses
from mercer.machines.bayes.solvers import Counting, GaussianLikelihood
from mercer.machines.clustering.balanced import BalancedLloyd
from mercer.machines.clustering.lloyd import Lloyd
from mercer.machines.clustering.minimum_cut import MaximumFlow
from mercer.machines.clustering.problem import BalancedPartition, MinimumCut, Partition
from mercer.machines.clustering.sinkhorn import Scaling, Sinkhorn
from mercer.machines.correlation.problem import Correlation
from mercer.machines.correlation.solvers import (
    MOST,
    CholeskyCorrelation,
    EighCorrelation,
    IterativeCorrelation,
    QRCorrelation,
    has_features,
)
from mercer.machines.decomposition.ica_fixed_point import FixedPointICA, IndependentComponents
from mercer.machines.decomposition.probabilistic_pca_em import LatentEM, LatentGaussian
from mercer.machines.discriminant.problem import Discriminant
from mercer.machines.discriminant.solvers import CholeskyDiscriminant, PrimalDiscriminant
from mercer.machines.entropy.problem import Expectations
from mercer.machines.entropy.solvers import EntropyNewton
from mercer.machines.gaussian_process.laplace import LaplaceAscent, LaplaceMode
from mercer.machines.gaussian_process.marginal_likelihood import EvidenceAscent, ExactPosterior
from mercer.machines.gaussian_process.problem import (
    Evidence,
    LaplaceEvidence,
    ProcessClassification,
    ProcessRegression,
)
from mercer.machines.kernel_learning.problem import KernelAlignment, KernelCombination, Relevance
from mercer.machines.kernel_learning.solvers import Nonnegative, ScaleDescent, SimplexNewton
from mercer.machines.logistic.newton_lbfgs import NewtonRisk, UnpenalizedNewton
from mercer.machines.logistic.problem import SmoothRisk
from mercer.machines.mixture.block_sums import BlockTopicParts
from mercer.machines.mixture.em_loop import EM
from mercer.machines.mixture.problem import Mixture
from mercer.machines.multitask.posterior import (
    KroneckerPosterior,
    TaskAscent,
    TaskCholesky,
    TaskFeatures,
)
from mercer.machines.multitask.problem import TaskEvidence, TaskRegression
from mercer.machines.neighbors.problem import Averages, ClassMeans
from mercer.machines.neural.problem import Autoencoding, VariationalAutoencoding
from mercer.machines.neural.training import NetworkLBFGS
from mercer.machines.perceptron.problem import Separation
from mercer.machines.perceptron.solvers import Mistakes
from mercer.machines.reinforcement.problem import BellmanEquation
from mercer.machines.reinforcement.solvers import KernelPolicyIteration
from mercer.machines.ridge.direct import Cholesky, CholeskyPath
from mercer.machines.ridge.eigenpro_sketch_and_project import past_memory
from mercer.machines.ridge.folds import PrimalFolds, direct
from mercer.machines.ridge.krylov_folds import FEWEST_ROWS, KrylovFolds
from mercer.machines.ridge.leave_one_out import BandLeaveOneOut, BandPath
from mercer.machines.ridge.normal_equations import PrimalConjugateGradient
from mercer.machines.ridge.primal import Primal, PrimalPath
from mercer.machines.ridge.problem import FoldedPathValue, FoldedRidgePath, LinearSystem, RidgePath
from mercer.machines.semi_supervised.problem import DeformedKernel, GraphLabels
from mercer.machines.semi_supervised.solvers import Deform, GraphCholesky, GraphConjugateGradient
from mercer.machines.svm.path import Each, SMOPath
from mercer.machines.svm.primal.crossover import DualDescent
from mercer.machines.svm.primal.interior_point import InteriorPoint
from mercer.machines.svm.problem import BoxQP, Duals, Many, MarginPath, PathDuals
from mercer.machines.svm.smo import SMO
from mercer.machines.svm.subset_descent import WorkingSets
from mercer.resources import MemoryBudgetError, format_bytes
from mercer.rows.points import is_sparse
from mercer.solvers.base import Callback, Solution, Solver, Status, Watch
from mercer.solvers.eigen.dense import Eigh
from mercer.solvers.eigen.lanczos_solver import Lanczos
from mercer.solvers.eigen.lobpcg import LOBPCG
from mercer.solvers.eigen.problem import Eigenproblem
from mercer.solvers.eigen.thick_restart import InverseLanczos, RestartedLanczos

# --- finite --------------------------------------------------------------------------------------
#
# Whether an answer holds numbers only.


def is_finite(value: Any) -> bool:
    """Return whether an answer holds numbers only; scores may be infinite, which says unusable."""
    if isinstance(value, Duals):
        return all(map(is_finite, value.parts))
    if isinstance(value, BlockTopicParts):  # shares follow from the table
        return bool(np.isfinite(value.table).all())
    if isinstance(value, FoldedPathValue):
        return True  # fits without numbers are marked as not met
    if isinstance(value, PathDuals):  # settings that are not solved say so
        held = (*value.coef, *value.intercept, value.values)
        return all(bool(np.isfinite(part[value.solved]).all()) for part in held)
    parts = (getattr(value, field.name) for field in fields(value) if field.name != "scores")
    return all(
        is_finite(part)
        if isinstance(part, Duals)
        else part is None or bool(np.isfinite(part).all())
        for part in parts
    )


# --- known answers -------------------------------------------------------------------------------
#
# Answers that are known beforehand: how a stored answer is judged by the problem it was given to.
#
# A fit writes a problem, has it solved, and makes everything else from the answer. Inside
# `known_answers` a problem whose answer is known is not solved: `solve` gives the answer back. So
# the path of a fit, run again on the data, ends in the certificate of the stored answer.

Find = Callable[[Any], Solution | None]

_FIND: ContextVar[Find | None] = ContextVar("find", default=None)


@contextmanager
def known_answers(find: Find) -> Iterator[None]:
    """Let `solve` ask first whether an answer is known.

    Parameters
    ----------
    find : callable
        Returns the solution of a problem, or None where it must be solved.
    """
    token = _FIND.set(find)
    try:
        yield
    finally:
        _FIND.reset(token)


def known_answer(problem: Any) -> Solution | None:
    """Return the solution of a problem, if it is known."""
    find = _FIND.get()
    return None if find is None else find(problem)


# --- only solver ---------------------------------------------------------------------------------
#
# Problems that one solver alone answers: the plain part of the choice that `solve.py` makes.

ONLY: tuple[tuple[type, type[Solver]], ...] = (
    (LatentGaussian, LatentEM),
    (BellmanEquation, KernelPolicyIteration),
    (IndependentComponents, FixedPointICA),
    (DeformedKernel, Deform),
    (Autoencoding, NetworkLBFGS),
    (VariationalAutoencoding, NetworkLBFGS),
    (Partition, Lloyd),
    (BalancedPartition, BalancedLloyd),
    (Scaling, Sinkhorn),
    (MinimumCut, MaximumFlow),
    (ClassMeans, Averages),
    (Separation, Mistakes),
    (Mixture, EM),
    (ClassTables, Counting),
    (GaussianClasses, GaussianLikelihood),
    (Expectations, EntropyNewton),
    (KernelAlignment, Nonnegative),
    (KernelCombination, SimplexNewton),
    (Relevance, ScaleDescent),
    (ProcessRegression, ExactPosterior),
    (Evidence, EvidenceAscent),
    (ProcessClassification, LaplaceMode),
    (LaplaceEvidence, LaplaceAscent),
    (TaskEvidence, TaskAscent),
)


# --- choose --------------------------------------------------------------------------------------
#
# Which algorithm answers a problem: decided here and nowhere else, by asking what it is.

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


# --- solve ---------------------------------------------------------------------------------------
#
# solve(): choose an algorithm, run it, report. The one door to all of them.


class SolverError(RuntimeError):
    """A solver refused the problem or found no answer; the message has the remedy."""


def solve(
    problem: Any,
    solver: Solver | None = None,
    *,
    start: Any = None,
    callback: Callback | None = None,
    time_limit: float | None = None,
    warn: bool = True,
) -> Solution:
    """Answer a problem.

    Parameters
    ----------
    problem : LinearSystem, RidgePath, Eigenproblem, BoxQP, Many, MarginPath, ...
        What is asked.
    solver : Solver, optional
        How; chosen by what the problem is when not given.
    start : object, optional
        An earlier answer to a similar problem, to start from.
    callback : callable, optional
        Called with `Progress` while the solver runs; a true return value stops it.
    time_limit : float, optional
        Seconds after which to stop with the best answer so far.
    warn : bool
        Whether to warn about an ending other than `Status.SOLVED`; without, read the status.

    Returns
    -------
    Solution
        The answer and how it ended. `TimeLimitError` is raised if the time was over before
        there was any answer.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import Need, make_gram
    >>> from mercer.kernels import Gaussian
    >>> from mercer.problems import Eigenproblem
    >>> gram = make_gram(Gaussian(1.0), np.arange(5.0)[:, None], Need.PRODUCTS)
    >>> solve(Eigenproblem(gram, count=2)).status.name
    'SOLVED'
    """
    known = known_answer(problem)
    if known is not None:
        return known
    solver = choose(problem) if solver is None else solver
    refusal = solver.refuses(problem)
    if refusal is not None:
        raise SolverError(refusal)
    watch = Watch(callback, time_limit, goal=float(getattr(solver, "tol", None) or 0.0))
    check()  # passes over many rows may have gone before
    with within(time_limit, type(solver).__name__):
        solution = solver.run(problem, watch, start)
    status = solution.status
    if status is Status.NOT_DEFINITE or status is Status.NOT_FINITE:
        raise SolverError(f"{solution.solver}: {status.value}")
    if not is_finite(solution.value):
        raise SolverError(f"{solution.solver}: {Status.NOT_FINITE.value}")
    if warn and not (status.ok or status is Status.EARLY_STOPPED):  # which was asked for
        category = LinAlgWarning if solution.status is Status.SINGULAR else ConvergenceWarning
        seen = f"{solution.iterations} iterations" + (solution.detail and f"; {solution.detail}")
        message = f"{solution.solver}: {solution.status.value}{_advice(status, solver)} ({seen})."
        warnings.warn(message, category, stacklevel=3)
    return solution


def _advice(status: Status, solver: Solver) -> str:
    """Return which of the solver's own options would let it go on: only those that it has."""
    if status is not Status.ITERATION_LIMIT:
        return ""
    has = {field.name for field in fields(solver)}  # type: ignore[arg-type]
    ways = [f"raise {name}" for name in ("max_iter", "max_epochs") if name in has]
    ways += ["ask for a larger tol"] if "tol" in has else []
    return "".join(f", or {way}" for way in ways)
