"""How time and memory of one fit grow with n and with C: every point in a process of its own.

python -m benchmarks.margin.growth     measures and writes docs/images/svm-growth.png
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "svm-growth.png"

ROWS = [1000, 2000, 4000, 8000, 16000, 32000]
WEIGHTS = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0]
ROWS_FOR_WEIGHTS = 8000
LONGEST = 60.0  # seconds; a contestant that took longer sits out the larger problems

COLOURS = {"Mercer": "#1b6ca8", "scikit-learn": "#d1495b", "intelex": "#8d96a3"}

ONE_FIT = """
import json, resource, sys, time
from benchmarks.datasets import synthetic
name, n, C = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
X, y = synthetic(n)
def machine():
    if name == "Mercer":
        from mercer import SVC
        from mercer.kernels import Gaussian
        return SVC(Gaussian(5.0), C=C)
    if name == "scikit-learn":
        from sklearn.svm import SVC
    else:
        from sklearnex.svm import SVC
    return SVC(gamma=1 / 50, C=C, cache_size=2000)
machine().fit(X[:200], y[:200])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.perf_counter()
machine().fit(X, y)
seconds = time.perf_counter() - started
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": seconds, "megabytes": (after - before) / 1024}))
"""


def one_fit(name: str, n: int, C: float) -> dict[str, float]:
    """Fit once in a fresh process; give seconds and how much the peak of memory rose."""
    command = [sys.executable, "-c", ONE_FIT, name, str(n), str(C)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def sweep(points: list[tuple[int, float]]) -> dict[str, list[dict[str, float]]]:
    """Measure all contestants at all points."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in COLOURS}
    for n, C in points:
        for name, past in found.items():
            if past and past[-1]["seconds"] > LONGEST:
                continue
            past.append(one_fit(name, n, C) | {"n": n, "C": C})
            print(name, past[-1], flush=True)
    return found


def draw(by_rows: Any, by_weight: Any) -> None:
    """Plot three panels: time over n, memory over n, time over C."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    panels = [
        (axes[0], by_rows, "n", "seconds", "rows", "seconds of fit, C = 1"),
        (axes[1], by_rows, "n", "megabytes", "rows", "rise of peak memory, MB"),
        (axes[2], by_weight, "C", "seconds", "C", f"seconds of fit, {ROWS_FOR_WEIGHTS} rows"),
    ]
    for axis, found, x, y, label, title in panels:
        for name, past in found.items():
            kept = [point for point in past if point[y] > 0]
            axis.loglog(
                [p[x] for p in kept], [p[y] for p in kept], "o-", color=COLOURS[name], label=name
            )
        axis.set(xlabel=label, title=title)
        axis.grid(alpha=0.3, which="both")
    axes[0].legend(frameon=False)
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    """Measure and draw."""
    by_rows = sweep([(n, 1.0) for n in ROWS])
    by_weight = sweep([(ROWS_FOR_WEIGHTS, C) for C in WEIGHTS])
    draw(by_rows, by_weight)


if __name__ == "__main__":
    main()
