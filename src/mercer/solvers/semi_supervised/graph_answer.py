"""From the answer of a graph's equations to the values of all rows, and how good it is."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.problems import GraphLabels, GraphValues


def right_sides(problem: GraphLabels) -> Array:
    """Return the right-hand sides of all targets, and of the steps to a label: (m, t + 1)."""
    return np.column_stack([problem.right, problem.degrees[problem.free]])


def answer(problem: GraphLabels, found: Array) -> GraphValues:
    """Return values and steps of all rows from those of the free rows, (m, t + 1)."""
    steps = np.zeros(len(problem.labelled))
    steps[problem.free] = found[:, -1]
    return GraphValues(problem.complete(found[:, :-1]), steps)


def error_of(problem: GraphLabels, found: Array) -> float:
    """Bound the error of values, in units of the largest target; infinite for useless steps."""
    if not len(found):
        return 0.0
    left = np.abs(problem.product(found) - right_sides(problem)) / units_of(problem)
    if not left[:, -1].max() <= _USEFUL:
        return np.inf
    return float(left[:, :-1].max(initial=0.0)) / size_of(problem) * gain_of(problem, found)


def gain_of(problem: GraphLabels, found: Array) -> float:
    """Return how many times larger than that of the equations the error of values may be."""
    if problem.clamped:
        return float(2.0 * max(1.0, found[:, -1].max(initial=0.0)))
    return float(np.sqrt(len(found)) / (1.0 - problem.alpha))


def goals_of(problem: GraphLabels, tol: float) -> Array:
    """Return what is to be left of every equation: (m, t + 1).

    Steps bound errors and are no answer themselves: a digit of them is enough.
    """
    goals = units_of(problem) * tol * size_of(problem)
    goals[:, -1] = 0.5 * _USEFUL * problem.degrees[problem.free]
    return goals


_USEFUL = 0.2  # of the degree of a row: an error of the equation of its steps


def units_of(problem: GraphLabels) -> Array:
    """Return what errors of equations are divided by: (m, t + 1)."""
    units = np.repeat(problem.units[:, None], problem.targets.shape[1] + 1, axis=1)
    units[:, -1] = problem.degrees[problem.free]
    return units


def size_of(problem: GraphLabels) -> float:
    """Return the largest target, or one."""
    return float(np.abs(problem.targets).max(initial=0.0)) or 1.0
