"""Penalties of a canonical correlation judged by folds: correlation on rows that were left out.

All folds and penalties share one factor of each Gram (features where there are few, else a pivoted
Cholesky factor of bounded rank), and all penalties of a fold share its two small eigenproblems. The
factor only ranks the penalties; the fit itself is made from the Grams.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram, pivoted_cholesky
from mercer.machines.base.parameters import refuse
from mercer.machines.correlation.views import correlations_of
from mercer.problems.correlation.shrinkage import Shrinkage
from mercer.solvers.base import Watch
from mercer.solvers.correlation.views import has_features
from mercer.solvers.spectral.krylov import largest_pairs

LARGEST = 800  # columns of the shared factors
_CUT = 1e-12
_SMALL = 200  # rows of a matrix whose singular pairs are all taken


def held_out(
    machine: Any, grams: tuple[Gram, Gram], weights: Array, form: Shrinkage, seed: int
) -> Array:
    """Return the held-out correlations of the candidates of a machine: (folds, penalties)."""
    folds = _folds(machine, len(weights))
    scale = np.sqrt(weights)[:, None]
    x, y = (shared_factor(gram, machine.rank, seed) / scale for gram in grams)
    watch = Watch(machine.callback, machine.time_limit)
    return held_out_scores(
        (x, y), weights, folds, machine.penalties_, machine.n_components, form, watch
    )


def check_folds(machine: Any) -> None:
    """Require a number of folds, or an object that splits."""
    cv = machine.cv
    whole = isinstance(cv, int | np.integer) and not isinstance(cv, bool)
    if not (hasattr(cv, "split") or isinstance(cv, list) or (whole and cv >= 2)):
        refuse(machine, "cv", cv, "be a number of folds of at least 2, a splitter or a list")


def _folds(machine: Any, n: int) -> Iterable[tuple[Array, Array]]:
    """Return training and held-out rows; for a number, of that many runs of rows."""
    if hasattr(machine.cv, "split"):
        return list(machine.cv.split(np.zeros((n, 1))))
    if isinstance(machine.cv, list):
        return machine.cv
    if machine.cv > n:
        refuse(machine, "cv", machine.cv, f"be at most the number of rows, {n}")
    runs = np.array_split(np.arange(n), machine.cv)
    return [(np.setdiff1d(np.arange(n), held), held) for held in runs]


def shared_factor(gram: Gram, rank: int | None, random_state: int) -> Array:
    """Return features of all rows: F with K = F F', nearly."""
    if has_features(gram) and gram.rank <= LARGEST:
        return np.asarray(gram.factor)
    most = LARGEST if rank is None else min(rank, LARGEST)
    return pivoted_cholesky(gram, most, random_state).factor


@dataclass(frozen=True, eq=False)
class _FoldView:
    """A view within a fold: features of all rows in the eigenbasis of the training rows.

    Attributes
    ----------
    rows : (n, r) array
        Centred features of all rows, each column of unit length over the (weighted) training rows.
    s : (r,) array
        The eigenvalues of the training Gram.
    """

    rows: Array
    s: Array


def _fold_view(F: Array, weights: Array) -> _FoldView:
    centred = F - np.average(F, axis=0, weights=weights)
    s, Z = np.linalg.eigh((centred * weights[:, None]).T @ centred)
    kept = s > _CUT * s.max(initial=0.0)
    return _FoldView(centred @ (Z[:, kept] / np.sqrt(s[kept])), s[kept])


def held_out_scores(
    factors: tuple[Array, Array],
    weights: Array,
    folds: Iterable[tuple[Array, Array]],
    penalties: list[tuple[float, float]],
    count: int,
    form: Shrinkage,
    watch: Watch,
) -> Array:
    """Return the mean correlation of held-out variates, for each fold and penalty.

    Parameters
    ----------
    factors : tuple of two (n, r) arrays
        Features of all rows, of both views.
    weights : (n,) array
        How often each row counts.
    folds : iterable of (int array, int array)
        Training and held-out rows.
    penalties : list of pairs
        Candidates, as shares of the variance of each view.
    count : int
        How many pairs are correlated.
    form : Shrinkage
        How a penalty enters.
    watch : Watch
        Asked after every fold whether to stop.

    Returns
    -------
    (folds, penalties) array
        The scores.
    """
    scores: list[list[float]] = []
    for number, (train, test) in enumerate(folds, start=1):
        inside = np.zeros(len(weights))
        inside[train] = weights[train]
        x, y = (_fold_view(F, inside) for F in factors)
        cross = (x.rows * inside[:, None]).T @ y.rows
        scores.append(
            [_score(x, y, cross, pair, count, form, test, weights[test]) for pair in penalties]
        )
        if watch.tick(number, float(np.max(scores[-1]))):
            break
    return np.array(scores)


def _score(
    x: _FoldView,
    y: _FoldView,
    cross: Array,
    penalties: tuple[float, float],
    count: int,
    form: Shrinkage,
    test: Array,
    weights: Array,
) -> float:
    a, b = (
        form.shrink(view.s, penalty * float(view.s.sum()))
        for view, penalty in zip((x, y), penalties, strict=True)
    )
    P, Qt = _largest(a[:, None] * cross * b, count)
    u, v = x.rows[test] @ (a[:, None] * P[:, :count]), y.rows[test] @ (b[:, None] * Qt[:count].T)
    found = correlations_of(u, v, weights)
    return float(found.sum()) / count


def _largest(M: Array, count: int) -> tuple[Array, Array]:
    """Return the largest singular pairs; of large matrices, without the others."""
    if min(M.shape) <= max(_SMALL, 8 * count):
        P, _, Qt = np.linalg.svd(M, full_matrices=False)
        return P, Qt
    Q = largest_pairs(lambda V: M.T @ (M @ V), M.shape[1], count, tol=1e-8).vectors
    P, _, turn = np.linalg.svd(M @ Q, full_matrices=False)
    return P, turn @ Q.T
