"""Reinforcement learning with kernels, and two environments to try it: a car and a pendulum.

A mountain car climbs a valley, and a cart balances a pole. Both are simulated in NumPy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer.array_types import Array
from mercer.machines.reinforcement.policies import FittedQ, KernelLSPI, Transitions

__all__ = ["Environment", "FittedQ", "KernelLSPI", "MountainCar", "Pendulum", "Transitions"]


class Environment(ABC):
    """A world: states are rows of numbers, actions are a few numbers.

    Attributes
    ----------
    actions : tuple of float
        The possible actions.
    low, high : tuple of float
        A box of states to explore.
    discount : float
        Factor of a reward one step later (discount factor).
    """

    actions: ClassVar[tuple[float, ...]]
    low: ClassVar[tuple[float, ...]]
    high: ClassVar[tuple[float, ...]]
    discount: ClassVar[float]

    @abstractmethod
    def step(
        self, states: Array, actions: Array, rng: np.random.Generator
    ) -> tuple[Array, Array, Array]:
        """Act in many states at once.

        Parameters
        ----------
        states : (n, d) array
            States.
        actions : (n,) array
            The action in each.
        rng : numpy.random.Generator
            Source of noise.

        Returns
        -------
        next_states : (n, d) array
            The following states.
        rewards : (n,) array
            The rewards.
        ended : (n,) bool array
            Whether it is over.
        """

    @abstractmethod
    def start(self, count: int, rng: np.random.Generator) -> Array:
        """Return states in which episodes begin."""

    def explore(self, count: int, random_state: int = 0) -> Transitions:
        """Return transitions from states drawn evenly from the box, with random actions.

        Parameters
        ----------
        count : int
            Number of transitions.
        random_state : int, default=0
            Seed.

        Returns
        -------
        Transitions
            The observed transitions.
        """
        rng = np.random.default_rng(random_state)
        states = rng.uniform(self.low, self.high, (count, len(self.low)))
        return self._tried(states, rng)

    def wander(self, episodes: int, steps: int, random_state: int = 0) -> Transitions:
        """Return the transitions of episodes in which every action is random.

        Parameters
        ----------
        episodes : int
            Number of episodes.
        steps : int
            At most so many in each.
        random_state : int, default=0
            Seed.

        Returns
        -------
        Transitions
            The observed transitions.
        """
        rng = np.random.default_rng(random_state)
        states, seen = self.start(episodes, rng), []
        for _ in range(steps):
            done = self._tried(states, rng)
            seen.append(done)
            states = done.next_states[~done.ended]
            if not len(states):
                break
        return Transitions.joined(seen)

    def _tried(self, states: Array, rng: np.random.Generator) -> Transitions:
        actions = rng.choice(self.actions, len(states))
        after, rewards, ended = self.step(states, actions, rng)
        return Transitions(states, actions, rewards, after, ended)

    def follow(
        self, policy: Any, state: Any = None, *, steps: int = 1000, random_state: int = 0
    ) -> tuple[Array, Array, bool]:
        """Act by a policy until it is over.

        Parameters
        ----------
        policy : object with `act`
            Returns an action for each of several states.
        state : array-like or None, default=None
            Initial state; None for a state in which episodes begin.
        steps : int, default=1000
            At most so many.
        random_state : int, default=0
            Seed of the noise.

        Returns
        -------
        states : (t + 1, d) array
            The way.
        actions : (t,) array
            The actions.
        ended : bool
            Whether it was over before `steps` were done.
        """
        rng = np.random.default_rng(random_state)
        at = self.start(1, rng) if state is None else np.atleast_2d(np.asarray(state, float))
        states: list[Array] = [at[0]]
        actions: list[float] = []
        over = False
        while len(actions) < steps and not over:
            chosen = np.asarray(policy.act(at))
            at, _, ended = self.step(at, chosen, rng)
            states.append(at[0])
            actions.append(float(chosen[0]))
            over = bool(ended[0])
        return np.array(states), np.array(actions), over


@dataclass(frozen=True)
class MountainCar(Environment):
    """A car in a valley whose engine is too weak for the slope (Moore 1990; Sutton and Barto).

    v' = v + 0.001 a - 0.0025 cos 3x within +-0.07, x' = x + v', and the car stops at x = -1.2;
    a in {-1, 0, 1}. Each step costs 1 until x reaches 0.5. From the bottom at zero velocity, the
    shortest way takes a little more than a hundred steps.

    Examples
    --------
    >>> import numpy as np
    >>> car = MountainCar()
    >>> after, reward, ended = car.step(np.array([[0.49, 0.07]]), np.array([1.0]), None)
    >>> float(reward[0]), bool(ended[0])
    (-1.0, True)
    """

    actions = (-1.0, 0.0, 1.0)
    low = (-1.2, -0.07)
    high = (0.5, 0.07)
    discount = 0.99

    def step(self, states: Array, actions: Array, rng: Any = None) -> tuple[Array, Array, Array]:
        """Drive one step; no noise."""
        x, v = states.T
        v = np.clip(v + 0.001 * actions - 0.0025 * np.cos(3.0 * x), -0.07, 0.07)
        x = x + v
        v = np.where(x < -1.2, 0.0, v)
        x = np.clip(x, -1.2, 0.5)
        return np.column_stack([x, v]), np.full(len(x), -1.0), x >= 0.5

    def start(self, count: int, rng: np.random.Generator) -> Array:
        """Return the bottom of the valley with zero velocity."""
        return np.tile([-np.pi / 6, 0.0], (count, 1))


@dataclass(frozen=True)
class Pendulum(Environment):
    """A pole on a cart, to be kept upright (Wang et al. 1996; Lagoudakis and Parr 2003).

    The angle from upright obeys theta'' = (g sin theta - c m l theta'^2 sin(2 theta) / 2 -
    c cos(theta) u) / (4 l / 3 - c m l cos(theta)^2) with g = 9.8 m/s^2, m = 2 kg, M = 8 kg,
    l = 0.5 m, c = 1 / (m + M), in steps of 0.1 s; u in {-50, 0, 50} newton plus noise even within
    +-10. A fall, |theta| > pi / 2, costs 1 and ends it; nothing else counts. Random actions last
    about six steps; 3000 steps, five minutes, count as solved.

    Examples
    --------
    >>> import numpy as np
    >>> pole = Pendulum(noise=0.0)
    >>> after, reward, ended = pole.step(np.array([[1.5, 3.0]]), np.array([0.0]), None)
    >>> float(reward[0]), bool(ended[0])
    (-1.0, True)
    """

    actions = (-50.0, 0.0, 50.0)
    low = (-1.2, -4.0)
    high = (1.2, 4.0)
    discount = 0.95

    noise: float = 10.0

    def step(self, states: Array, actions: Array, rng: Any = None) -> tuple[Array, Array, Array]:
        """Push for a tenth of a second."""
        theta, speed = states.T
        force = np.asarray(actions, dtype=np.float64)
        if self.noise > 0:
            force = force + rng.uniform(-self.noise, self.noise, len(theta))
        g, m, half, c = 9.8, 2.0, 0.5, 0.1
        swing = c * m * half * speed**2 * np.sin(2.0 * theta) / 2.0
        pull = g * np.sin(theta) - swing - c * np.cos(theta) * force
        faster = pull / (4.0 * half / 3.0 - c * m * half * np.cos(theta) ** 2)
        # semi-implicit Euler: the speed first, which does not add energy
        speed = speed + 0.1 * faster
        theta = theta + 0.1 * speed
        fallen = np.abs(theta) > np.pi / 2
        return np.column_stack([theta, speed]), np.where(fallen, -1.0, 0.0), fallen

    def start(self, count: int, rng: np.random.Generator) -> Array:
        """Return states near upright."""
        return rng.uniform(-0.05, 0.05, (count, 2))
