"""Gram matrices: the fused engine against library products plus a pass, and scikit-learn."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from benchmarks.harness import Case, Row, run
from mercer.kernels import (
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
)
from mercer.resources import thread_limit

_BLOCK = 1000


def data(n: int = 20_000, d: int = 50) -> Any:
    return np.random.default_rng(0).standard_normal((n, d)).astype(np.float32)


class LibraryGram:
    """Blocked single-precision GEMM, then a vectorised exponential, into memory touched before."""

    def __init__(self, X: Any, gamma: float) -> None:
        self.X, self.gamma = X, np.float32(gamma)
        self.out = np.zeros((len(X), len(X)), dtype=np.float32)
        self.norms = np.einsum("ij,ij->i", X, X) * self.gamma

    def block(self, first: int) -> None:
        part = slice(first, first + _BLOCK)
        K = self.out[part]
        np.matmul(self.X[part] * (2 * self.gamma), self.X.T, out=K)
        K -= self.norms[part, None]
        K -= self.norms
        np.minimum(K, 0, out=K)
        np.exp(K, out=K)

    def __call__(self) -> Any:
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(thread_limit()) as pool:
            list(pool.map(self.block, range(0, len(self.X), _BLOCK)))
        return self.out


def error_of(X: Any, kernel: Kernel, rows: int = 200) -> Any:
    truth = kernel(X[:rows].astype(np.float64), X.astype(np.float64))

    def judge(K: Any) -> str:
        return f"error {np.abs(K[:rows] - truth).max():.1e}"

    return judge


def cases() -> list[Row]:
    X = data()
    scale = float(np.sqrt(X.shape[1]))
    gamma = 1 / (2 * scale**2)
    gaussian = Gaussian(scale)
    rows = run(
        Case(
            "Gaussian kernel matrix, 20000 x 50, float32",
            lambda: gaussian(X),
            {
                "blocked GEMM + exp (NumPy, all threads)": LibraryGram(X, gamma),
                "scikit-learn rbf_kernel": lambda: rbf_kernel(X, gamma=gamma),
            },
            error_of(X, gaussian),
            {"blocked GEMM + exp (NumPy, all threads)": 3, "scikit-learn rbf_kernel": 15},
            repeats=7,
        )
    )
    others = {
        "polynomial (degree 3)": Polynomial(3, 1.0),
        "linear": Linear(),
        "Matern 3/2": Matern(1.5, scale),
        "rational quadratic": RationalQuadratic(1.5, scale),
        "Laplacian (not a GEMM)": Laplacian(scale),
    }
    for name, kernel in others.items():
        rows += run(
            Case(
                f"{name} kernel matrix, 20000 x 50, float32",
                lambda k=kernel: k(X),
                {"Mercer's Gaussian kernel matrix": lambda: gaussian(X)},
                goals={} if "not" in name else {"Mercer's Gaussian kernel matrix": 0.67},
                repeats=7,
                rival_repeats=7,
            )
        )
    rows += composed(X, scale)
    rows += wide()
    return rows


def composed(X: Any, scale: float) -> list[Row]:
    parts = [Gaussian(scale), Polynomial(2, 1.0), Laplacian(scale)]
    whole = parts[0] + parts[1] * parts[2]

    def separately() -> Any:
        for part in parts:
            K = part(X)
        return K

    return run(
        Case(
            "composed kernel, Gaussian + Polynomial * Laplacian, against its parts one by one",
            lambda: whole(X),
            {"the three parts": separately},
            goals={"the three parts": 0.67},
            repeats=5,
            rival_repeats=5,
        )
    )


def wide() -> list[Row]:
    X = data(10_000, 784)
    gaussian = Gaussian(28.0)
    return run(
        Case(
            "Gaussian kernel matrix, 10000 x 784, float32",
            lambda: gaussian(X),
            {
                "blocked GEMM + exp (NumPy, all threads)": LibraryGram(X, 1 / (2 * 28.0**2)),
                "scikit-learn rbf_kernel": lambda: rbf_kernel(X, gamma=1 / (2 * 28.0**2)),
            },
            error_of(X, gaussian),
        )
    )
