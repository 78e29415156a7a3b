"""LU, QR, symmetric eigenvalues and singular values that hear Ctrl-C and keep a time limit.

A call of LAPACK cannot be stopped, and a thread that runs one cannot be left behind: the program
would not end before it. So matrices are decomposed in panels, as LAPACK does it inside, with a look
at the clock and at signals between them. Small matrices are one call (`_WORK`, `SHORT`): half a
second on one core at most.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import cython_blas, cython_lapack

from mercer import deadline
from mercer.array_types import Array
from mercer.rows.points import to_dense

SHORT = 1000  # rows; the eigenvalues of smaller matrices are one call of LAPACK
_WORK = 2e9  # operations between two looks at the clock
_PANEL = 128  # columns of a panel, and reflections that are applied together
_TURNS = 16  # columns between two looks, where each reads the whole matrix; fewer of a large one
_APPLIED = 32  # reflections that are applied together where a triangle is extended
_TAKEN = 1 << 18  # entries of the rows that it takes in at a time
_READ = 4e8  # entries that are read by them
_LEAD = 1e-3  # of the largest square: singular values above it have vectors as eigenvectors of R'R

_EPS = float(np.finfo(np.float64).eps)

# --- calls ---------------------------------------------------------------------------------------


def routine(name: str, *args: Any) -> None:
    """Call a function of LAPACK or BLAS in place and without the interpreter's lock.

    SciPy's Python functions copy what is a part of an array; what it offers to compiled code does
    not.

    Parameters
    ----------
    name : str
        Such as "dgetrf".
    *args : bytes, int, float or array
        Its arguments; an array stands for the address of its first entry.
    """
    held = [_argument(value) for value in args]
    _function(name, len(args))(*(value for value, _ in held))


def _argument(value: Any) -> tuple[Any, Any]:
    if isinstance(value, np.ndarray):
        return value.__array_interface__["data"][0], None
    if isinstance(value, bytes):
        return value, None
    number = ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int(value)
    return ctypes.byref(number), number


@cache
def _function(name: str, count: int) -> Any:
    offered: Any = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}
    name_of, address_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = offered[name]
    pointers = [ctypes.c_void_p] * count
    return ctypes.CFUNCTYPE(None, *pointers)(address_of(capsule, name_of(capsule)))


def parts(count: int, work: float) -> Iterator[slice]:
    """Divide columns, each worth some operations, with a look at the clock before each part."""
    step = max(1, int(_WORK / max(1.0, work)))
    for first in range(0, count, step):
        deadline.check()
        yield slice(first, min(first + step, count))


def multiplied(A: Array, B: Array) -> Array:
    """Return A B, some rows at a time."""
    out = np.empty((len(A), B.shape[1]))
    for some in parts(len(A), 2.0 * B.size):
        np.matmul(A[some], B, out=out[some])
    return out


def squared(F: Array) -> Array:
    """Return F'F, some rows at a time."""
    total = np.zeros((F.shape[1], F.shape[1]))
    for some in parts(len(F), 2.0 * F.shape[1] ** 2):
        total += F[some].T @ F[some]
    return total


def _panels(rows: int, columns: int) -> list[slice]:
    width = max(8, min(_PANEL, math.isqrt(int(_WORK / max(1, 2 * rows)))))
    return [slice(j, min(j + width, columns)) for j in range(0, columns, width)]


# --- LU ------------------------------------------------------------------------------------------


