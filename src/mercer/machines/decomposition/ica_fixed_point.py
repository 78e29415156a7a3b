"""ICA: contrasts, unmixing problem, fixed-point iteration, and certificate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf, nan
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import expm

from mercer.array_types import Array, Points
from mercer.resources import require_memory
from mercer.rows.points import is_sparse, to_dense
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.certificate import Certificate, certify, larger
from mercer.solvers.dispatch import choose

# --- contrasts -----------------------------------------------------------------------------------
#
# Contrasts: expectations E G(y) that tell how far from Gaussian a variable of variance one is.
#
# |E G(y) - E G(z)|, z a standard Gaussian, is zero for a Gaussian y. Its square is, up to a factor,
# an approximation of the negentropy of y (Hyvarinen, Fast and robust fixed-point algorithms for
# independent component analysis, IEEE Transactions on Neural Networks 10 (1999)).


class Contrast(ABC):
    """A smooth even function G, its first two derivatives, and its mean under a Gaussian."""

    gaussian: ClassVar[float]

    @abstractmethod
    def value(self, y: Array) -> Array:
        """Return G(y)."""

    @abstractmethod
    def slopes(self, y: Array) -> tuple[Array, Array]:
        """Return G'(y) and G''(y)."""


@dataclass(frozen=True)
class LogCosh(Contrast):
    """G(y) = log cosh y, for sources of any kind; G' = tanh."""

    gaussian = 0.3745672074914380

    def value(self, y: Array) -> Array:
        """Return log cosh y, without overflow."""
        size = np.abs(y)
        return np.asarray(size + np.log1p(np.exp(-2.0 * size)) - np.log(2.0))

    def slopes(self, y: Array) -> tuple[Array, Array]:
        """Return tanh y and its derivative."""
        g = np.tanh(y)
        return g, 1.0 - g**2


@dataclass(frozen=True)
class Cube(Contrast):
    """G(y) = y^4 / 4: a fourth of the kurtosis; a single outlier may decide it."""

    gaussian = 0.75

    def value(self, y: Array) -> Array:
        """Return y^4 / 4."""
        return np.asarray(y**4 / 4.0)

    def slopes(self, y: Array) -> tuple[Array, Array]:
        """Return y^3 and 3 y^2."""
        return y**3, 3.0 * y**2


@dataclass(frozen=True)
class NegativeBell(Contrast):
    """G(y) = -exp(-y^2 / 2): outliers do not count, for sources with heavy tails."""

    gaussian = -(0.5**0.5)

    def value(self, y: Array) -> Array:
        """Return -exp(-y^2 / 2)."""
        return np.asarray(-np.exp(-0.5 * y**2))

    def slopes(self, y: Array) -> tuple[Array, Array]:
        """Return y exp(-y^2 / 2) and its derivative."""
        bell = np.exp(-0.5 * y**2)
        return y * bell, (1.0 - y**2) * bell


CONTRASTS: dict[str, Contrast] = {"logcosh": LogCosh(), "cube": Cube(), "exp": NegativeBell()}
"""The contrasts by the names that scikit-learn has for them."""


def non_gaussianity(Y: Array, share: Array, contrast: Contrast) -> Array:
    """Return |E G(y) - E G(z)| of each column of variance one, rows counting by their share."""
    return np.asarray(np.abs(share @ contrast.value(Y) - contrast.gaussian))


# --- unmixing ------------------------------------------------------------------------------------
#
# y = W (x - mean): uncorrelated variables of variance one, as far from Gaussian as they can be.
#
# In white coordinates z (covariance I) the rows of W are orthonormal directions b, and what is
# sought is a local maximum of J = s (E G(b'z) - E G(gaussian)), of the sum over all directions at
# once (`joint`) or of one direction after another, each orthogonal to those before. The sign s is
# that of E[g(y) y] - E[g'(y)], g = G', which is zero for a Gaussian y: with it the local maxima
# are the fixed points of FastICA, where sources that are independent lie.


@dataclass(frozen=True, eq=False)
class Unmixing:
    """An answer to `IndependentComponents`.

    Attributes
    ----------
    mean : (d,) array
        The mean of the rows.
    components : (k, d) array
        W: y = W (x - mean).
    """

    mean: Array
    components: Array


