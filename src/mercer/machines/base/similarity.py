"""Warnings about kernels that do not suit the rows: K near the identity, or near a constant.

Such a fit is right, and certified: it is the optimum of what was asked. But nothing can be learnt
where every row is like itself alone, or like every other; people who forget to scale their columns
end there.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.gram import Gram
from mercer.kernels import Precomputed
from mercer.points import is_objects, is_sparse

_FEWEST = 50  # rows, below which a sample says little
_SAMPLE = 16  # rows, all pairs of which are looked at
_PAIRS = ~np.eye(_SAMPLE, dtype=bool)
_APART = 1e-6  # of k(x, x): similarities below are none
_WEAK = 0.02  # of k(x, x): similarities of typical rows, where nearly all rows are support vectors
_NEARLY_ALL = 0.95  # of the rows
_UNEVEN = 100.0  # times the spread of another column: the smaller one hardly counts


_TRIED = ContextVar("tried", default=False)  # of each thread, which warning filters are not


@contextmanager
def trying_settings() -> Iterator[None]:
    """Keep fits from warning whose kernel is one of many that are compared."""
    token = _TRIED.set(True)
    try:
        yield
    finally:
        _TRIED.reset(token)


def is_trying_settings() -> bool:
    """Return whether this fit is one of many that are compared."""
    return _TRIED.get()


class FitWarning(UserWarning):
    """A fit is what was asked for, but what was asked for is unlikely to be useful."""


def warn_of_similarity(machine: Any, gram: Gram, X: Points, support: float = 0.0) -> None:
    """Warn where the kernel takes rows for all different, or for all alike.

    Parameters
    ----------
    machine : estimator
        Whose fit it is.
    gram : Gram
        K of the training rows.
    X : Points
        The rows, to say what may be wrong with them.
    support : float
        Share of the rows that are support vectors, where there are such.
    """
    # features have no scale, and what a given matrix is made of is not known here
    given = isinstance(machine.kernel_, Precomputed)
    if _TRIED.get() or given or gram.features is not None or gram.shape[0] < _FEWEST:
        return
    owner = type(machine).__name__
    alike = _similarities(gram)
    if alike is None:
        return
    if alike.max() < _APART:
        seen = f"no two of {_SAMPLE} rows have a similarity above {alike.max():.0e} of k(x, x)"
        _warn(f"{owner}: the kernel matrix is nearly the identity: {seen}", "larger", X)
    elif alike.min() > 1 - _APART:
        seen = f"any two of {_SAMPLE} rows have a similarity of k(x, x)"
        _warn(f"{owner}: the kernel matrix is nearly constant: {seen}", "smaller", X)
    elif support > _NEARLY_ALL and np.median(alike) < _WEAK:
        seen = (
            f"{owner}: {100 * support:.0f} % of the rows are support vectors, and typical rows "
            f"have a similarity of {np.median(alike):.0e} of k(x, x)"
        )
        _warn(seen, "larger", X)


def _similarities(gram: Gram) -> Array | None:
    """Return |k(x, y)| / k(x, x) of pairs of a sample; None where k(x, x) differs or is zero."""
    index = np.arange(_SAMPLE) * (gram.shape[0] - 1) // (_SAMPLE - 1)
    block = np.abs(gram.rows(index)[:, index])
    diagonal = block.diagonal()
    if not (diagonal[0] > 0 and np.abs(diagonal - diagonal[0]).max() <= 1e-6 * diagonal[0]):
        return None  # polynomial kernels: what is near depends on the length of rows
    return np.asarray(block[_PAIRS] / diagonal[0])


def _warn(seen: str, scale: str, X: Points) -> None:
    remedy = f"Take a {scale} scale (kernel='gaussian' takes one from the data), or tune it"
    uneven = _unevenness(X)
    if uneven > _UNEVEN:
        remedy = (
            f"The spread of the columns of X differs by a factor of {uneven:.0e}: scale them, e.g. "
            f"with sklearn.preprocessing.StandardScaler, or take a {scale} scale"
        )
    warnings.warn(
        f"{seen}, so that little can be learnt. The answer is the optimum of this problem all the "
        f"same. {remedy}.",
        FitWarning,
        stacklevel=7,
    )


def _unevenness(X: Points) -> float:
    """Return the ratio of the largest to the smallest spread of columns that vary."""
    if is_objects(X) or is_sparse(X):
        return 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.std(X, axis=0, dtype=np.float64)
    spread = spread[np.isfinite(spread) & (spread > 0)]
    return float(spread.max() / spread.min()) if len(spread) else 1.0
