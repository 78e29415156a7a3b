"""Descent for smooth risks: line search, in the space of weights or of coefficients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.factorizations import eigh
from mercer.deadline import row_slices
from mercer.gram import FactoredGram, Gram, exact
from mercer.gram.factored import squared_lengths
from mercer.machines.logistic.problem import SmoothRisk
from mercer.machines.ridge.problem import Coefficients
from mercer.rows.device_rows import CardRows
from mercer.rows.points import is_sparse, to_host
from mercer.solvers.base import Status, Watch
from mercer.solvers.linear_algebra import dual_form

# --- space ---------------------------------------------------------------------------------------
#
# Where a smooth risk is minimised: weights of features, or coefficients of rows.
#
# An element of either space holds its coordinates and its image, the scores it gives the rows.
# Inner products are those of functions: w'w for weights, a'Ka for coefficients. So one descent
# serves both, and with coefficients needs one product with K for each gradient.

_EPS = float(np.finfo(float).eps)
_NEAR = 1e-3  # of the mean squared length: means that are no trouble
_ROWS = 1024  # of features, multiplied together
_JITTERS = (16.0, 1e4, 1e7)  # times the rounding of a Cholesky factor


class Element:
    """A function and its bias.

    Parameters
    ----------
    coef : (D, k) array
        Coordinates.
    bias : (k,) array
        The bias.
    make : callable
        Returns the image of coordinates: the scores of the rows, without the bias.
    image : (n, k) array, optional
        The image where it is known; else it is made when it is first asked for.
    """

    __slots__ = ("_image", "_make", "bias", "coef")

    def __init__(
        self,
        coef: Array,
        bias: Array,
        make: Callable[[Array], Array],
        image: Array | None = None,
    ) -> None:
        self.coef, self.bias, self._make, self._image = coef, bias, make, image

    @property
    def image(self) -> Array:
        """Scores of the rows without the bias."""
        if self._image is None:
            self._image = self._make(self.coef)
        return self._image

    def plus(self, t: float, other: Element) -> Element:
        """Return self + t other; with an image if this one has it."""
        image = None if self._image is None else self._image + t * other.image
        return Element(self.coef + t * other.coef, self.bias + t * other.bias, self._make, image)

    def times(self, t: float) -> Element:
        """Return t self."""
        image = None if self._image is None else t * self._image
        return Element(t * self.coef, t * self.bias, self._make, image)

    @property
    def scores(self) -> Array:
        """The values of the function at the rows."""
        return self.image + self.bias


class Space(ABC):
    """Functions on the rows of a problem.

    Attributes
    ----------
    lengths : (n,) array
        sqrt(k(x_i, x_i)); with a bias, distances from the mean, since it can move there at no cost.
    scale : float
        How long the constant feature of the bias is taken to be, squared.
    agreement : float
        Of the weights: how far coefficients of rows, by the slopes, may be from them at the end.
    """

    agreement = np.inf

    def __init__(self, problem: SmoothRisk, diagonal: Array) -> None:
        self.problem = problem = problem.placed()
        self.lengths = problem.beside(np.sqrt(np.maximum(diagonal, 0.0)))
        share = problem.weights / problem.weights.sum()
        size = float(share @ np.square(self.lengths))
        self.scale = size if np.isfinite(size) and size > 0 else 1.0
        self._pulled: tuple[Element, Array] | None = None
        self._scale_of: tuple[Element, float] | None = None

    def element(self, coef: Array, bias: Array) -> Element:
        """Return the element with some coordinates."""
        return Element(coef, bias, self.scored)

    @abstractmethod
    def scored(self, coef: Array) -> Any:
        """Return the scores of the rows, without a bias."""

    @abstractmethod
    def lift(self, weighted_slopes: Array) -> Array:
        """Return the coordinates of sum_i pulls_i k(x_i, .)."""

    @abstractmethod
    def inner(self, u: Element, v: Element) -> float:
        """Multiply two elements."""

    def change(self, u: Element, v: Element) -> Element:
        """Return u - v."""
        return u.plus(-1.0, v)

    @abstractmethod
    def squared(self, u: Element) -> float:
        """Return the squared norm of a function, without its bias."""

    @abstractmethod
    def zero(self) -> Element:
        """Return the function zero."""

    @abstractmethod
    def answer(self, element: Element) -> Coefficients:
        """Return an element as an answer to the problem."""

    def objective(self, u: Element) -> float:
        """Return the weighted loss and the penalty."""
        risk, weighted_slopes = self.problem.both(u.scores)
        self._pulled = u, weighted_slopes
        return risk + 0.5 * self.problem.penalty * self.squared(u)

    def gradient(self, u: Element) -> Element:
        """Return the element whose products with others are the derivatives of the objective."""
        weighted_slopes = self.weighted_slopes(u)
        return self._dual(
            self.problem.penalty * u.coef + self.lift(weighted_slopes), weighted_slopes
        )

    def weighted_slopes(self, u: Element) -> Any:
        """Return the weighted slopes of the loss; several ask for those of one element."""
        if self._pulled is None or self._pulled[0] is not u:
            self._pulled = u, self.problem.weighted_slopes(u.scores)
        return self._pulled[1]

    def curved(self, bend: Any, v: Element) -> Element:
        """Multiply by the second derivatives."""
        moved = self.problem.weights[:, None] * bend.times(v.scores)
        return self._dual(self.problem.penalty * v.coef + self.lift(moved), moved)

    def tolerance(self, u: Element) -> float:
        """Return what pulls on the function before it cancels: gradients are small beside it."""
        if self._scale_of is None or self._scale_of[0] is not u:
            sizes = self.problem.sizes(self.weighted_slopes(u))
            reach = np.sqrt(np.square(self.lengths) + (self.scale if self.problem.bias else 0.0))
            self._scale_of = u, float((reach @ sizes).sum())
        return self._scale_of[1]

    def agrees(self, u: Element, size: float) -> bool:
        """Return whether a gradient of this size leaves both forms of the answer near enough."""
        if np.isinf(self.agreement):
            return True
        return bool(size <= self.agreement * self.problem.penalty * np.sqrt(self.squared(u)))

    def coef_of(self, u: Element) -> Any:
        """Return a = -s loss'(f) / penalty: what the coefficients of rows are at a minimum."""
        return -self.weighted_slopes(u) / self.problem.penalty

    def _dual(self, coef: Array, weighted_slopes: Array) -> Element:
        bias = np.zeros(self.problem.columns)
        if self.problem.bias:
            bias = self.scale * weighted_slopes.sum(axis=0)
        return self.element(coef, bias)