@dataclass(frozen=True, eq=False)
class IndependentComponents:
    """Find directions along which rows look least Gaussian.

    Attributes
    ----------
    rows : Points
        Rows.
    weights : (n,) array
        How often each row counts, all positive.
    count : int
        How many directions.
    contrast : Contrast
        What tells a Gaussian from others.
    joint : bool
        Whether the sum over all directions is to be largest, or each after those before it.
    space : int
        The leading principal components that directions are sought among; at least `count`.
    """

    rows: Points
    weights: Array
    count: int
    contrast: Contrast
    joint: bool
    space: int

    def __post_init__(self) -> None:
        if not 1 <= self.count <= self.space:
            raise ValueError(
                f"IndependentComponents: count={self.count} must be from 1 to space={self.space}"
            )
        if self.joint and self.count != self.space:
            raise ValueError(
                f"IndependentComponents: count={self.count} directions together span their space, "
                f"so that space={self.space} must be the same; joint=False takes fewer"
            )

    @property
    def share(self) -> Array:
        """The weights as shares of their sum."""
        return np.asarray(self.weights / self.weights.sum())


# --- J and its derivatives: on the rotations, for all directions at once -------------------------


@dataclass(frozen=True, eq=False)
class JointMoments:
    """Moments of Y = Z B' that the sum of contrasts changes by, when B is turned to exp(A) B.

    Attributes
    ----------
    pull : (k, k) array
        E[g(y_i) y_j], g = G'.
    stiffness : (k,) array
        E[g'(y_i)].
    """

    pull: Array
    stiffness: Array

    @property
    def signs(self) -> Array:
        """The signs s with which contrasts are added up."""
        return np.where(np.diag(self.pull) < self.stiffness, -1.0, 1.0)

    @property
    def slope(self) -> Array:
        """The derivative of J by A_ij, i before j: s_i E[g(y_i) y_j] - s_j E[g(y_j) y_i]."""
        signed = self.signs[:, None] * self.pull
        return np.asarray(signed - signed.T)


def joint_moments(Y: Array, share: Array, contrast: Contrast) -> JointMoments:
    """Return the moments of variables Y, (n, k)."""
    g, stiff = contrast.slopes(Y)
    return JointMoments((share[:, None] * g).T @ Y, share @ stiff)


def joint_curvature(Y: Array, share: Array, contrast: Contrast, at: JointMoments) -> Array:
    """Return the second derivatives of J by the entries of A above the diagonal, in order.

    exp(A) = I + A + A^2 / 2 + ...: a term from the square of the step, and one from A^2.
    """
    k = Y.shape[1]
    stiff = contrast.slopes(Y)[1]
    M = np.zeros((k, k, k, k))
    for i in range(k):
        M[i, :, i, :] += at.signs[i] * (Y.T * (share * stiff[:, i])) @ Y
    signed = at.signs[:, None] * at.pull
    for j in range(k):
        M[:, j, j, :] += signed / 2
        M[j, :, :, j] += signed.T / 2
    a, b = np.triu_indices(k, 1)
    upper, lower = M[a, b], M[b, a]
    found = upper[:, a, b] - upper[:, b, a] - lower[:, a, b] + lower[:, b, a]
    return np.asarray((found + found.T) / 2)


# --- and on the sphere, for one direction --------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SingleMoments:
    """Moments of y = Z b.

    Attributes
    ----------
    sign : float
        The sign s.
    pull : (p,) array
        E[g(y) z].
    stiffness : float
        E[g'(y)].
    """

    sign: float
    pull: Array
    stiffness: float

    def slope(self, b: Array) -> Array:
        """Return the derivative of J along the sphere at b."""
        return np.asarray(self.sign * (self.pull - (self.pull @ b) * b))


def single_moments(Z: Array, b: Array, share: Array, contrast: Contrast) -> SingleMoments:
    """Return the moments of one direction b of white rows Z, (n, p)."""
    y = Z @ b
    g, stiff = contrast.slopes(y)
    stiffness = float(share @ stiff)
    sign = -1.0 if float(share @ (g * y)) < stiffness else 1.0
    return SingleMoments(sign, (share * g) @ Z, stiffness)


