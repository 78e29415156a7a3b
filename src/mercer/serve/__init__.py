"""Predictions of a model over HTTP, on this computer."""

from mercer.serve.guard import ServeLimits
from mercer.serve.server import application, run

__all__ = ["ServeLimits", "application", "run"]
