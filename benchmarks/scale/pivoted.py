"""Landmarks by randomly pivoted Cholesky: a block of rows at a time beside one column at a time.

python -m benchmarks.scale.pivoted [rows [landmarks ...]]     prints a line for each way

The plain form (Chen, Epperly, Tropp, Webber, 2022) draws a row, evaluates its column, and takes it
off; each column is a product with all of the factor so far. The accelerated form (Epperly, Tropp,
Webber, arXiv 2410.03969) draws a batch and keeps a row of it with the probability that the plain
form would have given it: the same rows in law, with products of matrices. Both evaluate the kernel
by Mercer's core, and both are judged by the trace left.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.gram import LazyGram, Source, pivoted_cholesky
from mercer.kernels import Gaussian

ROWS, LANDMARKS = 100_000, (1000, 2000)
COLUMNS, SCALE = 10, 1.5


def plain(gram: Any, rank: int) -> float:
    """Factor one column at a time; return the trace left."""
    rng, left = np.random.default_rng(0), gram.diag().copy()
    F = np.empty((len(left), rank), order="F")
    for done in range(rank):
        row = rng.choice(len(left), p=left / left.sum())
        column = gram.rows(np.array([row]))[0] - F[:, :done] @ F[row, :done]
        F[:, done] = column / np.sqrt(column[row])
        left = np.maximum(left - np.square(F[:, done]), 0.0)
        left[row] = 0.0
    return float(left.sum())


def blocks(gram: Any, rank: int) -> float:
    """Factor a batch at a time; return the trace left."""
    return pivoted_cholesky(gram, rank).trace_left


WAYS: dict[str, Callable[[Any, int], float]] = {"blocks": blocks, "plain": plain}


def main() -> None:
    """Time both on rows drawn from a few clusters."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, COLUMNS))[rng.integers(50, size=n)]
    X += 0.5 * rng.standard_normal((n, COLUMNS))
    gram = LazyGram(Source(Gaussian(SCALE).expression(), X))
    print("rows, landmarks | way | trace left | processor s | wall s", flush=True)
    for rank in map(int, sys.argv[2:] or LANDMARKS):
        seen = {}
        for name, way in WAYS.items():
            gc.collect()
            work, wall = time.process_time(), time.perf_counter()
            left = way(gram, rank) / n
            seen[name] = time.process_time() - work, time.perf_counter() - wall
            work, wall = seen[name]
            print(f"{n}, {rank} | {name} | {left:.4f} | {work:.1f} | {wall:.1f}", flush=True)
        work, wall = (a / b for a, b in zip(seen["plain"], seen["blocks"], strict=True))
        print(f"{n}, {rank} | plain over blocks | | {work:.1f} x | {wall:.1f} x", flush=True)


if __name__ == "__main__":
    main()
