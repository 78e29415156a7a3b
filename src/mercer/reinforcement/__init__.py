"""Reinforcement learning with kernels, from a sample of transitions, and two worlds to try it."""

from mercer.machines.reinforcement.policies import FittedQ, KernelLSPI, Transitions
from mercer.reinforcement.environments import Environment, MountainCar, Pendulum

__all__ = ["Environment", "FittedQ", "KernelLSPI", "MountainCar", "Pendulum", "Transitions"]
