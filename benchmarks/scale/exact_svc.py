"""Exact support vector classifiers: large and noisy rows, and large sets of which few rows matter.

python -m benchmarks.scale.exact_svc [easy] [rows of covertype, 40000] ...

Mercer and the rival are fitted in one process on the same rows, to the same tolerance: to
scikit-learn on easy sets, twice, as the first fit of a process has memory to take; and on covertype
to scikit-learn-intelex where it is installed. Processor time is compared beside time on the clock,
as it depends less on what else runs. Past the 92962 rows of covertype at hand, rows are repeated
with noise of a hundredth of a column's spread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import svm as libsvm

from benchmarks import datasets
from mercer import SVC
from mercer.kernels import Gaussian

CACHE = 2000  # MB, of the rivals
NOISE = 0.01
EASY = {"shuttle": 10.0, "pendigits": 10.0}


def covertype(rows: int) -> tuple[Any, Any]:
    """Read rows of covertype, the commonest class against the rest; repeat if few."""
    X, y = datasets.covertype(rows, binary=True)
    if rows <= len(y):
        return X, y
    rng = np.random.default_rng(0)
    again = rng.integers(0, len(y), rows - len(y))
    more = X[again] + NOISE * rng.standard_normal((len(again), X.shape[1]))
    return np.concatenate([X, more]), np.concatenate([y, y[again]])


def timed(fit: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what was fitted, the seconds on the clock, and those of all processors."""
    clock, processor = time.perf_counter(), time.process_time()
    machine = fit()
    return machine, time.perf_counter() - clock, time.process_time() - processor


def rival() -> tuple[str, Any]:
    """Return scikit-learn-intelex where it is installed, else scikit-learn."""
    try:
        from sklearnex import svm as extension
    except ImportError:
        return "scikit-learn", libsvm.SVC
    return "intelex", extension.SVC


def compare(name: str, X: Any, y: Any, C: float, title: str, other: Any) -> None:
    """Fit both, and print a line of a table."""
    scale = float(np.sqrt(X.shape[1] / 2))
    ours, clock, processor = timed(lambda: SVC(Gaussian(scale), C=C, approximation=None).fit(X, y))
    print(f"<!-- {name}: {clock:.2f} s, {processor:.2f} s of processors -->", flush=True)
    options = {"gamma": 1 / X.shape[1], "C": C, "cache_size": CACHE}
    theirs, their_clock, their_processor = timed(lambda: other(**options).fit(X, y))
    agree = float(np.mean(ours.predict(X[:2000]) == theirs.predict(X[:2000])))
    print(
        f"| {name} {len(y)}, C = {C:g} | {title} | {their_clock / clock:.1f} | "
        f"{their_processor / processor:.1f} | {clock:.2f} | {their_clock:.2f} | "
        f"{len(ours.support_)} | {agree:.4f} |",
        flush=True,
    )


def main(wishes: list[str]) -> None:
    """Print the table."""
    print("| data | rival | clock | processors | Mercer, s | rival, s | support vectors | agree |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for name, C in EASY.items() if "easy" in wishes else ():
        if datasets.available(name):
            X, y = datasets.real(name)
            compare(f"{name}, first fit,", X, y, C, "scikit-learn", libsvm.SVC)
            compare(f"{name}, second fit,", X, y, C, "scikit-learn", libsvm.SVC)
    for rows in (int(wish) for wish in wishes if wish != "easy"):
        if datasets.available("covertype_part"):
            compare("covertype", *covertype(rows), 10.0, *rival())


if __name__ == "__main__":
    main(sys.argv[1:] or ["easy", "40000"])
