"""How a question is answered: one algorithm per file, each returning a `Solution`.

`solve` is the door; `auto.choose` the only choice of algorithm. A solver is a value that holds
options; problem, start and clock are passed to it.
"""

from mercer.solvers.annealed import AnnealedGradient
from mercer.solvers.averages import Averages
from mercer.solvers.band_path import BandPath
from mercer.solvers.base import Callback, Progress, Solution, Solver, Status, Watch
from mercer.solvers.cholesky import Cholesky
from mercer.solvers.cholesky_correlation import CholeskyCorrelation
from mercer.solvers.cholesky_discriminant import CholeskyDiscriminant
from mercer.solvers.cholesky_path import CholeskyPath
from mercer.solvers.conjugate_gradient import ConjugateGradient
from mercer.solvers.counting import Counting
from mercer.solvers.criteria import Gap, Violation
from mercer.solvers.dual_descent import DualDescent
from mercer.solvers.eigh import Eigh
from mercer.solvers.eigh_correlation import EighCorrelation
from mercer.solvers.em import EM
from mercer.solvers.entropy_newton import EntropyNewton
from mercer.solvers.gaussian_likelihood import GaussianLikelihood
from mercer.solvers.interior_point import InteriorPoint
from mercer.solvers.inverse_lanczos import InverseLanczos
from mercer.solvers.iterative_correlation import IterativeCorrelation
from mercer.solvers.iterative_scaling import IterativeScaling
from mercer.solvers.lanczos import Lanczos
from mercer.solvers.latent_em import LatentEM
from mercer.solvers.lbfgs_risk import LBFGSRisk
from mercer.solvers.lloyd import Lloyd
from mercer.solvers.lobpcg import LOBPCG
from mercer.solvers.lowrank_correlation import LowRankCorrelation
from mercer.solvers.many import Each
from mercer.solvers.maximum_flow import MaximumFlow, minimum_cut
from mercer.solvers.mistakes import Mistakes
from mercer.solvers.newton_risk import NewtonRisk
from mercer.solvers.nonnegative import Nonnegative
from mercer.solvers.primal import Primal
from mercer.solvers.primal_discriminant import PrimalDiscriminant
from mercer.solvers.primal_path import PrimalPath
from mercer.solvers.qr_correlation import QRCorrelation
from mercer.solvers.relaxation import Relaxation, Relaxed, relaxed
from mercer.solvers.restarted_lanczos import RestartedLanczos
from mercer.solvers.scale_descent import ScaleDescent
from mercer.solvers.seeding import Given, PlusPlus, RandomPoints, Seeding
from mercer.solvers.simplex_newton import SimplexNewton
from mercer.solvers.sinkhorn import Sinkhorn
from mercer.solvers.smo import SMO
from mercer.solvers.solve import SolverError, solve
from mercer.solvers.working_sets import WorkingSets

__all__ = [
    "EM",
    "EntropyNewton",
    "IterativeScaling",
    "LOBPCG",
    "SMO",
    "AnnealedGradient",
    "Averages",
    "BandPath",
    "Callback",
    "Cholesky",
    "CholeskyCorrelation",
    "CholeskyDiscriminant",
    "CholeskyPath",
    "ConjugateGradient",
    "Counting",
    "DualDescent",
    "Each",
    "Eigh",
    "EighCorrelation",
    "Gap",
    "GaussianLikelihood",
    "InteriorPoint",
    "InverseLanczos",
    "IterativeCorrelation",
    "Given",
    "Lanczos",
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
    "NewtonRisk",
    "Primal",
    "PrimalDiscriminant",
    "PrimalPath",
    "Progress",
    "QRCorrelation",
    "RestartedLanczos",
    "Sinkhorn",
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
