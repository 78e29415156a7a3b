"""Held-out error of ridge regression against time and against memory, on kin40k.

python -m benchmarks.scale.ridge_picture     prints a line for each fit, and draws
docs/images/large-ridge.png

36000 rows, Gaussian kernel: landmarks in Mercer and in scikit-learn with the same penalty, and the
full kernel by a few passes of block steps within 4 GB. Memory is the rise of the peak of the
process over a fit; each fit has a process of its own, with nothing left from the fit before.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

import mercer
from benchmarks.arithmetic.memory import peak
from benchmarks.scale.full_ridge import BUDGET, PENALTY, SCALE, kin40k
from mercer import KernelRidge
from mercer.approximation import Nystrom
from mercer.kernels import Gaussian
from mercer.solvers import SketchAndProject

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "large-ridge.png"
LANDMARKS, PASSES = (250, 500, 1000, 2000), (3, 8)


def ours(m: int) -> Any:
    """Make a machine of landmarks."""
    return KernelRidge(PENALTY, Gaussian(SCALE), approximation=Nystrom(m))


def full(passes: int) -> Any:
    """Make a machine of the full kernel."""
    solver = SketchAndProject(tol=1e-2, max_iter=passes)
    return KernelRidge(PENALTY, Gaussian(SCALE), approximation=None, solver=solver)


def theirs(m: int) -> Any:
    """Make the rival's pipeline."""
    landmarks = Nystroem(gamma=0.5 / SCALE**2, n_components=m, random_state=0)
    return make_pipeline(landmarks, Ridge(PENALTY))


SERIES: dict[str, tuple[Callable[[int], Any], tuple[int, ...], str]] = {
    "Mercer, landmarks": (ours, LANDMARKS, "o-"),
    "Mercer, full kernel, some passes": (full, PASSES, "^-"),
    "scikit-learn, Nystroem + Ridge": (theirs, LANDMARKS, "o:"),
}


def measure(name: str, size: int, rows: int | None) -> tuple[float, float, float]:
    """Fit; return the error, seconds and megabytes."""
    X, y, Z, z = kin40k(rows)
    machine = SERIES[name][0](size)
    before, begun = peak(), time.perf_counter()
    with mercer.config(memory=BUDGET), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some passes are asked for, and end before the tolerance
        machine.fit(X, y)
    seconds, megabytes = time.perf_counter() - begun, (peak() - before) / 1e6
    return float(np.sqrt(np.mean(np.square(machine.predict(Z) - z)))), seconds, megabytes


def draw(found: dict[str, list[tuple[float, float, float]]]) -> None:
    """Plot two panels."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
    for axis, number, label in ((axes[0], 1, "seconds"), (axes[1], 2, "megabytes")):
        for name, points in found.items():
            values = [point[number] for point in points]
            axis.loglog(values, [point[0] for point in points], SERIES[name][2], label=name)
        axis.set_xlabel(label)
        axis.grid(alpha=0.3, which="both")
    axes[0].set_ylabel("held-out root mean square error")
    axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    """Measure everybody and draw."""
    rows, fresh = int(sys.argv[1]) if len(sys.argv) > 1 else None, get_context("spawn")
    found: dict[str, list[tuple[float, float, float]]] = {}
    print("contestant | size | held-out RMSE | wall s | MB", flush=True)
    for name, (_, sizes, _) in SERIES.items():
        for size in sizes:
            with fresh.Pool(1) as process:
                point = process.apply(measure, (name, size, rows))
            found.setdefault(name, []).append(point)
            error, seconds, megabytes = point
            print(f"{name} | {size} | {error:.4f} | {seconds:.1f} | {megabytes:.0f}", flush=True)
    draw(found)


if __name__ == "__main__":
    main()
