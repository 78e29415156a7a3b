"""Few labels, many rows: problems, solvers, certificates, estimators."""

from mercer.machines.semi_supervised import certificate  # noqa: F401  for what it registers
