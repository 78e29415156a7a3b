"""Values that a classifier gives to rows it was not fitted to: five folds on the Gram of the fit.

Folds are made of merged rows, alike in every class, and do not depend on the order of rows. A row
of weight 2 is that row twice, and its copies are in different folds: each fold leaves out a share
of its weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram
from mercer.gram.exact_parts import exact_rows
from mercer.gram.transformed.part import restricted
from mercer.machines.margin.boxes import TwoClassBox
from mercer.machines.margin.multiclass import Programmes, TwoClassProgramme
from mercer.problems import Dual, Many
from mercer.solvers import Solver
from mercer.solvers.base import Watch

FOLDS = 5
_NOTHING = 1e-9  # of the weight of a row: rounding of what is left


@dataclass(frozen=True, eq=False)
class HeldOut:
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
class Fold:
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
    question: Programmes,
    duals: Sequence[Dual],
    shares: Array,
    choose: Callable[[Many], Solver],
    watch: Watch,
) -> list[HeldOut]:
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
        found.append(HeldOut(np.concatenate(values), signs, weights))
    return found


def _fold(part: TwoClassProgramme, rows: Array, box: TwoClassBox, shares: Array, f: int) -> Fold:
    out, weights = shares[rows, f], shares[rows].sum(axis=1)
    left = 1.0 - out / weights
    kept, test = np.flatnonzero(left > _NOTHING), np.flatnonzero(out > 0)
    smaller = box.of(part.rows).of(kept).counting(left[kept]).feasible(part.signs[kept])
    return Fold(rows[kept], part.signs[kept], smaller, rows[test], part.signs[test], out[test])


def _machines(
    gram: Gram, folds: list[Fold], choose: Callable[[Many], Solver], watch: Watch
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
    return exact_rows(gram, test_rows, coef) + float(dual.intercept)
