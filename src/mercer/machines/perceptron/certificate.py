"""Are the classes apart? The margin, and Novikoff's bound on the mistakes that led there.

Any separator with margin gamma proves that a perceptron makes at most (R / gamma)^2 mistakes, in
whatever order rows come and however often. The separator it ends with is one. Turned round: after
M mistakes no separator has a margin above R / sqrt(M). Both need lengths and angles, hence a K that
is positive semidefinite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mercer.array_types import Array
from mercer.gram import Definiteness, Gram, definiteness, exact
from mercer.gram.accurate_products import gamma
from mercer.gram.base import RKHSFunction
from mercer.gram.definite import BY_CONSTRUCTION
from mercer.machines.perceptron.problem import Separation, Separator
from mercer.solvers.certificate import Certificate, certify, larger

_SQUARED = 1e150  # the squares of larger ratios overflow
_ROUNDING = 1e-9
_MORE = 12  # roundings of the operands of a bound, in addition to those of its sums
_SAME = 1e-6  # of the largest weight: both forms of a function are sums of the same rows


@dataclass(frozen=True)
class SeparationQuantities:
    """Measures of a perceptron.

    Attributes
    ----------
    mistakes : int
        Mistakes made.
    radius : float
        R: length of the longest row, with the constant feature of the bias; for more than two
        classes times sqrt(2), since a row is then added to one function and taken off another.
    margin : float
        gamma: the smallest lead of the right class over the norm of the functions; not positive if
        the classes are not apart; NaN if the rows are gone.
    bound : float
        (R / gamma)^2; infinite if the bound does not apply.
    widest : float
        R / sqrt(mistakes): no functions keep the rows seen apart by more than this. Infinite where
        mistakes were forgotten: the bound then does not apply.
    mismatch : float
        If functions have weights and coefficients: the distance between both, over
        the largest weight.
    indefiniteness : float
        Shift of the diagonal of K that makes it positive semidefinite: zero by the
        construction of the kernel, rounding if K was factored, infinite if unknown.
    """

    mistakes: int
    radius: float
    margin: float
    bound: float
    widest: float
    mismatch: float = 0.0
    indefiniteness: float = 0.0


@certify.register
def _(problem: Separation, value: Separator, tol: float | None = None) -> Certificate:
    with np.errstate(over="ignore", invalid="ignore"):
        gram = exact(problem.gram)
        function = RKHSFunction(gram, value.coef, value.weights)
        image = function.at_points()
        squared = function.squared_norm(image)
        if problem.bias:
            squared += float(np.square(value.intercept).sum())
        lengths = np.sqrt(np.abs(gram.diag()))
        norm, terms = _longest(function, lengths), _terms(function)
        hidden = problem.rounding(lengths, norm, value.intercept, terms)
        # |w|^2 is a sum that rounds as well, as b'K b (`BoxQP.rounding`)
        squared += 2.0 * gamma(terms + _MORE) * problem.columns * norm**2
        lead = float((problem.advantages(image + value.intercept) - hidden).min())
        radius = radius_of(float(gram.diag().max()), problem.bias, problem.columns)
        apart = _mismatch(gram, value)
    margin = lead / math.sqrt(squared) if squared > 0 else 0.0
    found = judged(
        value.mistakes,
        value.forgotten,
        radius,
        margin,
        0.0 if tol is None else tol,
        definiteness(problem.gram),
    )
    means = (value.mean_coef, value.mean_intercept, value.mean_weights)
    if not all(x is None or np.isfinite(x).all() for x in means):
        apart = np.inf  # else nothing is said of means over the steps
    quantities = replace(found.quantities, mismatch=apart)
    if apart <= _SAME:
        return replace(found, quantities=quantities)
    statement = f"coefficients and weights are two solutions, {apart:.1e} apart"
    return replace(found, ok=False, quantities=quantities, statement=statement)


def _terms(function: RKHSFunction) -> int:
    """Return how many products a value is the sum of at most, features included."""
    wide = 0 if function.gram.features is None else function.gram.rank
    if function.weights is not None:
        return wide
    return wide + int(np.count_nonzero(np.any(np.asarray(function.coef) != 0, axis=1)))


def _longest(function: RKHSFunction, lengths: Array) -> float:
    """Return the largest norm of a function, or the sum of its terms before they cancel."""
    if function.weights is not None:
        return float(np.linalg.norm(function.weights, axis=0).max(initial=0.0))
    assert function.coef is not None
    return float((lengths @ np.abs(function.coef)).max(initial=0.0))


def _mismatch(gram: Gram, value: Separator) -> float:
    """Compare both forms of the last function and of the average."""
    forms = [(value.coef, value.weights), (value.mean_coef, value.mean_weights)]
    found = 0.0
    for coef, own_weights in forms:
        weights = RKHSFunction(gram, coef, own_weights).weights
        if weights is None or not len(coef):
            continue
        largest = max(float(np.abs(weights).max(initial=0.0)), np.finfo(float).tiny)
        found = larger(found, float(np.abs(gram.factor.T @ coef - weights).max()) / largest)
    return found if np.isfinite(found) else math.inf


def radius_of(longest: float, bias: bool, columns: int) -> float:
    """Return R from the largest k(x, x)."""
    squared = max(longest + bias, 0.0)  # negative if K is indefinite, which the statement reports
    return math.sqrt(squared * (1 if columns == 1 else 2))


def judged(
    mistakes: int,
    forgotten: int,
    radius: float,
    margin: float,
    tol: float = 0.0,
    convex: Definiteness = BY_CONSTRUCTION,
) -> Certificate:
    """State what mistakes, radius and margin say together."""
    if not convex.shown:
        nothing = SeparationQuantities(
            mistakes, radius, math.nan, math.inf, math.inf, indefiniteness=convex.shift
        )
        statement = f"{convex.obstacle}, so norms, margin and bound are undefined"
        return Certificate(False, nothing, tol, statement)
    apart, all_kept = margin > tol, forgotten == 0
    ratio = radius / margin if apart and all_kept else math.inf
    bound = ratio**2 if ratio < _SQUARED else math.inf
    widest = radius / math.sqrt(mistakes) if mistakes and all_kept else math.inf
    ok = apart and mistakes <= bound * (1 + _ROUNDING)
    quantities = SeparationQuantities(
        mistakes, radius, margin, bound, widest, indefiniteness=convex.shift
    )
    return Certificate(ok, quantities, tol, _statement(quantities, apart, all_kept))


def _statement(q: SeparationQuantities, apart: bool, all_kept: bool) -> str:
    if apart and all_kept:
        return (
            f"the classes are separated with margin {q.margin:.3g}, so every order of the rows has "
            f"at most (R/gamma)^2 = {q.bound:.4g} mistakes; the fit made {q.mistakes}"
        )
    if apart:
        return (
            f"the classes are separated with margin {q.margin:.3g}; a budget has no mistake bound"
        )
    seen = (
        "the margin is unknown, since the rows were not kept"
        if math.isnan(q.margin)
        else ("the classes are not separated yet")
    )
    if math.isinf(q.widest):
        return seen
    return f"{seen}; after {q.mistakes} mistakes, no function has a margin above {q.widest:.3g}"
