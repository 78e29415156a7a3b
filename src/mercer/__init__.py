"""Kernel machine learning, whole: one kernel language, exact solvers, a certificate with every fit.

Kernels live in `mercer.kernels`, machines here at the top::

    from mercer import SVC
    from mercer.kernels import Gaussian, Linear

    machine = SVC(Gaussian(2.0) + Linear(), C=10.0).fit(X, y)
    print(machine.certificate_)
"""

from mercer._config import Config, config, get_config, set_config
from mercer._resources import MemoryBudgetError
from mercer.certificates import Certificate, certify
from mercer.machines import (
    SVC,
    SVR,
    EnclosingBall,
    KernelRidge,
    OneClassSVM,
    ParameterError,
)
from mercer.solvers import Solution, SolverError, Status, solve

__version__ = "0.2.0"

__all__ = [
    "SVC",
    "SVR",
    "Certificate",
    "Config",
    "EnclosingBall",
    "KernelRidge",
    "MemoryBudgetError",
    "OneClassSVM",
    "ParameterError",
    "Solution",
    "SolverError",
    "Status",
    "certify",
    "config",
    "get_config",
    "set_config",
    "solve",
]