def single_curvature(
    Z: Array, b: Array, share: Array, contrast: Contrast, at: SingleMoments
) -> Array:
    """Return the second derivatives of J along the sphere at b: (p - 1, p - 1)."""
    tangent = tangent_basis(b)
    across = Z @ tangent
    stiff = contrast.slopes(Z @ b)[1]
    inner = (across.T * (share * stiff)) @ across - (at.pull @ b) * np.eye(len(b) - 1)
    return np.asarray(at.sign * (inner + inner.T) / 2)


def tangent_basis(b: Array) -> Array:
    """Return orthonormal columns orthogonal to unit columns b, (p,) or (p, j)."""
    columns = b.reshape(len(b), -1)
    return np.asarray(np.linalg.qr(columns, mode="complete")[0][:, columns.shape[1] :])


# --- landscapes ----------------------------------------------------------------------------------
#
# What a contrast looks like from a rotation, or from a point of the sphere: height, slope, steps.
#
# The fixed-point step of Hyvarinen is b <- E[g(b'z) z] - E[g'(b'z)] b, made orthonormal again:
# Newton's step with E[g' z z'] taken for E[g'] I, which is right where the sources are
# independent.

MOST_TURNED = 40  # directions whose 780 rotations of pairs have a matrix of second derivatives


@dataclass(frozen=True, eq=False)
class LandscapePoint:
    """A point, and what is seen from it.

    Attributes
    ----------
    point : Array
        The rotation or the unit vector.
    signs : (k,) array
        With which contrasts of directions are added up here.
    slope : Array
        The derivatives of the sum, in coordinates of the tangent space.
    moments : object
        What they were computed from.
    """

    point: Array
    signs: Array
    slope: Array
    moments: Any

    @property
    def steepness(self) -> float:
        """The largest derivative."""
        return float(np.abs(self.slope).max(initial=0.0))


class Landscape(ABC):
    """J over rotations or over a sphere."""

    Z: Array
    share: Array
    contrast: Contrast

    def excess(self, place: LandscapePoint) -> Array:
        """Return E G(y) - E G(gaussian) of each direction."""
        Y = self.Z @ place.point.T
        return np.atleast_1d(self.share @ self.contrast.value(Y) - self.contrast.gaussian)

    @abstractmethod
    def at(self, point: Array) -> LandscapePoint:
        """Look around."""

    @abstractmethod
    def fixed_step(self, place: LandscapePoint) -> Array:
        """Return where the fixed-point step leads."""

    @abstractmethod
    def curvature(self, place: LandscapePoint) -> Array:
        """Return the second derivatives: a matrix, or its diagonal where that is too large."""

    @abstractmethod
    def moved(self, place: LandscapePoint, step: Array) -> Array:
        """Return where a step of the tangent space leads."""


@dataclass(frozen=True, eq=False)
class Rotations(Landscape):
    """The sum of contrasts of all directions: points are orthogonal matrices B, (k, k)."""

    Z: Array
    share: Array
    contrast: Contrast

    def at(self, point: Array) -> LandscapePoint:
        """Look around."""
        Y = self.Z @ point.T
        moments = joint_moments(Y, self.share, self.contrast)
        slope = moments.slope[np.triu_indices(len(point), 1)]
        return LandscapePoint(point, moments.signs, slope, moments)

    def fixed_step(self, place: LandscapePoint) -> Array:
        """Take the fixed-point step of all directions, and the nearest rotation to it."""
        seen = place.moments
        step = seen.pull - np.diag(seen.stiffness)
        ahead = np.where(np.diag(step) < 0, -1.0, 1.0)[:, None] * step  # b and -b are the same
        U, _, Vt = np.linalg.svd(ahead)
        return np.asarray(U @ Vt @ place.point)

    def curvature(self, place: LandscapePoint) -> Array:
        """Return the second derivatives by the angles of pairs."""
        k, seen = len(place.point), place.moments
        if k <= MOST_TURNED:
            return joint_curvature(self.Z @ place.point.T, self.share, self.contrast, seen)
        each = seen.signs * (seen.stiffness - np.diag(seen.pull))
        a, b = np.triu_indices(k, 1)
        return np.asarray(each[a] + each[b])

    def moved(self, place: LandscapePoint, step: Array) -> Array:
        """Turn by exp(A)."""
        k = len(place.point)
        A = np.zeros((k, k))
        A[np.triu_indices(k, 1)] = step
        U, _, Vt = np.linalg.svd(expm(A - A.T) @ place.point)  # rounding does not add up
        return np.asarray(U @ Vt)


