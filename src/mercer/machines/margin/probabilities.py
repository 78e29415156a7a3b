"""Probabilities that never contradict the decision.

For two classes p(f) = 1 / (1 + exp(-s f)), with one slope s > 0 where f > 0 and another where
f < 0, fitted to decision values out of sample. So p is increasing, and 1/2 where the decision
changes. Many classes are combined from their two-class parts, and the probabilities are handed out
in the order of the decision values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from mercer.array_types import Array
from mercer.gram import Gram
from mercer.machines.margin.folds import HeldOut, fold_shares, out_of_fold
from mercer.machines.margin.multiclass import Programmes, Scheme
from mercer.problems import Dual, Many
from mercer.solvers import Solver
from mercer.solvers.base import Watch

_FLATTEST = 1e-6  # per typical value: for sides on which more rows are wrong than right
_STEEPEST = 1e3
_LARGEST = float(np.finfo(np.float64).max)  # a slope, where values are below 1e-305
_TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Calibration:
    """From decision values to probabilities.

    Attributes
    ----------
    scheme : Scheme
        How parts make one decision.
    slopes : (parts, 2) array
        The slope of each part below and above zero.
    """

    scheme: Scheme
    slopes: Array

    def __call__(self, values: Array) -> Array:
        """Return probabilities (n, classes) from values of all parts (n, parts)."""
        slopes = np.where(values > 0, self.slopes[:, 1], self.slopes[:, 0])
        with np.errstate(over="ignore"):  # infinite products have probability one
            mixed = self.scheme.couple(expit(slopes * values))
        return in_order(mixed, self.scheme.decide(values))


def calibrate(
    gram: Gram,
    question: Programmes,
    scheme: Scheme,
    duals: Sequence[Dual],
    weights: Array,
    choose: Callable[[Many], Solver],
    watch: Watch,
) -> Calibration:
    """Fit the slopes to values out of sample, from the Gram of the fit."""
    shares = fold_shares(scheme.ends, weights)
    held_out = out_of_fold(gram, question, duals, shares, choose, watch)
    return Calibration(scheme, np.array([slopes_of(one) for one in held_out]))


def slopes_of(held_out: HeldOut) -> tuple[float, float]:
    """Return the slopes below and above zero.

    Each maximises the likelihood of the rows on its side, with one more row right and one more
    wrong at their mean value: without any other, they leave the probability at 1/2.
    """
    size = np.abs(held_out.values)
    typical = float(np.average(size, weights=held_out.weights)) if len(size) else 0.0
    typical = typical if typical > 0 else 1.0
    return (
        _slope(held_out, held_out.values <= 0, -1.0, typical),
        _slope(held_out, held_out.values > 0, 1.0, typical),
    )


def _slope(held_out: HeldOut, side: Array, sign: float, typical: float) -> float:
    size, weights = np.abs(held_out.values[side]) / typical, held_out.weights[side]
    right = (held_out.signs[side] == sign).astype(np.float64)
    middle = float(np.average(size, weights=weights)) if len(size) else 1.0

    def gain(slope: float) -> float:
        wrong = expit(-slope * size)
        prior = middle * (1.0 - 2.0 * float(expit(slope * middle)))
        return float((weights * size) @ (right - 1.0 + wrong)) + prior

    if not gain(_FLATTEST) > 0:
        slope = _FLATTEST
    elif gain(_STEEPEST) >= 0:
        slope = _STEEPEST
    else:
        slope = float(brentq(gain, _FLATTEST, _STEEPEST, rtol=1e-12))
    return min(slope / typical, _LARGEST)


def in_order(probabilities: Array, decision: Array) -> Array:
    """Hand out probabilities so that a larger decision value has a larger probability.

    The largest goes to the class that is predicted, strictly so where another class comes first.
    """
    order = np.argsort(-decision, axis=1, kind="stable")
    ranked = np.empty_like(probabilities)
    np.put_along_axis(ranked, order, -np.sort(-probabilities, axis=1), axis=1)
    every, best = np.arange(len(order)), order[:, 0]
    tied = np.flatnonzero(np.argmax(ranked, axis=1) != best)
    ranked[every[tied], best[tied]] *= 1.0 + _TIE
    return np.asarray(ranked / ranked.sum(axis=1, keepdims=True))
