"""Probabilistic PCA: latent Gaussian model, EM with missing entries, certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf, log, nan, pi
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.rows.points import is_sparse, row_count, take, to_dense
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.dispatch import choose

# --- latent --------------------------------------------------------------------------------------
#
# Rows as a plane plus noise: x = mean + W z + e, z ~ N(0, I), e ~ N(0, noise I).
#
# Missing entries (NaN) are integrated out: a row speaks through the entries that it has. With its
# observed part o and M = W_o'W_o + noise I, the latent z has the mean M^-1 W_o'(x_o - mean_o) and
# the covariance noise M^-1, and x_o' C_o^-1 x_o is the smallest |x_o - W_o z|^2 / noise + |z|^2.

_ENTRIES = 1 << 20  # of a block of rows, and of the squares of their latent variables


@dataclass(frozen=True, eq=False)
class Plane:
    """An answer to a `LatentGaussian`.

    Attributes
    ----------
    mean : (d,) array
        The mean.
    loadings : (d, q) array
        W.
    noise : float
        Variance of the noise.
    likelihoods : (t,) array or None
        The log-likelihood on the way there, if an iteration led to it.
    """

    mean: Array
    loadings: Array
    noise: float
    likelihoods: Array | None = None


@dataclass(frozen=True, eq=False)
class LatentGaussian:
    """The mean, loadings and noise under which rows are most likely.

    Attributes
    ----------
    X : Points
        Rows; NaN where an entry is missing.
    weights : (n,) array
        How often each row counts.
    count : int
        The number of latent variables.
    floor : float
        The smallest variance of the noise.
    """

    X: Points
    weights: Array
    count: int
    floor: float

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"LatentGaussian: count={self.count} must be at least 1")


@dataclass(frozen=True, eq=False)
class Posterior:
    """What a block of rows says about its latent variables.

    Attributes
    ----------
    rows : slice
        Which rows.
    centred : (m, d) array
        The rows less the mean; zero where missing.
    observed : (m, d) bool array
        Where they are not missing.
    mean : (m, q) array
        Posterior means.
    covariance : (p, q, q) array
        Posterior covariances, one for each pattern of missing entries.
    pattern : (m,) int array
        The pattern of each row.
    log_density : (m,) array
        Log-density of what was observed.
    """

    rows: slice
    centred: Array
    observed: Array
    mean: Array
    covariance: Array
    pattern: Array
    log_density: Array


def posteriors(model: Plane, X: Points) -> Iterator[Posterior]:
    """Go through rows in blocks.

    Parameters
    ----------
    model : Plane
        The model.
    X : Points
        Rows, dense or sparse; NaN where missing.
    """
    d, q = model.loadings.shape
    step = max(1, _ENTRIES // (d + (q + 1) ** 2))
    for first in range(0, row_count(X), step):
        deadline.check()
        rows = slice(first, first + step)
        yield _posterior(model, rows, to_dense(take(X, rows)))


def log_densities(model: Plane, X: Points) -> Array:
    """Return the log-density of what is observed of each row: (n,)."""
    found = [block.log_density for block in posteriors(model, X)]
    return np.concatenate(found) if found else np.zeros(0)


def _posterior(model: Plane, rows: slice, X: Array) -> Posterior:
    W, q = model.loadings, model.loadings.shape[1]
    observed = ~np.isnan(X)
    centred = np.where(observed, X - model.mean, 0.0)
    patterns, pattern = _patterns(observed)
    squares = (W[:, :, None] * W[:, None, :]).reshape(len(W), q * q)
    inverse, volume = _inverted((patterns @ squares).reshape(-1, q, q), model.noise)
    pulled = centred @ W
    if len(patterns) == 1:
        mean = pulled @ inverse[0]
    else:
        mean = np.einsum("ij,ijk->ik", pulled, inverse[pattern])
    left = np.where(observed, centred - mean @ W.T, 0.0)
    with np.errstate(over="ignore"):  # a row so far off has a density of zero
        misfit = np.square(left).sum(axis=1) / model.noise + np.square(mean).sum(axis=1)
    seen = patterns.sum(axis=1)
    volume += (seen - q) * np.log(model.noise)
    constant = (seen * np.log(2.0 * np.pi) + volume)[pattern]
    density = -0.5 * (misfit + constant)
    return Posterior(rows, centred, observed, mean, model.noise * inverse, pattern, density)


def _inverted(products: Array, noise: float) -> tuple[Array, Array]:
    """Return (W_o'W_o + noise I)^-1 and the logarithm of the determinant, for each pattern."""
    M = products + noise * np.eye(products.shape[1])
    try:
        return np.linalg.inv(M), np.asarray(np.linalg.slogdet(M)[1])
    except np.linalg.LinAlgError:  # the noise is lost beside the products
        values, vectors = np.linalg.eigh(products)
        values = np.maximum(values, 0.0) + noise
        inverse = (vectors / values[:, None, :]) @ vectors.transpose(0, 2, 1)
        return inverse, np.asarray(np.log(values).sum(axis=1))


def _patterns(observed: Array) -> tuple[Array, Array]:
    """Return the distinct rows of a mask as floats, and which of them each row is."""
    if observed.all():
        return np.ones((1, observed.shape[1])), np.zeros(len(observed), dtype=np.intp)
    packed = np.packbits(observed, axis=1)
    keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, pattern = np.unique(keys, return_index=True, return_inverse=True)
    return observed[first].astype(np.float64), pattern


# --- latent moments ------------------------------------------------------------------------------
#
# What the rows tell about the parameters of a `Plane`: the sums of one expectation step.
#
# From them come both the next estimate and, by Fisher's identity, the gradient of the likelihood.


@dataclass(frozen=True, eq=False)
class LatentMoments:
    """Sums over rows of the expected latent variables, with a one put beside them.

    Attributes
    ----------
    second : (d, q + 1, q + 1) array
        For each column, the sum of E[u u'], u = (z, 1), over rows where it is observed.
    first : (d, q + 1) array
        The sum of (x - mean) E[u].
    squares : (d,) array
        The sum of (x - mean)^2.
    seen : float
        The weight of all observed entries.
    log_likelihood : float
        Of the rows, each as often as it counts.
    """

    second: Array
    first: Array
    squares: Array
    seen: float
    log_likelihood: float

    def m_step(self, model: Plane, floor: float) -> Plane:
        """Return the parameters that are best for these expectations."""
        solved = self._regressed()
        left = self.squares.sum() - np.einsum("ij,ij->", solved, self.first)
        noise = max(float(left) / self.seen, floor)
        return Plane(model.mean + solved[:, -1], np.ascontiguousarray(solved[:, :-1]), noise)

    def _regressed(self) -> Array:
        """Regress the columns on the latent variables; with the least norm where these are flat."""
        try:
            return np.asarray(np.linalg.solve(self.second, self.first[:, :, None])[:, :, 0])
        except np.linalg.LinAlgError:
            inverse = np.linalg.pinv(self.second, hermitian=True)
            return np.asarray(np.einsum("ijk,ik->ij", inverse, self.first))

    def slope(self, model: Plane, floor: float, total: float) -> float:
        """Return the largest derivative of the mean log-likelihood, in standard deviations."""
        theta = np.column_stack([model.loadings, np.zeros(len(model.mean))])
        product = np.einsum("ijk,ik->ij", self.second, theta)
        width = np.sqrt(np.square(model.loadings).sum(axis=1) + model.noise)
        by_plane = np.abs((self.first - product) / model.noise).max(axis=1) * width
        misfit = self.squares.sum() - np.einsum("ij,ij->", theta, 2.0 * self.first - product)
        by_noise = 0.5 * (float(misfit) / model.noise - self.seen)
        if model.noise <= floor * (1 + 1e-12):
            by_noise = max(by_noise, 0.0)  # it can only grow
        return max(float(by_plane.max()), abs(by_noise)) / total


def moments(problem: LatentGaussian, model: Plane) -> LatentMoments:
    """Go through all rows once."""
    d, q = model.loadings.shape
    second, first, squares = np.zeros((d, q + 1, q + 1)), np.zeros((d, q + 1)), np.zeros(d)
    seen = likelihood = 0.0
    for block in posteriors(model, problem.X):
        s = problem.weights[block.rows]
        u = np.column_stack([block.mean, np.ones(len(s))])
        first += (s[:, None] * block.centred).T @ u
        squares += s @ np.square(block.centred)
        seen += float(s @ block.observed.sum(axis=1))
        likelihood += float(s @ block.log_density)
        second += _second(block, s, u)
    return LatentMoments(second, first, squares, seen, likelihood)


def _second(block: Posterior, s: Array, u: Array) -> Array:
    """Sum E[u u'] over the rows where each column is observed."""
    q = u.shape[1] - 1
    if len(block.covariance) == 1 and block.observed.all():
        same = (s[:, None] * u).T @ u
        same[:q, :q] += s.sum() * block.covariance[0]
        return same[None, :, :]
    outer = u[:, :, None] * u[:, None, :]
    outer[:, :q, :q] += block.covariance[block.pattern]
    flat = (s[:, None, None] * outer).reshape(len(s), -1)
    summed = block.observed.T.astype(np.float64) @ flat
    return np.asarray(summed.reshape(-1, q + 1, q + 1))


# --- latent em -----------------------------------------------------------------------------------
#
# Expectation maximisation for a plane plus noise, with squared extrapolation.
#
# A step takes expectations of the latent variables and then the best parameters for them; the
# likelihood never falls. Every second step is followed by a leap along both, kept only where the
# likelihood there is no lower than at the step before.


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

    def _e_step(self, model: Plane) -> LatentMoments:
        sums = moments(self._problem, model)
        self.passes += 1
        self.likelihoods.append(sums.log_likelihood)
        return sums

    def _ended(self, model: Plane, sums: LatentMoments) -> bool:
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


# --- latent --------------------------------------------------------------------------------------
#
# Is this plane the most likely one? Its likelihood, the slope of it, the optimum if known.
#
# The slope is judged beside the likelihood, which is flat at its top: parameters that are wrong
# by a hundredth lower it by a ten-thousandth.

_TOL = 1e-5
_SMALL = 1500  # rows or columns: up to here all variances are found in a moment
_FALL = 1e-10  # of a log-likelihood that is only rounding


@dataclass(frozen=True)
class LatentQuantities:
    """Measures of a plane.

    Attributes
    ----------
    log_likelihood : float
        Mean over rows of the log-density of what was observed.
    slope : float
        Largest derivative of it, by a loading, an entry of the mean (both in standard deviations of
        the column) or the logarithm of the noise variance.
    shortfall : float
        How far it is below the largest possible value; NaN where entries are missing, or rows and
        columns are both many.
    largest_fall : float
        Largest relative fall of the likelihood between two steps on the way.
    """

    log_likelihood: float
    slope: float
    shortfall: float
    largest_fall: float


@certify.register
def _(problem: LatentGaussian, value: Plane, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    shaped = value.loadings.shape == (problem.X.shape[1], problem.count)
    if not shaped or not (np.isfinite(value.noise) and value.noise > 0):
        nothing = LatentQuantities(-inf, inf, inf, inf)
        return Certificate(False, nothing, tol, "no plane with noise of the shape asked for")
    total = float(problem.weights.sum())
    sums = moments(problem, value)
    mean = sums.log_likelihood / total
    quantities = LatentQuantities(
        mean,
        sums.slope(value, problem.floor, total),
        _best(problem) - mean,
        _largest_fall(value.likelihoods),
    )
    optimal = not quantities.shortfall > tol * max(1.0, abs(mean))
    ok = (
        value.noise >= problem.floor * (1 - 1e-9)
        and quantities.slope <= max(tol, _rounding(value))
        and optimal
        and quantities.largest_fall <= _FALL
    )
    below = max(quantities.shortfall, 0.0)
    known = "" if np.isnan(quantities.shortfall) else f", {below:.1e} below the best"
    statement = f"mean log-likelihood {mean:.6g}, no derivative above {quantities.slope:.1e}{known}"
    return Certificate(bool(ok), quantities, tol, statement)


def _rounding(value: Plane) -> float:
    """Estimate what rounding makes of the slope: sums of squares, over the noise.

    An allowance, so that a slope that is zero but for rounding passes; the slope itself is stated.
    """
    d, q = value.loadings.shape
    widest = float(np.square(value.loadings).sum(axis=1).max(initial=0.0)) + value.noise
    return float(4 * (d + q + 8) * np.finfo(float).eps * widest / value.noise)


def _best(problem: LatentGaussian) -> float:
    """Return the largest mean log-likelihood, in closed form, for rows without missing entries."""
    X, (n, d), q = problem.X, (row_count(problem.X), problem.X.shape[1]), problem.count
    if min(n, d) > _SMALL or (not is_sparse(X) and bool(np.isnan(X).any())):
        return nan
    share = problem.weights / problem.weights.sum()
    rows = to_dense(X)
    rows = (rows - share @ rows) * np.sqrt(share)[:, None]
    small = rows.T @ rows if d <= n else rows @ rows.T
    variances = np.zeros(d)
    found = np.maximum(np.linalg.eigvalsh(small)[::-1], 0.0)[:d]
    variances[: len(found)] = found
    return _largest(variances, q, problem.floor)


def _largest(variances: Array, q: int, floor: float) -> float:
    d, left = len(variances), variances[q:]
    noise = max(float(left.mean()) if len(left) else 0.0, floor)
    top = np.maximum(variances[:q], noise)
    misfit = float((variances[:q] / top).sum() + left.sum() / noise)
    volume = float(np.log(top).sum()) + (d - len(top)) * log(noise)
    return -0.5 * (d * log(2.0 * pi) + volume + misfit)


def _largest_fall(likelihoods: Array | None) -> float:
    if likelihoods is None or len(likelihoods) < 2:
        return 0.0
    falls = likelihoods[:-1] - likelihoods[1:]
    return max(0.0, float((falls / np.maximum(np.abs(likelihoods[:-1]), 1.0)).max()))


# --- choice -------------------------------------------------------------------------------------

choose.register(LatentGaussian)(lambda problem: LatentEM())
