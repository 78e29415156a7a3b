"""The scikit-learn face: validate, translate to a problem, keep the answer. Thin."""

from mercer.machines._parameters import ParameterError
from mercer.machines.ridge import KernelRidge
from mercer.machines.svc import SVC

__all__ = ["SVC", "KernelRidge", "ParameterError"]