@dataclass(frozen=True, eq=False)
class Sphere(Landscape):
    """The contrast of one direction of white rows: points are unit vectors b, (p,)."""

    Z: Array
    share: Array
    contrast: Contrast

    def at(self, point: Array) -> LandscapePoint:
        """Look around; the slope is in the coordinates of `tangent_basis`."""
        moments = single_moments(self.Z, point, self.share, self.contrast)
        slope = tangent_basis(point).T @ moments.slope(point)
        return LandscapePoint(point, np.array([moments.sign]), slope, moments)

    def fixed_step(self, place: LandscapePoint) -> Array:
        """Take the fixed-point step."""
        step = place.moments.pull - place.moments.stiffness * place.point
        length = float(np.linalg.norm(step))
        return np.asarray(step / length) if length > 0 else place.point

    def curvature(self, place: LandscapePoint) -> Array:
        """Return the second derivatives along the sphere."""
        return single_curvature(self.Z, place.point, self.share, self.contrast, place.moments)

    def moved(self, place: LandscapePoint, step: Array) -> Array:
        """Go along the great circle."""
        across = tangent_basis(place.point) @ step
        angle = float(np.linalg.norm(across))
        if angle == 0:
            return place.point
        found = np.cos(angle) * place.point + np.sin(angle) / angle * across
        return np.asarray(found / np.linalg.norm(found))


# --- climb ---------------------------------------------------------------------------------------
#
# Up to a local maximum: fixed-point steps from every start, then Newton's from the highest end.
#
# Fixed-point steps take no care of heights and may go in circles on rows that are no mixture of
# independent sources. Steps of Newton, turned uphill and shortened until they rise, come to a point
# without slope and, where second derivatives can be had, without a way up: what the certificate
# asks for. Most ends of fixed-point steps are such points already.

PATIENCE = 10  # fixed-point steps in which the slope must fall by a tenth
RISING = 1e-6  # second derivatives above lead upwards, those below may be rounding
_FALL = 0.9
_LONGEST = 0.5  # radians of a step of Newton's
_HALVINGS = 30
_ROUNDING = 1e-13  # of J: steps within it are judged by their slope


@dataclass(frozen=True, eq=False)
class Ascent:
    """Where a climb ended, why, and after how many steps."""

    place: LandscapePoint
    status: Status
    steps: int


def settle(
    land: Landscape, start: Array, tol: float, max_iter: int, watch: Watch, done: int
) -> tuple[LandscapePoint, int]:
    """Take fixed-point steps as long as they help; return where they end, and how many."""
    here, best, since, step = land.at(start), np.inf, 0, 0
    while here.steepness > tol and since < PATIENCE and step < max_iter:
        if watch.tick(done + step, here.steepness):
            break
        since = 0 if here.steepness < _FALL * best else since + 1
        best = min(best, here.steepness)
        here = land.at(land.fixed_step(here))
        step += 1
    return here, step


def climb(
    land: Landscape, here: LandscapePoint, tol: float, steps: range, watch: Watch, done: int
) -> Ascent:
    """Climb by Newton's steps from where fixed-point steps ended.

    Parameters
    ----------
    land : Landscape
        J and its derivatives.
    here : LandscapePoint
        Where to begin.
    tol : float
        The largest derivative that counts as none.
    steps : range
        Steps that were taken, up to the most.
    watch : Watch
        Time limit and callback.
    done : int
        Steps before these, for the record.
    """
    for step in steps:
        curvature = land.curvature(here)
        if here.steepness > tol:
            rise = _uphill(here.slope, curvature)
        else:
            up = way_up(curvature)
            if up is None:
                return Ascent(here, Status.SOLVED, step)
            rise = up
        if watch.tick(done + step, here.steepness):
            return Ascent(here, watch.stopped or Status.STOPPED, step)
        if step == steps[-1]:
            break
        found = _search(land, here, rise)
        if found is None:
            return Ascent(here, Status.INACCURATE, step)
        here = found
    return Ascent(here, Status.ITERATION_LIMIT, steps[-1])


