"""Are the classes apart? The margin, and Novikoff's bound on the mistakes that led there.

Any separator with margin gamma proves that a perceptron makes at most (R / gamma)^2 mistakes, in
whatever order rows come and however often. The separator it ends with is one. Turned round: after
M mistakes no separator has a margin above R / sqrt(M).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mercer.certificates.base import Certificate, certify
from mercer.gram import FactoredGram, exact
from mercer.problems import Separation, Separator

_SQUARED = 1e150  # ratios beyond have squares that are no numbers
_ROUNDING = 1e-9


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
        (R / gamma)^2; infinite where it says nothing.
    widest : float
        R / sqrt(mistakes): no functions keep the rows seen apart by more than this. Infinite where
        mistakes were forgotten: they prove nothing then.
    """

    mistakes: int
    radius: float
    margin: float
    bound: float
    widest: float


@certify.register
def _(problem: Separation, value: Separator, tol: float | None = None) -> Certificate:
    with np.errstate(over="ignore", invalid="ignore"):
        gram = exact(problem.gram)
        if isinstance(gram, FactoredGram) and value.weights is not None:
            image = np.asarray(gram.factor @ value.weights)
            squared = float(np.square(value.weights).sum())
        else:
            image = np.asarray(gram @ value.coef)
            squared = float((value.coef * image).sum())
        if problem.bias:
            squared += float(np.square(value.intercept).sum())
        lead = float(problem.advantages(image + value.intercept).min())
        radius = radius_of(float(gram.diag().max()), problem.bias, problem.columns)
    margin = lead / math.sqrt(squared) if squared > 0 else 0.0
    return judged(value.mistakes, value.forgotten, radius, margin, 0.0 if tol is None else tol)


def radius_of(longest: float, bias: bool, columns: int) -> float:
    """Give R from the largest k(x, x)."""
    return math.sqrt((longest + bias) * (1 if columns == 1 else 2))


def judged(
    mistakes: int, forgotten: int, radius: float, margin: float, tol: float = 0.0
) -> Certificate:
    """State what mistakes, radius and margin say together."""
    apart, all_kept = margin > tol, forgotten == 0
    ratio = radius / margin if apart and all_kept else math.inf
    bound = ratio**2 if ratio < _SQUARED else math.inf
    widest = radius / math.sqrt(mistakes) if mistakes and all_kept else math.inf
    ok = apart and mistakes <= bound * (1 + _ROUNDING)
    quantities = SeparationQuantities(mistakes, radius, margin, bound, widest)
    return Certificate(ok, quantities, tol, _statement(quantities, apart, all_kept))


def _statement(q: SeparationQuantities, apart: bool, all_kept: bool) -> str:
    if apart and all_kept:
        return (
            f"the classes are apart by {q.margin:.3g}, which bounds the mistakes of any order of "
            f"the rows by (R/gamma)^2 = {q.bound:.4g}; {q.mistakes} were made"
        )
    if apart:
        return f"the classes are apart by {q.margin:.3g}; with a budget, mistakes are not bounded"
    seen = (
        "the rows are gone: nothing is known of the margin"
        if math.isnan(q.margin)
        else ("the classes are not apart so far")
    )
    if math.isinf(q.widest):
        return seen
    return f"{seen}; after {q.mistakes} mistakes, no function has a margin above {q.widest:.3g}"
