"""Eigenproblems near the ends of float64, in units in which the squares of products are numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.array_types import Array
from mercer.gram import CenteredGram, Gram, PrecomputedGram, ScaledGram, scaled
from mercer.problems import Eigenproblem

_ORDINARY = 1e60  # K below this, and above its inverse, is taken as it is

_LEAST = -500  # the power of two whose square has an inverse


def evaluated(gram: Gram) -> tuple[Gram, Array]:
    """Return the Gram under centring and scaling, and what its diagonal is multiplied by."""
    factor = np.ones(gram.shape[0])
    while isinstance(gram, CenteredGram | ScaledGram):
        if isinstance(gram, ScaledGram):
            factor = factor * gram.scale**2
        gram = gram.base
    return gram, factor


def in_units(problem: Eigenproblem) -> tuple[Eigenproblem, float]:
    """Return the problem of K / u^2, and u: a power of two; one where K is of ordinary size."""
    base, factor = evaluated(problem.gram)
    with np.errstate(over="ignore", invalid="ignore"):
        size = float((_largest(base) * factor).max(initial=0.0))
    if size == 0 or not np.isfinite(size) or 1 / _ORDINARY < size < _ORDINARY:
        return problem, 1.0
    unit = 2.0 ** max(np.floor(np.log2(size) / 2), _LEAST)
    smaller = scaled(problem.gram, np.full(problem.gram.shape[0], 1 / unit))
    return replace(problem, gram=smaller), float(unit)


def _largest(gram: Gram) -> Array:
    """Bound the entries of each row: K that is positive semidefinite has none above max K_ii."""
    if gram.valid or not isinstance(gram, PrecomputedGram):
        return np.abs(gram.diag())
    return np.asarray(np.abs(gram.dense()).max(axis=1, initial=0.0))