def solve_with_determinant(C: Array, right: Array) -> tuple[Array, float, float]:
    """Return C^-1 right, the sign of det C, and the logarithm of its size, by one LU decomposition.

    The first is NaN, the second 0 and the third -inf where C is singular to working precision.

    Parameters
    ----------
    C : (n, n) array
        The matrix.
    right : (n,) or (n, k) array
        Right-hand sides.
    """
    n, columns = len(C), right if right.ndim > 1 else right[:, None]
    # the right-hand sides are further columns: what is left of a panel need not be exchanged
    A = np.empty((n, n + columns.shape[1]), order="F")
    A[:, :n], A[:, n:] = C, columns
    swaps, info, sign = np.arange(n, dtype=np.int32), np.zeros(1, dtype=np.int32), 1.0
    for panel in _panels(n, n):
        deadline.check()
        j, end = panel.start, panel.stop
        routine("dgetrf", n - j, end - j, A[j:, panel], n, swaps[panel], info)
        if info[0]:
            return np.full(right.shape, np.nan), 0.0, -np.inf
        order = np.arange(j, n)
        for row, other in enumerate(swaps[panel] - 1):
            order[[row, other]] = order[[other, row]]
            sign = -sign if row != other else sign
        L, moved = A[j:, panel], np.flatnonzero(order != np.arange(j, n))
        for some in parts(A.shape[1] - end, 2.0 * (n - j) * (end - j)):
            ahead = A[:, end:][:, some]
            ahead[j + moved] = ahead[order[moved]]
            top = linalg.solve_triangular(
                L[: end - j], ahead[panel], lower=True, unit_diagonal=True, check_finite=False
            )
            ahead[panel] = top
            ahead[end:] -= L[end - j :] @ top
    U, pivots = A[:, :n], A[:, :n].diagonal()
    solved = solve_triangular(U, A[:, n:], lower=False)
    sign *= -1.0 if np.count_nonzero(pivots < 0) % 2 else 1.0
    return solved.reshape(right.shape), sign, float(np.log(np.abs(pivots)).sum())


def solve(C: Array, right: Array) -> Array:
    """Return C^-1 right by an LU decomposition; NaN where C is singular to working precision."""
    return solve_with_determinant(C, right)[0]


def log_determinant(C: Array) -> float:
    """Return the logarithm of the size of the determinant."""
    return solve_with_determinant(C, np.empty((len(C), 0)))[2]


def solve_triangular(L: Array, right: Array, lower: bool = True, transposed: bool = False) -> Array:
    """Solve with a triangle, some columns at a time.

    Parameters
    ----------
    L : (n, n) array
        Holds the triangle; its other half is not read.
    right : (n,) or (n, k) array
        Right-hand sides.
    lower : bool
        Which half.
    transposed : bool
        Whether L' is meant.
    """
    trans: Any = int(transposed)

    def solved(columns: Array) -> Array:
        return np.asarray(
            linalg.solve_triangular(L, columns, lower=lower, trans=trans, check_finite=False)
        )

    if right.ndim == 1:
        return solved(right)
    found = np.empty(right.shape)
    for some in parts(right.shape[1], 2.0 * len(L) ** 2):
        found[:, some] = solved(right[:, some])
    return found


# --- QR ------------------------------------------------------------------------------------------


def qr(A: Array) -> tuple[Array, Array]:
    """Return Q with orthonormal columns and the upper triangular R of A = Q R."""
    m, n = A.shape
    deadline.check()
    if _is_short(m, n):
        Q, R = np.linalg.qr(A)
        return Q, R
    reflections: list[tuple[int, Array, Array]] = []
    held = _reduced(np.array(A, order="F"), reflections)
    k = min(m, n)
    R = np.triu(held[:k])
    Q = np.zeros((m, k), order="F")
    np.fill_diagonal(Q, 1.0)
    for j, V, T in reversed(reflections):
        _reflect(Q[j:, j:], V, T)
    return Q, R


def triangle(A: Array) -> Array:
    """Return R of A = Q R without Q; A is overwritten where it is in Fortran's order."""
    m, n = A.shape
    deadline.check()
    R = np.linalg.qr(A, mode="r") if _is_short(m, n) else np.triu(_reduced(A)[: min(m, n)])
    return np.asarray(R)