def way_up(curvature: Array) -> Array | None:
    """Return the steepest direction in which a point without slope is no maximum; None if it is.

    Where only the diagonal is known, nothing is said: None.
    """
    if curvature.ndim == 1 or not curvature.size:
        return None
    values, vectors = np.linalg.eigh(curvature)
    return None if values[-1] <= RISING else np.asarray(_LONGEST * vectors[:, -1])


def _uphill(slope: Array, curvature: Array) -> Array:
    """Return Newton's step with every second derivative taken as that of a maximum."""
    if curvature.ndim == 1:
        step = slope / np.maximum(np.abs(curvature), RISING)
    else:
        values, vectors = np.linalg.eigh(curvature)
        step = vectors @ ((vectors.T @ slope) / np.maximum(np.abs(values), RISING))
    length = float(np.abs(step).max(initial=0.0))
    return np.asarray(step * min(1.0, _LONGEST / length) if length > 0 else step)


def _search(land: Landscape, here: LandscapePoint, step: Array) -> LandscapePoint | None:
    """Shorten the step until it rises; both ways, since a way up has two ends."""
    before = land.excess(here)
    level = _ROUNDING * max(float(np.abs(before).sum()), 1.0)
    for halving in range(_HALVINGS):
        for sign in (1.0, -1.0):
            there = land.at(land.moved(here, sign * step * 0.5**halving))
            gain = float(here.signs @ (land.excess(there) - before))
            if gain > level or (gain >= -level and there.steepness < 0.5 * here.steepness):
                return there
    return None


# --- fixed point ---------------------------------------------------------------------------------
#
# Independent components of white rows, from several starts, together or one after another.

_FIXED_POINT_WHITE = 1e-6  # how far from I a covariance may be


@dataclass(frozen=True)
class FixedPointICA(Solver):
    """Fixed-point iteration (FastICA) with Newton's steps where that goes in circles.

    Parameters
    ----------
    tol : float
        Stop when no derivative of the contrast along the sphere is larger.
    max_iter : int
        Most steps from one start, for all directions at once or for each.
    n_init : int
        Starts; the answer with the largest contrast is kept.
    random_state : int
        Seed of the starts.
    """

    answers = IndependentComponents

    tol: float = 1e-8
    max_iter: int = 200
    n_init: int = 5
    random_state: int = 0

    def _obstacle(self, problem: IndependentComponents) -> str | None:
        Z, share = problem.rows, problem.share
        remedy = "FixedPointICA needs white rows of as many columns as `space`; use mercer.Whiten"
        if is_sparse(Z) or Z.shape[1] != problem.space:
            return remedy
        covariance = (share[:, None] * Z).T @ Z
        return (
            remedy
            if np.abs(covariance - np.eye(len(covariance))).max() > _FIXED_POINT_WHITE
            else None
        )

    def run(self, problem: IndependentComponents, watch: Watch, start: Any = None) -> Solution:
        """Climb from every start."""
        rng = np.random.default_rng(self.random_state)
        if problem.joint:
            land = Rotations(problem.rows, problem.share, problem.contrast)
            found = self._best(land, watch, partial(_rotation, rng, problem.space))
            turn, endings, steps = found.place.point, [found.status], found.steps
        else:
            turn, endings, steps = self._one_by_one(problem, watch, rng)
        status = next((one for one in endings if one is not Status.SOLVED), Status.SOLVED)
        value = Unmixing(np.zeros(problem.space), turn)
        return report(self, value, status, steps, watch)

    def _one_by_one(
        self, problem: IndependentComponents, watch: Watch, rng: np.random.Generator
    ) -> tuple[Array, list[Status], int]:
        left = np.eye(problem.space)
        turn = np.empty((0, problem.space))
        endings, steps = list[Status](), 0  # the most that one direction took
        for _ in range(problem.count):
            land = Sphere(problem.rows @ left, problem.share, problem.contrast)
            width = left.shape[1]
            found = self._best(land, watch, partial(_direction, rng, width))
            turn = np.vstack([turn, left @ found.place.point])
            left = tangent_basis(np.linalg.qr(turn.T)[0])
            endings, steps = [*endings, found.status], max(steps, found.steps)
        return turn, endings, steps

    def _best(self, land: Landscape, watch: Watch, draw: Callable[[], Array]) -> Ascent:
        """Return the highest end of all starts that is a maximum."""
        if self.n_init < 1:
            raise ValueError(f"FixedPointICA: n_init={self.n_init} must be at least 1")
        ends: list[tuple[float, LandscapePoint, int]] = []
        for _ in range(self.n_init):
            place, steps = settle(land, draw(), self.tol, self.max_iter, watch, _told(watch))
            ends.append((float(np.abs(land.excess(place)).sum()), place, steps))
            if watch.stopped is not None:
                break
        found: list[Ascent] = []
        for _, place, steps in sorted(ends, key=lambda end: -end[0]):
            taken = range(steps, self.max_iter + 1)
            found.append(climb(land, place, self.tol, taken, watch, _told(watch)))
            if found[-1].status.ok or watch.stopped is not None:
                break
        return found[-1] if found[-1].status.ok else found[0]


