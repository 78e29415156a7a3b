"""How far from the floor: arithmetic that cannot be avoided, at the rate of library products."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.arithmetic import gram
from benchmarks.regression import ridge
from mercer import KernelRidge
from mercer.kernels import Gaussian

EXPLANATION = """\
Lower bounds: half of a symmetric kernel matrix, one Cholesky factor, and the reduction of $K$ to
a band with its orthogonal factor, at the rate of a large library product on all threads.
Exponentials, stores and penalties are not included."""


def seconds(work: Callable[[], Any], repeats: int = 5) -> float:
    """Return the median time of some work."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        answer = work()
        times.append(time.perf_counter() - started)
        del answer
    return statistics.median(times)


def product_rate(dtype: Any, n: int = 4000) -> float:
    """Measure flop/s of a large library product, the best case of all dense arithmetic here."""
    A = np.random.default_rng(0).standard_normal((n, n)).astype(dtype)
    return 2.0 * n**3 / seconds(lambda: A @ A)


def line(work: str, flop: float, rate: float, measured: float) -> str:
    """Write one row of the table."""
    floor = flop / rate
    return (
        f"| {work} | {flop / 1e9:.0f} | {rate / 1e9:.0f} | {floor:.3f} | {measured:.3f} | "
        f"{100 * floor / measured:.0f} % |"
    )


def cases() -> str:
    """Measure, and give the table."""
    single, double = product_rate(np.float32), product_rate(np.float64)
    X = gram.data()
    n, d = X.shape
    kernel = Gaussian(float(np.sqrt(d)))
    took = seconds(lambda: kernel(X), 9)
    rows = [line("Gaussian kernel matrix, 20000 x 50", n * n * d, single, took)]
    X, y = ridge.data(5000)
    n = len(y)

    def fit(penalty: Any, penalties: Any = None) -> KernelRidge:
        return KernelRidge(
            penalty, kernel=Gaussian(ridge.SCALE), penalties=penalties, bias=False
        ).fit(X, y)

    one = seconds(lambda: fit(0.1))
    ten = seconds(lambda: fit("loo", np.logspace(-4, 2, 10)), 3)
    rows.append(line("KernelRidge, one fit: n^3/3", n**3 / 3, double, one))
    rows.append(line("KernelRidge, 10 penalties: 8/3 n^3", 8 * n**3 / 3, double, ten))
    table = "\n".join(
        [
            "| work | Gflop needed | library, Gflop/s | bound, s | Mercer, s | bound / Mercer |",
            "| --- | --- | --- | --- | --- | --- |",
            *rows,
        ]
    )
    print(table, flush=True)
    return f"{EXPLANATION}\n\n{table}"
