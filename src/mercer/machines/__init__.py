"""The scikit-learn face: validate, translate to a problem, keep the answer. Thin."""

from mercer.machines._parameters import ParameterError
from mercer.machines.ball import EnclosingBall
from mercer.machines.one_class import OneClassSVM
from mercer.machines.ridge import KernelRidge
from mercer.machines.svc import SVC
from mercer.machines.svr import SVR

__all__ = ["SVC", "SVR", "EnclosingBall", "KernelRidge", "OneClassSVM", "ParameterError"]