def extend_triangle(R: Array, F: Any, factors: Array) -> None:
    """Write the triangle R of R'R + F' diag(factors)^2 F over R, some rows of F at a time.

    Parameters
    ----------
    R : (D, D) array in Fortran's order
        A triangle; what is below its diagonal is not read.
    F : (n, D) array or sparse array
        Rows.
    factors : (n,) array
        What rows are multiplied by.
    """
    D = len(R)
    if not D:
        return
    width = min(_APPLIED, D)
    T, work = np.empty((width, D), order="F"), np.empty(width * D)
    info = np.zeros(1, dtype=np.int32)
    for some in parts(F.shape[0], max(2.0 * D * D, _WORK * D / _TAKEN)):
        rows = np.asfortranarray(factors[some, None] * to_dense(F[some]))
        m = len(rows)
        routine("dtpqrt", m, D, 0, width, R, D, rows, m, T, width, work, info)


def _is_short(m: int, n: int) -> bool:
    return float(m) * n * min(m, n) <= _WORK / 4


def _reduced(A: Array, done: list[tuple[int, Array, Array]] | None = None) -> Array:
    """Return R above what is of no use; put the reflections that lead there into a list."""
    A = np.asarray(A, dtype=np.float64, order="F")
    m, n = A.shape
    tau, work, info = np.empty(_PANEL), np.empty(_PANEL * _PANEL), np.zeros(1, dtype=np.int32)
    for panel in _panels(m, min(m, n)):
        deadline.check()
        j, width = panel.start, panel.stop - panel.start
        routine("dgeqrf", m - j, width, A[j:, panel], m, tau, work, len(work), info)
        V, T = _block(A[j:, panel], tau[:width])
        _reflect(A[j:, panel.stop :], V, T.T)
        if done is not None:
            done.append((j, V, T))
    return A


def _block(below: Array, tau: Array) -> tuple[Array, Array]:
    """Return V and T of H_1 ... H_k = I - V T V', from LAPACK's reflections I - tau v v'.

    The inverse of T has 1 / tau on its diagonal and V'V above it.
    """
    V = np.tril(below)
    np.fill_diagonal(V, 1.0)
    V[:, tau == 0] = 0.0  # H = I
    inverse = np.triu(V.T @ V, 1)
    inverse.flat[:: len(tau) + 1] = 1.0 / np.where(tau == 0, 1.0, tau)
    return V, linalg.solve_triangular(inverse, np.eye(len(tau)), check_finite=False)


def _reflect(C: Array, V: Array, T: Array) -> None:
    """Write (I - V T V') C over C."""
    for some in parts(C.shape[1], max(4.0 * V.size, _WORK / _PANEL)):  # no second C on the way
        C[:, some] -= V @ (T @ (V.T @ C[:, some]))


# --- symmetric eigenvalues -----------------------------------------------------------------------
#
# A = Q T Q' with T tridiagonal, the eigenvectors of T by divide and conquer, and their product with
# Q: the steps of LAPACK's `dsyevd`. Vectors are kept as rows.


