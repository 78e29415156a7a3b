"""Expectation maximisation for a plane plus noise, with squared extrapolation.

A step takes expectations of the latent variables and then the best parameters for them; the
likelihood never falls. Every second step is followed by a leap along both, kept only where the
likelihood there is no lower than at the step before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.problems.mixture.latent import LatentGaussian, Plane
from mercer.problems.mixture.latent_moments import Moments, moments
from mercer.solvers.base import Solution, Solver, Status, Watch, report


@dataclass(frozen=True)
class LatentEM(Solver):
    """Expectation maximisation for `LatentGaussian`.

    Parameters
    ----------
    tol : float
        Stop when no derivative of the mean log-likelihood, in standard deviations, is larger.
    max_iter : int
        Largest number of passes over the rows.
    random_state : int
        Seed of the loadings to start from.
    """

    answers = LatentGaussian

    tol: float = 1e-6
    max_iter: int = 2000
    random_state: int = 0

    def run(self, problem: LatentGaussian, watch: Watch, start: Any = None) -> Solution:
        """Alternate two steps and a leap until the likelihood is flat."""
        model = self._start(problem) if start is None else start
        em_run = _LatentEMRun(problem, model, watch, self.tol, self.max_iter)
        with watch.keeping(lambda: bool(em_run.likelihoods)):
            em_run.from_here(model)
        if watch.stopped is not None:
            em_run.status = watch.stopped
        answer = replace(em_run.model, likelihoods=np.array(em_run.likelihoods))
        return report(self, answer, em_run.status, em_run.passes, watch)

    def _start(self, problem: LatentGaussian) -> Plane:
        """Begin with the observed means, and loadings in random directions."""
        rng = np.random.default_rng(self.random_state)
        flat = Plane(_zeros(problem), np.zeros((problem.X.shape[1], 1)), 1.0)
        sums = moments(problem, flat)
        count = np.maximum(sums.second[:, -1, -1], np.finfo(float).tiny)
        mean = sums.first[:, -1] / count
        variance = np.maximum(sums.squares / count - mean**2, 0.0)
        W = rng.standard_normal((len(mean), problem.count))
        W *= np.sqrt(variance)[:, None] / np.sqrt(problem.count)
        return Plane(mean, W, max(float(variance.mean()), problem.floor))


class _LatentEMRun:
    """Where the iteration stands: passes done, likelihoods seen, why it ended."""

    def __init__(
        self, problem: LatentGaussian, model: Plane, watch: Watch, tol: float, limit: int
    ) -> None:
        self._problem, self._watch, self.model = problem, watch, model
        self._tol, self._limit = tol, limit
        self._total = float(problem.weights.sum())
        self.passes, self.likelihoods = 0, list[float]()
        self.status = Status.ITERATION_LIMIT

    def from_here(self, model: Plane) -> None:
        """Walk to the end."""
        sums = self._e_step(model)
        while not self._ended(model, sums):
            one = sums.m_step(model, self._problem.floor)
            after_one = self._e_step(one)
            if self._ended(one, after_one):
                return
            two = after_one.m_step(one, self._problem.floor)
            after_two = self._e_step(two)
            ahead = _extrapolate(model, one, two, self._problem.floor)
            beyond = moments(self._problem, ahead)
            self.passes += 1
            model, sums = two, after_two
            if beyond.log_likelihood >= after_two.log_likelihood:
                model, sums = ahead, beyond
                self.likelihoods.append(beyond.log_likelihood)

    def _e_step(self, model: Plane) -> Moments:
        sums = moments(self._problem, model)
        self.passes += 1
        self.likelihoods.append(sums.log_likelihood)
        return sums

    def _ended(self, model: Plane, sums: Moments) -> bool:
        self.model = model
        slope = sums.slope(model, self._problem.floor, self._total)
        if slope <= self._tol:
            self.status = Status.SOLVED
            return True
        if self._watch.tick(self.passes, slope):
            self.status = self._watch.stopped or Status.STOPPED
            return True
        return self.passes >= self._limit


def _extrapolate(zero: Plane, one: Plane, two: Plane, floor: float) -> Plane:
    """Extrapolate two steps, in the parameters and the logarithm of the noise."""
    a, b, c = map(_packed, (zero, one, two))
    r, v = b - a, (c - b) - (b - a)
    length = float(np.linalg.norm(v))
    if length == 0:
        return two
    stretch = max(float(np.linalg.norm(r)) / length, 1.0)
    found = a + 2.0 * stretch * r + stretch**2 * v
    d, q = zero.loadings.shape
    noise = max(float(np.exp(np.clip(found[-1], -700.0, 700.0))), floor)
    return Plane(found[:d], found[d:-1].reshape(d, q), noise)


def _packed(model: Plane) -> Array:
    return np.concatenate([model.mean, model.loadings.ravel(), [np.log(model.noise)]])


def _zeros(problem: LatentGaussian) -> Array:
    return np.zeros(problem.X.shape[1])
