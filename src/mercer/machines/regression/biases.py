"""One bias per class: only their differences mean anything."""

from __future__ import annotations

from dataclasses import replace

from mercer.problems import Coefficients
from mercer.solvers import Solution


def centred_biases(solution: Solution, loss: str) -> Solution:
    """Take off what is common to the biases of all classes, which the logistic loss never sees.

    Parameters
    ----------
    solution : Solution
        How the solver ended.
    loss : str
        The loss; those that judge each class by itself see every bias.
    """
    value: Coefficients = solution.value
    if loss != "log" or len(value.intercept) < 2:
        return solution
    centred = replace(value, intercept=value.intercept - value.intercept.mean())
    return replace(solution, value=centred)