class FeatureSpace(Space):
    """Weights of explicit features.

    With a bias, features that are dense are taken from their mean where that is not near zero
    anyway: the bias makes up for it, and columns far from zero are as easy as others.

    Attributes
    ----------
    F : (n, D) array, sparse array or CardRows
        The features, from their mean, where they lie.
    middle : (D,) array or None
        That mean.
    """

    def __init__(self, problem: SmoothRisk, features: Any, diagonal: Array) -> None:
        problem = problem.placed()
        self.F: Any = features
        self.middle: Array | None = None
        if problem.bias and not is_sparse(features):
            share = problem.weights / problem.weights.sum()
            middle = share @ features
            if middle @ middle > _NEAR * float(share @ diagonal):
                self.F, self.middle = _from_origin(features, middle), middle
                diagonal = squared_lengths(self.F)
        super().__init__(problem, diagonal)

    def scored(self, coef: Array) -> Any:
        """Multiply; function after function in memory, since losses add up over functions."""
        if isinstance(self.F, CardRows):
            return self.F.image(coef)
        if not isinstance(self.F, np.ndarray):
            return np.asfortranarray(self.F @ coef)
        return np.asarray((coef.T @ self.F.T).T)

    def lift(self, weighted_slopes: Array) -> Array:
        """Pull on the weights; of several functions by blocks of rows, which stay in the cache."""
        if not isinstance(self.F, np.ndarray) or weighted_slopes.shape[1] == 1:
            return np.asarray(self.F.T @ weighted_slopes)
        total = np.zeros((weighted_slopes.shape[1], self.F.shape[1]))
        for first in range(0, len(self.F), _ROWS):
            part = slice(first, first + _ROWS)
            total += weighted_slopes[part].T @ self.F[part]
        return total.T

    def inner(self, u: Element, v: Element) -> float:
        """Multiply weights."""
        return float(np.vdot(u.coef, v.coef) + u.bias @ v.bias / self.scale)

    def change(self, u: Element, v: Element) -> Element:
        """Return u - v without an image, which products do not need."""
        return self.element(u.coef - v.coef, u.bias - v.bias)

    def squared(self, u: Element) -> float:
        """Square weights."""
        return float(np.vdot(u.coef, u.coef))

    def zero(self) -> Element:
        """Return weights of zero."""
        k = self.problem.columns
        coef, image = np.zeros((self.F.shape[1], k)), np.zeros((self.F.shape[0], k), order="F")
        return Element(coef, np.zeros(k), self.scored, self.problem.beside(image))

    def answer(self, element: Element) -> Coefficients:
        """Return coefficients of rows, and the weights where the features are the kernel's own."""
        coef, bias = self.coef_of(element), self._bias_of(element)
        if not isinstance(self.problem.gram, FactoredGram):
            return Coefficients(to_host(coef), bias)
        s, w = self.problem.weights, element.coef
        coef = dual_form(self.F, self.middle, s, self.problem.bias, coef, w)
        return Coefficients(to_host(coef), bias, w)

    def _bias_of(self, element: Element) -> Array:
        """Return the bias of features that are not taken from their mean."""
        if self.middle is None:
            return element.bias
        return np.asarray(element.bias - self.middle @ element.coef)


