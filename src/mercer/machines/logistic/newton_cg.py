"""Newton steps by conjugate gradients, preconditioned by a mean or a sampled Hessian."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.factorizations import eigh
from mercer.deadline import check, row_slices
from mercer.gram.policy import FLOAT32_RANGE
from mercer.machines.logistic.descent import Element, FeatureSpace
from mercer.machines.logistic.problem import LossCurvature
from mercer.resources import within_budget
from mercer.rows.points import is_sparse
from mercer.solvers.base import Watch
from mercer.solvers.linear_algebra import weighted_gram

# --- preconditioned ------------------------------------------------------------------------------
#
# Newton's steps by conjugate gradients, and the mean curvature of a risk that shortens them.
#
# The second derivatives of a risk are sum_i s_i B_i x x_i x_i' + penalty, with B_i the curvature
# between the scores of row i. With the mean of the B_i in place of each they are a product of a
# small matrix and the scatter of the features, which two eigendecompositions invert. What is left
# is what rows differ by in curvature: few steps, whatever the condition of the features.

WIDEST = 1200  # features: up to here their scatter is decomposed
_SHARPEST = 1e-5  # of a gradient: what one solve is asked to leave of it, at the end
_PRECONDITIONED_EPS = float(np.finfo(float).eps)

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
        self._sizes, self._axes = eigh(scatter)
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
        moves = (biases > 1e3 * _PRECONDITIONED_EPS * biases.max(initial=0.0)) & problem.bias
        inverse_b = np.where(moves, 1.0 / np.where(moves, biases, 1.0), 0.0)

        def undo(D: Array, b: Array) -> tuple[Array, Array]:
            return U @ ((U.T @ D @ V) / weights) @ V.T, V @ (inverse_b * (V.T @ b))

        return undo


def _inner(D: Array, E: Array, b: Array, c: Array) -> float:
    return float(np.vdot(D, E) + b @ c)


# --- sampled hessian -----------------------------------------------------------------------------
#
# Newton's steps for many features: the curvature of a sample of the rows shortens them.
#
# The second derivatives of a few rows for each feature, at where the descent stands, are
# factored; conjugate gradients with all rows then take some ten products. Products run in float32
# where the penalty is above what that rounds: gradients are in float64, and steps that fall short
# are made up for by the next.

_SAMPLED_HESSIAN_EPS = float(np.finfo(float).eps)
_TINY = float(np.finfo(float).tiny)
_SINGLE = float(np.finfo(np.float32).eps)
_ROWS = 6  # for each feature
_STEPS = 500  # conjugate gradients of one step
_ROUNDED = 0.1  # of the penalty: what float32 may change in the second derivatives
_FLAT = 1e-12  # of the most bent direction between functions: not bent
_SHRINKS = 0.3  # of a gradient: what a step by float32 may leave of it near the end
_CLOSE = 1e-4  # gradient, relative: near the end
# Products with all rows that the factors may cost. One reads n d numbers twice, 0.4 ns for each; a
# sample of r rows is multiplied in r d^2 steps of 0.014 ns, and factored in d^3 of 0.007 ns.
_MOST = 200.0
_MULTIPLIED, _FACTORED = 28.0, 56.0
# Of the weights: what both forms of an answer are to agree to, less than `dual_form` asks: one step
# more takes fewer products than that would.
_AGREES = 3e-10
_WORK, _LEAST = 5e9, 256  # operations, and rows, between two chances to hear Ctrl-C
_COPIES = 3  # of a matrix of the features, while it is factored


class SampledHessian(NewtonSteps):
    """Steps with the second derivatives of a sample, at where they were last looked at.

    Parameters
    ----------
    space : FeatureSpace
        The features.
    """

    def __init__(self, space: FeatureSpace) -> None:
        super().__init__(space)
        space.agreement = _AGREES
        s, F, penalty = space.problem.weights, space.F, space.problem.penalty
        n, d = F.shape
        self._rows, self._shares = _sampled(s, min(n, _ROWS * d))
        bound = space.problem.loss.steepest(space.problem.columns)
        trace = bound * float(s @ np.square(space.lengths))
        size = float(space.lengths.max(initial=0.0))
        in_range = FLOAT32_RANGE[0] < size**2 < FLOAT32_RANGE[1]
        serves = in_range and _SINGLE * trace < _ROUNDED * penalty
        fits = within_budget(4.0 * (F.size + 2 * len(self._rows) * d))
        single = serves and fits and isinstance(F, np.ndarray)  # a card needs no such help
        self._quick: Array | None = _in_float32(F) if single else None
        self._sample = (F if self._quick is None else self._quick)[self._rows]
        self._undo: Undo | None = None
        self._cost, self._done = cost(space), 0.0
        self._before = np.inf

    def direction(self, u: Element, g: Element, tol: float, watch: Watch) -> Element:
        """Return Newton's step, with the curvature of the sample looked at anew if it pays."""
        size, scale = np.sqrt(max(self.space.inner(g, g), 0.0)), self.space.tolerance(u)
        if size <= _CLOSE * scale and size > _SHRINKS * self._before:
            self._quick = None  # float32 does not lead on
        self._before = size
        if self._done >= self._cost:
            self._undo = None
        return self.step(u, g, tol, watch, _STEPS)[0]

    def inverse(self, bend: LossCurvature) -> Undo:
        """Factor the second derivatives of the sample, if those at hand are worn."""
        if self._undo is None:
            self._undo, self._done = self._factored(bend), 0.0
        return self._undo

    def share(self, u: Element, g: Element, tol: float) -> float:
        """Ask for a gradient, too, by which coefficients of rows agree with the weights."""
        scale = self.space.tolerance(u)
        agreed = _AGREES * self.space.problem.penalty * np.sqrt(self.space.squared(u))
        return super().share(u, g, min(tol, agreed / scale) if agreed > 0 else tol)

    def scored(self, D: Array) -> Any:
        """Multiply, in float32 where that serves."""
        self._done += 1.0
        if self._quick is None:
            return super().scored(D)
        small, scales = _in_range(D)
        return np.asarray((small.T @ self._quick.T).T * scales, dtype=np.float64)

    def lift(self, pulls: Array) -> Array:
        """Pull on the weights, in float32 where that serves."""
        if self._quick is None:
            return super().lift(pulls)
        small, scales = _in_range(pulls)
        return np.asarray((small.T @ self._quick).T * scales, dtype=np.float64)

    def _factored(self, bend: LossCurvature) -> Undo:
        """Factor what the sample makes of them, direction by direction between functions.

        Rows count as they are bent on average over functions, and functions are bent together as
        on average over rows: of one function these are the second derivatives themselves.
        """
        problem, G, d = self.space.problem, self._sample, self._sample.shape[1]
        own = np.stack([_own(bend, c) for c in range(problem.columns)]).mean(axis=0)
        total = float(problem.weights @ own) / float(problem.weights.sum())
        sizes, V = np.linalg.eigh(bend.mean(problem.weights))
        sizes = np.maximum(sizes, 0.0) / total if total > 0 else np.zeros_like(sizes)
        h = self._shares * own[self._rows]
        S = np.zeros((d + 1, d + 1))
        S[:d, :d] = _squared(G, h)
        if problem.bias:
            S[d, :d] = S[:d, d] = h @ G
            S[d, d] = h.sum()
        bent = sizes > _FLAT * sizes.max(initial=0.0)  # all scores up alike: nothing bends
        factors = [_cholesky(size * S, problem.penalty) for size in sizes[bent]]

        def undo(D: Array, b: Array) -> tuple[Array, Array]:
            right = np.vstack([D, b]) @ V
            right[:, ~bent] /= problem.penalty
            right[-1, ~bent] = 0.0
            for c, factor in zip(np.flatnonzero(bent), factors, strict=True):
                right[:, c] = linalg.cho_solve((factor.T, False), right[:, c], check_finite=False)
            right = right @ V.T
            return right[:-1], right[-1] if problem.bias else np.zeros_like(b)

        return undo


