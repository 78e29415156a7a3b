"""How a question is answered: one algorithm per file, each returning a `Solution`.

`solve` is the door; `auto.choose` the only choice of algorithm. A solver is a value that holds
options; problem, start and clock are passed to it.
"""

from mercer.solvers.band_path import BandPath
from mercer.solvers.base import Callback, Progress, Solution, Solver, Status, Watch
from mercer.solvers.cholesky import Cholesky
from mercer.solvers.cholesky_path import CholeskyPath
from mercer.solvers.conjugate_gradient import ConjugateGradient
from mercer.solvers.criteria import Gap, Violation
from mercer.solvers.dual_descent import DualDescent
from mercer.solvers.eigh import Eigh
from mercer.solvers.interior_point import InteriorPoint
from mercer.solvers.lanczos import Lanczos
from mercer.solvers.many import Each
from mercer.solvers.primal import Primal
from mercer.solvers.primal_path import PrimalPath
from mercer.solvers.smo import SMO
from mercer.solvers.solve import SolverError, solve
from mercer.solvers.working_sets import WorkingSets

__all__ = [
    "BandPath",
    "Callback",
    "Cholesky",
    "CholeskyPath",
    "ConjugateGradient",
    "DualDescent",
    "Each",
    "Eigh",
    "Gap",
    "InteriorPoint",
    "Lanczos",
    "Primal",
    "PrimalPath",
    "Progress",
    "SMO",
    "Solution",
    "Solver",
    "SolverError",
    "Status",
    "Violation",
    "Watch",
    "WorkingSets",
    "solve",
]
