"""Learning what to do: problem, solvers, certificate, estimators."""

from mercer.machines.reinforcement import certificate  # noqa: F401  for what it registers
