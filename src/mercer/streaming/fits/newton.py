"""Directions of descent for risks over blocks: Newton's, or quasi-Newton where they are large."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.problems import LogLoss
from mercer.problems.blocks import BlockRisk
from mercer.streaming.sums import moments_of

_UNKNOWNS = 3000  # up to here second derivatives between all unknowns are held
_MEMORY = 20  # steps that quasi-Newton directions remember
_EPS = float(np.finfo(np.float64).eps)


class NewtonSystem:
    """Where to go from a point, for weights (D, k) and biases below them.

    With up to 3000 unknowns by Newton's equations. With more, as many classes have, by L-BFGS
    steps, begun with a bound of the second derivatives that is the same for all classes and
    factored once (Bohning): then a pass costs no more than the scores.

    Parameters
    ----------
    problem : BlockRisk
        What is asked.
    penalty : float
        Its penalty for weights that add up to one.
    """

    def __init__(self, problem: BlockRisk, penalty: float) -> None:
        self.problem, self.penalty = problem, penalty
        self.k, self.d = problem.columns, problem.rows.dimension
        self.exact = self.k * (self.d + 1) <= _UNKNOWNS
        self._steps: list[tuple[Array, Array]] = []
        self._bound: Any = None

    def gradient(self, slopes: Array, at: Array) -> Array:
        """Return the gradient of the objective, that of the penalty with it."""
        found = slopes.copy()
        found[:-1] += self.penalty * at[:-1]
        if not self.problem.bias:
            found[-1] = 0.0
        return found

    def direction(self, now: Any, at: Array, slope: Array) -> Array:
        """Return where to go."""
        return self._newton(now.curvature, slope) if self.exact else self._quasi(slope)

    def moved(self, before: Array, after: Array, slope: Array, slope_after: Array) -> None:
        """Remember a step, for the next direction."""
        if self.exact:
            return
        s, y = after - before, slope_after - slope
        if float((s * y).sum()) > _EPS * float(np.linalg.norm(s) * np.linalg.norm(y)):
            self._steps = [*self._steps[1 - _MEMORY :], (s, y)]

    def _newton(self, H: Array, slope: Array) -> Array:
        k, d = self.k, self.d
        for c in range(k):
            H[c, range(d), c, range(d)] += self.penalty
        if not self.problem.bias:
            H[:, d], H[:, :, :, d] = 0.0, 0.0
            H[range(k), d, range(k), d] = 1.0
        elif k > 1 and isinstance(self.problem.loss, LogLoss):
            # all biases up alike: no probability changes, any curve will do
            H[:, d, :, d] += max(float(np.einsum("cc->", H[:, d, :, d])), _EPS) / k**2
        A, right = H.reshape(k * (d + 1), k * (d + 1)), slope.T.ravel()
        sizes = np.maximum(np.abs(A.diagonal()), np.finfo(float).tiny)
        for ridge in (0.0, 1e2, 1e6):
            B = A.copy()
            B.flat[:: len(B) + 1] += ridge * _EPS * sizes
            try:
                factor = linalg.cho_factor(B, check_finite=False, overwrite_a=True)
            except linalg.LinAlgError:
                continue
            step = -linalg.cho_solve(factor, right, check_finite=False)
            if np.isfinite(step).all():
                return np.asarray(step.reshape(k, d + 1).T)
        return -slope

    def _quasi(self, slope: Array) -> Array:
        way, memory = slope.copy(), []
        for s, y in reversed(self._steps):
            a = float((s * way).sum()) / float((s * y).sum())
            way -= a * y
            memory.append(a)
        way = self._shaped(way)
        for (s, y), a in zip(self._steps, reversed(memory), strict=True):
            way += (a - float((y * way).sum()) / float((s * y).sum())) * s
        return -way

    def _shaped(self, way: Array) -> Array:
        """Divide by a bound of the second derivatives that all classes share."""
        if self._bound is None:
            loss, rows = self.problem.loss, self.problem.rows
            found = moments_of(rows, bool(self.problem.bias), targeted=False)
            steep = loss.steepest(self.k)
            A = steep * found.products / found.total
            A.flat[:: len(A) + 1] += self.penalty
            self._bound = linalg.cho_factor(A, check_finite=False), found.mean, steep
        factor, mean, steep = self._bound
        out = np.empty_like(way)
        # biases of centred features: b' = b + mean'w, so that they do not pull on the weights
        out[:-1] = linalg.cho_solve(factor, way[:-1] - np.outer(mean, way[-1]), check_finite=False)
        out[-1] = (way[-1] / steep if self.problem.bias else 0.0) - mean @ out[:-1]
        if not self.problem.bias:
            out[-1] = 0.0
        return out
