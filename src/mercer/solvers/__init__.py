"""How a question is answered: one algorithm per file, each returning a `Solution`.

`solve` is the door; `choose`, beside it in `solve.py`, is the only choice of algorithm. A solver is
a value that holds options; problem, start and clock are passed to it.
"""

from mercer.solvers.base import Callback, Progress, Solution, Solver, Status, Watch
from mercer.solvers.bayes.class_means import Averages
from mercer.solvers.bayes.counting import Counting
from mercer.solvers.bayes.gaussian_likelihood import GaussianLikelihood
from mercer.solvers.clustering.balanced import BalancedLloyd
from mercer.solvers.clustering.lloyd import Lloyd
from mercer.solvers.clustering.maximum_flow import MaximumFlow, minimum_cut
from mercer.solvers.clustering.relaxation import Relaxation, Relaxed, relaxed
from mercer.solvers.clustering.seeding import Given, PlusPlus, RandomPoints, Seeding
from mercer.solvers.correlation.cholesky import CholeskyCorrelation
from mercer.solvers.correlation.eigh import EighCorrelation
from mercer.solvers.correlation.iterative import IterativeCorrelation
from mercer.solvers.correlation.lowrank import LowRankCorrelation
from mercer.solvers.correlation.qr import QRCorrelation
from mercer.solvers.decision.fitted_q import FittedQIteration
from mercer.solvers.decision.policy_iteration import KernelPolicyIteration
from mercer.solvers.discriminant.cholesky import CholeskyDiscriminant
from mercer.solvers.discriminant.primal import PrimalDiscriminant
from mercer.solvers.entropy.iterative_scaling import IterativeScaling
from mercer.solvers.entropy.newton import EntropyNewton
from mercer.solvers.independent.fixed_point import FixedPointICA
from mercer.solvers.kernel_learning.nonnegative import Nonnegative
from mercer.solvers.kernel_learning.scale_descent import ScaleDescent
from mercer.solvers.kernel_learning.simplex_newton import SimplexNewton
from mercer.solvers.linear_margin.dual_descent import DualDescent
from mercer.solvers.linear_margin.interior_point import InteriorPoint
from mercer.solvers.many import Each
from mercer.solvers.margin.descent import Gap, Violation
from mercer.solvers.margin.path import SMOPath
from mercer.solvers.margin.smo import SMO
from mercer.solvers.margin.working_sets import WorkingSets
from mercer.solvers.mixture.em import EM
from mercer.solvers.mixture.latent_em import LatentEM
from mercer.solvers.multitask.evidence import TaskAscent
from mercer.solvers.multitask.features import TaskFeatures
from mercer.solvers.multitask.posterior import KroneckerPosterior, TaskCholesky
from mercer.solvers.neural.network_adam import NetworkAdam
from mercer.solvers.neural.network_lbfgs import NetworkLBFGS
from mercer.solvers.online.mistakes import Mistakes
from mercer.solvers.process.evidence import EvidenceAscent
from mercer.solvers.process.laplace import LaplaceAscent, LaplaceMode
from mercer.solvers.process.posterior import ExactPosterior
from mercer.solvers.ridge.band_path import BandPath
from mercer.solvers.ridge.cholesky import Cholesky
from mercer.solvers.ridge.cholesky_path import CholeskyPath
from mercer.solvers.ridge.conjugate_gradient import ConjugateGradient
from mercer.solvers.ridge.folds.band import BandFolds
from mercer.solvers.ridge.folds.cholesky import CholeskyFolds
from mercer.solvers.ridge.folds.krylov import KrylovFolds
from mercer.solvers.ridge.folds.leave_one_out import BandLeaveOneOut
from mercer.solvers.ridge.folds.primal import PrimalFolds
from mercer.solvers.ridge.full.eigenpro import EigenPro
from mercer.solvers.ridge.full.sketch_and_project import SketchAndProject
from mercer.solvers.ridge.primal import Primal
from mercer.solvers.ridge.primal_gradient import PrimalConjugateGradient
from mercer.solvers.ridge.primal_path import PrimalPath
from mercer.solvers.risk.annealed import AnnealedGradient
from mercer.solvers.risk.gradient import GradientDescent, StochasticGradient
from mercer.solvers.risk.lbfgs import LBFGSRisk
from mercer.solvers.risk.newton import NewtonRisk
from mercer.solvers.risk.unpenalized import UnpenalizedNewton
from mercer.solvers.semi_supervised.deform import Deform
from mercer.solvers.semi_supervised.graph_cholesky import GraphCholesky
from mercer.solvers.semi_supervised.graph_conjugate_gradient import GraphConjugateGradient
from mercer.solvers.solve import SolverError, solve
from mercer.solvers.spectral.eigh import Eigh
from mercer.solvers.spectral.inverse_lanczos import InverseLanczos
from mercer.solvers.spectral.lanczos import Lanczos
from mercer.solvers.spectral.lobpcg import LOBPCG
from mercer.solvers.spectral.restarted_lanczos import RestartedLanczos
from mercer.solvers.spectral.sinkhorn import Sinkhorn

__all__ = [
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
    "BandLeaveOneOut",
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
    "EigenPro",
    "Eigh",
    "EighCorrelation",
    "FittedQIteration",
    "Gap",
    "GaussianLikelihood",
    "InteriorPoint",
    "InverseLanczos",
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
    "LBFGSRisk",
    "LowRankCorrelation",
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
    "RestartedLanczos",
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
