"""Kernel K-means by Nystrom features, beside scikit-learn's Nystroem + MiniBatchKMeans.

python -m benchmarks.scale.kmeans_features [rows [rounds]]     prints one line for each contestant

Both are judged by the objective of their labels in the features of either side.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.kernel_approximation import Nystroem

from benchmarks.scale.svc_features import SCALE, covertype
from mercer import KMeans
from mercer.approximation import Nystrom
from mercer.kernels import Gaussian

FEATURES, CLUSTERS = 100, 20


def objective(F: Any, labels: Any) -> float:
    """Sum the squared distances to the means."""
    sums = np.stack([F[labels == c].sum(axis=0) for c in range(CLUSTERS)])
    sizes = np.maximum(np.bincount(labels, minlength=CLUSTERS), 1)
    return float(np.square(F).sum() - (np.square(sums).sum(axis=1) / sizes).sum())


def timed(name: str, fit: Callable[[], Any]) -> Any:
    """Run, and print seconds."""
    gc.collect()
    touched()
    wall, processor = time.perf_counter(), time.process_time()
    found = fit()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(f"{name:16} wall {wall:8.2f} s processor {processor:8.2f} s", flush=True)
    return found


def touched(gigabytes: int = 3) -> None:
    """Write to as much memory as a fit takes: pages that are lent for the first time cost."""
    np.empty(gigabytes << 27).fill(0.0)


def main(rows: int, rounds: int) -> None:
    """Fit both, and print seconds and objectives."""
    X = covertype(rows)[0]
    nystroem = Nystroem(gamma=0.5 / SCALE**2, n_components=FEATURES, random_state=0)
    batches = MiniBatchKMeans(CLUSTERS, random_state=0)
    machine = KMeans(CLUSTERS, Gaussian(SCALE), approximation=Nystrom(FEATURES, "uniform"))
    for _ in range(rounds):
        theirs = timed("MiniBatchKMeans", lambda: batches.fit_predict(nystroem.fit_transform(X)))
        ours = timed("mercer KMeans", lambda: machine.fit(X)).labels_
    kernel = machine.kernel_
    print(f"{machine.certificate_.statement}; features off by {machine.approximation_error_}")
    for name, F in (("Nystroem", nystroem.transform(X)), ("Nystrom", kernel.phi(X))):
        print(f"in features of {name}: {objective(F, theirs):.1f} against {objective(F, ours):.1f}")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*given, *(1_000_000, 1)[len(given) :])
