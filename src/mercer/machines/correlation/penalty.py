"""The penalty of a canonical correlation: what the parameter says, beside the data.

A penalty is a share of the total variance of its view in feature space, sum_i s_i |phi_c(x_i)|^2:
the scale of a kernel, the number of rows and their weights do not matter.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram
from mercer.kernels import Kernel, Linear, Precomputed
from mercer.machines.base.parameters import is_real, refuse
from mercer.solvers.correlation.views import has_features

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
