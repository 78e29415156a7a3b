"""Solvers: one algorithm per file, each returning a `Solution`.

`solve` chooses a solver by the problem (`solvers/dispatch.py`) and runs it. A solver is a value
that holds options; problem, start and clock are passed to it.
"""

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.machines.bayes.solvers import Counting, GaussianLikelihood
    from mercer.machines.clustering.balanced import BalancedLloyd
    from mercer.machines.clustering.lloyd import Lloyd
    from mercer.machines.clustering.minimum_cut import MaximumFlow, minimum_cut
    from mercer.machines.clustering.relaxed_partition import Relaxation, Relaxed, relaxed
    from mercer.machines.clustering.seeding import Given, PlusPlus, RandomPoints, Seeding
    from mercer.machines.clustering.sinkhorn import Sinkhorn
    from mercer.machines.correlation.solvers import (
        CholeskyCorrelation,
        EighCorrelation,
        IterativeCorrelation,
        QRCorrelation,
    )
    from mercer.machines.decomposition.ica_fixed_point import FixedPointICA
    from mercer.machines.decomposition.probabilistic_pca_em import LatentEM
    from mercer.machines.discriminant.solvers import CholeskyDiscriminant, PrimalDiscriminant
    from mercer.machines.entropy.solvers import EntropyNewton, IterativeScaling
    from mercer.machines.gaussian_process.laplace import LaplaceAscent, LaplaceMode
    from mercer.machines.gaussian_process.marginal_likelihood import EvidenceAscent, ExactPosterior
    from mercer.machines.kernel_learning.solvers import Nonnegative, ScaleDescent, SimplexNewton
    from mercer.machines.logistic.newton import NewtonRisk, UnpenalizedNewton
    from mercer.machines.logistic.stochastic_gradient import (
        AnnealedGradient,
        GradientDescent,
        StochasticGradient,
    )
    from mercer.machines.mixture.em_loop import EM
    from mercer.machines.multitask.posterior import (
        KroneckerPosterior,
        TaskAscent,
        TaskCholesky,
        TaskFeatures,
    )
    from mercer.machines.neighbors.problem import Averages
    from mercer.machines.neural.training import NetworkAdam, NetworkLBFGS
    from mercer.machines.perceptron.solvers import Mistakes
    from mercer.machines.reinforcement.solvers import FittedQIteration, KernelPolicyIteration
    from mercer.machines.ridge.conjugate_gradient import ConjugateGradient
    from mercer.machines.ridge.direct import Cholesky, CholeskyPath
    from mercer.machines.ridge.folds import BandFolds, CholeskyFolds, PrimalFolds
    from mercer.machines.ridge.krylov_folds import KrylovFolds
    from mercer.machines.ridge.leave_one_out import BandPath
    from mercer.machines.ridge.normal_equations import PrimalConjugateGradient
    from mercer.machines.ridge.primal import Primal, PrimalPath
    from mercer.machines.ridge.sketch_and_project import SketchAndProject
    from mercer.machines.semi_supervised.solvers import (
        Deform,
        GraphCholesky,
        GraphConjugateGradient,
    )
    from mercer.machines.svm.descent import Gap, Violation
    from mercer.machines.svm.path import Each, SMOPath
    from mercer.machines.svm.primal.crossover import DualDescent
    from mercer.machines.svm.primal.interior_point import InteriorPoint
    from mercer.machines.svm.smo import SMO
    from mercer.machines.svm.subset_descent import WorkingSets
    from mercer.solvers.base import Callback, Progress, Solution, Solver, Status, Watch
    from mercer.solvers.dispatch import SolverError, solve
    from mercer.solvers.eigen.arpack import ARPACK
    from mercer.solvers.eigen.dense import Eigh
    from mercer.solvers.eigen.lanczos_solver import Lanczos
    from mercer.solvers.eigen.lobpcg import LOBPCG

