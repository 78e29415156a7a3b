"""Which points may have a chance at all? One linear programme says, and proves it.

With g_i = f(x_i) - b: maximise sum s_i subject to sum q_i g_i = 0, 0 <= s_i <= min(1, q_i). Every
point that some feasible distribution gives a chance ends with s_i = 1, the others with 0, and the
programme's own multipliers y have y'g_i = 0 at the former, y'g_i <= -1 at the latter. If none is
left, y separates the targets from all points.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from mercer.array_types import Array
from mercer.problems.entropy import Expectations, InfeasibleError

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
            f"{high[j]:.16g} at all points that have a chance",
            direction,
            float(beyond[j]),
        )


def face(problem: Expectations) -> tuple[Array, Array]:
    """Return the points that may have a chance (n,), and the direction that keeps others out (m,).

    Raises
    ------
    InfeasibleError
        If there is none.
    """
    stay, direction, rounded = problem.prior > 0, np.zeros(len(problem.targets)), True
    while rounded:  # points let in for rounding may lie on a face with a border of its own
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
    """Return which points may have a chance, by which direction, and whether by rounding."""
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
