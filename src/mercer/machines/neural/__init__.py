"""Autoencoders: problem, training, certificate, estimators."""

from mercer.machines.neural import certificate  # noqa: F401  for what it registers
