"""Autoencoders: problem, training, certificate, estimators."""

from mercer.machines.neural import certificate, training  # noqa: F401  to register them