def _told(watch: Watch) -> int:
    return watch.trace[-1].iteration + 1 if watch.trace else 0


def _rotation(rng: np.random.Generator, p: int) -> Array:
    return np.asarray(np.linalg.qr(rng.standard_normal((p, p)))[0])


def _direction(rng: np.random.Generator, p: int) -> Array:
    drawn = rng.standard_normal(p)
    return np.asarray(drawn / np.linalg.norm(drawn))


# --- unmixing ------------------------------------------------------------------------------------
#
# Are these directions white, orthogonal, and a local maximum of the contrast? From the rows.
#
# Whitened anew here. What is judged is the contrast: that a point has no slope and, where second
# derivatives are few enough, no way up. A local maximum is all that is proved: another start may
# lead to a higher one, and variables that are far from Gaussian need not be independent.

_TOL = 1e-6
_UNMIXING_WHITE = 1e-6  # of variances: sums over rows far from the origin leave so much
_RISING = 1e-5  # second derivatives below may be rounding, or a slope that is below tol
_PAIRS = 780  # angles whose second derivatives are a matrix to decompose
_COPIES = 4  # of the rows: centred, white, and their products


@dataclass(frozen=True)
class UnmixingQuantities:
    """Measures of directions that are far from Gaussian.

    Attributes
    ----------
    whiteness : float
        How far means are from 0, variances from 1 and covariances from 0, at most.
    outside : float
        What is left of the directions, in white coordinates, beside the principal components they
        are sought among: as a share of variance.
    slope : float
        Largest derivative of the contrast by an angle.
    curvature : float
        Largest second derivative; not above zero at a local maximum. NaN where there are too many.
    contrast : float
        Sum over directions of |E G(y) - E G(gaussian)|.
    """

    whiteness: float
    outside: float
    slope: float
    curvature: float
    contrast: float


