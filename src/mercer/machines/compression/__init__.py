"""Fewer support points: problem, pursuit, certificate."""

from mercer.machines.compression import problem  # noqa: F401  for what it registers