def eigh(A: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of a symmetric matrix, smallest first, and its eigenvectors.

    Raises
    ------
    numpy.linalg.LinAlgError
        If LAPACK does not converge, as for entries that are no numbers.
    """
    n = len(A)
    deadline.check()
    if n <= SHORT:
        values, vectors = np.linalg.eigh(A)
        return values, vectors
    size = float(np.max([np.abs(A[some]).max() for some in parts(n, 100.0 * n)]))
    if not np.isfinite(size):
        raise np.linalg.LinAlgError("the matrix has entries that are no numbers")
    unit = 2.0 ** np.frexp(size)[1] if size > 0 else 1.0
    held = np.empty((n, n), order="F")
    for some in parts(n, 400.0 * n):
        np.divide(A[:, some], unit, out=held[:, some])
    d, e, tau = _tridiagonal(held)
    values, rows = _divided(d, e)
    for panel in reversed([slice(j, min(j + _PANEL, n - 1)) for j in range(0, n - 1, _PANEL)]):
        V, T = _block(held[panel.start + 1 :, panel], tau[panel])
        _reflect(rows.T[panel.start + 1 :], V, T)
    return values * unit, rows.T


def _tridiagonal(A: Array) -> tuple[Array, Array, Array]:
    """Return the diagonals of T, and the factors of the reflections that are left in A."""
    n = len(A)
    d, e, tau = np.empty(n), np.empty(n - 1), np.empty(n - 1)
    W, info, j = np.empty((n, _TURNS), order="F"), np.zeros(1, dtype=np.int32), 0
    turns = max(4, min(_TURNS, int(_READ / n**2)))
    while n - j > 2 * _PANEL:
        deadline.check()
        rest, end = n - j, j + turns
        routine("dlatrd", b"L", rest, turns, A[j:, j:], n, e[j:], tau[j:], W, n)
        pair = A[end:, j:], n, W[turns:], n
        routine("dsyr2k", b"L", b"N", rest - turns, turns, -1.0, *pair, 1.0, A[end:, end:], n)
        d[j:end], j = A.diagonal()[j:end], end
    work = np.empty(_PANEL * n)
    routine("dsytrd", b"L", n - j, A[j:, j:], n, d[j:], e[j:], tau[j:], work, len(work), info)
    return d, e, tau


def _divided(d: Array, e: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of a tridiagonal matrix and its eigenvectors as rows.

    The matrix is block diagonal with two halves, plus rho times the square of a vector. See Cuppen
    (1981); Gu and Eisenstat (1995).
    """
    n, half = len(d), len(d) // 2
    if n <= SHORT:
        values, beside, rows = d.copy(), np.append(e, 0.0), np.empty((n, n))
        work, counts = np.empty(1 + 4 * n + n * n), np.empty(3 + 5 * n, dtype=np.int32)
        info = np.zeros(1, dtype=np.int32)
        sizes = (work, len(work), counts, len(counts))
        routine("dstevd", b"V", n, values, beside, rows, max(1, n), *sizes, info)
        if info[0]:
            raise np.linalg.LinAlgError("the eigenvalues did not converge")
        return values, rows
    rho, sign, d = abs(float(e[half - 1])), np.sign(e[half - 1]), d.copy()
    d[half - 1 : half + 1] -= rho
    first, rows_first = _divided(d[:half], e[: half - 1])
    last, rows_last = _divided(d[half:], e[half:])
    z = np.concatenate([rows_first[:, -1], sign * rows_last[:, 0]]) / np.sqrt(2.0)
    values, rows = np.concatenate([first, last]), np.zeros((n, n))
    rows[:half, :half], rows[half:, half:] = rows_first, rows_last
    del rows_first, rows_last
    kept, done, spread = _deflated(values, z, 2.0 * rho, rows, half)
    roots, S = _secular(values[kept], z[kept], 2.0 * rho)
    found = np.concatenate([roots, values[done]])
    order = np.argsort(found, kind="stable")
    place = np.empty(n, dtype=np.intp)
    place[order] = np.arange(n)
    # rows that were not mixed are zero in one half
    halves = [
        (slice(0, half), np.flatnonzero(spread[kept, 0])),
        (slice(half, n), np.flatnonzero(spread[kept, 1])),
    ]
    ready = rows[done]
    bases = [rows[kept[some], columns] for columns, some in halves]
    del rows
    vectors = np.empty((n, n))
    vectors[place[len(kept) :]] = ready
    for some in parts(len(kept), float(len(kept)) * n):
        for (columns, mixed), basis in zip(halves, bases, strict=True):
            vectors[place[: len(kept)][some], columns] = S[some][:, mixed] @ basis
    return found[order], vectors


def _deflated(
    values: Array, z: Array, rho: float, rows: Array, half: int
) -> tuple[Array, Array, Array]:
    """Find the pairs that the rank-one change moves; two equal eigenvalues are turned into one.

    Values, z and rows are changed in place. Returns the moved pairs, by size, the others, and which
    rows reach into which half.
    """
    allowed = 8.0 * _EPS * max(float(np.abs(values).max()), float(np.abs(z).max()))
    spread = np.zeros((len(z), 2), dtype=bool)
    spread[:half, 0] = spread[half:, 1] = True
    kept: list[int] = []
    done: list[int] = []
    for j in np.argsort(values, kind="stable").tolist():
        if rho * abs(z[j]) <= allowed:
            done.append(j)
            continue
        if kept:
            i = kept[-1]
            size = math.hypot(z[i], z[j])
            c, s = z[j] / size, -z[i] / size
            if abs((values[j] - values[i]) * c * s) <= allowed:
                z[i], z[j] = 0.0, size
                rows[i], rows[j] = c * rows[i] + s * rows[j], c * rows[j] - s * rows[i]
                low, high = values[i], values[j]
                values[i], values[j] = low * c * c + high * s * s, low * s * s + high * c * c
                spread[i] = spread[j] = spread[i] | spread[j]
                done.append(kept.pop())
        kept.append(j)
    return np.array(kept, dtype=np.intp), np.array(done, dtype=np.intp), spread


def _secular(d: Array, z: Array, rho: float) -> tuple[Array, Array]:
    """Return the eigenvalues of diag(d) + rho z z' and its eigenvectors as rows.

    Vectors are those of the z for which the found eigenvalues are exact: so they are orthogonal
    however close the eigenvalues are.
    """
    k = len(d)
    if k <= 2:
        values, vectors = np.linalg.eigh(np.diag(d) + rho * np.outer(z, z))
        return values, vectors.T
    roots, S, info = np.empty(k), np.empty((k, k)), np.zeros(1, dtype=np.int32)
    near = np.ones(k)
    for some in parts(k, 100.0 * k):
        for i in range(some.start, some.stop):
            routine("dlaed4", k, i + 1, d, z, S[i], rho, roots[i:], info)
            if info[0]:
                raise np.linalg.LinAlgError("the eigenvalues did not converge")
            apart = d - d[i]
            apart[i] = 1.0
            near *= S[i] / apart
    exact = np.copysign(np.sqrt(-near), z)
    for some in parts(k, 10.0 * k):
        S[some] = exact / S[some]
        S[some] /= np.linalg.norm(S[some], axis=1)[:, None]
    return roots, S


# --- singular values -----------------------------------------------------------------------------


def svd(A: Array) -> tuple[Array, Array, Array]:
    """Return U, the singular values, largest first, and V' of A = U diag(s) V'.

    Of a large R, first the vectors of large singular values are found, as eigenvectors of R'R; the
    rest is a smaller problem in what is orthogonal to them.
    """
    if A.shape[0] < A.shape[1]:
        U, s, Vt = svd(A.T)
        return Vt.T, s, U.T
    deadline.check()
    if _is_short(*A.shape):
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        return U, s, Vt
    Q, R = qr(A)
    U, s, Vt = _of_triangle(R)
    return multiplied(Q, U), s, Vt


def _of_triangle(R: Array) -> tuple[Array, Array, Array]:
    n = len(R)
    size = float(np.abs(R).max(initial=0.0))
    if not np.isfinite(size):
        raise np.linalg.LinAlgError("the matrix has entries that are no numbers")
    if n <= SHORT or size == 0:
        U, s, Vt = np.linalg.svd(R)
        return U, s, Vt
    unit = 2.0 ** np.frexp(size)[1]
    values, V = eigh(squared(R / unit))
    values, V = values[::-1], np.ascontiguousarray(V[:, ::-1])
    lead = int(np.count_nonzero(values > _LEAD * values[0]))
    U, S = qr(multiplied(R, V))
    diagonal = S.diagonal()[:lead]
    V[:, :lead] *= np.where(diagonal < 0, -1.0, 1.0)
    left, s, right = _of_triangle(S[lead:, lead:])
    U[:, lead:] = multiplied(U[:, lead:], left)
    V[:, lead:] = multiplied(V[:, lead:], right.T)
    s = np.concatenate([np.abs(diagonal), s])
    order = np.argsort(-s, kind="stable")
    return U[:, order], s[order], V[:, order].T


def least_squares(A: Array, right: Array) -> Array:
    """Return the solution of least norm, as `numpy.linalg.lstsq` with its default cut."""
    U, s, Vt = svd(A)
    kept = s > _EPS * max(A.shape) * s.max(initial=0.0)
    scaled = (U[:, kept].T @ right).T / s[kept]
    return np.asarray(Vt[kept].T @ scaled.T)