@certify.register
def _(problem: IndependentComponents, value: Unmixing, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    d = problem.rows.shape[1]
    if value.components.shape != (problem.count, d) or value.mean.shape != (d,):
        nothing = UnmixingQuantities(inf, inf, inf, nan, 0.0)
        return Certificate(False, nothing, tol, "no directions of the shape asked for")
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        found = _measure(problem, value)
    white = found.whiteness <= _UNMIXING_WHITE and found.outside <= _UNMIXING_WHITE
    still = found.slope <= tol
    top = not found.curvature > _RISING
    return Certificate(bool(white and still and top), found, tol, _statement(found, tol))


def _statement(found: UnmixingQuantities, tol: float) -> str:
    if not (found.whiteness <= _UNMIXING_WHITE and found.outside <= _UNMIXING_WHITE):
        return (
            f"the variables are not white, or not of the space they are sought in: off by "
            f"{max(found.whiteness, found.outside):.1e}"
        )
    start = f"the variables are white within {found.whiteness:.0e}, and the contrast "
    if not found.slope <= tol:
        return start + f"still rises: its slope is {found.slope:.1e}"
    if found.curvature > _RISING:
        return start + "has no slope, but is no maximum: it rises when directions are turned"
    kind = "is stationary" if np.isnan(found.curvature) else "has a local maximum"
    return (
        f"{start}{kind} (slope {found.slope:.1e}). Another start may lead to a higher one; that "
        "the variables are independent is not proved"
    )


def _measure(problem: IndependentComponents, value: Unmixing) -> UnmixingQuantities:
    n, d = problem.rows.shape
    what = f"judging directions of {n} rows of {d} columns"
    require_memory(8 * _COPIES * n * d, what, "Fit to fewer rows, or columns.")
    share = problem.share
    X, W, mean = _in_units(problem, value)
    X = X - mean
    Y = X @ W.T
    means = share @ Y
    covariance = (share[:, None] * Y).T @ Y
    whiteness = float(np.abs(covariance - np.eye(len(W))).max())
    whiteness = larger(whiteness, float(np.abs(means).max()))
    if not np.isfinite(whiteness):
        return UnmixingQuantities(inf, inf, inf, nan, 0.0)
    axes, lengths = _principal(X - share @ X, share)
    if problem.count == problem.space:
        held = float(np.square((share[:, None] * X).T @ Y).sum())  # the variance of the space
        most = float(np.square(lengths[: problem.space]).sum())
        outside, Z, B = max(1.0 - held / most, 0.0) if most > 0 else inf, Y, np.eye(len(W))
    else:
        Z = X @ (axes[:, : problem.space] / lengths[: problem.space])
        B = (share[:, None] * Y).T @ Z
        outside = float(np.abs(B @ B.T - np.eye(len(B))).max())
    slope, curvature, contrast = (_together if problem.joint else _each)(problem, Z, B)
    return UnmixingQuantities(whiteness, outside, slope, curvature, contrast)


def _in_units(problem: IndependentComponents, value: Unmixing) -> tuple[Array, Array, Array]:
    """Return rows, components and mean in a unit, a power of two, of the size of the rows."""
    X = to_dense(problem.rows) if is_sparse(problem.rows) else problem.rows
    largest = float(np.abs(X).max(initial=0.0))
    unit = 2.0 ** np.floor(np.log2(largest)) if largest > 0 else 1.0
    return X.astype(np.float64) / unit, value.components * unit, value.mean / unit


def _principal(X: Array, share: Array) -> tuple[Array, Array]:
    """Return principal axes, (d, r), and the standard deviations along them, largest first."""
    rows = np.sqrt(share)[:, None] * X
    if X.shape[0] > X.shape[1]:
        rows = np.asarray(np.linalg.qr(rows, mode="r"))
    _, lengths, axes = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(axes.T), np.asarray(lengths)


def _together(problem: IndependentComponents, Z: Array, B: Array) -> tuple[float, float, float]:
    Y, share, contrast = Z @ B.T, problem.share, problem.contrast
    at = joint_moments(Y, share, contrast)
    k = len(B)
    curvature = nan
    if k * (k - 1) // 2 <= _PAIRS:
        found = joint_curvature(Y, share, contrast, at)
        curvature = _largest(found)
    return (
        float(np.abs(at.slope).max(initial=0.0)),
        curvature,
        float(non_gaussianity(Y, share, contrast).sum()),
    )


def _each(problem: IndependentComponents, Z: Array, B: Array) -> tuple[float, float, float]:
    """Judge one direction after another, in what those before leave."""
    share, contrast = problem.share, problem.contrast
    slope, curvature, total = 0.0, -inf, 0.0
    left = np.eye(B.shape[1])
    for i, b in enumerate(B):
        here, rows = left.T @ b, Z @ left
        at = single_moments(rows, here, share, contrast)
        slope = larger(slope, float(np.abs(at.slope(here)).max(initial=0.0)))
        if len(here) > 1:
            curvature = max(curvature, _largest(single_curvature(rows, here, share, contrast, at)))
        total += float(non_gaussianity(rows @ here, share, contrast))
        left = tangent_basis(np.linalg.qr(B[: i + 1].T)[0])
    return slope, 0.0 if curvature == -inf else curvature, total


def _largest(symmetric: Array) -> float:
    return float(np.linalg.eigvalsh(symmetric)[-1]) if symmetric.size else 0.0


# --- choice -------------------------------------------------------------------------------------

choose.register(IndependentComponents)(lambda problem: FixedPointICA())
