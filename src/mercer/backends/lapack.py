"""Interruptible LAPACK calls, and a limit on the threads of BLAS."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import threadpoolctl
from scipy.linalg import cython_lapack

from mercer import deadline
from mercer.array_types import Array

# --- blas ----------------------------------------------------------------------------------------
#
# Keeping the threads of the linear algebra library quiet while our own are at work.


@dataclass
class _Quiet:
    """The limit is one for the whole process: the first to ask sets it, the last lifts it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0
    limit: Any = None

    def begin(self) -> None:
        with self.lock:
            self.users += 1
            if self.users == 1:
                self.limit = _controller().limit(limits=1, user_api="blas")

    def end(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                self.limit.restore_original_limits()


_QUIET = _Quiet()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy and SciPy multiply in the calling thread only, while this lasts.

    For short products between calls of ours: the library's threads go on spinning for a while after
    each call, on the cores that our threads need next. Fits that overlap in several threads share
    the limit, so that none restores what another had set.
    """
    _QUIET.begin()
    try:
        yield
    finally:
        _QUIET.end()


@cache
def _controller() -> Any:
    return threadpoolctl.ThreadpoolController()  # looks through all loaded libraries: once


# --- lapack --------------------------------------------------------------------------------------
#
# Long calls of LAPACK: without the interpreter's lock, and with an ear for Ctrl-C.
#
# SciPy's Python wrappers hold the lock while they work, so that threads beside them stand still.
# The functions that it offers to compiled code do not need it.

_INT = ctypes.POINTER(ctypes.c_int)
_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_char_p, _INT, ctypes.c_void_p, _INT, _INT)
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
    size, apart, info = (ctypes.c_int(k) for k in (len(A), max(1, len(A)), 0))
    for step in ("potrf", "potri"):
        # The lower triangle in row order is the upper one in column order. With the other triangle,
        # OpenBLAS's Prescott kernels crash in `spotri` (an aligned load from an odd column).
        _function(_TYPES[A.dtype] + step)(b"U", size, A.ctypes.data, apart, info)
        if info.value != 0:
            return False
    return bool(np.isfinite(A.diagonal()).all())


def _function(name: str) -> Any:
    offered: Any = cython_lapack.__pyx_capi__
    capsule = offered[name]
    name_of, address_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return _SIGNATURE(address_of(capsule, name_of(capsule)))


# --- ctrl-C, and the time limit of a fit, during a long LAPACK call ------------------------------

_SHORT = 500 * 500  # entries; LAPACK is done with them before anyone could press a key


def interruptible(call: Callable[..., Any], matrix: Any, *args: Any, **kwargs: Any) -> Any:
    """Run a call that lets go of the interpreter's lock, so that the caller still hears Ctrl-C.

    The deadline of a fit is kept in the same way.

    LAPACK cannot be stopped; what can be is our waiting for it. An interrupted call runs on to its
    end in a daemon thread and its result is dropped. `numpy.linalg` lets go of the lock; SciPy's
    wrappers of LAPACK do not, and must not be passed here: nobody would hear anything until their
    end all the same.
    """
    if matrix.size <= _SHORT:
        return call(matrix, *args, **kwargs)
    outcome: dict[str, Any] = {}

    def work() -> None:
        try:
            outcome["value"] = call(matrix, *args, **kwargs)
        except BaseException as error:  # handed to the caller below
            outcome["error"] = error

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        deadline.check()
        thread.join(timeout=0.1)
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


def solved_with_determinant(C: Array, right: Array) -> tuple[Array, float, float]:
    """Return C^-1 right as `solved_if_regular`, the sign of det C, and the logarithm of its size.

    Parameters
    ----------
    C : (n, n) array
        The matrix.
    right : (n, k) array
        Right-hand sides.
    """
    solved = solved_if_regular(C, right)
    sign, logarithm = interruptible(np.linalg.slogdet, C)
    return solved, float(sign), float(logarithm)


def solved_if_regular(C: Array, right: Array) -> Array:
    """Return C^-1 right by an LU decomposition; NaN where C is singular to working precision.

    For judges, who then know nothing and say so.

    Parameters
    ----------
    C : (n, n) array
        The matrix.
    right : (n,) or (n, k) array
        Right-hand sides.
    """
    try:
        return np.asarray(interruptible(np.linalg.solve, C, right))
    except np.linalg.LinAlgError:
        return np.full(right.shape, np.nan)