def _squared(G: Any, h: Array) -> Array:
    """Return G' diag(h) G, in the type of an array G, between looks at the clock."""
    if not isinstance(G, np.ndarray):
        return weighted_gram(G, h)
    d = G.shape[1]
    total, height = np.zeros((d, d)), max(_LEAST, int(_WORK / d**2))
    for first in range(0, len(h), height):
        check()
        part = slice(first, first + height)
        A = G[part] * np.sqrt(h[part]).astype(G.dtype)[:, None]
        total += A.T @ A  # of one array with itself: half the work
    return total


def _in_float32(F: Array) -> Array:
    """Return a copy, made between looks at the clock."""
    quick = np.empty(F.shape, dtype=np.float32)
    for part in row_slices(*F.shape):
        quick[part] = F[part]
    return quick


def _own(bend: LossCurvature, c: int) -> Array:
    """Return the curvature of a function by itself."""
    own = bend.between(c, c)
    assert own is not None  # there always is one
    return np.maximum(own, 0.0)


def cost(space: FeatureSpace) -> float:
    """Return how many products with all rows the factors of a sample cost."""
    n, d = space.F.shape
    return float(d * (min(n, _ROWS * d) / _MULTIPLIED + space.problem.columns * d / _FACTORED) / n)


def is_sampled(space: FeatureSpace) -> bool:
    """Return whether a sample of the rows tells enough of the curvature, and at what cost."""
    n, d = space.F.shape
    if is_sparse(space.F) or not space.problem.loss.convex or n < d or cost(space) > _MOST:
        return False
    return within_budget(8.0 * (_COPIES + space.problem.columns) * (d + 1) ** 2)


def _sampled(s: Array, count: int) -> tuple[Array, Array]:
    """Draw rows by their weights; return them, and what each stands for."""
    n = len(s)
    if count == n:
        return np.arange(n), s
    rng, total = np.random.default_rng(0), float(s.sum())
    even = bool((s == s[0]).all())
    rows = rng.choice(n, count, replace=not even, p=None if even else s / total)
    return np.sort(rows), np.full(count, total / count)


def _in_range(V: Array) -> tuple[Array, Array]:
    """Return columns in float32, divided by powers of two, and these."""
    largest = np.abs(V).max(axis=0, initial=0.0)
    scales = np.ldexp(1.0, np.frexp(np.where(np.isfinite(largest), largest, 1.0))[1])
    return np.asarray(V / scales, dtype=np.float32), scales


def _cholesky(H: Array, penalty: float) -> Array:
    """Factor with a penalty of all but the last, the bias; more of it where rounding asks."""
    H.flat[: -1 : len(H) + 1] += penalty
    H[-1, -1] = H[-1, -1] or 1.0  # no bias
    sizes, shift = H.diagonal().copy(), 0.0
    while True:
        A = H.copy()
        A.flat[:: len(A) + 1] += shift * np.maximum(sizes, _TINY)
        if choose_backend().cholesky(A) == 0:
            return A
        shift = max(10.0 * shift, len(H) * _SAMPLED_HESSIAN_EPS)
