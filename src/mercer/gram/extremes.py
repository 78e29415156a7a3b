"""Kernel values must be numbers: found out before a solver meets them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram.base import Gram
from mercer.gram.source import CachedGram, DenseGram, LazyGram, Source
from mercer.gram.storage.factored import FactoredGram
from mercer.gram.storage.precomputed import PrecomputedGram
from mercer.kernels import Kernel
from mercer.points import is_objects, is_sparse

# --- kernel values must be numbers: found out before a solver meets them -------------------------

# kernel values beyond have squares that are no normal numbers: solvers multiply two of them
_RANGE = 1e-150, 1e150
_FAR = 1e15  # entries of X: below, squared distances are far from the range's end in float32, too


def refuse_overflow(gram: Gram, kernel: Kernel, rows: Array | None = None) -> None:
    """Raise if the kernel overflows on the training points.

    A valid kernel has |k(x, y)|^2 <= k(x, x) k(y, y), so a finite diagonal vouches for the whole
    matrix, unless rows are so large that distances overflow; a kernel that is not known to be valid
    is looked at entry by entry where it is stored.
    """
    own = gram.longest() if isinstance(gram, FactoredGram) else gram.diag()
    bad = np.flatnonzero(~np.isfinite(own))
    if not len(bad):
        bad = _too_far(gram)
    if not len(bad) and not gram.valid and isinstance(gram, DenseGram):
        bad = np.flatnonzero(~np.isfinite(gram.dense()).all(axis=1))
    if len(bad):
        numbers = bad if rows is None else rows[bad]
        shown = ", ".join(map(str, numbers[:5])) + (", ..." if len(bad) > 5 else "")
        raise ValueError(
            f"kernel value not finite: {kernel!r} overflows on {len(bad)} row(s) of X ({shown}). "
            "Scale the features, or use a smaller degree."
        )


def refuse_overflow_of(source: Source, kernel: Kernel, rows: Array | None = None) -> None:
    """Raise if the kernel overflows on points of which no matrix is held."""
    refuse_overflow(LazyGram(source), kernel, rows)


def _too_far(gram: Gram) -> Array:
    """Return the row of the largest entry of X if its distances to others make no kernel values."""
    X: Any = gram.source.X if isinstance(gram, DenseGram | CachedGram | LazyGram) else None
    if X is None or is_objects(X) or X.dtype.kind != "f" or not 0 < X.shape[0] * X.shape[1]:
        return np.zeros(0, dtype=int)
    if not is_sparse(X) and not max(float(X.max()), -float(X.min())) > _FAR:
        return np.zeros(0, dtype=int)
    sizes = abs(X).max(axis=1)
    sizes = sizes.toarray().ravel() if is_sparse(sizes) else np.asarray(sizes)
    row = int(sizes.argmax())
    if not sizes[row] > _FAR:
        return np.zeros(0, dtype=int)
    far = np.asarray(gram.rows(np.array([row])))
    return np.zeros(0, dtype=int) if np.isfinite(far).all() else np.array([row])


def refuse_extremes(
    owner: str, gram: Gram, kernel: Kernel, rows: Array | None = None, *, small: bool = False
) -> Gram:
    """Return the Gram back if products of two kernel values are numbers that have all their digits.

    Parameters
    ----------
    owner : str
        The name of the machine, for errors.
    gram : Gram
        On the training points.
    kernel : Kernel
        Whose values they are.
    rows : (n,) int array, optional
        Numbers of the rows, if they are not all.
    small : bool
        Whether values that are all tiny are refused, too: for machines whose answer does not
        depend on the scale, and for which zero is no answer.
    """
    own = np.abs(gram.diag())
    if isinstance(gram, PrecomputedGram):  # which need not be largest on its diagonal
        own = np.maximum(gram.dense().max(axis=1), -gram.dense().min(axis=1)).astype(np.float64)
    largest = float(own.max(initial=0.0))
    if largest <= _RANGE[1] and not (small and 0.0 < largest < _RANGE[0]):
        return gram
    row = int(own.argmax()) if rows is None else int(rows[own.argmax()])
    raise ValueError(
        f"{owner}: kernel values of {kernel!r} are as {'large' if largest > 1 else 'small'} as "
        f"{largest:.0e} (row {row} of X): products of two leave the range of float64. "
        "Scale the features, e.g. with sklearn.preprocessing.StandardScaler, or the kernel."
    )
