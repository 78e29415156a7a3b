"""Arrays of 50-digit numbers: kernels, linear systems and norms."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from mercer import kernels

MP = mpmath.MPContext()
MP.dps = 50
EPS = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)

exact = np.frompyfunc(MP.mpf, 1, 1)  # every float64 is one of these numbers
log, sqrt = np.frompyfunc(MP.log, 1, 1), np.frompyfunc(MP.sqrt, 1, 1)
exp = np.frompyfunc(lambda t: MP.exp(t) if t > -1e4 else MP.zero, 1, 1)  # far below float64
softplus = np.frompyfunc(lambda t: MP.log1p(exp(-abs(t))) + max(t, MP.zero), 1, 1)
expit = np.frompyfunc(lambda t: 1 / (1 + exp(-t)) if t > 0 else exp(t) / (1 + exp(t)), 1, 1)


def rounded(A: Any) -> np.ndarray:
    """Return the nearest float64 numbers."""
    return np.asarray(A, dtype=float)


def norm(v: Any) -> Any:
    """Return the Euclidean norm of all entries."""
    return MP.sqrt(sum((x * x for x in np.ravel(v)), MP.zero))


def largest(v: Any) -> Any:
    """Return the largest absolute value, or zero."""
    return max((abs(x) for x in np.ravel(v)), default=MP.zero)


def cholesky(A: np.ndarray) -> np.ndarray | None:
    """Return the lower factor of a symmetric matrix, or None if it is singular to 40 digits."""
    n, L = len(A), np.full(A.shape, MP.zero, dtype=object)
    least = MP.mpf(10) ** -40 * largest(A.diagonal())
    for j in range(n):
        pivot = A[j, j] - L[j, :j] @ L[j, :j] if j else A[j, j]
        if pivot <= least:
            return None
        L[j, j] = MP.sqrt(pivot)
        for i in range(j + 1, n):
            L[i, j] = (A[i, j] - (L[i, :j] @ L[j, :j] if j else 0)) / L[j, j]
    return L


def forward(L: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return L^-1 B."""
    X = np.array(B, dtype=object)
    for i in range(len(L)):
        X[i] = (X[i] - (L[i, :i] @ X[:i] if i else 0)) / L[i, i]
    return X


def solve(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A^-1 B by elimination with row pivots."""
    A, B = np.array(A, dtype=object), np.array(B, dtype=object)
    n = len(A)
    for k in range(n):
        p = k + int(np.argmax([abs(x) for x in A[k:, k]]))
        A[[k, p]], B[[k, p]] = A[[p, k]], B[[p, k]]
        for i in range(k + 1, n):
            if A[i, k]:
                ratio = A[i, k] / A[k, k]
                A[i, k:] -= ratio * A[k, k:]
                B[i] -= ratio * B[k]
    for k in reversed(range(n)):
        B[k] = (B[k] - (A[k, k + 1 :] @ B[k + 1 :] if k + 1 < n else 0)) / A[k, k]
    return B


def eigenvalues(A: np.ndarray) -> np.ndarray:
    """Return the eigenvalues of a symmetric matrix, largest first, to digits of float64."""
    size = largest(A)
    return np.linalg.eigvalsh(rounded(A / size))[::-1] * size if size else exact(np.zeros(len(A)))


@dataclass(frozen=True)
class ExactKernel:
    """A kernel of the library, and the same function in exact arithmetic.

    Attributes
    ----------
    kernel : Kernel
        What the estimator is given.
    function : callable
        Takes two exact arrays of samples, (n, 1, d) and (1, m, d), and returns (n, m).
    """

    kernel: Any
    function: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def __call__(self, X: Any, Y: Any) -> np.ndarray:
        """Return the kernel matrix; what is below the range of float64 is zero."""
        X, Y = np.asarray(X, dtype=float), np.asarray(Y, dtype=float)
        K = self.function(exact(X)[:, None, :], exact(Y)[None, :, :])
        return np.where(abs(K) < TINY, MP.zero, K)


def linear() -> ExactKernel:
    return ExactKernel(kernels.Linear(), lambda x, y: (x * y).sum(axis=2))


def gaussian(scale: float) -> ExactKernel:
    width = 2 * MP.mpf(scale) ** 2
    return ExactKernel(
        kernels.Gaussian(scale), lambda x, y: exp(-((x - y) ** 2).sum(axis=2) / width)
    )


def laplacian(scale: float) -> ExactKernel:
    width = MP.mpf(scale)
    return ExactKernel(kernels.Laplacian(scale), lambda x, y: exp(-abs(x - y).sum(axis=2) / width))


def polynomial(degree: int, offset: float) -> ExactKernel:
    shift = MP.mpf(offset)
    return ExactKernel(
        kernels.Polynomial(degree, offset=offset),
        lambda x, y: ((x * y).sum(axis=2) + shift) ** degree,
    )
