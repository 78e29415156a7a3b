"""Newton's steps by conjugate gradients, and the mean curvature of a risk that shortens them.

The second derivatives of a risk are sum_i s_i B_i x x_i x_i' + penalty, with B_i the curvature
between the scores of row i. With the mean of the B_i in place of each they are a product of a small
matrix and the scatter of the features, which two eigendecompositions invert. What is left is what
rows differ by in curvature: few steps, whatever the condition of the features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.lapack import interruptible
from mercer.problems.risk.losses import LossCurvature
from mercer.solvers.base import Watch
from mercer.solvers.risk.space import Element, FeatureSpace
from mercer.solvers.weighted_gram import weighted_gram

WIDEST = 1200  # features: up to here their scatter is decomposed
_SHARPEST = 1e-5  # of a gradient: what one solve is asked to leave of it, at the end
_EPS = float(np.finfo(float).eps)

Undo = Callable[[Array, Array], tuple[Array, Array]]
"""Gives what a preconditioner makes of derivatives by weights and by biases."""


class NewtonSteps(ABC):
    """Newton's steps in a space of features that are dense, by preconditioned conjugate gradients.

    Parameters
    ----------
    space : FeatureSpace
        The features.
    """

    def __init__(self, space: FeatureSpace) -> None:
        self.space = space
        s = space.problem.weights
        self._weight: float | Array = float(s[0]) if (s == s[0]).all() else s[:, None]

    @abstractmethod
    def inverse(self, bend: LossCurvature) -> Undo:
        """Return what undoes the second derivatives, nearly."""

    def step(
        self, u: Element, g: Element, tol: float, watch: Watch, most: int
    ) -> tuple[Element, bool]:
        """Return Newton's step from u, and whether `most` conjugate gradients were enough."""
        space, problem = self.space, self.space.problem
        bend = problem.loss.curvature(u.scores, problem.codes)
        undo = self.inverse(bend)
        left, left_b = -g.coef, -g.bias / space.scale
        step, step_b = np.zeros_like(left), np.zeros_like(left_b)
        way, way_b = undo(left, left_b)
        size = _inner(left, way, left_b, way_b)
        goal, solved = size * self.share(u, g, tol) ** 2, False
        for _ in range(most):
            bent, bent_b = self._times(bend, way, way_b)
            curvature = _inner(way, bent, way_b, bent_b)
            if not curvature > 0:
                break
            t = size / curvature
            step, step_b = step + t * way, step_b + t * way_b
            left, left_b = left - t * bent, left_b - t * bent_b
            ahead, ahead_b = undo(left, left_b)
            before, size = size, _inner(left, ahead, left_b, ahead_b)
            if size <= goal:
                solved = True
                break
            if watch.late:
                break
            way, way_b = ahead + size / before * way, ahead_b + size / before * way_b
        return space.element(step, step_b), solved

    def share(self, u: Element, g: Element, tol: float) -> float:
        """Return how exactly to solve: more near the end; enough for `tol` if in reach."""
        space = self.space
        size, scale = np.sqrt(max(space.inner(g, g), 0.0)), space.tolerance(u)
        left = size / scale if scale > 0 else 0.0
        goal = 0.3 * tol / left if left > 0 else 0.0
        return float(goal if goal >= _SHARPEST else min(0.1, np.sqrt(left)))

    def scored(self, D: Array) -> Any:
        """Return the scores of the rows, without a bias."""
        return self.space.scored(D)

    def lift(self, pulls: Array) -> Array:
        """Pull on the weights."""
        return self.space.lift(pulls)

    def _times(self, bend: LossCurvature, D: Array, b: Array) -> tuple[Array, Array]:
        """Multiply by the second derivatives."""
        problem = self.space.problem
        scores = self.scored(D)
        scores += b
        moved = bend.times(scores)
        moved *= self._weight
        sums = moved.sum(axis=0) if problem.bias else np.zeros_like(b)
        return problem.penalty * D + self.lift(moved), sums


class HessianPreconditioner(NewtonSteps):
    """The shape of a risk in a space of features that are dense and centred.

    Parameters
    ----------
    space : FeatureSpace
        The features.
    """

    def __init__(self, space: FeatureSpace) -> None:
        super().__init__(space)
        s = space.problem.weights
        scatter = weighted_gram(space.F, s)
        self._sizes, self._axes = interruptible(np.linalg.eigh, scatter)
        self._total = float(s.sum())

    def at(self, u: Element) -> Callable[[Element], Element]:
        """Return what undoes the curvature of the risk at u, were all rows bent as on average."""
        space = self.space
        bend = space.problem.loss.curvature(u.scores, space.problem.codes)
        undo = self.inverse(bend)

        def undone(g: Element) -> Element:
            # the gradient of the bias as a function has the scale of its feature in it
            return space.element(*undo(g.coef, g.bias / space.scale))

        return undone

    def inverse(self, bend: LossCurvature) -> Undo:
        """Return what undoes the second derivatives, were all rows bent as they are on average."""
        problem, U = self.space.problem, self._axes
        sizes, V = np.linalg.eigh(bend.mean(problem.weights))
        sizes = np.maximum(sizes, 0.0)
        weights = np.multiply.outer(self._sizes, sizes) + problem.penalty
        biases = self._total * sizes
        moves = (biases > 1e3 * _EPS * biases.max(initial=0.0)) & problem.bias
        inverse_b = np.where(moves, 1.0 / np.where(moves, biases, 1.0), 0.0)

        def undo(D: Array, b: Array) -> tuple[Array, Array]:
            return U @ ((U.T @ D @ V) / weights) @ V.T, V @ (inverse_b * (V.T @ b))

        return undo


def _inner(D: Array, E: Array, b: Array, c: Array) -> float:
    return float(np.vdot(D, E) + b @ c)
