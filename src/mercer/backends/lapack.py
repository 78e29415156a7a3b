"""A limit on the threads of BLAS, and the inverse of a positive definite matrix."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import Any

import numpy as np
import threadpoolctl

from mercer.array_types import Array
from mercer.backends.factorizations import routine
from mercer.resources import thread_limit

# --- blas ----------------------------------------------------------------------------------------
#
# After each call the threads of BLAS spin for a while on the cores that other threads need next.

_FEW = 1000  # samples; with fewer, threads of BLAS cost more than they save
_SMALL = 1_000_000  # entries of their features


@dataclass
class _Limits:
    """The limit of the process: the smallest of those in force, and never above its own."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    held: list[int] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    now: list[int] = field(default_factory=list)

    def begin(self, limit: int) -> None:
        with self.lock:
            if not self.held:
                self.own = [library.num_threads for library in _libraries()]
                self.now = list(self.own)
            self.held.append(limit)
            self._apply()

    def end(self, limit: int) -> None:
        with self.lock:
            self.held.remove(limit)
            self._apply()

    def _apply(self) -> None:
        for k, library in enumerate(_libraries()):
            wanted = min([self.own[k], *self.held])
            if wanted != self.now[k]:
                library.set_num_threads(wanted)
                self.now[k] = wanted


_LIMITS = _Limits()


@contextmanager
def blas_threads(limit: int) -> Iterator[None]:
    """Let NumPy and SciPy use so many threads at most.

    The limit is one for the whole process. Where several fits overlap, the smallest of theirs is in
    force, and the last to end lifts it.
    """
    _LIMITS.begin(limit)
    try:
        yield
    finally:
        _LIMITS.end(limit)


def one_blas_thread() -> Any:
    """Let NumPy and SciPy multiply in the calling thread only: for short products."""
    return blas_threads(1)


def blas_threads_for(*data: Any) -> Any:
    """Limit the threads of BLAS for a fit: to one for few samples, else to the setting `threads`.

    Parameters
    ----------
    *data : array-like
        The samples and, where there are any, the targets.
    """
    shapes = [_shape(value) for value in data if value is not None]
    few = all(shape[0] <= _FEW and prod(shape) <= _SMALL for shape in shapes)
    return blas_threads(1 if shapes and few else thread_limit())


def _shape(value: Any) -> tuple[float, ...]:
    shape = getattr(value, "shape", ())
    if isinstance(shape, tuple) and shape:
        # data frames of Dask do not know how many rows they have
        return shape if all(isinstance(size, int | np.integer) for size in shape) else (np.inf,)
    return (len(value) if isinstance(value, list | tuple | range) else np.inf,)


@cache
def _libraries() -> list[Any]:
    # looks through all loaded libraries: once
    found: Any = threadpoolctl.ThreadpoolController().select(user_api="blas")
    return list(found.lib_controllers)


# --- inverse -------------------------------------------------------------------------------------

_TYPES = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}


def invert(A: Array) -> bool:
    """Put the inverse of A into its lower triangle.

    Parameters
    ----------
    A : (n, n) C-contiguous array of float32 or float64
        Symmetric; only the entries on and below the diagonal are read.

    Returns
    -------
    done : bool
        False where A is not positive definite in its precision.
    """
    if not (A.flags.c_contiguous and A.ndim == 2 and A.shape[0] == A.shape[1]):
        raise ValueError(f"a square matrix, row after row, was expected, not shape {A.shape}")
    info = np.zeros(1, dtype=np.int32)
    for step in ("potrf", "potri"):
        # The lower triangle in row order is the upper one in column order. With the other triangle,
        # OpenBLAS's Prescott kernels crash in `spotri` (an aligned load from an odd column).
        routine(_TYPES[A.dtype] + step, b"U", len(A), A, max(1, len(A)), info)
        if info[0]:
            return False
    return bool(np.isfinite(A.diagonal()).all())
