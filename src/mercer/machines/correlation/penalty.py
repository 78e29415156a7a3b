"""The penalty of a canonical correlation: as the parameter says, or chosen by held-out rows.

A penalty is a share of the total variance of its view in feature space, sum_i s_i |phi_c(x_i)|^2:
the scale of a kernel, the number of rows and their weights do not matter.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram, pivoted_cholesky
from mercer.kernels import Kernel, Linear, Precomputed
from mercer.machines.base.parameters import is_real, refuse
from mercer.machines.correlation.views import correlations_of
from mercer.problems.correlation import Shrinkage
from mercer.solvers.base import Watch
from mercer.solvers.correlation.views import has_features
from mercer.solvers.spectral.krylov import largest_pairs

Pair = tuple[float, float]

DEFAULT = 0.01  # of the variance, where a view could reach any variate without a penalty
_ROUNDING = 1e-13  # of the trace before centring, by which a matrix is centred
_OF_FEATURES = (8 * float(np.finfo(float).eps)) ** 2  # the same for features
_NONE = 1e-13  # shares below shrink nothing that is kept of a matrix
CANDIDATES = tuple((float(p), float(p)) for p in np.logspace(-4, 0, 9))


def as_pair(value: Any) -> Pair | None:
    """Read one penalty, or one for each view; None if it is neither."""
    both = (value, value) if is_real(value) else value
    pair = isinstance(both, tuple | list | np.ndarray) and np.ndim(both) == 1
    if not pair or len(both) != 2:
        return None
    if not all(is_real(p) and np.isfinite(float(p)) and p >= 0 for p in both):
        return None
    return float(both[0]), float(both[1])


def check_penalty(machine: Any) -> None:
    """Refuse what no penalty can be, before anything is allocated."""
    if isinstance(machine.penalty, str):
        if machine.penalty not in ("auto", "cv"):
            refuse(machine, "penalty", machine.penalty, "be a number, a pair, 'auto' or 'cv'")
    elif as_pair(machine.penalty) is None:
        must = "be finite and not negative: one number, a pair for both views, 'auto' or 'cv'"
        refuse(machine, "penalty", machine.penalty, must)
    if machine.penalties is not None:
        _check_candidates(machine)


def _check_candidates(machine: Any) -> None:
    given = machine.penalties
    good = hasattr(given, "__len__") and not isinstance(given, str) and len(given) > 0
    if not good or any((pair := as_pair(p)) is None or min(pair) <= 0 for p in given):
        refuse(machine, "penalties", given, "be a list of positive numbers or pairs of them")


def candidates(machine: Any) -> list[Pair]:
    """Return the penalties that folds choose from."""
    if machine.penalties is None:
        return list(CANDIDATES)
    return [pair for p in machine.penalties if (pair := as_pair(p)) is not None]


def automatic(grams: tuple[Gram, Gram]) -> Pair:
    """Ask for no penalty where both views together have fewer features than there are rows."""
    n = grams[0].shape[0]
    if all(map(has_features, grams)) and sum(gram.rank for gram in grams) < n - 1:
        return 0.0, 0.0
    return DEFAULT, DEFAULT


def refuse_trivial(machine: Any, grams: tuple[Gram, Gram]) -> None:
    """Refuse to go without a penalty where a view can reach any variate at all."""
    for name, kernel, gram, penalty in zip(
        "xy", _kernels(machine), grams, machine.penalty_, strict=True
    ):
        asked = not isinstance(kernel, Linear | Precomputed)  # of those the rank is looked at
        if penalty == 0 and asked and not has_features(gram):
            raise ValueError(_trivial(machine, name, kernel, gram.shape[0]))


def judge_ranks(machine: Any, n: int) -> None:
    """Refuse or warn, once ranks are known, where correlations say nothing."""
    ranks, called = (machine.rank_x_, machine.rank_y_), type(machine).__name__
    for name, kernel, rank, penalty in zip(
        "xy", _kernels(machine), ranks, machine.penalty_, strict=True
    ):
        if isinstance(kernel, Precomputed) and penalty == 0 and rank is not None and rank >= n - 1:
            raise ValueError(_trivial(machine, name, kernel, n))
    if max(machine.penalty_) <= _NONE and None not in ranks and sum(ranks) > n - 1:
        _warn(
            f"{called}: the views have {ranks[0]} and {ranks[1]} directions, but there are only "
            f"{n} rows, so {sum(ranks) - (n - 1)} correlation(s) are 1 whatever the data. Use a "
            f"penalty above {_NONE:g}, or more rows."
        )
    known = [rank for rank in ranks if rank is not None]
    if known and machine.n_components > min(known):
        _warn(
            f"{called}: n_components={machine.n_components}, but a view has only {min(known)} "
            "direction(s); the other components are zero."
        )


def _kernels(machine: Any) -> tuple[Kernel, Kernel]:
    return machine.kernel_x_, machine.kernel_y_


def _trivial(machine: Any, name: str, kernel: Kernel, n: int) -> str:
    return (
        f"{type(machine).__name__}: penalty=0 for view {name}: with {kernel!r} the {n} rows span "
        "as many directions as there are rows, so every variate can be reached and the correlation "
        "is 1 whatever the data. Use a penalty above 0, such as 0.01, or penalty='cv'."
    )


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=6)


def absolute(gram: Gram, base: Gram, weights: Array, share: float) -> float:
    """Return a penalty in units of eigenvalues: its share of the trace.

    Of a constant view nothing but rounding is left after centring; a share of that is no penalty.
    """
    trace, before = float(gram.diag().sum()), float(weights @ np.abs(base.diag()))
    rounding = _OF_FEATURES if has_features(gram) else _ROUNDING
    return share * trace if trace > rounding * before else 0.0


# --- penalties of a canonical correlation judged by folds: correlation on rows that were left out
#
# All folds and penalties share one factor of each Gram (features where there are few, else a
# pivoted Cholesky factor of bounded rank), and all penalties of a fold share its two small
# eigenproblems. The factor only ranks the penalties; the fit itself is made from the Grams.

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
    return [(np.setdiff1d(np.arange(n), test), test) for test in runs]


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
