"""Reinforcement learning with kernels, from a sample of transitions, and two worlds to try it."""

from mercer.reinforcement.environments import Environment, MountainCar, Pendulum
from mercer.reinforcement.fitted_q import FittedQ
from mercer.reinforcement.kernel_lspi import KernelLSPI
from mercer.reinforcement.transitions import Transitions

__all__ = ["Environment", "FittedQ", "KernelLSPI", "MountainCar", "Pendulum", "Transitions"]
