"""Seconds and memory of machines on Nystrom features against the number of rows, in blocks.

python -m benchmarks.scale.growth MACHINE [largest [smallest]]     a line for each number of rows
python -m benchmarks.scale.growth plot PICTURE < LINES             a picture of such lines

Rows are those of covertype, each block of them moved a little, made when they are asked for. Every
fit is in a process of its own, whose largest memory is told.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.scale.svc_features import SCALE, covertype
from mercer import PCA, SVC, KernelRidge, KMeans, LogisticRegression
from mercer.approximation import Nystrom
from mercer.blocks import blocks_of
from mercer.kernels import Gaussian

FEATURES, BLOCK, MOVED = 50, 50_000, 0.02
KERNEL, BY = Gaussian(SCALE), Nystrom(FEATURES, "uniform")
MACHINES: dict[str, Callable[[], Any]] = {
    "KernelRidge": lambda: KernelRidge(1.0, KERNEL, approximation=BY),
    "PCA": lambda: PCA(5, KERNEL, approximation=BY),
    "KMeans": lambda: KMeans(8, KERNEL, approximation=BY, refine=False),
    "LogisticRegression": lambda: LogisticRegression(1.0, KERNEL, approximation=BY),
    "SVC": lambda: SVC(KERNEL, approximation=BY),
}


class Made:
    """So many rows, block by block."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.X, self.y, _, _ = covertype(2 * BLOCK)

    def __call__(self) -> Iterator[tuple[Any, Any]]:
        """Begin a pass."""
        for number, first in enumerate(range(0, self.rows, BLOCK)):
            count = min(BLOCK, self.rows - first)
            shift = (7919 * number) % BLOCK
            rows = slice(shift, shift + count)
            move = MOVED * np.sin(number + np.arange(self.X.shape[1]))
            yield self.X[rows] + move, self.y[rows].astype(np.float64)


def one(name: str, rows: int) -> None:
    """Fit once, and print a line."""
    blocks, machine = blocks_of(Made(rows)), MACHINES[name]()
    before = _gigabytes()
    wall, work = time.perf_counter(), time.process_time()
    machine.fit(blocks)
    wall, work = time.perf_counter() - wall, time.process_time() - work
    ok = f"{machine.solution_.status.name}, certified: {machine.certificate_.ok}"
    memory = f"{_gigabytes():.3f} GB of {before:.3f}"
    print(f"{name} {rows} rows {wall:.2f} s processor {work:.2f} s {memory} {ok}", flush=True)


def _gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def grow(name: str, largest: int, smallest: int) -> None:
    """Fit ever more rows, each in a process of its own."""
    for half in range(8, 15):
        rows = round(10 ** (half / 2))
        if smallest <= rows <= largest:
            command = [sys.executable, "-m", "benchmarks.scale.growth", name, "one", str(rows)]
            subprocess.run(command, check=True)


def plot(file: str) -> None:
    """Draw seconds and memory of the lines on standard input."""
    from matplotlib import pyplot as plt

    found: dict[str, list[tuple[float, float, float]]] = {}
    for line in sys.stdin:
        word = line.split()
        if len(word) > 9 and word[0] in MACHINES:
            found.setdefault(word[0], []).append((float(word[1]), float(word[6]), float(word[8])))
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
    for name, lines in found.items():
        rows, work, memory = np.array(sorted(lines)).T
        left.loglog(rows, work, marker="o", markersize=4, label=name)
        right.semilogx(rows, memory, marker="o", markersize=4, label=name)
    ends = np.array([1e5, 1e7])
    left.loglog(ends, 2e-6 * ends, color="grey", linestyle=":", label="linear")
    left.set(xlabel="rows", ylabel="seconds of processor time")
    most = max(memory for lines in found.values() for _, _, memory in lines)
    right.set(xlabel="rows", ylabel="largest memory of the process, GB", ylim=(0, 1.1 * most))
    left.legend(fontsize=8)
    figure.savefig(file, dpi=130)


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[0] == "plot":
        plot(given[1])
    elif given[1:2] == ["one"]:
        one(given[0], int(given[2]))
    else:
        limits = [int(float(text)) for text in given[1:]]
        grow(given[0], *limits, *(10_000_000, 10_000)[len(limits) :])
