"""Support vector machines that start from clusters solved apart, beside the start from a sample.

python -m benchmarks.scale.divide [set] ...

Sets are covertype (the commonest class or not), pairs (all of its classes), shuttle (the commonest
class or not), letter (the first half of the alphabet or not), kin40k (regression) and made (normal
rows in 50 columns). Fits with and without clusters take turns in one process, after one that is not
counted; the better of two is printed for each, on the clock and in processor time. The last columns
say what the rule saw, and whether it takes the clusters.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks import datasets
from mercer import SVC, SVR
from mercer.kernels import Gaussian
from mercer.machines.svm import subset_descent

ALWAYS, NEVER = -np.inf, np.inf
TURNS = 2


def against_rest(y: Any) -> Any:
    """Return the commonest class against the others."""
    return (y == np.bincount(y).argmax()).astype(int)


def shuttle() -> tuple[Any, Any]:
    """Read shuttle, the commonest class or not."""
    X, y = datasets.real("shuttle")
    return X, against_rest(y)


def letter() -> tuple[Any, Any]:
    """Read letter, the first half of the alphabet or not."""
    X, y = datasets.real("letter")
    return X, (y < 13).astype(int)


def kin40k() -> tuple[Any, Any]:
    """Read kin40k, targets standardised."""
    X, y = datasets.real("kin40k", 36_000)
    return X, (np.ravel(y) - y.mean()) / y.std()


def made() -> tuple[Any, Any]:
    """Make normal rows."""
    return datasets.synthetic(40_000)


def rows_of_covertype(rows: int, *, binary: bool = True) -> Callable[[], tuple[Any, Any]]:
    """Return how so many rows of covertype are read."""
    return lambda: datasets.covertype(rows, binary=binary)


SETS: dict[str, list[tuple[Callable[[], tuple[Any, Any]], list[float]]]] = {
    "covertype": [
        (rows_of_covertype(20_000), [1.0, 10.0, 100.0, 1000.0]),
        (rows_of_covertype(40_000), [1.0, 10.0, 100.0, 1000.0]),
        (rows_of_covertype(90_000), [1.0, 10.0, 100.0]),
    ],
    "pairs": [(rows_of_covertype(40_000, binary=False), [1.0, 10.0, 100.0])],
    "shuttle": [(shuttle, [1.0, 10.0, 100.0, 1000.0])],
    "letter": [(letter, [1.0, 10.0, 100.0, 1000.0])],
    "kin40k": [(kin40k, [1.0, 10.0])],
    "made": [(made, [1.0, 10.0, 100.0])],
}


@contextmanager
def least(used: float, between: float, seen: dict[str, float]) -> Iterator[None]:
    """Put other shares in the place of those that the rule asks for, and note what it saw."""
    kept = subset_descent.LEAST_USED, subset_descent.LEAST_BETWEEN, subset_descent.share_in_use
    share = subset_descent._share_between

    def noted_share(*given: Any) -> float:
        return seen.setdefault("between", share(*given))

    def noted_use(*given: Any) -> float:
        return seen.setdefault("used", kept[2](*given))

    subset_descent.LEAST_USED, subset_descent.LEAST_BETWEEN = used, between
    subset_descent.share_in_use, subset_descent._share_between = noted_use, noted_share
    try:
        yield
    finally:
        subset_descent.LEAST_USED, subset_descent.LEAST_BETWEEN, subset_descent.share_in_use = kept
        subset_descent._share_between = share


def fitted(X: Any, y: Any, C: float) -> tuple[float, float, Any]:
    """Fit; return seconds on the clock, of processors, and the machine."""
    kernel = Gaussian(float(np.sqrt(X.shape[1] / 2)))
    machine = (SVR if y.dtype.kind == "f" else SVC)(kernel, C=C, approximation=None)
    clock, processor = time.perf_counter(), time.process_time()
    machine.fit(X, y)
    return time.perf_counter() - clock, time.process_time() - processor, machine


def compare(name: str, X: Any, y: Any, C: float) -> None:
    """Print a line of the table."""
    best: dict[float, Any] = {}
    seen: dict[str, float] = {}
    for _ in range(TURNS):
        for share in (NEVER, ALWAYS):
            with least(share, ALWAYS, seen):
                found = fitted(X, y, C)
            best[share] = min(best.get(share, found), found, key=lambda each: each[0])
    sample, clusters = best[NEVER], best[ALWAYS]
    used, between = seen.get("used", np.nan), seen.get("between", np.nan)
    taken = used > subset_descent.LEAST_USED and between >= subset_descent.LEAST_BETWEEN
    print(
        f"| {name} {len(y)}, C = {C:g} | {sample[0]:.2f} | {clusters[0]:.2f} | "
        f"{sample[0] / clusters[0]:.2f} | {sample[1] / clusters[1]:.2f} | "
        f"{len(clusters[2].support_) / len(y):.2f} | {used:.2f} | {between:.2f} | "
        f"{'yes' if taken else 'no'} |",
        flush=True,
    )


def main(wishes: list[str]) -> None:
    """Print the table."""
    print(
        "| data | other starts, s | clusters, s | clock | processors | support | used | between |"
    )
    print("taken |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in wishes:
        for k, (read, costs) in enumerate(SETS[name]):
            X, y = read()
            if k == 0:
                fitted(X, y, costs[0])  # the first fit of a process has memory to take
            for C in costs:
                compare(name, X, y, C)


if __name__ == "__main__":
    main(sys.argv[1:] or list(SETS))
