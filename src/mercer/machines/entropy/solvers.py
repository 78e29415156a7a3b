"""Maximum entropy solvers: face of feasible points, Newton's method, iterative scaling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

from mercer.array_types import Array
from mercer.machines.entropy.problem import Expectations, GibbsAnswer, InfeasibleError, span, tilted
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.dispatch import choose

# --- face ----------------------------------------------------------------------------------------
#
# Determine the points that may have positive probability by one linear program, with a proof.
#
# With g_i = f(x_i) - b: maximize sum s_i subject to sum q_i g_i = 0, 0 <= s_i <= min(1, q_i).
# Every point with positive probability in a feasible distribution has s_i = 1, the others 0,
# and the program's own multipliers y have y'g_i = 0 at the former, y'g_i <= -1 at the latter.
# If none is left, y separates the targets from all points.

_ZERO = 1e-9


def refuse_outside(problem: Expectations) -> None:
    """Raise if a single target is outside the range of its feature."""
    used = problem.features[problem.prior > 0]
    low, high, b = used.min(axis=0), used.max(axis=0), problem.targets
    beyond = np.maximum(low - b, b - high)
    j = int(np.argmax(beyond / problem.scale - problem.noise))
    if beyond[j] > (_ZERO + problem.noise[j]) * problem.scale[j]:
        direction = np.zeros(len(b))
        direction[j] = 1.0 if b[j] > high[j] else -1.0
        raise InfeasibleError(
            f"expectation {j} cannot be {b[j]:.16g}: its feature lies between {low[j]:.16g} and "
            f"{high[j]:.16g} at all points of positive probability",
            direction,
            float(beyond[j]),
        )


def face(problem: Expectations) -> tuple[Array, Array]:
    """Return the points of positive probability (n,), and the direction that excludes others (m,).

    Raises
    ------
    InfeasibleError
        If there is none.
    """
    stay, direction, rounded = problem.prior > 0, np.zeros(len(problem.targets)), True
    while rounded:  # points admitted because of rounding may lie on a face of a smaller set
        inside, y, rounded = _split(problem, np.flatnonzero(stay))
        if inside.all():
            break
        if not inside.any():
            _refuse(problem, stay, y)
        left = stay.copy()
        left[np.flatnonzero(stay)[~inside]] = False
        direction = _before(problem, direction, y, ~stay & (problem.prior > 0))
        stay = left
    return stay, direction / problem.scale


def _split(problem: Expectations, used: Array) -> tuple[Array, Array, bool]:
    """Return which points may have positive probability, the direction, and if rounding decides."""
    G = problem.gaps[used]
    n, m = G.shape
    found = linprog(
        np.concatenate([-np.ones(n), np.zeros(n)]),
        A_eq=np.hstack([G.T, G.T]),
        b_eq=np.zeros(m),
        bounds=[(0.0, 1.0)] * n + [(0.0, None)] * n,
        method="highs",
    )
    inside = np.ones(n, dtype=bool) if found.x is None else found.x[:n] > 0.5
    if inside.all():
        return inside, np.zeros(m), False
    y = -np.asarray(found.eqlin.marginals)
    y = y if (G[~inside] @ y).max() < 0 else -y
    close = inside | (-(G @ y) <= np.abs(y) @ problem.noise)  # rounding may have put them outside
    return close, y, bool((close & ~inside).any())


def _before(problem: Expectations, first: Array, second: Array, out: Array) -> Array:
    """Put two directions together; points that the first keeps out stay out."""
    if not out.any():
        return second
    lift = max(0.0, float((problem.gaps[out] @ second).max()))
    return np.asarray((1.0 + lift / float(-(problem.gaps[out] @ first).max())) * first + second)


def _refuse(problem: Expectations, used: Array, y: Array) -> None:
    unit = float(problem.scale.min())  # scales may be as small as numbers get
    direction = y * (unit / problem.scale)
    length = float(np.linalg.norm(direction))
    margin = -float((problem.gaps[used] @ y).max()) / length * unit
    raise InfeasibleError(
        "no distribution on these points has these expectations together: the direction "
        f"{np.array2string(direction / length, precision=3)} separates the targets "
        f"from all points, by {margin:.3g}",
        direction / length,
        margin,
    )


# --- newton --------------------------------------------------------------------------------------
#
# Newton's method on the dual of maximum entropy: a smooth convex function of the multipliers.

_FAR = 15.0  # multipliers, in scaled features, that only targets near the boundary need
_FLAT = 1e-15  # lower bound on the curvature of every direction, relative to the largest
_STRIDE = 10.0  # largest change of the logarithm of a probability in a step
_ROUNDING = 1e-14  # of the dual: the last steps gain less than that, and are right all the same
_SMALLEST = 1e-8  # length of a step that is given up


@dataclass(frozen=True)
class EntropyNewton(Solver):
    """Damped Newton steps for `Expectations`.

    Parameters
    ----------
    tol : float
        Largest difference of an expectation from its target, in units of the feature.
    max_iter : int
        Largest number of steps.
    """

    answers = Expectations

    tol: float = 1e-10
    max_iter: int = 200

    def run(self, problem: Expectations, watch: Watch, start: Any = None) -> Solution:
        """Step; if multipliers diverge, find the points of probability zero, and continue."""
        refuse_outside(problem)
        first = np.zeros(len(problem.targets))
        if start is not None:
            first = start.multipliers * problem.scale
        pull, p, status, steps = self._descend(problem, problem.log_prior, first, watch)
        direction = np.zeros(len(pull))
        if watch.stopped is None and (status is not Status.SOLVED or np.abs(pull).max() > _FAR):
            stay, direction = face(problem)
            if direction.any():
                left = np.where(stay, problem.log_prior, -np.inf)
                pull, p, status, more = self._descend(problem, left, 0.0 * pull, watch)
                steps += more
        value = GibbsAnswer(pull / problem.scale, p, direction)
        return report(self, value, status, steps, watch)

    def _descend(
        self, problem: Expectations, log_prior: Array, pull: Array, watch: Watch
    ) -> tuple[Array, Array, Status, int]:
        """Step among the points that `log_prior` leaves a positive probability."""
        G, used = problem.gaps, log_prior > -np.inf
        ways, hidden = span(problem, used)
        dual, p = tilted(log_prior, G, pull)
        best = np.inf
        for step in range(self.max_iter):
            g = p @ G
            off = float(np.abs(g).max(initial=0.0))
            met = bool((np.abs(g) <= self.tol + hidden).all())
            if off <= self.tol * 1e-3 or (met and off >= 0.5 * best):
                return pull, p, Status.SOLVED, step
            best = min(best, off)
            if watch.tick(step, off):
                return pull, p, watch.stopped or Status.STOPPED, step
            way = _newton(G[used], p[used], g, ways)
            length, slope = 1.0, float(way @ g)
            while length > _SMALLEST:
                ahead, q = tilted(log_prior, G, pull + length * way)
                if ahead <= dual + 1e-4 * length * slope + _ROUNDING * (1.0 + abs(dual)):
                    break
                length *= 0.5
            else:
                return pull, p, Status.SOLVED if met else Status.INACCURATE, step
            pull, p, dual = pull + length * way, q, ahead
        return pull, p, Status.ITERATION_LIMIT, self.max_iter


def _newton(G: Array, p: Array, g: Array, ways: Array) -> Array:
    """Return the step -H^-1 g among directions in which points differ, no longer than is safe."""
    centred = (G - g) @ ways
    values, vectors = np.linalg.eigh((centred * p[:, None]).T @ centred)
    values = np.maximum(values, _FLAT * max(float(values.max(initial=0.0)), 1e-300))
    step = -vectors @ ((vectors.T @ (ways.T @ g)) / values)
    longest = float(np.abs(centred @ step).max(initial=0.0))
    return np.asarray(ways @ (step * min(1.0, _STRIDE / longest) if longest > 0 else step))


# --- iterative scaling ---------------------------------------------------------------------------
#
# Generalized iterative scaling: all multipliers at once, by the ratio of target to expectation.
#
# For features f >= 0 whose sum at a point is at most C, l_j += ln(b_j / E[f_j]) / C raises the
# dual in every step, without a step length. Features are shifted to be nonnegative first.

_NOTED = 50  # passes between two looks at the clock


@dataclass(frozen=True)
class IterativeScaling(Solver):
    """Generalized iterative scaling for `Expectations`.

    Parameters
    ----------
    tol : float
        Largest difference of an expectation from its target, in units of the feature.
    max_iter : int
        Largest number of passes.
    """

    answers = Expectations

    tol: float = 1e-8
    max_iter: int = 100_000

    def run(self, problem: Expectations, watch: Watch, start: Any = None) -> Solution:
        """Scale until expectations meet their targets, on the points that may have probability."""
        refuse_outside(problem)
        stay, direction = face(problem)  # scaling alone would need infinitely many iterations
        log_prior = np.where(stay, problem.log_prior, -np.inf)
        pull = np.zeros(len(problem.targets))
        if start is not None and not direction.any():
            pull = start.multipliers * problem.scale
        pull, p, status, passes = self._scale(problem, log_prior, pull, watch)
        return report(self, GibbsAnswer(pull / problem.scale, p, direction), status, passes, watch)

    def _scale(
        self, problem: Expectations, log_prior: Array, pull: Array, watch: Watch
    ) -> tuple[Array, Array, Status, int]:
        G, used = problem.gaps, log_prior > -np.inf
        ways, hidden = span(problem, used)
        low = G[used].min(axis=0)
        width = G[used].max(axis=0) - low
        # features that are constant on these points, or repeat others, have no scale
        free = ways.any(axis=1) & (width > problem.noise) & (low < 0)
        F = np.where(used[:, None], (G - low)[:, free] / width[free], 0.0)
        largest = max(float(F.sum(axis=1).max(initial=0.0)), 1e-300)
        targets = -low[free] / width[free]  # the targets are zero deviations
        for step in range(self.max_iter + 1):
            p = tilted(log_prior, G, pull)[1]
            beyond = np.abs(p @ G) - hidden
            off = float(beyond.max(initial=0.0))
            if off <= self.tol:
                return pull, p, Status.SOLVED, step
            if step % _NOTED == 0 and watch.tick(step, off):
                return pull, p, watch.stopped or Status.STOPPED, step
            if step < self.max_iter:
                moved = np.log(targets / np.maximum(p @ F, 1e-300)) / largest
                pull = pull.copy()
                pull[free] += moved / width[free]
        return pull, p, Status.ITERATION_LIMIT, self.max_iter


# --- choice -------------------------------------------------------------------------------------

choose.register(Expectations)(lambda problem: EntropyNewton())