class TriangularSpace(FeatureSpace):
    """Features that are the rows of a triangular factor of K + a little."""

    def __init__(self, problem: SmoothRisk, factor: Array, diagonal: Array) -> None:
        super().__init__(problem, factor, diagonal)
        self._factor = factor

    def answer(self, element: Element) -> Coefficients:
        """Return coefficients by the slopes, or by the factor: what loses fewer digits.

        Slopes that are all rounding, as of squares with hardly a penalty, say little; neither does
        a factor of a matrix that is nearly singular.
        """
        direct = np.asarray(
            linalg.solve_triangular(self._factor, element.coef, trans="T", lower=True)
        )
        found = [
            Coefficients(coef, self._bias_of(element)) for coef in (self.coef_of(element), direct)
        ]
        return min(found, key=self.problem.objective)


class RowSpace(Space):
    """Coefficients of rows, for any K that can be multiplied."""

    def __init__(self, problem: SmoothRisk) -> None:
        super().__init__(problem, problem.gram.diag())
        self.gram = problem.gram
        if problem.bias:
            self.lengths = np.sqrt(_from_the_mean(problem))

    def scored(self, coef: Array) -> Any:
        """Multiply by K."""
        return np.asarray(self.gram @ coef)

    def lift(self, weighted_slopes: Array) -> Array:
        """Take the pulls as they are."""
        return weighted_slopes

    def inner(self, u: Element, v: Element) -> float:
        """Multiply in the metric of K."""
        return float((u.coef * v.image).sum() + u.bias @ v.bias / self.scale)

    def squared(self, u: Element) -> float:
        """Square in the metric of K."""
        return float((u.coef * u.image).sum())

    def zero(self) -> Element:
        """Return no coefficients."""
        nothing = np.zeros((len(self.problem.codes), self.problem.columns))
        return Element(nothing, np.zeros(self.problem.columns), self.scored, nothing)

    def answer(self, element: Element) -> Coefficients:
        """Return the coefficients."""
        return Coefficients(element.coef, element.bias)


def is_single(gram: Gram) -> bool:
    """Return whether K is held in float32, and known in float64: what is found is then a start."""
    if np.dtype(gram.dtype) != np.float32:
        return False
    return bool(np.dtype(exact(gram).dtype) == np.float64)


def space_of(problem: SmoothRisk) -> Space:
    """Return the features where there are any, else the rows."""
    gram = problem.gram
    if isinstance(gram, FactoredGram):
        return FeatureSpace(problem, gram.placed, gram.diag())
    return RowSpace(problem)


def factored_space(problem: SmoothRisk) -> tuple[FeatureSpace, bool]:
    """Return features for any stored K, its Cholesky factor; and whether K is semidefinite."""
    gram = problem.gram
    if isinstance(gram, FactoredGram):
        return FeatureSpace(problem, gram.placed, gram.diag()), True
    factor, semidefinite = _factor(gram)
    kind = TriangularSpace if semidefinite else FeatureSpace
    return kind(problem, factor, gram.diag()), semidefinite


def _from_origin(features: Any, origin: Array) -> Any:
    """Return dense features less an origin, where they lie."""
    if isinstance(features, CardRows):
        return features.from_origin(origin)
    moved = np.empty(features.shape)
    for part in row_slices(*features.shape):
        np.subtract(features[part], origin, out=moved[part])
    return moved


def _from_the_mean(problem: SmoothRisk) -> Array:
    """Return the squared distances of rows from their mean."""
    gram = problem.gram
    share = problem.weights / problem.weights.sum()
    means = np.asarray(gram @ share[:, None])[:, 0]
    return np.asarray(np.maximum(gram.diag() - 2 * means + share @ means, 0.0))


def _factor(gram: Gram) -> tuple[Array, bool]:
    K = np.asarray(exact(gram).dense() if is_single(gram) else gram.dense(), dtype=np.float64)
    rounding = len(K) * _EPS * max(float(np.abs(K.diagonal()).max(initial=0.0)), 1e-300)
    for jitter in _JITTERS:
        A = np.array(K, order="C")
        A.flat[:: len(A) + 1] += jitter * rounding
        if choose_backend().cholesky(A) == 0:
            for row, numbers in enumerate(A, start=1):
                numbers[row:] = 0.0  # in place: a copy would be one matrix more
            return A, True
    values, vectors = eigh(K)
    kept = values > len(K) * _EPS * float(np.abs(values).max())
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept])), False


