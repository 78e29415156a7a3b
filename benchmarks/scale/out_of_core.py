"""Fit tables that memory does not hold: rows are made block by block, and memory is measured.

Run ``python benchmarks/scale/out_of_core.py --gigabytes 20 --memory "4 GB"``. With ``--folder`` the
rows are written there first, as a mapped array, and read from the disk in each pass.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import mercer
from mercer import PCA, SVC, KernelRidge
from mercer.approximation import Nystrom
from mercer.blocks import ArrayBlocks, Block, RowBlocks, blocks_of
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


def mapped(made: Made, folder: Path) -> RowBlocks:
    """Write the rows to files, and return them as mapped arrays."""
    n = made.blocks * ROWS
    X = np.lib.format.open_memmap(folder / "rows.npy", "w+", np.float64, (n, COLUMNS))
    y = np.lib.format.open_memmap(folder / "targets.npy", "w+", np.float64, (n,))
    for number, (rows, targets) in enumerate(made()):
        X[number * ROWS : (number + 1) * ROWS] = rows
        y[number * ROWS : (number + 1) * ROWS] = targets
    del X, y
    X, y = (np.load(folder / name, mmap_mode="r") for name in ("rows.npy", "targets.npy"))
    return ArrayBlocks(X, y)


def signs_of(blocks: RowBlocks) -> np.ndarray:
    """Return labels of all rows: whether targets are positive."""
    return np.concatenate(blocks.gather(positive))


def positive(block: Block) -> np.ndarray:
    """Return whether the targets of a block are positive."""
    return np.asarray(block.y) > 0


def peak() -> float:
    """Return the largest memory of this process since `forget_peak`, in GB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(x.split()[1]) * 1024e-9 for x in lines if x.startswith("VmHWM"))


def forget_peak() -> None:
    """Begin to measure the largest memory anew: writing the rows takes some."""
    Path("/proc/self/clear_refs").write_text("5")


def main() -> None:
    """Fit, and print time, passes and the largest memory of the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--memory", default="4 GB")
    parser.add_argument("--landmarks", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--svc", type=int, default=0, help="steps of a support vector classifier")
    options = parser.parse_args()
    count = max(1, round(options.gigabytes * 1e9 / (8 * ROWS * COLUMNS)))
    blocks: RowBlocks = blocks_of(Made(count))
    if options.folder:
        with mercer.config(memory=options.memory):
            blocks = mapped(Made(count), options.folder)
    kernel = "linear" if not options.landmarks else Gaussian(10.0)
    features = Nystrom(options.landmarks) if options.landmarks else "auto"
    machines = [KernelRidge(1.0, kernel, approximation=features)]
    machines += [] if options.landmarks else [PCA(5)]
    if options.svc:
        machines = [SVC("linear", 1e-3, max_iter=options.svc, approximation=None)]
        blocks = blocks.with_targets(signs_of(blocks))
    forget_peak()
    print(f"before the fits {peak():.2f} GB of memory")
    with mercer.config(memory=options.memory):
        for machine in machines:
            wall, used = time.perf_counter(), time.process_time()
            machine.fit(blocks)
            wall, used = time.perf_counter() - wall, time.process_time() - used
            print(
                f"{type(machine).__name__}: {count * ROWS:,} rows, "
                f"{8e-9 * count * ROWS * COLUMNS:.1f} GB, {wall:.0f} s, processor {used:.0f} s, "
                f"largest memory {peak():.2f} GB, {machine.solution_.status.name}, certified: "
                f"{machine.certificate_.ok}",
                flush=True,
            )


if __name__ == "__main__":
    main()
