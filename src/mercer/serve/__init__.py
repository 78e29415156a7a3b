"""Answers of a model over HTTP, on this machine."""

from mercer.serve.application import application
from mercer.serve.limits import ServeLimits
from mercer.serve.run import run

__all__ = ["ServeLimits", "application", "run"]
