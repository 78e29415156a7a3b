"""Programmes in some of their variables, the others held: how they are written and put back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mercer.array_types import Array
from mercer.backends.boxes import Box
from mercer.solvers.margin.descent import BoxState
from mercer.solvers.margin.shared_products import Step


def among(parts: dict[int, BoxState], chosen: Array) -> dict[int, tuple[BoxState, Array]]:
    """Return the programmes in the variables at some points, and which variables these are."""
    some = {}
    for k, part in parts.items():
        rows = np.flatnonzero(chosen[part.points(slice(None))])
        one = BoxState(part.problem.among(rows, part.b), part.b[rows], part.F[rows])
        one.steps, one.rounds = part.steps, part.rounds
        some[k] = (one, rows)
    return some


def points_of(parts: list[BoxState], n: int) -> Array:
    """Return which of n points are in some of the parts."""
    seen = np.zeros(n, dtype=bool)
    for part in parts:
        seen[part.points(slice(None))] = True
    return seen


def share_in_use(parts: list[BoxState], n: int) -> float:
    """Return which share of the points that parts have is in use in some of them."""
    seen, used = points_of(parts, n), np.zeros(n, dtype=bool)
    for part in parts:
        used[part.points(np.flatnonzero(part.b))] = True
    return float(np.count_nonzero(used)) / max(1.0, float(np.count_nonzero(seen)))


def level_of(part: BoxState) -> Array:
    """Return the multiplier of the sum of each variable; before the first step none is known."""
    if not part.b.any():
        return np.zeros(len(part.b))
    return np.asarray(part.problem.spread(part.problem.offsets(part.b, part.F)))


def batches(
    parts: list[BoxState], sets: list[Array], now: list[int], n: int, largest: int
) -> Iterator[list[int]]:
    """Yield numbers of parts whose sets together are no more points, of n, than `largest`."""
    batch: list[int] = []
    taken = np.zeros(n, dtype=bool)
    for k in now:
        before = taken.copy()
        taken[parts[k].points(sets[k])] = True
        if batch and np.count_nonzero(taken) > largest:
            yield batch
            batch, taken = [], np.zeros_like(before)
            taken[parts[k].points(sets[k])] = True
        batch.append(k)
    if batch:
        yield batch


def box_of(part: BoxState, chosen: Array, level: Array, place: Array) -> Box:
    """Write the programme in some variables for a backend; `place` has the rows of all points."""
    problem, held = part.problem, part.unwrapped
    return Box(
        part.F[chosen] - level[chosen],  # float32 resolves the rest of F better
        part.b[chosen],
        problem.lower[chosen],
        problem.upper[chosen],
        problem.epsilons[chosen] if np.any(problem.epsilon) else None,
        None if held.shift is None else held.shift[chosen],
        None if problem.group is None else problem.group[chosen],
        np.ascontiguousarray(place[part.points(chosen)], dtype=np.int64),
    )


def moved_of(variables: Array, step: Array) -> Step:
    """Return the variables that moved, and by how much."""
    moved = np.flatnonzero(step)
    return variables[moved], step[moved]


def with_shift(part: BoxState, product: Array, changed: Array, step: Array) -> Array:
    """Add what the diagonal shift of a programme makes of a step to its product with K."""
    shift = part.unwrapped.shift
    if shift is not None:
        product[changed] += shift[changed] * step
    return product
