"""Few labels, many rows: problems, solvers, certificates, estimators."""

from mercer.machines.semi_supervised import certificate, solvers  # noqa: F401  for what it registers