# --- descent -------------------------------------------------------------------------------------
#
# The descent that Newton's method and L-BFGS share: direction, a step that pays, the next look.

Direction = Callable[[Element, Element], Element]
"""Gives where to go from an element with its gradient."""

_PAYS = 1e-4  # share of the promised descent that a step must bring
_SHORTEST = 1e-10
_SHRINKS = 0.9
_ROUNDING = 1e-15
_CLOSE = 1e-6  # gradient, relative, up to which a descent stopped by rounding has arrived
_SMALL = 1e-7  # gradient, relative, a tenth of what certificates ask: above it, go on
_GAP = 1e-7  # of the objective: a tenth of what certificates ask
_FLAT = 1e-11  # descent still promised, relative, below which objectives no longer tell


@dataclass(frozen=True, eq=False)
class DescentResult:
    """Where a descent ended."""

    element: Element
    objective: float
    status: Status
    steps: int


def descend(
    space: Space, start: Element, direction: Direction, tol: float, max_iter: int, watch: Watch
) -> DescentResult:
    """Go downhill until the gradient is `tol` times what pulls on the function.

    Of a convex loss the duality gap, by which the answer will be judged, must be small, too.
    """
    at = DescentResult(start, space.objective(start), Status.ITERATION_LIMIT, 0)
    cut = True
    with watch.keeping():
        for place in _iterates(space, at, direction, tol, max_iter, watch):
            at = place
        cut = False
    return replace(at, status=Status.TIME_LIMIT) if cut else at


def _iterates(
    space: Space, at: DescentResult, direction: Direction, tol: float, max_iter: int, watch: Watch
) -> Iterator[DescentResult]:
    """Go from place to place; the last one says why it is the last."""
    for step in range(max_iter):
        u, value = at.element, at.objective
        g = space.gradient(u)
        size, scale = np.sqrt(max(space.inner(g, g), 0.0)), space.tolerance(u)
        left = size / scale if scale > 0 else 0.0
        ended = None
        if not np.isfinite(value) or not np.isfinite(left):
            ended = Status.NOT_FINITE
        elif left <= tol and _proven(space, value, size) and space.agrees(u, size):
            ended = Status.SOLVED
        elif watch.tick(step, left):
            ended = watch.stopped or Status.STOPPED
        if ended is not None:
            yield replace(at, status=ended)
            return
        d = direction(u, g)
        slope = space.inner(g, d)
        if not slope < 0:
            d, slope = g.times(-1.0), -(size**2)
        flat = -slope <= _FLAT * abs(value)
        ahead = _by_gradient(space, u, d, size) if flat else None
        if ahead is None and (not flat or left > _SMALL):
            ahead = _step(space, u, value, d, slope)
        if ahead is None:
            arrived = flat or left <= max(_CLOSE, tol)
            yield replace(at, status=Status.SOLVED if arrived else Status.INACCURATE)
            return
        at = DescentResult(*ahead, Status.ITERATION_LIMIT, step + 1)
        yield at


def _proven(space: Space, value: float, size: float) -> bool:
    """Return whether the gradient proves the objective, bent by the penalty at least."""
    problem = space.problem
    return not problem.loss.convex or size**2 <= _GAP * 2 * problem.penalty * abs(value)


def near(space: Space, u: Element, g: Element, tol: float) -> bool:
    """Return whether the gradient is small beside what pulls on the function."""
    return bool(space.inner(g, g) <= (tol * space.tolerance(u)) ** 2)


def _by_gradient(space: Space, u: Element, d: Element, size: float) -> tuple[Element, float] | None:
    """Take a whole step where the gradient shrinks by it: near the end it sees more digits."""
    ahead = u.plus(1.0, d)
    g = space.gradient(ahead)
    if space.inner(g, g) < (_SHRINKS * size) ** 2:
        return ahead, space.objective(ahead)
    return None


def _step(
    space: Space, u: Element, value: float, d: Element, slope: float
) -> tuple[Element, float] | None:
    """Halve the step until it pays; None where no step does, to rounding."""
    t = 1.0
    while t > _SHORTEST:
        ahead = u.plus(t, d)
        with np.errstate(over="ignore", invalid="ignore"):
            reached = space.objective(ahead)
        if reached <= value + _PAYS * t * slope:
            return ahead, reached
        if -t * slope <= _ROUNDING * abs(value):  # more than this nobody can see
            return None
        t *= 0.5
    return None
