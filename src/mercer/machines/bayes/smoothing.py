"""The smoothing of naive Bayes by cross-validation: counts of folds add up, so none is refitted.

Folds are alike in every class and made of distinct rows: copies of a row are in one fold, so that
a row of weight two is that row twice.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.machines.base.decision import normalised, prior_of
from mercer.machines.base.parameters import is_real, refuse
from mercer.machines.bayes.class_counts import ClassCounts, Layout, count
from mercer.machines.bayes.class_scores import Coded, coded, scores
from mercer.machines.bayes.columns import Table
from mercer.points import is_sparse
from mercer.solvers import solve

FOLDS = 5
ALPHAS = 10.0 ** np.arange(-3, 2.25, 0.5)
LARGEST = 1e100  # beyond, sums of what is added leave the range of float64


def is_smoothing(alpha: Any) -> bool:
    """Return whether something can be added to counts."""
    return is_real(alpha) and 0 <= float(alpha) <= LARGEST


def check_smoothing(machine: Any) -> None:
    """Require a count that can be added to each value."""
    if not is_smoothing(machine.alpha):
        must = f"be a finite number of at least 0 and at most {LARGEST:g}"
        refuse(machine, "alpha", machine.alpha, must)


def best_alpha(
    machine: Any, layout: Layout, table: Table, labels: Array, weights: Array, whole: ClassCounts
) -> tuple[float, Array]:
    """Return the candidate with the smallest loss on rows left out, and the loss of each.

    The loss is the mean of -log P(class of the row | row); of equal candidates the largest wins.
    """
    fold = folds(coded(machine, layout, table, whole), labels)
    k, candidates = len(whole.weight), candidates_of(machine)
    used = [f for f in range(FOLDS) if (fold == f).any()]
    parts = {}
    for f in used:
        mine = np.flatnonzero(fold == f)
        parts[f] = count(machine, layout, table.rows(mine), labels[mine], weights[mine], k)
    losses = np.zeros(len(candidates))
    for f in used if len(used) > 1 else []:
        held = np.flatnonzero(fold == f)
        learnt = reduce(ClassCounts.merged, [parts[g] for g in used if g != f])
        prior = prior_of(machine, learnt.weight)
        rows = coded(machine, layout, table.rows(held), learnt)
        for i, alpha in enumerate(candidates):
            model = solve(learnt.problem(alpha, machine.var_smoothing, prior)).value
            found = normalised(scores(machine, rows, model, prior))
            losses[i] -= weights[held] @ found[np.arange(len(held)), labels[held]]
    losses /= weights.sum()
    least = losses.min()
    return float(candidates[losses <= least + 1e-12 * abs(least)].max()), losses


def candidates_of(machine: Any) -> Array:
    """Return the candidates: those given, or eleven from 0.001 to 100."""
    return ALPHAS if machine.alphas is None else np.asarray(machine.alphas, dtype=np.float64)


def folds(rows: Coded, labels: Array) -> Array:
    """Return the fold of each row, by what is in it and not by where it stands."""
    key = _key(rows)
    order = np.lexsort((key, labels))
    new = np.append(True, (np.diff(key[order]) != 0) | (np.diff(labels[order]) != 0))
    rank = np.cumsum(new) - 1  # of distinct rows, those of one class side by side
    out = np.empty(len(labels), dtype=np.intp)
    out[order] = rank % FOLDS
    return out


def _key(rows: Coded) -> Array:
    """Return a number for each row, equal for equal rows."""
    rng = np.random.default_rng(0)
    key = np.zeros(rows.n)
    for codes, place in rows.slots:
        key += (rng.standard_normal() * np.sin(place)).take(codes)
    for block in (rows.binary, rows.counts, rows.gaussian):
        if block is None:
            continue
        direction = rng.standard_normal(block.shape[1])
        if is_sparse(block):
            key += block @ direction
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            for i in range(0, rows.n, 4096):  # row by row: a product may round equal rows apart
                part = np.nan_to_num(block[i : i + 4096].astype(np.float64), nan=-1.5)
                key[i : i + 4096] += (part * direction).sum(axis=1)
    return np.nan_to_num(key)