__all__ = [
    "ARPACK",
    "EvidenceAscent",
    "ExactPosterior",
    "KroneckerPosterior",
    "LaplaceAscent",
    "TaskAscent",
    "TaskCholesky",
    "TaskFeatures",
    "LaplaceMode",
    "EM",
    "EntropyNewton",
    "FixedPointICA",
    "Deform",
    "GraphCholesky",
    "GraphConjugateGradient",
    "IterativeScaling",
    "LOBPCG",
    "SMO",
    "SMOPath",
    "AnnealedGradient",
    "GradientDescent",
    "StochasticGradient",
    "UnpenalizedNewton",
    "Averages",
    "BandFolds",
    "BandPath",
    "Callback",
    "Cholesky",
    "CholeskyCorrelation",
    "CholeskyDiscriminant",
    "CholeskyFolds",
    "CholeskyPath",
    "ConjugateGradient",
    "Counting",
    "DualDescent",
    "Each",
    "Eigh",
    "EighCorrelation",
    "FittedQIteration",
    "Gap",
    "GaussianLikelihood",
    "InteriorPoint",
    "IterativeCorrelation",
    "Given",
    "KernelPolicyIteration",
    "KrylovFolds",
    "Lanczos",
    "BalancedLloyd",
    "Lloyd",
    "Nonnegative",
    "ScaleDescent",
    "SimplexNewton",
    "PlusPlus",
    "RandomPoints",
    "Relaxation",
    "Relaxed",
    "Seeding",
    "LatentEM",
    "MaximumFlow",
    "Mistakes",
    "NetworkAdam",
    "NetworkLBFGS",
    "NewtonRisk",
    "Primal",
    "PrimalConjugateGradient",
    "PrimalDiscriminant",
    "PrimalFolds",
    "PrimalPath",
    "Progress",
    "QRCorrelation",
    "Sinkhorn",
    "SketchAndProject",
    "Solution",
    "Solver",
    "SolverError",
    "Status",
    "Violation",
    "Watch",
    "WorkingSets",
    "minimum_cut",
    "relaxed",
    "solve",
]

