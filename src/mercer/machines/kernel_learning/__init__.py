"""Learning the kernel: weights of a sum, one scale per feature."""

from mercer.machines.kernel_learning import certificate, solvers  # noqa: F401  for what it registers
