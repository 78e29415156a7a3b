"""Peak memory of a lazy product under a budget, measured in a process of its own."""

from __future__ import annotations

import multiprocessing
from typing import Any

import numpy as np

from mercer import config
from mercer.gram import LazyGram, Need, make_gram
from mercer.kernels import Gaussian
from mercer.resources import format_bytes


def peak() -> int:
    """Return the most memory this process held (Linux; rusage would count the parent's too)."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def lazy_product(n: int, budget: str, out: Any) -> None:
    X = np.random.default_rng(0).standard_normal((n, 8))
    make_gram(Gaussian(2.0), X[:64], Need.PRODUCTS) @ np.ones((64, 4))  # load everything once
    before = peak()
    with config(memory=budget):
        gram = make_gram(Gaussian(2.0), X, Need.PRODUCTS)
        assert isinstance(gram, LazyGram)
        product = gram @ np.ones((n, 4))
    out.put((peak() - before, float(product.sum())))


def cases(n: int = 30_000, budget: str = "200 MB") -> str:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=lazy_product, args=(n, budget, queue))
    process.start()
    taken, _ = queue.get()
    process.join()
    line = (
        f"Product $KV$ with $n$ = {n}, four columns, float64, budget {budget}: $K$ would take "
        f"{format_bytes(8.0 * n * n)}; the peak memory of the process grew by "
        f"{format_bytes(taken)}."
    )
    print(line, flush=True)
    return line