# each name is imported when it is first asked for
_HOMES = {
    "mercer.machines.bayes.solvers": (
        "Counting",
        "GaussianLikelihood",
    ),
    "mercer.machines.clustering.balanced": ("BalancedLloyd",),
    "mercer.machines.clustering.lloyd": ("Lloyd",),
    "mercer.machines.clustering.minimum_cut": (
        "MaximumFlow",
        "minimum_cut",
    ),
    "mercer.machines.clustering.relaxed_partition": (
        "Relaxation",
        "Relaxed",
        "relaxed",
    ),
    "mercer.machines.clustering.seeding": (
        "Given",
        "PlusPlus",
        "RandomPoints",
        "Seeding",
    ),
    "mercer.machines.clustering.sinkhorn": ("Sinkhorn",),
    "mercer.machines.correlation.solvers": (
        "CholeskyCorrelation",
        "EighCorrelation",
        "IterativeCorrelation",
        "QRCorrelation",
    ),
    "mercer.machines.decomposition.ica_fixed_point": ("FixedPointICA",),
    "mercer.machines.decomposition.probabilistic_pca_em": ("LatentEM",),
    "mercer.machines.discriminant.solvers": (
        "CholeskyDiscriminant",
        "PrimalDiscriminant",
    ),
    "mercer.machines.entropy.solvers": (
        "IterativeScaling",
        "EntropyNewton",
    ),
    "mercer.machines.gaussian_process.laplace": (
        "LaplaceAscent",
        "LaplaceMode",
    ),
    "mercer.machines.gaussian_process.marginal_likelihood": (
        "EvidenceAscent",
        "ExactPosterior",
    ),
    "mercer.machines.kernel_learning.solvers": (
        "Nonnegative",
        "ScaleDescent",
        "SimplexNewton",
    ),
    "mercer.machines.logistic.newton": (
        "NewtonRisk",
        "UnpenalizedNewton",
    ),
    "mercer.machines.logistic.stochastic_gradient": (
        "AnnealedGradient",
        "GradientDescent",
        "StochasticGradient",
    ),
    "mercer.machines.mixture.em_loop": ("EM",),
    "mercer.machines.multitask.posterior": (
        "TaskAscent",
        "TaskFeatures",
        "KroneckerPosterior",
        "TaskCholesky",
    ),
    "mercer.machines.neighbors.problem": ("Averages",),
    "mercer.machines.neural.training": (
        "NetworkAdam",
        "NetworkLBFGS",
    ),
    "mercer.machines.perceptron.solvers": ("Mistakes",),
    "mercer.machines.reinforcement.solvers": (
        "FittedQIteration",
        "KernelPolicyIteration",
    ),
    "mercer.machines.ridge.conjugate_gradient": ("ConjugateGradient",),
    "mercer.machines.ridge.direct": (
        "Cholesky",
        "CholeskyPath",
    ),
    "mercer.machines.ridge.folds": (
        "BandFolds",
        "CholeskyFolds",
        "PrimalFolds",
    ),
    "mercer.machines.ridge.krylov_folds": ("KrylovFolds",),
    "mercer.machines.ridge.leave_one_out": ("BandPath",),
    "mercer.machines.ridge.normal_equations": ("PrimalConjugateGradient",),
    "mercer.machines.ridge.primal": (
        "Primal",
        "PrimalPath",
    ),
    "mercer.machines.ridge.sketch_and_project": ("SketchAndProject",),
    "mercer.machines.semi_supervised.solvers": (
        "Deform",
        "GraphCholesky",
        "GraphConjugateGradient",
    ),
    "mercer.solvers.dispatch": (
        "SolverError",
        "solve",
    ),
    "mercer.machines.svm.descent": (
        "Gap",
        "Violation",
    ),
    "mercer.machines.svm.path": (
        "Each",
        "SMOPath",
    ),
    "mercer.machines.svm.primal.crossover": ("DualDescent",),
    "mercer.machines.svm.primal.interior_point": ("InteriorPoint",),
    "mercer.machines.svm.smo": ("SMO",),
    "mercer.machines.svm.subset_descent": ("WorkingSets",),
    "mercer.solvers.base": (
        "Callback",
        "Progress",
        "Solution",
        "Solver",
        "Status",
        "Watch",
    ),
    "mercer.solvers.eigen.arpack": ("ARPACK",),
    "mercer.solvers.eigen.dense": ("Eigh",),
    "mercer.solvers.eigen.lanczos_solver": ("Lanczos",),
    "mercer.solvers.eigen.lobpcg": ("LOBPCG",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


# names of the last version: what takes their place, their options in order, those it has as well
RETIRED = {
    "LBFGSRisk": ("NewtonRisk", "tol max_iter memory n_init", "tol max_iter n_init"),
    "LowRankCorrelation": ("CholeskyCorrelation", "rank random_state", ""),
    "RestartedLanczos": ("ARPACK", "tol max_iter random_state", "tol max_iter random_state"),
    "InverseLanczos": ("ARPACK", "tol max_iter random_state", "tol max_iter random_state"),
    "BandLeaveOneOut": ("BandPath", "width", "width"),
    "EigenPro": (
        "SketchAndProject",
        "tol max_iter sample rank batch random_state",
        "tol max_iter random_state",
    ),
}


def _replacement(name: str) -> Callable[..., Any]:
    """Return what makes the solver that takes the place of one of the last version, and warns."""
    other, names, kept = RETIRED[name]

    def make(*given: Any, **options: Any) -> Any:
        options |= dict(zip(names.split(), given, strict=False))
        unknown = options.keys() - set(names.split())
        if unknown:
            raise TypeError(f"{name} has no option {sorted(unknown)[0]!r}")
        warnings.warn(
            f"mercer.solvers.{name} is deprecated and will be removed in the next version; "
            f"mercer.solvers.{other} takes its place. Use that.",
            FutureWarning,
            stacklevel=2,
        )
        return __getattr__(other)(**{key: options[key] for key in kept.split() if key in options})

    return make


def __getattr__(name: str) -> Any:
    if name in RETIRED:
        return _replacement(name)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
