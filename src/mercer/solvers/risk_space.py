"""Where a smooth risk is minimised: weights of features, or coefficients of rows.

An element of either space holds its coordinates and its image, the scores it gives the rows. Inner
products are those of functions: w'w for weights, a'Ka for coefficients. So one descent serves
both, and with coefficients needs one product with K for each gradient.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._types import Array
from mercer.backends import choose_backend
from mercer.backends.interruptible import interruptible
from mercer.gram import FactoredGram, Gram
from mercer.problems import Coefficients
from mercer.problems.smooth_risk import SmoothRisk

_EPS = float(np.finfo(float).eps)
_JITTERS = (16.0, 1e4, 1e7)  # times the rounding of a Cholesky factor


@dataclass(frozen=True, eq=False)
class Element:
    """A function and its bias: coordinates, scores of the rows without the bias, the bias."""

    coef: Array
    image: Array
    bias: Array

    def plus(self, t: float, other: Element) -> Element:
        """Give self + t other."""
        return Element(
            self.coef + t * other.coef, self.image + t * other.image, self.bias + t * other.bias
        )

    def times(self, t: float) -> Element:
        """Give t self."""
        return Element(t * self.coef, t * self.image, t * self.bias)

    @property
    def scores(self) -> Array:
        """The values of the function at the rows."""
        return np.asarray(self.image + self.bias)


class Space(ABC):
    """Functions on the rows of a problem.

    Attributes
    ----------
    lengths : (n,) array
        sqrt(k(x_i, x_i)).
    scale : float
        How long the constant feature of the bias is taken to be, squared.
    """

    def __init__(self, problem: SmoothRisk, diagonal: Array) -> None:
        self.problem = problem
        self.lengths = np.sqrt(np.maximum(diagonal, 0.0))
        share = problem.weights / problem.weights.sum()
        size = float(share @ np.square(self.lengths))
        self.scale = size if np.isfinite(size) and size > 0 else 1.0

    @abstractmethod
    def element(self, coef: Array, bias: Array) -> Element:
        """Give the element with some coordinates."""

    @abstractmethod
    def lift(self, pulls: Array) -> Array:
        """Give the coordinates of sum_i pulls_i k(x_i, .)."""

    @abstractmethod
    def inner(self, u: Element, v: Element) -> float:
        """Multiply two elements."""

    @abstractmethod
    def zero(self) -> Element:
        """Give the function zero."""

    @abstractmethod
    def answer(self, element: Element) -> Coefficients:
        """Say an element in the words of the problem."""

    def objective(self, u: Element) -> float:
        """Give the weighted loss and the penalty."""
        own = Element(u.coef, u.image, np.zeros_like(u.bias))
        return self.problem.risk(u.scores) + 0.5 * self.problem.penalty * self.inner(own, own)

    def gradient(self, u: Element) -> Element:
        """Give the element whose products with others are the derivatives of the objective."""
        pulls = self.problem.pulls(u.scores)
        return self._dual(self.problem.penalty * u.coef + self.lift(pulls), pulls)

    def curved(self, bend: Any, v: Element) -> Element:
        """Multiply by the second derivatives."""
        moved = self.problem.weights[:, None] * bend.times(v.scores)
        return self._dual(self.problem.penalty * v.coef + self.lift(moved), moved)

    def tolerance(self, u: Element) -> float:
        """Give what pulls on the function before it cancels: gradients are small beside it."""
        pulls = self.problem.strengths(u.scores)
        reach = np.sqrt(np.square(self.lengths) + (self.scale if self.problem.bias else 0.0))
        return float(reach @ pulls.sum(axis=1))

    def coef_of(self, u: Element) -> Array:
        """Give a = -s loss'(f) / penalty: what the coefficients of rows are at a minimum."""
        return np.asarray(-self.problem.pulls(u.scores) / self.problem.penalty)

    def _dual(self, coef: Array, pulls: Array) -> Element:
        bias = np.zeros(self.problem.columns)
        if self.problem.bias:
            bias = self.scale * pulls.sum(axis=0)
        return self.element(coef, bias)


class FeatureSpace(Space):
    """Weights of explicit features."""

    def __init__(self, problem: SmoothRisk, features: Any, diagonal: Array) -> None:
        super().__init__(problem, diagonal)
        self.F = features

    def element(self, coef: Array, bias: Array) -> Element:
        """Multiply features by weights."""
        return Element(coef, np.asarray(self.F @ coef), bias)

    def lift(self, pulls: Array) -> Array:
        """Pull on the weights."""
        return np.asarray(self.F.T @ pulls)

    def inner(self, u: Element, v: Element) -> float:
        """Multiply weights."""
        return float((u.coef * v.coef).sum() + u.bias @ v.bias / self.scale)

    def zero(self) -> Element:
        """Give weights of zero."""
        k = self.problem.columns
        coef, image = np.zeros((self.F.shape[1], k)), np.zeros((self.F.shape[0], k))
        return Element(coef, image, np.zeros(k))

    def answer(self, element: Element) -> Coefficients:
        """Give coefficients of rows, and the weights where the features are the kernel's own."""
        own = isinstance(self.problem.gram, FactoredGram)
        return Coefficients(self.coef_of(element), element.bias, element.coef if own else None)


class RowSpace(Space):
    """Coefficients of rows, for any K that can be multiplied."""

    def __init__(self, problem: SmoothRisk) -> None:
        super().__init__(problem, problem.gram.diag())
        self.gram = problem.gram

    def element(self, coef: Array, bias: Array) -> Element:
        """Multiply by K."""
        return Element(coef, np.asarray(self.gram @ coef), bias)

    def lift(self, pulls: Array) -> Array:
        """Take the pulls as they are."""
        return pulls

    def inner(self, u: Element, v: Element) -> float:
        """Multiply in the metric of K."""
        return float((u.coef * v.image).sum() + u.bias @ v.bias / self.scale)

    def zero(self) -> Element:
        """Give no coefficients."""
        nothing = np.zeros((len(self.problem.codes), self.problem.columns))
        return Element(nothing, nothing, np.zeros(self.problem.columns))

    def answer(self, element: Element) -> Coefficients:
        """Give the coefficients."""
        return Coefficients(element.coef, element.bias)


def space_of(problem: SmoothRisk) -> Space:
    """Give the features where there are any, else the rows."""
    gram = problem.gram
    if isinstance(gram, FactoredGram):
        return FeatureSpace(problem, gram.factor, gram.diag())
    return RowSpace(problem)


def factored_space(problem: SmoothRisk) -> tuple[FeatureSpace, bool]:
    """Give features for any stored K, its Cholesky factor; and whether K is semidefinite."""
    gram = problem.gram
    if isinstance(gram, FactoredGram):
        return FeatureSpace(problem, gram.factor, gram.diag()), True
    factor, semidefinite = _factor(gram)
    return FeatureSpace(problem, factor, gram.diag()), semidefinite


def _factor(gram: Gram) -> tuple[Array, bool]:
    K = np.array(gram.dense(), dtype=np.float64, order="C")
    rounding = len(K) * _EPS * max(float(np.abs(K.diagonal()).max(initial=0.0)), 1e-300)
    for jitter in _JITTERS:
        A = K.copy()
        A.flat[:: len(A) + 1] += jitter * rounding
        if choose_backend().cholesky(A) == 0:
            return np.tril(A), True
    values, vectors = interruptible(np.linalg.eigh, K)
    kept = values > len(K) * _EPS * float(np.abs(values).max())
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept])), False
