"""Calibrated probabilities of support vector classifiers, from out-of-fold decision values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from mercer.array_types import Array
from mercer.gram import Gram
from mercer.gram.accurate_products import exact_rows, product_rounding
from mercer.gram.transformed import restricted
from mercer.machines.svm.machine import TwoClassBox
from mercer.machines.svm.multiclass import ClassQPs, Scheme, TwoClassProgramme
from mercer.machines.svm.problem import Dual, Many
from mercer.solvers.base import Solver, Watch

# --- folds ---------------------------------------------------------------------------------------
#
# Values that a classifier gives to rows it was not fitted to: five folds on the Gram of the fit.
#
# Folds are made of merged rows, alike in every class, and do not depend on the order of rows. A
# row of weight 2 is that row twice, and its copies are in different folds: each fold leaves out a
# share of its weight.

FOLDS = 5
_NOTHING = 1e-9  # of the weight of a row: rounding of what is left


@dataclass(frozen=True, eq=False)
class OutOfFoldValues:
    """Decision values of rows that were left out, for one part.

    Attributes
    ----------
    values : (m,) array
        f at each row, from the other folds.
    signs : (m,) array
        The class of each.
    weights : (m,) array
        How often each counts.
    """

    values: Array
    signs: Array
    weights: Array


def fold_order(codes: Array) -> Array:
    """Sort rows, given by class, so that those of a fold are side by side within their class."""
    place = np.arange(len(codes)) - np.searchsorted(codes, codes)
    return np.lexsort((place % FOLDS, codes))


def fold_shares(ends: Array, weights: Array) -> Array:
    """Return the weight that each row, in the order of `fold_order`, has in each fold.

    The copies of a row go to consecutive folds, beginning with its own.
    """
    own = np.concatenate([np.sort(np.arange(count) % FOLDS) for count in np.diff(ends)])
    whole = np.floor(weights)
    shares = np.empty((len(weights), FOLDS))
    every = np.arange(len(weights))
    for later in range(FOLDS):
        copies = np.maximum((whole - later + FOLDS - 1) // FOLDS, 0.0)
        shares[every, (own + later) % FOLDS] = copies + np.where(
            whole % FOLDS == later, weights - whole, 0.0
        )
    return shares


@dataclass(frozen=True, eq=False)
class PartFold:
    """One part without one fold: the rows that are left, and those that are judged."""

    rows: Array
    signs: Array
    box: TwoClassBox
    test_rows: Array
    test_signs: Array
    test_weights: Array

    def has_both_classes(self) -> bool:
        """Return whether there is anything to separate."""
        return bool((self.signs > 0).any() and (self.signs < 0).any())


def out_of_fold(
    gram: Gram,
    question: ClassQPs,
    duals: Sequence[Dual],
    shares: Array,
    choose: Callable[[Many], Solver],
    watch: Watch,
) -> list[OutOfFoldValues]:
    """Return decision values out of sample for every part of a question.

    Where a fold has no answer (no row of a class is left), the whole fit stands in.
    """
    every = np.arange(gram.shape[0])
    folds = [
        _fold(part, every if part.rows is None else part.rows, question.box, shares, f)
        for part in question.parts
        for f in range(FOLDS)
    ]
    machines = _machines(gram, folds, choose, watch)
    found = []
    for i, (part, dual) in enumerate(zip(question.parts, duals, strict=True)):
        mine = slice(i * FOLDS, (i + 1) * FOLDS)
        whole = every if part.rows is None else part.rows
        values = [
            _values(gram, whole, dual, fold.test_rows)
            if machine is None
            else _values(gram, fold.rows, machine, fold.test_rows)
            for fold, machine in zip(folds[mine], machines[mine], strict=True)
        ]
        signs = np.concatenate([fold.test_signs for fold in folds[mine]])
        weights = np.concatenate([fold.test_weights for fold in folds[mine]])
        found.append(OutOfFoldValues(np.concatenate(values), signs, weights))
    return found


def _fold(
    part: TwoClassProgramme, rows: Array, box: TwoClassBox, shares: Array, f: int
) -> PartFold:
    out, weights = shares[rows, f], shares[rows].sum(axis=1)
    left = 1.0 - out / weights
    kept, test = np.flatnonzero(left > _NOTHING), np.flatnonzero(out > 0)
    smaller = box.of(part.rows).of(kept).counting(left[kept]).feasible(part.signs[kept])
    return PartFold(rows[kept], part.signs[kept], smaller, rows[test], part.signs[test], out[test])


def _machines(
    gram: Gram, folds: list[PartFold], choose: Callable[[Many], Solver], watch: Watch
) -> list[Dual | None]:
    """Answer all folds together; None for those that have no answer."""
    asked = [fold for fold in folds if fold.has_both_classes()]
    if not asked:
        return [None] * len(folds)
    parts = [fold.box.problem(restricted(gram, fold.rows), fold.signs) for fold in asked]
    problem = Many(tuple(parts))
    # not by `solve`: how these end is no news to the user, whose own fit has been reported on
    found = None
    with watch.keeping():
        found = choose(problem).run(problem, watch)
    if watch.stopped or found is None:  # half an answer says nothing about rows that were left out
        return [None] * len(folds)
    answers = iter(found.value.parts)
    return [_decision(f.box, next(answers)) if f.has_both_classes() else None for f in folds]


def _decision(box: TwoClassBox, dual: Dual) -> Dual | None:
    if not box.decided(dual):  # no margin at this nu without the fold
        return None
    machine = box.decision(dual)
    return machine if np.isfinite(machine.coef).all() else None


def _values(gram: Gram, rows: Array, dual: Dual, test_rows: Array) -> Array:
    coef = np.zeros(gram.shape[0])
    coef[rows] = dual.coef
    values = exact_rows(gram, test_rows, coef) + float(dual.intercept)
    # on neither side of zero, where rounding alone says which
    return np.where(np.abs(values) > product_rounding(gram, coef, 1)[test_rows], values, 0.0)


# --- probabilities -------------------------------------------------------------------------------
#
# Probabilities that never contradict the decision.
#
# For two classes p(f) = 1 / (1 + exp(-s f)), with one slope s > 0 where f > 0 and another where f
# < 0, fitted to decision values out of sample. So p is increasing, and 1/2 where the decision
# changes. Many classes are combined from their two-class parts, and the probabilities are handed
# out in the order of the decision values.

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
    question: ClassQPs,
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


def slopes_of(held_out: OutOfFoldValues) -> tuple[float, float]:
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


def _slope(held_out: OutOfFoldValues, side: Array, sign: float, typical: float) -> float:
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
