"""Kernel K-means by Nystrom features, beside scikit-learn's Nystroem + MiniBatchKMeans.

python -m benchmarks.scale.kmeans_features [rows [rounds]]     prints one line for each contestant

Both have the same landmarks, rows drawn at random, so that there is one objective to judge both by:
squared distances in the space of these features.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import MiniBatchKMeans

from benchmarks.scale.svc_features import covertype, landmarks, nystroem, nystrom, touched
from mercer import KMeans

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


def main(rows: int, rounds: int) -> None:
    """Fit both, and print seconds and objectives."""
    X = covertype(rows)[0]
    drawn = landmarks(X, FEATURES)
    batches = MiniBatchKMeans(CLUSTERS, random_state=0)
    for _ in range(rounds):
        theirs = timed("MiniBatchKMeans", lambda: batches.fit_predict(nystroem(drawn).transform(X)))
        machine = timed("mercer KMeans", lambda: KMeans(CLUSTERS, nystrom(drawn)).fit(X))
    F = nystrom(drawn).phi(X)
    print(f"{machine.solution_}; {machine.certificate_.statement}")
    print(f"objective {objective(F, theirs):.1f} against {objective(F, machine.labels_):.1f}")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*given, *(1_000_000, 1)[len(given) :])
