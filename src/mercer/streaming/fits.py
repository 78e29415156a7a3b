"""All fits over blocks, in one import."""

from mercer.streaming import logistic, ridge, svc
from mercer.streaming.fit import fit

__all__ = ["fit", "logistic", "ridge", "svc"]
