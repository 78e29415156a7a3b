"""What is asked: frozen values that hold a Gram and vectors, and nothing about how to answer.

A machine translates data to one of these; solvers answer them; certificates judge the answers.
`svm` writes each support vector machine as a `BoxQP`.
"""

from mercer.problems import svm
from mercer.problems.box_qp import BoxQP, Dual
from mercer.problems.eigenproblem import Eigenproblem, Modes
from mercer.problems.linear_system import Coefficients, LinearSystem
from mercer.problems.many import Duals, Many
from mercer.problems.ridge_path import PathValue, RidgePath

__all__ = [
    "BoxQP",
    "Coefficients",
    "Dual",
    "Duals",
    "Eigenproblem",
    "LinearSystem",
    "Many",
    "Modes",
    "PathValue",
    "RidgePath",
    "svm",
]
