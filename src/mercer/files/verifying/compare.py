"""Where two machines differ, up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer.expression import Expression
from mercer.files.schema.record import RECORDS, record_name
from mercer.kernels import Kernel

_SPARSE = (sparse.sparray, sparse.spmatrix)
# of the largest number of an array: the same sums in another order, on another processor
ROUNDING = 1e-9
# how a fit went, not what came of it; certificates are judged by themselves
_HISTORY = frozenset(
    "seconds trace iterations n_iter_ solver detail status fit_status_ refit_time_ callback "
    "time_limit warm_start tol _judgement certificate_ certificate _scaling_ended _walk converged_ "
    "likelihoods log_likelihoods_ traces _store bound".split()
)


def differences(stored: Any, made: Any, where: str = "") -> list[str]:
    """Return the names of attributes that differ by more than rounding.

    Parameters
    ----------
    stored, made : object
        Machines, or parts of them.
    where : str
        What the attributes belong to.
    """
    if record_name(stored) is not None:
        return _records(stored, made, where)
    if isinstance(stored, list | tuple) and isinstance(made, list | tuple):
        if len(stored) != len(made):
            return [where]
        pairs = enumerate(zip(stored, made, strict=True))
        return [name for i, (a, b) in pairs for name in differences(a, b, f"{where}.{i}")]
    if isinstance(stored, dict) and isinstance(made, dict):
        if stored.keys() != made.keys():
            return [where]
        return [name for key in stored for name in differences(stored[key], made[key], where)]
    return [] if _same(stored, made) else [where]


def _records(stored: Any, made: Any, where: str) -> list[str]:
    if type(stored) is not type(made):
        return [where]
    described = RECORDS[str(record_name(stored))]
    left, right = described.fields_of(stored), described.fields_of(made)
    found = []
    for name in left:
        if name in _HISTORY or (name in described.parameters and described.whole):
            continue
        place = f"{where}.{name}" if where else name
        found += [place] if name not in right else differences(left[name], right[name], place)
    return found


def _same(stored: Any, made: Any) -> bool:
    if isinstance(stored, Kernel) and isinstance(made, Kernel):
        return _same_kernels(stored, made)
    if isinstance(stored, Expression):
        return isinstance(made, Expression)  # that of the kernel, which is compared
    if isinstance(stored, _SPARSE) and isinstance(made, _SPARSE):
        return _same_sparse(stored, made)
    if isinstance(stored, np.ndarray | float | int | np.generic):
        return _close(stored, made)
    return bool(stored == made)


def _same_sparse(stored: Any, made: Any) -> bool:
    stored, made = stored.tocsr(), made.tocsr()
    shape = stored.shape == made.shape and stored.nnz == made.nnz
    return bool(shape) and all(
        _close(getattr(stored, name), getattr(made, name)) for name in ("data", "indices", "indptr")
    )


def _close(stored: Any, made: Any) -> bool:
    """Return whether numbers are equal up to rounding of the largest; all else must be equal."""
    a, b = np.asarray(stored), np.asarray(made)
    if a.shape != b.shape:
        return False
    if a.dtype.kind != "f" or b.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    known = np.isfinite(a)
    if not np.array_equal(a[~known], b[~known], equal_nan=True):
        return False
    largest = float(np.abs(a[known]).max(initial=0.0))
    return bool((np.abs(a[known] - b[known]) <= ROUNDING * largest).all())


def _same_kernels(stored: Kernel, made: Kernel) -> bool:
    left, right = stored.get_params(), made.get_params()
    if type(stored) is not type(made) or left.keys() != right.keys():
        return False
    for name, value in left.items():
        other = right[name]
        if isinstance(value, Kernel):
            if not isinstance(other, Kernel) or not _same_kernels(value, other):
                return False
        elif isinstance(value, float) and isinstance(other, float):
            if not _close(value, other):
                return False
        elif hasattr(value, "__array__") and not isinstance(value, tuple):
            if not _close(np.asarray(value), np.asarray(other)):
                return False
        elif value != other:
            return False
    return True
