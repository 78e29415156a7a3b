"""Fit tables that memory does not hold: rows are made block by block, and memory is measured.

Run ``python benchmarks/scale/out_of_core.py --gigabytes 20 --memory "4 GB"``.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator

import numpy as np

import mercer
from mercer import PCA, KernelRidge
from mercer.approximation import Nystrom
from mercer.blocks import blocks_of
from mercer.kernels import Gaussian

COLUMNS, ROWS = 50, 100_000
BASE = np.random.default_rng(0).standard_normal((ROWS, COLUMNS))
NOISE = 0.1 * np.random.default_rng(1).standard_normal(ROWS)


class Made:
    """A table of so many blocks, each another mixture of the same draws."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks

    def __call__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Begin a pass."""
        for number in range(self.blocks):
            shift = (7919 * number) % ROWS
            X = np.concatenate([BASE[shift:], BASE[:shift]])
            X += np.sin(number + np.arange(COLUMNS))
            yield X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + NOISE


def main() -> None:
    """Fit, and print time, passes and the largest memory of the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--memory", default="4 GB")
    parser.add_argument("--landmarks", type=int, default=0)
    options = parser.parse_args()
    count = max(1, round(options.gigabytes * 1e9 / (8 * ROWS * COLUMNS)))
    blocks = blocks_of(Made(count))
    kernel = "linear" if not options.landmarks else Gaussian(10.0)
    features = Nystrom(options.landmarks) if options.landmarks else "auto"
    machines = [KernelRidge(1.0, kernel, approximation=features)]
    machines += [] if options.landmarks else [PCA(5)]
    with mercer.config(memory=options.memory):
        for machine in machines:
            wall, used = time.perf_counter(), time.process_time()
            machine.fit(blocks)
            wall, used = time.perf_counter() - wall, time.process_time() - used
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            print(
                f"{type(machine).__name__}: {count * ROWS:,} rows, "
                f"{8e-9 * count * ROWS * COLUMNS:.1f} GB, {wall:.0f} s, processor {used:.0f} s, "
                f"largest memory {peak:.2f} GB, {machine.solution_.status.name}, certified: "
                f"{machine.certificate_.ok}",
                flush=True,
            )


if __name__ == "__main__":
    main()
